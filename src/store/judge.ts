// A record that is judged and changed in one step, for what may be done once.
import type { Frozen, Stored } from '../records/record.ts';
import type { Collection, Incoming } from './contract.ts';

/** What is said of a record, and what takes its place; without `next` it stays. */
interface Judged<T extends Stored, V> {
  verdict: V;
  next?: Incoming<T> | undefined;
}

/**
 * Judges a record and replaces it by what follows, as `update` does. A verdict that `change` notes for itself is not to be
 * relied on: another process may remove the record after it was judged, and `change` is not called for one that is gone.
 * @param judge called again where another process was quicker.
 * @returns the verdict on the record as it was when it was replaced; undefined when there is none.
 */
export async function judge<T extends Stored, V>(
  records: Pick<Collection<T>, 'update'>,
  id: string,
  judge: (current: Frozen<T>) => Judged<T, V>,
): Promise<V | undefined> {
  let verdict: V | undefined;
  const found = await records.update(id, (current) => {
    const judged = judge(current);
    verdict = judged.verdict;
    return judged.next ?? (current as Incoming<T>);
  });
  return found === undefined ? undefined : verdict;
}
