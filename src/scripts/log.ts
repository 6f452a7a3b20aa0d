// What scripts printed lately, in memory, for developers to see.
import type { ScriptFailure, ScriptLine, ScriptUsage } from './limits.ts';

/** A run, as it is kept. */
export interface LoggedRun {
  /** When it began, epoch milliseconds. */
  at: number;
  /** Whose script it was. */
  of: string;
  entry: string;
  printed: ScriptLine[];
  used: ScriptUsage;
  failure: ScriptFailure | undefined;
}

export interface ScriptLog {
  add(run: LoggedRun): void;
  /** Newest first. */
  runs(): readonly LoggedRun[];
}

/** Runs that are kept, of all scripts. */
const MOST = 100;

/** The log. @param keeps whether anything is kept. */
export function createScriptLog(keeps: boolean): ScriptLog {
  const runs: LoggedRun[] = [];
  return {
    runs: () => runs,
    add: (run) => {
      if (!keeps) return;
      runs.unshift(run);
      runs.length = Math.min(runs.length, MOST);
    },
  };
}
