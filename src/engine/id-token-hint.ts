// Verifies `id_token_hint` (OpenID Connect RP-Initiated Logout 1.0 §2).
import { compactVerify, decodeJwt, decodeProtectedHeader, type JWTPayload, errors as joseErrors } from 'jose';
import { idTokenAlg } from '../records/clients.ts';
import type { Client } from '../records/collections.ts';
import { SIGNING_ALGS } from '../records/signing-algs.ts';
import { type Clock, epochSeconds } from '../runtime/clock.ts';
import type { Config } from '../tenant/config.ts';
import type { PublishedKeys } from './published-keys.ts';

/** A verified ID token. */
export interface IdTokenHint {
  /** The application that it was issued to. */
  client: Client;
  userId: string;
  /** Its `sid`; undefined for a token from a grant without a browser. */
  sid: string | undefined;
  /** Epoch seconds; 0 when it has no `exp`. */
  expiresAt: number;
  /** Whether it is signed with the application's own secret. The application can make such a token for any user. */
  isSignedWithSecret: boolean;
  claims: JWTPayload;
}

/** Verifies a hint; expired tokens are accepted (§2). @returns undefined when it is not an ID token of ours. */
export type ReadIdTokenHint = (token: string) => Promise<IdTokenHint | undefined>;

/** Makes the verification, with the published keys, or the application's secret for HS256. */
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
        expiresAt: claims.exp ?? 0,
        isSignedWithSecret: decodeProtectedHeader(token).alg === 'HS256',
        claims,
      };
    } catch (thrown) {
      if (thrown instanceof joseErrors.JOSEError || thrown instanceof TypeError) return undefined;
      throw thrown;
    }
  };
}

/**
 * Verifies an ID token as a proof of its user: it has not expired, its session is open, and it is not signed with
 * an application's secret.
 * @returns undefined for any other.
 */
export async function verifyIdTokenProof(
  { readIdTokenHint, wallClock, isOpen }: IdTokenProofDependencies,
  token: string,
): Promise<IdTokenHint | undefined> {
  const hint = await readIdTokenHint(token);
  if (hint === undefined || hint.isSignedWithSecret || hint.expiresAt <= epochSeconds(wallClock))
    return undefined;
  return hint.sid === undefined || (await isOpen(hint.sid)) ? hint : undefined;
}

interface IdTokenProofDependencies {
  readIdTokenHint: ReadIdTokenHint;
  /** The clock that `exp` of tokens is compared with. */
  wallClock: Clock;
  /** @see Sessions.isOpen */
  isOpen(sid: string): Promise<boolean>;
}

async function audience(config: Config, { aud }: JWTPayload): Promise<Client | undefined> {
  const [only, ...others]: unknown[] = [aud ?? []].flat();
  return typeof only !== 'string' || others.length > 0 ? undefined : config.client(only);
}

/**
 * Whether a token is an ID token. Logout tokens and access tokens have the same keys, but another `typ` or
 * `events`.
 */
function isIdToken(token: string, { iss, sub, events }: JWTPayload, issuer: string): boolean {
  const { typ = 'JWT' } = decodeProtectedHeader(token);
  return typ.toUpperCase() === 'JWT' && iss === issuer && typeof sub === 'string' && events === undefined;
}

/**
 * Verifies the signature. A secret is used only when the application's ID tokens are signed with HS256, and each of
 * our keys only for its own `alg` (RFC 8725 §3.1).
 */
async function verify(token: string, client: Client, keys: PublishedKeys): Promise<void> {
  const { alg } = decodeProtectedHeader(token);
  const secret = idTokenAlg(client) === 'HS256' ? client.client_secret : undefined;
  if (alg === 'HS256' && secret !== undefined) {
    await compactVerify(token, new TextEncoder().encode(secret), { algorithms: ['HS256'] });
  } else {
    await compactVerify(token, keys.find, { algorithms: [...SIGNING_ALGS] });
  }
}
