// When what is refused is answered, where a database elsewhere is asked.
import type { Pause } from '../../delivery/queue.ts';
import type { Clock } from '../../runtime/clock.ts';

/** Milliseconds: most databases answer sooner. */
const STEP = 500;

/**
 * Does some work; where it gives nothing, or fails, that is told after a multiple of half a second, so that the time says little
 * of what was asked: a password kept here, a script that found nobody, one that compared a hash.
 */
export async function evenly<T>(
  { clock, pause }: { clock: Clock; pause: Pause },
  work: () => Promise<T | undefined>,
): Promise<T | undefined> {
  const began = clock();
  const rest = () => pause(STEP - ((clock() - began) % STEP), new AbortController().signal);
  try {
    const answer = await work();
    if (answer === undefined) await rest();
    return answer;
  } catch (thrown) {
    await rest();
    throw thrown;
  }
}
