// `gatehouse repair`.
import { type CommandProcess, print } from '../runtime/command-process.ts';
import { readSettings } from '../settings/index.ts';
import { repairStore } from '../store/repair.ts';

import type { CommandDeclaration } from './command.ts';

export const repair: CommandDeclaration = {
  name: 'repair',
  description: 'give up what is damaged or missing in the store, and keep the rest; backups are better',
  run: ({ host }) => repairEmbedded(host),
};

/** Repairs a damaged embedded store; what is damaged is lost. @throws Error with DATABASE_URL. */
export async function repairEmbedded(host: CommandProcess): Promise<void> {
  const { dataDir, databaseUrl } = readSettings(host.env);
  if (databaseUrl !== undefined)
    throw new Error(
      'this command works on the files of the embedded store, and DATABASE_URL is set: a damaged database is restored from its backup',
    );
  const found = await repairStore(dataDir);
  for (const line of found) print(host, line);
  if (found.length === 0) print(host, `nothing in the store in ${dataDir} is damaged or missing`);
}
