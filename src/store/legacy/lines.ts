// Reads a file line by line, so that a file need not fit in one string.
import { open } from 'node:fs/promises';

const newline = 10;
const readBytes = 1 << 20;

/**
 * Calls `onLine` with each line that ends in a newline (without the newline) and its number, from 1.
 * @returns the bytes up to the end of the last such line, and how many bytes follow it.
 */
export async function eachLine(
  path: string,
  onLine: (line: Buffer, number: number) => void,
): Promise<{ bytes: number; rest: number }> {
  const handle = await open(path, 'r');
  let number = 0;
  let bytes = 0;
  let started: Buffer[] = [];
  try {
    for (;;) {
      // A new buffer for each read: lines are views into it, and the beginning of an unfinished line is kept.
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
        onLine(line, number);
      }
      if (from < chunk.length) started.push(chunk.subarray(from));
    }
  } finally {
    await handle.close();
  }
  return { bytes, rest: started.reduce((sum, part) => sum + part.length, 0) };
}
