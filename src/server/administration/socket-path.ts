// The place of the socket for commands: in the data directory or, if that path is too long, in a temporary directory
// that a file in the data directory names.
import { randomBytes } from 'node:crypto';
import { lstat, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { directoryMode, fileMode } from '../../runtime/files.ts';

/** The limit of `sun_path`: 108 bytes on Linux and 104 on macOS, with a null byte at the end. */
const MAX_PATH_BYTES = 103;

const SOCKET = 'gatehouse.sock';

const directoryOf = (dataDir: string) => join(resolve(dataDir), 'run');
const pointerOf = (dataDir: string) => join(directoryOf(dataDir), 'socket-path');
const fits = (path: string) => Buffer.byteLength(path) <= MAX_PATH_BYTES;

/**
 * Creates the directory for the socket of a server that holds the data directory's lock. What a killed server has
 * left there is deleted.
 * @returns the socket's path
 */
export async function prepareSocketPath(dataDir: string): Promise<string> {
  await removeSocket(dataDir);
  const directory = directoryOf(dataDir);
  await mkdir(directory, { recursive: true, mode: directoryMode });
  const path = join(directory, SOCKET);
  if (fits(path)) return path;
  const temporaryDirectory = join(tmpdir(), `gatehouse-${randomBytes(8).toString('hex')}`);
  // Not recursive, so that a directory that somebody else has created there is refused.
  await mkdir(temporaryDirectory, { mode: directoryMode });
  await writeFile(pointerOf(dataDir), join(temporaryDirectory, SOCKET), { mode: fileMode });
  return join(temporaryDirectory, SOCKET);
}

/** Deletes the socket, its directory and the pointer, if they exist. */
export async function removeSocket(dataDir: string): Promise<void> {
  const socketPath = await pathInPointer(dataDir);
  if (socketPath !== undefined && (await isOwnedByServer(dataDir, socketPath))) {
    await rm(dirname(socketPath), { recursive: true, force: true });
  }
  await rm(directoryOf(dataDir), { recursive: true, force: true });
}

// docs/understand/decisions/operating.md#commands-reach-a-running-server-through-a-unix-domain-socket
/**
 * Returns the path of the socket of the server that uses a data directory.
 * @returns undefined if there is none, or none that can be trusted
 */
export async function findSocket(dataDir: string): Promise<string | undefined> {
  const path = (await pathInPointer(dataDir)) ?? join(directoryOf(dataDir), SOCKET);
  return (await isOwnedByServer(dataDir, path)) ? path : undefined;
}

/** Returns the path in the pointer file if it has the form that {@link prepareSocketPath} writes. */
async function pathInPointer(dataDir: string): Promise<string | undefined> {
  const text = await readFile(pointerOf(dataDir), 'utf8').catch(ignoreMissing);
  return text !== undefined && /[/\\]gatehouse-[0-9a-f]{16}[/\\]gatehouse\.sock$/.test(text)
    ? text
    : undefined;
}

/**
 * Whether a socket's directory belongs to the owner of the data directory and is accessible to nobody else. In a
 * temporary directory, another user may have replaced the directory of a killed server, in order to receive the
 * tenant's secrets.
 */
async function isOwnedByServer(dataDir: string, path: string): Promise<boolean> {
  const [data, socketDirectory] = await Promise.all(
    [directoryOf(dataDir), dirname(path)].map((one) => lstat(one).catch(ignoreMissing)),
  );
  if (data === undefined || socketDirectory === undefined) return false;
  return (
    socketDirectory.isDirectory() && socketDirectory.uid === data.uid && (socketDirectory.mode & 0o077) === 0
  );
}

function ignoreMissing(thrown: unknown): undefined {
  if ((thrown as NodeJS.ErrnoException).code !== 'ENOENT') throw thrown;
}
