// The tenant's log events (logins, sign-ups, failures …) with the hosted service's type codes. No request waits for
// them, and they never hold secrets.
import type { Logger } from 'pino';
import type { EventType, LogEventRecord } from '../records/log-events.ts';
import { type Clock, epochSeconds } from '../runtime/clock.ts';
import type { Random } from '../runtime/random.ts';
import type { Store } from '../store/contract.ts';

/** An event to record; `user_name` is the identifier as typed. */
export type TenantEvent = Omit<LogEventRecord, 'id' | 'date' | 'expiresAt' | 'type' | 'transaction'> & {
  type: EventType;
};

/**
 * Decides which events are recorded of those that anybody can cause.
 * @returns `leftOut`: events of the type left out since the last recorded one.
 */
export type EventBudget = (event: TenantEvent) => { isRecorded: boolean; leftOut: number };

export interface Events {
  /** Records an event in the background; without a known user only while the budget lasts. */
  record(event: TenantEvent): void;
  /** Waits for the events recorded so far. */
  flush(): Promise<void>;
  /** Calls somebody after each event that was recorded. */
  listen(listener: () => void): void;
}

/** What ids of events begin with that are recorded at a time, or later: they sort by it. @param at epoch milliseconds. */
export function eventIdAt(at: number): string {
  return new Date(at).toISOString().replaceAll(/\D/g, '');
}

const DAY_SECONDS = 86_400;
/** How long events are kept where the tenant says nothing. */
export const RETENTION_DAYS = 30;
/** Characters kept of what a request says. */
const LONGEST = { name: 255, description: 1000 };

interface EventsDependencies {
  store: Store;
  clock: Clock;
  random: Random;
  log: Logger;
  budget: EventBudget;
  /** The types that are declared: no other is written. */
  types: ReadonlySet<string>;
  /** How many days an event is kept that is recorded now; {@link RETENTION_DAYS} otherwise. */
  retentionDays?: () => number;
  /** The id of what is done now. */
  transaction?: () => string | undefined;
  /** Told of each event, recorded or not, with the connection's name as the event has it. */
  measure?: ((type: string, connection: string | undefined) => void) | undefined;
}

/** The event log of a tenant, in its store. */
export function createEvents({
  store,
  clock,
  random,
  log,
  budget,
  types,
  measure,
  transaction: transactionNow = () => undefined,
  retentionDays = () => RETENTION_DAYS,
}: EventsDependencies): Events {
  const pending = new Set<Promise<void>>();
  const listeners: (() => void)[] = [];
  return {
    record: (event) => {
      if (!types.has(event.type)) {
        log.error({ event: event.type }, 'an event that nobody declares was not recorded');
        return;
      }
      measure?.(event.type, event.connection);
      const { isRecorded, leftOut } = budget(event);
      if (!isRecorded) return;
      const transaction = transactionNow();
      const record: LogEventRecord = {
        ...event,
        ...(transaction !== undefined && { transaction }),
        ...(leftOut === 0 ? {} : { details: { ...event.details, left_out: leftOut } }),
        // Ids sort by time, and so do lists of events.
        id: `${eventIdAt(clock())}${random(12).toString('hex')}`,
        date: new Date(clock()).toISOString(),
        expiresAt: epochSeconds(clock) + retentionDays() * DAY_SECONDS,
      };
      for (const field of ['user_name', 'client_id', 'connection', 'description'] as const) {
        const longest = field === 'description' ? LONGEST.description : LONGEST.name;
        if (event[field] !== undefined) record[field] = event[field].slice(0, longest);
      }
      log.info(
        { event: record.type, client_id: event.client_id, user_id: event.user_id, ip: event.ip },
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
