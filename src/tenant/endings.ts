// What of an old tenant is accepted here for a time, and is about to end: sentences for the start, `check` and the doctor.
import { isOpen, MOVE } from '../records/tenant/move.ts';
import { isTrusted } from '../records/tenant/trusted-keys.ts';
import type { Store } from '../store/contract.ts';
import { listAll } from '../store/list-all.ts';

/** How long before and after an end it is said, milliseconds. */
const NEAR = 14 * 86_400_000;

/** @param now epoch milliseconds, of the time of day. */
export async function endingWarnings(store: Store, now: number): Promise<string[]> {
  const [move, keys] = await Promise.all([
    store.collection('moves').get(MOVE),
    listAll(store.collection('trustedKeys')),
  ]);
  const isNear = (until: string) => Math.abs(Date.parse(until) - now) < NEAR;
  const ends = (until: string, isRunning: boolean) => `${isRunning ? 'ends' : 'ended'} at ${until}`;
  const bySource = new Map(keys.map((key) => [`${key.source}\n${key.until}`, key]));
  return [
    ...(move !== undefined && move.ended_at === undefined && isNear(move.until)
      ? [
          `the move from ${move.origin} ${ends(move.until, isOpen(move, move, now))}: see gatehouse move status`,
        ]
      : []),
    ...[...bySource.values()]
      .filter(({ until }) => isNear(until))
      .map(
        ({ source, until }) =>
          `the trust in the keys of ${source} ${ends(until, isTrusted({ until }, now))}: tokens that they have signed are not accepted then`,
      ),
  ];
}
