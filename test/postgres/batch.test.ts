// Batches in PostgreSQL: several writes in one transaction, whose statements are sent without waiting for one another.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { type Store, UniqueKeyError, type Write } from '../../src/store/contract.ts';
import { openStore } from '../../src/store/open.ts';
import { anIdentity } from '../store/contract.ts';
import { type Cluster, startCluster } from '../support/postgres.ts';

describe('a batch in PostgreSQL', () => {
  let cluster: Cluster;
  let dataDir: string;
  let stores: Store[];
  before(async () => {
    cluster = await startCluster();
    dataDir = mkdtempSync(join(tmpdir(), 'gatehouse-batch-'));
    const options = { dataDir, databaseUrl: cluster.url(), clock: Date.now };
    stores = [await openStore(options), await openStore(options)];
  });
  after(async () => {
    for (const store of stores) await store.close();
    await cluster.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });

  const store = () => stores[0] as Store;
  const events = () => store().collection('logs');
  const event = (id: string, description = '') => ({ id, date: '', type: 's', description });
  const failed = (work: Promise<unknown>) =>
    work.then(
      () => undefined,
      (error: unknown) => error,
    );

  it('makes all writes or none, whichever of them fails, and leaves its connection usable', async () => {
    await events().insert(event('there', 'before'));
    const throwing = () => {
      throw new TypeError('not this one');
    };
    const fault = (n: number): Write =>
      n % 2 === 0
        ? { collection: 'logs', insert: event('there') }
        : { collection: 'logs', update: 'there', change: throwing };
    const refused = Array.from({ length: 40 }, (_, n) =>
      failed(
        store().batch([
          { collection: 'logs', insert: event(`new ${n}`) },
          fault(n),
          { collection: 'factorChanges', put: { id: `of ${n}` } as never },
        ]),
      ),
    );
    const errors = await Promise.all(refused);
    expect(errors.filter((error) => error instanceof UniqueKeyError)).to.have.length(20);
    expect(errors.filter((error) => error instanceof TypeError)).to.have.length(20);
    expect((await events().list()).records.map(({ id, description }) => [id, description])).to.deep.equal([
      ['there', 'before'],
    ]);
    expect(await store().collection('factorChanges').count()).to.equal(0);
  });

  it('loses no change when several processes change the same records concurrently, in different orders', async () => {
    await Promise.all(['a', 'b', 'c'].map((id) => events().insert(event(id, '0'))));
    const add = (id: string) =>
      ({
        collection: 'logs',
        update: id,
        change: (one: { description: string }) => ({
          ...one,
          description: String(Number(one.description) + 1),
        }),
      }) as never;
    const orders = [['a', 'b', 'c'], ['c', 'b', 'a'], ['b', 'a'], ['c']];
    await Promise.all(
      Array.from({ length: 60 }, (_, n) => stores[n % 2]?.batch((orders[n % 4] ?? []).map(add))),
    );
    const counts = await Promise.all(
      ['a', 'b', 'c'].map(async (id) => (await events().get(id))?.description),
    );
    expect(counts).to.deep.equal(['45', '45', '45']);
  });

  it('gives a unique key to one of many batches that add it concurrently, in any order and process', async () => {
    const identities = store().collection('identities');
    const names = ['a', 'b', 'c', 'd'];
    const outcomes = await Promise.all(
      Array.from({ length: 24 }, async (_, n) => {
        const writes = (n % 2 === 0 ? names : names.toReversed()).map(
          (name, at): Write => ({
            collection: 'identities',
            insert: anIdentity(`${at} of ${n}`, `${name}@a.example`),
          }),
        );
        return failed(stores[n % 2]?.batch(writes) as Promise<void>);
      }),
    );
    expect(outcomes.filter((error) => error === undefined)).to.have.length(1);
    expect(outcomes.filter((error) => error instanceof UniqueKeyError)).to.have.length(23);
    const winner = outcomes.indexOf(undefined);
    expect((await identities.list()).records.map(({ id }) => id)).to.deep.equal(
      names.map((_, at) => `${at} of ${winner}`),
    );
  });

  it('adds new records by one statement a collection', async () => {
    const added = async (table: string) => {
      const { rows } = await cluster.query(
        `SELECT count(DISTINCT cmin::text) AS statements, count(*) > 29 AS "areAll" FROM "${table}" WHERE id LIKE 'many %'`,
      );
      return rows[0];
    };
    const many = Array.from({ length: 30 }, (_, n) => `many ${n}`);
    await store().batch([
      ...many.map((id): Write => ({ collection: 'credentials', put: { id, passwordHash: '', history: [] } })),
      ...many.map((id): Write => ({ collection: 'identities', insert: anIdentity(id, `${id}@a.example`) })),
    ]);
    for (const table of ['credentials', 'identities', 'identities_unique', 'identities_index'])
      expect(await added(table), table).to.deep.equal({ statements: '1', areAll: true });
  });

  it('with one write is the same as that write, and throws what it throws', async () => {
    await store().batch([{ collection: 'logs', insert: event('single') }]);
    const again = await failed(store().batch([{ collection: 'logs', insert: event('single') }]));
    expect(again).to.be.instanceOf(UniqueKeyError);
    await store().batch([{ collection: 'logs', delete: 'single' }]);
    expect(await events().get('single')).to.equal(undefined);
    expect(await failed(store().batch([{ collection: 'clients', delete: 'x' }]))).to.be.instanceOf(TypeError);
    await store().batch([]);
  });
});
