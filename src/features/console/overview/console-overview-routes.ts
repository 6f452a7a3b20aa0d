// /console: the activity of the tenant, and what needs attention.

import { X509Certificate } from 'node:crypto';
import type { Context } from 'koa';
import { actionEvents } from '../../../capabilities/actions/actions-declaration.ts';
import { deliveryEvents } from '../../../capabilities/delivery/delivery-declaration.ts';
import { type FormattedTime, timesOf } from '../../../capabilities/pages/times.ts';
import type { RouteDeclarations } from '../../../http/server/router.ts';
import type { Client, Connection } from '../../../records/collections.ts';
import { certificateTexts } from '../../../records/connections/samlp-connection.ts';
import { ADMINISTRATORS } from '../../../records/users/administrators.ts';
import { identifierWarning } from '../../../tenant/identifier-warnings.ts';
import type { LogCounts } from '../../../tenant/log-counts.ts';
import { ADMINISTRATORS_SCOPE } from '../../management/roles/administrator-roles.ts';
import { type ApiCallDependencies, callApi, callApiIfFound } from '../api-calls.ts';
import { CONSOLE } from '../console-callbacks.ts';
import { type ConsolePageDependencies, type ConsoleSession, consolePage } from '../console-page.ts';
import { hrefOf, readFilter } from '../log/console-log-filter.ts';
import type { EventAnswer } from '../log/describe-event.ts';
import { declareConsolePage, renderConsole } from '../render.ts';
import type { ConnectionChecks } from './connection-checks.ts';
import { lastDayOf, type Numbers, numbersOf, RANGE_NAMES, rangeNamed } from './numbers.ts';

export type OverviewDependencies = AttentionDependencies;

export const overviewRoutes: RouteDeclarations<OverviewDependencies> = {
  [`GET ${CONSOLE}` as const]: consolePage('', { scopes: [] }, showOverview),
};

interface OverviewHomeModel {
  attention: Attention[];
  ranges?: { path: string; text: string; isCurrent: boolean }[];
  isBehind?: boolean;
  charts?: {
    name: string;
    text: string;
    range: string;
    total: string;
    size: { width: number; height: number };
    bars: Bar[];
    rows: { time: FormattedTime | undefined; value: string }[];
    first: FormattedTime | undefined;
    last: FormattedTime | undefined;
    path?: string;
  }[];
}

export const OVERVIEW_HOME_PAGE = declareConsolePage<OverviewHomeModel>('console/overview-home');

