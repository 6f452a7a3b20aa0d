// Problems that need attention, the worst first, each with a link to where it can be mended. An administrator only
// sees those that the role may see.
import type { Context } from 'koa';
import { ADMINISTRATORS } from '../../../records/administrators.ts';
import type { EventType } from '../../../records/log-events.ts';
import { identifierWarning } from '../../../tenant/identifier-warnings.ts';
import type { LogCounts } from '../../../tenant/log-counts.ts';
import { type ApiCallDependencies, callApi, callApiIfFound } from '../api-calls.ts';
import { CONSOLE } from '../callbacks.ts';
import type { EventAnswer } from '../log/describe-event.ts';
import { hrefOf, readFilter } from '../log/filter.ts';
import type { ConsolePageDependencies, ConsoleSession } from '../page.ts';
import { ADMINISTRATORS_SCOPE } from '../roles.ts';
import { expiringBefore } from './certificates.ts';
import type { ConnectionChecks } from './connection-checks.ts';
import { lastDayOf } from './numbers.ts';

export interface AttentionDependencies extends ConsolePageDependencies, ApiCallDependencies {
  logCounts: LogCounts;
  connectionChecks: ConnectionChecks;
  /** Returns the server's own TLS certificate, PEM, if it has one. */
  serverCertificate(): Promise<string | undefined>;
}

/** A problem. */
interface Attention {
  isBad: boolean;
  /** A message key, and the values for its placeholders. */
  text: string;
  count?: number;
  name?: string;
  /** The original error message. */
  why?: string | undefined;
  /** The key of a message that explains the error in the reader's language. */
  cause?: string;
  path?: string;
}

const DAY_MS = 86_400_000;
/**
 * A signing key should be replaced a few times a year (`gatehouse doctor` uses the same age); a certificate before it
 * expires.
 */
const MAX_KEY_AGE_MS = 180 * DAY_MS;
const EXPIRY_NOTICE_MS = 21 * DAY_MS;
/** The maximum number of problems of one kind. */
const MAX_PER_KIND = 20;

type Check = (
  deps: AttentionDependencies,
  ctx: Context,
  session: ConsoleSession,
  now: number,
) => Promise<Attention[]>;

/** Returns all problems. @param now epoch milliseconds. */
export async function attentionOf(
  deps: AttentionDependencies,
  ctx: Context,
  session: ConsoleSession,
  now: number,
): Promise<Attention[]> {
  const all = await Promise.all(CHECKS.map((check) => check(deps, ctx, session, now)));
  const found = all.flat().map((one) => ({ ...one, ...(!hasPage(deps, one) && { path: undefined }) }));
  return found.sort((a, b) => Number(b.isBad) - Number(a.isBad)) as Attention[];
}

/** Reports whether the page that a problem links to exists. */
function hasPage({ paths }: AttentionDependencies, { path = '' }: Attention): boolean {
  return paths.has(path.split('?')[0] ?? '');
}

/** Log events of failures, with the ends of their message keys. Those of the last day are reported. */
const FAILURES: Partial<Record<EventType, string>> = {
  fn: 'messages',
  actions_execution_failed: 'actions',
};

const failures: Check = async (deps, ctx, session, now) => {
  if (!session.can('read:logs')) return [];
  const found = await lastDayOf(deps.logCounts, Object.keys(FAILURES), now);
  return Promise.all(
    [...found].map(async ([type, { count, latest }]) => ({
      isBad: true,
      text: `console.attention.${FAILURES[type as EventType] ?? ''}`,
      count,
      why: await descriptionOf(deps, ctx, session, latest),
      path: hrefOf(`${CONSOLE}/log`, readFilter({ type })),
    })),
  );
};

/** Returns the description of an event; undefined when it has been deleted. */
async function descriptionOf(deps: AttentionDependencies, ctx: Context, session: ConsoleSession, id: string) {
  const answer = await callApiIfFound(deps, ctx, session, 'GET /logs/:id', { params: { id } });
  return (answer?.body as EventAnswer | undefined)?.description;
}

