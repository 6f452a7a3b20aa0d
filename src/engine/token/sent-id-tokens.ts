// Reads the ID tokens that are sent back to this server. What such a token may be used for depends on the request, not
// on the token, so each use has a reader and a type of its own, and none is accepted in place of another: a hint proves
// nothing, a subject proves whose token an application has, and only a proof shows that the user is there.
// docs/understand/decisions/tokens.md#a-hint-a-subject-and-a-proof-of-one-id-token-have-three-readers-and-three-types
import { createLocalJWKSet, type JWTPayload, errors as joseErrors } from 'jose';
import { jwtHeader, unverifiedClaims, verifySignature } from '../../capabilities/signing/verify-jwt.ts';
import { SIGNING_ALGS } from '../../records/base/signing-algs.ts';
import { idTokenAlg } from '../../records/clients/clients.ts';
import type { Client } from '../../records/collections.ts';
import { ASYMMETRIC_ALGS } from '../../records/connections/openid.ts';
import { type Clock, epochSeconds } from '../../runtime/clock.ts';
import type { Config } from '../../tenant/config.ts';
import { lackFor, methodsOfFirstFactor } from '../../users/login.ts';
import type { User } from '../../users/user.ts';
import type { Users } from '../../users/users.ts';
import { admissionError } from '../admission/admission.ts';
import type { AuthenticatedLogin, SecondFactor } from '../admission/second-factor.ts';
import type { PublishedKeys } from '../base/signed-tokens.ts';
import { isBeforeEnd } from '../base/signed-tokens.ts';
import type { Sessions } from '../session/sessions.ts';

/**
 * An ID token as a hint (OpenID Connect RP-Initiated Logout 1.0 §2): whose session a request is about. It may have
 * expired, URLs and logs contain it, and an application whose secret signs its ID tokens can write one.
 */
export interface IdTokenHint {
  readonly usedAs: 'hint';
  /** The application that it was issued to. */
  client: Client;
  userId: string;
  /** Its `sid`; undefined for a token from a grant without a browser. */
  sid: string | undefined;
  /** The id of the organization that its login was for. */
  organization: string | undefined;
}

/**
 * An ID token as a subject or actor token (RFC 8693 §2.1): whose token an application has. It has not expired, its
 * session is open, and it is not older than the user's password. The user may be blocked.
 */
export interface IdTokenSubject {
  readonly usedAs: 'subject';
  /** The application that it was issued to. */
  client: Client;
  user: User;
  claims: JWTPayload;
}

// docs/understand/decisions/users-linking.md#an-id-token-links-its-account-only-as-a-proof-that-its-user-is-there
/**
 * An ID token as a proof that its user is there: a first-party application got it in the open session of a fresh
 * login, in which the user gave a second factor if they have one, and nothing has changed the credential or the
 * factors since.
 */
export interface IdTokenProof {
  readonly usedAs: 'proof';
  /** The application that it was issued to. */
  client: Client;
  userId: string;
}

/** The readers. Each returns undefined for a token that is not valid for its use. */
export interface IdTokenReaders {
  readIdTokenHint(token: string): Promise<IdTokenHint | undefined>;
  /**
   * Returns the application that an ID token names, if the key that signed it is one that this server has no more. Anybody can
   * write such a token, so it says no more than a `client_id`.
   */
  clientOfForgottenToken(token: string): Promise<Client | undefined>;
  readIdTokenSubject(token: string): Promise<IdTokenSubject | undefined>;
  readIdTokenProof(token: string): Promise<IdTokenProof | undefined>;
}

interface ReaderDependencies {
  issuer: string;
  keys: PublishedKeys;
  config: Config;
  users: Pick<Users, 'get'>;
  /** The clock that tokens are dated by. */
  clock: Clock;
  sessions: Pick<Sessions, 'loginOf'>;
  secondFactor: Pick<SecondFactor, 'isSufficient'>;
}

