// A page of what matches in any order, judged record by record: of what an index tells, the first records mostly fill a page by
// themselves. A statement with further conditions reads all that the indexes of those tell, before it gives a record.
import type { Filter, Query, ReferenceFilter } from '../contract.ts';
import { defaultLimit, matches } from '../filter.ts';
import type { AnySpec } from '../keys.ts';
import type { AnyRecord } from '../record.ts';
import { alive, type Branch, branchesOf, type Statement, source } from './any-order.ts';
import type { Found } from './collection.ts';
import type { Dialect } from './dialect.ts';
import { mostSelectiveFirst } from './most-selective-first.ts';

/** Pages further on begin with {@link MOST}. */
const FURTHEST = 100;
/** Records that are judged for each that a page needs, of each branch. */
const EACH = 3;
/** Records that are judged where those do not fill the page. */
const MOST = 2000;

/** A record that may match. */
export interface Candidate {
  /** Its branch of the filter. */
  n: number;
  /** Of each `of` filter whether it means the record. */
  held: readonly boolean[];
  record(): AnyRecord;
}

/** What asks a database. */
export interface Asking {
  /** The numbers of a statement's only row. */
  numbers(statement: Statement): Promise<number[]>;
  /** Rows of the columns of a record, {@link Candidate.n}, then each of {@link Candidate.held} as 1 or 0. */
  candidates(statement: Statement): Promise<Candidate[]>;
}

/** What was found first. */
interface FirstFound {
  /** What is asked, its filter in the order in which it is to be read: that of what was found. */
  query: Query;
  /** Its page; undefined where that is not told by so few. */
  found?: Found;
}

interface Collection {
  name: string;
  spec: AnySpec;
  /** Epoch seconds. */
  now: number;
}

/** What is found of a query before its statement is asked, which that may make needless. */
export async function firstFound(
  collection: Collection,
  query: Query,
  dialect: Dialect,
  asking: Asking,
): Promise<FirstFound> {
  const { where: given, order, total, page = 0, limit = defaultLimit } = query;
  if (order !== 'any' || total || given === undefined || branchesOf(given) === undefined) return { query };
  const where = await mostSelectiveFirst(collection.name, given, dialect, (one) => asking.numbers(one));
  const asked = { ...query, where };
  const branches = branchesOf(where);
  if (
    branches === undefined ||
    !branches.every(isRange) ||
    !branches.some(({ rest }) => rest.some(asksOthers))
  )
    return { query: asked };
  const end = (page + 1) * limit;
  const reach = end + 1;
  const bounds = [
    ...(reach <= FURTHEST ? [{ each: reach * EACH, all: reach * EACH * branches.length }] : []),
    { each: MOST, all: MOST },
  ];
  const searched = {
    collection,
    branches,
    held: branches.flatMap(({ rest }) => rest.flatMap(referencesIn)),
    dialect,
  };
  const pageIn = (met: AnyRecord[]): Found => ({
    records: met.slice(page * limit, end),
    more: met.length > end,
    total: undefined,
  });
  let last: Matched = { met: [], isAll: false };
  for (const bound of bounds) {
    last = matchesIn(searched, bound, reach, await asking.candidates(candidatesOf(searched, bound)));
    if (last.isAll || last.met.length === reach) return { query: asked, found: pageIn(last.met) };
  }
  // Whom another collection says may be few of many: the statement reads those alone.
  const isCut = query.isBounded === true && searched.held.length === 0;
  return { query: asked, ...(isCut && { found: { ...pageIn(last.met), isCut } }) };
}

interface Search {
  collection: Collection;
  branches: readonly Branch[];
  held: readonly ReferenceFilter[];
  dialect: Dialect;
}

/** How many are judged, of each branch and of all together. */
interface Bound {
  each: number;
  all: number;
}

interface Matched {
  met: AnyRecord[];
  /** Whether none was left that may match. */
  isAll: boolean;
}

/** Those of candidates that match, as many as are needed. */
function matchesIn(
  { collection, branches, held }: Search,
  { each, all }: Bound,
  reach: number,
  candidates: readonly Candidate[],
): Matched {
  const spec = rememberingLast(collection.spec);
  const isReferenced = (candidate: Candidate) => (filter: ReferenceFilter) =>
    candidate.held[held.indexOf(filter)] === true;
  const met = new Map<string, AnyRecord>();
  const given = () => [...met.values()];
  let seen = 0;
  for (const [n, { rest }] of branches.entries()) {
    const told = candidates.filter((one) => one.n === n);
    for (const one of told) {
      const record = one.record();
      if (rest.every((filter) => matches(spec, record, filter, isReferenced(one))))
        met.set(record.id, record);
      if (met.size === reach) return { met: given(), isAll: false };
    }
    seen += told.length;
    // What follows comes before all of the next branch.
    if (told.length === each || seen === all) return { met: given(), isAll: false };
  }
  return { met: given(), isAll: true };
}

/** A declaration whose indexes are computed once for a record that is looked at several times in turn. */
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

/** Whether all of a range of an index counts: of another, many records may have to be read until one is found. */
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
  // Called in the order in which they stand in the statement.
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
