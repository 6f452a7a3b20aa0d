// The MFA API as an API of the tenant.

import { resourceServerSchema } from '../../records/apis.ts';
import type { ResourceServer } from '../../records/collections.ts';
import type { BuiltInNeeds, BuiltIns } from '../../tenant/config.ts';
import { API_TOKEN_SECONDS } from './authenticators.ts';
import { MFA_SCOPES, mfaAudience } from './bearer.ts';

export function mfaBuiltIns({ issuer }: BuiltInNeeds): BuiltIns {
  const identifier = mfaAudience(issuer);
  const api: ResourceServer = {
    ...resourceServerSchema.parse({
      name: 'MFA',
      identifier,
      scopes: MFA_SCOPES.map((value) => ({ value })),
      token_lifetime: API_TOKEN_SECONDS,
      token_lifetime_for_web: API_TOKEN_SECONDS,
      allow_offline_access: false,
    }),
    id: 'gatehouse-mfa',
  };
  return { apis: [{ identifier, record: () => api }] };
}