export function idTokenReaders(deps: ReaderDependencies): IdTokenReaders {
  return {
    readIdTokenHint: async (token) => {
      const verified = (await verifiedToken(deps, token)) ?? (await trustedToken(deps, token));
      if (verified === undefined) return undefined;
      const { client, claims, sid } = verified;
      const organization = typeof claims.org_id === 'string' ? claims.org_id : undefined;
      return { usedAs: 'hint', client, userId: claims.sub, sid, organization };
    },
    clientOfForgottenToken: (token) => clientOfForgottenToken(deps, token),
    readIdTokenSubject: async (token) => {
      const valid = await validToken(deps, token);
      if (valid === undefined) return undefined;
      const { client, claims, sid, user } = valid;
      // A grant without a browser gives no session.
      if (sid !== undefined && (await deps.sessions.loginOf(sid))?.userId !== user.id) return undefined;
      return { usedAs: 'subject', client, user, claims };
    },
    readIdTokenProof: async (token) => {
      const valid = await validToken(deps, token);
      if (valid === undefined || !(await provesPresence(deps, valid))) return undefined;
      return { usedAs: 'proof', client: valid.client, userId: valid.user.id };
    },
  };
}

/** An ID token of ours, which may have expired. It does not leave this file. */
interface VerifiedToken {
  client: Client;
  claims: JWTPayload & Required<Pick<JWTPayload, 'sub' | 'iat' | 'exp'>>;
  sid: string | undefined;
  /** Whether it is signed with the application's own secret. The application can make such a token for any user. */
  isSignedWithSecret: boolean;
}

/** Verifies the signature, with the published keys, or the application's secret for HS256. */
async function verifiedToken(
  { config, issuer, keys }: Pick<ReaderDependencies, 'config' | 'issuer' | 'keys'>,
  token: string,
): Promise<VerifiedToken | undefined> {
  try {
    const claims = unverifiedClaims(token);
    const client = await audience(config, claims);
    if (client === undefined || !isIdToken(claims, issuer)) return undefined;
    await verify(token, client, keys);
    return {
      client,
      claims,
      sid: typeof claims.sid === 'string' ? claims.sid : undefined,
      isSignedWithSecret: jwtHeader(token, ID_TOKEN_TYPES).alg === 'HS256',
    };
  } catch (thrown) {
    if (thrown instanceof joseErrors.JOSEError || thrown instanceof TypeError) return undefined;
    throw thrown;
  }
}

/**
 * Verifies an ID token of the tenant that this one takes the place of. It is good for a hint only, and its `sid` is that of
 * a session there.
 */
async function trustedToken(
  { config, keys }: Pick<ReaderDependencies, 'config' | 'keys'>,
  token: string,
): Promise<VerifiedToken | undefined> {
  try {
    const claims = unverifiedClaims(token);
    const { iss = '' } = claims;
    const trusted = keys.trusted(iss);
    const client = trusted.keys.length === 0 ? undefined : await audience(config, claims);
    if (client === undefined || !isIdToken(claims, iss)) return undefined;
    const rules = { algorithms: ASYMMETRIC_ALGS, types: ID_TOKEN_TYPES };
    await verifySignature(token, createLocalJWKSet(trusted), rules);
    return { client, claims, sid: undefined, isSignedWithSecret: false };
  } catch (thrown) {
    if (thrown instanceof joseErrors.JOSEError || thrown instanceof TypeError) return undefined;
    throw thrown;
  }
}

async function clientOfForgottenToken(
  { config, issuer, keys }: Pick<ReaderDependencies, 'config' | 'issuer' | 'keys'>,
  token: string,
): Promise<Client | undefined> {
  let client: Client | undefined;
  try {
    const claims = unverifiedClaims(token);
    if (!isIdToken(claims, issuer)) return undefined;
    client = await audience(config, claims);
    if (client !== undefined) await verify(token, client, keys);
    return undefined;
  } catch (thrown) {
    if (thrown instanceof joseErrors.JWKSNoMatchingKey) return client;
    if (thrown instanceof joseErrors.JOSEError || thrown instanceof TypeError) return undefined;
    throw thrown;
  }
}

