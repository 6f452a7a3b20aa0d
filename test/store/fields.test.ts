// Fields that records are sorted by are columns of their own: a store of a release that had none gets them, and they
// follow each change.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect } from 'chai';
import type { UserRecord } from '../../src/records/users.ts';
import type { Store } from '../../src/store/contract.ts';
import { collectionSpecs } from '../../src/store/keys.ts';
import { openStore } from '../../src/store/open.ts';
import { sqliteDialect } from '../../src/store/sql/dialect.ts';

const user = (id: string, email?: string): UserRecord => ({
  id,
  ...(email !== undefined && { email }),
  email_verified: false,
  user_metadata: {},
  app_metadata: {},
  created_at: '2026-11-01T09:00:00.000Z',
  updated_at: '2026-11-01T09:00:00.000Z',
  logins_count: 0,
});

describe('fields with an index', () => {
  let dataDir: string;
  let store: Store;
  const open = async () => {
    store = await openStore({ dataDir, clock: Date.now });
    return store.collection('users');
  };
  const sorted = async () => (await store.collection('users').list({ sort: { field: 'email' } })).records;
  const ids = async () => (await sorted()).map(({ id }) => id);
  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'gatehouse-fields-'));
  });
  afterEach(async () => {
    await store.close();
    await rm(dataDir, { recursive: true });
  });

  it('follow a change, also one made of a change that is not yet durable', async () => {
    const users = await open();
    await users.insert(user('a', 'z@example.test'));
    await users.insert(user('b', 'm@example.test'));
    expect(await ids()).to.deep.equal(['b', 'a']);
    await Promise.all([
      users.update('a', (before) => ({ ...before, email: 'a@example.test' })),
      users.update('a', (before) => ({ ...before, logins_count: 1 })),
    ]);
    expect(await ids()).to.deep.equal(['a', 'b']);
    await users.update('a', ({ email: _gone, ...rest }) => rest);
    expect(await ids()).to.deep.equal(['b', 'a']);
    expect((await sorted())[1]).to.include({ id: 'a', logins_count: 1 });
  });

  it('are made of the records of an older release, and follow those from then on', async () => {
    const before = await open();
    await before.insert(user('a', 'z@example.test'));
    await before.insert(user('b', 'm@example.test'));
    await before.insert(user('c'));
    await store.close();
    const database = new DatabaseSync(join(dataDir, 'store', 'gatehouse.db'));
    for (const field of ['email', 'created_at']) {
      const expression = sqliteDialect.field('data', [field], 'text');
      database.exec(`DROP INDEX users_by_${field}; ALTER TABLE users DROP COLUMN field_${field}`);
      database.exec(`CREATE INDEX users_by_${field} ON users (${expression}, id)`);
    }
    for (const field of ['date', 'type']) {
      database.exec(`DROP INDEX logs_by_${field}; ALTER TABLE logs DROP COLUMN field_${field}`);
    }
    database.exec('PRAGMA user_version = 2');
    database.close();
    const users = await open();
    expect(await ids()).to.deep.equal(['b', 'a', 'c']);
    await users.update('c', (one) => ({ ...one, email: 'c@example.test' }));
    await users.insert(user('d', 'd@example.test'));
    expect(await ids()).to.deep.equal(['c', 'd', 'b', 'a']);
  });
});

describe('declared fields with an index', () => {
  it('are texts: the columns of both databases are', () => {
    for (const [name, { indexed = [], fields = {} }] of collectionSpecs())
      for (const field of indexed) expect(fields[field], `${name}.${field}`).to.equal('text');
  });
});
