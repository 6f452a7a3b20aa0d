// Reads an import file: a JSON array of users, or one user per line.

import { jsonFaultAt } from '../../http/json-fault.ts';
import { checkedJson } from '../../http/server/body.ts';
import type { JobFaultRecord } from '../../records/state/job-faults.ts';
import { type Entry, type Place, readEntry, withoutSecrets } from './entry.ts';
import type { EntryError } from './entry-error.ts';

/** A user that was not imported. */
export interface FailedUser {
  user: Record<string, unknown>;
  errors: EntryError[];
  /** Their position, if the file was read as a whole. */
  place?: Place;
}

/** Returns a failed user as the API and the command line show it: with the English messages only. */
export function withoutFaults({ errors, ...failed }: FailedUser): FailedUser {
  return { ...failed, errors: errors.map(({ fault: _, ...error }) => error) };
}

export interface ImportFile {
  /** In the order of the file. */
  users: readonly ({ entry: Entry } | { failed: FailedUser })[];
}

/** Thrown for a file that is not a list of users. */
export class FileFault extends Error {
  /** The fault, from which the console makes its text; undefined for files of the command line. */
  readonly fault: JobFaultRecord | undefined;

  constructor(message: string, fault?: JobFaultRecord) {
    super(message);
    this.fault = fault;
  }
}

/** @param provider the strategy of the connection. @throws FileFault */
export function readFile(text: string, provider: string): ImportFile {
  const read = userReader(provider);
  const users = valuesOf(text).map(({ value, place }) => {
    const one = read(value);
    return 'entry' in one ? { entry: { ...one.entry, place } } : { failed: { ...one.failed, place } };
  });
  return { users };
}

/** Returns a function that parses the users of one file in their order. It refuses a user whom the file had before. */
export function userReader(provider: string): (value: unknown) => ImportFile['users'][number] {
  const seen = new Set<string>();
  return (value) => readUser(value, provider, seen);
}

interface PlacedValue {
  value: unknown;
  place: Place;
}

function valuesOf(text: string): PlacedValue[] {
  const whole = text.replace(/^\uFEFF/, '');
  if (whole.trimStart().startsWith('[')) {
    const values = orFault(whole, undefined, () => checkedJson(whole) as unknown[]);
    return values.map((value, at) => ({ value, place: { number: at + 1 } }));
  }
  const lines = whole.split('\n').map((line, at) => ({ line, number: at + 1 }));
  const filled = lines.filter(({ line }) => line.trim() !== '');
  if (filled.length === 0) throw new FileFault('The file holds no users.', { name: 'empty' });
  return filled.map(({ line, number }, at) => ({
    value: orFault(line, number, () => checkedJson(line)),
    place: { number: at + 1, line: number },
  }));
}

/**
 * @param first the number of its first line in the file.
 * @throws FileFault with the position of the error. It does not quote the file, which may contain hashes.
 */
function orFault<T>(text: string, first: number | undefined, read: () => T): T {
  try {
    return read();
  } catch {
    const at = jsonFaultAt(text);
    const line = at === undefined ? first : (first ?? 1) + at.line - 1;
    const where = [line && `line ${line}`, at && `column ${at.column}`].filter(Boolean).join(', ');
    // Without a position the JSON is well-formed but refused: not an object, nested too deeply, or with a forbidden name.
    const why =
      where === '' ? 'Something in it is refused in any request.' : `Reading it failed at ${where}.`;
    throw new FileFault(
      `The users file is neither a JSON array nor one JSON object a line. ${why}`,
      placeFault(line, at?.column),
    );
  }
}

function placeFault(line: number | undefined, column: number | undefined): JobFaultRecord {
  if (line === undefined) return { name: 'refused' };
  return column === undefined
    ? { name: 'line', values: { line } }
    : { name: 'place', values: { line, column } };
}

function readUser(value: unknown, provider: string, seen: Set<string>): ImportFile['users'][number] {
  const fail = (errors: EntryError[]) => ({ failed: { user: withoutSecrets(value), errors } });
  const read = readEntry(value, provider);
  if ('errors' in read) return fail(read.errors);
  const { userId, addresses } = read.entry;
  const names = Object.entries({ ...addresses, user_id: userId }).flatMap(([kind, name]) =>
    name === undefined ? [] : [`${kind}\n${name}`],
  );
  const duplicate = names.find((name) => seen.has(name))?.split('\n')[0];
  for (const name of names) seen.add(name);
  if (duplicate === undefined) return read;
  const error = { code: 'DUPLICATED_USER', message: 'The file has this user twice', path: duplicate };
  return fail([{ ...error, fault: { name: 'twice' } }]);
}
