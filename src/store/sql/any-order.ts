// Records in whichever order indexes tell them: of many that match no more are read than a page needs. Each branch of the filter is
// read in the order of its index and cut, and a record counts where it is met first, so that pages do not overlap.
import type { Filter, IndexFilter } from '../contract.ts';
import type { Dialect } from './dialect.ts';
import { indexRange, type Writing } from './index-filter.ts';

/** A branch of a filter, an alternative: what an index, or the id, tells in order, and what else must be so. */
export interface Branch {
  by: IndexFilter | { field: string; equals: string };
  rest: readonly Filter[];
}

/** A statement says each of them, and the first ones again for each of the others. */
const MOST_BRANCHES = 20;

/**
 * The branches of a filter, those that need nothing else first; undefined where some record is told by no index, or by several
 * values of one, and where there are too many.
 */
export function branchesOf(where: Filter | undefined): Branch[] | undefined {
  const branches = where === undefined ? undefined : split(where);
  if (branches === undefined || branches.length > MOST_BRANCHES) return undefined;
  return branches.toSorted((a, b) => Math.sign(a.rest.length) - Math.sign(b.rest.length));
}

function split(filter: Filter): Branch[] | undefined {
  // What another collection says has no order of its own here.
  if ('of' in filter) return undefined;
  if ('index' in filter) {
    return 'equals' in filter || filter.isSingle === true ? [{ by: filter, rest: [] }] : undefined;
  }
  if ('any' in filter) {
    const each = filter.any.map(split);
    return each.every((one) => one !== undefined) ? each.flat() : undefined;
  }
  if ('all' in filter) {
    for (const [at, one] of filter.all.entries()) {
      const others = filter.all.filter((_, n) => n !== at);
      const branches = split(one);
      if (branches !== undefined) return branches.map(({ by, rest }) => ({ by, rest: [...rest, ...others] }));
    }
    return undefined;
  }
  if (!('field' in filter) || filter.field !== 'id' || !('equals' in filter)) return undefined;
  return [{ by: { field: 'id', equals: String(filter.equals) }, rest: [] }];
}

/** A statement and its parameters. */
export interface Statement {
  sql: string;
  parameters: (string | number)[];
}

interface Asked {
  name: string;
  page: number;
  limit: number;
  /** Epoch seconds. */
  now: number;
  /** What must be true of a record `r`. */
  condition(filter: Filter, writing: Writing): string;
}

/** The statement for a page, with one record more than `limit` where more follow. */
export function anyOrderStatement(branches: readonly Branch[], asked: Asked, dialect: Dialect): Statement {
  const { name, page, limit, now } = asked;
  const parameters: (string | number)[] = [];
  // Called in the order in which they stand in the statement.
  const parameter = (value: string | number) => dialect.parameter(parameters.push(value));
  const writing = { parameter, dialect };
  const reach = (page + 1) * limit + 1;
  const select = (branch: Branch, n: number, before = '') => {
    const { from, value, conditions } = source(name, branch, writing);
    const all = [
      ...conditions(),
      ...branch.rest.map((one) => asked.condition(one, writing)),
      alive(name, parameter(now)),
    ];
    return `SELECT * FROM (SELECT ${n} AS n, ${value} AS value, r.id AS id FROM ${before}${from} WHERE ${all.join(' AND ')} ORDER BY ${value}, r.id LIMIT ${parameter(reach)}) w${n}`;
  };
  const plain = branches.filter(({ rest }) => rest.length === 0);
  const nobody = `SELECT 0 AS n, r.id AS value, r.id AS id FROM "${name}" r WHERE FALSE`;
  const first = plain.map((branch, n) => select(branch, n));
  // What compares with other records is not begun where those branches fill the page: asked in the table that is read first,
  // because SQLite would try each row against a condition.
  const others = branches.slice(plain.length).map((branch, n) => {
    const isWanted = `(SELECT 1 WHERE (SELECT count(DISTINCT id) FROM plain) < ${parameter(reach)}) g`;
    return select(branch, plain.length + n, `${isWanted} CROSS JOIN `);
  });
  const stored = dialect.stored.map((column) => `r.${column}`).join(', ');
  const sql = [
    `WITH plain AS MATERIALIZED (${first.length === 0 ? nobody : first.join(' UNION ALL ')}),`,
    `found AS (${['SELECT * FROM plain', ...others].join(' UNION ALL ')}),`,
    'met AS (SELECT n, value, id, row_number() OVER (PARTITION BY id ORDER BY n) AS at FROM found)',
    `SELECT ${stored} FROM met JOIN "${name}" r ON r.id = met.id WHERE met.at = 1`,
    `ORDER BY met.n, met.value, met.id LIMIT ${parameter(limit + 1)} OFFSET ${parameter(page * limit)}`,
  ].join(' ');
  return { sql, parameters };
}

/** That a record `r` has not expired. @param now the parameter of it. */
export const alive = (name: string, now: string): string =>
  `r.id NOT IN (SELECT id FROM "${name}" WHERE expires_at <= ${now})`;

/** What the ids of a branch are read from, as `r`. */
export function source(name: string, { by, rest }: Branch, writing: Writing) {
  if ('field' in by) {
    const conditions = () => [`r.id = ${writing.parameter(writing.dialect.id(by.equals))}`];
    return { from: `"${name}" r`, value: 'r.id', conditions };
  }
  // Other indexes are asked by the id alone; the record is read only where its own members count.
  const reads = rest.some(readsRecord);
  const index = reads ? 'k' : 'r';
  const from = reads
    ? `"${name}_index" k ${writing.dialect.join} "${name}" r ON r.id = k.id`
    : `"${name}_index" r`;
  return { from, value: `${index}.value`, conditions: () => indexRange(index, by, writing) };
}

function readsRecord(filter: Filter): boolean {
  if ('all' in filter) return filter.all.some(readsRecord);
  if ('any' in filter) return filter.any.some(readsRecord);
  if ('not' in filter) return readsRecord(filter.not);
  return 'field' in filter && filter.field !== 'id';
}
