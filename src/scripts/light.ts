// Decides which scripts may share a thread: those that used little in threads of their own.
import { hash } from 'node:crypto';
import { keepLatest } from '../runtime/latest.ts';
import { LITTLE_BYTES } from './limits.ts';
import type { JobOutcome } from './thread.ts';

/** By the key of {@link scriptKey}. */
interface LightScripts {
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
const ENOUGH = 3;
/** The count after a refusal: so many such runs more. */
const REFUSED = -1_000;
/** Processor time that is too much, milliseconds. */
const MUCH = 50;
/**
 * Processor time of a quick run, milliseconds: less than a login itself needs, so that one thread has time for all.
 * Once a script is quick, the second limit applies.
 */
const [QUICK, STILL_QUICK] = [1, 4];
/** A run that took so long was waiting, not computing, milliseconds. */
const LONG = 100;
/** How many scripts are remembered. */
const MOST = 200;

/** How many runs in a row were of each kind; negative after a refusal. */
interface Seen {
  asking: number;
  quick: number;
}

const countOf = (before: number, goesOn: boolean, more: number): number =>
  Math.min(goesOn ? before + more : Math.min(before, 0), ENOUGH);

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
export function createLightScripts(): LightScripts {
  const known = new Map<string, Seen>();
  const seen = (script: string): Seen => known.get(script) ?? { asking: 0, quick: 0 };
  const remember = (script: string, now: Seen) => keepLatest(known, MOST, script, now);
  const isLittle = ({ failure, used }: JobOutcome) =>
    (failure === undefined || failure.kind === 'script') &&
    used.cpuMs < MUCH &&
    used.memoryBytes <= LITTLE_BYTES;
  return {
    has: (script) => seen(script).asking >= ENOUGH,
    isQuick: (script) => seen(script).quick >= ENOUGH,
    note: (script, outcomes) => {
      const before = seen(script);
      const [areLittle, asks] = [outcomes.every(isLittle), outcomes.some(({ used }) => used.requests > 0)];
      const most = before.quick >= ENOUGH ? STILL_QUICK : QUICK;
      const areShort = outcomes.every(({ used }) => used.cpuMs < most && used.wallMs < LONG);
      remember(script, {
        // A script that makes no requests leaves the thread no time for others.
        asking: countOf(before.asking, areLittle, asks ? 1 : 0),
        quick: countOf(before.quick, areLittle && areShort && !asks, 1),
      });
    },
    refuse: (script) => remember(script, { asking: REFUSED, quick: REFUSED }),
  };
}
