// Makes the MFA API available as an API of the tenant. It is neither stored nor exported.

import { resourceServerSchema } from '../../records/apis.ts';
import type { ResourceServer } from '../../records/collections.ts';
import type { Config } from '../../tenant/config.ts';
import { API_TOKEN_SECONDS } from './authenticators.ts';
import { MFA_SCOPES, mfaAudience } from './bearer.ts';

/** Returns the tenant's configuration with the MFA API added to the APIs of the tenant file. */
export function withMfaApi<C extends Config>(config: C, issuer: string): C {
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
  return {
    ...config,
    resourceServer: (audience) =>
      audience === identifier ? Promise.resolve(api) : config.resourceServer(audience),
  };
}
