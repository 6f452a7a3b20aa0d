// /console/log: the events, newest first, and one event together with its related events.
import type { Context } from 'koa';
import { type FormattedTime, timesOf } from '../../../capabilities/pages/times.ts';
import { AuthError } from '../../../http/errors.ts';
import type { RouteDeclarations } from '../../../http/server/router.ts';
import type { EventTypes } from '../../../records/base/log-events.ts';
import { eventIdAt } from '../../../tenant/events.ts';
import { type ApiCallDependencies, callApi, callApiIfFound } from '../api-calls.ts';
import { CONSOLE } from '../console-callbacks.ts';
import { type ConsolePageDependencies, type ConsoleSession, consolePage } from '../console-page.ts';
import { EVENT_GROUPS } from '../event-groups.ts';
import { declareConsolePage, renderConsole } from '../render.ts';
import { hrefOf, isUnfiltered, type LogFilter, queriesOf, quoted, readFilter } from './console-log-filter.ts';
import { actorOf, describeEvent, type EventAnswer, isFailure } from './describe-event.ts';

export interface LogDependencies extends ConsolePageDependencies, ApiCallDependencies {
  eventTypes: EventTypes;
  retentionDays(): number;
}

const PATH = `${CONSOLE}/log`;
const SCOPES = { scopes: ['read:logs'] };
/** The maximum number of events on a page and among related events. */
const PAGE_SIZE = 50;
const MAX_RELATED = 100;
/** The maximum number of users that one address is resolved to; each has another connection. */
const MAX_USERS = 5;

export const logRoutes: RouteDeclarations<LogDependencies> = {
  [`GET ${PATH}` as const]: consolePage('log', SCOPES, showLog),
  [`GET ${PATH}/:id` as const]: consolePage('log', SCOPES, showEvent),
};

/** Capitalizes a sentence: for an event that names nobody it begins with the word for somebody. */
const capitalized = (text: string, tag: string) => text.charAt(0).toLocaleUpperCase(tag) + text.slice(1);

/** What the list, the story of a login and the page of an event show of an event. */
interface ShownEvent {
  path: string;
  type: string;
  time: FormattedTime;
  words: string;
  isBad: boolean;
  why: string | undefined;
  client: string | undefined;
  connection: string | undefined;
  ip: string | undefined;
}

interface LogListModel {
  path: string;
  filter: LogFilter;
  isOpen: boolean;
  isNewest: boolean;
  groups: { name: string; text: string }[];
  types: { name: string; text: string }[];
  days: number;
  events: ShownEvent[];
  newest: string;
  older?: string | undefined;
  /** What can be chosen from, for administrators who may read it. */
  clients: { client_id: string; name?: string }[] | undefined;
  connections: { name: string }[] | undefined;
}

export const LOG_LIST_PAGE = declareConsolePage<LogListModel>('console/log-list');

async function showLog(deps: LogDependencies, ctx: Context, session: ConsoleSession): Promise<void> {
  const filter = readFilter(ctx.query);
  const found = await eventsOf(deps, ctx, session, filter).catch(queryRefusal);
  const { events, next } = 'refusal' in found ? { events: [], next: undefined } : found;
  const locale = deps.views.locale(ctx);
  const groups = Object.keys(EVENT_GROUPS).map((name) => ({ name, text: `console.log.group.${name}` }));
  const types = Object.keys(deps.eventTypes).map((name) => ({
    name,
    text: capitalized(
      describeEvent({ type: name, log_id: '', date: '' }, locale, deps.eventTypes),
      locale.tag,
    ),
  }));
  await renderConsole(deps, ctx, session, {
    page: LOG_LIST_PAGE,
    title: 't:console.log.title',
    model: {
      path: PATH,
      filter,
      isOpen: isUnfiltered(filter),
      isNewest: filter.before === '',
      groups,
      types: types.sort((a, b) => a.text.localeCompare(b.text, locale.tag)),
      ...(await choicesOf(deps, ctx, session)),
      days: deps.retentionDays(),
      events: events.map(eventFormatter(deps, ctx)),
      newest: hrefOf(PATH, filter, { before: '' }),
      ...(next !== undefined && { older: hrefOf(PATH, filter, { before: next }) }),
    },
    ...('refusal' in found && { alert: { text: found.refusal }, status: 400 }),
  });
}

/** Returns the error of a query that is malformed or takes too long. @throws any other error. */
function queryRefusal(thrown: unknown): { refusal: string } {
  if (thrown instanceof AuthError && thrown.status === 400) return { refusal: thrown.error_description };
  throw thrown;
}

/** Returns a page of events, newest first. @returns `next`, the id to continue from when older events follow. */
async function eventsOf(deps: LogDependencies, ctx: Context, session: ConsoleSession, filter: LogFilter) {
  const userIds = await idsOf(deps, ctx, session, filter.user);
  const pages = await Promise.all(
    queriesOf(filter, userIds).map((q) =>
      listEvents(deps, ctx, session, { q, limit: PAGE_SIZE + 1, sort: 'log_id:-1' }),
    ),
  );
  const byId = new Map(pages.flat().map((event) => [event.log_id, event]));
  const sorted = [...byId.values()].sort((a, b) => (a.log_id < b.log_id ? 1 : -1));
  const events = sorted.slice(0, PAGE_SIZE);
  return { events, next: sorted.length > PAGE_SIZE ? events.at(-1)?.log_id : undefined };
}

