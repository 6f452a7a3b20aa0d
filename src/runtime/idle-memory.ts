// Memory that holds garbage. V8 collects it as new objects are made: a server with nothing to do would keep what it took at its
// start, or under its last load.
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { collectGarbage } from './garbage.ts';

/**
 * How long the process must have been quiet, milliseconds. V8 forgets code, too, that it made for objects that are gone: between
 * two bursts of requests it would have to be made again and again.
 */
const QUIET = 60_000;
/**
 * The same until it was quiet once: the garbage of a start is the most there is, and little code has been made yet that would be
 * missed.
 */
const QUIET_AT_FIRST = 10_000;
/** The share of one processor that a quiet process takes at most. */
const BUSY = 0.02;
/** How many times larger than it was left the heap must be: a collection holds requests up for a tenth of a second. */
const GROWN = 1.5;

/**
 * How much larger than what is in use the heap becomes before the garbage of its old generation is collected, per cent. V8 itself
 * lets it become several times as large where much is made.
 */
const GROWTH = 40;

/** Keeps the heap smaller under load, from its next collection on. */
export function collectSooner(): void {
  setFlagsFromString(`--heap-growing-percent=${GROWTH}`);
}

/**
 * Makes the heap as small as it can be whenever the process has been quiet and the heap has grown.
 * @param quiet for how long, milliseconds; tests ask for less.
 * @param first the same until the heap was made small for the first time.
 */
export function shrinkHeapWhenQuiet(quiet = QUIET, first = QUIET_AT_FIRST): void {
  let left = 0;
  const watch = (ms: number, isOver: () => boolean) => {
    let before = process.cpuUsage();
    const timer = setInterval(() => {
      if (isOver()) return clearInterval(timer);
      const { user, system } = process.cpuUsage(before);
      before = process.cpuUsage();
      if ((user + system) / 1_000 > ms * BUSY || getHeapStatistics().total_heap_size < left * GROWN) return;
      collectGarbage('last-resort');
      left = getHeapStatistics().total_heap_size;
    }, ms).unref();
  };
  watch(first, () => left > 0);
  watch(quiet, () => false);
}
