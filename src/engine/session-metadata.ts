// The metadata of a session, set by administrators and actions. It is a record of its own: the engine overwrites a session
// with what it read at the beginning of a request, so that metadata set meanwhile would be lost.
import { type Clock, epochSeconds } from '../runtime/clock.ts';
import type { Store } from '../store/contract.ts';
import type { Config } from '../tenant/config.ts';

export type SessionMetadata = Readonly<Record<string, unknown>>;

const HOUR = 3600;
const metadataKey = (sid: string) => `SessionNote:${sid}`;

/** The metadata of a session; undefined where none was set. */
export async function sessionMetadata(
  { store }: { store: Store },
  sid: string,
): Promise<SessionMetadata | undefined> {
  const kept = await store.collection('artifacts').get(metadataKey(sid));
  return kept?.payload.metadata as SessionMetadata | undefined;
}

/**
 * Replaces the metadata of a session that there is; undefined removes it.
 * @param deps.clock what the store's records expire by.
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
  // `sessionUid` has it removed with its session.
  await artifacts.put({ id, model: 'SessionNote', payload: { sessionUid: sid, metadata }, expiresAt });
}
