// /console/security/blocked: accounts and addresses that cannot log in after too many failures, and unblocking them.
// Locks are stored under hashes of identifiers, so the identifiers are taken from the log, and the API is asked about
// each.
// docs/understand/decisions/console-account.md#blocked-now-is-found-through-the-log
import { isIP } from 'node:net';
import type { Context } from 'koa';
import { type FormattedTime, timesOf } from '../../../capabilities/pages/times.ts';
import { formFields } from '../../../http/server/body.ts';
import type { RouteDeclarations } from '../../../http/server/router.ts';
import { callApi, callApiIfFound } from '../api-calls.ts';
import { type ConsoleSession, consoleForm, consolePage, redirectAfterForm } from '../console-page.ts';
import type { EventAnswer } from '../log/describe-event.ts';
import { declareConsolePage, renderConsole } from '../render.ts';
import type { SecuritySettingsDependencies } from './settings-pages.ts';
import { PARTS, pathOfPart, type SectionTab, tabsOf } from './tabs.ts';

const PATH = pathOfPart('blocked');
/** How many log events are read, and about how many of their identifiers or addresses the API is asked. */
const EVENTS_READ = '100';
const MAX_CHECKED = 20;

export const blockedRoutes: RouteDeclarations<SecuritySettingsDependencies> = {
  [`GET ${PATH}` as const]: consolePage('security', { scopes: PARTS.blocked }, showBlocked),
  [`POST ${PATH}/account` as const]: consoleForm<SecuritySettingsDependencies>(
    'security',
    { scopes: ['update:users'], isDangerous: false },
    async (deps, ctx, session) => {
      await callApi(deps, ctx, session, 'DELETE /user-blocks', { query: formFields(ctx, 'identifier') });
      redirectAfterForm(ctx, PATH, 'console.security.said.unblocked');
    },
  ),
  [`POST ${PATH}/address` as const]: consoleForm<SecuritySettingsDependencies>(
    'security',
    { scopes: ['delete:anomaly_blocks'], isDangerous: false },
    async (deps, ctx, session) => {
      const { ip: id } = formFields(ctx, 'ip');
      await callApi(deps, ctx, session, 'DELETE /anomaly/blocks/ips/:id', { params: { id } });
      redirectAfterForm(ctx, PATH, 'console.security.said.unblocked');
    },
  ),
};

interface SecurityBlockedModel {
  tabs: SectionTab[];
  path: string;
  asked: string;
  mayUnblockAccounts: boolean;
  mayUnblockAddresses: boolean;
  accounts: (
    | { since?: undefined; identifier: string; from: string[]; connections: string[] }
    | { since: FormattedTime; identifier: string; from: string[]; connections: string[] }
  )[];
  addresses: ({ since?: undefined; ip: string } | { since: FormattedTime; ip: string })[];
}

export const SECURITY_BLOCKED_PAGE = declareConsolePage<SecurityBlockedModel>('console/security-blocked');

async function showBlocked(
  deps: SecuritySettingsDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<void> {
  const search = typeof ctx.query.who === 'string' ? ctx.query.who.trim().slice(0, 320) : '';
  const locks = await latestOf(deps, ctx, session, 'limit_wc', ({ user_name: name }) => name);
  const throttled = await latestOf(deps, ctx, session, 'limit_mu', ({ ip }) => ip);
  const identifiers = namesOf(locks, isIP(search) === 0 ? search : '');
  const addresses = namesOf(throttled, isIP(search) === 0 ? '' : search);
  const timeOf = timesOf(deps, ctx);
  const since = (events: ReadonlyMap<string, EventAnswer>, name: string) => {
    const date = events.get(name)?.date;
    return date === undefined ? {} : { since: timeOf(date) };
  };
  const accounts = await Promise.all(identifiers.map((name) => blocksOf(deps, ctx, session, name)));
  const isAddressThrottled = await Promise.all(addresses.map((ip) => isThrottled(deps, ctx, session, ip)));
  await renderConsole(deps, ctx, session, {
    page: SECURITY_BLOCKED_PAGE,
    section: 'security',
    title: 't:console.security.blocked',
    model: {
      tabs: tabsOf(session, 'blocked'),
      path: PATH,
      asked: search,
      mayUnblockAccounts: session.can('update:users'),
      mayUnblockAddresses: session.can('delete:anomaly_blocks'),
      accounts: identifiers.flatMap((identifier, n) => {
        const blocks = accounts[n] ?? [];
        const from = [...new Set(blocks.flatMap(({ ip }) => ip ?? []))];
        const connections = [...new Set(blocks.map(({ connection }) => connection))];
        return blocks.length === 0 ? [] : [{ identifier, from, connections, ...since(locks, identifier) }];
      }),
      addresses: addresses
        .filter((_, n) => isAddressThrottled[n] === true)
        .map((ip) => ({ ip, ...since(throttled, ip) })),
    },
  });
}

/** Returns the latest event of a type for each identifier or address. */
async function latestOf(
  deps: SecuritySettingsDependencies,
  ctx: Context,
  session: ConsoleSession,
  type: string,
  nameOf: (event: EventAnswer) => string | undefined,
): Promise<ReadonlyMap<string, EventAnswer>> {
  const query = { q: `type:${type}`, sort: 'log_id:-1', per_page: EVENTS_READ };
  const events = (await callApi(deps, ctx, session, 'GET /logs', { query })).body as EventAnswer[];
  const latest = new Map<string, EventAnswer>();
  for (const event of events) {
    const name = nameOf(event);
    if (name !== undefined && name !== '' && !latest.has(name)) latest.set(name, event);
  }
  return latest;
}

/** Returns the names to ask the API about: those of the log, and one that was searched for. */
const namesOf = (latest: ReadonlyMap<string, EventAnswer>, search: string): string[] => [
  ...new Set([...(search === '' ? [] : [search]), ...[...latest.keys()].slice(0, MAX_CHECKED)]),
];

async function blocksOf(
  deps: SecuritySettingsDependencies,
  ctx: Context,
  session: ConsoleSession,
  identifier: string,
) {
  const { body } = await callApi(deps, ctx, session, 'GET /user-blocks', { query: { identifier } });
  return (body as { blocked_for: { connection: string; ip?: string }[] }).blocked_for;
}

async function isThrottled(
  deps: SecuritySettingsDependencies,
  ctx: Context,
  session: ConsoleSession,
  ip: string,
): Promise<boolean> {
  // Old log events may contain something that is not an address.
  if (isIP(ip) === 0) return false;
  const params = { id: ip };
  return (await callApiIfFound(deps, ctx, session, 'GET /anomaly/blocks/ips/:id', { params })) !== undefined;
}
