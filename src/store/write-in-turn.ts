// Writes that depend on what other records there are, such as on how many a user has.
import { type Random, systemRandom } from '../runtime/random.ts';
import { sha256 } from '../runtime/secrets.ts';
import type { Store, Write } from './contract.ts';

/** Thrown within a batch, which then changes nothing, if another batch of the same turn was written first. */
const OVERTAKEN = new Error('another batch was written first');

/**
 * Writes a batch only if no other one with the same name was written since `prepare` was called; otherwise calls `prepare` again.
 * So of many concurrent callers, each decides on what the others have written, in any number of processes.
 * @param name what is decided on; names may share a record, so that their number cannot fill the store.
 * @param prepare reads, and returns the writes; undefined to write nothing. Its errors are passed on.
 * @returns whether it was written.
 * @throws as {@link Store.batch}.
 */
export async function writeInTurn(
  store: Store,
  name: string,
  prepare: () => Promise<readonly Write[] | undefined>,
  random: Random = systemRandom,
): Promise<boolean> {
  const leases = store.collection('leases');
  const id = `turn ${sha256(name).slice(0, 2)}`;
  const next = () => random(9).toString('base64url');
  for (;;) {
    const { holder } = await leases.upsert(id, (current) => current ?? { id, holder: next() });
    const writes = await prepare();
    if (writes === undefined) return false;
    const turn: Write = {
      collection: 'leases',
      update: id,
      change: (current) => {
        if (current.holder !== holder) throw OVERTAKEN;
        return { ...current, holder: next() };
      },
    };
    try {
      await store.batch([turn, ...writes]);
      return true;
    } catch (thrown) {
      if (thrown !== OVERTAKEN) throw thrown;
    }
  }
}
