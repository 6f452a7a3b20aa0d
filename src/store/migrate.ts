// Converts what older releases have stored to the present form.

import type { Logger } from 'pino';
import { type Migration, migrations } from '../records/migrations.ts';
import type { Frozen, Stored } from '../records/record.ts';
import { collectionByName } from './collection-by-name.ts';
import { type Store, UniqueKeyError, type Write } from './contract.ts';

const recordsAtOnce = 500;

/**
 * Applies the migrations that this store has not had yet. What belongs to one record is written in one batch, and a
 * record that is already converted is left alone, so an interrupted start is continued by the next one.
 * @param which those that a store of this kind may need.
 */
export async function migrate(
  store: Store,
  log?: Pick<Logger, 'warn'>,
  which: readonly Migration[] = migrations,
): Promise<void> {
  const applied = store.collection('migrations');
  for (const migration of which) {
    if ((await applied.get(migration.id)) !== undefined) continue;
    const records = await store.collection(migration.collection).count();
    if (records > 0)
      log?.warn({ migration: migration.id, records }, 'the store is brought to its present form, once');
    await changeAll(store, migration, log);
    await applied.put({ id: migration.id });
  }
}

async function changeAll(
  store: Store,
  migration: Migration,
  log: Pick<Logger, 'warn'> | undefined,
): Promise<void> {
  const records = collectionByName(store, migration.collection);
  for (let after: string | undefined; ; ) {
    const page = await records.list({ limit: recordsAtOnce, ...(after !== undefined && { after }) });
    // At once, so that the writes share commits.
    await Promise.all(page.records.map((record) => change(store, migration, record, log)));
    if (page.next === undefined) return;
    after = page.next;
  }
}

async function change(
  store: Store,
  { writes }: Migration,
  record: Frozen<Stored>,
  log: Pick<Logger, 'warn'> | undefined,
): Promise<void> {
  const make = async () => {
    const made = await writes(record, (name, index, value) => store.collection(name).findBy(index, value));
    if ('message' in made) log?.warn({ users: made.users }, made.message);
    else if (made.length > 0) await store.batch(made as readonly Write[]);
  };
  await make().catch((thrown: unknown) => {
    if (!(thrown instanceof UniqueKeyError)) throw thrown;
    // Another record got the key since it was looked up.
    return make();
  });
}
