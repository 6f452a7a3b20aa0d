// Verifies the JWT access tokens (RFC 9068) that this server has signed.
import { type JWTPayload, errors as joseErrors } from 'jose';
import { verifyJwt } from '../../capabilities/signing/verify-jwt.ts';
import { SIGNING_ALGS } from '../../records/signing-algs.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { PublishedKeys } from './published-keys.ts';

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
}

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
  { audience, secret, anonymous }: ExpectedToken = {},
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
