// Reads the files that a team gets from the hosted service, object by object: lines of JSON, a JSON array, or CSV; compressed
// with gzip or not. None is in memory as a whole.
import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { pipeline, type Readable, Transform } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { usersOf } from '../users/transfer/whole-file.ts';

/** An object of a file. */
export interface ExportLine {
  /** JSON; of a line that is no JSON, the line itself. */
  text: string;
  /** Undefined if the line is no JSON object. */
  value: Readonly<Record<string, unknown>> | undefined;
  /** The number of the line, or of the object in an array, from 1. */
  number: number;
}

/** The first bytes of a file that is compressed with gzip (RFC 1952 §2.3.1). */
const GZIP = Buffer.from([0x1f, 0x8b]);

/** The longest line, in characters; users and their metadata are shorter. */
const MAX_LINE_LENGTH = 4 << 20;

/**
 * Yields the objects of a file.
 * @param onBytes is called with how many bytes of the file were read.
 * @throws Error with the file's name if it cannot be read, or is in none of these forms
 */
export async function* linesOfExport(
  file: string,
  onBytes: (bytes: number) => void = () => undefined,
): AsyncGenerator<ExportLine> {
  try {
    const chunks = await peeked(await textOf(file, onBytes));
    const start = chunks.first.replace(/^\uFEFF/, '').trimStart();
    if (start.startsWith('[') || isOverLines(start)) yield* objectsOf(chunks.all());
    else if (start.startsWith('{')) yield* jsonLines(chunks.all());
    else if (start !== '') yield* csvObjects(chunks.all());
  } catch (thrown) {
    const { message, code } = thrown as NodeJS.ErrnoException;
    const cause = code === 'ENOENT' ? 'there is no such file' : message.replace(`, open '${file}'`, '');
    throw new Error(`${file} cannot be read (${cause})`, { cause: thrown });
  }
}

/** The text of a file, decompressed where it is compressed. */
async function textOf(file: string, onBytes: (bytes: number) => void): Promise<Readable> {
  const handle = await open(file);
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(2), 0, 2, 0);
    const isGzip = bytesRead === 2 && buffer.equals(GZIP);
    const stream = createReadStream(file);
    // Not after an encoding is set: then the pieces are texts.
    const counted = new Transform({
      transform: (piece: Buffer, _encoding, done) => {
        onBytes(piece.length);
        done(null, piece);
      },
    });
    const steps = isGzip ? [counted, createGunzip()] : [counted];
    const last = steps.at(-1) as Transform;
    // An error of any step is thrown by whoever reads the last one.
    pipeline([stream, ...steps], () => undefined);
    return last.setEncoding('utf8');
  } finally {
    await handle.close();
  }
}

/** Reads the beginning of a stream, up to the first line break, and gives all of it again. */
async function peeked(stream: Readable): Promise<{ first: string; all(): AsyncGenerator<string> }> {
  const iterator = (stream as AsyncIterable<string>)[Symbol.asyncIterator]();
  let first = '';
  while (!first.trimStart().includes('\n') && first.length < MAX_LINE_LENGTH) {
    const next = await iterator.next();
    if (next.done === true) break;
    first += next.value;
  }
  return {
    first,
    async *all() {
      try {
        yield first;
        for (let next = await iterator.next(); next.done !== true; next = await iterator.next())
          yield next.value;
      } finally {
        stream.destroy();
      }
    },
  };
}

