// The keys under which the engine's artifacts are stored. Values that give access by themselves (a session's
// cookie, a code, an opaque token, the cookie of a waiting login) are stored only as a hash, so that somebody who
// reads the store or a backup can use none of them. The values have at least 128 bits of randomness, so a plain
// SHA-256 reveals nothing.
// docs/understand/decisions/store.md#sessions-waiting-logins-codes-and-tokens-are-stored-under-the-sha-256-of-their-values
import type { AdapterPayload } from 'oidc-provider';
import { type Frozen, thawed } from '../../records/base/record.ts';
import type { ArtifactRecord } from '../../records/state/engine.ts';
import { sha256 } from '../../runtime/secrets.ts';

/**
 * Models whose ids are no secrets: a grant's is only a reference, and that of a used assertion is a hash already.
 */
const PUBLIC_IDS = new Set(['Grant', 'ReplayDetection']);

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
