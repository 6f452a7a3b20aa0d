// Writes that depend on what other records there are, such as on how many a user has.

import type { Frozen } from '../records/base/record.ts';
import type { LeaseRecord } from '../records/state/leases.ts';
import { type Random, sha256, systemRandom } from '../runtime/secrets.ts';
import type { Store, Write } from './contract.ts';

/**
 * Thrown within a batch, which then changes nothing, if another batch of the same turn was written first. Writes that
 * `prepare` returns throw it if what was decided on has changed otherwise.
 */
export const OVERTAKEN = new Error('another batch was written first');

/** Names may share a record, so that their number cannot fill the store. */
const idOf = (name: string) => `turn ${sha256(name).slice(0, 2)}`;

const newHolder = (random: Random) => random(9).toString('base64url');

/**
 * Writes a batch only if no other one with one of the same names was written since `prepare` was called; otherwise calls
 * `prepare` again. So of many concurrent callers, each decides on what the others have written, in any number of processes.
 * @param names what is decided on.
 * @param prepare reads, and returns the writes; undefined to write nothing. Its errors are passed on.
 * @returns whether it was written.
 * @throws as {@link Store.batch}.
 */
export async function writeInTurn(
  store: Store,
  names: string | readonly string[],
  prepare: () => Promise<readonly Write[] | undefined>,
  random: Random = systemRandom,
): Promise<boolean> {
  const leases = store.collection('leases');
  const ids = [...new Set([names].flat().map(idOf))];
  for (;;) {
    const turns: Write[] = [];
    for (const id of ids) {
      const { holder } = await leases.upsert(
        id,
        (current) => current ?? { id, holder: newHolder(random), until: 0 },
      );
      turns.push({
        collection: 'leases',
        update: id,
        change: (current) => {
          if (current.holder !== holder) throw OVERTAKEN;
          return { ...current, holder: newHolder(random) };
        },
      });
    }
    const writes = await prepare();
    if (writes === undefined) return false;
    try {
      await store.batch([...turns, ...writes]);
      return true;
    } catch (thrown) {
      if (thrown !== OVERTAKEN) throw thrown;
    }
  }
}

/** Returns a write for a batch that decides nothing: whoever has decided in that turn before it is written decides again. */
export function takeTurn(name: string, random: Random): Write {
  const change = (current: Frozen<LeaseRecord>): LeaseRecord => ({ ...current, holder: newHolder(random) });
  return { collection: 'leases', update: idOf(name), change };
}
