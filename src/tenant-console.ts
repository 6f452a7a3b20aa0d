// What the console is given of a tenant.
import type { Capabilities, TenantDependencies } from './capabilities.ts';
import { customDatabases } from './connections/database/custom.ts';
import { CONSOLE_PATHS, type ConsoleDependencies } from './console/feature.ts';
import { timerPause } from './delivery/queue.ts';
import { EVENTS } from './features.ts';
import { managementApi } from './management/api.ts';
import type { ManagementFeatureDependencies } from './management/feature.ts';
import type { Scripts } from './scripts/scripts.ts';
import { retentionDays } from './tenant/log-retention.ts';
import { factorDependencies, type TenantEngine } from './tenant-engine.ts';

/** Each dependency by its name. @param management what the Management API is given. */
export function consoleDependencies(
  deps: TenantDependencies,
  capabilities: Capabilities,
  { consoleLogins, upstream, engine: { sessions } }: TenantEngine,
  management: ManagementFeatureDependencies,
): ConsoleDependencies {
  const { settings, store } = deps;
  return {
    ...factorDependencies(deps, capabilities),
    ...trying(deps, capabilities, upstream),
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
    issuer: settings.issuer,
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

/** What logins at connections are tried with. */
function trying(
  { settings, users, clock, wallClock, pause = timerPause }: TenantDependencies,
  capabilities: Capabilities,
  upstream: TenantEngine['upstream'],
) {
  const { attempts, callers, challenges, directories, events, limitLogin, rateLimits, scripts } =
    capabilities;
  const { hostname: tenant } = new URL(settings.baseUrl);
  return {
    limitLogin,
    scripts,
    trials: upstream.trials,
    upstream,
    proofs: {
      attempts,
      callers,
      challenges,
      customDatabases: capabilities.customDatabases,
      directories,
      events,
      users,
      wallClock,
    },
    databasesBy: (by: Pick<Scripts, 'run'>) =>
      customDatabases({ scripts: by, events, rateLimits, tenant, clock, pause }),
  };
}
