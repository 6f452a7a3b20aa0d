// Checks the machine: space on the disk, and who can read the data.
import { stat, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Settings } from '../../settings/settings.ts';
import { keyFile } from '../../store/sealing/key.ts';
import { type Finding, findings, messageOf } from './finding.ts';

const MIB = 1 << 20;
/** Free space, bytes. Below `fault` the store will soon be unable to write. */
const MIN_FREE_BYTES = { fault: 100 * MIB, warning: 1024 * MIB };

const disk = findings('disk');
const permissions = findings('permissions');

/** Checks the free space where the data directory is, or will be. */
export async function checkDisk({ dataDir }: Pick<Settings, 'dataDir'>): Promise<Finding> {
  try {
    const { bavail, bsize } = await statfs(await existingDirectory(dataDir));
    const free = bavail * bsize;
    const text = `${Math.floor(free / MIB)} MiB are free where ${dataDir} is`;
    if (free < MIN_FREE_BYTES.fault) return disk.fault(`${text}: the store needs room to write`);
    return free < MIN_FREE_BYTES.warning ? disk.warning(text) : disk.ok(text);
  } catch (thrown) {
    return disk.fault(`the disk of ${dataDir} cannot be asked: ${messageOf(thrown)}`);
  }
}

/** Returns a directory, or the nearest one above it that exists. */
async function existingDirectory(directory: string): Promise<string> {
  try {
    await stat(directory);
    return directory;
  } catch (thrown) {
    const parent = dirname(directory);
    if ((thrown as NodeJS.ErrnoException).code !== 'ENOENT' || parent === directory) throw thrown;
    return existingDirectory(parent);
  }
}

/** Checks whether other users of the machine can read secrets. */
export async function checkPermissions({ dataDir, secretsKey }: Settings): Promise<Finding> {
  if (process.platform === 'win32') return permissions.ok('Windows has none that could be read here');
  const keyMode = secretsKey === undefined ? await modeForOthers(keyFile(dataDir)) : undefined;
  if (keyMode !== undefined)
    return permissions.fault(`${keyFile(dataDir)} can be read by others (${keyMode}): chmod 600 it`);
  const directoryMode = await modeForOthers(dataDir);
  if (directoryMode !== undefined)
    return permissions.warning(`${dataDir} can be looked into by others (${directoryMode}): chmod 700 it`);
  return permissions.ok(`${dataDir} is its owner's alone`);
}

/** Returns the mode of a file that users other than its owner can open; otherwise undefined. */
async function modeForOthers(path: string): Promise<string | undefined> {
  const stats = await stat(path).catch(() => undefined);
  return stats === undefined || (stats.mode & 0o077) === 0 ? undefined : (stats.mode & 0o777).toString(8);
}
