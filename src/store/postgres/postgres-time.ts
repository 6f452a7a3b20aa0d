// The time by the database's clock, which all processes that use it share; their own clocks may differ.
import type { Logger } from 'pino';
import { type Clock, realClock } from '../../runtime/clock.ts';

export interface DatabaseTime {
  /** Epoch milliseconds. */
  clock: Clock;
  /**
   * Takes the time from an answer of the database.
   * @param said epoch milliseconds.
   * @param asked when the query was sent, in monotonic milliseconds.
   */
  heard(said: number, asked: number): void;
}

/** SQL for the database's time in epoch seconds. */
export const NOW = 'extract(epoch FROM clock_timestamp())::float8';

/** The difference between the machine's clock and the database's from which a warning is logged, in milliseconds. */
const SKEW = 5_000;
/** The longest answer that is used, in milliseconds: in a longer one it is uncertain when the time was read. */
const PROMPT = 1_000;

interface TimeOptions {
  /** The time that users of the store see: that of the machine, unless a test moves it. */
  wallClock: Clock;
  machineClock?: Clock | undefined;
  log?: Pick<Logger, 'warn'> | undefined;
}

/** Returns the database's time, computed from its last answer and the time since. */
export function databaseTime({ wallClock, machineClock = realClock, log }: TimeOptions): DatabaseTime {
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
