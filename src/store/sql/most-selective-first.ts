// Of several conditions that are all to be met, the one that the fewest records meet is read first: the others are then asked of
// those alone. Which it is depends on what is stored and not on the page, so that all pages are in one order.
import type { Filter } from '../contract.ts';
import { branchesOf, type Statement, source } from './any-order.ts';
import type { Dialect } from './dialect.ts';

/** Records that are counted of each branch; of more it does not matter how many they are. */
const COUNTED = 2001;

type All = Extract<Filter, { all: unknown }>;

/**
 * A filter that means the same, with what the fewest meet first.
 * @param ask gives the numbers of the only row of a statement; not called where there is nothing to choose from.
 */
export async function mostSelectiveFirst(
  name: string,
  where: Filter,
  dialect: Dialect,
  ask: (statement: Statement) => Promise<number[]>,
): Promise<Filter> {
  const parts = choicesIn(where).flatMap(tellingParts);
  if (parts.length === 0) return where;
  const counts = await ask(countsOf(name, parts, dialect));
  return inOrder(where, new Map(parts.map((part, n) => [part, counts[n] ?? COUNTED])));
}

/** The parts of a conjunction whose records indexes tell. */
const tellingParts = ({ all }: All): Filter[] => all.filter((one) => branchesOf(one) !== undefined);

/** Conjunctions of which one part or another could be read first. */
function choicesIn(filter: Filter): All[] {
  if ('any' in filter) return filter.any.flatMap(choicesIn);
  if (!('all' in filter)) return [];
  const telling = tellingParts(filter);
  return [...(telling.length > 1 ? [filter] : []), ...telling.flatMap(choicesIn)];
}

/** How many records each of some filters tells, or somewhat more. */
function countsOf(name: string, filters: readonly Filter[], dialect: Dialect): Statement {
  const parameters: (string | number)[] = [];
  const parameter = (value: string | number) => dialect.parameter(parameters.push(value));
  const counts = filters.map((filter, n) => {
    const each = (branchesOf(filter) ?? []).map(({ by }) => {
      const { from, conditions } = source(name, { by, rest: [] }, { parameter, dialect });
      return `(SELECT count(*) FROM (SELECT 1 FROM ${from} WHERE ${conditions().join(' AND ')} LIMIT ${parameter(COUNTED)}) c)`;
    });
    return `${['0', ...each].join(' + ')} AS n${n}`;
  });
  return { sql: `SELECT ${counts.join(', ')}`, parameters };
}

function inOrder(filter: Filter, sizes: ReadonlyMap<Filter, number>): Filter {
  if ('any' in filter) return { any: filter.any.map((one) => inOrder(one, sizes)) };
  if (!('all' in filter)) return filter;
  const size = (one: Filter) => sizes.get(one) ?? Infinity;
  // Two that are infinite have no difference that is a number.
  const rarer = filter.all.toSorted((a, b) => Math.sign(size(a) - size(b)) || 0);
  return { all: rarer.map((one) => inOrder(one, sizes)) };
}
