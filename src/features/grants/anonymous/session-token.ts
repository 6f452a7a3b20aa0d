// The session token of an anonymous session. The whole session is in this token, which we sign. Nothing is stored,
// so nobody can fill the store by beginning sessions.
import { randomUUID } from 'node:crypto';
import { type JWTPayload, errors as joseErrors } from 'jose';
import { signJwt } from '../../../capabilities/signing/jwt.ts';
import type { Signing } from '../../../capabilities/signing/signing.ts';
import { verifyJwt } from '../../../capabilities/signing/verify-jwt.ts';
import type { PublishedKeys } from '../../../engine/base/signed-tokens.ts';
import { ANONYMOUS_SESSION } from '../../../engine/base/signed-tokens.ts';
import { AuthError } from '../../../http/errors.ts';
import { anonymousSessionSeconds } from '../../../records/clients/anonymous.ts';
import { type Clock, epochSeconds } from '../../../runtime/clock.ts';
import type { Random } from '../../../runtime/secrets.ts';
import type { Config } from '../../../tenant/config.ts';

export interface SessionDependencies {
  issuer: string;
  config: Config;
  keys: PublishedKeys;
  random: Random;
  signing: Pick<Signing, 'sign' | 'current'>;
  /** The clock that `exp` of tokens is compared with. */
  wallClock: Clock;
}

export interface AnonymousSession {
  /** The `sub` of its access tokens: `anon@` and a UUID, which is no user's id. */
  subject: string;
  /** Epoch seconds. */
  expiresAt: number;
  metadata?: Metadata | undefined;
}

/** The application's metadata, set once when the session begins. */
type Metadata = Readonly<Record<string, unknown>>;

/** A `typ` of its own, so that it cannot be mistaken for an access token or an ID token (RFC 8725 §3.11). */
const TYP = 'anonymous-session+jwt';
const ALG = 'RS256';

/**
 * Returns the audience of session tokens: the endpoint that accepts them, not the issuer. An API could have the
 * issuer as its identifier and accept the token as its own.
 */
const audienceOf = (issuer: string) => `${issuer}anonymous/token`;

/** @returns the session, and its token. */
export async function startSession(
  { issuer, config, random, signing, wallClock }: SessionDependencies,
  clientId: string,
  metadata: Metadata | undefined,
): Promise<{ session: AnonymousSession; token: string }> {
  const now = epochSeconds(wallClock);
  const session = {
    subject: `anon@${randomUUID()}`,
    expiresAt: now + anonymousSessionSeconds(config.settings().tenant),
  };
  const claims = {
    iss: issuer,
    sub: session.subject,
    aud: audienceOf(issuer),
    azp: clientId,
    iat: now,
    exp: session.expiresAt,
    sid: random(16).toString('base64url'),
    gty: ANONYMOUS_SESSION,
    ...(metadata !== undefined && { metadata }),
  };
  return { session, token: await signJwt(signing, { alg: ALG, typ: TYP }, claims) };
}

/**
 * @throws AuthError 400 `session_expired`; `invalid_session_token` for a token that is not ours, or another
 *   application's. SDKs begin a new session at either.
 */
export async function readSession(
  deps: SessionDependencies,
  clientId: string,
  token: string,
): Promise<AnonymousSession> {
  const { sub, iat, exp, azp, metadata } = await verifyToken(deps, token);
  if (sub === undefined || iat === undefined || exp === undefined || azp !== clientId) throw invalidToken();
  // A lifetime that was shortened applies to existing sessions, too, because nothing else can end one.
  const expiresAt = Math.min(exp, iat + anonymousSessionSeconds(deps.config.settings().tenant));
  if (expiresAt <= epochSeconds(deps.wallClock)) throw sessionExpired();
  return { subject: sub, expiresAt, metadata: metadata as Metadata | undefined };
}

const invalidToken = () => new AuthError(400, 'invalid_session_token', 'The session token is not valid.');
const sessionExpired = () => new AuthError(400, 'session_expired', 'The session has expired.');

async function verifyToken(
  { issuer, keys, wallClock }: SessionDependencies,
  token: string,
): Promise<JWTPayload> {
  try {
    const { payload } = await verifyJwt(token, keys.find, {
      types: [TYP],
      algorithms: [ALG],
      issuer,
      audience: audienceOf(issuer),
      requiredClaims: ['sub', 'iat', 'exp', 'azp'],
      currentDate: new Date(wallClock()),
    });
    return payload;
  } catch (thrown) {
    if (thrown instanceof joseErrors.JWTExpired) throw sessionExpired();
    if (thrown instanceof joseErrors.JOSEError) throw invalidToken();
    throw thrown;
  }
}
