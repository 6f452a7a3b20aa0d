// Hides how long a custom database took to refuse.
import type { Pause } from '../../../capabilities/delivery/queue.ts';
import type { Clock } from '../../../runtime/clock.ts';

/** Milliseconds; most databases answer sooner. */
const STEP = 500;

/**
 * Does some work. If it returns undefined or throws, waits until the elapsed time is a multiple of 500 ms, so that the time
 * reveals little about the reason: a wrong password here, an unknown user there, or a hash that a script compared.
 */
export async function padFailures<T>(
  { clock, pause }: { clock: Clock; pause: Pause },
  work: () => Promise<T | undefined>,
): Promise<T | undefined> {
  const start = clock();
  const pad = () => pause(STEP - ((clock() - start) % STEP), new AbortController().signal);
  try {
    const answer = await work();
    if (answer === undefined) await pad();
    return answer;
  } catch (thrown) {
    await pad();
    throw thrown;
  }
}
