// A lock on a directory for one process at a time. It is a lock of the operating system that ends with the process,
// however the process ends: no file goes stale, no process id is mistaken for another (in a container every server may
// be number 1), and there is no gap between checking and locking. Node has no call for such a lock, but its SQLite
// takes one on any file: an exclusive transaction is a POSIX record lock (LockFileEx on Windows). It also works between
// containers that share the volume. Nothing is ever written to the file.
import { closeSync, lstatSync, openSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileMode } from '../runtime/files.ts';
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
  throw new Error(
    `${directory}: the store is in use: another server, or a command, has it open; stop it, or set DATA_DIR`,
  );
}

/**
 * Locks a name, by a file that is deleted with the lock, until the returned function is called or the process ends. A
 * file left by a killed process locks nothing.
 * @returns undefined when it is locked already.
 * @throws Error when there is something else of that name.
 */
export function lockName(path: string): (() => void) | undefined {
  for (;;) {
    createLockFile(path);
    const made = lstatSync(path, { throwIfNoEntry: false });
    if (made !== undefined && (!made.isFile() || made.size > 0)) throw new Error(`${path}: this is no lock`);
    const database = lockedFile(path);
    if (database === undefined) return undefined;
    // If the previous holder deleted the file meanwhile, the lock is on a file without a name: try again.
    if (made !== undefined && lstatSync(path, { throwIfNoEntry: false })?.ino === made.ino)
      return () => {
        // Windows does not delete an open file; a file that stays does no harm.
        if (process.platform !== 'win32') rmSync(path, { force: true });
        database.close();
      };
    database.close();
  }
}

/** Returns the connection that holds a file's lock; undefined when another one holds it. */
function lockedFile(path: string): DatabaseSync | undefined {
  let database: DatabaseSync;
  try {
    database = new DatabaseSync(path);
  } catch (thrown) {
    // SQLite's own message does not contain the path.
    throw new Error(`${path}: ${thrown instanceof Error ? thrown.message : thrown}`, { cause: thrown });
  }
  try {
    // The journal is kept in memory because only the lock is needed.
    database.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE');
    return database;
  } catch (error) {
    database.close();
    if (!isObject(error) || error.errcode !== sqliteBusy) throw error;
    return undefined;
  }
}

/** Never opens an existing file: closing it again would release a lock that this process holds on it (POSIX). */
function createLockFile(path: string): void {
  try {
    closeSync(openSync(path, 'wx', fileMode));
  } catch (error) {
    if (!isObject(error) || error.code !== 'EEXIST') throw error;
  }
}
