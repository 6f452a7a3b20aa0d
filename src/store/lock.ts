// One process at a time on a directory, by a lock of the operating system that ends with the process,
// however it ends: no file to go stale, no process id to be taken for another's (in a container every
// server may be number 1), no gap between looking and locking. Node has no call for such a lock, but the
// SQLite inside it takes one on any file: its exclusive transaction is a POSIX record lock (LockFileEx on
// Windows). It holds between containers that share the volume too. Nothing is ever written to the file.
import { closeSync, openSync } from 'node:fs';
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
  const database = new DatabaseSync(path);
  try {
    // A journal in memory: the lock alone is wanted, not a file next to it.
    database.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE');
  } catch (error) {
    database.close();
    if (!isObject(error) || error.errcode !== sqliteBusy) throw error;
    throw new Error(`${directory}: the store is in use: another server, or a command, has it open`, {
      cause: error,
    });
  }
  return () => database.close();
}

/** Never opens a file that is there: closing it again would end a lock that this process holds on it. */
function createLockFile(path: string): void {
  try {
    closeSync(openSync(path, 'wx', fileMode));
  } catch (error) {
    if (!isObject(error) || error.code !== 'EEXIST') throw error;
  }
}