async function listEvents(
  deps: LogDependencies,
  ctx: Context,
  session: ConsoleSession,
  { q, limit, sort }: { q: string | undefined; limit: number; sort: string },
): Promise<EventAnswer[]> {
  const query = { q, sort, per_page: String(limit) };
  return (await callApi(deps, ctx, session, 'GET /logs', { query })).body as EventAnswer[];
}

/**
 * Returns the ids of the users with an e-mail address, if the role may read users: their events need not contain the
 * address.
 */
async function idsOf(
  deps: LogDependencies,
  ctx: Context,
  session: ConsoleSession,
  user: string,
): Promise<string[]> {
  if (!user.includes('@') || !session.can('read:users')) return [];
  const { body } = await callApi(deps, ctx, session, 'GET /users-by-email', {
    query: { email: user.toLowerCase() },
  });
  return (body as { user_id: string }[]).slice(0, MAX_USERS).map(({ user_id: id }) => id);
}

/** Returns the choices that the form offers, as far as the role may read them. */
async function choicesOf(deps: LogDependencies, ctx: Context, session: ConsoleSession) {
  const names = async <Named extends object>(scope: string, call: string, fields: string) =>
    session.can(scope)
      ? ((await callApi(deps, ctx, session, call, { query: { fields, per_page: '100' } })).body as Named[])
      : undefined;
  const [clients, connections] = await Promise.all([
    names<{ client_id: string; name?: string }>('read:clients', 'GET /clients', 'client_id,name'),
    names<{ name: string }>('read:connections', 'GET /connections', 'name'),
  ]);
  return { clients, connections };
}

function eventFormatter(deps: LogDependencies, ctx: Context) {
  const locale = deps.views.locale(ctx);
  const timeOf = timesOf(deps, ctx, 'second');
  return (event: EventAnswer): ShownEvent => ({
    path: `${PATH}/${encodeURIComponent(event.log_id)}`,
    type: event.type,
    time: timeOf(event.date),
    words: describeEvent(event, locale, deps.eventTypes),
    isBad: isFailure(event),
    why: event.description,
    client: event.client_name ?? event.client_id,
    connection: event.connection,
    ip: event.ip,
  });
}

interface LogEventModel {
  path: string;
  event: ShownEvent & { meaning: string };
  fields: { text: string; value: string }[];
  userPath: string | undefined;
  json: string;
  story: {
    outcome: string;
    who: string;
    why: string | undefined;
    steps: (ShownEvent & { seconds: number; isThis: boolean })[];
    isCut: boolean;
    most: number;
  };
}

export const LOG_EVENT_PAGE = declareConsolePage<LogEventModel>('console/log-event');

async function showEvent(deps: LogDependencies, ctx: Context, session: ConsoleSession): Promise<void> {
  const params = { id: ctx.params.id ?? '' };
  const event = (await callApi(deps, ctx, session, 'GET /logs/:id', { params })).body as EventAnswer;
  const limit = MAX_RELATED;
  const found = await Promise.all(
    relatedQueries(event).map((q) => listEvents(deps, ctx, session, { q, limit, sort: 'log_id:1' })),
  );
  const related = relatedEvents(event, found.flat());
  const outcome = outcomeOf(related);
  const { text } = deps.views.locale(ctx);
  const who = related.map(actorOf).find((one) => one !== undefined) ?? text('console.log.somebody');
  const shown = eventFormatter(deps, ctx);
  await renderConsole(deps, ctx, session, {
    page: LOG_EVENT_PAGE,
    title: 't:console.log.detail',
    model: {
      path: PATH,
      event: { ...shown(event), meaning: deps.eventTypes[event.type]?.meaning ?? event.type },
      fields: fieldsOf(event),
      userPath: await pathOfUser(deps, ctx, session, event.user_id),
      json: JSON.stringify(event, undefined, 2),
      story: {
        outcome: outcomeWords(outcome.kind, outcome.reason),
        who,
        why: outcome.reason,
        steps: stepsOf(related).map(({ step, seconds }) => ({
          ...shown(step),
          seconds,
          isThis: step.log_id === event.log_id,
        })),
        isCut: found.some((page) => page.length === limit),
        most: limit,
      },
    },
  });
}

/**
 * Returns the path of an event's user; undefined for administrators, who are not users of the tenant, and for deleted
 * users.
 */
async function pathOfUser(
  deps: LogDependencies,
  ctx: Context,
  session: ConsoleSession,
  id: string | undefined,
): Promise<string | undefined> {
  if (id === undefined || !deps.paths.has(`${CONSOLE}/users/:id`) || !session.can('read:users'))
    return undefined;
  const found = await callApiIfFound(deps, ctx, session, 'GET /users/:id', { params: { id } });
  return found && `${CONSOLE}/users/${encodeURIComponent(id)}`;
}

