// Sessions at the tenant of the hosted service that this one takes the place of. Each of them begins one session here: when that
// one ends, however it does, the old one must not bring the user back.
// docs/understand/decisions/moving.md#a-session-of-the-old-tenant-begins-one-session-here
import { thawed } from '../../records/base/record.ts';
import type { ArtifactRecord } from '../../records/state/engine.ts';
import { type Clock, epochSeconds } from '../../runtime/clock.ts';
import { sha256 } from '../../runtime/secrets.ts';
import type { Store } from '../../store/contract.ts';

interface OldSession {
  /** What identifies it at the old tenant. */
  id: string;
  /** Identifies the browser that has it. */
  browser: string;
  /** Until when it might begin a session here, epoch seconds. */
  until: number;
}

/**
 * Takes the one use that a session has.
 * @returns false when it was used before.
 */
export type UseOldSession = (session: OldSession) => Promise<boolean>;

/** Windows of one browser that open at the same time may each use its session, for this long, seconds. */
const AT_ONCE = 60;

export function oldSessionUses({ store, clock }: { store: Store; clock: Clock }): UseOldSession {
  const artifacts = store.collection('artifacts');
  return async ({ id, browser, until }) => {
    const key = `MovedSession.sha256:${sha256(id)}`;
    let mayUse = false;
    await artifacts.upsert(key, (current): ArtifactRecord => {
      const now = epochSeconds(clock);
      const isSame = current?.payload.browser === browser && now - Number(current.payload.at) < AT_ONCE;
      mayUse = current === undefined || isSame;
      if (current !== undefined) return thawed(current);
      return { id: key, model: 'MovedSession', payload: { browser, at: now }, expiresAt: until };
    });
    return mayUse;
  };
}
