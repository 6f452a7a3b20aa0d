// What time it is by the database's clock, which is one for all processes that use it; theirs may differ.
import type { Logger } from 'pino';
import { type Clock, unmovedClock } from '../../runtime/clock.ts';

export interface DatabaseTime {
  /** Epoch milliseconds. */
  clock: Clock;
  /** Takes note of what the database has answered. @param asked when it was asked, monotonic milliseconds. */
  heard(said: number, asked: number): void;
}

/** Asks for the database's time, epoch seconds. */
export const NOW = 'extract(epoch FROM clock_timestamp())::float8';

/** How far the machine's clock may be from the database's before that is told, milliseconds. */
const SKEW = 5_000;
/** An answer that took longer may be of its beginning or its end, milliseconds. */
const PROMPT = 1_000;

interface TimeOptions {
  /** What time it is for whoever uses the store: that of the machine, unless it was moved. */
  wallClock: Clock;
  machineClock?: Clock | undefined;
  log?: Pick<Logger, 'warn'> | undefined;
}

/** The database's time between two of its answers, by how long ago the last one was. */
export function databaseTime({ wallClock, machineClock = unmovedClock, log }: TimeOptions): DatabaseTime {
  let last: { said: number; at: number } | undefined;
  let isFar = false;
  return {
    clock: () => {
      if (last === undefined) return wallClock();
      const moved = wallClock() - machineClock();
      return Math.floor(last.said + performance.now() - last.at + moved);
    },
    heard: (said, asked) => {
      const now = performance.now();
      if (last !== undefined && now - asked > PROMPT) return;
      last = { said, at: (asked + now) / 2 };
      const ahead = Math.round((machineClock() - said) / 1000);
      const was = isFar;
      isFar = Math.abs(ahead) * 1000 > SKEW;
      if (isFar && !was) log?.warn({ ahead }, "this machine's clock is not the database's: set both by NTP");
    },
  };
}
