// The keys under which the engine's artifacts are stored. Values that give access by themselves (a session's
// cookie, a code, an opaque token, the cookie of a waiting login) are stored only as a hash, so that somebody who
// reads the store or a backup can use none of them. The values have at least 128 bits of randomness, so a plain
// SHA-256 reveals nothing.
// docs/decisions/store.md#sessions-waiting-logins-codes-and-tokens-are-stored-under-the-sha-256-of-their-values
import type { AdapterPayload } from 'oidc-provider';
import type { ArtifactRecord } from '../../records/engine.ts';
import { type Frozen, thawed } from '../../records/record.ts';
import { sha256 } from '../../runtime/secrets.ts';
import type { Collection, Store } from '../../store/contract.ts';

/**
 * Models whose ids are no secrets: a grant's is only a reference, and that of a used assertion is a hash already.
 */
const PUBLIC_IDS = new Set(['Grant', 'ReplayDetection']);

/** Models that older versions stored under their plain values. */
const MODELS_WITH_PLAIN_KEYS = ['AccessToken', 'AuthorizationCode', 'Interaction', 'RefreshToken', 'Session'];

/** Replaces the id in a stored URL that contains it. */
const ID = '{id}';

/** Returns the key of an artifact in the store. @param id the value that the engine or its caller presents. */
export function artifactKey(model: string, id: string): string {
  if (PUBLIC_IDS.has(model)) return `${model}:${id}`;
  return `${model}.sha256:${sha256(id)}`;
}

/** Returns the payload as it is stored: without the id, and without ids of other artifacts. */
export function storedPayload(model: string, id: string, payload: AdapterPayload): Record<string, unknown> {
  if (PUBLIC_IDS.has(model)) return { ...payload };
  const { jti: _id, ...stored } = payload;
  if (typeof stored.returnTo === 'string') stored.returnTo = stored.returnTo.replaceAll(id, ID);
  // A waiting login contains its session's uid and cookie; nothing reads the cookie.
  if (typeof stored.session === 'object' && stored.session !== null) {
    const { cookie: _cookie, ...session } = stored.session as Record<string, unknown>;
    stored.session = session as NonNullable<AdapterPayload['session']>;
  }
  return stored;
}

/**
 * Returns a stored payload as the engine expects it.
 * @param id as it was presented; undefined when the artifact was found by another key, and the payload then has no
 *   id.
 */
export function presentedPayload(
  { model, payload: stored }: Frozen<ArtifactRecord>,
  id: string | undefined,
): AdapterPayload {
  // A copy, because the engine changes it and records of the store must not be changed.
  const payload = thawed(stored) as AdapterPayload;
  if (PUBLIC_IDS.has(model) || id === undefined) return payload;
  payload.jti = id;
  if (typeof payload.returnTo === 'string') payload.returnTo = payload.returnTo.replaceAll(ID, id);
  return payload;
}

/**
 * Moves the artifacts of an older version to hashed keys and compacts the store, so that their values are gone from
 * the disk. Reads nothing else where there are none.
 */
export async function hashOldKeys(store: Store): Promise<void> {
  const artifacts = store.collection('artifacts');
  let hashed = 0;
  for (const model of MODELS_WITH_PLAIN_KEYS) {
    for (;;) {
      const { records } = await artifacts.list({ after: `${model}:`, limit: 500 });
      const plain = records.filter(({ id }) => id.startsWith(`${model}:`));
      if (plain.length === 0) break;
      await Promise.all(plain.map((record) => hashKey(artifacts, record)));
      hashed += plain.length;
    }
  }
  if (hashed > 0) await store.compact();
}

async function hashKey(artifacts: Collection<ArtifactRecord>, record: Frozen<ArtifactRecord>): Promise<void> {
  const { model } = record;
  const id = record.id.slice(model.length + 1);
  const payload = storedPayload(model, id, structuredClone(record.payload) as AdapterPayload);
  // In this order a crash leaves both records, and the next start continues.
  await artifacts.put({ ...structuredClone(record), id: artifactKey(model, id), payload } as ArtifactRecord);
  await artifacts.delete(record.id);
}
