// What the tenant file declared at the last start: a record of it that is gone since was removed by a call, and the next
// start does not make it again. What the file has declared no more in between is new when it does.
import { isDeepStrictEqual } from 'node:util';
import type { Store } from '../store/contract.ts';

const ID = 'declared';

/** The names of what the file declared the last time. */
export async function declaredEarlier(store: Store): Promise<ReadonlySet<string>> {
  const found = await store.collection('documents').get(ID);
  return new Set(found?.kind === ID ? (found.body.names as readonly string[]) : []);
}

/** Keeps what the file declares now. */
export async function noteDeclared(store: Store, given: readonly string[]): Promise<void> {
  const names = [...new Set(given)].sort();
  const before = await store.collection('documents').get(ID);
  if (isDeepStrictEqual(before?.body.names, names)) return;
  const at = new Date().toISOString();
  const created_at = before?.created_at ?? at;
  await store.collection('documents').put({ id: ID, kind: ID, body: { names }, created_at, updated_at: at });
}
