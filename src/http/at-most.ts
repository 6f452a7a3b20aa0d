// Bounds concurrent work: beyond the bound callers are refused, so that the others do not all become slow. A network has
// only a share of it.
import { requester } from '../runtime/requester.ts';
import { createShares } from '../runtime/shares.ts';
import { serverBusy } from './errors.ts';

/**
 * Limits how many pieces of work run at once.
 * @returns a function that runs one. Where the requester has its share, it throws AuthError 503 `temporarily_unavailable`.
 */
export function atMost(max: number): <T>(work: () => Promise<T> | T) => Promise<T> {
  const running = createShares<object>();
  return async (work) => {
    const { origin } = requester();
    if (!running.mayHold(origin, max)) {
      throw serverBusy();
    }
    const one = {};
    running.add(one, origin);
    try {
      return await work();
    } finally {
      running.delete(one);
    }
  };
}
