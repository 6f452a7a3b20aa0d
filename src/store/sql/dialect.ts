// The differences between SQL databases.
import { idText, toPostgres, valueText } from './postgres-text.ts';
import { columnText } from './row.ts';

export interface Dialect {
  /** The type of text that is compared and sorted by code point. */
  text: string;
  /** The suffix for tables that are only looked up by their primary key. */
  keyed: string;
  /** The parameter with this number, from 1. Each is used once in a statement, in ascending order. */
  parameter(number: number): string;
  /** The value of a field in a JSON column; null if it is missing or of another type. Booleans are 0 and 1. */
  field(data: string, path: string[], kind: 'text' | 'number' | 'boolean'): string;
  /**
   * The condition that a value at a path, also inside arrays, meets `is`; there the value is `v.value` and its type
   * `v.type`.
   */
  member(data: string, path: string[], is: string): string;
  /** The conditions for the type of a member's value. */
  memberKind: { text: string; number: string; boolean: string; any: string };
  /** A member's value as a type, if {@link memberKind} holds. */
  memberValue: { text: string; number: string; boolean: string };
  /** The join that reads the left table first, if the database must be told to. */
  join: string;
  /** The columns that are needed to make a record of a row. */
  stored: readonly string[];
  contains(text: string, part: string): string;
  /** The last characters of a text. */
  last(text: string, count: number): string;
  /** The number of characters that a text has in a column. */
  length(text: string): number;
  /** How an id, and a value of a key, are written in a column. */
  id(text: string): string;
  value(text: string): string;
}

/** SQLite compares text by its UTF-8 bytes, which is the order of the code points. */
export const sqliteDialect: Dialect = {
  text: 'TEXT',
  // Without this the key would be stored twice, in the table and in its index.
  keyed: ' WITHOUT ROWID',
  // Node.js 22 treats `?1` as a named parameter, to which it cannot bind a positional value.
  parameter: () => '?',
  field(data, path, kind) {
    const at = `'$${path.map((name) => `."${name}"`).join('')}'`;
    const types = { text: "'text'", number: "'integer', 'real'", boolean: "'true', 'false'" }[kind];
    return `CASE WHEN json_type(${data}, ${at}) IN (${types}) THEN json_extract(${data}, ${at}) END`;
  },
  member(data, path, is) {
    // A value that is not an array is treated as an array of itself, so that one join handles both.
    const tables = path.map((name, n) => {
      const at = `'$."${name.replaceAll("'", "''")}"'`;
      const value =
        n === 0
          ? `(${data} -> ${at})`
          : `CASE v${n - 1}.type WHEN 'object' THEN v${n - 1}.value -> ${at} END`;
      const elements = `CASE json_type(${value}) WHEN 'array' THEN ${value} ELSE json_array(json(${value})) END`;
      return `json_each(${elements}) v${n === path.length - 1 ? '' : n}`;
    });
    return `EXISTS (SELECT 1 FROM ${tables.join(', ')} WHERE ${is})`;
  },
  memberKind: {
    text: "v.type = 'text'",
    number: "v.type IN ('integer', 'real')",
    boolean: "v.type IN ('true', 'false')",
    any: "v.type <> 'null'",
  },
  memberValue: { text: 'v.value', number: 'v.value', boolean: 'v.value' },
  join: 'CROSS JOIN',
  stored: ['id', 'data', 'sum'],
  contains: (text, part) => `instr(${text}, ${part}) > 0`,
  last: (text, count) => `substr(${text}, -${count})`,
  length: (text) => [...text].length,
  id: columnText,
  value: columnText,
};

/** PostgreSQL 14 and later. Text is compared by code point. */
export const postgresDialect: Dialect = {
  text: 'text COLLATE "C"',
  keyed: '',
  parameter: (number) => `$${number}`,
  field(data, path, kind) {
    const at = `'{${path.map((name) => `"${name}"`).join(',')}}'`;
    const value = `(${data} #>> ${at})`;
    const types = { text: 'string', number: 'number', boolean: 'boolean' };
    const as = {
      text: `${value} COLLATE "C"`,
      number: `${value}::numeric`,
      boolean: `${value}::boolean::int`,
    };
    return `CASE json_typeof(${data} #> ${at}) WHEN '${types[kind]}' THEN ${as[kind]} END`;
  },
  member(data, path, is) {
    // A value that is not an array is treated as an array of itself, so that one join handles both.
    const tables = path.map((name, n) => {
      const at = `'${name.replaceAll("'", "''")}'`;
      const value =
        n === 0
          ? `(${data}::jsonb -> ${at})`
          : `(CASE jsonb_typeof(v${n - 1}.value) WHEN 'object' THEN v${n - 1}.value -> ${at} END)`;
      const isLast = n === path.length - 1;
      const each = `jsonb_array_elements(CASE jsonb_typeof(${value}) WHEN 'array' THEN ${value} ELSE jsonb_build_array(${value}) END)`;
      return isLast ? `LATERAL (${typed(each)}) v` : `LATERAL ${each} AS v${n}(value)`;
    });
    return `EXISTS (SELECT 1 FROM ${tables.join(', ')} WHERE ${is})`;
  },
  memberKind: {
    text: "v.type = 'string'",
    number: "v.type = 'number'",
    boolean: "v.type = 'boolean'",
    any: "v.type <> 'null'",
  },
  memberValue: { text: 'v.text', number: 'v.number', boolean: 'v.boolean' },
  join: 'JOIN',
  // `xmin` is the version of a row, which shows a write whether the row is still the one that was read.
  stored: ['id', 'data', 'xmin'],
  contains: (text, part) => `strpos(${text}, ${part}) > 0`,
  last: (text, count) => `right(${text}, ${count})`,
  length: (text) => [...toPostgres(text)].length,
  id: idText,
  value: valueText,
};

/**
 * Selects the elements of an array with their type, and the value in the column of its type; the other columns are
 * null.
 */
function typed(each: string): string {
  const text = `(e.value #>> '{}')`;
  const as = (type: string, value: string) => `CASE jsonb_typeof(e.value) WHEN '${type}' THEN ${value} END`;
  const columns = [
    'jsonb_typeof(e.value) AS type',
    `${as('string', `${text} COLLATE "C"`)} AS text`,
    `${as('number', `${text}::numeric`)} AS number`,
    `${as('boolean', `${text}::boolean::int`)} AS boolean`,
  ];
  return `SELECT ${columns.join(', ')} FROM ${each} AS e(value)`;
}
