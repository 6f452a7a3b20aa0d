// The My Account API as an API of the tenant: it is in no store, and applications are granted it as any other.
import { resourceServerSchema } from '../records/apis.ts';
import type { ResourceServer } from '../records/collections.ts';
import { accountAudience } from './audience.ts';

/** How long its access tokens are good, seconds: as long as a login is fresh (actor.ts). */
const TOKEN_SECONDS = 600;

/** What its tokens may be for. */
const ACCOUNT_SCOPES = [
  'create:me:authentication_methods',
  'read:me:authentication_methods',
  'update:me:authentication_methods',
  'delete:me:authentication_methods',
  'read:me:factors',
  'create:me:connected_accounts',
  'read:me:connected_accounts',
  'delete:me:connected_accounts',
] as const;

export type AccountScope = (typeof ACCOUNT_SCOPES)[number];

/**
 * The API as a record. Its tokens are users' alone, and for applications that an administrator allows it: any other script
 * in a page of the tenant's could change the second factors of whoever is logged in.
 */
export function accountApi(issuer: string): ResourceServer {
  return {
    ...resourceServerSchema.parse({
      name: 'Auth0 My Account API',
      identifier: accountAudience(issuer),
      scopes: ACCOUNT_SCOPES.map((value) => ({ value })),
      // SDKs get its tokens for the refresh token of the application (`refresh_token.policies`).
      allow_offline_access: true,
      skip_consent_for_verifiable_first_party_clients: true,
      token_lifetime: TOKEN_SECONDS,
      token_lifetime_for_web: TOKEN_SECONDS,
      subject_type_authorization: {
        user: { policy: 'require_client_grant' },
        client: { policy: 'deny_all' },
      },
    }),
    is_system: true,
    id: 'gatehouse-my-account',
  };
}
