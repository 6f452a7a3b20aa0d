// Which scripts may share a thread: those that have shown in one of their own that they use little, and those that use next to
// nothing.
import { hash } from 'node:crypto';
import { keepLatest } from '../runtime/latest.ts';
import { LITTLE_BYTES } from './limits.ts';
import type { JobOutcome } from './thread.ts';

/** By {@link scriptKey}. */
interface LightScripts {
  /** Whether it uses little, and asks others. */
  has(script: string): boolean;
  /** Whether it asks nobody, and is done before another thread has been woken for it. */
  isQuick(script: string): boolean;
  /** What became of a run. */
  note(script: string, outcomes: readonly JobOutcome[]): void;
  /** It was in the way of others, or may not be run twice. */
  refuse(script: string): void;
}

/** Runs of little use, one after the other, after which others may be beside it. */
const ENOUGH = 3;
/** More than that after a refusal. */
const REFUSED = -1_000;
/** What is much: time of the processor, milliseconds. */
const MUCH = 50;
/** What is next to nothing: less than a login itself needs, so that one thread has time for all; and what still is, once it was. */
const [QUICK, STILL_QUICK] = [1, 4];
/** One that took so long has waited for something, milliseconds. */
const LONG = 100;
/** Scripts that are remembered. */
const MOST = 200;

/** Runs in a row of each kind; fewer than none after a refusal. */
interface Seen {
  asking: number;
  quick: number;
}

const countOf = (before: number, goesOn: boolean, more: number): number =>
  Math.min(goesOn ? before + more : Math.min(before, 0), ENOUGH);

/** What scripts that run one after the other are known by: of a size, however long they are. */
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

/** The memory of it. */
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
        // One that asks nobody leaves no time to others.
        asking: countOf(before.asking, areLittle, asks ? 1 : 0),
        quick: countOf(before.quick, areLittle && areShort && !asks, 1),
      });
    },
    refuse: (script) => remember(script, { asking: REFUSED, quick: REFUSED }),
  };
}
