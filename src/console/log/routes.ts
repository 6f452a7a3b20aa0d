// /console/log: what happened, newest first, and one event with all that belongs to it.
import type { Context } from 'koa';
import { AuthError } from '../../http/errors.ts';
import type { RouteDeclarations } from '../../http/routes.ts';
import { timesOf } from '../../pages/times.ts';
import type { EventMeanings } from '../../records/declaration.ts';
import { type AskDependencies, ask, askIfThere } from '../ask.ts';
import { CONSOLE } from '../callbacks.ts';
import { EVENT_GROUPS } from '../event-groups.ts';
import { type AtConsole, type ConsolePageDependencies, consolePage } from '../page.ts';
import { renderConsole } from '../render.ts';
import { hrefOf, isOpen, type LogFilter, queriesOf, readFilter } from './filter.ts';
import { outcomeOf, storyOf, storyQueries } from './story.ts';
import { type AnsweredEvent, isBad, whoOf, wordsOf } from './words.ts';

export interface LogDependencies extends ConsolePageDependencies, AskDependencies {
  /** What each type of event means. */
  meanings: EventMeanings;
  /** How many days events are kept. */
  retentionDays(): number;
}

const PATH = `${CONSOLE}/log`;
const SCOPES = { scopes: ['read:logs'] };
/** Events of a page, and of a story. */
const PAGE_SIZE = 50;
const MOST_OF_STORY = 100;
/** Users who may have one address, each by another connection. */
const MOST_USERS = 5;

export const logRoutes: RouteDeclarations<LogDependencies> = {
  [`GET ${PATH}` as const]: consolePage('log', SCOPES, showLog),
  [`GET ${PATH}/:id` as const]: consolePage('log', SCOPES, showEvent),
};

/** As a sentence begins: that of an event whom nobody is named by begins with a word for somebody. */
const sentence = (text: string, tag: string) => text.charAt(0).toLocaleUpperCase(tag) + text.slice(1);

async function showLog(deps: LogDependencies, ctx: Context, here: AtConsole): Promise<void> {
  const filter = readFilter(ctx.query);
  const found = await eventsOf(deps, ctx, here, filter).catch(refusalOf);
  const { events, next } = 'refusal' in found ? { events: [], next: undefined } : found;
  const locale = deps.views.locale(ctx);
  const groups = Object.keys(EVENT_GROUPS).map((name) => ({ name, text: `console.log.group.${name}` }));
  const types = Object.keys(deps.meanings).map((name) => ({
    name,
    text: sentence(wordsOf({ type: name, log_id: '', date: '' }, locale, deps.meanings), locale.tag),
  }));
  await renderConsole(deps, ctx, here, {
    template: 'console/log-list',
    title: 't:console.log.title',
    model: {
      path: PATH,
      filter,
      isOpen: isOpen(filter),
      isNewest: filter.before === '',
      groups,
      types: types.sort((a, b) => a.text.localeCompare(b.text, locale.tag)),
      ...(await choicesOf(deps, ctx, here)),
      days: deps.retentionDays(),
      events: events.map(shownBy(deps, ctx)),
      newest: hrefOf(PATH, filter, { before: '' }),
      ...(next !== undefined && { older: hrefOf(PATH, filter, { before: next }) }),
    },
    ...('refusal' in found && { alert: { text: found.refusal }, status: 400 }),
  });
}

/** What the query language says of a query that it does not understand, or that takes too long, is for who wrote it. */
function refusalOf(thrown: unknown): { refusal: string } {
  if (thrown instanceof AuthError && thrown.status === 400) return { refusal: thrown.error_description };
  throw thrown;
}

/** A page of events, newest first. @returns with `next`, an id, where older ones follow. */
async function eventsOf(deps: LogDependencies, ctx: Context, here: AtConsole, filter: LogFilter) {
  const userIds = await idsOf(deps, ctx, here, filter.user);
  const pages = await Promise.all(
    queriesOf(filter, userIds).map((q) =>
      listed(deps, ctx, here, { q, most: PAGE_SIZE + 1, sort: 'log_id:-1' }),
    ),
  );
  const byId = new Map(pages.flat().map((event) => [event.log_id, event]));
  const sorted = [...byId.values()].sort((a, b) => (a.log_id < b.log_id ? 1 : -1));
  const events = sorted.slice(0, PAGE_SIZE);
  return { events, next: sorted.length > PAGE_SIZE ? events.at(-1)?.log_id : undefined };
}

async function listed(
  deps: LogDependencies,
  ctx: Context,
  here: AtConsole,
  { q, most, sort }: { q: string | undefined; most: number; sort: string },
): Promise<AnsweredEvent[]> {
  const query = { q, sort, per_page: String(most) };
  return (await ask(deps, ctx, here, 'GET /logs', { query })).body as AnsweredEvent[];
}

