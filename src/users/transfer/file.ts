// An import file: a JSON array of users, or one user a line.
import { checkedJson } from '../../http/body.ts';
import { type Entry, type EntryError, readEntry, withoutSecrets } from './entry.ts';

/** A user that was not imported. */
export interface FailedUser {
  user: Record<string, unknown>;
  errors: EntryError[];
}

/** What a file holds. */
export interface ImportFile {
  /** In the order of the file. */
  users: readonly ({ entry: Entry } | { failed: FailedUser })[];
}

/** Thrown for a file that is no list of users. */
export class FileFault extends Error {}

/** Reads a file. @param provider of the connection that its users come to. @throws FileFault */
export function readFile(text: string, provider: string): ImportFile {
  return { users: valuesOf(text).map(userReader(provider)) };
}

/** Reads the users of one file, in their order: who is there twice is refused the second time. */
export function userReader(provider: string): (value: unknown) => ImportFile['users'][number] {
  const seen = new Set<string>();
  return (value) => readUser(value, provider, seen);
}

function valuesOf(text: string): unknown[] {
  const trimmed = text.replace(/^\uFEFF/, '').trim();
  try {
    if (trimmed.startsWith('[')) return checkedJson(trimmed) as unknown[];
    const lines = trimmed.split('\n').filter((line) => line.trim() !== '');
    if (lines.length === 0) throw new FileFault('The file holds no users.');
    return lines.map((line) => checkedJson(line));
  } catch (thrown) {
    if (thrown instanceof FileFault) throw thrown;
    throw new FileFault('The users file is neither a JSON array nor one JSON object a line.');
  }
}

function readUser(value: unknown, provider: string, seen: Set<string>): ImportFile['users'][number] {
  const fail = (errors: EntryError[]) => ({ failed: { user: withoutSecrets(value), errors } });
  const read = readEntry(value, provider);
  if ('errors' in read) return fail(read.errors);
  const { userId, addresses } = read.entry;
  const names = Object.entries({ ...addresses, user_id: userId }).flatMap(([kind, name]) =>
    name === undefined ? [] : [`${kind}\n${name}`],
  );
  const double = names.find((name) => seen.has(name))?.split('\n')[0];
  for (const name of names) seen.add(name);
  if (double === undefined) return read;
  return fail([{ code: 'DUPLICATED_USER', message: 'The file has this user twice', path: double }]);
}
