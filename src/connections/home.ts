// Home realm discovery: which connection somebody's e-mail address belongs to, by its domain alone. Nothing here knows
// whether there is an account.
import type { Connection, Organization } from '../records/collections.ts';
import { strategyRecord } from '../records/connections.ts';
import { domainOf } from '../records/email.ts';
import { discoveryDomainsOf } from '../records/organizations.ts';
import { strategyOf } from './strategies.ts';
import type { Strategy } from './strategy.ts';

/** A connection whose strategy is built in. */
export interface UsableConnection {
  connection: Connection;
  strategy: Strategy;
}

/**
 * Strategies whose option `domain` is also a domain of e-mail addresses; with others it is the provider's own host.
 */
const WITH_DOMAIN: ReadonlySet<string> = new Set(['google-apps', 'waad']);

/** The domains of a connection's users, in lower case: `domain_aliases` and `tenant_domain`. */
export function domainsOf({ options, strategy }: Pick<Connection, 'options' | 'strategy'>): string[] {
  const { domain_aliases: aliases, tenant_domain: tenant, domain } = options;
  const all = [aliases, tenant, WITH_DOMAIN.has(strategy) ? domain : undefined].flat();
  return all.filter((one) => typeof one === 'string' && one !== '').map((one) => String(one).toLowerCase());
}

/** Whether a connection is the directory or provider of one organization, and not one that is open to everybody. */
export function isEnterprise(connection: Pick<Connection, 'strategy'>): boolean {
  const strategy = strategyOf(connection);
  if (strategy?.page === 'redirect') return !strategy.isSocial;
  return strategy !== undefined && strategyRecord(connection.strategy)?.isUpstream === true;
}

/**
 * The connection that an e-mail address belongs to: the one that declares its domain; of an organization whose verified
 * domain it is, its one enterprise connection.
 * @param usable the connections that may be used, in order.
 * @param organization that the login is for.
 * @returns undefined for an address of nobody's domain, and for what is no address.
 */
export function homeOf<U extends UsableConnection>(
  usable: readonly U[],
  organization: Organization | undefined,
  identifier: string | undefined,
): U | undefined {
  const domain = domainOf(identifier ?? '');
  if (domain === undefined) return undefined;
  const declared = usable.find(({ connection }) => domainsOf(connection).includes(domain));
  if (declared !== undefined || !isDomainOf(organization, domain)) return declared;
  const own = usable.filter(({ connection }) => isEnterprise(connection));
  return own.length === 1 ? own[0] : undefined;
}

function isDomainOf(organization: Organization | undefined, domain: string): boolean {
  return discoveryDomainsOf(organization ?? {}).some(
    (one) => one.domain === domain && one.status === 'verified',
  );
}

/** Whether e-mail addresses can choose the connection: a provider elsewhere, or a directory's password form. */
export function hasHomes(
  usable: readonly UsableConnection[],
  organization: Organization | undefined,
): boolean {
  const own = usable.filter(({ connection }) => isEnterprise(connection));
  const isVerified = discoveryDomainsOf(organization ?? {}).some(({ status }) => status === 'verified');
  return own.some(({ connection }) => domainsOf(connection).length > 0) || (own.length === 1 && isVerified);
}
