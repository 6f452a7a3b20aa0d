// Which scripts may share a thread: those that have shown in one of their own that they use little, and ask others.
import { hash } from 'node:crypto';
import { LITTLE_BYTES } from './limits.ts';
import type { JobOutcome } from './thread.ts';

/** By {@link scriptKey}. */
interface LightScripts {
  has(script: string): boolean;
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
/** Scripts that are remembered. */
const MOST = 200;

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
  const known = new Map<string, number>();
  const remember = (script: string, count: number) => {
    known.delete(script);
    known.set(script, count);
    const [oldest = script] = known.keys();
    if (known.size > MOST) known.delete(oldest);
  };
  const isLittle = ({ failure, used }: JobOutcome) =>
    (failure === undefined || failure.kind === 'script') &&
    used.cpuMs < MUCH &&
    used.memoryBytes <= LITTLE_BYTES;
  return {
    has: (script) => (known.get(script) ?? 0) >= ENOUGH,
    note: (script, outcomes) => {
      const before = known.get(script) ?? 0;
      // One that asks nobody leaves no time to others.
      const more = outcomes.some(({ used }) => used.requests > 0) ? 1 : 0;
      const count = outcomes.every(isLittle) ? before + more : Math.min(before, 0);
      remember(script, Math.min(count, ENOUGH));
    },
    refuse: (script) => remember(script, REFUSED),
  };
}
