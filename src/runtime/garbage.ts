// Collects garbage on demand. V8 does so only as new objects are made.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

type Collect = (options: { type: 'major'; execution: 'sync'; flavor: 'regular' | 'last-resort' }) => void;

/**
 * Collects the garbage of this thread.
 * @param flavor `last-resort` makes the heap as small as possible, which takes longer.
 */
export function collectGarbage(flavor: 'regular' | 'last-resort'): void {
  // V8's own function, which it adds to contexts that are made while this flag is set.
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as Collect;
  setFlagsFromString('--no-expose-gc');
  collect({ type: 'major', execution: 'sync', flavor });
}
