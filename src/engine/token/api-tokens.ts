// Verifies access tokens for our own APIs.
import { type JWTPayload, errors as joseErrors } from 'jose';
import type { Context } from 'koa';
import { isAdministratorId } from '../../records/users/administrators.ts';
import { hashSecret } from '../../runtime/secrets.ts';
import type { Config } from '../../tenant/config.ts';
import { readPresence } from '../../users/login.ts';
import type { User } from '../../users/user.ts';
import type { Users } from '../../users/users.ts';
import { admissionError } from '../admission/admission.ts';
import type { TokenLogin } from '../admission/second-factor.ts';
import {
  type EndedTokenDependencies,
  isTokenEnded,
  namesLogin,
  type TokenVerification,
  verifyOwnToken,
} from '../base/signed-tokens.ts';
import { type BoundToken, type CheckPossession, confirmationOf } from '../binding/proof-of-possession.ts';

/** An access token for one of our own APIs. */
export interface ApiToken {
  userId: string;
  clientId: string;
  scopes: string[];
  /** A hash of the token. */
  id: string;
  claims: Readonly<Record<string, unknown>>;
}

/** A verified access token, whose login holds. */
export interface VerifiedApiToken extends ApiToken {
  user: User;
}

/**
 * Verifies the access token of a request.
 * @returns undefined when it is invalid, expired, or for another audience, when its login has ended (signed-tokens.ts),
 *   its user is blocked or deleted, or its application is deleted.
 * @throws AuthError as {@link CheckPossession} does.
 */
export type ApiTokenReader = (
  ctx: Context,
  token: string,
  audience: string,
) => Promise<VerifiedApiToken | undefined>;

/** A verified access token of an application or of a user. */
interface CallerToken {
  /** `<client_id>@clients` for an application's own. */
  subject: string;
  clientId: string;
  scopes: string[];
  /** The token of a user; undefined for one that an application got for itself (RFC 6749 §4.4). */
  ofUser: VerifiedApiToken | undefined;
}

/**
 * Verifies the access token of a request, which may be a user's or an application's own.
 * @returns the token's caller, or why it is not valid.
 */
export type CallerTokenReader = (
  ctx: Context,
  token: string,
  audience: string,
) => Promise<CallerToken | { fault: 'expired' | 'signature' | 'invalid' }>;

/** A verified access token of a program that an administrator has approved. Whether it has ended is the reader's to ask. */
export interface AdministratorToken {
  /** The ticket of the approval. */
  ticket: string;
  userId: string;
  clientId: string;
}

/** As {@link CallerTokenReader}, for the Management API, which administrators use as well. */
export type ManagementTokenReader = (
  ctx: Context,
  token: string,
  audience: string,
) => Promise<
  CallerToken | { ofAdministrator: AdministratorToken } | { fault: 'expired' | 'signature' | 'invalid' }
>;

interface ReaderDependencies extends TokenVerification, EndedTokenDependencies {
  checkPossession: CheckPossession;
  config: Pick<Config, 'client'>;
  users: Pick<Users, 'get' | 'credentialVersion'>;
}

const MACHINE = 'client-credentials';

export function apiTokenReader(deps: ReaderDependencies): ApiTokenReader {
  return async (ctx, token, audience) => {
    try {
      const payload = await verifyOwnToken(deps, token, { audience });
      await deps.checkPossession(ctx, token, boundToken(payload));
      // A client_credentials token has no user.
      return payload.gty === MACHINE ? undefined : await tokenOfUser(deps, token, payload);
    } catch (thrown) {
      if (thrown instanceof joseErrors.JOSEError) return undefined;
      throw thrown;
    }
  };
}

export function callerTokenReader(deps: ReaderDependencies): CallerTokenReader {
  return (ctx, token, audience) =>
    withFaults(async () => callerOf(deps, token, await provenClaims(deps, ctx, token, { audience })));
}

export function managementTokenReader(deps: ReaderDependencies): ManagementTokenReader {
  return (ctx, token, audience) =>
    withFaults(async () => {
      const claims = await provenClaims(deps, ctx, token, { audience, administrator: true });
      const userId = String(claims.sub);
      if (!isAdministratorId(userId)) return callerOf(deps, token, claims);
      return { ofAdministrator: { ticket: String(claims.jti), userId, clientId: clientIdOf(claims) } };
    });
}

/** Returns the claims of a token that is ours, for the audience, and whose key the request proves. */
async function provenClaims(
  deps: ReaderDependencies,
  ctx: Context,
  token: string,
  expected: { audience: string; administrator?: true },
): Promise<JWTPayload> {
  const claims = await verifyOwnToken(deps, token, expected);
  await deps.checkPossession(ctx, token, boundToken(claims));
  return claims;
}

async function callerOf(
  deps: ReaderDependencies,
  token: string,
  claims: JWTPayload,
): Promise<CallerToken | { fault: 'invalid' }> {
  const ofUser = claims.gty === MACHINE ? undefined : await tokenOfUser(deps, token, claims);
  if (claims.gty !== MACHINE && ofUser === undefined) return { fault: 'invalid' };
  return { subject: String(claims.sub), clientId: clientIdOf(claims), scopes: scopesOf(claims), ofUser };
}

async function withFaults<T>(
  read: () => Promise<T>,
): Promise<T | { fault: 'expired' | 'signature' | 'invalid' }> {
  try {
    return await read();
  } catch (thrown) {
    if (thrown instanceof joseErrors.JWTExpired) return { fault: 'expired' };
    if (thrown instanceof joseErrors.JWSSignatureVerificationFailed) return { fault: 'signature' };
    if (thrown instanceof joseErrors.JOSEError) return { fault: 'invalid' };
    throw thrown;
  }
}

/** Returns the token of a user, unless it has ended. */
async function tokenOfUser(
  deps: ReaderDependencies,
  token: string,
  claims: JWTPayload,
): Promise<VerifiedApiToken | undefined> {
  const userId = String(claims.sub);
  const clientId = clientIdOf(claims);
  // What follows judges the login that the token names.
  if (!namesLogin(claims)) return undefined;
  const [user, client] = await Promise.all([deps.users.get(userId), deps.config.client(clientId)]);
  if (user === undefined || client === undefined || admissionError(user) !== undefined) return undefined;
  if (await isTokenEnded(deps, user, claims)) return undefined;
  return { userId, clientId, scopes: scopesOf(claims), id: hashSecret(token), claims, user };
}

/** The login that a token names. */
interface NamedLogin extends TokenLogin {
  authTime: number | undefined;
  factors: string;
  /** The id of its session, of its grant without one, or of the token itself. */
  sessionId: string;
}

export function loginOfToken({ userId, id, claims }: ApiToken): NamedLogin {
  const { amr, presence, credential_version: version, factors_changed: factors, sid, grant } = claims;
  return {
    userId,
    amr: Array.isArray(amr) ? amr.map(String) : [],
    presence: readPresence(presence),
    authTime: typeof claims.auth_time === 'number' ? claims.auth_time : undefined,
    credentialVersion: Number(version),
    factors: String(factors),
    // Changes of factors by the login itself do not end it.
    sessionId: textOf(sid) ?? textOf(grant) ?? id,
  };
}

const textOf = (claim: unknown) => (typeof claim === 'string' ? claim : undefined);

function boundToken(payload: JWTPayload): BoundToken {
  return { cnf: confirmationOf(payload), clientId: clientIdOf(payload) };
}

function clientIdOf(payload: JWTPayload): string {
  return String(payload.azp ?? payload.client_id);
}

function scopesOf({ scope }: JWTPayload): string[] {
  return String(scope ?? '').split(' ');
}
