// The tenant's log: every declared event, up to a limit per time, each with the request it belongs to.
import type { Logger } from 'pino';
import { createEventBudget } from '../capabilities/protection/event-budget.ts';
import { measureEvents } from '../features/metrics/logins.ts';
import type { Metrics } from '../features/metrics/registry.ts';
import type { Background } from '../runtime/background.ts';
import type { Clock } from '../runtime/clock.ts';
import { createCorrelation } from '../runtime/correlation.ts';
import type { Random } from '../runtime/secrets.ts';
import type { Store } from '../store/contract.ts';
import type { Config } from '../tenant/config.ts';
import { createEvents, keepRetention, retentionDays } from '../tenant/events.ts';
import { createLogCounts } from '../tenant/log-counts.ts';
import { EVENTS } from './features.ts';

interface TenantLogDependencies {
  store: Store;
  clock: Clock;
  random: Random;
  log: Logger;
  metrics?: Metrics | undefined;
  /** Aborted when the server begins to stop. */
  ending: AbortSignal;
}

/**
 * Makes the log, its hourly statistics, and the correlation that ties the events of one login together. Events are also
 * counted as metrics where metrics are on.
 */
export function tenantLog(deps: TenantLogDependencies, config: Config, background: Background) {
  const { store, random, log, metrics } = deps;
  // Ids of events must sort by time, whichever process recorded them: statistics and log streams continue after an id.
  const clock = store.sharedClock ?? deps.clock;
  const correlation = createCorrelation();
  const events = createEvents({
    store,
    clock,
    random,
    log,
    budget: createEventBudget(deps.clock),
    types: new Set(Object.keys(EVENTS)),
    measure: metrics && measureEvents(metrics.measures, config),
    transaction: correlation.id,
    retentionDays: () => retentionDays(config),
  });
  keepRetention({ ...deps, config, events, background });
  return { correlation, events, logCounts: createLogCounts({ ...deps, clock, background }) };
}
