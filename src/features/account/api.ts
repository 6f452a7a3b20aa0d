// The My Account API as an API of the tenant. It is not stored, but applications are granted it like any other.
import { resourceServerSchema } from '../../records/clients/apis.ts';
import type { ResourceServer } from '../../records/collections.ts';
import type { BuiltInNeeds, BuiltIns } from '../../tenant/config.ts';
import { accountAudience } from './account-audience.ts';

/** Lifetime of its access tokens in seconds, the same as that of a fresh login (actor.ts). */
const TOKEN_SECONDS = 600;

/** The scopes of its access tokens. */
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

// docs/understand/decisions/console-account.md#applications-need-a-client-grant-for-the-my-account-api
/**
 * Returns the record of the API. Only users get tokens for it, and only through applications with a client grant:
 * otherwise any script of a page of the tenant could change the second factors of the user who is logged in.
 * @param issuer with a trailing slash.
 */
export function accountApi(issuer: string): ResourceServer {
  return {
    ...resourceServerSchema.parse({
      name: 'Auth0 My Account API',
      identifier: accountAudience(issuer),
      scopes: ACCOUNT_SCOPES.map((value) => ({ value })),
      // SDKs get its tokens with the application's refresh token (`refresh_token.policies`).
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

export function accountBuiltIns({ issuer }: BuiltInNeeds): BuiltIns {
  const api = accountApi(issuer);
  return { apis: [{ identifier: api.identifier, record: () => api }] };
}
