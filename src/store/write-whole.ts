// Files that a command writes have their names only when they are whole, so that nobody takes one that was cut short for it.
import { createWriteStream } from 'node:fs';
import { link, lstat, open, realpath, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { fileMode, naming, statOf, syncDirectory } from './files.ts';
import { lockName } from './lock.ts';

/** What file systems without a second name for a file say (FAT, some of networks). */
const NO_LINKS = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'];

/** The mode of a directory like /tmp: everybody makes files there, and nobody removes another's. */
const OF_ALL = 0o1002;

/**
 * Writes a file, named `FILE.unfinished` until it is whole. One of that name that a killed command has left is taken over.
 * @param options.replaces whether it comes in the place of a file that has the name already.
 * @param write is given that other name, and what to write to, which it ends.
 * @returns what `write` does. @throws Error when another command is writing it, and when there is one that is to stay.
 */
export async function writeWhole<T>(
  file: string,
  { replaces }: { replaces: boolean },
  write: (unfinished: string, to: Writable) => Promise<T>,
): Promise<T> {
  const unfinished = `${file}.unfinished`;
  const unlock = lockName(`${unfinished}.lock`);
  if (unlock === undefined) throw new Error(`${unfinished}: another command is writing it`);
  try {
    // Whoever wrote it has ended.
    await rm(unfinished, { force: true });
    if (!replaces) await refusePresent(file);
    // Whoever may not read the data may not read what is written of it, from the first byte on.
    const handle = await open(unfinished, 'wx', fileMode);
    try {
      const written = await write(unfinished, handle.createWriteStream({ flush: true }));
      await (replaces ? rename(unfinished, file) : nameAnew(unfinished, file));
      await syncDirectory(dirname(file));
      return written;
    } finally {
      await rm(unfinished, { force: true });
      await handle.close().catch(() => undefined);
    }
  } finally {
    unlock();
  }
}

/** Gives a file its name, which no other has: one that came there meanwhile stays. */
async function nameAnew(unfinished: string, file: string): Promise<void> {
  try {
    await link(unfinished, file);
  } catch (thrown) {
    const { code } = thrown as NodeJS.ErrnoException;
    if (code === 'EEXIST') throw new Error(present(file), { cause: thrown });
    if (!NO_LINKS.includes(code ?? '')) throw thrown;
    await refusePresent(file);
    await rename(unfinished, file);
  }
}

const present = (file: string) => `${file} is there already`;

async function refusePresent(file: string): Promise<void> {
  if ((await statOf(file)) !== undefined) throw new Error(present(file));
}

/** Writes what a command puts out: a file as a whole, in place of one that is there; a pipe or a device as it comes. */
export async function writeOutput(
  output: string,
  pieces: Iterable<string> | AsyncIterable<string>,
): Promise<void> {
  await refuseAnothers(output);
  const there = await statOf(output);
  if (there !== undefined && !there.isFile()) return pipeline(pieces, createWriteStream(output));
  // A link stays one.
  const file = there === undefined ? output : await realpath(output);
  await writeWhole(file, { replaces: true }, (unfinished, to) => naming(unfinished, pipeline(pieces, to)));
}

/**
 * Whoever puts a link or a pipe in a directory of all would have users written where they want, or to themselves. Linux refuses as
 * much where `fs.protected_symlinks` and `fs.protected_fifos` say so.
 * @throws Error for what belongs neither to this user nor to the owner of such a directory.
 */
async function refuseAnothers(output: string): Promise<void> {
  // What cannot be looked at is told by whoever opens it.
  const there = await lstat(output).catch(() => undefined);
  const directory = there && (await statOf(dirname(output)));
  if (directory === undefined || (directory.mode & OF_ALL) !== OF_ALL) return;
  if (there?.uid !== process.geteuid?.() && there?.uid !== directory.uid)
    throw new Error(`${output} belongs to another user`);
}
