// One process at a time on a directory, by a lock of the operating system that ends with the process,
// however it ends: no file to go stale, no process id to be taken for another's (in a container every
// server may be number 1), no gap between looking and locking. Node has no call for such a lock, but the
// SQLite inside it takes one on any file: its exclusive transaction is a POSIX record lock (LockFileEx on
// Windows). It holds between containers that share the volume too. Nothing is ever written to the file.
import { closeSync, lstatSync, openSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileMode } from './files.ts';
import { isObject } from './record.ts';

const sqliteBusy = 5;

/**
 * Locks a directory until the returned function is called or the process ends.
 * @throws Error when it is locked already, by another process or by this one.
 */
export function lockDirectory(directory: string): () => void {
  const path = join(directory, 'lock');
  createLockFile(path);
  const database = lockedFile(path);
  if (database !== undefined) return () => database.close();
  throw new Error(`${directory}: the store is in use: another server, or a command, has it open`);
}

/**
 * Locks a name, by a file of that name that goes with the lock, until the returned function is called or the process ends. What a
 * killed process leaves of it locks nothing.
 * @returns undefined when it is locked already. @throws Error when there is something else of that name.
 */
export function lockName(path: string): (() => void) | undefined {
  for (;;) {
    createLockFile(path);
    const made = lstatSync(path, { throwIfNoEntry: false });
    if (made !== undefined && (!made.isFile() || made.size > 0)) throw new Error(`${path}: this is no lock`);
    const database = lockedFile(path);
    if (database === undefined) return undefined;
    // Whoever had it may have removed it meanwhile: what is locked then is a file without a name.
    if (made !== undefined && lstatSync(path, { throwIfNoEntry: false })?.ino === made.ino)
      return () => {
        // Windows removes no file that is open; left there it does no harm.
        if (process.platform !== 'win32') rmSync(path, { force: true });
        database.close();
      };
    database.close();
  }
}

/** What holds a file's lock. @returns undefined when somebody else does. */
function lockedFile(path: string): DatabaseSync | undefined {
  let database: DatabaseSync;
  try {
    database = new DatabaseSync(path);
  } catch (thrown) {
    // What SQLite says does not name it.
    throw new Error(`${path}: ${thrown instanceof Error ? thrown.message : thrown}`, { cause: thrown });
  }
  try {
    // A journal in memory: the lock alone is wanted, not a file next to it.
    database.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE');
    return database;
  } catch (error) {
    database.close();
    if (!isObject(error) || error.errcode !== sqliteBusy) throw error;
    return undefined;
  }
}

/** Never opens a file that is there: closing it again would end a lock that this process holds on it. */
function createLockFile(path: string): void {
  try {
    closeSync(openSync(path, 'wx', fileMode));
  } catch (error) {
    if (!isObject(error) || error.code !== 'EEXIST') throw error;
  }
}
