// What the console is given of a tenant.
import type { Capabilities, TenantDependencies } from './capabilities.ts';
import { CONSOLE_PATHS, type ConsoleDependencies } from './console/feature.ts';
import { EVENTS } from './features.ts';
import { managementApi } from './management/api.ts';
import type { ManagementFeatureDependencies } from './management/feature.ts';
import { retentionDays } from './tenant/log-retention.ts';
import { factorDependencies, type TenantEngine } from './tenant-engine.ts';

/** Each dependency by its name. @param management what the Management API is given. */
export function consoleDependencies(
  deps: TenantDependencies,
  capabilities: Capabilities,
  { consoleLogins, engine: { sessions } }: TenantEngine,
  management: ManagementFeatureDependencies,
): ConsoleDependencies {
  const { settings, store } = deps;
  return {
    ...factorDependencies(deps, capabilities),
    baseUrl: settings.baseUrl,
    consoleLogins,
    mailReset: ({ ip, ...about }) =>
      capabilities.requestReset({
        ...about,
        client: undefined,
        organization: undefined,
        languages: [],
        caller: { ip },
      }),
    management,
    meanings: EVENTS,
    paths: CONSOLE_PATHS,
    retentionDays: () => retentionDays(capabilities.config),
    scopes: managementApi(settings.issuer).scopes.map(({ value }) => value),
    sessions,
    store,
    views: capabilities.views,
  };
}
