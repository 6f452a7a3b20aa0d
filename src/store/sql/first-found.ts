// A page of what matches in any order, judged record by record: of what an index tells, the first records mostly fill a page by
// themselves. A statement with further conditions reads all that the indexes of those tell, before it gives a record.
import type { Filter, HeldFilter, Query } from '../contract.ts';
import { defaultLimit, matches } from '../filter.ts';
import type { AnySpec } from '../keys.ts';
import type { AnyRecord } from '../record.ts';
import { alive, type Statement, source, type Way, waysOf } from './any-order.ts';
import type { Dialect } from './dialect.ts';

/** Pages further on are read by their statement. */
const FURTHEST = 100;
/** Records that are judged for each that a page needs, of each way to match. */
const EACH = 3;

/** A record that may match. */
export interface Candidate {
  /** Its way to match. */
  n: number;
  /** Of each `of` filter whether it means the record. */
  held: readonly boolean[];
  record(): AnyRecord;
}

/** What is asked before the statement of a page, and may make it needless. */
interface FirstFound {
  /** Its columns: those of a record, {@link Candidate.n}, then each of {@link Candidate.held} as 1 or 0. */
  statement: Statement;
  /** The page, with one record more than its limit where more follow; undefined where that is not told by so few. */
  page(candidates: readonly Candidate[]): AnyRecord[] | undefined;
}

/**
 * What is asked first of a query, where it may help.
 * @param now epoch seconds
 */
export function firstFound(
  { name, spec }: { name: string; spec: AnySpec },
  { where, order, total, page = 0, limit = defaultLimit }: Query,
  now: number,
  dialect: Dialect,
): FirstFound | undefined {
  const reach = (page + 1) * limit + 1;
  const ways = order === 'any' && !total && reach <= FURTHEST ? waysOf(where) : undefined;
  if (ways === undefined || !ways.every(isRange) || !ways.some(({ rest }) => rest.some(asksOthers))) return;
  const held = ways.flatMap(({ rest }) => rest.flatMap(heldIn));
  const isHeld = (candidate: Candidate) => (filter: HeldFilter) =>
    candidate.held[held.indexOf(filter)] === true;
  const most = reach * EACH;
  return {
    statement: candidatesOf(ways, { name, most, held, now }, dialect),
    page(candidates) {
      const met = new Map<string, AnyRecord>();
      for (const [n, { rest }] of ways.entries()) {
        const told = candidates.filter((one) => one.n === n);
        for (const one of told) {
          const record = one.record();
          if (rest.every((filter) => matches(spec, record, filter, isHeld(one)))) met.set(record.id, record);
          if (met.size === reach) return [...met.values()].slice(page * limit);
        }
        // What follows comes before all of the next way.
        if (told.length === most) return undefined;
      }
      return [...met.values()].slice(page * limit);
    },
  };
}

/** Whether all of a range of an index counts: of another, many records may have to be read until one is found. */
const isRange = ({ by }: Way): boolean => !('prefix' in by) || (by.contains ?? by.suffix) === undefined;

function asksOthers(filter: Filter): boolean {
  return 'index' in filter || 'of' in filter || partsOf(filter).some(asksOthers);
}

function heldIn(filter: Filter): HeldFilter[] {
  return 'of' in filter ? [filter] : partsOf(filter).flatMap(heldIn);
}

function partsOf(filter: Filter): readonly Filter[] {
  if ('all' in filter) return filter.all;
  if ('any' in filter) return filter.any;
  return 'not' in filter ? [filter.not] : [];
}

function candidatesOf(
  ways: readonly Way[],
  { name, most, held, now }: { name: string; most: number; held: readonly HeldFilter[]; now: number },
  dialect: Dialect,
): Statement {
  const parameters: (string | number)[] = [];
  // Called in the order in which they stand in the statement.
  const parameter = (value: string | number) => dialect.parameter(parameters.push(value));
  const writing = { parameter, dialect };
  const told = ways.map(({ by }, n) => {
    const { from, value, conditions } = source(name, { by, rest: [] }, writing);
    const all = [...conditions(), alive(name, parameter(now))];
    return `SELECT * FROM (SELECT ${n} AS n, ${value} AS value, r.id AS id FROM ${from} WHERE ${all.join(' AND ')} ORDER BY ${value}, r.id LIMIT ${parameter(most)}) w${n}`;
  });
  const holds = held.map(({ of, index, equals }, n) => {
    const key = `k.key = ${parameter(index)} AND k.value = ${parameter(`${equals}\n`)} || r.id`;
    return `CASE WHEN EXISTS (SELECT 1 FROM "${of}_index" k WHERE ${key}) THEN 1 ELSE 0 END AS held${n}`;
  });
  const columns = [...dialect.stored.map((column) => `r.${column}`), 'told.n AS n', ...holds];
  const sql = [
    `WITH told AS (${told.join(' UNION ALL ')})`,
    `SELECT ${columns.join(', ')} FROM told ${dialect.join} "${name}" r ON r.id = told.id`,
    'ORDER BY told.n, told.value, told.id',
  ].join(' ');
  return { sql, parameters };
}