/** Returns the message key for the outcome of a login. */
function outcomeWords(kind: ReturnType<typeof outcomeOf>['kind'], reason: string | undefined): string {
  if (kind === 'in') return 'console.log.story.in';
  if (kind === 'waiting') return 'console.log.story.open.end';
  if (kind === 'other') return 'console.log.story.other';
  return reason === undefined ? 'console.log.story.refused' : 'console.log.story.refused.why';
}

/** Returns the steps, each with the seconds since the previous one. */
function stepsOf(related: readonly EventAnswer[]) {
  return related.map((step, at) => {
    const before = related[at - 1];
    const elapsed = before === undefined ? 0 : Date.parse(step.date) - Date.parse(before.date);
    return { step, seconds: Math.round(elapsed / 100) / 10 };
  });
}

/** Returns the members of an event that are shown by themselves, each with a message key. */
function fieldsOf(event: EventAnswer): { text: string; value: string }[] {
  const { client_name: name, client_id: id } = event;
  const valuesByKey = {
    'console.log.user': [...new Set([event.user_name, event.user_id])].filter((one) => one !== undefined),
    'console.log.client': [...new Set([name, id])].filter((one) => one !== undefined),
    'console.log.connection': [event.connection ?? []].flat(),
    'console.log.ip': [event.ip ?? []].flat(),
    'console.log.why': [event.description ?? []].flat(),
    'console.log.actor': actorsOf(event.details?.act),
    'console.log.story': [event.transaction ?? []].flat(),
  };
  return Object.entries(valuesByKey).flatMap(([text, values]) =>
    values.length === 0 ? [] : [{ text, value: values.join(' · ') }],
  );
}

/** Returns the actors of a chain (RFC 8693 §4.1), the one who acts now first. */
function actorsOf(act: unknown): string[] {
  if (typeof act !== 'object' || act === null) return [];
  const { sub, act: before } = act as { sub?: unknown; act?: unknown };
  return [...(typeof sub === 'string' ? [sub] : []), ...actorsOf(before)];
}

// Groups the events of one login: in their order, with the outcome and its reason.

/** The maximum time between the requests of one login that consists of several, milliseconds. */
const MAX_GAP_MS = 600_000;

/**
 * Reports whether a transaction is a login in the browser: its ids are longer than those of requests
 * (runtime/requester.ts).
 */
const isOfLogin = (transaction: string): boolean => transaction.length > 20;

/** Reports whether an event is a call of the Management API, which is not part of a login. */
const isOfManagement = ({ type }: EventAnswer): boolean => type === 'sapi' || type === 'fapi';

/**
 * Returns the log queries that find the events related to an event. These are the events of its transaction. An
 * application that logs in by several requests has a transaction for each, so in that case they also include events
 * of the same user, address and application at about that time.
 */
function relatedQueries(event: EventAnswer): string[] {
  const { transaction, user_id: user, ip, client_id: client, date } = event;
  const transactionQuery = transaction === undefined ? [] : [`transaction:${quoted(transaction)}`];
  const isWhole = transaction !== undefined && isOfLogin(transaction);
  if (isWhole || isOfManagement(event) || user === undefined || ip === undefined || client === undefined)
    return transactionQuery;
  const at = Date.parse(date);
  const near = [
    `user_id:${quoted(user)}`,
    `ip:${quoted(ip)}`,
    `client_id:${quoted(client)}`,
    `log_id:[${eventIdAt(at - MAX_GAP_MS)} TO ${eventIdAt(at + MAX_GAP_MS)}~]`,
  ];
  return [...transactionQuery, near.join(' AND ')];
}

/** Returns the related events among those found, and the event itself, in order. */
function relatedEvents(event: EventAnswer, found: readonly EventAnswer[]): EventAnswer[] {
  const belongs = (one: EventAnswer) =>
    one.transaction === event.transaction ||
    (!isOfManagement(one) && (one.transaction === undefined || !isOfLogin(one.transaction)));
  const all = new Map([event, ...found.filter(belongs)].map((one) => [one.log_id, one]));
  return [...all.values()].sort((a, b) => (a.log_id < b.log_id ? -1 : 1));
}

interface Outcome {
  kind: 'in' | 'refused' | 'waiting' | 'other';
  /** The reason for the refusal, as logged. */
  reason?: string | undefined;
}

/** Events after which a login waits for the user. */
const WAITING_TYPES: ReadonlySet<string> = new Set(['mfar', 'gd_start_auth', 'gd_start_enroll']);

/** Returns the outcome; the last relevant event decides. */
function outcomeOf(events: readonly EventAnswer[]): Outcome {
  let outcome: Outcome = { kind: 'other' };
  for (const event of events) {
    if (event.type === 's') outcome = { kind: 'in' };
    else if (WAITING_TYPES.has(event.type)) outcome = { kind: 'waiting' };
    // A failed logout, message or call of the Management API does not refuse a login.
    else if (isFailure(event) && !isOfManagement(event) && !['flo', 'fn'].includes(event.type))
      outcome = { kind: 'refused', reason: event.description ?? outcome.reason };
  }
  return outcome;
}
