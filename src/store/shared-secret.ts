// Secrets that all processes of a tenant have in common, each made when it is first asked for.
import { createSecretKey, type KeyObject } from 'node:crypto';
import type { Random } from '../runtime/random.ts';
import { type Store, UniqueKeyError } from './contract.ts';

interface SecretDependencies {
  store: Pick<Store, 'collection'>;
  random: Random;
}

/** The secret of a purpose, as a key to seal by. @param id what for. */
export const sharedKey = async (deps: SecretDependencies, id: string): Promise<KeyObject> =>
  createSecretKey(await sharedSecret(deps, id));

/** The secret of a purpose. @param id what for. @returns 32 bytes. */
export async function sharedSecret({ store, random }: SecretDependencies, id: string): Promise<Buffer> {
  const secrets = store.collection('sharedSecrets');
  const found = await secrets.get(id);
  if (found !== undefined) return Buffer.from(found.value, 'base64url');
  try {
    await secrets.insert({ id, value: random(32).toString('base64url') });
  } catch (thrown) {
    // Another process was first.
    if (!(thrown instanceof UniqueKeyError)) throw thrown;
  }
  return sharedSecret({ store, random }, id);
}
