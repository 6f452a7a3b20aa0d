// What one SQL database says differently from another.

export interface Dialect {
  /** The type of text that is compared and sorted by its characters' codes. */
  text: string;
  /** What is said of a table whose primary key is all it is looked up by. */
  keyed: string;
  /** The parameter with this number, from 1 on; each stands once in a statement, in the order of their numbers. */
  parameter(number: number): string;
  /** A field within the column `data` of `r`, null where it is not there or of another kind; booleans are 0 and 1. */
  field(path: string[], kind: 'text' | 'number' | 'boolean'): string;
}

/** SQLite compares text by its UTF-8 bytes, which is the order of the code points. */
export const sqliteDialect: Dialect = {
  text: 'TEXT',
  // Otherwise the key is kept twice, in the table and in its index.
  keyed: ' WITHOUT ROWID',
  // Node.js 22 takes `?1` for a named parameter, and finds no place for a positional one.
  parameter: () => '?',
  field(path, kind) {
    const at = `'$${path.map((name) => `."${name}"`).join('')}'`;
    const types = { text: "'text'", number: "'integer', 'real'", boolean: "'true', 'false'" }[kind];
    return `CASE WHEN json_type(r.data, ${at}) IN (${types}) THEN json_extract(r.data, ${at}) END`;
  },
};
