// Bounds concurrent work: beyond the bound callers are refused, so that the others do not all become slow.
import { AuthError } from './errors.ts';

/**
 * Limits how many pieces of work run at once.
 * @returns a function that runs one. At the limit it throws AuthError 503 `temporarily_unavailable`.
 */
export function atMost(max: number): <T>(work: () => Promise<T> | T) => Promise<T> {
  let running = 0;
  return async (work) => {
    if (running >= max) {
      throw new AuthError(503, 'temporarily_unavailable', 'The server is busy. Try again in a moment.');
    }
    running += 1;
    try {
      return await work();
    } finally {
      running -= 1;
    }
  };
}
