// What the command does with the store itself, while no server uses it: another key, and repair.
import { systemRandom } from './runtime/random.ts';
import { readSettings } from './settings.ts';
import { repairStore } from './store/repair.ts';
import { keyFile } from './store/sealing/key.ts';
import { resealStore, resetSealed } from './store/sealing/reseal.ts';

/** Seals the secrets in the store with another key. */
export async function reseal(): Promise<void> {
  const {
    dataDir,
    databaseUrl: url,
    secretsKey: given,
    secretsKeyBefore: before,
  } = readSettings(process.env);
  const source = { dataDir, given, before, random: systemRandom };
  if (url === undefined) await resealStore(source);
  else await (await import('./store/sql/postgres-reseal.ts')).resealDatabase({ ...source, url });
  const where = given === undefined ? `the new key in ${keyFile(dataDir)}` : 'SECRETS_KEY';
  console.log(`the secrets in the store are sealed with ${where} from now on`);
}

/** For a key of the store's secrets that is lost for good. */
export async function resetSecrets(): Promise<void> {
  const { dataDir, databaseUrl: url, secretsKey: given } = readSettings(process.env);
  const { records, members } =
    url === undefined
      ? await resetSealed({ dataDir, given })
      : await (await import('./store/sql/postgres-reseal.ts')).resetDatabase({ dataDir, given, url });
  const name = given === undefined ? keyFile(dataDir) : 'SECRETS_KEY';
  console.log(
    `removed ${records} signing keys and authenticator apps, and ${members} secrets of the configuration, that ${name} does not open: users enrol the apps anew, and gatehouse apply puts back what the tenant file has`,
  );
}

/** Repairs a damaged store, with loss. */
export async function repair(): Promise<void> {
  const { dataDir, databaseUrl } = readSettings(process.env);
  if (databaseUrl !== undefined)
    throw new Error(
      'this command works on the files of the embedded store, and DATABASE_URL is set: a damaged database is restored from its backup',
    );
  const found = await repairStore(dataDir);
  for (const line of found) console.log(line);
  if (found.length === 0) console.log(`nothing in the store in ${dataDir} is damaged or missing`);
}
