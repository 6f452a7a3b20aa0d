// The tenant's configuration with what is there beside it: APIs, applications and a directory of ours.
import { accountApi } from './account/api.ts';
import { withConsole } from './console/directory.ts';
import { withTryLogin } from './development/try-login.ts';
import { withMfaApi } from './factors/api.ts';
import { managementApi, withApi } from './management/api.ts';
import type { Random } from './runtime/random.ts';
import { isForThisMachine, mtlsOrigin, type Settings } from './settings.ts';
import type { Config } from './tenant/config.ts';

/** The tenant's configuration, as each is given it. */
export function configsOf(
  tenantConfig: Config,
  { settings, random }: { settings: Settings; random: Random },
) {
  const apiConfig = withOurs(tenantConfig, settings);
  return {
    /** The tenant file's own, without what is ours. */
    tenantConfig,
    /** What the Management API is given: it sees nothing of the console. */
    apiConfig,
    config: settings.console ? withConsole(apiConfig, random) : apiConfig,
  };
}

/** The tenant's configuration with what is there beside it: the APIs that are ours, and the application of "Try login". */
function withOurs(tenantConfig: Config, settings: Settings): Config {
  const { issuer } = settings;
  const config = withMtlsOrigin(withOurApis(tenantConfig, issuer), settings);
  return isForThisMachine(settings) ? withTryLogin(config, settings.baseUrl) : config;
}

function withOurApis(tenantConfig: Config, issuer: string): Config {
  const apis = [managementApi(issuer), accountApi(issuer)];
  return apis.reduce(withApi, withMfaApi(tenantConfig, issuer));
}

/** The address where clients are asked for certificates is ours beside those of the custom domains. */
function withMtlsOrigin(config: Config, settings: Settings): Config {
  const origin = mtlsOrigin(settings);
  return origin === undefined
    ? config
    : { ...config, customOrigins: () => [...config.customOrigins(), origin] };
}
