// Deletes a record in one batch with other writes.
import type { CollectionName } from '../records/collections.ts';
import type { Store, Write } from './contract.ts';

/**
 * @param also written before, in the same batch; what they throw keeps the record.
 * @returns whether there was one.
 */
export async function deleteWith(
  store: Pick<Store, 'batch'>,
  collection: CollectionName,
  id: string,
  also: readonly Write[],
): Promise<boolean> {
  let isThere = false;
  const change = <T>(current: T): T => {
    isThere = true;
    return current;
  };
  const writes = [
    { collection, update: id, change },
    { collection, delete: id },
  ] as Write[];
  await store.batch([...also, ...writes]);
  return isThere;
}
