// Commands that work on the store itself while no server uses it: sealing with another key, removing secrets, and
// repair.
import { type CommandProcess, print } from '../runtime/command-process.ts';
import { systemRandom } from '../runtime/secrets.ts';
import { readSettings } from '../settings/index.ts';
import { repairStore } from '../store/repair.ts';
import { keyFile } from '../store/sealing/key.ts';
import { resealStore, resetSealed } from '../store/sealing/reseal.ts';

/** Seals the secrets in the store with another key. */
export async function reseal(host: CommandProcess): Promise<void> {
  const { dataDir, databaseUrl: url, secretsKey: given, secretsKeyBefore: before } = readSettings(host.env);
  const source = { dataDir, given, before, random: systemRandom };
  if (url === undefined) await resealStore(source);
  else await (await import('../store/sql/postgres-reseal.ts')).resealDatabase({ ...source, url });
  const where = given === undefined ? `the new key in ${keyFile(dataDir)}` : 'SECRETS_KEY';
  print(host, `the secrets in the store are sealed with ${where} from now on`);
}

/** Removes the secrets that the store's key does not open, for a key that is lost for good. */
export async function resetSecrets(host: CommandProcess): Promise<void> {
  const { dataDir, databaseUrl: url, secretsKey: given } = readSettings(host.env);
  const { records, members } =
    url === undefined
      ? await resetSealed({ dataDir, given })
      : await (await import('../store/sql/postgres-reseal.ts')).resetDatabase({ dataDir, given, url });
  const name = given === undefined ? keyFile(dataDir) : 'SECRETS_KEY';
  print(
    host,
    `removed ${records} signing keys and authenticator apps, and ${members} secrets of the configuration, that ${name} does not open: users enrol the apps anew, and gatehouse apply puts back what the tenant file has`,
  );
}

/** Repairs a damaged embedded store; what is damaged is lost. @throws Error with DATABASE_URL. */
export async function repair(host: CommandProcess): Promise<void> {
  const { dataDir, databaseUrl } = readSettings(host.env);
  if (databaseUrl !== undefined)
    throw new Error(
      'this command works on the files of the embedded store, and DATABASE_URL is set: a damaged database is restored from its backup',
    );
  const found = await repairStore(dataDir);
  for (const line of found) print(host, line);
  if (found.length === 0) print(host, `nothing in the store in ${dataDir} is damaged or missing`);
}
