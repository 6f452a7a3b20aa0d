// A record that is changed where it is there and added where it is not, as one: of two that do so at once, the
// second changes what the first has added.

import type { Frozen, Stored } from '../records/record.ts';
import { type Collection, UniqueKeyError } from './contract.ts';

/**
 * Writes what `change` makes of the record with this id, or of none. No change that is made at the same time is lost.
 * @param change as that of `Collection.update`; called again when somebody else was faster.
 * @throws UniqueKeyError when a unique key other than the id is taken.
 */
export async function upsert<T extends Stored>(
  collection: Collection<T>,
  id: string,
  change: (current: Frozen<T> | undefined) => T,
): Promise<void> {
  while ((await collection.update(id, change)) === undefined) {
    try {
      return await collection.insert(change(undefined));
    } catch (thrown) {
      if (!(thrown instanceof UniqueKeyError) || thrown.key !== 'id') throw thrown;
    }
  }
}
