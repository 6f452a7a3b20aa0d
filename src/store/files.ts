// The few file operations that durability rests on.
import { type FileHandle, open } from 'node:fs/promises';

/** Only the server's own user reads and writes what it stores. */
export const fileMode = 0o600;
export const directoryMode = 0o700;

const newline = 10;
const readBytes = 1 << 20;

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

/** Makes created, renamed and deleted names in a directory durable (Windows has no such call). */
export async function syncDirectory(directory: string): Promise<void> {
  if (process.platform === 'win32') return;
  const handle = await open(directory, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/**
 * Calls `visit` with each line of a file that ends in a newline, without it, and its number from 1 on.
 * @returns the bytes up to the end of the last such line, and how many follow it.
 */
export async function eachLine(
  path: string,
  visit: (line: Buffer, number: number) => void,
): Promise<{ bytes: number; rest: number }> {
  const handle = await open(path, 'r');
  let number = 0;
  let bytes = 0;
  let started: Buffer[] = [];
  try {
    for (;;) {
      // A new buffer each time: lines are views into it, and a line begun in it is kept.
      const read = await handle.read(Buffer.allocUnsafeSlow(readBytes), 0, readBytes);
      if (read.bytesRead === 0) break;
      const chunk = read.buffer.subarray(0, read.bytesRead);
      let from = 0;
      for (let end = chunk.indexOf(newline); end !== -1; end = chunk.indexOf(newline, from)) {
        const last = chunk.subarray(from, end);
        const line = started.length === 0 ? last : Buffer.concat([...started, last]);
        started = [];
        from = end + 1;
        bytes += line.length + 1;
        number += 1;
        visit(line, number);
      }
      if (from < chunk.length) started.push(chunk.subarray(from));
    }
  } finally {
    await handle.close();
  }
  return { bytes, rest: started.reduce((sum, part) => sum + part.length, 0) };
}
