// Ends a single session: records the end, removes the session and what is bound to it, and removes what concurrent
// requests store in it afterwards.

import type { ArtifactRecord } from '../../records/engine.ts';
import type { Frozen } from '../../records/record.ts';
import { sessionUid } from '../../records/record.ts';
import { type Clock, epochSeconds } from '../../runtime/clock.ts';
import { type Collection, type Store, UniqueKeyError, type Write } from '../../store/contract.ts';
import type { EndedSession, LogoutChannels } from './logout-channels.ts';
import { userSessionOf } from './user-session.ts';

interface EndingDependencies {
  store: Store;
  clock: Clock;
  logoutChannels: Pick<LogoutChannels, 'prepare'>;
}

type Artifacts = Collection<ArtifactRecord>;
type Artifact = Frozen<ArtifactRecord>;

/**
 * How long an ended session is remembered, seconds: longer than any request that has read the session before and
 * may still write it.
 */
const REMEMBERED_SECONDS = 120;

const endedKey = (sid: string) => `EndedSession:${sid}`;

/**
 * Removes a record that was written while its session ended. An end is stored before anything is removed, and this
 * function looks for it after the write, so that the record is deleted, whichever of the two was stored first.
 * @param record as it was just written.
 */
export async function removeIfSessionEnded(artifacts: Artifacts, record: ArtifactRecord): Promise<void> {
  if (!ENDING_MODELS.has(record.model)) return;
  const sid = sessionOf(record);
  if (sid === undefined || (await artifacts.get(endedKey(sid))) === undefined) return;
  await artifacts.delete(record.id);
}

/** The models that end with their session. Tokens are not among them: those of `offline_access` stay. */
const ENDING_MODELS = new Set(['Session', 'Interaction', 'AuthorizationCode', 'Grant']);

/** Returns the `sid` of the session that an artifact belongs to. */
export function sessionOf({ model, payload }: Artifact): string | undefined {
  const uid = model === 'Session' ? payload.uid : sessionUid(payload);
  return typeof uid === 'string' ? uid : undefined;
}

/**
 * Removes a session and what is bound to it.
 * @returns the session, to exactly one of concurrent calls; undefined when nobody was logged in to it.
 */
export async function removeSession(
  deps: EndingDependencies,
  sid: string,
  requestsStay: boolean,
  details: Pick<EndedSession, 'reason' | 'startedBy'>,
): Promise<EndedSession | undefined> {
  const artifacts = deps.store.collection('artifacts');
  const [found] = await artifacts.findBy('uid', sid);
  if (found === undefined) return undefined;
  const session = userSessionOf(found.payload);
  const ended = session && { sid, userId: session.userId, clientIds: session.clientIds, ...details };
  const notification = ended && (await deps.logoutChannels.prepare(ended));
  const isFirst = await recordEnd(deps, sid, notification?.writes ?? []);
  await artifacts.deleteBy('uid', sid);
  if (requestsStay) await detachRequests(artifacts, sid);
  await removeSessionArtifacts(artifacts, sid);
  if (!isFirst) return undefined;
  notification?.start();
  return ended;
}

/**
 * Stores in one commit that a session has ended and that its applications are to be told.
 * @returns false for all but the first of concurrent calls.
 */
async function recordEnd(
  { store, clock }: EndingDependencies,
  sid: string,
  notificationWrites: readonly Write[],
): Promise<boolean> {
  const expiresAt = epochSeconds(clock) + REMEMBERED_SECONDS;
  const insert = { id: endedKey(sid), model: 'EndedSession', payload: {}, expiresAt };
  try {
    await store.batch([{ collection: 'artifacts', insert }, ...notificationWrites]);
    return true;
  } catch (thrown) {
    if (thrown instanceof UniqueKeyError) return false;
    throw thrown;
  }
}

/** Makes the requests that wait in a session wait for a login again. */
async function detachRequests(artifacts: Artifacts, sid: string): Promise<void> {
  const waiting = (await artifacts.findBy('session', sid)).filter(({ model }) => model === 'Interaction');
  await Promise.all(
    waiting.map(({ id }) =>
      artifacts.update(id, (next) => {
        const { session: _, result: _answered, lastSubmission: _kept, ...payload } = next.payload;
        const prompt = { name: 'login', reasons: ['no_session'], details: {} };
        return { ...next, payload: { ...payload, prompt } };
      }),
    ),
  );
}

/** Removes what is bound to a session, except grants with a refresh token and their access tokens. */
async function removeSessionArtifacts(artifacts: Artifacts, sid: string): Promise<void> {
  const sessionArtifacts = await artifacts.findBy('session', sid);
  const lasting = new Set(
    sessionArtifacts.filter(({ model }) => model === 'RefreshToken').map(({ payload }) => payload.grantId),
  );
  const ending = sessionArtifacts.filter(({ model, payload }) => {
    if (model === 'AuthorizationCode' || model === 'Interaction') return true;
    return !lasting.has(model === 'Grant' ? payload.jti : payload.grantId);
  });
  await Promise.all(ending.map(({ id }) => artifacts.delete(id)));
}