async function showOverview(
  deps: OverviewDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<void> {
  // Also started here, for sessions that began before the server did.
  if (session.can('read:users')) deps.readUsersAhead();
  const now = deps.clock();
  const range = rangeNamed(ctx.query.range);
  // In sequence: both count the log, and the second one can use what the first has counted.
  const numbers = session.can('read:stats') ? await numbersOf(deps.logCounts, range, now) : undefined;
  const attention = await attentionOf(deps, ctx, session, now);
  await renderConsole(deps, ctx, session, {
    page: OVERVIEW_HOME_PAGE,
    section: '',
    title: 't:console.nav.overview',
    model: {
      attention,
      ...(numbers && {
        ranges: RANGE_NAMES.map((name) => ({
          path: `${CONSOLE}?range=${name}`,
          text: `console.overview.range.${name}`,
          isCurrent: name === range,
        })),
        isBehind: numbers.isBehind,
        charts: chartsOf(deps, ctx, session, numbers),
      }),
    },
  });
}

function chartsOf(deps: OverviewDependencies, ctx: Context, session: ConsoleSession, numbers: Numbers) {
  const { form, times, series, range } = numbers;
  const timeOf = timesOf(deps, ctx, form);
  const shown = times.map(timeOf);
  const count = new Intl.NumberFormat(deps.views.locale(ctx).tag);
  const from = new Date(times[0] ?? 0).toISOString().slice(0, 16);
  return series.map(({ name, group, values, total }) => ({
    name,
    text: `console.overview.${name}`,
    range: `console.overview.range.${range}`,
    total: count.format(total),
    size: CHART,
    bars: barsOf(values),
    rows: values.map((value, n) => ({ time: shown[n], value: count.format(value) })),
    first: shown[0],
    last: shown.at(-1),
    ...(session.can('read:logs') && { path: hrefOf(`${CONSOLE}/log`, readFilter({ type: group, from })) }),
  }));
}

// Computes a bar chart, which a template draws as SVG.

export interface Bar {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** The size of a chart in its own coordinates; the page scales it. */
export const CHART = { width: 240, height: 64 };
/** The share of each column's width that the bar fills. */
const BAR_SHARE = 0.72;
/** The minimum height of a bar whose value is not zero, so that small values are visible beside large ones. */
const MIN_BAR_HEIGHT = 2;

/** Returns the bars of values, the first at the left. */
export function barsOf(values: readonly number[]): Bar[] {
  const max = Math.max(1, ...values);
  const columnWidth = CHART.width / Math.max(1, values.length);
  return values.map((value, n) => {
    const height = value === 0 ? 0 : Math.max(MIN_BAR_HEIGHT, (value / max) * CHART.height);
    return {
      x: rounded(n * columnWidth + (columnWidth * (1 - BAR_SHARE)) / 2),
      y: rounded(CHART.height - height),
      width: rounded(columnWidth * BAR_SHARE),
      height: rounded(height),
    };
  });
}

const rounded = (value: number): number => Math.round(value * 100) / 100;

// Problems that need attention, the worst first, each with a link to where it can be mended. An administrator only
// sees those that the role may see.

interface AttentionDependencies extends ConsolePageDependencies, ApiCallDependencies {
  logCounts: LogCounts;
  connectionChecks: ConnectionChecks;
  /** Returns the server's own TLS certificate, PEM, if it has one. */
  serverCertificate(): Promise<string | undefined>;
}

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
async function attentionOf(
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
const FAILURES: Readonly<Record<string, string>> = {
  [deliveryEvents.fn.code]: 'messages',
  [actionEvents.actions_execution_failed.code]: 'actions',
};

const failures: Check = async (deps, ctx, session, now) => {
  if (!session.can('read:logs')) return [];
  const found = await lastDayOf(deps.logCounts, Object.keys(FAILURES), now);
  return Promise.all(
    [...found].map(async ([type, { count, latest }]) => ({
      isBad: true,
      text: `console.attention.${FAILURES[type] ?? ''}`,
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

// Finds certificates that expire soon: the server's own, those of connections, and those of applications.

interface Expiry {
  /** The kind of owner, and its name. */
  owner: 'server' | 'connection' | 'client';
  name: string;
  /** Epoch milliseconds. */
  expiresAt: number;
}

/** Returns when a certificate expires; undefined for anything else. @param certificate PEM, or base64 as in metadata. */
function expiryOf(certificate: string): number | undefined {
  try {
    const text = certificate.includes('-----BEGIN ') ? certificate : Buffer.from(certificate, 'base64');
    return Date.parse(new X509Certificate(text).validTo);
  } catch {
    return undefined;
  }
}

/** Returns the latest expiry of certificates of which any one is enough: an older one is about to be replaced. */
function latestExpiry(texts: readonly unknown[]): number | undefined {
  const ends = texts
    .filter((one): one is string => typeof one === 'string')
    .flatMap((one) => certificateTexts(one))
    .flatMap((one) => expiryOf(one) ?? []);
  return ends.length === 0 ? undefined : Math.max(...ends);
}

/**
 * Returns the earliest expiry among the certificates that a connection verifies with, signs with and decrypts with.
 */
function connectionExpiry({ options }: Connection): number | undefined {
  const { signingCert, cert, signing_key: signingKey, decryptionKey } = options as Record<string, unknown>;
  const ofKey = (key: unknown) => [(key as { cert?: unknown } | undefined)?.cert];
  const ends = [[signingCert, cert].flat(), ofKey(signingKey), ofKey(decryptionKey)].flatMap(
    (one) => latestExpiry(one) ?? [],
  );
  return ends.length === 0 ? undefined : Math.min(...ends);
}

/** Returns the latest expiry of an application's credentials: one valid credential is enough to authenticate. */
function credentialsExpiry({ client_authentication_methods: methods }: Client): number | undefined {
  const all = Object.values(methods ?? {}).flatMap(
    (method) =>
      (method as { credentials?: readonly Record<string, unknown>[] } | undefined)?.credentials ?? [],
  );
  const ends = all.map(({ pem, expires_at: at }) =>
    Math.min(
      typeof at === 'string' ? Date.parse(at) : Number.POSITIVE_INFINITY,
      (typeof pem === 'string' ? expiryOf(pem.replaceAll('\\n', '\n')) : undefined) ??
        Number.POSITIVE_INFINITY,
    ),
  );
  return ends.length === 0 ? undefined : Math.max(...ends);
}

function serviceProviderExpiry({ addons }: Client): number | undefined {
  const { signingCert, encryptionCert } = ((addons as Record<string, unknown> | undefined)?.samlp ??
    {}) as Record<string, unknown>;
  const ends = [signingCert, encryptionCert].flatMap((one) => latestExpiry([one]) ?? []);
  return ends.length === 0 ? undefined : Math.min(...ends);
}

/**
 * Returns the certificates that expire before a time, the earliest first.
 * @param sources `server` is the server's own certificate, PEM.
 * @param time epoch milliseconds.
 */
function expiringBefore(
  sources: { server: string | undefined; connections: readonly Connection[]; clients: readonly Client[] },
  time: number,
): Expiry[] {
  const found: { owner: Expiry['owner']; name: string; expiresAt: number | undefined }[] = [
    {
      owner: 'server',
      name: '',
      expiresAt: sources.server === undefined ? undefined : expiryOf(sources.server),
    },
    ...sources.connections.map((one) => ({
      owner: 'connection' as const,
      name: one.name,
      expiresAt: connectionExpiry(one),
    })),
    ...sources.clients.flatMap((one) =>
      [credentialsExpiry(one), serviceProviderExpiry(one)].map((expiresAt) => ({
        owner: 'client' as const,
        name: one.name ?? one.client_id,
        expiresAt,
      })),
    ),
  ];
  return found
    .filter((one): one is Expiry => one.expiresAt !== undefined && one.expiresAt < time)
    .sort((a, b) => a.expiresAt - b.expiresAt);
}
