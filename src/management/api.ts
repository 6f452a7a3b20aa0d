// The Management API as a resource server of the tenant. Clients are granted it like any other API, but no store
// holds its record.
import { resourceServerSchema } from '../records/apis.ts';
import type { ResourceServer } from '../records/collections.ts';
import type { Config } from '../tenant/config.ts';
import { managementAudience } from './audience.ts';
import type { CallRules } from './call.ts';
import { MANAGEMENT_CALLS } from './calls.ts';

/** Returns every scope that some call accepts, sorted. */
function scopesOf(calls: readonly CallRules[]): string[] {
  const all = calls.flatMap(({ scopes, allScopes = [], ownScopes = [] }) => [
    ...scopes,
    ...allScopes,
    ...ownScopes,
  ]);
  return [...new Set(all)].sort();
}

/**
 * Returns the record of the Management API. Its tokens live 24 hours, as at the hosted service.
 * @param issuer with its slash at the end.
 */
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

/** Returns the configuration with one more resource server, which is not in the store. */
export function withApi(config: Config, api: ResourceServer): Config {
  return {
    ...config,
    resourceServer: (identifier) =>
      identifier === api.identifier ? Promise.resolve(api) : config.resourceServer(identifier),
  };
}
