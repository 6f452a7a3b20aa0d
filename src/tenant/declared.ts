// The names that the tenant file declared at the last start. A record that the file declared then and that is gone
// now was deleted on purpose, and is not created again. A name that the file dropped and declares again is new.
import { isDeepStrictEqual } from 'node:util';
import type { Store } from '../store/contract.ts';

const ID = 'declared';

/** Returns the names that the file declared the last time. */
export async function declaredEarlier(store: Store): Promise<ReadonlySet<string>> {
  const found = await store.collection('documents').get(ID);
  return new Set(found?.kind === ID ? (found.body.names as readonly string[]) : []);
}

/** Stores the names that the file declares now. */
export async function storeDeclared(store: Store, declared: readonly string[]): Promise<void> {
  const names = [...new Set(declared)].sort();
  const before = await store.collection('documents').get(ID);
  if (isDeepStrictEqual(before?.body.names, names)) return;
  const at = new Date().toISOString();
  const created_at = before?.created_at ?? at;
  await store.collection('documents').put({ id: ID, kind: ID, body: { names }, created_at, updated_at: at });
}
