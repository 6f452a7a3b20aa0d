// How often each type of event was logged in each hour, so that a page of numbers reads no events: they are counted once,
// in the order of their ids, some at a time, and what an hour that is over came to is kept in the store.
import { isAdministratorId } from '../records/administrators.ts';
import type { LogCountRecord, LogEventRecord } from '../records/log-events.ts';
import type { Frozen } from '../records/record.ts';
import type { Background } from '../runtime/background.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Store } from '../store/contract.ts';
import { type Distinct, distinct, keptSketch } from './distinct.ts';
import { eventIdAt } from './events.ts';

/** What was logged in an hour. */
export interface HourCount {
  /** How many there were, by type. */
  counts: Record<string, number>;
  /** The id of the latest, by type. */
  latest: Record<string, string>;
  /** Who logged in. */
  users: Distinct;
}

interface Counted {
  /** By the hour: epoch milliseconds of its beginning. Hours without events are none. */
  hours: ReadonlyMap<number, HourCount>;
  /** Whether there is more to count: the numbers are still too low. */
  isBehind: boolean;
}

export interface LogCounts {
  /** The hours that end after a time: counted up to now, or as far as can be done in a moment. @param from epoch milliseconds. */
  since(from: number): Promise<Counted>;
}

interface LogCountsDependencies {
  store: Store;
  clock: Clock;
  background: Background;
  /** Aborted when the server is about to end. */
  ending: AbortSignal;
}

const HOUR = 3_600_000;
/** How long hours are kept, and how far back what was logged before is counted. Milliseconds. */
const KEPT = 31 * 24 * HOUR;
/** Events that are read at once, few enough that a login beside it does not notice, and how often while a request waits. */
const SLICE = 100;
const WHILE_ASKED = 10;
/** Slices after which it is looked whether the server ends, and what others have counted. */
const AT_ONCE = 200;
/** How often is counted where nobody asks, so that who asks has little to wait for. */
const EVERY = 300_000;
/** After this no event of a time comes any more: of other processes, whose clocks differ, later. Milliseconds. */
const LATE = { alone: 1_000, shared: 10_000 };

/** The type of a login that ended well. */
const LOGIN = 's';

const hourOf = (at: number): number => at - (at % HOUR);

/** Epoch milliseconds of an event, by its id; 0 for an id that {@link eventIdAt} has not made. */
function timeOf(id: string): number {
  if (id.length < 17) return 0;
  // No pattern and no date's text: of each event that is counted the hour is asked for.
  const digits = (from: number, to: number) => Number(id.slice(from, to));
  const minutes = Date.UTC(digits(0, 4), digits(4, 6) - 1, digits(6, 8), digits(8, 10), digits(10, 12));
  return minutes + digits(12, 14) * 1_000 + digits(14, 17) || 0;
}

/** The counts of a tenant's log. */
export function createLogCounts(deps: LogCountsDependencies): LogCounts {
  const { store, clock, background, ending } = deps;
  const counting = createCounting(deps);
  let isAtWork = false;
  let isBehind = false;
  /** Counts some: more of them where nobody waits for these, as all are told that there is much to count. */
  const goOn = async () => {
    isBehind = !(await counting.count(isBehind ? AT_ONCE : WHILE_ASKED));
  };
  const inBackground = () => {
    if (isAtWork || ending.aborted) return;
    isAtWork = true;
    background.run('the counts of the log', async () => {
      try {
        do await goOn();
        while (isBehind && !ending.aborted);
      } finally {
        isAtWork = false;
      }
    });
  };
  const timer = setInterval(inBackground, EVERY).unref();
  ending.addEventListener('abort', () => clearInterval(timer));
  const late = store.exclusive === true ? LATE.alone : LATE.shared;
  return {
    since: async (from) => {
      if (!isBehind) await goOn();
      if (isBehind) inBackground();
      const hours = [...counting.hours].filter(([hour]) => hour + HOUR > from && hour <= clock() - late);
      return { hours: new Map(hours), isBehind };
    },
  };
}

