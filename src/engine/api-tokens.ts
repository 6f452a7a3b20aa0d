// Access tokens for APIs of our own: JWTs that we issued, for that audience.
import { errors as joseErrors, jwtVerify } from 'jose';
import type { Clock } from '../runtime/clock.ts';
import { hashSecret } from '../runtime/secrets.ts';
import type { PublishedKeys } from './published-keys.ts';

/** What an access token for one of our APIs says. */
export interface ApiToken {
  userId: string;
  clientId: string;
  scopes: string[];
  /** What it is known by: a hash of it. */
  id: string;
  /** All that it says. */
  claims: Readonly<Record<string, unknown>>;
}

/** Reads an access token. @returns undefined when it is none of ours, for another audience, or over. */
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
      // A machine's token has no user whose factors these could be.
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
