// Verifies access tokens for our own APIs.
import { type JWTPayload, errors as joseErrors } from 'jose';
import type { Context } from 'koa';
import { hashSecret } from '../runtime/secrets.ts';
import { type TokenVerification, verifyOwnToken } from './own-tokens.ts';
import { type BoundToken, type CheckPossession, confirmationOf } from './proof-of-possession.ts';

/** A verified access token. */
export interface ApiToken {
  userId: string;
  clientId: string;
  scopes: string[];
  /** A hash of the token. */
  id: string;
  claims: Readonly<Record<string, unknown>>;
}

/**
 * Verifies the access token of a request.
 * @returns undefined when it is invalid, expired, or for another audience.
 * @throws AuthError as {@link CheckPossession} does.
 */
export type ApiTokenReader = (ctx: Context, token: string, audience: string) => Promise<ApiToken | undefined>;

/** A verified access token of an application or of a user. */
interface CallerToken {
  /** `<client_id>@clients` for an application's own. */
  subject: string;
  clientId: string;
  scopes: string[];
  /** Whether an application got it for itself (RFC 6749 §4.4). */
  isMachine: boolean;
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

interface ReaderDependencies extends TokenVerification {
  checkPossession: CheckPossession;
}

const MACHINE = 'client-credentials';

/** Makes a reader of users' access tokens. */
export function apiTokenReader(deps: ReaderDependencies): ApiTokenReader {
  return async (ctx, token, audience) => {
    try {
      const payload = await verifyOwnToken(deps, token, { audience });
      await deps.checkPossession(ctx, token, boundToken(payload));
      // A client_credentials token has no user.
      if (payload.gty === MACHINE) return undefined;
      return {
        userId: String(payload.sub),
        clientId: clientIdOf(payload),
        scopes: scopesOf(payload),
        id: hashSecret(token),
        claims: payload,
      };
    } catch (thrown) {
      if (thrown instanceof joseErrors.JOSEError) return undefined;
      throw thrown;
    }
  };
}

/** Makes a reader of access tokens of users and of applications. */
export function callerTokenReader(deps: ReaderDependencies): CallerTokenReader {
  return async (ctx, token, audience) => {
    try {
      const payload = await verifyOwnToken(deps, token, { audience });
      await deps.checkPossession(ctx, token, boundToken(payload));
      return {
        subject: String(payload.sub),
        clientId: clientIdOf(payload),
        scopes: scopesOf(payload),
        isMachine: payload.gty === MACHINE,
      };
    } catch (thrown) {
      if (thrown instanceof joseErrors.JWTExpired) return { fault: 'expired' };
      if (thrown instanceof joseErrors.JWSSignatureVerificationFailed) return { fault: 'signature' };
      if (thrown instanceof joseErrors.JOSEError) return { fault: 'invalid' };
      throw thrown;
    }
  };
}

function boundToken(payload: JWTPayload): BoundToken {
  return { cnf: confirmationOf(payload), clientId: clientIdOf(payload) };
}

function clientIdOf(payload: JWTPayload): string {
  return String(payload.azp ?? payload.client_id);
}

function scopesOf({ scope }: JWTPayload): string[] {
  return String(scope ?? '').split(' ');
}
