// The metadata of a session, set by administrators and actions. It has a record of its own, because the engine
// overwrites a session with what it read at the beginning of a request, and metadata set meanwhile would be lost.
import { type Clock, epochSeconds } from '../../runtime/clock.ts';
import type { Store } from '../../store/contract.ts';
import type { Config } from '../../tenant/config.ts';

export type SessionMetadata = Readonly<Record<string, unknown>>;

const HOUR = 3600;
const metadataKey = (sid: string) => `SessionNote:${sid}`;

/** Returns the metadata of a session; undefined when none was set. */
export async function sessionMetadata(
  { store }: { store: Store },
  sid: string,
): Promise<SessionMetadata | undefined> {
  const stored = await store.collection('artifacts').get(metadataKey(sid));
  return stored?.payload.metadata as SessionMetadata | undefined;
}

/**
 * Replaces the metadata of an existing session; undefined removes it.
 * @param deps.clock the clock by which records of the store expire.
 */
export async function setSessionMetadata(
  { store, config, clock }: { store: Store; config: Pick<Config, 'settings'>; clock: Clock },
  sid: string,
  metadata: SessionMetadata | undefined,
): Promise<void> {
  const artifacts = store.collection('artifacts');
  const id = metadataKey(sid);
  if (metadata === undefined) {
    await artifacts.delete(id);
    return;
  }
  const expiresAt = epochSeconds(clock) + config.settings().tenant.session_lifetime * HOUR;
  // `sessionUid` lets the end of the session remove it.
  await artifacts.put({ id, model: 'SessionNote', payload: { sessionUid: sid, metadata }, expiresAt });
}
