// Writes the files of `gatehouse move out`: lines of JSON for users and memberships, and JSON arrays of the size that the hosted
// service's import of users takes.

import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { fileMode, naming, writeAll } from '../runtime/files.ts';
import { fileNames } from './file-names.ts';
import { type LeavingLines, USERS } from './leave.ts';

/** The largest file that the hosted service's import of users takes. */
export const IMPORT_BYTES = 512_000;

/** What a file has that is being written. */
interface OpenFile {
  path: string;
  handle: FileHandle;
  bytes: number;
}

/** @param folder is there, with the folder `import`. */
export function leavingFiles(folder: string) {
  const counts = { users: 0, imports: 0, withoutEmail: 0 };
  const files = new Map<string, OpenFile>();
  const numbers = new Map<string, number>();
  // Connections whose names differ by case have files of their own, wherever case is told apart or not.
  const unique = fileNames();
  const titles = new Map<string, string>();
  const start = async (name: string): Promise<OpenFile> => {
    const path = join(folder, name);
    return { path, handle: await open(path, 'wx', fileMode), bytes: 0 };
  };
  const put = async (file: OpenFile, text: string) => {
    const data = Buffer.from(text);
    file.bytes += data.length;
    await naming(file.path, writeAll(file.handle, data));
  };
  const end = async ({ path, handle }: OpenFile) => {
    await naming(path, handle.sync());
    await handle.close();
  };
  const endArray = async (file: OpenFile) => {
    await put(file, '\n]\n');
    await end(file);
  };
  const titleOf = (name: string): string => {
    const [connection = '', ...rest] = name.slice('import/'.length).split('.');
    const title = titles.get(connection) ?? unique(connection);
    titles.set(connection, title);
    return [`import/${title}`, ...rest].join('.');
  };
  /** Adds a user to the import file of a connection; a full one is followed by another. */
  const importUser = async (name: string, line: string) => {
    let file = files.get(name);
    // With a comma, a line feed and the end of the array.
    if (file !== undefined && file.bytes + Buffer.byteLength(line) + 6 > IMPORT_BYTES) {
      files.delete(name);
      await endArray(file);
      file = undefined;
    }
    if (file === undefined) {
      const number = (numbers.get(name) ?? 0) + 1;
      numbers.set(name, number);
      file = await start(`${titleOf(name)}-${String(number).padStart(4, '0')}.json`);
      files.set(name, file);
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
      const file = files.get(of) ?? (await start(`${of}.ndjson`));
      files.set(of, file);
      await put(file, lines);
    },
    async close(): Promise<typeof counts> {
      for (const [name, file] of files) await (name.startsWith('import/') ? endArray(file) : end(file));
      files.clear();
      return counts;
    },
    /** Closes the files as they are, so that they can be removed on every system. */
    async abandon(): Promise<void> {
      // A second failure would hide the first.
      for (const { handle } of files.values()) await handle.close().catch(() => undefined);
    },
  };
}
