// /console: the activity of the tenant, and what needs attention.
import type { Context } from 'koa';
import { timesOf } from '../../../capabilities/pages/times.ts';
import type { RouteDeclarations } from '../../../http/routes.ts';
import { CONSOLE } from '../callbacks.ts';
import { hrefOf, readFilter } from '../log/filter.ts';
import { type ConsoleSession, consolePage } from '../page.ts';
import { renderConsole } from '../render.ts';
import { type AttentionDependencies, attentionOf } from './attention.ts';
import { barsOf, CHART } from './chart.ts';
import { type Numbers, numbersOf, RANGE_NAMES, rangeNamed } from './numbers.ts';

export type OverviewDependencies = AttentionDependencies;

export const overviewRoutes: RouteDeclarations<OverviewDependencies> = {
  [`GET ${CONSOLE}` as const]: consolePage('', { scopes: [] }, showOverview),
};

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
    template: 'console/overview-home',
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

/** Returns the numbers as charts, each with a table of the same values. */
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
