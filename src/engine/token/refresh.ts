// Refresh tokens that are not rotated: each use keeps them alive for another idle lifetime.
import type { Client, RefreshToken } from 'oidc-provider';
import type { ArtifactRecord } from '../../records/engine.ts';
import type { Frozen } from '../../records/record.ts';
import { type Clock, epochSeconds } from '../../runtime/clock.ts';
import type { Store } from '../../store/contract.ts';
import { expiresByIdleness, refreshTokenLifetime } from '../admission/lifetimes.ts';
import { artifactKey } from '../base/artifact-keys.ts';
import type { Commits } from '../base/commit.ts';
import { familyKey, withExpiry } from '../session/refresh-families.ts';

/**
 * Extends the expiry of a refresh token that was just used, never beyond its absolute lifetime. A token without an
 * idle lifetime and without bounds is left as it is.
 */
export async function extendRefreshToken(
  { store, clock, wallClock, commits }: { store: Store; clock: Clock; wallClock: Clock; commits: Commits },
  token: RefreshToken,
  client: Client,
): Promise<void> {
  if (!expiresByIdleness(client) && (token as { bounds?: unknown }).bounds === undefined) return;
  const left = refreshTokenLifetime(wallClock, token, client);
  const expiresAt = epochSeconds(clock) + left;
  // The engine also checks a date of its own.
  const now = epochSeconds(wallClock);
  const exp = now + left;
  const artifacts = store.collection('artifacts');
  const family = familyKey(token.jti);
  if (family !== undefined) {
    const change = (current: Frozen<ArtifactRecord>) =>
      withExpiry(current, token.jti, { exp, expiresAt, now });
    if (!commits.add({ collection: 'artifacts', update: family, change }))
      await artifacts.update(family, change);
    return;
  }
  await artifacts.update(artifactKey('RefreshToken', token.jti), (current) => {
    return { ...current, expiresAt, payload: { ...current.payload, exp } };
  });
}
