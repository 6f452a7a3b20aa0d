// File operations that durability depends on.
import type { Stats } from 'node:fs';
import { type FileHandle, open, stat } from 'node:fs/promises';

/** Only the server's own user reads and writes what it stores. */
export const fileMode = 0o600;
export const directoryMode = 0o700;

/**
 * Waits for work on a file and adds the file's path to an error's message. The system's own message for a write or a
 * sync (such as "no space left on device, write") does not contain it.
 */
export async function naming<T>(path: string, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (thrown) {
    const { message, code, errno } = thrown as NodeJS.ErrnoException;
    if (message.includes(path) || errno === undefined) throw thrown;
    throw Object.assign(new Error(`${path}: ${message}`, { cause: thrown }), { code });
  }
}

/** Writes all of `data`: one call of the system may write only a part of it. */
export async function writeAll(handle: FileHandle, data: Buffer): Promise<void> {
  let written = 0;
  while (written < data.length) {
    written += (await handle.write(data, written)).bytesWritten;
  }
}

export async function syncFile(path: string): Promise<void> {
  const handle = await open(path, 'r+');
  try {
    await naming(path, handle.sync());
  } finally {
    await handle.close();
  }
}

/** Makes created, renamed and deleted names in a directory durable. Windows has no such call. */
export async function syncDirectory(directory: string): Promise<void> {
  const sync = await directorySync(directory);
  try {
    await sync.now();
  } finally {
    await sync.end();
  }
}

/** Opens a directory so that it can be synced later without needing another file descriptor then. */
export async function directorySync(
  directory: string,
): Promise<{ now(): Promise<void>; end(): Promise<void> }> {
  if (process.platform === 'win32') return { now: async () => {}, end: async () => {} };
  const handle = await open(directory, 'r');
  return { now: () => naming(directory, handle.sync()), end: () => handle.close() };
}

/** Returns what `stat` says of a path; undefined if nothing exists there. */
export async function statOf(path: string): Promise<Stats | undefined> {
  return stat(path).catch((thrown: NodeJS.ErrnoException) => {
    if (thrown.code === 'ENOENT') return undefined;
    throw thrown;
  });
}
