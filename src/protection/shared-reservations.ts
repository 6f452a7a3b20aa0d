// Attempts being verified by any of several processes.
import type { TriesRecord } from '../records/leases.ts';
import type { Frozen } from '../records/record.ts';
import type { Clock } from '../runtime/clock.ts';
import { type Random, systemRandom } from '../runtime/random.ts';
import type { Store } from '../store/contract.ts';
import { LONGEST_TRY, type Reservations } from './reservations.ts';

/** How long somebody who found no place waits, milliseconds; two who met wait differently long. */
const LOOK = 20;
const SPREAD = 60;

/** When a record expired in which no try is left, by whichever clock, epoch seconds. */
const LONG_AGO = 1;
/**
 * A record that a killed process left tries in stays so long after their end, seconds: the store hides what has expired by a
 * process's own clock, and one that is less ahead than this must not take the tries of others for ended.
 */
const KEPT = 366 * 86_400;

/**
 * Reservations of all processes of a store. An attempt takes its place before it asks how many there are: whoever asks
 * later sees it, being verified or counted, so that no two of one too many can both go on.
 */
export function sharedReservations(
  { store, clock: own }: { store: Store; clock: Clock },
  random: Random = systemRandom,
): Reservations {
  const tries = store.collection('tries');
  const clock = store.sharedClock ?? own;
  const leave = async (keys: readonly string[], id: string): Promise<void> => {
    await Promise.all(
      keys.map((key) =>
        tries.update(key, (current) => {
          const { [id]: _ended, ...judged } = going(current, clock());
          const isEmpty = Object.keys(judged).length === 0;
          return { ...current, judged, ...(isEmpty && { expiresAt: LONG_AGO }) };
        }),
      ),
    );
  };
  /** @returns how many are being verified under each key, this one and those before it. */
  const enter = (keys: readonly string[], id: string): Promise<number[]> =>
    Promise.all(
      keys.map(async (key) => {
        const now = clock();
        const until = now + LONGEST_TRY;
        const { judged } = await tries.upsert(key, (current) => ({
          id: key,
          judged: { ...going(current, now), [id]: until },
          expiresAt: Math.ceil(until / 1000) + KEPT,
        }));
        return Object.keys(judged).length;
      }),
    );
  return {
    take: async (keys, look) => {
      for (;;) {
        const id = random(9).toString('base64url');
        // What cannot be taken back ends by itself.
        const end = () => leave(keys, id).catch(() => undefined);
        const sizes = await enter(keys, id);
        try {
          const allowed = await look();
          if (sizes.every((size, index) => size <= (allowed[index] ?? 0))) return () => void end();
        } catch (thrown) {
          await end();
          throw thrown;
        }
        // Nothing is held while waiting: two that wait for each other would both wait for ever.
        await end();
        const [spread = 0] = random(1);
        await new Promise((resolve) => setTimeout(resolve, LOOK + (spread / 256) * SPREAD));
      }
    },
  };
}

function going(current: Frozen<TriesRecord> | undefined, now: number): Record<string, number> {
  return Object.fromEntries(Object.entries(current?.judged ?? {}).filter(([, until]) => until > now));
}
