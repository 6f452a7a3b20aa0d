// Expired records are invisible at once; this takes them out of memory and off the disk, a slice at a time so that
// no backlog holds up the event loop.
import { readFile, writeFile } from 'node:fs/promises';
import type { Logger } from 'pino';
import type { Clock } from '../runtime/clock.ts';
import { fileMode } from './files.ts';

const everyMilliseconds = 1000;

/** How far a clock may leap ahead at once and be believed, milliseconds: corrections of NTP are smaller. */
const LEAP = 60_000;
/** How long it must then stay there, and how long the clock of a process that begins is watched, milliseconds. */
const WATCHED = 3_600_000;

/** What processes of a store leave to those after them of the time; epoch milliseconds, but for `watched`. */
export interface DeletionNote {
  /** By when records were deleted last; 0 where none were. */
  believed: number;
  /** A time that the clock has shown. */
  since: number;
  /** How long processes have run since, while the clock showed nothing earlier; milliseconds. */
  watched: number;
}

/** Where it is left. */
export interface DeletionNotes {
  read(): Promise<DeletionNote | undefined>;
  write(note: DeletionNote): Promise<void>;
}

/** What tells by when records have expired that are deleted. */
interface DeletionClocks {
  /** Epoch milliseconds; may be wrong, and may be set right. */
  wall: Clock;
  /** Monotonic milliseconds. */
  elapsed: () => number;
  /** What processes before this one have left. */
  left?: DeletionNote | undefined;
}

/** The time by which records may be deleted: epoch milliseconds; 0 as long as none is known. */
export interface DeletionClock extends Clock {
  note(): DeletionNote;
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
  const note = () => ({ believed: look(), ...seen.note(elapsed()) });
  return Object.assign(look, { note });
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
    note: (passed: number) => ({ since: from.since, watched: watchedAt(passed) }),
  };
}

interface Purging {
  /** Each deletes some records that have expired, and says whether there may be more. */
  purges: (() => Promise<boolean>)[];
  /** Notes what time is believed, now and then. */
  note?: (() => Promise<void>) | undefined;
  log: Pick<Logger, 'error'> | undefined;
}

/**
 * Purges once a second, without keeping the process alive, until it is stopped.
 * @returns what stops it, and waits for what is under way.
 */
export function purgeRegularly({ purges, note = async () => undefined, log }: Purging): () => Promise<void> {
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
    await note().catch((err: unknown) => log?.error({ err }, 'the time could not be noted'));
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

/** Notes in a file. What a crash loses of them is no harm: it is waited for longer. */
export function notesIn(file: string): DeletionNotes {
  return {
    read: async () => noteOf(await readFile(file, 'utf8').catch(() => undefined)),
    write: (note) => writeFile(file, JSON.stringify(note), { mode: fileMode }),
  };
}

/** The note that a text is; undefined for every other. */
export function noteOf(text: string | undefined): DeletionNote | undefined {
  try {
    const { believed, since, watched } = JSON.parse(text ?? '') as Record<string, unknown>;
    const note = { believed: Number(believed), since: Number(since), watched: Number(watched) };
    return Object.values(note).every(Number.isFinite) ? note : undefined;
  } catch {
    return undefined;
  }
}
