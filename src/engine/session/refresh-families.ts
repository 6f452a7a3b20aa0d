// Refresh tokens by family: one record for the first token of a login and all that replace it, so that a session
// that is refreshed every few minutes takes no more room than any other. A token's value is the id of its family
// followed by a secret. The record keeps hashes of the tokens that may still be used; any other token of the family
// was used before, which is a sign of theft (RFC 9700 §4.14.2).
// docs/understand/decisions/sessions-logout.md#the-refresh-tokens-of-one-login-are-one-record
import Provider, { type Adapter, type AdapterPayload, errors } from 'oidc-provider';
import { type Frozen, thawed } from '../../records/base/record.ts';
import type { ArtifactRecord } from '../../records/state/engine.ts';
import { type Clock, epochSeconds } from '../../runtime/clock.ts';
import type { Random } from '../../runtime/secrets.ts';
import { sha256 } from '../../runtime/secrets.ts';
import type { Collection, Store } from '../../store/contract.ts';
import { artifactKey } from '../base/artifact-keys.ts';
import type { Commits, ReadAhead } from '../base/commit.ts';
import { ALREADY_USED } from '../base/failures.ts';
import { deviceOf } from '../base/request-extensions.ts';
import { applicationSettings } from '../client/applications.ts';

type Artifact = Frozen<ArtifactRecord>;

/** A token of a family that may be used, or was used just now. */
interface LiveToken {
  hash: string;
  /** When it expires, epoch seconds by the wall clock. */
  exp: number;
  /** When it was first used, epoch seconds. */
  used?: number;
}

/** Length of a family's id: random bytes, and their characters in base64url. */
const FAMILY_ID = { bytes: 16, characters: 22 };
const TOKEN_SECRET = { bytes: 32, characters: 43 };

/** The most live tokens of a family, more than an application can use at once. A further one removes the oldest. */
const MAX_LIVE_TOKENS = 100;

interface RefreshTokenDependencies {
  store: Store;
  clock: Clock;
  commits: Commits;
  ahead: Pick<ReadAhead, 'artifact'>;
}

/** Makes the engine's adapter for refresh tokens. @param general the adapter of all artifacts. */
export function refreshTokenAdapter(
  general: Adapter,
  { store, clock, commits, ahead }: RefreshTokenDependencies,
): Adapter {
  const artifacts = store.collection('artifacts');
  return {
    ...general,
    find: async (id) => {
      // An application can present any text.
      if (familyOf(id) === undefined) return undefined;
      const key = familyKey(id);
      const family = await ahead.artifact(key);
      return family && presentedToken(family, id, epochSeconds(clock));
    },
    upsert: async (id, payload, expiresIn) => {
      const key = familyKey(id);
      const now = epochSeconds(clock);
      const token = { id, key, payload, expiresAt: now + (expiresIn ?? 0), now };
      if (!joinsFamily(id)) {
        const first = withToken(undefined, token);
        if (!commits.add({ collection: 'artifacts', insert: first })) await artifacts.insert(first);
        return;
      }
      // If the family was revoked meanwhile, the update finds nothing, and it is not created again.
      const joined = await artifacts.update(key, (family) => withToken(family, token));
      if (joined === undefined) throw new errors.InvalidGrant(ALREADY_USED);
    },
    consume: async (id) => {
      const key = familyKey(id);
      let reusedGrant: unknown;
      try {
        const used = await artifacts.update(key, (family) => {
          reusedGrant = family.payload.grantId;
          return withUse(family, id, epochSeconds(clock));
        });
        if (used === undefined) throw new errors.InvalidGrant(ALREADY_USED);
      } catch (thrown) {
        if (thrown instanceof errors.InvalidGrant && typeof reusedGrant === 'string')
          await revokeGrant(artifacts, reusedGrant);
        throw thrown;
      }
    },
    destroy: async (id) => {
      await artifacts.delete(familyKey(id));
    },
  };
}

/** Revokes a grant with all its tokens (RFC 6749 §4.1.2, RFC 9700 §4.14.2). */
export async function revokeGrant(artifacts: Collection<ArtifactRecord>, grantId: string): Promise<void> {
  await artifacts.deleteBy('grantId', grantId);
  await artifacts.delete(artifactKey('Grant', grantId));
}

/** Returns the value of a new refresh token, in the family of the token that it replaces or in a new one. */
export function refreshTokenId(random: Random): string {
  const family = familyOf(rotatedToken()) ?? random(FAMILY_ID.bytes).toString('base64url');
  return family + random(TOKEN_SECRET.bytes).toString('base64url');
}

/**
 * Returns the value of a refresh token that is derived from something else.
 * @param derived at least 48 bytes, which only this tenant can compute.
 */
export function derivedTokenId(derived: Buffer): string {
  const end = FAMILY_ID.bytes + TOKEN_SECRET.bytes;
  const [family, secret] = [derived.subarray(0, FAMILY_ID.bytes), derived.subarray(FAMILY_ID.bytes, end)];
  return family.toString('base64url') + secret.toString('base64url');
}

/** Whether a text has the form of our refresh tokens. */
export function isRefreshTokenId(text: string): boolean {
  return familyOf(text) !== undefined && /^[\w-]+$/.test(text);
}

