// What runs the tenant's own code: scripts, actions, custom databases.

import { totalmem } from 'node:os';
import { createActions } from '../capabilities/actions/actions.ts';
import { METHOD_LISTS } from '../capabilities/actions/commands.ts';
import { createExecutions } from '../capabilities/actions/executions.ts';
import { registrationActions } from '../capabilities/actions/registration.ts';
import { type ActionTest, tryAction } from '../capabilities/actions/try-action.ts';
import type { Deliveries } from '../capabilities/delivery/deliveries.ts';
import { type Pause, timerPause } from '../capabilities/delivery/queue.ts';
import type { RateLimits } from '../capabilities/protection/rate-limit.ts';
import { SCRIPT_LIMITS } from '../capabilities/scripts/limits.ts';
import { createPackages } from '../capabilities/scripts/packages/packages.ts';
import { createScripts } from '../capabilities/scripts/scripts.ts';
import { threadsWithin } from '../capabilities/scripts/threads.ts';
import { customDatabases } from '../features/connections/database/custom.ts';
import { withCustomDatabases } from '../features/connections/database/custom-users.ts';
import type { Outbound } from '../http/outbound.ts';
import type { Background } from '../runtime/background.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Random } from '../runtime/secrets.ts';
import type { SpareThreads } from '../runtime/spare-threads.ts';
import type { Waits } from '../runtime/waits.ts';
import { packagesDirectory, type Settings } from '../settings/index.ts';
import { isForThisMachine, workersOf } from '../settings/server.ts';
import type { Store } from '../store/contract.ts';
import type { Leases } from '../store/leases.ts';
import type { Config } from '../tenant/config.ts';
import type { Events } from '../tenant/events.ts';
import { retentionDays } from '../tenant/events.ts';
import { withIdentifierNotices } from '../users/identifier-notices.ts';
import { withRegistration } from '../users/registration.ts';
import type { TenantUsers } from '../users/users.ts';

interface OwnCodeDependencies {
  settings: Settings;
  store: Store;
  users: TenantUsers;
  clock: Clock;
  wallClock: Clock;
  random: Random;
  pause?: Pause;
  waits?: Waits;
  spareThreads?: SpareThreads | undefined;
}

/**
 * Makes the scripts, actions and custom databases of a tenant. The `users` that it returns run the tenant's code for
 * every new user and password, so features must be given these.
 */
export function ownCode(
  {
    settings,
    store,
    users,
    clock,
    wallClock,
    random,
    pause = timerPause,
    waits,
    spareThreads,
  }: OwnCodeDependencies,
  {
    background,
    config,
    deliveries,
    events,
    leases,
    outbound,
    rateLimits,
  }: {
    background: Background;
    config: Config;
    deliveries: Pick<Deliveries, 'add'>;
    events: Events;
    leases: Leases;
    outbound: Outbound;
    rateLimits: RateLimits;
  },
) {
  const scripts = createScripts({
    outbound,
    clock: wallClock,
    keepsLog: isForThisMachine(settings),
    prepared: METHOD_LISTS,
    waitMs: waits?.scriptThread,
    threads: threadsWithin(availableMemory() / (workersOf(settings) ?? 1), SCRIPT_LIMITS),
    spareThreads,
    ...(waits?.scriptCpu !== undefined && { limits: { ...SCRIPT_LIMITS, cpuMs: waits.scriptCpu } }),
  });
  const { hostname } = new URL(settings.baseUrl);
  const packages = createPackages({ directory: packagesDirectory(settings), scripts });
  const days = () => retentionDays(config);
  const executions = createExecutions({ store, background, clock, random, retentionDays: days });
  const actions = createActions({ config, scripts, packages, executions, events, wallClock, hostname });
  const databases = customDatabases({
    scripts,
    packages,
    events,
    rateLimits,
    tenant: hostname,
    clock,
    pause,
  });
  const noticed = withIdentifierNotices(users, events);
  const withDatabases = withCustomDatabases(noticed, { config, customDatabases: databases, leases, random });
  return {
    scripts,
    packages,
    tryAction: (trying: ActionTest) => tryAction({ scripts, packages, wallClock, hostname }, trying),
    customDatabases: databases,
    actions,
    users: withRegistration(
      withDatabases,
      registrationActions({ actions, config, deliveries, events, store, users, wallClock }),
    ),
  };
}

/** Returns the memory of the machine, or of the container if that is less, in bytes. */
function availableMemory(): number {
  const allowed = process.constrainedMemory();
  // 0 where the system knows of no such limit.
  return allowed > 0 ? Math.min(allowed, totalmem()) : totalmem();
}
