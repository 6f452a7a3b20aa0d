// Asks the tenant's network access control lists about each request, before anything else is done for it.
import type { Context } from 'koa';
import { addressList, parsePlain } from '../../http/addresses.ts';
import { AuthError } from '../../http/errors.ts';
import { tenantHostOf } from '../../http/server/request-target.ts';
import type { NetworkAcl, Signals } from '../../records/tenant/network-acls.ts';
import { type Config, derived } from '../../tenant/config.ts';
import type { Events } from '../../tenant/events.ts';
import { protectionEvents } from './protection-declaration.ts';

interface NetworkAclDependencies {
  config: Pick<Config, 'networkAcls'>;
  events: Pick<Events, 'record'>;
  /** Returns the address that connected to this server, or to the edge in front of it. */
  connectingAddress(ctx: Context): string;
  /** Whether a request belongs to a login to the console. It is asked only of requests that a list refuses. */
  isConsoleLogin(ctx: Context): Promise<boolean>;
}

/** A request, as conditions see it. */
interface Sender {
  address: string;
  connecting: string;
  hostname: string;
  userAgent: string;
}

/** A list that is ready to be asked. */
interface Compiled {
  acl: NetworkAcl;
  applies(sender: Sender): boolean;
}

// docs/understand/decisions/management-api.md#network-acls-decide-before-anything-else-is-done-for-a-request
/**
 * Returns the function that each request passes first. The first list that applies decides, and one that only logs
 * lets the next ones be asked, as at the hosted service.
 */
export function networkGuard({ config, events, connectingAddress, isConsoleLogin }: NetworkAclDependencies) {
  const lists = derived(config.networkAcls, (acls) => acls.map(compiled));
  const refuse = async (ctx: Context, acl: NetworkAcl): Promise<'answered' | undefined> => {
    if (await isConsoleLogin(ctx)) return undefined;
    recordMatch(events, acl, ctx.ip);
    return decided(ctx, acl.rule.action);
  };
  /** @throws AuthError 403 `access_denied` when a list blocks the request. */
  return (ctx: Context): 'answered' | undefined | Promise<'answered' | undefined> => {
    const asked = lists();
    if (asked.length === 0) return undefined;
    const sender = {
      address: plain(ctx.ip),
      connecting: plain(connectingAddress(ctx)),
      hostname: tenantHostOf(ctx).hostname,
      userAgent: ctx.get('User-Agent').toLowerCase(),
    };
    for (const { acl, applies } of asked) {
      if (!isInScope(acl.rule.scope, ctx.path) || !applies(sender)) continue;
      const { action } = acl.rule;
      if (action.log === true) recordMatch(events, acl, ctx.ip);
      else if (action.allow === true && action.block !== true) return undefined;
      else return refuse(ctx, acl);
    }
    return undefined;
  };
}

function decided(
  ctx: Context,
  { block, redirect_uri: uri }: NetworkAcl['rule']['action'],
): 'answered' | undefined {
  if (block === true)
    throw new AuthError(403, 'access_denied', 'A network access control list does not allow this request.', {
      extra: { reason: 'network_acl' },
    });
  if (uri === undefined) return undefined;
  ctx.redirect(uri);
  return 'answered';
}

function recordMatch(events: Pick<Events, 'record'>, { id, priority, rule, ...acl }: NetworkAcl, ip: string) {
  const { action } = rule;
  events.record({
    type: protectionEvents.acls_summary,
    ip,
    description: acl.description,
    details: { acls_summary: { acl_id: id, description: acl.description, priority, action } },
  });
}

/** IPv4-mapped IPv6 addresses are matched as IPv4. */
const plain = (address: string): string => parsePlain(address)?.toString() ?? address;

function isInScope(scope: NetworkAcl['rule']['scope'], path: string): boolean {
  if (scope === 'tenant') return true;
  // Newer clients spell the scope out.
  if (scope === 'dcr' || scope === 'dynamic_client_registration') return /^\/oidc\/register(\/|$)/.test(path);
  return path.startsWith('/api/v2/') === (scope === 'management');
}

function compiled(acl: NetworkAcl): Compiled {
  const matches = testsOf(acl.rule.match);
  const excludes = testsOf(acl.rule.not_match);
  return {
    acl,
    applies: (sender) => matches.every((test) => test(sender)) && !excludes.some((test) => test(sender)),
  };
}

type Test = (sender: Sender) => boolean;

/**
 * Returns a test for each signal of a condition: whether the request is like one of the entries. Addresses of both
 * versions are one signal, because a request has only one address.
 */
function testsOf(signals: Signals = {}): Test[] {
  const { hostnames, user_agents: agents } = signals;
  const addresses = [signals.ipv4_cidrs ?? [], signals.ipv6_cidrs ?? []].flat();
  const connecting = [signals.connecting_ipv4_cidrs ?? [], signals.connecting_ipv6_cidrs ?? []].flat();
  const isListed = addressList(addresses);
  const connectsFromListed = addressList(connecting);
  const named = new Set(hostnames?.map((name) => name.toLowerCase()));
  const lowerAgents = agents?.map((agent) => agent.toLowerCase()) ?? [];
  return [
    ...(addresses.length > 0 ? [({ address }: Sender) => isListed(address)] : []),
    ...(connecting.length > 0 ? [(sender: Sender) => connectsFromListed(sender.connecting)] : []),
    ...(named.size > 0 ? [({ hostname }: Sender) => named.has(hostname)] : []),
    ...(lowerAgents.length > 0
      ? [({ userAgent }: Sender) => lowerAgents.some((agent) => userAgent.includes(agent))]
      : []),
  ];
}
