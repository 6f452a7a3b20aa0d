// The list of connections, by strategy.
import type { Context } from 'koa';
import { callApi } from '../api-calls.ts';
import { renderConsole } from '../render.ts';
import type { ConsoleSession } from '../session.ts';
import { kindOf, missingOptionsOf, titleOf } from './kinds.ts';
import { type ConnectionsDependencies, PATH, type ShownConnection } from './shared.ts';

/** The number of connections on a page. */
const PAGE_SIZE = '500';

/** Shows a page of connections. `?q=` filters them by a part of a name, `?from=` continues after a page. */
export async function showConnections(
  deps: ConnectionsDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<void> {
  const { q, from } = ctx.query;
  const search = typeof q === 'string' ? q.trim().toLowerCase() : '';
  const query = { take: PAGE_SIZE, ...(typeof from === 'string' && { from }) };
  const { body } = await callApi(deps, ctx, session, 'GET /connections', { query });
  const { connections, next } = body as { connections: ShownConnection[]; next?: string };
  const found = connections.filter(({ name, display_name = '' }) =>
    `${name} ${display_name}`.toLowerCase().includes(search),
  );
  await renderConsole(deps, ctx, session, {
    template: 'console/connections-list',
    title: 't:console.connections.title',
    model: {
      groups: byStrategy(found),
      isEmpty: connections.length === 0 && search === '',
      q: search,
      nextUrl: next === undefined ? undefined : `${PATH}?from=${encodeURIComponent(next)}`,
      mayCreate: session.can('create:connections'),
    },
  });
}

/** Groups connections by strategy, in the order of their names. */
function byStrategy(all: readonly ShownConnection[]) {
  const strategies = [...new Set(all.map(({ strategy }) => strategy))].sort();
  return strategies.map((strategy) => ({
    kind: kindOf(strategy),
    connections: all
      .filter((one) => one.strategy === strategy)
      .sort((a, b) => (a.name < b.name ? -1 : 1))
      .map((one) => ({
        path: `${PATH}/${one.id}`,
        name: one.name,
        title: titleOf(one),
        lacking: missingOptionsOf(one),
        applications: one.enabled_clients.length,
        isUsed: one.enabled_clients.length > 0 || one.is_domain_connection === true,
      })),
  }));
}
