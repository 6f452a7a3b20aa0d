// The few file operations that durability rests on.
import type { Stats } from 'node:fs';
import { type FileHandle, open, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Writable } from 'node:stream';

/** Only the server's own user reads and writes what it stores. */
export const fileMode = 0o600;
export const directoryMode = 0o700;

/**
 * Waits for work on a file; a fault then names the file. What the system says of a write or a sync (such as "no
 * space left on device, write") does not.
 */
export async function naming<T>(path: string, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (thrown) {
    const { message, code } = thrown as NodeJS.ErrnoException;
    if (message.includes(path)) throw thrown;
    throw Object.assign(new Error(`${path}: ${message}`, { cause: thrown }), { code });
  }
}

/** Writes all of it, however many writes the system makes of that. */
export async function writeAll(handle: FileHandle, data: Buffer): Promise<void> {
  let written = 0;
  while (written < data.length) {
    written += (await handle.write(data, written)).bytesWritten;
  }
}

/** Makes what was written to a file durable. */
export async function syncFile(path: string): Promise<void> {
  const handle = await open(path, 'r+');
  try {
    await naming(path, handle.sync());
  } finally {
    await handle.close();
  }
}

/** Makes created, renamed and deleted names in a directory durable (Windows has no such call). */
export async function syncDirectory(directory: string): Promise<void> {
  const sync = await directorySync(directory);
  try {
    await sync.now();
  } finally {
    await sync.end();
  }
}

/** What syncs a directory later on, with the descriptor that this takes already there. */
export async function directorySync(
  directory: string,
): Promise<{ now(): Promise<void>; end(): Promise<void> }> {
  if (process.platform === 'win32') return { now: async () => {}, end: async () => {} };
  const handle = await open(directory, 'r');
  return { now: () => naming(directory, handle.sync()), end: () => handle.close() };
}

/** What a path leads to, where there is something. */
export async function statOf(path: string): Promise<Stats | undefined> {
  return stat(path).catch((thrown: NodeJS.ErrnoException) => {
    if (thrown.code === 'ENOENT') return undefined;
    throw thrown;
  });
}

/**
 * Writes a file that has its name only when it is whole, so that nobody takes one that was cut short for it; until
 * then its name ends with `.unfinished`. A file that has the name already is replaced.
 * @param write is given that other name, and what to write to, which it ends.
 * @returns what `write` does. @throws Error when the file is being written already, or once was and was cut short.
 */
export async function writeWhole<T>(
  file: string,
  write: (unfinished: string, to: Writable) => Promise<T>,
): Promise<T> {
  const unfinished = `${file}.unfinished`;
  // Whoever may not read the data may not read what is written of it, from the first byte on.
  const handle = await open(unfinished, 'wx', fileMode).catch((thrown: NodeJS.ErrnoException) => {
    if (thrown.code !== 'EEXIST') throw thrown;
    throw new Error(
      `${unfinished} is there already: another command is writing it, or one was cut short; remove it then`,
    );
  });
  try {
    const written = await write(unfinished, handle.createWriteStream({ flush: true }));
    await rename(unfinished, file);
    await syncDirectory(dirname(file));
    return written;
  } catch (thrown) {
    await rm(unfinished, { force: true });
    throw thrown;
  } finally {
    await handle.close().catch(() => undefined);
  }
}