/** Counts on from where it stopped, one slice after another, whoever asks. */
function createCounting({ store, clock }: Pick<LogCountsDependencies, 'store' | 'clock'>) {
  const kept = store.collection('logCounts');
  const logs = store.collection('logs');
  const late = store.exclusive === true ? LATE.alone : LATE.shared;
  const hours = new Map<number, HourCount>();
  const beginning = () => eventIdAt(hourOf(clock() - KEPT));
  /** Up to where is counted: an id, and the hour that is being counted. */
  let after = beginning();
  let turn: Promise<unknown> = Promise.resolve();

  /** Takes over what was counted before, or by another process. */
  const takeOver = async () => {
    // The clock was ahead: what was counted up to there is not all, and what was kept is looked at again.
    if (timeOf(after) > clock()) {
      hours.clear();
      after = beginning();
    }
    const { records } = await kept.list({ after: keptId(timeOf(after) - HOUR), limit: KEPT / HOUR + 1 });
    const isOver = ({ hour }: Frozen<LogCountRecord>) => hour + HOUR <= clock();
    // An hour that is not over was kept by a clock that was ahead, of this process or another: it is counted anew.
    for (const { id } of records.filter((record) => !isOver(record))) await kept.delete(id);
    const complete = records.filter(isOver);
    for (const record of complete) hours.set(record.hour, countOf(record));
    const last = complete.at(-1);
    if (last !== undefined && eventIdAt(last.hour + HOUR) > after) after = eventIdAt(last.hour + HOUR);
    for (const hour of hours.keys()) if (hour < clock() - KEPT) hours.delete(hour);
  };
  /** @returns whether there is nothing more to count. */
  const slice = async (): Promise<boolean> => {
    const end = eventIdAt(clock() - late);
    const { records } = await logs.list({ after, limit: SLICE });
    const counted = records.filter(({ id }) => id < end);
    const begun = hourOf(timeOf(after));
    for (const event of counted) add(hours, event);
    const isDone = counted.length < SLICE;
    after = isDone ? (end > after ? end : after) : (counted.at(-1)?.id ?? after);
    // In order: what is kept last says that all before it is.
    for (const [hour, count] of [...hours].sort(([a], [b]) => a - b))
      if (hour >= begun && hour < hourOf(timeOf(after))) await kept.put(recordOf(hour, count));
    return isDone;
  };
  return {
    hours: hours as ReadonlyMap<number, HourCount>,
    /** @param most slices. @returns whether all is counted. */
    count: (most: number): Promise<boolean> => {
      const work = turn.then(async () => {
        await takeOver();
        for (let n = 0; n < most; n += 1) {
          if (await slice()) return true;
          // Other requests come in between.
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
  // What administrators do at the console is none of the tenant's numbers.
  if (hour === 0 || isAdministratorId(event.user_id ?? '')) return;
  const count = hours.get(hour) ?? { counts: {}, latest: {}, users: distinct() };
  hours.set(hour, count);
  const { left_out: leftOut } = (event.details ?? {}) as { left_out?: unknown };
  const many = 1 + (typeof leftOut === 'number' ? leftOut : 0);
  count.counts[event.type] = (count.counts[event.type] ?? 0) + many;
  count.latest[event.type] = event.id;
  if (event.type === LOGIN && event.user_id !== undefined) count.users.add(event.user_id);
}

/** Sorts by time. */
const keptId = (hour: number): string => eventIdAt(hour).slice(0, 10);

function recordOf(hour: number, { counts, latest, users }: HourCount): LogCountRecord {
  const sketch = keptSketch(users);
  return {
    id: keptId(hour),
    hour,
    counts,
    latest,
    ...(sketch !== undefined && { users: sketch }),
    expiresAt: Math.ceil((hour + KEPT + HOUR) / 1000),
  };
}

function countOf({ counts, latest, users }: Frozen<LogCountRecord>): HourCount {
  return { counts: { ...counts }, latest: { ...latest }, users: distinct(users) };
}
