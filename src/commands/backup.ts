// `gatehouse backup`.
import type { Logger } from 'pino';
import { type CommandProcess, print } from '../runtime/command-process.ts';
import { naming } from '../runtime/files.ts';
import { fetchBackup, writeBackup } from '../server/administration/backup.ts';
import { readSettings, type Settings } from '../settings/index.ts';
import { checkArchive } from '../store/transfer/archive.ts';
import { writeWhole } from '../store/write-whole.ts';
import type { CommandDeclaration } from './command.ts';
import { keyName, withStore } from './store-place.ts';

export const backup: CommandDeclaration = {
  name: 'backup <file>',
  description: 'write the whole store to a new file, as it is at one moment, while the server runs or not',
  run: ({ host, log }, file: string) => backUp(file, host, log),
};

/**
 * Writes a backup to a file that must not exist, and verifies the whole file before it is renamed to its final name.
 */
async function backUp(file: string, host: CommandProcess, log: Logger): Promise<void> {
  const settings = readSettings(host.env);
  const records = await writeWhole(file, { replaces: false }, async (unfinished, to) => {
    await naming(unfinished, writeTo(settings, to, log));
    return (await checkArchive(unfinished)).records;
  });
  print(host, `${file}: ${records} records`);
  print(
    host,
    `its secrets are sealed with ${keyName(settings)}, which is not in it: keep that elsewhere, a backup without it is not whole`,
  );
}

/**
 * Writes the backup: through the running server where it has the embedded store open, otherwise from the store itself.
 * A database is read while servers use it.
 */
async function writeTo(settings: Settings, to: NodeJS.WritableStream, log: Logger): Promise<void> {
  const sink = to as Parameters<typeof fetchBackup>[1];
  if (settings.databaseUrl === undefined && (await fetchBackup(settings.dataDir, sink))) return;
  await withStore(settings, { log }, (store) => writeBackup(store, settings, sink));
}
