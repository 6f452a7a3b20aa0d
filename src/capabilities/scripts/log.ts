// What scripts printed recently, in memory, for developers.
import type { ScriptFailure, ScriptLine, ScriptUsage } from './limits.ts';

/** A run, as the log keeps it. */
export interface LoggedRun {
  /** When it began, epoch milliseconds. */
  at: number;
  /** What the script belongs to, such as the name of a connection. */
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

/** How many runs are kept, over all scripts. */
const MAX_RUNS = 100;

/** Makes the log. @param isEnabled whether it keeps anything. */
export function createScriptLog(isEnabled: boolean): ScriptLog {
  const runs: LoggedRun[] = [];
  return {
    runs: () => runs,
    add: (run) => {
      if (!isEnabled) return;
      runs.unshift(run);
      runs.length = Math.min(runs.length, MAX_RUNS);
    },
  };
}
