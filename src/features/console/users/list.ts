// /console/users: the list of users and their search.
import type { Context } from 'koa';
import { timesOf } from '../../../capabilities/pages/times.ts';
import { AuthError } from '../../../http/errors.ts';
import type { RouteDeclarations } from '../../../http/router.ts';
import { callApi } from '../api-calls.ts';
import { type ConsoleSession, consolePage } from '../page.ts';
import { pageNumber, queryText } from '../query.ts';
import { renderConsole } from '../render.ts';
import type { UsersDependencies } from './dependencies.ts';
import { USERS } from './paths.ts';
import { rightsOf } from './rights.ts';
import { userQuery } from './search-text.ts';
import { rowOf, type UserAnswer } from './view.ts';

export const PER_PAGE = 25;
/** The order of the list without a search. */
export const NEWEST_FIRST = { field: 'created_at', descending: true } as const;
/** The last page that can be opened by number, as in the Management API; further users must be searched for. */
const LAST_PAGE = 1000 / PER_PAGE - 1;

/** The filters beside the text field, with their queries. */
const FILTERS = {
  blocked: 'blocked:true',
  unverified: 'email_verified:false',
} as const;

export const listRoutes: RouteDeclarations<UsersDependencies> = {
  [`GET ${USERS}`]: consolePage<UsersDependencies>(
    'users',
    { scopes: ['read:users'] },
    (deps, ctx, session) => showList(deps, ctx, session, 'console/users-list'),
  ),
  // The list without its page; the page's script inserts it.
  [`GET ${USERS}/found`]: consolePage<UsersDependencies>(
    'users',
    { scopes: ['read:users'] },
    (deps, ctx, session) => showList(deps, ctx, session, 'console/users-found'),
  ),
};

async function showList(
  deps: UsersDependencies,
  ctx: Context,
  session: ConsoleSession,
  template: 'console/users-list' | 'console/users-found',
): Promise<void> {
  const text = textOf(ctx, 'q');
  const filter = Object.keys(FILTERS).find((one) => one === ctx.query.filter);
  const connection = textOf(ctx, 'connection');
  // Searches for metadata are refused to support. The word is removed because it is part of no name that support
  // looks for.
  const isSupport = session.administrator.role === 'support';
  const searchQuery = userQuery(isSupport ? text.replaceAll(/metadata/gi, ' ') : text);
  const q = [searchQuery, filter === undefined ? undefined : FILTERS[filter as keyof typeof FILTERS]]
    .filter((one) => one !== undefined)
    .map((one) => `(${one})`)
    .join(' AND ');
  const page = Math.min(pageNumber(queryText(ctx, 'page')), LAST_PAGE);
  const isSearch = q !== '' || connection !== '';
  const query = {
    page: String(page),
    per_page: String(PER_PAGE),
    // For a search the total and the newest-first order would cost more than all else, so results come in index
    // order.
    ...(!isSearch && { include_totals: 'true', sort: `${NEWEST_FIRST.field}:-1` }),
    ...(q !== '' && { q, bounded: 'true' }),
    ...(connection !== '' && { connection }),
    fields: FIELDS,
  };
  const time = timesOf(deps, ctx);
  const { users, total, slow, is_cut } = await findUsers(deps, ctx, session, query);
  const connections = (await deps.config.connections()).map(({ name }) => name);
  await renderConsole(deps, ctx, session, {
    template,
    section: 'users',
    title: 't:console.users.title',
    model: {
      users: USERS,
      rows: users.map((user) => rowOf(user, time)),
      q: text,
      filter: filter ?? '',
      connection,
      connections,
      total,
      slow,
      isCut: is_cut === true,
      isSearch,
      pages: pagesOf(page, users.length, { q: text, filter, connection }),
      rights: rightsOf(session),
    },
  });
}

const FIELDS =
  'user_id,name,email,email_verified,phone_number,username,blocked,last_login,logins_count,identities';

async function findUsers(
  deps: UsersDependencies,
  ctx: Context,
  session: ConsoleSession,
  query: Record<string, string>,
): Promise<{ users: UserAnswer[]; total?: number; slow?: string; is_cut?: boolean }> {
  try {
    const { body } = await callApi(deps, ctx, session, 'GET /users', { query });
    return Array.isArray(body)
      ? { users: body as UserAnswer[] }
      : (body as { users: UserAnswer[]; total?: number; is_cut?: boolean });
  } catch (thrown) {
    if (thrown instanceof AuthError && thrown.error === 'search_unavailable')
      return { users: [], slow: 'console.users.search.slow' };
    // The API refuses the combination, for example because of an unknown connection.
    // Or the search names a member that the role sees masked.
    if (thrown instanceof AuthError && [400, 403].includes(thrown.status))
      return { users: [], slow: 'console.users.search.refused' };
    throw thrown;
  }
}

/** Returns a query parameter; empty when it is repeated. */
function textOf(ctx: Context, name: string): string {
  const value = ctx.query[name];
  return typeof value === 'string' ? value.slice(0, 2000) : '';
}

function pagesOf(page: number, shown: number, rest: Record<string, string | undefined>) {
  const link = (to: number) => {
    const parameters = Object.entries({ ...rest, page: to === 0 ? '' : String(to) });
    return `?${new URLSearchParams(parameters.filter((one): one is [string, string] => (one[1] ?? '') !== ''))}`;
  };
  return {
    number: page + 1,
    ...(page > 0 && { before: link(page - 1) }),
    ...(shown === PER_PAGE && page < LAST_PAGE && { next: link(page + 1) }),
    isEnd: shown === PER_PAGE && page === LAST_PAGE,
  };
}
