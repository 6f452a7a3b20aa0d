// How long tests wait for what must come. It judges nothing: a machine that is busy takes its time.

/** Milliseconds. */
export const PATIENCE = 60_000;

/** Milliseconds. */
const MOMENT = 4;

/**
 * Waits until something is so, of which nothing tells.
 * @param pause waits a moment before it is looked at again.
 * @throws Error when it does not come to pass.
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

/** A pause before something is looked at again: looking all the time keeps a processor from what is waited for. */
export function aMoment(): Promise<unknown> {
  return new Promise((resolve) => setTimeout(resolve, MOMENT));
}

/** A pause for what asks other processes, milliseconds. */
export function every(ms: number): () => Promise<unknown> {
  return () => new Promise((resolve) => setTimeout(resolve, ms));
}
