// /console/users: the list of users and their search.

import type { Context } from 'koa';
import { timesOf } from '../../../capabilities/pages/times.ts';
import { AuthError } from '../../../http/errors.ts';
import type { RouteDeclarations } from '../../../http/server/router.ts';
import { BOOLEAN_FIELDS, EXACT_FIELDS, FOLDED_FIELDS } from '../../../records/users/search-terms.ts';
import { userFilter } from '../../management/search/search-users.ts';
import { callApi } from '../api-calls.ts';
import { listColumns, type Table } from '../columns.ts';
import { type ConsoleSession, consolePage } from '../console-page.ts';
import { pageNumber, queryText } from '../query.ts';
import { declareConsolePage, renderConsole } from '../render.ts';
import type { UsersDependencies } from './dependencies.ts';
import { USERS, userPath } from './paths.ts';
import { rightsOf, type UserRights } from './rights.ts';
import { NAMING, nameOf, type UserAnswer } from './view.ts';

// Converts the text of the user search to a query of the Management API.

/** The maximum lengths of a searched name and of a query, characters. */
const MAX_LENGTHS = { name: 100, query: 2000 };
/** The maximum number of words of a name that are searched one by one. */
const MAX_WORDS = 4;

/** Fields that mark a text as a query rather than a name. Another word before a colon, as in `http:`, does not. */
const FIELDS = [
  ...[...FOLDED_FIELDS, ...EXACT_FIELDS, ...BOOLEAN_FIELDS],
  ...['email.domain', 'user_id', 'last_ip', 'last_login', 'logins_count', 'created_at', 'updated_at'],
  ...['identities.connection', 'identities.provider', 'identities.user_id', 'organization_id'],
  '_exists_',
];
const NAMED_FIELD = new RegExp(
  `(^|[\\s(+!-])(${FIELDS.map((name) => name.replace('.', '\\.')).join('|')}|(app|user)_metadata\\.[^\\s:]+):`,
  'u',
);

// docs/understand/decisions/console-account.md#a-user-search-in-the-console-is-a-query-only-if-it-names-a-field-and-can-be-parsed
/**
 * Returns a query in the search language of `GET /api/v2/users`. A text in that language is used as it is. For any
 * other it finds users whose name, address or number begins with the text, or with each of its words.
 * @returns undefined for an empty text; otherwise a query that can be parsed.
 */
function userQuery(text: string): string | undefined {
  // PostgreSQL cannot store NUL, and control characters are not part of names.
  const query = text
    .toWellFormed()
    .replaceAll(/\p{Cc}+/gu, ' ')
    .trim()
    .slice(0, MAX_LENGTHS.query);
  if (NAMED_FIELD.test(query) && isValidQuery(query)) return query;
  const name = query.slice(0, MAX_LENGTHS.name).toWellFormed().trim();
  if (name === '') return undefined;
  const words = name.split(/\s+/u).slice(0, MAX_WORDS);
  const whole = [...prefixTerms(name), `user_id:"${name.replaceAll(/["\\]/g, '\\$&')}"`].join(' OR ');
  if (words.length === 1) return whole;
  return `${whole} OR (${words.map((word) => `(${prefixTerms(word).join(' OR ')})`).join(' AND ')})`;
}

function isValidQuery(query: string): boolean {
  try {
    // Assumes the costly kind for every query of metadata; only the store knows.
    userFilter(query, () => true);
    return true;
  } catch {
    // A text that is not a valid query is searched as a name.
    return false;
  }
}

/** Returns search terms for a prefix in all fields by which people are known. */
function prefixTerms(text: string): string[] {
  const phone = text.replaceAll(/[\s()/.-]/g, '');
  return [
    ...FOLDED_FIELDS.map((field) => `${field}:${escaped(text)}*`),
    `username:${escaped(text.toLowerCase())}*`,
    ...(/^\+?\d+$/.test(phone) ? [`phone_number:${escaped(phone)}*`] : []),
  ];
}

/** Escapes everything except letters and digits, since other characters may have a meaning in the search language. */
function escaped(text: string): string {
  return text.replaceAll(/[^\p{L}\p{N}]/gu, '\\$&');
}

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

