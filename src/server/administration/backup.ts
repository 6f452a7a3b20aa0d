// Backups of the store. The running server writes them; without one, the command does.
import type { KeyObject } from 'node:crypto';
import type http from 'node:http';
import type { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { VERSION } from '../../runtime/version.ts';
import type { Store } from '../../store/contract.ts';
import { keyFile, keyIn } from '../../store/sealing/key.ts';
import type { StoreSettings } from '../../store/store-settings.ts';
import { writeArchive } from '../../store/transfer/archive.ts';
import { askServer, endedEarly, responseTo } from './send.ts';

export const BACKUP_PATH = '/backup';

type KeySettings = Pick<StoreSettings, 'dataDir' | 'secretsKey'>;

/** Returns the key that the secrets of an open store are sealed with. @throws Error if it does not exist */
async function storeKey({ dataDir, secretsKey }: KeySettings): Promise<KeyObject> {
  const key = secretsKey ?? (await keyIn(keyFile(dataDir)));
  if (key === undefined) throw new Error(`${keyFile(dataDir)} is missing, and SECRETS_KEY is not set`);
  return key;
}

// docs/understand/decisions/operating.md#a-backup-does-not-contain-the-key
/** @param signal aborts it. */
export async function writeBackup(
  store: Store,
  settings: KeySettings,
  to: Writable,
  signal?: AbortSignal,
): Promise<void> {
  const key = await storeKey(settings);
  await writeArchive(store, key, { to, release: VERSION, ...(signal && { signal }) });
}

/** Responds with a backup. If it fails, the connection is destroyed, so that the file has no valid end. */
export async function answerBackup(
  store: Store,
  settings: KeySettings,
  response: http.ServerResponse,
  signal: AbortSignal,
): Promise<void> {
  response.writeHead(200, { 'content-type': 'application/gzip', connection: 'close' });
  await writeBackup(store, settings, response, signal).catch(() => response.destroy());
}

/** Asks the running server to write a backup. @returns false if no server runs. @throws Error with the reason */
export async function fetchBackup(dataDir: string, to: Writable): Promise<boolean> {
  const response = await askServer(dataDir, BACKUP_PATH, (request) => responseTo(request.end()));
  if (response === undefined) return false;
  if (response.statusCode !== 200) {
    response.resume();
    throw new Error('the running server does not know backups: is it of another release?');
  }
  await pipeline(response, to).catch((thrown: NodeJS.ErrnoException) => {
    throw thrown.code === 'ECONNRESET' ? endedEarly(thrown) : thrown;
  });
  return true;
}
