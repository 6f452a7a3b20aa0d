// Verifies the JWT access tokens (RFC 9068) that this server has signed.

import { createHash } from 'node:crypto';
import {
  createLocalJWKSet,
  type JSONWebKeySet,
  type JWTPayload,
  type JWTVerifyGetKey,
  errors as joseErrors,
} from 'jose';
import { verifyJwt } from '../../capabilities/signing/verify-jwt.ts';
import { SIGNING_ALGS } from '../../records/base/signing-algs.ts';
import { isTrusted } from '../../records/tenant/trusted-keys.ts';
import { isAdministratorId } from '../../records/users/administrators.ts';
import type { Clock } from '../../runtime/clock.ts';
import { type Config, derived } from '../../tenant/config.ts';
import type { SigningKey } from '../../tenant/tenant-snapshot.ts';
import type { User } from '../../users/user.ts';
import type { Users } from '../../users/users.ts';

export interface TokenVerification {
  issuer: string;
  keys: PublishedKeys;
  /** The clock that `exp` of tokens is compared with. */
  clock: Clock;
}

interface ExpectedToken {
  /** The API that the token must be for; undefined accepts a token for any API. */
  audience?: string;
  /** The secret of an API whose tokens are signed with HS256; undefined for tokens that are verified by the published keys. */
  secret?: Uint8Array;
  /** Whether an access token of an anonymous session is accepted. */
  anonymous?: boolean;
  /** Whether the token of a program that an administrator has approved is accepted. */
  administrator?: boolean;
}

// docs/understand/decisions/tokens.md#a-visitors-token-has-no-user-and-is-refused-where-tokens-are-read
/** `gty` of access tokens of anonymous sessions, whose `sub` is no user's. */
export const ANONYMOUS = 'anonymous';

/** `gty` of the session token of an anonymous session, which gets access tokens and never is one. */
export const ANONYMOUS_SESSION = 'anonymous_session';

/** The types of access tokens, by the profile of the API (RFC 9068 §2.1). Logout tokens have the same keys. */
const TYPES = ['jwt', 'at+jwt'];

const REQUIRED_CLAIMS = ['exp', 'iat', 'sub'];

/**
 * Verifies an access token.
 * @returns its claims.
 * @throws JOSEError when it is not ours, for another audience, or expired.
 */
export async function verifyOwnToken(
  { issuer, keys, clock }: TokenVerification,
  token: string,
  { audience, secret, anonymous, administrator }: ExpectedToken = {},
): Promise<JWTPayload> {
  const rules = {
    issuer,
    ...(audience !== undefined && { audience }),
    types: TYPES,
    requiredClaims: REQUIRED_CLAIMS,
    currentDate: new Date(clock()),
  };
  const { payload } =
    secret === undefined
      ? await verifyJwt(token, keys.find, { ...rules, algorithms: SIGNING_ALGS })
      : await verifyJwt(token, secret, { ...rules, algorithms: ['HS256'] });
  const { azp, client_id, gty } = payload;
  // RFC 9068 §2.2. Without it, it is an ID token of an application with the identifier of the API.
  if (azp === undefined && client_id === undefined)
    throw new joseErrors.JWTClaimValidationFailed('no access token', payload, 'client_id', 'missing');
  // Checked here so that no reader takes the `sub` of an anonymous session for a user.
  if (gty === ANONYMOUS_SESSION || (gty === ANONYMOUS && anonymous !== true))
    throw new joseErrors.JWTClaimValidationFailed('nobody has logged in', payload, 'gty', 'check_failed');
  // docs/understand/decisions/management-api.md#an-administrator-approves-a-programs-user-code-at-the-console
  // So that no reader but the Management API takes an administrator for a user who has logged in to an application.
  if (isAdministratorId(String(payload.sub)) && administrator !== true)
    throw new joseErrors.JWTClaimValidationFailed('of an administrator', payload, 'sub', 'check_failed');
  return payload;
}

/** Verifies an access token as {@link verifyOwnToken} does. @returns undefined for an invalid token. */
export async function readOwnToken(
  verification: TokenVerification,
  token: string,
  expected?: ExpectedToken,
): Promise<JWTPayload | undefined> {
  try {
    return await verifyOwnToken(verification, token, expected);
  } catch (thrown) {
    if (thrown instanceof joseErrors.JOSEError) return undefined;
    throw thrown;
  }
}

// Decides whether a token of ours has ended before it expires. Wherever this server accepts one that it does not
// store, this is asked. What ends which token:
// docs/understand/decisions/tokens.md#what-ends-which-token-is-decided-once

export interface EndedTokenDependencies {
  users: Pick<Users, 'credentialVersion'>;
  /** @see Sessions.isOpen */
  isOpen(sid: string): Promise<boolean>;
  /** @see Sessions.grantOf */
  grantOf(id: string): Promise<object | undefined>;
}

