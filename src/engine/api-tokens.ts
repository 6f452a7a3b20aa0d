// Verifies access tokens for our own APIs.
import { errors as joseErrors, jwtVerify } from 'jose';
import type { Clock } from '../runtime/clock.ts';
import { hashSecret } from '../runtime/secrets.ts';
import type { PublishedKeys } from './published-keys.ts';

/** A verified access token. */
export interface ApiToken {
  userId: string;
  clientId: string;
  scopes: string[];
  /** A hash of the token. */
  id: string;
  claims: Readonly<Record<string, unknown>>;
}

/** Verifies an access token. @returns undefined when it is invalid, expired, or for another audience. */
export type ApiTokenReader = (token: string, audience: string) => Promise<ApiToken | undefined>;

/** A reader for the tokens of an issuer. */
export function apiTokenReader(deps: { issuer: string; keys: PublishedKeys; clock: Clock }): ApiTokenReader {
  return async (token, audience) => {
    try {
      const { payload } = await jwtVerify(token, deps.keys.find, {
        issuer: deps.issuer,
        audience,
        algorithms: ['RS256'],
        requiredClaims: ['exp', 'iat', 'sub'],
        currentDate: new Date(deps.clock()),
      });
      // A client_credentials token has no user.
      if (payload.gty === 'client-credentials') return undefined;
      return {
        userId: String(payload.sub),
        clientId: String(payload.azp ?? payload.client_id),
        scopes: String(payload.scope ?? '').split(' '),
        id: hashSecret(token),
        claims: payload,
      };
    } catch (thrown) {
      if (thrown instanceof joseErrors.JOSEError) return undefined;
      throw thrown;
    }
  };
}
