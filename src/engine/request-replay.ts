// Request objects that count once, by their `jti` (RFC 7519 §4.1.7).
import { SET_BACK } from '../runtime/clock.ts';
import { sha256 } from '../runtime/secrets.ts';
import { type Store, UniqueKeyError } from '../store/contract.ts';
import { artifactKey } from './artifact-keys.ts';
import type { RequestObject } from './request-object.ts';

const MODEL = 'ReplayDetection';

/** What is told of an object that was used before (RFC 9101 §6.3). */
export const USED = 'The request object is invalid: it was used before';

/**
 * Marks an object as used, where it says which one it is and until when it is good.
 * @returns whether it was not; of racers one is the first.
 */
export async function useOnce(
  store: Store,
  clientId: string,
  { jti, expiresAt }: RequestObject,
): Promise<boolean> {
  if (jti === undefined || expiresAt === undefined) return true;
  const id = artifactKey(MODEL, sha256(JSON.stringify(['request', clientId, jti])));
  try {
    await store
      .collection('artifacts')
      .insert({ id, model: MODEL, payload: {}, expiresAt: Math.ceil(expiresAt) + SET_BACK });
  } catch (thrown) {
    if (!(thrown instanceof UniqueKeyError)) throw thrown;
    return false;
  }
  return true;
}
