// `GET /users`: all users, or those that a query selects, by page or by cursor.
import { z } from 'zod';
import type { Filter, Query, Store } from '../../../../store/contract.ts';
import type { User } from '../../../../users/user.ts';
import type { Users } from '../../../../users/users.ts';
import { type Call, callsWith, ok } from '../../call.ts';
import { cursorId, cursorOf, cursorQuery, type ListSource, listAnswer, pageQuery } from '../../list.ts';
import { fieldsQuery, flag, searchQuery, selectFields } from '../../management-fields.ts';
import { type HasMore, inConnection, userFilter, userSort, withMore } from '../../search/search-users.ts';
import { parseSort } from '../../search/sort.ts';
import { searchError } from '../../search/terms.ts';
import { userView } from './user-calls.ts';

interface UserSearchDependencies {
  store: Store;
  users: Users;
}

/** Number of users that paging by number reaches, as at the hosted service, because skipped users are read too. */
const MAX_RECORDS_BY_PAGE = 1000;

const listQuery = z.strictObject({
  ...pageQuery,
  ...cursorQuery,
  // A lower limit than elsewhere, because the identities of each user are read too.
  take: cursorQuery.take.refine((count) => (count ?? 1) <= 100, 'Value must be at most 100'),
  ...fieldsQuery,
  sort: z.string().max(128).optional(),
  connection: z.string().max(128).optional(),
  ...searchQuery(4000),
  /** Accepted and ignored: the order of ids is the default anyway. */
  primary_order: flag.optional(),
  // docs/understand/decisions/console-account.md#a-search-in-the-console-reads-at-most-2000-records
  /** For the console: limits how many users a search may compare one by one, so that a page is shown in time. */
  bounded: flag.optional(),
});

type ListQuery = z.output<typeof listQuery>;

/**
 * Returns whether users have metadata outside the index. It is only looked up for queries about metadata; if there is
 * none, the index alone answers them.
 */
async function hasMoreOf({ store }: UserSearchDependencies, { q = '' }: ListQuery): Promise<HasMore> {
  const has = async (object: 'app_metadata' | 'user_metadata') =>
    q.includes(object) &&
    (await store.collection('users').list({ where: withMore(object), limit: 1 })).records.length > 0;
  const [inApp, inUser] = await Promise.all([has('app_metadata'), has('user_metadata')]);
  return (object) => (object === 'app_metadata' ? inApp : inUser);
}

/** Returns the filter and order of a request. @throws AuthError 400 */
function queryOf(
  { q, connection, sort, from, take }: ListQuery,
  hasMore: HasMore,
): Pick<Query, 'where' | 'sort' | 'order'> {
  const isSearch = q !== undefined && q.trim() !== '';
  const all: Filter[] = [
    ...(connection === undefined || connection === '' ? [] : [inConnection(connection)]),
    ...(isSearch ? [userFilter(q, hasMore)] : []),
  ];
  const [only] = all;
  const where = all.length === 1 ? only : { all };
  const order = sort === undefined || sort === '' ? undefined : parseSort(sort);
  if (order !== undefined && (from !== undefined || take !== undefined)) {
    throw searchError('sort and a checkpoint (from, take) cannot be used together.');
  }
  return {
    ...(where === undefined || all.length === 0 ? {} : { where }),
    ...(order === undefined ? {} : { sort: { ...order, field: userSort(order.field) } }),
    // Pages of a search without `sort` are in any order. All other lists are in the order of ids.
    ...(order === undefined && isSearch && from === undefined && take === undefined && { order: 'any' }),
  };
}

function sourceOf(
  { store }: UserSearchDependencies,
  query: Pick<Query, 'where' | 'sort' | 'order'>,
  isCounted: boolean,
): ListSource {
  const users = store.collection('users');
  return {
    page: async ({ page, perPage }) => {
      const { records, total = 0 } = await users.list({ ...query, page, limit: perPage, total: isCounted });
      return { items: records, total };
    },
    after: async ({ cursor, take }) => {
      const after = cursor === undefined ? {} : { after: cursorId(cursor) };
      const { records, next } = await users.list({ ...query, ...after, limit: take });
      return { items: records, next: next === undefined ? undefined : cursorOf(next) };
    },
  };
}

/** Returns users as the API shows them, with their identities if the query asks for them. */
async function views({ users }: UserSearchDependencies, found: readonly object[], query: ListQuery) {
  const names = query.fields?.split(',').map((name) => name.trim());
  const hasIdentities =
    names === undefined || names.includes('identities') === (query.include_fields ?? true);
  return Promise.all(
    (found as User[]).map(async (user) =>
      selectFields(userView(user, hasIdentities ? await users.identitiesOf(user.id) : []), query),
    ),
  );
}

/**
 * Returns a page of a search, and whether the search stopped before all users were compared.
 * @throws AuthError 400
 */
async function boundedSearch(deps: UserSearchDependencies, query: ListQuery) {
  const { page = 0, per_page = 50 } = query;
  const storeQuery = queryOf(query, await hasMoreOf(deps, query));
  if (storeQuery.order !== 'any' || query.include_totals === true || page * per_page >= MAX_RECORDS_BY_PAGE)
    throw searchError('bounded goes with q and page alone.');
  const { records, isCut = false } = await deps.store
    .collection('users')
    .list({ ...storeQuery, isBounded: true, page, limit: per_page });
  return { users: await views(deps, records, query), is_cut: isCut };
}

const call = callsWith<UserSearchDependencies>();

export const userSearchCalls: Call<UserSearchDependencies>[] = [
  call({
    method: 'GET',
    path: '/users',
    scopes: ['read:users', 'read:user_idp_tokens'],
    summary: 'List or search users',
    query: listQuery,
    handle: async (deps, { query }) => {
      if (query.bounded === true) return ok(await boundedSearch(deps, query));
      const isCounted = query.include_totals === true || query.per_page === 0;
      const source = sourceOf(deps, queryOf(query, await hasMoreOf(deps, query)), isCounted);
      const viewSource: ListSource = {
        page: async (page) => {
          const { items, total } = await source.page(page);
          return { items: await views(deps, items, query), total };
        },
        after: async (page) => {
          const { items, next } = await source.after(page);
          return { items: await views(deps, items, query), next };
        },
      };
      const shape = { key: 'users', hasLength: true, reach: MAX_RECORDS_BY_PAGE };
      return ok(await listAnswer(query, viewSource, shape));
    },
  }),
];
