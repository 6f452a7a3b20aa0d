// The tenant's log events (logins, sign-ups, failures …) with the hosted service's type codes. No request waits for
// them to be written. They never contain secrets.
import type { Logger } from 'pino';
import type { EventType, LogEventRecord } from '../records/base/log-events.ts';
import type { Background } from '../runtime/background.ts';
import { type Clock, epochSeconds } from '../runtime/clock.ts';
import type { Random } from '../runtime/secrets.ts';
import type { Store } from '../store/contract.ts';
import type { Config } from './config.ts';

/** An event to record; `user_name` is the identifier as typed. */
export type TenantEvent = Omit<LogEventRecord, 'id' | 'date' | 'expiresAt' | 'type' | 'transaction'> & {
  type: EventType;
};

/**
 * Decides whether an event that anybody can cause is recorded.
 * @returns `omitted`: how many events of the type were left out since the last recorded one.
 */
export type EventBudget = (event: TenantEvent) => { isRecorded: boolean; omitted: number };

export interface Events {
  /** Records an event in the background. An event without a known user is only recorded while the budget lasts. */
  record(event: TenantEvent): void;
  /** Resolves when the events recorded so far are written. */
  flush(): Promise<void>;
  /** Calls a function after each event was written. */
  listen(listener: () => void): void;
}

/** Returns the prefix of event ids for a time; ids sort by it. @param at epoch milliseconds. */
export function eventIdAt(at: number): string {
  return new Date(at).toISOString().replaceAll(/\D/g, '');
}

const DAY_SECONDS = 86_400;
/** How long events are kept unless the tenant says otherwise. */
export const RETENTION_DAYS = 30;
/** Maximum lengths of texts that come from requests, in characters. */
const MAX_LENGTHS = { name: 255, description: 1000 };

interface EventsDependencies {
  store: Store;
  clock: Clock;
  random: Random;
  log: Logger;
  budget: EventBudget;
  /** How many days an event is kept that is recorded now; {@link RETENTION_DAYS} by default. */
  retentionDays?: () => number;
  // docs/understand/decisions/operating.md#log-events-have-a-transaction
  /** Returns the id of the current transaction. */
  transaction?: () => string | undefined;
  /** Called for each event, recorded or not. */
  measure?: ((code: string, connection: string | undefined) => void) | undefined;
}

export function createEvents({
  store,
  clock,
  random,
  log,
  budget,
  measure,
  transaction: transactionNow = () => undefined,
  retentionDays = () => RETENTION_DAYS,
}: EventsDependencies): Events {
  const pending = new Set<Promise<void>>();
  const listeners: (() => void)[] = [];
  return {
    record: (event) => {
      const { code: type } = event.type;
      measure?.(type, event.connection);
      const { isRecorded, omitted } = budget(event);
      if (!isRecorded) return;
      const transaction = transactionNow();
      const record: LogEventRecord = {
        ...event,
        type,
        ...(transaction !== undefined && { transaction }),
        ...(omitted === 0 ? {} : { details: { ...event.details, left_out: omitted } }),
        // Ids sort by time, and so do lists of events.
        id: `${eventIdAt(clock())}${random(12).toString('hex')}`,
        date: new Date(clock()).toISOString(),
        expiresAt: epochSeconds(clock) + retentionDays() * DAY_SECONDS,
      };
      for (const field of ['user_name', 'client_id', 'connection', 'description'] as const) {
        const maxLength = field === 'description' ? MAX_LENGTHS.description : MAX_LENGTHS.name;
        if (event[field] !== undefined) record[field] = event[field].slice(0, maxLength);
      }
      log.info(
        { event: record.type, client_id: record.client_id, user_id: event.user_id, ip: event.ip },
        'event',
      );
      const write = store
        .collection('logs')
        .insert(record)
        .catch((error: unknown) => log.error({ err: error }, 'an event could not be recorded'))
        .finally(() => {
          pending.delete(write);
          for (const listener of listeners) listener();
        });
      pending.add(write);
    },
    flush: async () => {
      await Promise.all(pending);
    },
    listen: (listener) => {
      listeners.push(listener);
    },
  };
}

// How long the tenant's log is kept (`tenant.log_retention_days`). The store deletes each event when it expires.
// After the retention was shortened, older events are deleted here, in batches.
// docs/understand/decisions/operating.md#log_retention_days-is-a-tenant-setting

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
