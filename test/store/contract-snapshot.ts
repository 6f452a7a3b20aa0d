// The tests of snapshots in the contract.
import { expect } from 'chai';
import type { CollectionName } from '../../src/records/collections.ts';
import type { Snapshot } from '../../src/store/contract.ts';
import { aUser, type Register } from './contract.ts';

async function idsOf(snapshot: Snapshot, collection: CollectionName): Promise<string[]> {
  const ids: string[] = [];
  for await (const records of snapshot.records(collection)) ids.push(...records.map(({ id }) => id));
  return ids;
}

const role = (id: string) => ({ id, name: id, description: '', permissions: [] });

export function snapshotCases(test: Register): void {
  test('contains all records of its moment, however many, and none that is written later', async ({
    store,
  }) => {
    const names = Array.from({ length: 1_203 }, (_, n) => `user|${String(n).padStart(5, '0')}`);
    await store.batch(names.map((id) => ({ collection: 'users', insert: aUser(id, `${id}@example.test`) })));
    await store.collection('roles').insert(role('rol_before') as never);
    const users = store.collection('users');
    await store.withSnapshot(async (snapshot) => {
      // Writes go on meanwhile.
      await users.insert(aUser('user|later'));
      await users.delete('user|00001');
      await users.update('user|01200', (current) => ({ ...current, name: 'Later' }));
      await store.collection('roles').insert(role('rol_later') as never);
      expect(await idsOf(snapshot, 'users')).to.deep.equal(names);
      expect(await idsOf(snapshot, 'roles')).to.deep.equal(['rol_before']);
      for await (const records of snapshot.records('users'))
        for (const record of records) expect(record).not.to.have.property('name');
    });
    expect(await users.get('user|00001')).to.equal(undefined);
  });

  test('leaves out records that had expired, and keeps those that expire while it is read', async ({
    store,
  }, time) => {
    const artifact = (id: string, expiresAt: number) => ({ id, model: 'Session', payload: {}, expiresAt });
    const seconds = time.now / 1000;
    await store.collection('artifacts').insert(artifact('gone', seconds + 10));
    await store.collection('artifacts').insert(artifact('there', seconds + 100));
    time.now += 20_000;
    await store.withSnapshot(async (snapshot) => {
      expect(snapshot.at).to.equal(time.now);
      time.now += 200_000;
      expect(await idsOf(snapshot, 'artifacts')).to.deep.equal(['there']);
    });
  });

  test('contains secrets in plain text, and no counters', async ({ store }) => {
    await store.collection('sharedSecrets').insert({ id: 'one', value: 'open' });
    await store.collection('limits').put({ id: 'x', tokens: 1, at: 1 } as never);
    await store.withSnapshot(async (snapshot) => {
      const found: unknown[] = [];
      for await (const records of snapshot.records('sharedSecrets')) found.push(...records);
      expect(found).to.deep.equal([{ id: 'one', value: 'open' }]);
      expect(await idsOf(snapshot, 'limits')).to.deep.equal([]);
    });
  });

  test('throws what its reader throws, and the store goes on working', async ({ store }) => {
    const thrown = await store
      .withSnapshot(async () => {
        throw new Error('of the reader');
      })
      .catch((error: Error) => error.message);
    expect(thrown).to.equal('of the reader');
    await store.collection('users').insert(aUser('user|1'));
    expect(await store.collection('users').count()).to.equal(1);
  });
}
