// How long the tenant's log is kept (`tenant.log_retention_days`). The store deletes each event when it expires.
// After the retention was shortened, older events are deleted here, in batches.
import type { Background } from '../runtime/background.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Store } from '../store/contract.ts';
import type { Config } from './config.ts';
import { type Events, RETENTION_DAYS } from './events.ts';

const DAY = 86_400_000;
/** Batch size, small enough not to delay requests. */
const BATCH = 200;

interface RetentionDependencies {
  store: Store;
  config: Pick<Config, 'settings' | 'refresh'>;
  events: Pick<Events, 'listen'>;
  background: Background;
  clock: Clock;
  /** Aborted when the server stops. */
  ending: AbortSignal;
}

/** Returns how many days events are kept. */
export function retentionDays({ settings }: Pick<Config, 'settings'>): number {
  return settings().tenant.log_retention_days ?? RETENTION_DAYS;
}

/**
 * Deletes events that are too old, now and whenever the retention was shortened. The change itself is a log event.
 */
export function keepRetention(deps: RetentionDependencies): void {
  const { store, config, events, background, ending } = deps;
  let appliedDays = Number.POSITIVE_INFINITY;
  let revision = -1;
  const purgeIfShortened = async () => {
    await config.refresh();
    const days = retentionDays(config);
    const isShorter = days < appliedDays;
    appliedDays = days;
    if (isShorter) await purgeOlder(deps, days);
  };
  const run = () => {
    // This runs for each event, so it only goes on after a write.
    if (ending.aborted || revision === store.revision()) return;
    revision = store.revision();
    background.run('the purge of the log', purgeIfShortened);
  };
  events.listen(run);
  run();
}

/** Deletes events older than the retention. Ids sort by time, so the oldest come first. */
async function purgeOlder({ store, clock, ending }: RetentionDependencies, days: number): Promise<void> {
  const oldest = new Date(clock() - days * DAY).toISOString();
  for (;;) {
    const { records } = await store.collection('logs').list({ limit: BATCH });
    const old = records.filter(({ date }) => date < oldest);
    if (old.length === 0 || ending.aborted) return;
    await store.batch(old.map(({ id }) => ({ collection: 'logs', delete: id })));
    if (old.length < BATCH) return;
  }
}
