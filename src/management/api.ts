// The Management API as an API of the tenant: applications are granted it like any other, and it is in no store.
import { resourceServerSchema } from '../records/apis.ts';
import type { ResourceServer } from '../records/collections.ts';
import type { Config } from '../tenant/config.ts';
import { managementAudience } from './audience.ts';
import type { CallRules } from './call.ts';
import { MANAGEMENT_CALLS } from './calls.ts';

/** Scopes that a user's own token may have: with them it reaches that user alone. */

/** All scopes of the calls, in order. */
function scopesOf(calls: readonly CallRules[]): string[] {
  const all = calls.flatMap(({ scopes, allScopes = [], ownScopes = [] }) => [
    ...scopes,
    ...allScopes,
    ...ownScopes,
  ]);
  return [...new Set(all)].sort();
}

/** The API as a record; tokens live a day, as at the hosted service. */
export function managementApi(issuer: string): ResourceServer {
  return {
    ...resourceServerSchema.parse({
      name: 'Auth0 Management API',
      identifier: managementAudience(issuer),
      scopes: scopesOf(MANAGEMENT_CALLS).map((value) => ({ value })),
      allow_offline_access: false,
      skip_consent_for_verifiable_first_party_clients: false,
      token_lifetime: 86_400,
      token_lifetime_for_web: 7200,
    }),
    is_system: true,
    id: 'gatehouse-management',
  };
}

/** The tenant as it is, and an API of our own in it. */
export function withApi(config: Config, api: ResourceServer): Config {
  return {
    ...config,
    resourceServer: (identifier) =>
      identifier === api.identifier ? Promise.resolve(api) : config.resourceServer(identifier),
  };
}
