// What one SQL database says differently from another.
import { idText, toPostgres, valueText } from './postgres-text.ts';
import { columnText } from './text.ts';

export interface Dialect {
  /** The type of text that is compared and sorted by its characters' codes. */
  text: string;
  /** What is said of a table whose primary key is all it is looked up by. */
  keyed: string;
  /** The parameter with this number, from 1 on; each stands once in a statement, in the order of their numbers. */
  parameter(number: number): string;
  /** A field within a column, null where it is not there or of another kind; booleans are 0 and 1. */
  field(data: string, path: string[], kind: 'text' | 'number' | 'boolean'): string;
  /** Whether one of the values at a path of names, within arrays too, is so; the value is `v.value`, its kind `v.type`. */
  member(data: string, path: string[], is: string): string;
  /** What the kind of a member's value must be. */
  memberKind: { text: string; number: string; boolean: string; any: string };
  /** A member's value of a kind, where {@link memberKind} holds. */
  memberValue: { text: string; number: string; boolean: string };
  /** Joins a table after another that is to be read first, where the database must be told. */
  join: string;
  /** The columns of a record's table that a record is made of. */
  stored: readonly string[];
  /** That a text has another within it. */
  contains(text: string, part: string): string;
  /** The last characters of a text. */
  last(text: string, count: number): string;
  /** How many characters a text has in a column. */
  length(text: string): number;
  /** An id, and a value of a key, as they are in a column. */
  id(text: string): string;
  value(text: string): string;
}

/** SQLite compares text by its UTF-8 bytes, which is the order of the code points. */
export const sqliteDialect: Dialect = {
  text: 'TEXT',
  // Otherwise the key is kept twice, in the table and in its index.
  keyed: ' WITHOUT ROWID',
  // Node.js 22 takes `?1` for a named parameter, and finds no place for a positional one.
  parameter: () => '?',
  field(data, path, kind) {
    const at = `'$${path.map((name) => `."${name}"`).join('')}'`;
    const types = { text: "'text'", number: "'integer', 'real'", boolean: "'true', 'false'" }[kind];
    return `CASE WHEN json_type(${data}, ${at}) IN (${types}) THEN json_extract(${data}, ${at}) END`;
  },
  member(data, path, is) {
    // A value that is no array is taken as an array of itself, so that one join serves both.
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

/** PostgreSQL, 14 and later; text is compared by the codes of its characters. */
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
    // A value that is no array is taken as an array of itself, so that one join serves both.
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
  // The version of a row, by which a write tells whether it is still the one that was read.
  stored: ['id', 'data', 'xmin'],
  contains: (text, part) => `strpos(${text}, ${part}) > 0`,
  last: (text, count) => `right(${text}, ${count})`,
  length: (text) => [...toPostgres(text)].length,
  id: idText,
  value: valueText,
};

/** The elements of an array with their types, and their value as each; only one of a type is read as that. */
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
