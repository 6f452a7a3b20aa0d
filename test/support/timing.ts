// Measures durations on a machine that also does other work.
import { readdirSync, readFileSync } from 'node:fs';

/** Returns how long each thread of a process was ready to run but waited, in nanoseconds; empty if the system does not say. */
function waits(pid: number): Map<string, number> {
  const tasks = `/proc/${pid}/task`;
  const found = new Map<string, number>();
  try {
    for (const thread of readdirSync(tasks))
      found.set(thread, Number(readFileSync(`${tasks}/${thread}/schedstat`, 'utf8').split(' ')[1]));
  } catch {
    // Not Linux, or the process has ended.
  }
  return found;
}

/** Starts to measure how long processes wait for a processor. @returns a function that returns the time so far, in milliseconds. */
function countWaits(pids: readonly number[]): () => number {
  const begin = new Map(pids.flatMap((pid) => [...waits(pid)]));
  const last = new Map<string, number>();
  return () => {
    for (const pid of pids) for (const [thread, wait] of waits(pid)) last.set(thread, wait);
    return [...last].reduce((sum, [thread, wait]) => sum + wait - (begin.get(thread) ?? 0), 0) / 1e6;
  };
}

/**
 * Measures a duration without the time in which the machine was busy with other work; on an idle machine, all of it.
 * @param others processes that take part in the work.
 * @returns a function that returns the time so far, in milliseconds.
 */
export function stopwatch(...others: number[]): () => number {
  const waited = countWaits([process.pid, ...others]);
  const began = performance.now();
  return () => performance.now() - began - waited();
}

/** Runs something. @returns how long it took by the {@link stopwatch}, in milliseconds. */
export async function took(run: () => Promise<unknown>, ...others: number[]): Promise<number> {
  const time = stopwatch(...others);
  // The counts of a process are lost when it ends.
  const timer = others.length === 0 ? undefined : setInterval(time, 50);
  await run();
  clearInterval(timer);
  return time();
}

/**
 * Runs two works alternately, so that other load affects both, and compares their lower quartiles. Each function prepares
 * without being timed and returns what is timed.
 * @returns how many times longer the first takes than the second.
 */
export async function timesAsLong(
  first: () => Promise<() => Promise<unknown>>,
  second: () => Promise<() => Promise<unknown>>,
  rounds = 40,
): Promise<number> {
  const times: [number[], number[]] = [[], []];
  for (let round = 0; round < rounds; round++) {
    // Alternates which one comes first.
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
