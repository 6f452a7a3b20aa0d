// Verifies the JWT access tokens (RFC 9068) that this server has signed.
import { type JWTPayload, errors as joseErrors, jwtVerify } from 'jose';
import { SIGNING_ALGS } from '../records/signing-algs.ts';
import type { Clock } from '../runtime/clock.ts';
import type { PublishedKeys } from './published-keys.ts';

export interface TokenVerification {
  issuer: string;
  keys: PublishedKeys;
  /** The wall clock, by which tokens end. */
  clock: Clock;
}

interface Expected {
  /** The API it must be for; tokens for any API are good where there is none. */
  audience?: string;
  /** Of an API whose tokens are signed with HS256; otherwise the published keys count. */
  secret?: Uint8Array;
}

const REQUIRED_CLAIMS = ['exp', 'iat', 'sub'];

/** The claims of an access token. @throws JOSEError when it is not ours, not for the audience, or over. */
export async function verifyOwnToken(
  { issuer, keys, clock }: TokenVerification,
  token: string,
  { audience, secret }: Expected = {},
): Promise<JWTPayload> {
  const rules = {
    issuer,
    ...(audience !== undefined && { audience }),
    requiredClaims: REQUIRED_CLAIMS,
    currentDate: new Date(clock()),
  };
  const { payload } =
    secret === undefined
      ? await jwtVerify(token, keys.find, { ...rules, algorithms: [...SIGNING_ALGS] })
      : await jwtVerify(token, secret, { ...rules, algorithms: ['HS256'] });
  return payload;
}

/** As {@link verifyOwnToken}. @returns undefined for a token that is not good. */
export async function readOwnToken(
  verification: TokenVerification,
  token: string,
  expected?: Expected,
): Promise<JWTPayload | undefined> {
  try {
    return await verifyOwnToken(verification, token, expected);
  } catch (thrown) {
    if (thrown instanceof joseErrors.JOSEError) return undefined;
    throw thrown;
  }
}
