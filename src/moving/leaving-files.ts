// Writes the files of `gatehouse move out`: lines of JSON for users and memberships, and JSON arrays of the size that the hosted
// service's import of users takes.

import { once } from 'node:events';
import { createWriteStream, type WriteStream } from 'node:fs';
import { join } from 'node:path';
import { finished } from 'node:stream/promises';
import { fileMode } from '../runtime/files.ts';
import { type LeavingLines, USERS } from './leave.ts';

/** The largest file that the hosted service's import of users takes. */
export const IMPORT_BYTES = 512_000;

/** What a file has that is being written. */
interface OpenFile {
  stream: WriteStream;
  bytes: number;
}

/** @param folder is there, with the folder `import`. */
export function leavingFiles(folder: string) {
  const counts = { users: 0, imports: 0, withoutEmail: 0 };
  const open = new Map<string, OpenFile>();
  const numbers = new Map<string, number>();
  const start = (name: string) => {
    const stream = createWriteStream(join(folder, name), { mode: fileMode, flags: 'wx', flush: true });
    return { stream, bytes: 0 };
  };
  const put = async (file: OpenFile, text: string) => {
    file.bytes += Buffer.byteLength(text);
    if (!file.stream.write(text)) await once(file.stream, 'drain');
  };
  const endArray = async (file: OpenFile) => {
    await put(file, '\n]\n');
    await finished(file.stream.end());
  };
  /** Adds a user to the import file of a connection; a full one is followed by another. */
  const importUser = async (name: string, line: string) => {
    let file = open.get(name);
    // With a comma, a line feed and the end of the array.
    if (file !== undefined && file.bytes + Buffer.byteLength(line) + 6 > IMPORT_BYTES) {
      await endArray(file);
      file = undefined;
    }
    if (file === undefined) {
      const number = (numbers.get(name) ?? 0) + 1;
      numbers.set(name, number);
      file = start(`${name}-${String(number).padStart(4, '0')}.json`);
      open.set(name, file);
      counts.imports += 1;
      await put(file, `[\n${line}`);
    } else await put(file, `,\n${line}`);
  };
  return {
    async write({ of, lines }: LeavingLines): Promise<void> {
      const all = lines.split('\n').filter((line) => line !== '');
      if (of.startsWith('import/')) {
        if (of.endsWith('.without-email')) counts.withoutEmail += all.length;
        for (const line of all) await importUser(of, line);
        return;
      }
      if (of === USERS) counts.users += all.length;
      const file = open.get(of) ?? start(`${of}.ndjson`);
      open.set(of, file);
      await put(file, lines);
    },
    async close(): Promise<typeof counts> {
      for (const [name, file] of open)
        await (name.startsWith('import/') ? endArray(file) : finished(file.stream.end()));
      return counts;
    },
  };
}
