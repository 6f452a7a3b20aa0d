// The access token of a program that an administrator has approved, for the Management API alone.
// docs/understand/decisions/management-api.md#an-administrator-approves-a-programs-user-code-at-the-console
import { signJwt } from '../../capabilities/signing/jwt.ts';
import type { Signing } from '../../capabilities/signing/signing.ts';
import type { ResourceServer as Api } from '../../records/collections.ts';
import { type Clock, epochSeconds } from '../../runtime/clock.ts';
import type { Confirmation } from '../binding/proof-of-possession.ts';

interface NewAdministratorToken {
  api: Pick<Api, 'identifier' | 'signing_alg'>;
  /** The ticket of the approval, by which each use finds it. */
  ticket: string;
  userId: string;
  clientId: string;
  scopes: readonly string[];
  lifetimeSeconds: number;
  gty: string;
  cnf: Confirmation;
}

/** @throws AuthError 503 when the key is kept outside and does not sign. */
export type SignAdministratorToken = (token: NewAdministratorToken) => Promise<string>;

export function administratorTokenSigner({
  issuer,
  signing,
  wallClock,
}: {
  issuer: string;
  signing: Pick<Signing, 'sign' | 'current'>;
  wallClock: Clock;
}): SignAdministratorToken {
  return async ({ api, ticket, userId, clientId, scopes, lifetimeSeconds, gty, cnf }) => {
    const { identifier, signing_alg: alg } = api;
    if (alg === 'HS256') throw new Error('the Management API has no secret to sign with');
    const now = epochSeconds(wallClock);
    return signJwt(
      signing,
      { alg, typ: 'JWT' },
      {
        iss: issuer,
        sub: userId,
        // Always a list: the vendor's command line reads no other.
        aud: [identifier],
        azp: clientId,
        iat: now,
        exp: now + lifetimeSeconds,
        jti: ticket,
        scope: scopes.join(' '),
        gty,
        ...(Object.values(cnf).some((one) => one !== undefined) && { cnf }),
      },
    );
  };
}
