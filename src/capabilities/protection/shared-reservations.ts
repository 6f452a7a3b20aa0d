// Attempts that are being verified by any of several processes.
import type { TriesRecord } from '../../records/leases.ts';
import type { Frozen } from '../../records/record.ts';
import type { Clock } from '../../runtime/clock.ts';
import { type Random, systemRandom } from '../../runtime/random.ts';
import type { Store } from '../../store/contract.ts';
import { MAX_ATTEMPT_MS, type Reservations } from './reservations.ts';

/** Pause before the next look for a place, milliseconds. A random part keeps two processes from colliding again. */
const PAUSE_MS = 20;
const JITTER_MS = 60;

/** The expiry of a record without attempts, epoch seconds: in the past by any clock. */
const LONG_AGO = 1;
/**
 * How long a record that a killed process left is kept, seconds. The store hides expired records by the clock of
 * each process; a process whose clock is ahead must not take the attempts of others for ended.
 */
const RETENTION_SECONDS = 366 * 86_400;

/**
 * Returns reservations that all processes of a store share. An attempt takes its place before it reads the counts.
 * A later attempt therefore sees it, either being verified or counted, so that two attempts cannot both take the
 * last place.
 */
export function sharedReservations(
  { store, clock: own }: { store: Store; clock: Clock },
  random: Random = systemRandom,
): Reservations {
  const tries = store.collection('tries');
  const clock = store.sharedClock ?? own;
  const removePlaces = async (keys: readonly string[], id: string): Promise<void> => {
    await Promise.all(
      keys.map((key) =>
        tries.update(key, (current) => {
          const { [id]: _ended, ...judged } = inProgress(current, clock());
          const isEmpty = Object.keys(judged).length === 0;
          return { ...current, judged, ...(isEmpty && { expiresAt: LONG_AGO }) };
        }),
      ),
    );
  };
  /** Adds an attempt under each key. @returns how many are being verified there, including this one. */
  const addPlaces = (keys: readonly string[], id: string): Promise<number[]> =>
    Promise.all(
      keys.map(async (key) => {
        const now = clock();
        const until = now + MAX_ATTEMPT_MS;
        const { judged } = await tries.upsert(key, (current) => ({
          id: key,
          judged: { ...inProgress(current, now), [id]: until },
          expiresAt: Math.ceil(until / 1000) + RETENTION_SECONDS,
        }));
        return Object.keys(judged).length;
      }),
    );
  return {
    take: async (keys, readAllowed) => {
      for (;;) {
        const id = random(9).toString('base64url');
        // A place that cannot be given back expires by itself.
        const releasePlaces = () => removePlaces(keys, id).catch(() => undefined);
        const sizes = await addPlaces(keys, id);
        try {
          const allowed = await readAllowed();
          if (sizes.every((size, index) => size <= (allowed[index] ?? 0))) return () => void releasePlaces();
        } catch (thrown) {
          await releasePlaces();
          throw thrown;
        }
        // Nothing is held while waiting, because two attempts that wait for each other would deadlock.
        await releasePlaces();
        const [jitter = 0] = random(1);
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS + (jitter / 256) * JITTER_MS));
      }
    },
  };
}

function inProgress(current: Frozen<TriesRecord> | undefined, now: number): Record<string, number> {
  return Object.fromEntries(Object.entries(current?.judged ?? {}).filter(([, until]) => until > now));
}