/** Returns whether a text begins with an object that does not end in its first line. */
function isOverLines(start: string): boolean {
  if (!start.startsWith('{')) return false;
  const [line = ''] = start.split('\n', 1);
  return jsonOf(line) === undefined && (line.trim() === '{' || /[,{[]\s*$/.test(line));
}

function jsonOf(text: string): ExportLine['value'] {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}

async function* objectsOf(chunks: AsyncIterable<string>): AsyncGenerator<ExportLine> {
  let number = 0;
  for await (const text of usersOf(chunks)) {
    number += 1;
    yield { text: text.replace(/[\r\n]/g, ' '), value: jsonOf(text), number };
  }
}

async function* jsonLines(chunks: AsyncIterable<string>): AsyncGenerator<ExportLine> {
  let number = 0;
  for await (const line of rawLines(chunks)) {
    number += 1;
    const text = line.replace(/^\uFEFF/, '').trim();
    if (text !== '') yield { text, value: jsonOf(text), number };
  }
}

/** Splits at line feeds only: a JSON text may contain U+2028. */
async function* rawLines(chunks: AsyncIterable<string>): AsyncGenerator<string> {
  let rest = '';
  for await (const chunk of chunks) {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    if (rest.length > MAX_LINE_LENGTH) throw new Error('a line is too long');
    yield* lines;
  }
  if (rest !== '') yield rest;
}

// CSV (RFC 4180) as the hosted service writes it: the columns are paths of members, and each text begins with a single quote,
// so that no spreadsheet takes it for a formula.

async function* csvObjects(chunks: AsyncIterable<string>): AsyncGenerator<ExportLine> {
  let columns: string[] | undefined;
  let number = 0;
  for await (const row of rowsOf(chunks)) {
    number += 1;
    if (columns === undefined) {
      columns = row.map(columnName);
      if (!columns.includes('user_id'))
        throw new Error('it is no JSON, and has no column user_id: export the users with this member');
      continue;
    }
    if (row.length === 1 && row[0] === '') continue;
    const value = objectOf(columns, row);
    yield { text: JSON.stringify(value), value, number };
  }
}

/** The import and export extension writes names of members as titles. */
function columnName(cell: string): string {
  const name = unquoted(cell.replace(/^\uFEFF/, '').trim());
  const titled = name.toLowerCase().replaceAll(' ', '_');
  if (titled === 'id') return 'user_id';
  return /[A-Z ]/.test(name) && /^[\w ]+$/.test(name) ? titled : name;
}

const unquoted = (cell: string) => (cell.startsWith("'") ? cell.slice(1) : cell);

async function* rowsOf(chunks: AsyncIterable<string>): AsyncGenerator<string[]> {
  let row: string[] = [];
  let cell = '';
  /** Whether inside quotes, and whether the last sign was a quote that may end them. */
  let isQuoted = false;
  let endsQuote = false;
  for await (const chunk of chunks) {
    for (const sign of chunk) {
      if (isQuoted && !endsQuote) {
        if (sign === '"') endsQuote = true;
        else cell += sign;
        if (cell.length > MAX_LINE_LENGTH) throw new Error('a line is too long');
        continue;
      }
      if (endsQuote && sign === '"') {
        cell += '"';
        endsQuote = false;
        continue;
      }
      if (endsQuote) {
        isQuoted = false;
        endsQuote = false;
      }
      if (sign === '"' && cell === '') isQuoted = true;
      else if (sign === ',') {
        row.push(cell);
        cell = '';
      } else if (sign === '\n') {
        yield [...row, cell];
        row = [];
        cell = '';
      } else if (sign !== '\r') cell += sign;
    }
  }
  if (isQuoted && !endsQuote) throw new Error('the last row has no end');
  if (row.length > 0 || cell !== '') yield [...row, cell];
}

/** Members whose cells are no texts. */
const BOOLEANS = new Set(['email_verified', 'phone_verified', 'blocked']);

function objectOf(columns: readonly string[], row: readonly string[]): Record<string, unknown> {
  const found: Record<string, unknown> = {};
  for (const [index, column] of columns.entries()) {
    const text = unquoted(row[index] ?? '');
    if (text === '') continue;
    place(
      found,
      column.split(/[.[\]]+/).filter((part) => part !== ''),
      cellValue(column, text),
    );
  }
  return found;
}

function cellValue(column: string, text: string): unknown {
  if (BOOLEANS.has(column) || column.endsWith('isSocial')) return text.toLowerCase() === 'true';
  if (column === 'logins_count') return Number(text);
  // Metadata and lists are JSON in one cell.
  return (/^[[{]/.test(text) ? jsonCell(text) : undefined) ?? text;
}

function jsonCell(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Puts a value at a path, in lists where a part of the path is a number. */
function place(into: Record<string, unknown>, path: readonly string[], value: unknown): void {
  let at: Record<string, unknown> = into;
  for (const [index, name] of path.entries()) {
    if (name === '__proto__') return;
    if (index === path.length - 1) {
      at[name] = value;
      return;
    }
    const isList = /^\d{1,2}$/.test(path[index + 1] ?? '');
    const next = Object.hasOwn(at, name) ? at[name] : undefined;
    const inner = typeof next === 'object' && next !== null ? next : isList ? [] : {};
    at[name] = inner;
    at = inner as Record<string, unknown>;
  }
}
