// Frees memory of an idle process. V8 collects garbage only as new objects are made: an idle server would keep the
// memory that it took at its start, or under its last load.
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { collectGarbage } from './garbage.ts';

/**
 * How long the process has to be idle, milliseconds. A collection also discards code that V8 has compiled for
 * objects that are gone, which would have to be compiled again between two bursts of requests.
 */
const QUIET = 60_000;
/** The same for the first time: a start leaves the most garbage, and little code has been compiled yet. */
const QUIET_AT_FIRST = 10_000;
/** The share of one processor that an idle process uses at most. */
const BUSY = 0.02;
/**
 * How many times larger than after the last collection the heap has to be: a collection delays requests by a tenth
 * of a second.
 */
const GROWN = 1.5;

/**
 * How much the heap may grow beyond what is in use before the garbage of its old generation is collected, per cent.
 * V8 by default lets it grow several times as large when many objects are made.
 */
const GROWTH = 40;

/** Keeps the heap smaller under load, from its next collection on. */
export function collectSooner(): void {
  setFlagsFromString(`--heap-growing-percent=${GROWTH}`);
}

/**
 * Makes the heap as small as possible whenever the process is idle and the heap has grown.
 * @param quiet how long the process has to be idle, milliseconds; shorter in tests.
 * @param first the same for the first time.
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