/** Returns the family of a token. @returns undefined for a text that is no token. */
function familyOf(id: string | undefined): string | undefined {
  return id?.length === FAMILY_ID.characters + TOKEN_SECRET.characters
    ? id.slice(0, FAMILY_ID.characters)
    : undefined;
}

/** Returns the key of a token's family in the store. @param id the value of a token. */
export function familyKey(id: string): string {
  return artifactKey('RefreshTokenFamily', id.slice(0, FAMILY_ID.characters));
}

/** Returns the value of the token that this request rotates. */
function rotatedToken(): string | undefined {
  const entities = Provider.ctx?.oidc.entities as { RotatedRefreshToken?: { jti: string } } | undefined;
  return entities?.RotatedRefreshToken?.jti;
}

/** Whether a new token belongs to the family of the token that this request rotates. */
function joinsFamily(id: string): boolean {
  return familyOf(id) === familyOf(rotatedToken());
}

/** Returns the seconds during which a used token of the requesting application may be used again. */
function leeway(): number {
  const client = Provider.ctx?.oidc.client;
  return client === undefined ? 0 : applicationSettings(client).refreshToken.leeway;
}

/**
 * Whether a used token may be used once more.
 * @param used when it was first used, epoch seconds.
 * @param now epoch seconds.
 */
function isTolerated(used: number, now: number): boolean {
  // A use in the future (the clock was set back since) does not count as recent.
  return used <= now && now - used < leeway();
}

function liveTokens({ payload }: Artifact): readonly LiveToken[] {
  return payload.tokens as readonly LiveToken[];
}

/** Returns a token's payload as the engine expects it, with `consumed` when the token was used before. */
function presentedToken(family: Artifact, id: string, now: number): AdapterPayload {
  const { tokens: _tokens, ...stored } = family.payload;
  // A copy, because the engine changes it and records of the store must not be changed.
  const payload = thawed(stored) as AdapterPayload;
  const found = liveTokens(family).find(({ hash }) => hash === sha256(id));
  if (found === undefined)
    return { ...payload, jti: id, exp: family.expiresAt, consumed: true } as AdapterPayload;
  const { exp, used } = found;
  const isUsed = used !== undefined && !isTolerated(used, now);
  return { ...payload, jti: id, exp, ...(isUsed && { consumed: used }) } as AdapterPayload;
}

/** Returns the record of a family with a new token in it. @param before the present record, where there is one. */
function withToken(
  before: Artifact | undefined,
  token: { id: string; key: string; payload: AdapterPayload; expiresAt: number; now: number },
): ArtifactRecord {
  const { jti: _jti, exp = 0, ...payload } = token.payload;
  const others = (before === undefined ? [] : liveTokens(before)).filter(
    (one) => one.exp > token.now && (one.used === undefined || isTolerated(one.used, token.now)),
  );
  const tokens: LiveToken[] = [...others, { hash: sha256(token.id), exp }];
  return {
    id: token.key,
    model: 'RefreshToken',
    payload: { ...payload, ...directoryMembers(before, token.now), tokens: tokens.slice(-MAX_LIVE_TOKENS) },
    expiresAt: Math.max(token.expiresAt, before?.expiresAt ?? 0),
  };
}

/** Returns the members of a family for the Management API: device, metadata and last use. */
function directoryMembers(before: Artifact | undefined, now: number): Record<string, unknown> {
  const { device, metadata, bounds } = before?.payload ?? {};
  const { ctx } = Provider;
  return {
    ...(ctx === undefined ? device !== undefined && { device } : { device: deviceOf(ctx, device) }),
    ...(metadata !== undefined && { metadata }),
    ...(bounds !== undefined && { bounds }),
    ...(before !== undefined && { lastUsed: now }),
  };
}

/**
 * Returns the record of a family after one of its tokens is used.
 * @throws errors.InvalidGrant when that token was used before and its leeway is over. The leeway counts from the
 *   first use, so that further uses do not extend it.
 */
function withUse(family: Artifact, id: string, now: number): Artifact {
  return changeToken(family, id, (token) => {
    if (token.used !== undefined && !isTolerated(token.used, now))
      throw new errors.InvalidGrant(ALREADY_USED);
    return { ...token, used: token.used ?? now };
  });
}

/** Returns the record of a family with a new expiry of one of its tokens. For refresh tokens that are not rotated. */
export function withExpiry(
  family: Artifact,
  id: string,
  { exp, expiresAt, now }: { exp: number; expiresAt: number; now: number },
): Artifact {
  const { payload, ...changed } = changeToken(family, id, (token) => ({ ...token, exp }));
  return { ...changed, payload: { ...payload, ...directoryMembers(family, now) }, expiresAt };
}

function changeToken(family: Artifact, id: string, to: (token: LiveToken) => LiveToken): Artifact {
  const tokenHash = sha256(id);
  const tokens = liveTokens(family);
  if (!tokens.some(({ hash }) => hash === tokenHash)) throw new errors.InvalidGrant(ALREADY_USED);
  const payload = {
    ...family.payload,
    tokens: tokens.map((one) => (one.hash === tokenHash ? to(one) : one)),
  };
  return { ...family, payload };
}
