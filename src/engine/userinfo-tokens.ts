// Verifies the access tokens that `/userinfo` accepts: opaque ones, and JWTs that name it as an audience.
import type Provider from 'oidc-provider';
import type { AccessToken, Grant } from 'oidc-provider';
import type { Clock } from '../runtime/clock.ts';
import type { User } from '../users/user.ts';
import type { Users } from '../users/users.ts';
import { userinfoAudience } from './access-token.ts';
import { ISSUED_AT_MS, isTokenEnded } from './ended-tokens.ts';
import { readOwnToken } from './own-tokens.ts';
import { type Confirmation, confirmationOf, confirmationOfToken } from './proof-of-possession.ts';
import type { PublishedKeys } from './published-keys.ts';
import type { ReadAhead } from './read-ahead.ts';
import type { Sessions } from './sessions.ts';

export interface UserinfoTokenDependencies {
  provider: Provider;
  keys: PublishedKeys;
  clock: Clock;
  ahead: ReadAhead;
  users: Pick<Users, 'get' | 'credentialVersion'>;
  sessions: Pick<Sessions, 'isOpen'>;
}

/** A verified access token, opaque or JWT. */
export interface PresentedAccessToken {
  userId: string;
  clientId: string;
  scopes: string[];
  /** Epoch seconds. */
  issuedAt: number;
  /** Epoch milliseconds, for a token that was issued in the second of a change of its user's address. */
  issuedAtMs?: number | undefined;
  /** Individually requested claims (OIDC Core §5.5). */
  claims: string[];
  /** The id of the organization that the token is for. */
  organization?: string | undefined;
  cnf: Confirmation | undefined;
  /** The user's record, where it was read with the token. */
  user?: User | undefined;
}

/** Makes the reader of access tokens for `/userinfo`. It returns undefined for a token that is not valid. */
export function userinfoTokens(deps: UserinfoTokenDependencies) {
  const { provider, keys, clock, ahead, users, sessions } = deps;
  const audience = userinfoAudience(provider.issuer);
  const readJwt = async (token: string): Promise<PresentedAccessToken | undefined> => {
    const payload = await readOwnToken({ issuer: provider.issuer, keys, clock }, token, { audience });
    const user = payload && (await users.get(String(payload.sub)));
    if (payload === undefined || user === undefined) return undefined;
    if (await isTokenEnded({ users, isOpen: sessions.isOpen }, user, payload)) return undefined;
    return {
      userId: user.id,
      clientId: String(payload.azp ?? payload.client_id),
      scopes: String(payload.scope ?? '').split(' '),
      issuedAt: Number(payload.iat),
      issuedAtMs: milliseconds(payload[ISSUED_AT_MS]),
      // A JWT for an API does not contain the requested claims.
      claims: [],
      organization: typeof payload.org_id === 'string' ? payload.org_id : undefined,
      cnf: confirmationOf(payload),
      user,
    };
  };
  const readOpaque = async (token: string): Promise<PresentedAccessToken | undefined> => {
    const found = await provider.AccessToken.find(token);
    if (found?.accountId === undefined || found.clientId === undefined) return undefined;
    // The grant may have been revoked while the token was being issued.
    const grant = await provider.Grant.find(found.grantId ?? '');
    if (grant === undefined) return undefined;
    return {
      userId: found.accountId,
      clientId: found.clientId,
      scopes: [...found.scopes],
      issuedAt: found.iat ?? 0,
      issuedAtMs: milliseconds(found.extra?.[ISSUED_AT_MS]),
      claims: allowedClaims(grant, found),
      organization: (grant as { organization?: string }).organization,
      cnf: confirmationOfToken(found),
      user: await ahead.user(found.accountId),
    };
  };
  return (token: string): Promise<PresentedAccessToken | undefined> =>
    token.split('.').length === 3 ? readJwt(token) : ahead.run(() => readOpaque(token));
}

const milliseconds = (value: unknown) => (typeof value === 'number' ? value : undefined);

/** Returns the individually requested claims that the grant covers; the others have no consent. */
function allowedClaims(grant: Grant, { claims }: AccessToken): string[] {
  const requested = Object.keys(claims?.userinfo ?? {});
  return requested.length === 0 ? [] : grant.getOIDCClaimsFiltered(new Set(requested));
}
