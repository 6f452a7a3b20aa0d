// How long things take, on a machine that has other things to do.
import { readdirSync, readFileSync } from 'node:fs';

/** How long each thread of a process was ready to run and did not, nanoseconds; empty where the system does not say. */
function waits(pid: number): Map<string, number> {
  const tasks = `/proc/${pid}/task`;
  const found = new Map<string, number>();
  try {
    for (const thread of readdirSync(tasks))
      found.set(thread, Number(readFileSync(`${tasks}/${thread}/schedstat`, 'utf8').split(' ')[1]));
  } catch {
    // Another system, or the process has ended.
  }
  return found;
}

/** Begins to count what processes wait for a processor. @returns what gives it so far, milliseconds. */
function countWaits(pids: readonly number[]): () => number {
  const begin = new Map(pids.flatMap((pid) => [...waits(pid)]));
  const last = new Map<string, number>();
  return () => {
    for (const pid of pids) for (const [thread, wait] of waits(pid)) last.set(thread, wait);
    return [...last].reduce((sum, [thread, wait]) => sum + wait - (begin.get(thread) ?? 0), 0) / 1e6;
  };
}

/**
 * How long something takes, without what the machine was busy with others: on one that is idle, all of the time.
 * @param others processes that have a part in it, too.
 * @returns what gives the time so far, milliseconds.
 */
export function stopwatch(...others: number[]): () => number {
  const waited = countWaits([process.pid, ...others]);
  const began = performance.now();
  return () => performance.now() - began - waited();
}

/** Runs something. @returns how long that took by the {@link stopwatch}, milliseconds. */
export async function took(run: () => Promise<unknown>, ...others: number[]): Promise<number> {
  const time = stopwatch(...others);
  // A process that ends takes its counts along.
  const timer = others.length === 0 ? undefined : setInterval(time, 50);
  await run();
  clearInterval(timer);
  return time();
}

/**
 * Runs both in turns, so that whatever else the machine does delays both, and compares what the quick ones took: those
 * that nothing came between.
 * Each gives, untimed, what is to be timed.
 * @returns how many times as long as the second the first takes.
 */
export async function timesAsLong(
  first: () => Promise<() => Promise<unknown>>,
  second: () => Promise<() => Promise<unknown>>,
  rounds = 40,
): Promise<number> {
  const times: [number[], number[]] = [[], []];
  for (let round = 0; round < rounds; round++) {
    // Neither always comes after the other.
    const order = round % 2 === 0 ? ([0, 1] as const) : ([1, 0] as const);
    for (const which of order) {
      const run = await [first, second][which]?.();
      const started = performance.now();
      await run?.();
      times[which].push(performance.now() - started);
    }
  }
  const [a, b] = times.map((all) => all.sort((x, y) => x - y)[Math.floor(rounds / 4)] ?? 0);
  return (a ?? 0) / (b ?? 1);
}
