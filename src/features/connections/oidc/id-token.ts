// Verifies ID tokens (OpenID Connect Core 1.0 §3.1.3.7, §3.2.2.11) of the token endpoint, of the browser, and of native apps.
// docs/understand/decisions/connections.md#one-function-checks-all-id-tokens-of-providers
import { createHash } from 'node:crypto';
import { errors, type JWTPayload, type JWTVerifyGetKey } from 'jose';
import { verifyJwt } from '../../../capabilities/signing/verify-jwt.ts';
import { isSameSecret } from '../../../runtime/secrets.ts';
import { upstreamFault } from '../redirect.ts';

export type Claims = JWTPayload & { iss: string; sub: string };

/** What an ID token is verified against. */
export interface ExpectedToken {
  /** Finds the key of a token; undefined if the provider publishes none. */
  keys: JWTVerifyGetKey | undefined;
  /** The client secret, which is the key of symmetric algorithms. */
  secret: string;
  algorithms: readonly string[];
  /** The accepted client ids. */
  audiences: readonly string[];
  /** Whether an `iss` is that of the provider. */
  isIssuer(issuer: string, claims: JWTPayload): boolean;
  /** The nonce of the request; undefined if it had none. */
  nonce: string | undefined;
  /** Whether every `azp` is accepted: native apps have client ids of their own. */
  acceptsAnyAzp?: boolean | undefined;
  /** The access token that came with it, for `at_hash`. */
  accessToken?: string | undefined;
  /** The current time, epoch milliseconds. */
  now: number;
}

/** Allowed difference between the provider's clock and ours, seconds. */
const TOLERANCE = 60;
/** Characters of a `sub` (OpenID Connect Core 1.0 §2). */
const MAX_SUBJECT_LENGTH = 255;

/** @returns its claims. @throws AuthError by `upstreamFault` if it is not valid. */
export async function verifyIdToken(token: string, expected: ExpectedToken): Promise<Claims> {
  const { audiences, nonce, accessToken, isIssuer, acceptsAnyAzp = false } = expected;
  const { payload, protectedHeader } = await verifySigned(token, expected);
  const { iss, sub, aud, azp } = payload;
  if (typeof iss !== 'string' || !isIssuer(iss, payload)) throw idTokenFault('is of another issuer');
  if (typeof sub !== 'string' || sub === '' || sub.length > MAX_SUBJECT_LENGTH)
    throw idTokenFault('names nobody');
  if (!acceptsAnyAzp && azp !== undefined && !audiences.includes(String(azp))) {
    throw idTokenFault('is for another client');
  }
  if (Array.isArray(aud) && aud.length > 1 && (acceptsAnyAzp || azp === undefined))
    throw idTokenFault('is for several clients');
  if (nonce !== undefined && !(typeof payload.nonce === 'string' && isSameSecret(payload.nonce, nonce))) {
    throw idTokenFault('is not for this login');
  }
  const { at_hash } = payload;
  if (accessToken !== undefined && at_hash !== undefined) {
    if (at_hash !== hashOf(accessToken, protectedHeader.alg))
      throw idTokenFault('is of another access token');
  }
  return payload as Claims;
}

async function verifySigned(token: string, { keys, secret, algorithms, audiences, now }: ExpectedToken) {
  const key: JWTVerifyGetKey = async (header, parts) => {
    if (header.alg?.startsWith('HS')) return Buffer.from(secret);
    if (keys === undefined) throw new errors.JWKSNoMatchingKey();
    return keys(header, parts);
  };
  // Anybody could sign with an empty secret.
  const allowed = algorithms.filter((alg) => !alg.startsWith('HS') || secret !== '');
  try {
    return await verifyJwt(token, key, {
      algorithms: allowed,
      // Providers name ID tokens in many ways, but not as another kind of JWT.
      types: [undefined],
      audience: [...audiences],
      currentDate: new Date(now),
      clockTolerance: TOLERANCE,
      requiredClaims: ['iss', 'sub', 'aud', 'exp', 'iat'],
    });
  } catch (thrown) {
    throw idTokenFault(reasonOf(thrown), thrown);
  }
}

function reasonOf(thrown: unknown): string {
  if (thrown instanceof errors.JWTExpired) return 'has expired';
  if (thrown instanceof errors.JWTClaimValidationFailed) return `has no right claim ${thrown.claim}`;
  if (thrown instanceof errors.JOSEAlgNotAllowed) return 'is signed by an algorithm that is not allowed';
  if (thrown instanceof errors.JWSSignatureVerificationFailed) return 'has a signature that is wrong';
  if (thrown instanceof errors.JWKSNoMatchingKey) return 'is signed by a key that the provider has not';
  if (thrown instanceof errors.JOSEError) return 'is none';
  return 'cannot be verified, because the keys cannot be read';
}

/** @param what describes the fault to the application, without the contents of the token. */
export function idTokenFault(what: string, cause?: unknown) {
  return upstreamFault('access_denied', `The ID token of the identity provider ${what}.`, cause);
}

/** Returns the value that `at_hash` must have: the left half of a hash of the token (OpenID Connect Core 1.0 §3.1.3.6). */
function hashOf(token: string, alg: string): string {
  const bits = alg.slice(-3);
  const hash = createHash(bits === '256' || bits === '384' ? `sha${bits}` : 'sha512')
    .update(token)
    .digest();
  return hash.subarray(0, hash.length / 2).toString('base64url');
}
