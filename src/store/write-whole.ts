// Writes files under a temporary name until they are complete, so that an incomplete file is never taken for a whole
// one.
import { createWriteStream } from 'node:fs';
import { link, lstat, open, realpath, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { fileMode, naming, statOf, syncDirectory } from '../runtime/files.ts';
import { lockName } from './lock.ts';

/** Errors of `link` on file systems without hard links (FAT, some network file systems). */
const NO_LINKS = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'];

/** The mode bits of a directory like /tmp: everybody may create files there, and only delete their own. */
const OF_ALL = 0o1002;

/**
 * Writes a file, named `FILE.unfinished` until it is complete. A file of that name left by a killed command is
 * replaced.
 * @param options.replaces whether an existing file with the name is replaced.
 * @param write gets the temporary name and the stream to write to, which it must end.
 * @returns the result of `write`.
 * @throws Error when another command is writing the file, or when it exists and must not be replaced.
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
    // The lock shows that the command that wrote it has ended.
    await rm(unfinished, { force: true });
    if (!replaces) await refuseExisting(file);
    // The mode is set when the file is created: nobody else may read it at any time.
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

/** Gives a file its final name; a file of that name that appeared meanwhile is kept. */
async function nameAnew(unfinished: string, file: string): Promise<void> {
  try {
    await link(unfinished, file);
  } catch (thrown) {
    const { code } = thrown as NodeJS.ErrnoException;
    if (code === 'EEXIST') throw new Error(existsMessage(file), { cause: thrown });
    if (!NO_LINKS.includes(code ?? '')) throw thrown;
    await refuseExisting(file);
    await rename(unfinished, file);
  }
}

const existsMessage = (file: string) => `${file} is there already`;

async function refuseExisting(file: string): Promise<void> {
  if ((await statOf(file)) !== undefined) throw new Error(existsMessage(file));
}

/**
 * Writes the output of a command: a regular file is written completely, replacing an existing one; a pipe or a device
 * is written directly.
 */
export async function writeOutput(
  output: string,
  pieces: Iterable<string> | AsyncIterable<string>,
): Promise<void> {
  await refuseOtherUsersFile(output);
  const existing = await statOf(output);
  if (existing !== undefined && !existing.isFile()) return pipeline(pieces, createWriteStream(output));
  // Writes to the target of a symbolic link and keeps the link.
  const file = existing === undefined ? output : await realpath(output);
  await writeWhole(file, { replaces: true }, (unfinished, to) => naming(unfinished, pipeline(pieces, to)));
}

/**
 * Refuses to write through a link or pipe that another user has put in a directory like /tmp: it could redirect the
 * output (users' data) to a place they choose. Linux does the same where `fs.protected_symlinks` and
 * `fs.protected_fifos` are set.
 * @throws Error for an output that belongs neither to this user nor to the owner of such a directory.
 */
async function refuseOtherUsersFile(output: string): Promise<void> {
  // Other errors are reported when the output is opened.
  const existing = await lstat(output).catch(() => undefined);
  const directory = existing && (await statOf(dirname(output)));
  if (directory === undefined || (directory.mode & OF_ALL) !== OF_ALL) return;
  if (existing?.uid !== process.geteuid?.() && existing?.uid !== directory.uid)
    throw new Error(`${output} belongs to another user`);
}
