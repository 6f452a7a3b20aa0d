// Pages in any order, checked record by record: the first records that an index selects mostly fill a page. A statement
// with further conditions would read everything that the indexes of those select before it returns a record.
import type { Filter, Query, ReferenceFilter } from '../contract.ts';
import { defaultLimit, matches } from '../filter.ts';
import type { AnyRecord, AnySpec } from '../record.ts';
import { alive, type Branch, branchesOf, type Statement, source } from './any-order.ts';
import type { Found } from './collection.ts';
import type { Dialect } from './dialect.ts';

/** Pages beyond this record begin with {@link MAX_CANDIDATES}. */
const MAX_FIRST_REACH = 100;
/** The number of candidates that are checked for each record that a page needs, in each branch. */
const CANDIDATES_PER_RECORD = 3;
/** The number of candidates that are checked if those do not fill the page. */
const MAX_CANDIDATES = 2000;

/** A record that may match. */
export interface Candidate {
  /** The number of its branch of the filter. */
  n: number;
  /** For each reference filter, whether it matches the record. */
  held: readonly boolean[];
  record(): AnyRecord;
}

export interface StatementRunner {
  /** Returns the numbers in a statement's only row. */
  numbers(statement: Statement): Promise<number[]>;
  /**
   * Returns rows with the columns of a record, then {@link Candidate.n}, then each of {@link Candidate.held} as 1 or 0.
   */
  candidates(statement: Statement): Promise<Candidate[]>;
}

/** The result of the first attempt. */
interface CandidatePage {
  /** The query with its filter in the order in which it should be read. */
  query: Query;
  /** The page; undefined if so few candidates did not decide it. */
  found?: Found;
}

interface Collection {
  name: string;
  spec: AnySpec;
  /** Epoch seconds. */
  now: number;
}

/** Tries to find a page by checking a few candidates, which may make the query's full statement unnecessary. */
export async function candidatePage(
  collection: Collection,
  query: Query,
  dialect: Dialect,
  runner: StatementRunner,
): Promise<CandidatePage> {
  const { where: given, order, total, page = 0, limit = defaultLimit } = query;
  if (order !== 'any' || total || given === undefined || branchesOf(given) === undefined) return { query };
  const where = await mostSelectiveFirst(collection.name, given, dialect, (one) => runner.numbers(one));
  const orderedQuery = { ...query, where };
  const branches = branchesOf(where);
  if (
    branches === undefined ||
    !branches.every(isRange) ||
    !branches.some(({ rest }) => rest.some(asksOthers))
  )
    return { query: orderedQuery };
  const end = (page + 1) * limit;
  const reach = end + 1;
  const bounds = [
    ...(reach <= MAX_FIRST_REACH
      ? [{ each: reach * CANDIDATES_PER_RECORD, all: reach * CANDIDATES_PER_RECORD * branches.length }]
      : []),
    { each: MAX_CANDIDATES, all: MAX_CANDIDATES },
  ];
  const searched = {
    collection,
    branches,
    held: branches.flatMap(({ rest }) => rest.flatMap(referencesIn)),
    dialect,
  };
  const pageIn = (matched: AnyRecord[]): Found => ({
    records: matched.slice(page * limit, end),
    more: matched.length > end,
    total: undefined,
  });
  let last: Matched = { matched: [], isAll: false };
  for (const bound of bounds) {
    last = matchesIn(searched, bound, reach, await runner.candidates(candidatesOf(searched, bound)));
    if (last.isAll || last.matched.length === reach)
      return { query: orderedQuery, found: pageIn(last.matched) };
  }
  // A reference filter may match few of many candidates: the full statement reads only those.
  const isCut = query.isBounded === true && searched.held.length === 0;
  return { query: orderedQuery, ...(isCut && { found: { ...pageIn(last.matched), isCut } }) };
}

interface Search {
  collection: Collection;
  branches: readonly Branch[];
  held: readonly ReferenceFilter[];
  dialect: Dialect;
}

/** The maximum number of candidates, in each branch and in total. */
interface Bound {
  each: number;
  all: number;
}

interface Matched {
  matched: AnyRecord[];
  /** Whether no further candidate may match. */
  isAll: boolean;
}

