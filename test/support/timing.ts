// Whether two requests take about as long, on a machine that has other things to do.

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
