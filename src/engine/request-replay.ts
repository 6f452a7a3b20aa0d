// Request objects that count once, by their `jti` (RFC 7519 §4.1.7).
import { AuthError } from '../http/errors.ts';
import { SET_BACK } from '../runtime/clock.ts';
import { sha256 } from '../runtime/secrets.ts';
import { type Store, UniqueKeyError } from '../store/contract.ts';
import { artifactKey } from './artifact-keys.ts';
import type { RequestObject } from './request-object.ts';

const MODEL = 'ReplayDetection';

/**
 * Marks an object as used, where it says which one it is and until when it is good.
 * @throws AuthError `invalid_request_object` when it was used before, of racers all but one.
 */
export async function useOnce(
  store: Store,
  clientId: string,
  { jti, expiresAt }: RequestObject,
): Promise<void> {
  if (jti === undefined || expiresAt === undefined) return;
  const id = artifactKey(MODEL, sha256(JSON.stringify(['request', clientId, jti])));
  try {
    await store
      .collection('artifacts')
      .insert({ id, model: MODEL, payload: {}, expiresAt: Math.ceil(expiresAt) + SET_BACK });
  } catch (thrown) {
    if (!(thrown instanceof UniqueKeyError)) throw thrown;
    throw new AuthError(400, 'invalid_request_object', 'The request object is invalid: it was used before');
  }
}
