// Converts what older releases have stored to the present form.

import type { Logger } from 'pino';
import { type Migration, migrations } from '../records/migrations.ts';
import { collectionByName } from './collection-by-name.ts';
import type { Store } from './contract.ts';

const recordsAtOnce = 500;

/**
 * Applies the migrations that this store has not had yet. What belongs to one record is written in one batch, and a
 * record that is already converted is left alone, so an interrupted start is continued by the next one.
 */
export async function migrate(store: Store, log?: Pick<Logger, 'warn'>): Promise<void> {
  const applied = store.collection('migrations');
  for (const migration of migrations) {
    if ((await applied.get(migration.id)) !== undefined) continue;
    const records = await store.collection(migration.collection).count();
    if (records > 0)
      log?.warn({ migration: migration.id, records }, 'the store is brought to its present form, once');
    await changeAll(store, migration);
    await applied.put({ id: migration.id });
  }
}

async function changeAll(store: Store, { collection, writes }: Migration): Promise<void> {
  const records = collectionByName(store, collection);
  for (let after: string | undefined; ; ) {
    const page = await records.list({ limit: recordsAtOnce, ...(after !== undefined && { after }) });
    const pageWrites = page.records.flatMap((record) => writes(record));
    if (pageWrites.length > 0) await store.batch(pageWrites);
    if (page.next === undefined) return;
    after = page.next;
  }
}
