// Where a running server listens for commands: a Unix domain socket in the data directory, or, where the path of that is
// too long for one, in a directory for temporary files that a file in the data directory names.
import { randomBytes } from 'node:crypto';
import { lstat, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { directoryMode, fileMode } from '../store/files.ts';

/** sun_path has 108 bytes on Linux and 104 on macOS, with a null byte at its end. */
const LONGEST_PATH = 103;

const SOCKET = 'gatehouse.sock';

const directoryOf = (dataDir: string) => join(resolve(dataDir), 'run');
const pointerOf = (dataDir: string) => join(directoryOf(dataDir), 'socket-path');
const fits = (path: string) => Buffer.byteLength(path) <= LONGEST_PATH;

/**
 * Makes the place for the socket of a server that holds the data directory's lock: what is there is of one that was
 * killed, and goes.
 * @returns the socket's path.
 */
export async function makePlace(dataDir: string): Promise<string> {
  await removePlace(dataDir);
  const directory = directoryOf(dataDir);
  await mkdir(directory, { recursive: true, mode: directoryMode });
  const path = join(directory, SOCKET);
  if (fits(path)) return path;
  const other = join(tmpdir(), `gatehouse-${randomBytes(8).toString('hex')}`);
  // Not recursive: one that somebody else has made there is refused.
  await mkdir(other, { mode: directoryMode });
  await writeFile(pointerOf(dataDir), join(other, SOCKET), { mode: fileMode });
  return join(other, SOCKET);
}

/** Removes socket, directory and pointer, where they are. */
export async function removePlace(dataDir: string): Promise<void> {
  const pointed = await pointedAt(dataDir);
  if (pointed !== undefined && (await isOurs(dataDir, pointed))) {
    await rm(dirname(pointed), { recursive: true, force: true });
  }
  await rm(directoryOf(dataDir), { recursive: true, force: true });
}

/**
 * The socket of the server that uses a data directory.
 * @returns undefined where there is none that can be trusted.
 */
export async function findPlace(dataDir: string): Promise<string | undefined> {
  const path = (await pointedAt(dataDir)) ?? join(directoryOf(dataDir), SOCKET);
  return (await isOurs(dataDir, path)) ? path : undefined;
}

/** What the pointer says, if it is one that {@link makePlace} may have written. */
async function pointedAt(dataDir: string): Promise<string | undefined> {
  const text = await readFile(pointerOf(dataDir), 'utf8').catch(ignoreMissing);
  return text !== undefined && /[/\\]gatehouse-[0-9a-f]{16}[/\\]gatehouse\.sock$/.test(text)
    ? text
    : undefined;
}

/**
 * Whether a socket's directory is of the owner of the data, and of nobody else: in a directory for temporary files a
 * stranger may have put another in the place of a killed server's, to be told the tenant's secrets.
 */
async function isOurs(dataDir: string, path: string): Promise<boolean> {
  const [data, place] = await Promise.all(
    [directoryOf(dataDir), dirname(path)].map((one) => lstat(one).catch(ignoreMissing)),
  );
  if (data === undefined || place === undefined) return false;
  return place.isDirectory() && place.uid === data.uid && (place.mode & 0o077) === 0;
}

function ignoreMissing(thrown: unknown): undefined {
  if ((thrown as NodeJS.ErrnoException).code !== 'ENOENT') throw thrown;
}
