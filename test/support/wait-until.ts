// How long tests wait for an expected event. It is not a requirement: a busy machine is slow.

/** Milliseconds. */
export const PATIENCE = 60_000;

/** Milliseconds. */
const MOMENT = 4;

/**
 * Waits until a condition holds that no event announces.
 * @param pause waits before the condition is checked again.
 * @throws Error when it does not come true in time.
 */
export async function until(
  is: () => boolean | Promise<boolean>,
  pause: () => Promise<unknown> = aMoment,
): Promise<void> {
  for (const end = performance.now() + PATIENCE; performance.now() < end; await pause()) {
    if (await is()) return;
  }
  throw new Error('it did not come to pass');
}

/** A pause before something is checked again: checking continuously would take the processor from what is waited for. */
export function aMoment(): Promise<unknown> {
  return new Promise((resolve) => setTimeout(resolve, MOMENT));
}

/** Returns a pause for checks that query other processes, in milliseconds. */
export function every(ms: number): () => Promise<unknown> {
  return () => new Promise((resolve) => setTimeout(resolve, ms));
}
