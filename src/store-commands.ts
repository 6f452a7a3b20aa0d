// What the command does with the store itself, while no server uses it: another key, and repair.
import { systemRandom } from './runtime/random.ts';
import { readSettings, type Settings } from './settings.ts';
import { repairStore } from './store/repair.ts';
import { keyFile } from './store/sealing/key.ts';
import { resealStore, resetSealed } from './store/sealing/reseal.ts';

/** @throws Error where the store is in a database: what follows works on the files of the embedded one. */
function embedded(): Settings {
  const settings = readSettings(process.env);
  if (settings.databaseUrl === undefined) return settings;
  throw new Error('this command is for the embedded store, and DATABASE_URL is set');
}

/** Seals the secrets in the store with another key. */
export async function reseal(): Promise<void> {
  const { dataDir, secretsKey: given, secretsKeyBefore: before } = embedded();
  await resealStore({ dataDir, given, before, random: systemRandom });
  const where = given === undefined ? `the new key in ${keyFile(dataDir)}` : 'SECRETS_KEY';
  console.log(`the secrets in the store are sealed with ${where} from now on`);
}

/** For a key of the store's secrets that is lost for good. */
export async function resetSecrets(): Promise<void> {
  const { dataDir, secretsKey: given } = embedded();
  const { records, members } = await resetSealed({ dataDir, given });
  const name = given === undefined ? keyFile(dataDir) : 'SECRETS_KEY';
  console.log(
    `removed ${records} signing keys and authenticator apps, and ${members} secrets of the configuration, that ${name} does not open: users enrol the apps anew, and gatehouse apply puts back what the tenant file has`,
  );
}

/** Repairs a damaged store, with loss. */
export async function repair(): Promise<void> {
  const { dataDir } = embedded();
  const found = await repairStore(dataDir);
  for (const line of found) console.log(line);
  if (found.length === 0) console.log(`nothing in the store in ${dataDir} is damaged or missing`);
}
