// What is noted of a session for those who administer it, and by actions: a record of its own, because the engine writes a
// session whole, from what it read a request ago.
import { type Clock, epochSeconds } from '../runtime/clock.ts';
import type { Store } from '../store/contract.ts';
import type { Config } from '../tenant/config.ts';

/** What is noted, by name. */
export type Notes = Readonly<Record<string, unknown>>;

const HOUR = 3600;
const noteKey = (sid: string) => `SessionNote:${sid}`;

/** What is noted of a session. */
export async function sessionNotes({ store }: { store: Store }, sid: string): Promise<Notes | undefined> {
  const note = await store.collection('artifacts').get(noteKey(sid));
  return note?.payload.metadata as Notes | undefined;
}

/**
 * Replaces what is noted of a session that there is; undefined removes it.
 * @param deps.clock what the store's records expire by.
 */
export async function noteSession(
  { store, config, clock }: { store: Store; config: Pick<Config, 'settings'>; clock: Clock },
  sid: string,
  metadata: Notes | undefined,
): Promise<void> {
  const artifacts = store.collection('artifacts');
  const id = noteKey(sid);
  if (metadata === undefined) {
    await artifacts.delete(id);
    return;
  }
  const expiresAt = epochSeconds(clock) + config.settings().tenant.session_lifetime * HOUR;
  // By its session it goes when that ends.
  await artifacts.put({ id, model: 'SessionNote', payload: { sessionUid: sid, metadata }, expiresAt });
}
