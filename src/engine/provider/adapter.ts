// The engine's artifacts (sessions, codes, tokens …), kept in the store.
import { type Adapter, type AdapterPayload, errors } from 'oidc-provider';
import type { Frozen } from '../../records/base/record.ts';
import type { ArtifactRecord } from '../../records/state/engine.ts';
import { type Clock, epochSeconds, SET_BACK } from '../../runtime/clock.ts';
import type { Collection, Store, Write } from '../../store/contract.ts';
import type { Config } from '../../tenant/config.ts';
import { isSessionExpired } from '../admission/lifetimes.ts';
import { PUSHED_MODEL } from '../authorize/pushed-requests.ts';
import { artifactKey, presentedPayload, storedPayload } from '../base/artifact-keys.ts';
import type { Commits, ReadAhead } from '../base/commit.ts';
import { ALREADY_USED } from '../base/failures.ts';
import { clientMetadata, metadataExpiry } from '../client/applications.ts';
import type { ServerLoginCallbacks } from '../client/server-login-callbacks.ts';
import { refreshTokenAdapter, revokeGrant } from '../session/refresh-families.ts';
import { removeIfSessionEnded } from '../session/sessions.ts';

interface AdapterDependencies {
  store: Store;
  config: Config;
  clock: Clock;
  serverLoginCallbacks: ServerLoginCallbacks;
  commits: Commits;
  ahead: Pick<ReadAhead, 'artifact'>;
  /** The grant types that the token endpoint knows; the same object for as long as they do not change. */
  grantTypes(): ReadonlySet<string>;
}

/** Makes the engine's adapters, one for each of its models. Applications are read, never written. */
export function createAdapter(deps: AdapterDependencies): (model: string) => Adapter {
  return (model) => {
    if (model === 'Client') return clientAdapter(deps);
    const adapter = artifactAdapter(deps, model);
    // Our own endpoint stores pushed requests, as the client sent them.
    if (model === PUSHED_MODEL) return { ...adapter, upsert: async () => undefined };
    if (model === 'RefreshToken') return refreshTokenAdapter(adapter, deps);
    return adapter;
  };
}

/** The models that a token response stores in one commit. They outlive the session, so its end needs no check. */
const COMMITTED = new Set(['Grant', 'AccessToken']);

/** Returns the write of a record of such a commit: a grant may exist already, an access token is stored once. */
function commitWrite(record: ArtifactRecord): Write {
  const isNew = record.model === 'AccessToken';
  return isNew ? { collection: 'artifacts', insert: record } : { collection: 'artifacts', put: record };
}

function clientAdapter({ config, clock, grantTypes, serverLoginCallbacks }: AdapterDependencies): Adapter {
  const refuse = async () => {
    throw new Error('applications are managed by the tenant, not by the engine');
  };
  // Client metadata by record: a record that the store hands out never changes, so its metadata is made once.
  const cache = new WeakMap<
    object,
    { known: ReadonlySet<string>; until: number; metadata: AdapterPayload }
  >();
  return {
    find: async (clientId) => {
      const client = await config.client(clientId);
      if (client === undefined) return undefined;
      const known = grantTypes();
      const cached = cache.get(client);
      const now = clock();
      if (cached?.known === known && now < cached.until) return cached.metadata;
      const metadata = clientMetadata(client, known, serverLoginCallbacks, now);
      cache.set(client, { known, until: metadataExpiry(client, now), metadata });
      return metadata;
    },
    upsert: refuse,
    findByUid: refuse,
    findByUserCode: refuse,
    consume: refuse,
    destroy: refuse,
    revokeByGrantId: refuse,
  };
}

function artifactAdapter(deps: AdapterDependencies, model: string): Adapter {
  const { store, clock } = deps;
  const artifacts = store.collection('artifacts');
  const key = (id: string) => artifactKey(model, id);
  const findBy = async (index: string, value: string) => {
    const found = (await artifacts.findBy(index, value)).find((record) => record.model === model);
    return found === undefined || isExpired(found) ? undefined : presentedPayload(found, undefined);
  };
  const isExpired = ({ payload }: Frozen<ArtifactRecord>) =>
    model === 'Session' && isSessionExpired(deps.config, clock, payload);

  return {
    upsert: async (id, payload, expiresIn) => {
      // The engine stores a new session for every browser that sends an old cookie. Nobody is logged in to it, so
      // nothing is lost without it, and invented cookies cannot fill the store.
      if (model === 'Session' && payload.accountId === undefined) return;
      const record: ArtifactRecord = { id: key(id), model, payload: storedPayload(model, id, payload) };
      if (expiresIn !== undefined) record.expiresAt = epochSeconds(clock) + expiresIn;
      if (model === 'ReplayDetection') return insertOnce(artifacts, record);
      if (COMMITTED.has(model) && deps.commits.add(commitWrite(record))) return;
      await artifacts.put(record);
      await removeIfSessionEnded(artifacts, record);
    },
    find: async (id) => {
      const found = await deps.ahead.artifact(key(id));
      if (found === undefined || isExpired(found)) return undefined;
      return presentedPayload(found, id);
    },
    findByUid: (uid) => findBy('uid', uid),
    findByUserCode: (userCode) => findBy('userCode', userCode),
    consume: (id) => consumeOnce(artifacts, key(id), epochSeconds(clock)),
    destroy: async (id) => {
      await artifacts.delete(key(id));
    },
    revokeByGrantId: async (grantId) => {
      await artifacts.deleteBy('grantId', grantId);
    },
  };
}

/**
 * Stores the id of something that may be used once. The id stays taken even if the clock is set back to a time when
 * it would be valid again.
 * @throws UniqueKeyError when it was used before.
 */
async function insertOnce(artifacts: Collection<ArtifactRecord>, record: ArtifactRecord): Promise<void> {
  const { expiresAt = 0 } = record;
  // A client can send an `exp` that is too large to be a time.
  if (!Number.isFinite(expiresAt)) throw new errors.InvalidClientAuth('exp is too far away');
  await artifacts.insert({ ...record, expiresAt: expiresAt + SET_BACK });
}

/**
 * Marks a code as used. The engine checks `consumed` when it reads the code; of two requests that have both read it
 * unused, the second is caught here, and what the code's grant gave is revoked (RFC 6749 §4.1.2).
 * @param now epoch seconds.
 */
async function consumeOnce(artifacts: Collection<ArtifactRecord>, id: string, now: number): Promise<void> {
  let reusedGrant: string | undefined;
  const found = await artifacts.update(id, (current) => {
    const { consumed, grantId } = current.payload;
    if (consumed !== undefined) reusedGrant = String(grantId);
    return { ...current, payload: { ...current.payload, consumed: consumed ?? now } };
  });
  if (found === undefined) throw new errors.InvalidGrant(ALREADY_USED);
  if (reusedGrant === undefined) return;
  await revokeGrant(artifacts, reusedGrant);
  throw new errors.InvalidGrant(ALREADY_USED);
}
