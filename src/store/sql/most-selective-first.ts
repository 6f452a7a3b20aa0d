// Of several conditions that must all hold, reads the one that the fewest records match first and checks the others for
// those only. The choice depends on the stored records and not on the page, so that all pages have the same order.
import type { Filter } from '../contract.ts';
import { branchesOf, type Statement, source } from './any-order.ts';
import type { Dialect } from './dialect.ts';

/** The maximum that is counted for each branch; larger sizes need not be compared. */
const COUNTED = 2001;

type All = Extract<Filter, { all: unknown }>;

/**
 * Returns an equivalent filter with the most selective conditions first.
 * @param ask returns the numbers in the only row of a statement; not called if there is nothing to choose.
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

/** Returns the parts of a conjunction that can be read by indexes. */
const tellingParts = ({ all }: All): Filter[] => all.filter((one) => branchesOf(one) !== undefined);

/** Returns the conjunctions of which several parts could be read first. */
function choicesIn(filter: Filter): All[] {
  if ('any' in filter) return filter.any.flatMap(choicesIn);
  if (!('all' in filter)) return [];
  const telling = tellingParts(filter);
  return [...(telling.length > 1 ? [filter] : []), ...telling.flatMap(choicesIn)];
}

/**
 * Returns the statement that estimates how many records each filter matches; a record may be counted more than once.
 */
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
  // The difference of two infinite sizes is not a number.
  const rarer = filter.all.toSorted((a, b) => Math.sign(size(a) - size(b)) || 0);
  return { all: rarer.map((one) => inOrder(one, sizes)) };
}
