// The Management API as a resource server of the tenant. Clients are granted it like any other API, but no store
// holds its record.

import type { Frozen } from '../../records/base/record.ts';
import { type ManagementApiSettings, resourceServerSchema } from '../../records/clients/apis.ts';
import type { ResourceServer } from '../../records/collections.ts';
import type { BuiltInNeeds, BuiltIns } from '../../tenant/config.ts';
import { derived } from '../../tenant/config.ts';
import type { CallRules } from './call.ts';
import { MANAGEMENT_CALLS } from './calls.ts';
import { managementAudience } from './management-audience.ts';

/** Returns every scope that some call accepts, sorted. */
function scopesOf(calls: readonly CallRules[]): string[] {
  const all = calls.flatMap(({ scopes, allScopes = [], currentUserScopes = [] }) => [
    ...scopes,
    ...allScopes,
    ...currentUserScopes,
  ]);
  return [...new Set(all)].sort();
}

// docs/understand/decisions/management-api.md#the-management-api-is-one-api-of-the-tenant-with-the-identifier-issuerapiv2
/**
 * Unless the tenant sets it otherwise, its tokens live 24 hours, and users are asked for consent, as at the hosted
 *   service.
 * @param issuer with its slash at the end.
 * @param settings what the tenant has set.
 */
export function managementApi(issuer: string, settings?: Frozen<ManagementApiSettings>): ResourceServer {
  return {
    ...resourceServerSchema.parse({
      name: 'Auth0 Management API',
      identifier: managementAudience(issuer),
      scopes: scopesOf(MANAGEMENT_CALLS).map((value) => ({ value })),
      allow_offline_access: false,
      skip_consent_for_verifiable_first_party_clients: false,
      token_lifetime: 86_400,
      token_lifetime_for_web: 7200,
      ...settings,
    }),
    is_system: true,
    id: 'gatehouse-management',
  };
}

/** Returns all scopes of the API. */
export const managementScopes = (issuer: string): string[] =>
  managementApi(issuer).scopes.map(({ value }) => value);

/** The Management API as the tenant has set it now. */
export function managementBuiltIns({ issuer, settings }: BuiltInNeeds): BuiltIns {
  const record = derived(
    () => settings().managementApi,
    (set) => managementApi(issuer, set),
  );
  return { apis: [{ identifier: managementAudience(issuer), record }] };
}
