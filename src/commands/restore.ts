// `gatehouse restore`.
import type { KeyObject } from 'node:crypto';
import type { Logger } from 'pino';
import { type CommandProcess, print } from '../runtime/command-process.ts';
import { readSettings, type Settings } from '../settings/index.ts';
import { checkOf, keyFile, keyIn } from '../store/sealing/key.ts';
import { archiveParts, checkArchive } from '../store/transfer/archive.ts';
import { fillStore } from '../store/transfer/fill.ts';
import type { CommandDeclaration } from './command.ts';
import { keyName, withStore } from './store-place.ts';

export const restore: CommandDeclaration = {
  name: 'restore <file>',
  description: 'fill an empty store with a backup',
  run: ({ host, log }, file: string) => restoreFrom(file, host, log),
};

/**
 * Fills the store of the settings, which must be empty, from a backup. Nothing is written before the whole file was
 * verified.
 */
async function restoreFrom(file: string, host: CommandProcess, log: Logger): Promise<void> {
  const settings = readSettings(host.env);
  const { header } = await checkArchive(file);
  const key = await archiveKey(settings, file, header.key);
  // The clock stands at the time of the backup, so that nothing expires before the counts are compared.
  const opening = { log, clock: () => header.at, isFilling: true };
  const records = await withStore(settings, opening, (store) => fillStore(store, archiveParts(file, key)));
  const where = settings.databaseUrl === undefined ? settings.dataDir : 'DATABASE_URL';
  print(host, `${where}: ${records} records, as they were at ${new Date(header.at).toISOString()}`);
}

async function archiveKey(settings: Settings, file: string, check: string): Promise<KeyObject> {
  const key = settings.secretsKey ?? (await keyIn(keyFile(settings.dataDir)));
  if (key !== undefined && checkOf(key) === check) return key;
  throw new Error(
    `the secrets in ${file} are sealed with another key than ${keyName(settings)}: set SECRETS_KEY to that of the store that it is of, or put its keys/secrets.key to ${keyFile(settings.dataDir)}`,
  );
}
