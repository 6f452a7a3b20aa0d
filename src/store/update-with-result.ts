// Updates that also return a decision about the record, for what may happen only once.
import type { Frozen, Stored } from '../records/record.ts';
import type { Collection, Incoming } from './contract.ts';

/** What `decide` returns: its result and, where the record changes, the record that replaces it. */
interface Decision<T extends Stored, R> {
  result: R;
  next?: Incoming<T> | undefined;
}

/**
 * Updates a record and returns the result that `decide` gave for it. Setting a variable in `decide` would not be
 * reliable: another process may delete the record after `decide` was called, and then nothing is written.
 * @param decide called again when another process changed the record first; without `next` the record stays as it is.
 * @returns the result for the record as it was when it was replaced; undefined when there is no such record.
 */
export async function updateWithResult<T extends Stored, R>(
  records: Pick<Collection<T>, 'update'>,
  id: string,
  decide: (current: Frozen<T>) => Decision<T, R>,
): Promise<R | undefined> {
  let result: R | undefined;
  const found = await records.update(id, (current) => {
    const decision = decide(current);
    result = decision.result;
    return decision.next ?? (current as Incoming<T>);
  });
  return found === undefined ? undefined : result;
}
