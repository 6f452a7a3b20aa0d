// `/logs` and `/users/{id}/logs`: the tenant's log events.
import { z } from 'zod';
import type { Connection } from '../../../../records/collections.ts';
import type { Query, Store } from '../../../../store/contract.ts';
import type { Config } from '../../../../tenant/config.ts';
import { type Call, callsWith, ok } from '../../call.ts';
import { type ListSource, listAnswer, type PageQuery, pageQuery } from '../../list.ts';
import { type LogContext, type LogEvent, logContextOf, logView, strategyType } from '../../log-view.ts';
import { apiError } from '../../management-errors.ts';
import { fieldsQuery, searchQuery, selectFields } from '../../management-fields.ts';
import { notFound } from '../../resource.ts';
import { type LogNames, logFilter, logSort } from '../../search/search-fields.ts';
import { parseSort } from '../../search/sort.ts';

export interface LogsDependencies {
  store: Store;
  config: Pick<Config, 'clients' | 'connections'>;
}

function namesOf({ clients, connections }: LogContext): LogNames {
  const connectionsBy = (value: (one: Connection) => string) => (is: (value: string) => boolean) =>
    connections.filter((one) => is(value(one))).map(({ name }) => name);
  return {
    client_name: (is) =>
      clients.flatMap(({ name, client_id }) => (name !== undefined && is(name) ? [client_id] : [])),
    connection_id: connectionsBy(({ id }) => id),
    strategy: connectionsBy(({ strategy }) => strategy),
    strategy_type: connectionsBy(({ strategy }) => strategyType(strategy)),
  };
}

/** Returns a list source of events, newest first unless the query says otherwise. */
function logSource(
  { store }: LogsDependencies,
  logContext: LogContext,
  query: Pick<Query, 'where' | 'sort'> & { total: boolean },
): ListSource {
  const toView = (event: LogEvent) => logView(event, logContext);
  const logs = store.collection('logs');
  const { where, sort = { field: 'date', descending: true }, total: isCounted } = query;
  return {
    page: async ({ page, perPage }) => {
      const { records, total = 0 } = await logs.list({
        ...(where && { where }),
        sort,
        page,
        limit: perPage,
        total: isCounted,
      });
      return { items: records.map(toView), total };
    },
    after: async ({ cursor, take }) => {
      const { records } = await logs.list({
        ...(where && { where }),
        ...(cursor && { after: cursor }),
        limit: take,
      });
      return { items: records.map(toView) };
    },
  };
}

/** `q` and `search` mean the same; `from` is the id of an event. */
const listQuery = z.strictObject({
  ...pageQuery,
  ...fieldsQuery,
  sort: z.string().max(128).optional(),
  ...searchQuery(4000),
  search: z.string().max(4000).optional(),
  from: z.string().max(128).optional(),
  take: z
    .string()
    .regex(/^\d{1,3}$/)
    .transform(Number)
    .refine((count) => count >= 1 && count <= 100, 'Value must be between 1 and 100')
    .optional(),
});

const call = callsWith<LogsDependencies>();

export const logCalls: Call<LogsDependencies>[] = [
  call({
    method: 'GET',
    path: '/logs',
    scopes: ['read:logs', 'read:logs_users'],
    summary: 'Search log events',
    query: listQuery,
    handle: async (deps, { query }) => {
      const text = query.q ?? query.search;
      const logContext = await logContextOf(deps);
      const where =
        text === undefined || text.trim() === '' ? undefined : logFilter(text, namesOf(logContext));
      const total = isCounted(query);
      const source = logSource(deps, logContext, { ...(where && { where }), ...sortOf(query.sort), total });
      if (query.from !== undefined || query.take !== undefined) {
        // This list's checkpoint form is an array, oldest first; `from` is the last event that the client has read.
        const { items } = await source.after({ cursor: query.from, take: query.take ?? 50 });
        return ok(items.map((one) => selectFields(one, query)));
      }
      const page = {
        ...source,
        page: async (paging: { page: number; perPage: number }) => {
          const found = await source.page(paging);
          return { ...found, items: found.items.map((one) => selectFields(one, query)) };
        },
      };
      return ok(await listAnswer(query, page, { key: 'logs', hasLength: true, reach: 1000 }));
    },
  }),
  call({
    method: 'GET',
    path: '/logs/:id',
    scopes: ['read:logs', 'read:logs_users'],
    summary: 'Get a log event',
    handle: async (deps, { params }) => {
      const event = await deps.store.collection('logs').get(params.id ?? '');
      if (event === undefined) throw notFound('Log not found')();
      return ok(logView(event, await logContextOf(deps)));
    },
  }),
  call({
    method: 'GET',
    path: '/users/:id/logs',
    scopes: ['read:logs', 'read:logs_users'],
    summary: 'Get the log events of a user',
    query: z.strictObject({ ...pageQuery, sort: z.string().max(128).optional() }),
    handle: async (deps, { params, query }) => {
      const where = { index: 'user', equals: params.id ?? '' };
      const total = isCounted(query);
      const source = logSource(deps, await logContextOf(deps), { where, ...sortOf(query.sort), total });
      return ok(await listAnswer(query, source, { key: 'logs', hasLength: true }));
    },
  }),
];

/** Whether the response has a total. Counting the events of a large log takes longer than reading a page. */
const isCounted = ({ include_totals: includesTotals, per_page: perPage }: PageQuery) =>
  includesTotals === true || perPage === 0;

function sortOf(sort: string | undefined): Pick<Query, 'sort'> {
  if (sort === undefined) return {};
  const { field, descending } = parseSort(sort);
  const stored = logSort(field);
  if (stored === undefined) throw apiError(400, `Cannot sort by ${field}`, 'invalid_query_string');
  return { sort: { field: stored, descending } };
}
