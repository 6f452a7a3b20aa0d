// The clock by which expired records are deleted, and what is stored of it for the processes that open the store next.
import { readFile, writeFile } from 'node:fs/promises';
import type { Logger } from 'pino';
import type { Clock } from '../runtime/clock.ts';
import { fileMode } from '../runtime/files.ts';
import type { StoreOptions } from './store-options.ts';

/** The largest jump ahead of a clock that is trusted at once, in milliseconds: corrections by NTP are smaller. */
const LEAP = 60_000;
/**
 * How long the clock must stay there after a larger jump, and how long a starting process watches its clock first, in
 * milliseconds.
 */
const WATCHED = 3_600_000;

/** What the processes of a store record about the time, for those that follow. */
export interface DeletionClockState {
  /** The last time by which records were deleted, in epoch milliseconds; 0 if none were. */
  believed: number;
  /** A time that the clock has shown, in epoch milliseconds. */
  since: number;
  /** How long processes have run since then without the clock showing an earlier time, in milliseconds. */
  watched: number;
}

export interface DeletionClockStorage {
  read(): Promise<DeletionClockState | undefined>;
  write(state: DeletionClockState): Promise<void>;
}

interface DeletionClocks {
  /** Epoch milliseconds; may be wrong, and may be corrected. */
  wall: Clock;
  /** Monotonic milliseconds. */
  elapsed: () => number;
  /** The state that earlier processes have stored. */
  left?: DeletionClockState | undefined;
}

/** Returns the time by which expired records may be deleted, in epoch milliseconds; 0 while none is trusted. */
interface DeletionClock extends Clock {
  state(): DeletionClockState;
}

// docs/understand/decisions/operating.md#a-clock-that-is-ahead-does-not-cause-deletions
/**
 * Returns the clock by which expired records may be deleted. Records that a clock running ahead merely hides reappear
 * when it is corrected, but deleted ones do not. So a jump ahead is trusted only after the clock has stayed there for
 * an hour. The time at which the process starts is treated the same way, unless an earlier process trusted a time just
 * before it. Where no process lives for an hour, a time is trusted once processes have run for an hour in total since
 * it.
 */
export function deletionClock({ wall, elapsed, left }: DeletionClocks): DeletionClock {
  const seen = watching({ since: left?.since ?? wall(), watched: left?.watched ?? 0, at: elapsed() });
  // Counts on from the stored time as if no time had passed while no process ran.
  let believed = left && left.believed > 0 ? left.believed - elapsed() : Number.NEGATIVE_INFINITY;
  let leapt: { to: number; at: number } | undefined;
  const look = () => {
    const passed = elapsed();
    const ahead = wall() - passed;
    believed = Math.max(believed, (seen.look(passed, ahead) ?? Number.NEGATIVE_INFINITY) - passed);
    if (ahead - believed > LEAP) {
      if (leapt === undefined || Math.abs(ahead - leapt.to) > LEAP) leapt = { to: ahead, at: passed };
      if (passed - leapt.at < WATCHED) return Math.max(0, believed + passed);
    }
    believed = ahead;
    leapt = undefined;
    return believed + passed;
  };
  look();
  const state = () => ({ believed: look(), ...seen.state(elapsed()) });
  return Object.assign(look, { state });
}

/** Measures for how long the clock has shown no time before `since`. @param begun `at` is in monotonic milliseconds. */
function watching(begun: { since: number; watched: number; at: number }) {
  let from = begun;
  let before: number | undefined;
  const watchedAt = (passed: number) => from.watched + passed - from.at;
  return {
    /**
     * @param ahead the clock's time minus the monotonic time.
     * @returns a time that has been watched for long enough, if any.
     */
    look: (passed: number, ahead: number): number | undefined => {
      const now = ahead + passed;
      const hasLeapt = before !== undefined && Math.abs(ahead - before) > LEAP;
      const isOver = watchedAt(passed) >= WATCHED;
      const { since } = from;
      before = ahead;
      if (!hasLeapt && now >= since && !isOver) return undefined;
      from = { since: now, watched: 0, at: passed };
      return isOver && !hasLeapt && now >= since ? since : undefined;
    },
    state: (passed: number) => ({ since: from.since, watched: watchedAt(passed) }),
  };
}

/** How often the state is stored, in milliseconds. */
const NOTED = 20_000;

/**
 * Returns the clock by which a store deletes expired records, and the function that stores its state for later
 * processes.
 */
export async function openDeletionClock(
  {
    clock,
    wallClock = clock,
    elapsed: given,
    isFilling = false,
  }: Pick<StoreOptions, 'clock' | 'wallClock' | 'elapsed' | 'isFilling'>,
  storage: DeletionClockStorage,
) {
  const elapsed = given ?? (() => performance.now());
  // While a store is being filled its clock stands still, so there is nothing to store.
  if (isFilling) return { deletion: deletionClock({ wall: wallClock, elapsed }) };
  const deletion = deletionClock({ wall: wallClock, elapsed, left: await storage.read() });
  let last = elapsed();
  const saveTime = async () => {
    if (elapsed() - last < NOTED) return;
    last = elapsed();
    await storage.write(deletion.state());
  };
  return { deletion, saveTime };
}

/** Stores the state in a file. A state lost in a crash only delays deletion. */
export function stateInFile(file: string): DeletionClockStorage {
  return {
    read: async () => parseState(await readFile(file, 'utf8').catch(() => undefined)),
    write: (state) => writeFile(file, JSON.stringify(state), { mode: fileMode }),
  };
}

/** Returns the state in a JSON text; undefined for any other text. */
export function parseState(text: string | undefined): DeletionClockState | undefined {
  try {
    const { believed, since, watched } = JSON.parse(text ?? '') as Record<string, unknown>;
    const state = { believed: Number(believed), since: Number(since), watched: Number(watched) };
    return Object.values(state).every(Number.isFinite) ? state : undefined;
  } catch {
    return undefined;
  }
}

// Removes expired records from memory and disk. They are invisible as soon as they expire; they are removed in small
// batches so that a backlog does not block the event loop.

const everyMilliseconds = 1000;

interface Purging {
  /** Each deletes some expired records and returns whether there may be more. */
  purges: (() => Promise<boolean>)[];
  /** Stores the state of the deletion clock, if it is due. */
  saveTime?: (() => Promise<void>) | undefined;
  log: Pick<Logger, 'error'> | undefined;
}

/**
 * Purges once a second, without keeping the process alive, until it is stopped.
 * @returns a function that stops it and waits for a purge under way.
 */
export function purgeRegularly({
  purges,
  saveTime = async () => undefined,
  log,
}: Purging): () => Promise<void> {
  let running: Promise<void> | undefined;
  let stopped = false;
  const all = async () => {
    try {
      for (const purge of purges) {
        while (!stopped && (await purge())) await new Promise((resolve) => setImmediate(resolve));
      }
    } catch (err) {
      log?.error({ err }, 'expired records could not be purged');
    }
    await saveTime().catch((err: unknown) => log?.error({ err }, 'the time could not be noted'));
    running = undefined;
  };
  const timer = setInterval(() => {
    running ??= all();
  }, everyMilliseconds);
  timer.unref();
  return async () => {
    stopped = true;
    clearInterval(timer);
    await running;
  };
}
