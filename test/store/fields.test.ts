// Fields that records are sorted by are separate columns. A store of a release without them gets them, and they follow
// each change.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect } from 'chai';
import type { UserRecord } from '../../src/records/users/users.ts';
import type { Store } from '../../src/store/contract.ts';
import { openStore } from '../../src/store/open.ts';
import { collectionSpecs } from '../../src/store/record.ts';
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

describe('indexed fields', () => {
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

  it('follow a change, even one based on a change that is not durable yet', async () => {
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

  it('are filled from the records of the release before, and follow later changes', async () => {
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
    database.close();
    const users = await open();
    expect(await ids()).to.deep.equal(['b', 'a', 'c']);
    await users.update('c', (one) => ({ ...one, email: 'c@example.test' }));
    await users.insert(user('d', 'd@example.test'));
    expect(await ids()).to.deep.equal(['c', 'd', 'b', 'a']);
  });

  it('get an index that the release before did not have, while existing keys are not rewritten', async () => {
    const before = await open();
    await before.insert({ ...user('a', 'a@example.test'), last_login: '2026-11-20T09:00:00.000Z' });
    await before.insert({ ...user('b'), last_login: '2026-11-21T09:00:00.000Z' });
    await before.insert(user('c'));
    await store.close();
    const database = new DatabaseSync(join(dataDir, 'store', 'gatehouse.db'));
    database.exec("DELETE FROM users_index WHERE key = 'lastLoginDay'");
    database.exec(
      `UPDATE meta SET value = '[[],["email","role","search"]]' WHERE name = 'keys of users';
       UPDATE users_index SET value = 'seen@example.test' WHERE key = 'email'`,
    );
    database.close();
    const users = await open();
    const on = async (day: string) => (await users.findBy('lastLoginDay', day)).map(({ id }) => id);
    expect(await on('2026-11-20')).to.deep.equal(['a']);
    await users.update('a', (one) => ({ ...one, last_login: '2026-11-21T10:00:00.000Z' }));
    expect([await on('2026-11-20'), await on('2026-11-21')]).to.deep.equal([[], ['a', 'b']]);
    const where = { index: 'email', equals: 'seen@example.test' };
    expect((await users.list({ where })).records.map(({ id }) => id)).to.deep.equal(['a']);
  });
});

describe('declared indexed fields', () => {
  it('are texts, as the columns of both databases are', () => {
    for (const [name, { indexed = [], fields = {} }] of collectionSpecs())
      for (const field of indexed) expect(fields[field], `${name}.${field}`).to.equal('text');
  });
});
