// What one SQL database says differently from another.

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
};