/** The users whom an address names, where the role may know: their events need not name the address. */
async function idsOf(deps: LogDependencies, ctx: Context, here: AtConsole, user: string): Promise<string[]> {
  if (!user.includes('@') || !here.can('read:users')) return [];
  const { body } = await ask(deps, ctx, here, 'GET /users-by-email', {
    query: { email: user.toLowerCase() },
  });
  return (body as { user_id: string }[]).slice(0, MOST_USERS).map(({ user_id: id }) => id);
}

/** What the form offers, where the role may know it. */
async function choicesOf(deps: LogDependencies, ctx: Context, here: AtConsole) {
  const names = async (scope: string, call: string, fields: string) =>
    here.can(scope)
      ? ((await ask(deps, ctx, here, call, { query: { fields, per_page: '100' } })).body as object[])
      : undefined;
  const [clients, connections] = await Promise.all([
    names('read:clients', 'GET /clients', 'client_id,name'),
    names('read:connections', 'GET /connections', 'name'),
  ]);
  return { clients, connections };
}

/** Events as pages show them. */
function shownBy(deps: LogDependencies, ctx: Context) {
  const locale = deps.views.locale(ctx);
  const timeOf = timesOf(deps, ctx, 'second');
  return (event: AnsweredEvent) => ({
    path: `${PATH}/${encodeURIComponent(event.log_id)}`,
    type: event.type,
    time: timeOf(event.date),
    words: wordsOf(event, locale, deps.meanings),
    isBad: isBad(event),
    why: event.description,
    client: event.client_name ?? event.client_id,
    connection: event.connection,
    ip: event.ip,
  });
}

async function showEvent(deps: LogDependencies, ctx: Context, here: AtConsole): Promise<void> {
  const params = { id: ctx.params.id ?? '' };
  const event = (await ask(deps, ctx, here, 'GET /logs/:id', { params })).body as AnsweredEvent;
  const most = MOST_OF_STORY;
  const found = await Promise.all(
    storyQueries(event).map((q) => listed(deps, ctx, here, { q, most, sort: 'log_id:1' })),
  );
  const story = storyOf(event, found.flat());
  const outcome = outcomeOf(story);
  const { text } = deps.views.locale(ctx);
  const who = story.map(whoOf).find((one) => one !== undefined) ?? text('console.log.somebody');
  const shown = shownBy(deps, ctx);
  await renderConsole(deps, ctx, here, {
    template: 'console/log-event',
    title: 't:console.log.detail',
    model: {
      path: PATH,
      event: { ...shown(event), meaning: deps.meanings[event.type] ?? event.type },
      fields: fieldsOf(event),
      userPath: await pathOfUser(deps, ctx, here, event.user_id),
      json: JSON.stringify(event, undefined, 2),
      story: {
        outcome: outcomeWords(outcome.is, outcome.why),
        who,
        why: outcome.why,
        steps: stepsOf(story).map(({ step, seconds }) => ({
          ...shown(step),
          seconds,
          isThis: step.log_id === event.log_id,
        })),
        isCut: found.some((page) => page.length === most),
        most,
      },
    },
  });
}

/** Where the user of an event is shown: nowhere for administrators, who are no users of the tenant, and for who was deleted. */
async function pathOfUser(
  deps: LogDependencies,
  ctx: Context,
  here: AtConsole,
  id: string | undefined,
): Promise<string | undefined> {
  if (id === undefined || !deps.paths.has(`${CONSOLE}/users/:id`) || !here.can('read:users'))
    return undefined;
  const found = await askIfThere(deps, ctx, here, 'GET /users/:id', { params: { id } });
  return found && `${CONSOLE}/users/${encodeURIComponent(id)}`;
}

/** The message key of what came of a login. */
function outcomeWords(is: ReturnType<typeof outcomeOf>['is'], why: string | undefined): string {
  if (is === 'in') return 'console.log.story.in';
  if (is === 'waiting') return 'console.log.story.open.end';
  if (is === 'other') return 'console.log.story.other';
  return why === undefined ? 'console.log.story.refused' : 'console.log.story.refused.why';
}

/** Each step with the seconds since the one before. */
function stepsOf(story: readonly AnsweredEvent[]) {
  return story.map((step, at) => {
    const before = story[at - 1];
    const passed = before === undefined ? 0 : Date.parse(step.date) - Date.parse(before.date);
    return { step, seconds: Math.round(passed / 100) / 10 };
  });
}

/** The members of an event that stand for themselves, by message key. */
function fieldsOf(event: AnsweredEvent): { text: string; value: string }[] {
  const { client_name: name, client_id: id } = event;
  const given = {
    'console.log.user': [...new Set([event.user_name, event.user_id])].filter((one) => one !== undefined),
    'console.log.client': [...new Set([name, id])].filter((one) => one !== undefined),
    'console.log.connection': [event.connection ?? []].flat(),
    'console.log.ip': [event.ip ?? []].flat(),
    'console.log.why': [event.description ?? []].flat(),
    'console.log.story': [event.transaction ?? []].flat(),
  };
  return Object.entries(given).flatMap(([text, values]) =>
    values.length === 0 ? [] : [{ text, value: values.join(' · ') }],
  );
}
