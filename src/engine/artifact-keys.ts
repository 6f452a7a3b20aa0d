// Under which key an artifact of the engine is kept. What opens something by itself (a session's cookie, a code, an
// opaque token, the cookie of a waiting login) is kept as its hash alone: who reads the store, or a backup of it,
// can use none of it. The values have 128 bits and more of randomness, so a plain SHA-256 tells nothing of them.
import type { AdapterPayload } from 'oidc-provider';
import type { ArtifactRecord } from '../records/engine.ts';
import { type Frozen, thawed } from '../records/record.ts';
import { sha256 } from '../runtime/secrets.ts';
import type { Collection, Store } from '../store/contract.ts';

/** Artifacts whose ids are no secrets: a grant's is a reference of ours, an assertion's mark is a hash already. */
const PUBLIC_IDS = new Set(['Grant', 'ReplayDetection']);

/** Artifacts that versions before the hashes kept under their own values. */
const ONCE_PLAIN = ['AccessToken', 'AuthorizationCode', 'Interaction', 'RefreshToken', 'Session'];

/** Stands for the id in an address that carries it, while that is stored. */
const ID = '{id}';

/** The key of an artifact in the store. @param id the value that the engine, or a caller of it, presents. */
export function artifactKey(model: string, id: string): string {
  if (PUBLIC_IDS.has(model)) return `${model}:${id}`;
  return `${model}.sha256:${sha256(id)}`;
}

/** What of a payload is stored: all but the id, and others' ids. */
export function storedPayload(model: string, id: string, payload: AdapterPayload): Record<string, unknown> {
  if (PUBLIC_IDS.has(model)) return { ...payload };
  const { jti: _id, ...kept } = payload;
  if (typeof kept.returnTo === 'string') kept.returnTo = kept.returnTo.replaceAll(id, ID);
  // A waiting login stores its session by uid and by cookie; nothing reads the cookie.
  if (typeof kept.session === 'object' && kept.session !== null) {
    const { cookie: _cookie, ...session } = kept.session as Record<string, unknown>;
    kept.session = session as NonNullable<AdapterPayload['session']>;
  }
  return kept;
}

/**
 * The payload as the engine has it.
 * @param id as it was presented; undefined when the artifact was found by something else: it then has none.
 */
export function presentedPayload(
  { model, payload: stored }: Frozen<ArtifactRecord>,
  id: string | undefined,
): AdapterPayload {
  // The engine changes what it is given; what the store hands out is the store's.
  const payload = thawed(stored) as AdapterPayload;
  if (PUBLIC_IDS.has(model) || id === undefined) return payload;
  payload.jti = id;
  if (typeof payload.returnTo === 'string') payload.returnTo = payload.returnTo.replaceAll(ID, id);
  return payload;
}

/**
 * Puts the artifacts of an older version under their hashes, and leaves nothing of their values on disk; where there
 * are none it reads nothing.
 */
export async function hashOldKeys(store: Store): Promise<void> {
  const artifacts = store.collection('artifacts');
  let hashed = 0;
  for (const model of ONCE_PLAIN) {
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
  // In this order a crash leaves both, and the next start goes on.
  await artifacts.put({ ...structuredClone(record), id: artifactKey(model, id), payload } as ArtifactRecord);
  await artifacts.delete(record.id);
}