const connections: Check = async ({ connectionChecks }, _ctx, session) =>
  session.can('read:connections')
    ? (await connectionChecks.broken()).slice(0, MAX_PER_KIND).map(({ name, fault: why }) => ({
        isBad: true,
        text: 'console.attention.connection',
        name,
        why: why.message,
        cause: `console.attention.cause.${why.failure ?? 'other'}`,
        path: `${CONSOLE}/connections`,
      }))
    : [];

const certificates: Check = async (deps, _ctx, session, now) => {
  const { config } = deps;
  const ending = expiringBefore(
    {
      server: session.can('read:tenant_settings') ? await deps.serverCertificate() : undefined,
      connections: session.can('read:connections') ? await config.connections() : [],
      clients: session.can('read:clients') ? await config.clients() : [],
    },
    now + EXPIRY_NOTICE_MS,
  );
  return ending.slice(0, MAX_PER_KIND).map(({ owner, name, expiresAt }) => ({
    isBad: expiresAt <= now,
    text: `console.attention.certificate.${owner}${expiresAt <= now ? '.over' : ''}`,
    name,
    count: Math.ceil((expiresAt - now) / DAY_MS),
    ...(owner !== 'server' && { path: `${CONSOLE}/${owner === 'client' ? 'applications' : 'connections'}` }),
  }));
};

const keys: Check = async (deps, ctx, session, now) => {
  if (!session.can('read:signing_keys')) return [];
  const { body } = await callApi(deps, ctx, session, 'GET /keys/signing');
  return (body as { alg: string; current_since?: string }[]).flatMap(({ alg, current_since: since }) => {
    const age = since === undefined ? 0 : now - Date.parse(since);
    if (age <= MAX_KEY_AGE_MS) return [];
    const path = `${CONSOLE}/security/keys`;
    return { isBad: false, text: 'console.attention.key', name: alg, count: Math.floor(age / DAY_MS), path };
  });
};

const streams: Check = async (deps, ctx, session) => {
  if (!session.can('read:log_streams')) return [];
  const { body } = await callApi(deps, ctx, session, 'GET /log-streams');
  return (body as { name: string; status: string }[])
    .filter(({ status }) => status === 'suspended')
    .slice(0, MAX_PER_KIND)
    .map(({ name }) => ({ isBad: true, text: 'console.attention.stream', name }));
};

/** Finds administrators without a second factor. */
const administrators: Check = async (deps, _ctx, session) => {
  if (!session.can(ADMINISTRATORS_SCOPE)) return [];
  const { members = [] } = (await deps.store.collection('administrators').get(ADMINISTRATORS)) ?? {};
  const withoutFactor: string[] = [];
  for (const { user_id: id } of members.slice(0, MAX_PER_KIND)) {
    const user = await deps.users.get(id);
    if (user === undefined || user.blocked === true) continue;
    // Only enrolled factors count: the tenant's e-mail factor is not used for logins to the console.
    const authenticators = await deps.authenticators.of(id);
    if (!authenticators.some(({ active }) => active)) withoutFactor.push(user.email ?? user.id);
  }
  if (withoutFactor.length === 0) return [];
  return [
    {
      isBad: false,
      text: 'console.attention.administrators',
      count: withoutFactor.length,
      name: withoutFactor.join(', '),
      path: `${CONSOLE}/administrators`,
    },
  ];
};

/** Finds connections whose users are identified by something that may be given to somebody else. */
const identifiers: Check = async ({ config, connectionChecks }, _ctx, session) => {
  if (!session.can('read:connections')) return [];
  const chosen = (await config.connections()).filter((one) => identifierWarning(one) !== undefined);
  const names = [...chosen.map(({ name }) => name), ...(await connectionChecks.named())];
  return names.slice(0, MAX_PER_KIND).map((name) => ({
    isBad: false,
    text: 'console.attention.identifier',
    name,
    path: `${CONSOLE}/connections`,
  }));
};

const CHECKS: readonly Check[] = [
  failures,
  connections,
  certificates,
  streams,
  keys,
  administrators,
  identifiers,
];
