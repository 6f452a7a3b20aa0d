// The clock by which expired records are deleted, and what a store keeps of it for the processes that open it next.
import { readFile, writeFile } from 'node:fs/promises';
import type { Clock } from '../runtime/clock.ts';
import { fileMode } from './files.ts';
import type { StoreOptions } from './store-options.ts';

/** How far a clock may leap ahead at once and be believed, milliseconds: corrections of NTP are smaller. */
const LEAP = 60_000;
/** How long it must then stay there, and how long the clock of a process that begins is watched, milliseconds. */
const WATCHED = 3_600_000;

/** What processes of a store leave to those after them of the time; epoch milliseconds, but for `watched`. */
export interface DeletionClockState {
  /** By when records were deleted last; 0 where none were. */
  believed: number;
  /** A time that the clock has shown. */
  since: number;
  /** How long processes have run since, while the clock showed nothing earlier; milliseconds. */
  watched: number;
}

/** Where it is left. */
export interface DeletionClockStorage {
  read(): Promise<DeletionClockState | undefined>;
  write(state: DeletionClockState): Promise<void>;
}

/** What tells by when records have expired that are deleted. */
interface DeletionClocks {
  /** Epoch milliseconds; may be wrong, and may be set right. */
  wall: Clock;
  /** Monotonic milliseconds. */
  elapsed: () => number;
  /** What processes before this one have left. */
  left?: DeletionClockState | undefined;
}

/** The time by which records may be deleted: epoch milliseconds; 0 as long as none is known. */
export interface DeletionClock extends Clock {
  state(): DeletionClockState;
}

/**
 * The time by which records may be deleted. What a clock that is ahead hides is there again when it is put right, but what was
 * deleted is not: so a leap ahead counts only when the clock has stayed there for an hour, and so does the time that the process
 * began at, of which nobody knows whether it is right, unless another process believed it a moment before. Where none lives for an
 * hour, a time counts that they have run for an hour since, all together.
 */
export function deletionClock({ wall, elapsed, left }: DeletionClocks): DeletionClock {
  const seen = watching({ since: left?.since ?? wall(), watched: left?.watched ?? 0, at: elapsed() });
  // As if no time had passed while no process ran.
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

/** Watches for how long the clock shows nothing earlier than a time. @param begun `at`: monotonic milliseconds. */
function watching(begun: { since: number; watched: number; at: number }) {
  let from = begun;
  let before: number | undefined;
  const watchedAt = (passed: number) => from.watched + passed - from.at;
  return {
    /** @param ahead of monotonic time. @returns a time that was watched for long enough, if there is one. */
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

/** How often it is noted what time is believed, milliseconds. */
const NOTED = 20_000;

/** The clock by which a store deletes what has expired, and what is left of it to the processes that follow. */
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
  // In one that is filled time stands still.
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

/** Notes in a file. What a crash loses of them is no harm: it is waited for longer. */
export function stateInFile(file: string): DeletionClockStorage {
  return {
    read: async () => parseState(await readFile(file, 'utf8').catch(() => undefined)),
    write: (state) => writeFile(file, JSON.stringify(state), { mode: fileMode }),
  };
}

/** The note that a text is; undefined for every other. */
export function parseState(text: string | undefined): DeletionClockState | undefined {
  try {
    const { believed, since, watched } = JSON.parse(text ?? '') as Record<string, unknown>;
    const state = { believed: Number(believed), since: Number(since), watched: Number(watched) };
    return Object.values(state).every(Number.isFinite) ? state : undefined;
  } catch {
    return undefined;
  }
}
