// Secrets that all processes of a tenant share. Each is created when it is first requested.
import { createSecretKey, type KeyObject } from 'node:crypto';
import type { Random } from '../runtime/secrets.ts';
import { type Store, UniqueKeyError } from './contract.ts';

interface SecretDependencies {
  store: Pick<Store, 'collection'>;
  random: Random;
}

/** Returns the shared secret of a purpose as a key for encryption. @param id names the purpose. */
export const sharedKey = async (deps: SecretDependencies, id: string): Promise<KeyObject> =>
  createSecretKey(await sharedSecret(deps, id));

/** Returns the shared secret of a purpose, 32 bytes. @param id names the purpose. */
export async function sharedSecret({ store, random }: SecretDependencies, id: string): Promise<Buffer> {
  const secrets = store.collection('sharedSecrets');
  const found = await secrets.get(id);
  if (found !== undefined) return Buffer.from(found.value, 'base64url');
  try {
    await secrets.insert({ id, value: random(32).toString('base64url') });
  } catch (thrown) {
    // Another process has created it first.
    if (!(thrown instanceof UniqueKeyError)) throw thrown;
  }
  return sharedSecret({ store, random }, id);
}
