// Pages in any order: each branch of the filter is read in the order of its index and limited, so that no more records
// are read than the page needs. A record that several branches match counts where it is first met, so that pages do not
// overlap.
import type { Filter, IndexFilter } from '../contract.ts';
import type { Dialect } from './dialect.ts';
import { indexRange, type Writing } from './index-filter.ts';

/**
 * One alternative of a filter: the index (or id) that is read in order, and the conditions that the records must also
 * meet.
 */
export interface Branch {
  by: IndexFilter | { field: string; equals: string };
  rest: readonly Filter[];
}

/** The statement contains each branch once, and those without further conditions again for each of the others. */
const MAX_BRANCHES = 20;

/**
 * Returns the branches of a filter, those without further conditions first. Undefined if some alternative has no index,
 * or one with several values of a record that may match, or if there are too many.
 */
export function branchesOf(where: Filter | undefined): Branch[] | undefined {
  const branches = where === undefined ? undefined : split(where);
  if (branches === undefined || branches.length > MAX_BRANCHES) return undefined;
  return branches.toSorted((a, b) => Math.sign(a.rest.length) - Math.sign(b.rest.length));
}

function split(filter: Filter): Branch[] | undefined {
  // A reference from another collection has no order of its own here.
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

export interface Statement {
  sql: string;
  parameters: (string | number)[];
}

interface PageRequest {
  name: string;
  page: number;
  limit: number;
  /** Epoch seconds. */
  now: number;
  condition(filter: Filter, writing: Writing): string;
}

/** Returns the statement for a page; it returns one record more than `limit` if more follow. */
export function anyOrderStatement(
  branches: readonly Branch[],
  request: PageRequest,
  dialect: Dialect,
): Statement {
  const { name, page, limit, now } = request;
  const parameters: (string | number)[] = [];
  // Must be called in the order in which the parameters appear in the statement.
  const parameter = (value: string | number) => dialect.parameter(parameters.push(value));
  const writing = { parameter, dialect };
  const reach = (page + 1) * limit + 1;
  const select = (branch: Branch, n: number, before = '') => {
    const { from, value, conditions } = source(name, branch, writing);
    const all = [
      ...conditions(),
      ...branch.rest.map((one) => request.condition(one, writing)),
      alive(name, parameter(now)),
    ];
    return `SELECT * FROM (SELECT ${n} AS n, ${value} AS value, r.id AS id FROM ${before}${from} WHERE ${all.join(' AND ')} ORDER BY ${value}, r.id LIMIT ${parameter(reach)}) w${n}`;
  };
  const plain = branches.filter(({ rest }) => rest.length === 0);
  const nobody = `SELECT 0 AS n, r.id AS value, r.id AS id FROM "${name}" r WHERE FALSE`;
  const first = plain.map((branch, n) => select(branch, n));
  // Branches with further conditions are not read if the others fill the page. This check is in the first table of the
  // join because SQLite would otherwise evaluate it for each row.
  const others = branches.slice(plain.length).map((branch, n) => {
    const isWanted = `(SELECT 1 WHERE (SELECT count(DISTINCT id) FROM plain) < ${parameter(reach)}) g`;
    return select(branch, plain.length + n, `${isWanted} CROSS JOIN `);
  });
  const stored = dialect.stored.map((column) => `r.${column}`).join(', ');
  const sql = [
    `WITH plain AS MATERIALIZED (${first.length === 0 ? nobody : first.join(' UNION ALL ')}),`,
    `found AS (${['SELECT * FROM plain', ...others].join(' UNION ALL ')}),`,
    'ranked AS (SELECT n, value, id, row_number() OVER (PARTITION BY id ORDER BY n) AS at FROM found)',
    `SELECT ${stored} FROM ranked JOIN "${name}" r ON r.id = ranked.id WHERE ranked.at = 1`,
    `ORDER BY ranked.n, ranked.value, ranked.id LIMIT ${parameter(limit + 1)} OFFSET ${parameter(page * limit)}`,
  ].join(' ');
  return { sql, parameters };
}

/** Returns the condition that a record `r` has not expired. @param now the SQL parameter with the time. */
export const alive = (name: string, now: string): string =>
  `r.id NOT IN (SELECT id FROM "${name}" WHERE expires_at <= ${now})`;

/** Returns the table that the ids of a branch are read from, as `r`, with its order and conditions. */
export function source(name: string, { by, rest }: Branch, writing: Writing) {
  if ('field' in by) {
    const conditions = () => [`r.id = ${writing.parameter(writing.dialect.id(by.equals))}`];
    return { from: `"${name}" r`, value: 'r.id', conditions };
  }
  // Conditions by index need only the id; the record itself is joined only if a condition reads its members.
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
