// Collects garbage now. V8 does so as new objects are made: where none are made, it keeps what it took.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

type Collect = (options: { type: 'major'; execution: 'sync'; flavor: 'regular' | 'last-resort' }) => void;

/** Of this thread. @param flavor `last-resort` makes the heap as small as it can be, which takes longer. */
export function collectGarbage(flavor: 'regular' | 'last-resort'): void {
  // V8's own function, which it gives to contexts that are made while a flag is set.
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as Collect;
  setFlagsFromString('--no-expose-gc');
  collect({ type: 'major', execution: 'sync', flavor });
}
