// Frees memory of an idle process. V8 collects garbage only as new objects are made: an idle server would keep the
// memory that it took at its start, or under its last load.
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { collectGarbage } from './garbage.ts';

/**
 * How long the process has to be idle, milliseconds. A collection also discards code that V8 has compiled for
 * objects that are gone, which would have to be compiled again between two bursts of requests.
 */
const IDLE_MS = 60_000;
/** The same for the first time: a start leaves the most garbage, and little code has been compiled yet. */
const FIRST_IDLE_MS = 10_000;
/** The share of one processor that an idle process uses at most. */
const MAX_CPU_SHARE = 0.02;
/**
 * How many times larger than after the last collection the heap has to be: a collection delays requests by a tenth
 * of a second.
 */
const MIN_GROWTH_FACTOR = 1.5;

/**
 * How much the heap may grow beyond what is in use before the garbage of its old generation is collected, per cent.
 * V8 by default lets it grow several times as large when many objects are made.
 */
const HEAP_GROWING_PERCENT = 40;

/** Keeps the heap smaller under load, from its next collection on. */
export function limitHeapGrowth(): void {
  setFlagsFromString(`--heap-growing-percent=${HEAP_GROWING_PERCENT}`);
}

/**
 * Makes the heap as small as possible whenever the process is idle and the heap has grown.
 * @param idleMs how long the process has to be idle, milliseconds; shorter in tests.
 * @param firstIdleMs the same for the first time.
 */
export function shrinkHeapWhenIdle(idleMs = IDLE_MS, firstIdleMs = FIRST_IDLE_MS): void {
  let sizeAfterCollection = 0;
  const watch = (ms: number, isOver: () => boolean) => {
    let before = process.cpuUsage();
    const timer = setInterval(() => {
      if (isOver()) return clearInterval(timer);
      const { user, system } = process.cpuUsage(before);
      before = process.cpuUsage();
      if (
        (user + system) / 1_000 > ms * MAX_CPU_SHARE ||
        getHeapStatistics().total_heap_size < sizeAfterCollection * MIN_GROWTH_FACTOR
      )
        return;
      collectGarbage('last-resort');
      sizeAfterCollection = getHeapStatistics().total_heap_size;
    }, ms).unref();
  };
  watch(firstIdleMs, () => sizeAfterCollection > 0);
  watch(idleMs, () => false);
}
