// Counts log events by type and hour, so that pages with statistics read no events. Each event is counted once, in
// the order of ids and in small batches. The counts of past hours are stored.
// docs/understand/decisions/console-account.md#the-figures-of-the-overview-are-stored-sums

import type { LogCountRecord, LogEventRecord } from '../records/base/log-events.ts';
import type { Frozen } from '../records/base/record.ts';
import { isAdministratorId } from '../records/users/administrators.ts';
import type { Background } from '../runtime/background.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Store } from '../store/contract.ts';
import { type Distinct, distinct, storedSketch } from './distinct.ts';
import { eventIdAt } from './events.ts';

export interface HourCount {
  /** The number of events by type. */
  counts: Record<string, number>;
  /** The id of the latest event by type. */
  latest: Record<string, string>;
  users: Distinct;
}

interface CountedHours {
  /** By the beginning of the hour, epoch milliseconds. Hours without events are missing. */
  hours: ReadonlyMap<number, HourCount>;
  /** Whether more events have to be counted, so that the numbers are still too low. */
  isBehind: boolean;
}

export interface LogCounts {
  /**
   * Returns the hours that end after a time. Counts up to now, or as far as is possible in a moment.
   * @param from epoch milliseconds.
   */
  since(from: number): Promise<CountedHours>;
}

interface LogCountsDependencies {
  store: Store;
  clock: Clock;
  background: Background;
  /** Aborted when the server stops. */
  ending: AbortSignal;
}

const HOUR = 3_600_000;
/** How long hours are kept, and how far back older events are counted, milliseconds. */
const RETENTION_MS = 31 * 24 * HOUR;
/** How many hours are loaded: those that are kept, and the present one. */
const MAX_HOURS = RETENTION_MS / HOUR + 1;
/** How many events are read at a time, few enough not to delay logins; and how many batches a request waits for. */
const BATCH = 100;
const BATCHES_IN_REQUEST = 10;
/**
 * After how many batches the counting in the background looks at the shutdown signal and at the counts of other
 * processes.
 */
const BATCHES_IN_BACKGROUND = 200;
/** How often events are counted without a request, so that requests wait less; milliseconds. */
const INTERVAL = 300_000;
/**
 * How long after a time events of that time may still be written, milliseconds; longer for several processes, whose
 * clocks differ.
 */
const WRITE_DELAY = { alone: 1_000, shared: 10_000 };

/** The type of a successful login. */
const LOGIN = 's';

const hourOf = (at: number): number => at - (at % HOUR);

/** Returns the time of an event from its id, epoch milliseconds; 0 for an id that {@link eventIdAt} did not make. */
function timeOf(id: string): number {
  if (id.length < 17) return 0;
  // Without a pattern or a date string, because this runs for each event.
  const digits = (from: number, to: number) => Number(id.slice(from, to));
  const minutes = Date.UTC(digits(0, 4), digits(4, 6) - 1, digits(6, 8), digits(8, 10), digits(10, 12));
  return minutes + digits(12, 14) * 1_000 + digits(14, 17) || 0;
}

export function createLogCounts(deps: LogCountsDependencies): LogCounts {
  const { store, clock, background, ending } = deps;
  const counting = createCounting(deps);
  let isRunning = false;
  let isBehind = false;
  /** Counts some batches: more of them once the counts are behind, because requests no longer wait for them. */
  const countSome = async () => {
    isBehind = !(await counting.count(isBehind ? BATCHES_IN_BACKGROUND : BATCHES_IN_REQUEST));
  };
  const inBackground = () => {
    if (isRunning || ending.aborted) return;
    isRunning = true;
    background.run('the counts of the log', async () => {
      try {
        do await countSome();
        while (isBehind && !ending.aborted);
      } finally {
        isRunning = false;
      }
    });
  };
  const timer = setInterval(inBackground, INTERVAL).unref();
  ending.addEventListener('abort', () => clearInterval(timer));
  const late = store.exclusive === true ? WRITE_DELAY.alone : WRITE_DELAY.shared;
  return {
    since: async (from) => {
      if (!isBehind) await countSome();
      if (isBehind) inBackground();
      const hours = [...counting.hours].filter(([hour]) => hour + HOUR > from && hour <= clock() - late);
      return { hours: new Map(hours), isBehind };
    },
  };
}

