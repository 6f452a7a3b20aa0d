// Accepts a JWT that asks for something only once, by its `jti` (RFC 7519 §4.1.7) or by the whole JWT.
import { SET_BACK } from '../../runtime/clock.ts';
import { sha256 } from '../../runtime/secrets.ts';
import { type Store, UniqueKeyError } from '../../store/contract.ts';
import { artifactKey } from './artifact-keys.ts';

/** The model of records of use, ours and the engine's. */
export const REPLAY_MODEL = 'ReplayDetection';

/** Returns the id of a use. @param idParts what may be used once, as for {@link recordUse}. */
export const replayKey = (idParts: readonly string[]): string => sha256(JSON.stringify(idParts));

/** The description for a request object that was used before (RFC 9101 §7). */
export const OBJECT_REUSED = 'The request object is invalid: it was used before';

/**
 * Marks a request object as used. One without `jti` or `exp` may be used again.
 * @returns true for the first use; of simultaneous ones exactly one is the first.
 */
export async function recordObjectUse(
  store: Store,
  clientId: string,
  { jti, expiresAt }: { jti: string | undefined; expiresAt: number | undefined },
): Promise<boolean> {
  if (jti === undefined || expiresAt === undefined) return true;
  return recordUse(store, ['request', clientId, jti], expiresAt);
}

/**
 * Stores the use of something that may be used once. It stays used when the clock is set back.
 * @param idParts the parts of its id, its kind first; unique among everything that is stored here.
 * @param expiresAt epoch seconds after which it is refused anyway.
 * @returns true for the first use; of simultaneous ones exactly one is the first.
 */
export async function recordUse(
  store: Store,
  idParts: readonly string[],
  expiresAt: number,
): Promise<boolean> {
  const id = artifactKey(REPLAY_MODEL, replayKey(idParts));
  try {
    await store
      .collection('artifacts')
      .insert({ id, model: REPLAY_MODEL, payload: {}, expiresAt: Math.ceil(expiresAt) + SET_BACK });
  } catch (thrown) {
    if (!(thrown instanceof UniqueKeyError)) throw thrown;
    return false;
  }
  return true;
}
