// The tenant's log: every declared event, while its budget lasts, with what it belongs to.
import type { Logger } from 'pino';
import { EVENTS } from './features.ts';
import { measureEvents } from './metrics/logins.ts';
import type { Metrics } from './metrics/registry.ts';
import { createEventBudget } from './protection/event-budget.ts';
import type { Clock } from './runtime/clock.ts';
import type { Random } from './runtime/random.ts';
import type { Trail } from './runtime/trail.ts';
import type { Store } from './store/contract.ts';
import type { Config } from './tenant/config.ts';
import { createEvents, type Events } from './tenant/events.ts';
import { retentionDays } from './tenant/log-retention.ts';

interface TenantLogDependencies {
  store: Store;
  clock: Clock;
  random: Random;
  log: Logger;
  metrics?: Metrics | undefined;
}

/** The log of a tenant, its events counted where metrics are on. */
export function tenantLog(
  { store, clock, random, log, metrics }: TenantLogDependencies,
  config: Config,
  trail: Pick<Trail, 'id'>,
): Events {
  return createEvents({
    store,
    clock,
    random,
    log,
    budget: createEventBudget(clock),
    types: new Set(Object.keys(EVENTS)),
    measure: metrics && measureEvents(metrics.measures, config),
    transaction: trail.id,
    retentionDays: () => retentionDays(config),
  });
}
