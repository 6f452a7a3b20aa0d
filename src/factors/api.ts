// The MFA API as an API of the tenant: it exists beside those of the tenant file, in no store and in no export.

import { resourceServerSchema } from '../records/apis.ts';
import type { ResourceServer } from '../records/collections.ts';
import type { Config } from '../tenant/config.ts';
import { MFA_SCOPES, mfaAudience } from './bearer.ts';
import { API_TOKEN_SECONDS } from './factor-changes.ts';

/** The tenant as it is, and the MFA API in it. */
export function withMfaApi(config: Config, issuer: string): Config {
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
    resourceServer: (wanted) =>
      wanted === identifier ? Promise.resolve(api) : config.resourceServer(wanted),
  };
}