// docs/understand/decisions/tokens.md#a-token-for-an-api-with-an-application-of-its-own-names-its-grant
/** Returns the id of the grant that a token belongs to; undefined for one that does not name it. */
export function grantOfToken({ grant_id: id }: JWTPayload): string | undefined {
  return typeof id === 'string' ? id : undefined;
}

/** Whether a token names its login: access tokens for our own APIs do ({@link SecondFactor.tokenClaims}). */
export function namesLogin({ factors_changed: factors }: JWTPayload): boolean {
  return typeof factors === 'string';
}

/** Returns the session of a token that names its login; undefined without a session. */
export function sessionOfToken(claims: JWTPayload): string | undefined {
  return namesLogin(claims) && typeof claims.sid === 'string' ? claims.sid : undefined;
}

/** The claim with the time of issue in epoch milliseconds. Only tokens that need it have it (`preciseIssue`). */
export const ISSUED_AT_MS = 'iat_ms';

/** Returns when older tokens of a user were ended, epoch milliseconds: by a new password, and with all their access. */
export function endsOf({ last_password_reset: reset, access_ended_at: ended }: User): number[] {
  return [reset, ended].flatMap((at) => (at === undefined ? [] : Date.parse(at)));
}

/**
 * Whether a token was issued before older ones were ended. One that tells only the second counts as issued when the
 * second began.
 */
export function isBeforeEnd(user: User, { iat, [ISSUED_AT_MS]: precise }: JWTPayload): boolean {
  const issuedAt = typeof precise === 'number' ? precise : Number(iat) * 1000;
  return endsOf(user).some((at) => issuedAt < at);
}

/**
 * Whether a token has ended although it has not expired. It was verified, and its user is the one given, whose admission is
 * the caller's to check.
 */
export async function isTokenEnded(
  { users, isOpen, grantOf }: EndedTokenDependencies,
  user: User,
  claims: JWTPayload,
): Promise<boolean> {
  if (isBeforeEnd(user, claims)) return true;
  const grant = grantOfToken(claims);
  if (grant !== undefined && (await grantOf(grant)) === undefined) return true;
  if (!namesLogin(claims)) return false;
  const sid = sessionOfToken(claims);
  const [version, isSessionOpen] = await Promise.all([
    users.credentialVersion(user.id),
    sid === undefined || isOpen(sid),
  ]);
  return version !== claims.credential_version || !isSessionOpen;
}

// The public signing keys: the key set, and verification of our own tokens. Imported once per key set.

export interface PublishedKeys {
  /** The public key set, as `/.well-known/jwks.json` gives it (RFC 7517). */
  keySet(): JSONWebKeySet;
  /** The keys of an old tenant for ID tokens of an issuer, while they are trusted. Only a hint of a logout is verified by them. */
  trusted(issuer: string): JSONWebKeySet;
  /** Finds the key of one of our tokens: current, next or previous. */
  find: JWTVerifyGetKey;
}

/** Makes the published keys of a tenant, which are always up to date. @param clock the time of day. */
export function publishedKeys(
  config: Config,
  { issuer, clock }: Pick<TokenVerification, 'issuer' | 'clock'>,
): PublishedKeys {
  const own = derived(config.signingKeys, publicKeySet);
  const finder = derived(own, createLocalJWKSet);
  /** Those of an old tenant, without any that has the id of one of ours. */
  const trusted = () => {
    const kids = new Set(own().keys.map(({ kid }) => kid));
    return config.trustedKeys().filter((one) => isTrusted(one, clock()) && !kids.has(one.id));
  };
  return {
    keySet: () => ({ keys: [...own().keys, ...trusted().map(({ jwk }) => jwk)] }),
    trusted: (of) => ({
      keys: trusted().flatMap(({ jwk, issuers }) => (of === issuer || issuers.includes(of) ? [jwk] : [])),
    }),
    find: (header, token) => finder()(header, token),
  };
}

function publicKeySet(keys: readonly SigningKey[]): JSONWebKeySet {
  const all = keys.map(({ id, jwk, x5c }) => ({
    kty: jwk.kty,
    use: 'sig',
    // Verifiers, including ours, use a key only for its own algorithm (RFC 8725 §3.1).
    alg: jwk.alg,
    kid: id,
    ...publicMembers(jwk),
    x5c,
    x5t: thumbprint(x5c[0] ?? ''),
  }));
  return { keys: all } as JSONWebKeySet;
}

/** Returns the public members of a key (RFC 7518 §6.2.1 and §6.3.1, RFC 8037 §2). */
function publicMembers({ kty, n, e, crv, x, y }: SigningKey['jwk']): object {
  if (kty === 'RSA') return { n, e };
  return kty === 'EC' ? { crv, x, y } : { crv, x };
}

/** Returns the SHA-1 of a certificate, base64url, as RFC 7515 §4.1.7 defines `x5t`. */
function thumbprint(certificate: string): string {
  return createHash('sha1').update(Buffer.from(certificate, 'base64')).digest('base64url');
}