/** Returns a counter that continues where it stopped, one batch after another. */
function createCounting({ store, clock }: Pick<LogCountsDependencies, 'store' | 'clock'>) {
  const stored = store.collection('logCounts');
  const logs = store.collection('logs');
  const late = store.exclusive === true ? WRITE_DELAY.alone : WRITE_DELAY.shared;
  const hours = new Map<number, HourCount>();
  const beginning = () => eventIdAt(hourOf(clock() - RETENTION_MS));
  /** The id up to which events are counted. */
  let after = beginning();
  let turn: Promise<unknown> = Promise.resolve();

  /** Loads the stored counts, of an earlier run or of other processes. */
  const loadStored = async () => {
    // The clock was ahead, so the counts are incomplete. They are loaded again.
    if (timeOf(after) > clock()) {
      hours.clear();
      after = beginning();
    }
    const { records } = await stored.list({ after: hourId(timeOf(after) - HOUR), limit: MAX_HOURS });
    const isOver = ({ hour }: Frozen<LogCountRecord>) => hour + HOUR <= clock();
    // An hour that is not over was stored by a process whose clock was ahead. It is counted again.
    for (const { id } of records.filter((record) => !isOver(record))) await stored.delete(id);
    const complete = records.filter(isOver);
    for (const record of complete) hours.set(record.hour, countOf(record));
    const last = complete.at(-1);
    if (last !== undefined && eventIdAt(last.hour + HOUR) > after) after = eventIdAt(last.hour + HOUR);
    for (const hour of hours.keys()) if (hour < clock() - RETENTION_MS) hours.delete(hour);
  };
  /** @returns whether all events are counted. */
  const countBatch = async (): Promise<boolean> => {
    const end = eventIdAt(clock() - late);
    const { records } = await logs.list({ after, limit: BATCH });
    const counted = records.filter(({ id }) => id < end);
    const firstHour = hourOf(timeOf(after));
    for (const event of counted) add(hours, event);
    const isDone = counted.length < BATCH;
    after = isDone ? (end > after ? end : after) : (counted.at(-1)?.id ?? after);
    // In order, because the last stored hour implies that all hours before it are stored.
    for (const [hour, count] of [...hours].sort(([a], [b]) => a - b))
      if (hour >= firstHour && hour < hourOf(timeOf(after))) await stored.put(recordOf(hour, count));
    return isDone;
  };
  return {
    hours: hours as ReadonlyMap<number, HourCount>,
    /** @returns whether all events are counted. */
    count: (maxBatches: number): Promise<boolean> => {
      const work = turn.then(async () => {
        await loadStored();
        for (let n = 0; n < maxBatches; n += 1) {
          if (await countBatch()) return true;
          // Lets other requests run.
          await new Promise((resolve) => setImmediate(resolve));
        }
        return false;
      });
      turn = work.catch(() => undefined);
      return work;
    },
  };
}

function add(hours: Map<number, HourCount>, event: Frozen<LogEventRecord>): void {
  const hour = hourOf(timeOf(event.id));
  // What administrators do in the console is not part of the tenant's statistics.
  if (hour === 0 || isAdministratorId(event.user_id ?? '')) return;
  const count = hours.get(hour) ?? { counts: {}, latest: {}, users: distinct() };
  hours.set(hour, count);
  const { left_out: omitted } = (event.details ?? {}) as { left_out?: unknown };
  const occurrences = 1 + (typeof omitted === 'number' ? omitted : 0);
  count.counts[event.type] = (count.counts[event.type] ?? 0) + occurrences;
  count.latest[event.type] = event.id;
  if (event.type === LOGIN && event.user_id !== undefined) count.users.add(event.user_id);
}

/** Returns the id of an hour. Ids sort by time. */
const hourId = (hour: number): string => eventIdAt(hour).slice(0, 10);

function recordOf(hour: number, { counts, latest, users }: HourCount): LogCountRecord {
  const sketch = storedSketch(users);
  return {
    id: hourId(hour),
    hour,
    counts,
    latest,
    ...(sketch !== undefined && { users: sketch }),
    expiresAt: Math.ceil((hour + RETENTION_MS + HOUR) / 1000),
  };
}

function countOf({ counts, latest, users }: Frozen<LogCountRecord>): HourCount {
  return { counts: { ...counts }, latest: { ...latest }, users: distinct(users) };
}
