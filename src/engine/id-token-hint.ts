// ID tokens that come back as a hint of who logs out (OpenID Connect RP-Initiated Logout 1.0 §2).
import { compactVerify, decodeJwt, decodeProtectedHeader, type JWTPayload, errors as joseErrors } from 'jose';
import type { Client } from '../records/collections.ts';
import type { Config } from '../tenant/config.ts';
import type { PublishedKeys } from './published-keys.ts';

/** What an ID token of ours says of who logged in where. */
export interface IdTokenHint {
  /** The application that it was issued to. */
  client: Client;
  userId: string;
  /** The session it was issued in; a token of the token endpoint alone has none. */
  sid: string | undefined;
}

/** @returns what the token says; undefined when it is none of ours. However old it is: §2 accepts expired ones. */
export type ReadIdTokenHint = (token: string) => Promise<IdTokenHint | undefined>;

/** Verifies hints against the published keys, or the application's secret where it has HS256. */
export function idTokenHints(deps: { issuer: string; keys: PublishedKeys; config: Config }): ReadIdTokenHint {
  return async (token) => {
    try {
      const claims = decodeJwt(token);
      const client = await audience(deps.config, claims);
      if (client === undefined || !isIdToken(token, claims, deps.issuer)) return undefined;
      await verify(token, client, deps.keys);
      return {
        client,
        userId: String(claims.sub),
        sid: typeof claims.sid === 'string' ? claims.sid : undefined,
      };
    } catch (thrown) {
      if (thrown instanceof joseErrors.JOSEError || thrown instanceof TypeError) return undefined;
      throw thrown;
    }
  };
}

async function audience(config: Config, { aud }: JWTPayload): Promise<Client | undefined> {
  const [only, ...others]: unknown[] = [aud ?? []].flat();
  return typeof only !== 'string' || others.length > 0 ? undefined : config.client(only);
}

/** Logout tokens and access tokens are signed with the same keys: a type of their own, or events, tells them. */
function isIdToken(token: string, { iss, sub, events }: JWTPayload, issuer: string): boolean {
  const { typ = 'JWT' } = decodeProtectedHeader(token);
  return typ.toUpperCase() === 'JWT' && iss === issuer && typeof sub === 'string' && events === undefined;
}

/** The algorithm is the application's, never the token's choice (RFC 8725 §3.1). */
async function verify(token: string, client: Client, keys: PublishedKeys): Promise<void> {
  const { alg } = decodeProtectedHeader(token);
  const secret = client.jwt_configuration.alg === 'HS256' ? client.client_secret : undefined;
  if (alg === 'HS256' && secret !== undefined) {
    await compactVerify(token, new TextEncoder().encode(secret), { algorithms: ['HS256'] });
  } else {
    await compactVerify(token, keys.find, { algorithms: ['RS256'] });
  }
}