/** Returns the candidates that match, at most `reach`. */
function matchesIn(
  { collection, branches, held }: Search,
  { each, all }: Bound,
  reach: number,
  candidates: readonly Candidate[],
): Matched {
  const spec = rememberingLast(collection.spec);
  const isReferenced = (candidate: Candidate) => (filter: ReferenceFilter) =>
    candidate.held[held.indexOf(filter)] === true;
  const matched = new Map<string, AnyRecord>();
  const filter = () => [...matched.values()];
  let seen = 0;
  for (const [n, { rest }] of branches.entries()) {
    const ofBranch = candidates.filter((one) => one.n === n);
    for (const one of ofBranch) {
      const record = one.record();
      if (rest.every((filter) => matches(spec, record, filter, isReferenced(one))))
        matched.set(record.id, record);
      if (matched.size === reach) return { matched: filter(), isAll: false };
    }
    seen += ofBranch.length;
    // This branch has more candidates, which come before those of the next branch.
    if (ofBranch.length === each || seen === all) return { matched: filter(), isAll: false };
  }
  return { matched: filter(), isAll: true };
}

/**
 * Returns a declaration whose indexes cache the value for the last record, because a record is checked by several
 * filters in turn.
 */
function rememberingLast(spec: AnySpec): AnySpec {
  const indexes = Object.entries(spec.indexes).map(([name, key]): [string, typeof key] => {
    let last: { record: unknown; value: ReturnType<typeof key> } | undefined;
    return [
      name,
      (record) => {
        if (last?.record !== record) last = { record, value: key(record) };
        return last.value;
      },
    ];
  });
  return { ...spec, indexes: Object.fromEntries(indexes) };
}

/**
 * Returns whether every entry in the branch's index range counts. Otherwise many entries may have to be read to find
 * one.
 */
const isRange = ({ by }: Branch): boolean => !('prefix' in by) || (by.contains ?? by.suffix) === undefined;

function asksOthers(filter: Filter): boolean {
  return 'index' in filter || 'of' in filter || partsOf(filter).some(asksOthers);
}

function referencesIn(filter: Filter): ReferenceFilter[] {
  return 'of' in filter ? [filter] : partsOf(filter).flatMap(referencesIn);
}

function partsOf(filter: Filter): readonly Filter[] {
  if ('all' in filter) return filter.all;
  if ('any' in filter) return filter.any;
  return 'not' in filter ? [filter.not] : [];
}

function candidatesOf({ collection, branches, held, dialect }: Search, bound: Bound): Statement {
  const { name, now } = collection;
  const parameters: (string | number)[] = [];
  // Must be called in the order in which the parameters appear in the statement.
  const parameter = (value: string | number) => dialect.parameter(parameters.push(value));
  const writing = { parameter, dialect };
  const each = branches.map(({ by }, n) => {
    const { from, value, conditions } = source(name, { by, rest: [] }, writing);
    const all = [...conditions(), alive(name, parameter(now))];
    return `SELECT * FROM (SELECT ${n} AS n, ${value} AS value, r.id AS id FROM ${from} WHERE ${all.join(' AND ')} ORDER BY ${value}, r.id LIMIT ${parameter(bound.each)}) w${n}`;
  });
  const told = `SELECT * FROM (${each.join(' UNION ALL ')}) e ORDER BY n, value, id LIMIT ${parameter(bound.all)}`;
  const holds = held.map(({ of, index, equals }, n) => {
    const key = `k.key = ${parameter(index)} AND k.value = ${parameter(`${equals}\n`)} || r.id`;
    return `CASE WHEN EXISTS (SELECT 1 FROM "${of}_index" k WHERE ${key}) THEN 1 ELSE 0 END AS held${n}`;
  });
  const columns = [...dialect.stored.map((column) => `r.${column}`), 'told.n AS n', ...holds];
  const sql = [
    `WITH told AS (${told})`,
    `SELECT ${columns.join(', ')} FROM told ${dialect.join} "${name}" r ON r.id = told.id`,
    'ORDER BY told.n, told.value, told.id',
  ].join(' ');
  return { sql, parameters };
}

// Of several conditions that must all hold, reads the one that the fewest records match first and checks the others for
// those only. The choice depends on the stored records and not on the page, so that all pages have the same order.

/** The maximum that is counted for each branch; larger sizes need not be compared. */
const COUNTED = 2001;

type All = Extract<Filter, { all: unknown }>;

/**
 * Returns an equivalent filter with the most selective conditions first.
 * @param ask returns the numbers in the only row of a statement; not called if there is nothing to choose.
 */
async function mostSelectiveFirst(
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