/**
 * Verifies a token of which more is to come than a logout: it has not expired, the application could not write it, and
 * its user has had no new password since.
 */
async function validToken(
  deps: ReaderDependencies,
  token: string,
): Promise<(VerifiedToken & { user: User }) | undefined> {
  const verified = await verifiedToken(deps, token);
  if (verified === undefined || verified.isSignedWithSecret) return undefined;
  const { claims } = verified;
  if (claims.exp <= epochSeconds(deps.clock)) return undefined;
  const user = await deps.users.get(claims.sub);
  if (user === undefined || isBeforeEnd(user, claims)) return undefined;
  return { ...verified, user };
}

/** @see IdTokenProof */
async function provesPresence(
  { clock, secondFactor, sessions }: ReaderDependencies,
  { client, claims, sid, user }: VerifiedToken & { user: User },
): Promise<boolean> {
  // A third-party application and somebody who acts for the user have the token, but the user means neither.
  if (client.is_first_party === false || claims.act !== undefined) return false;
  if (admissionError(user) !== undefined || sid === undefined) return false;
  const login = await sessions.loginOf(sid);
  if (login === undefined || login.userId !== user.id) return false;
  // What the session got before its user authenticated in it again does not prove what they did then.
  if (login.authTime === undefined || claims.auth_time !== login.authTime) return false;
  if (lackFor('identity', login, epochSeconds(clock)) !== undefined) return false;
  return secondFactor.isSufficient(asClaimed(login, claims), user);
}

/** Returns the login without the second factor, if the token was issued before it was given. */
function asClaimed(login: AuthenticatedLogin, { amr }: JWTPayload): AuthenticatedLogin {
  if (Array.isArray(amr) && amr.includes('mfa')) return login;
  return { ...login, amr: methodsOfFirstFactor(login.amr) };
}

async function audience(config: Config, { aud }: JWTPayload): Promise<Client | undefined> {
  const [only, ...others]: unknown[] = [aud ?? []].flat();
  return typeof only !== 'string' || others.length > 0 ? undefined : config.client(only);
}

/** The types of our ID tokens. */
export const ID_TOKEN_TYPES = [undefined];

/**
 * Whether a token of such a type is an ID token. Logout tokens, access tokens and responses of other endpoints are signed with the
 * same keys. An access token may even have the same `typ`, and as its audience an API with the identifier of an
 * application; but it names the application that it was issued to (RFC 9068 §2.2), as no ID token for one audience
 * does (OpenID Connect Core §2).
 */
function isIdToken(claims: JWTPayload, issuer: string): claims is VerifiedToken['claims'] {
  const { iss, sub, iat, exp, events, azp, client_id } = claims;
  if (events !== undefined || azp !== undefined || client_id !== undefined) return false;
  return iss === issuer && typeof sub === 'string' && typeof iat === 'number' && typeof exp === 'number';
}

/**
 * Verifies the signature. A secret is used only when the application's ID tokens are signed with HS256, and each of
 * our keys only for its own `alg` (RFC 8725 §3.1).
 */
async function verify(token: string, client: Client, keys: PublishedKeys): Promise<void> {
  const { alg } = jwtHeader(token, ID_TOKEN_TYPES);
  const secret = idTokenAlg(client) === 'HS256' ? client.client_secret : undefined;
  if (alg === 'HS256' && secret !== undefined) {
    const rules = { algorithms: ['HS256'], types: ID_TOKEN_TYPES };
    await verifySignature(token, new TextEncoder().encode(secret), rules);
  } else {
    await verifySignature(token, keys.find, { algorithms: SIGNING_ALGS, types: ID_TOKEN_TYPES });
  }
}
