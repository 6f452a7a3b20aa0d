// Records what the engine accepts only once: the `jti` of a client's assertion (RFC 7523 §3), and that of a DPoP
// proof (RFC 9449 §11.1).
import { type Clock, epochSeconds } from '../../runtime/clock.ts';
import { UniqueKeyError } from '../../store/contract.ts';
import { replayKey } from '../base/request-replay.ts';
import type { UsedProofs } from '../binding/used-proofs.ts';

/** The engine's class of records of use. */
export interface ReplayDetectionClass {
  unique(iss: string, jti: string, exp: number): Promise<boolean>;
  instantiate(payload: object): { save(ttlSeconds: number): Promise<unknown> };
}

/**
 * Makes the check atomic. The engine first checks whether a `jti` was used and then stores it, so two simultaneous
 * requests would both be accepted.
 * @param wallClock the clock that dates in JWTs are compared with.
 * @param proofs the record of used DPoP proofs, and a function that tells whether a `jti` is that of the current
 *   request's proof.
 */
export function makeReplayCheckAtomic(
  model: ReplayDetectionClass,
  wallClock: Clock,
  { usedProofs, isProof }: { usedProofs: UsedProofs; isProof(jti: string): boolean },
): void {
  model.unique = async (iss, jti, exp) => {
    if (isProof(jti)) return usedProofs.recordUse(iss, jti);
    const used = model.instantiate({ jti: replayKey([iss, jti]), iss });
    try {
      await used.save(exp - epochSeconds(wallClock));
      return true;
    } catch (thrown) {
      if (thrown instanceof UniqueKeyError) return false;
      throw thrown;
    }
  };
}