export const USER_COLUMNS = listColumns<UserAnswer>((column) => [
  column('console.users.user', [...NAMING, 'email_verified', 'blocked'], (user) => {
    const text = nameOf(user);
    const address = user.email ?? user.phone_number ?? user.username;
    const isUnverified = user.email !== undefined && user.email_verified !== true;
    return {
      kind: 'name',
      url: userPath(user.user_id),
      text,
      hint: address === text ? undefined : address,
      tags: [
        ...(user.blocked === true ? [{ text: 'console.users.blocked', isBad: true }] : []),
        ...(isUnverified ? [{ text: 'console.users.unverified', isBad: false }] : []),
      ],
    };
  }),
  column('console.users.connection', ['identities'], ({ identities }) => ({
    kind: 'text',
    text: [...new Set(identities.map(({ connection }) => connection))].join(', '),
  })),
  column('console.users.lastLogin', ['last_login'], ({ last_login: at }, time) => ({
    kind: 'time',
    time: time(at),
    never: 'console.users.never',
  })),
  column('console.users.logins', ['logins_count'], ({ logins_count: number = 0 }) => ({
    kind: 'number',
    number,
  })),
]);

interface UsersListModel {
  users: string;
  table: Table;
  q: string;
  filter: string;
  connection: string;
  connections: string[];
  /** The number of users, where it is known. */
  total: number | undefined;
  /** The message key of why the search was not answered. */
  slow: string | undefined;
  /** Whether the search stopped before it had read all users. */
  isCut: boolean;
  isSearch: boolean;
  pages: ListPages;
  rights: UserRights;
}

export const USERS_LIST_PAGE = declareConsolePage<UsersListModel>('console/users-list');
export const USERS_FOUND_PAGE = declareConsolePage<UsersListModel>('console/users-found');

export const listRoutes: RouteDeclarations<UsersDependencies> = {
  [`GET ${USERS}`]: consolePage<UsersDependencies>(
    'users',
    { scopes: ['read:users'] },
    (deps, ctx, session) => showList(deps, ctx, session, USERS_LIST_PAGE),
  ),
  // The list without its page; the page's script inserts it.
  [`GET ${USERS}/found`]: consolePage<UsersDependencies>(
    'users',
    { scopes: ['read:users'] },
    (deps, ctx, session) => showList(deps, ctx, session, USERS_FOUND_PAGE),
  ),
};

async function showList(
  deps: UsersDependencies,
  ctx: Context,
  session: ConsoleSession,
  page: typeof USERS_LIST_PAGE,
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
  const number = Math.min(pageNumber(queryText(ctx, 'page')), LAST_PAGE);
  const isSearch = q !== '' || connection !== '';
  const query = {
    page: String(number),
    per_page: String(PER_PAGE),
    // For a search the total and the newest-first order would cost more than all else, so results come in index
    // order.
    ...(!isSearch && { include_totals: 'true', sort: `${NEWEST_FIRST.field}:-1` }),
    ...(q !== '' && { q, bounded: 'true' }),
    ...(connection !== '' && { connection }),
    fields: USER_COLUMNS.reads.join(','),
  };
  const time = timesOf(deps, ctx);
  const { users, total, slow, is_cut } = await findUsers(deps, ctx, session, query);
  const connections = (await deps.config.connections()).map(({ name }) => name);
  await renderConsole(deps, ctx, session, {
    page,
    section: 'users',
    title: 't:console.users.title',
    model: {
      users: USERS,
      table: USER_COLUMNS.tableOf(users, time),
      q: text,
      filter: filter ?? '',
      connection,
      connections,
      total,
      slow,
      isCut: is_cut === true,
      isSearch,
      pages: pagesOf(number, users.length, { q: text, filter, connection }),
      rights: rightsOf(session),
    },
  });
}

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

interface ListPages {
  number: number;
  /** The queries of the pages before and after. */
  before?: string;
  next?: string;
  /** Whether no further page can be opened by number. */
  isEnd: boolean;
}

function pagesOf(page: number, shown: number, rest: Record<string, string | undefined>): ListPages {
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
