// Decides which scripts may share a thread: those that used little in threads of their own.
import { hash } from 'node:crypto';
import { keepLatest } from '../../runtime/latest.ts';
import { MAX_REUSED_BYTES } from './limits.ts';
import type { JobOutcome } from './thread.ts';

/** By the key of {@link scriptKey}. */
interface ScriptRatings {
  /** Whether the script uses little and makes requests. */
  has(script: string): boolean;
  /** Whether the script makes no requests and ends before another thread would have started. */
  isQuick(script: string): boolean;
  /** Records what a run used. */
  note(script: string, outcomes: readonly JobOutcome[]): void;
  /** Keeps a script out of shared threads for long: it kept others from running, or must not be run twice. */
  refuse(script: string): void;
}

/** How many such runs in a row a script needs before it may share a thread. */
const REQUIRED_RUNS = 3;
/** The count after a refusal: so many such runs more. */
const REFUSED_COUNT = -1_000;
/** Processor time that is too much, milliseconds. */
const MAX_LIGHT_CPU_MS = 50;
/**
 * Processor time of a quick run, milliseconds: less than a login itself needs, so that one thread has time for all.
 * Once a script is quick, the second limit applies.
 */
const [QUICK_CPU_MS, STILL_QUICK_CPU_MS] = [1, 4];
/** A run that took so long was waiting, not computing, milliseconds. */
const MAX_QUICK_WALL_MS = 100;
/** How many scripts are remembered. */
const MAX_SCRIPTS = 200;

/** How many runs in a row were of each kind; negative after a refusal. */
interface RunCounts {
  requesting: number;
  quick: number;
}

const countOf = (before: number, continues: boolean, more: number): number =>
  Math.min(continues ? before + more : Math.min(before, 0), REQUIRED_RUNS);

/** Returns the key of a sequence of scripts, of a fixed length. */
export function scriptKey(
  runs: readonly { readonly of: string; readonly entry: string; readonly source: string }[],
): string {
  const each = runs.map(({ of, entry, source }) => [
    of,
    entry,
    source && hash('sha256', source, 'base64url'),
  ]);
  return hash('sha256', JSON.stringify(each), 'base64url');
}

/** Makes the record of scripts, which is empty at first. */
export function createScriptRatings(): ScriptRatings {
  const known = new Map<string, RunCounts>();
  const countsOf = (script: string): RunCounts => known.get(script) ?? { requesting: 0, quick: 0 };
  const remember = (script: string, now: RunCounts) => keepLatest(known, MAX_SCRIPTS, script, now);
  const usesLittle = ({ failure, used }: JobOutcome) =>
    (failure === undefined || failure.kind === 'script') &&
    used.cpuMs < MAX_LIGHT_CPU_MS &&
    used.memoryBytes <= MAX_REUSED_BYTES;
  return {
    has: (script) => countsOf(script).requesting >= REQUIRED_RUNS,
    isQuick: (script) => countsOf(script).quick >= REQUIRED_RUNS,
    note: (script, outcomes) => {
      const before = countsOf(script);
      const [useLittle, makesRequests] = [
        outcomes.every(usesLittle),
        outcomes.some(({ used }) => used.requests > 0),
      ];
      const maxCpuMs = before.quick >= REQUIRED_RUNS ? STILL_QUICK_CPU_MS : QUICK_CPU_MS;
      const areShort = outcomes.every(({ used }) => used.cpuMs < maxCpuMs && used.wallMs < MAX_QUICK_WALL_MS);
      remember(script, {
        // A script that makes no requests leaves the thread no time for others.
        requesting: countOf(before.requesting, useLittle, makesRequests ? 1 : 0),
        quick: countOf(before.quick, useLittle && areShort && !makesRequests, 1),
      });
    },
    refuse: (script) => remember(script, { requesting: REFUSED_COUNT, quick: REFUSED_COUNT }),
  };
}
