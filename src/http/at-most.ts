// A bound on how much is done at once: beyond it callers are refused, rather than all served late.
import { AuthError } from './errors.ts';

/**
 * Runs work, so much of it at once.
 * @returns runs one piece. @throws AuthError 503 `temporarily_unavailable`, from it, when there is no room.
 */
export function atMost(most: number): <T>(work: () => Promise<T> | T) => Promise<T> {
  let running = 0;
  return async (work) => {
    if (running >= most) {
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
