// The tenant's configuration, with the built-in APIs, applications and directory, which are in no tenant file.

import { mtlsOrigin } from '../capabilities/tls/settings.ts';
import { accountApi } from '../features/account/api.ts';
import { withConsole } from '../features/console/directory.ts';
import { withTryLogin } from '../features/development/try-login.ts';
import { withMfaApi } from '../features/factors/api.ts';
import { managementApiOf, withApi } from '../features/management/api.ts';
import type { Random } from '../runtime/secrets.ts';
import type { Settings } from '../settings/index.ts';
import { isForThisMachine } from '../settings/server.ts';
import type { FullConfig, TenantConfig } from '../tenant/config.ts';

/** Returns the views of the configuration that different parts of the server use. */
export function configsOf(
  declaredConfig: TenantConfig,
  { settings, random }: { settings: Settings; random: Random },
): { declaredConfig: TenantConfig; tenantConfig: TenantConfig; config: FullConfig } {
  const tenantConfig = withBuiltIns(declaredConfig, settings);
  return {
    /** Only what the tenant declares. */
    declaredConfig,
    /** For the Management API, which sees nothing of the console. */
    tenantConfig,
    config: settings.console ? withConsole(tenantConfig, random) : { ...tenantConfig, whose: 'all' },
  };
}

/** Adds the built-in APIs, and the application of "Try login" on a development server. */
function withBuiltIns(declared: TenantConfig, settings: Settings): TenantConfig {
  const { issuer } = settings;
  const config = withMtlsOrigin(withBuiltInApis(declared, issuer), settings);
  return isForThisMachine(settings) ? withTryLogin(config, settings.baseUrl) : config;
}

function withBuiltInApis(declared: TenantConfig, issuer: string): TenantConfig {
  const config = withMfaApi(declared, issuer);
  const account = accountApi(issuer);
  const management = managementApiOf(issuer, config);
  return [() => account, management].reduce((before, api) => withApi(before, api().identifier, api), config);
}

/** Adds the origin at which clients show certificates (mutual TLS) to the custom domains. */
function withMtlsOrigin(config: TenantConfig, settings: Settings): TenantConfig {
  const origin = mtlsOrigin(settings);
  return origin === undefined
    ? config
    : { ...config, customOrigins: () => [...config.customOrigins(), origin] };
}
