// The tests of the contract in src/store/contract.ts, sentence by sentence, for any engine: see storeContract.
import { expect } from 'chai';
import type { Records } from '../../src/records/collections.ts';
import {
  type AddressKind,
  addressKey,
  type IdentityRecord,
} from '../../src/records/connections/identities.ts';
import type { ArtifactRecord } from '../../src/records/state/engine.ts';
import type { UserRecord } from '../../src/records/users/users.ts';
import { type Page, type Store, UniqueKeyError } from '../../src/store/contract.ts';
import { batchCases, heldCases, queryCases, searchCases, upsertCases } from './contract-queries.ts';
import { snapshotCases } from './contract-snapshot.ts';

/** An engine under test: an open store, and a function that opens the same data again after closing it. */
interface Opened {
  store: Store;
  reopen(): Promise<Store>;
  cleanup(): Promise<void>;
}

type Clock = () => number;
type Case = (opened: Opened, time: { now: number }) => Promise<void>;
export type Register = (behaviour: string, run: Case) => void;

const connection = 'Username-Password-Authentication';
const startSeconds = 1_800_000_000;

/** A user. The e-mail address is an index, which several users may share. */
export function aUser(id: string, email?: string): UserRecord {
  return {
    id,
    ...(email === undefined ? {} : { email }),
    email_verified: false,
    user_metadata: {},
    app_metadata: {},
    created_at: '2026-11-01T09:00:00.000Z',
    updated_at: '2026-11-01T09:00:00.000Z',
    logins_count: 0,
  };
}

/** An identity, whose addresses are unique keys. */
export function anIdentity(
  id: string,
  email?: string,
  more: Partial<Record<AddressKind, string>> = {},
): IdentityRecord {
  const addresses = { ...(email === undefined ? {} : { email }), ...more };
  return {
    id,
    user_id: `user of ${id}`,
    connection,
    provider: 'auth0',
    upstream_id: id,
    isSocial: false,
    ...addresses,
    unique: Object.keys(addresses) as AddressKind[],
  };
}

/** Returns the unique key of an identity's e-mail address. */
export function emailKey(email: string): string {
  return addressKey(connection, 'email', email);
}

function anArtifact(id: string, grantId: string, expiresAt?: number): ArtifactRecord {
  return {
    id,
    model: 'RefreshToken',
    payload: { grantId },
    ...(expiresAt === undefined ? {} : { expiresAt }),
  };
}

/** Declares the contract's tests for an engine. @param open opens an empty store with the given clock (epoch milliseconds) */
export function storeContract(name: string, open: (clock: Clock) => Promise<Opened>): void {
  const test: Register = (behaviour, run) => {
    it(behaviour, async () => {
      const time = { now: startSeconds * 1000 };
      const opened = await open(() => time.now);
      try {
        await run(opened, time);
      } finally {
        await opened.cleanup();
      }
    });
  };
  describe(`the ${name} store`, () => {
    describe('records', () => recordCases(test));
    describe('unique keys', () => uniqueKeyCases(test));
    describe('indexes', () => indexCases(test));
    describe('update', () => updateCases(test));
    describe('races', () => raceCases(test));
    describe('list and count', () => listCases(test));
    describe('upsert', () => upsertCases(test));
    describe('batch', () => batchCases(test));
    describe('queries', () => queryCases(test));
    describe('searches', () => searchCases(test));
    describe('searches across collections', () => heldCases(test));
    describe('the revision of the configuration', () => revisionCases(test));
    describe('expiry', () => expiryCases(test));
    describe('stored records', () => ownershipCases(test));
    describe('a snapshot', () => snapshotCases(test));
    describe('closing and reopening', () => reopenCases(test));
  });
}

/** Returns what a promise rejects with; fails if it resolves. */
export async function rejection(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error('it should have been rejected');
}

async function expectTaken(promise: Promise<unknown>, collection: string, key: string): Promise<void> {
  const error = await rejection(promise);
  expect(error).to.be.instanceOf(UniqueKeyError);
  expect(error).to.include({ collection, key });
}

function revisionCases(test: Register): void {
  const organization = { id: 'org_1', name: 'one' } as Records['organizations'];
  const key: Records['signingKeys'] = { id: 'k', state: 'current', jwk: {}, x5c: [], createdAt: 0 };

  test('has risen when a write to the configuration resolves, whatever method was used', async ({
    store,
  }) => {
    const organizations = store.collection('organizations');
    const writes = [
      () => organizations.insert(organization),
      () => organizations.put({ ...organization, name: 'other' }),
      () => organizations.update('org_1', (record) => ({ ...record, name: 'third' })),
      () => organizations.upsert('org_2', () => ({ ...organization, id: 'org_2' })),
      () => organizations.take('org_1'),
      () => organizations.delete('org_2'),
      () => store.collection('signingKeys').insert(key),
      () => store.collection('signingKeys').deleteBy('state', 'current'),
      () => store.batch([{ collection: 'signingKeys', put: key }]),
    ];
    for (const write of writes) {
      const before = store.revision();
      await write();
      expect(store.revision(), String(write)).to.be.greaterThan(before);
    }
  });

  test('stays the same when anything else is written or read', async ({ store }) => {
    const before = store.revision();
    await store.collection('users').insert(aUser('u'));
    await store.batch([{ collection: 'users', delete: 'u' }]);
    await store.collection('organizations').get('org_1');
    await store.collection('organizations').list();
    expect(store.revision()).to.equal(before);
  });
}

function recordCases(test: Register): void {
  test('reads an inserted record back by its id', async ({ store }) => {
    const user = aUser('auth0|1', 'ada@example.com');
    await store.collection('users').insert(user);
    expect(await store.collection('users').get('auth0|1')).to.deep.equal(user);
  });

  test('returns undefined for an unknown id', async ({ store }) => {
    expect(await store.collection('users').get('auth0|none')).to.equal(undefined);
  });

  test('finds a record whose id was looked up before it existed', async ({ store }) => {
    const artifacts = store.collection('artifacts');
    const writes: [id: string, write: () => Promise<unknown>][] = [
      ['inserted', () => artifacts.insert(anArtifact('inserted', 'g'))],
      ['put', () => artifacts.put(anArtifact('put', 'g'))],
      ['upserted', () => artifacts.upsert('upserted', () => anArtifact('upserted', 'g'))],
      ['batched', () => store.batch([{ collection: 'artifacts', insert: anArtifact('batched', 'g') }])],
    ];
    for (const [id, write] of writes) {
      for (const _ of ['before', 'after it was deleted']) {
        expect(await artifacts.get(id), id).to.equal(undefined);
        // Looks it up also while it is being written.
        await Promise.all([write(), artifacts.get(id)]);
        expect(await artifacts.get(id), id).to.deep.equal(anArtifact(id, 'g'));
        expect(await artifacts.delete(id), id).to.equal(true);
      }
      expect(await artifacts.take(id), id).to.equal(undefined);
    }
  });

  test('finds a record with a random id by its keys, and deletes it with them', async ({ store }) => {
    const artifacts = store.collection('artifacts');
    const token: ArtifactRecord = { id: 'drawn', model: 'AccessToken', payload: { grantId: 'g' } };
    await store.batch([{ collection: 'artifacts', insert: token }]);
    expect(await artifacts.get('drawn')).to.deep.equal(token);
    expect(await artifacts.findBy('grantId', 'g')).to.deep.equal([token]);
    expect(await artifacts.deleteBy('grantId', 'g')).to.equal(1);
    expect(await artifacts.get('drawn')).to.equal(undefined);
    await artifacts.insert(token);
    expect(await artifacts.findBy('grantId', 'g')).to.deep.equal([token]);
  });

  test('keeps two records with one id in two collections', async ({ store }) => {
    await store.collection('users').insert(aUser('auth0|1'));
    expect(await store.collection('credentials').get('auth0|1')).to.equal(undefined);
    await store.collection('credentials').insert({ id: 'auth0|1', passwordHash: 'hash', history: [] });
    expect(await store.collection('users').delete('auth0|1')).to.equal(true);
    expect(await store.collection('credentials').get('auth0|1')).to.include({ passwordHash: 'hash' });
  });

  test('adds a record by put, and replaces all of it at the next put', async ({ store }) => {
    const users = store.collection('users');
    await users.put({ ...aUser('auth0|1'), nickname: 'ada' });
    expect(await users.get('auth0|1')).to.include({ nickname: 'ada' });
    await users.put({ ...aUser('auth0|1'), name: 'Ada' });
    expect(await users.get('auth0|1')).to.deep.equal({ ...aUser('auth0|1'), name: 'Ada' });
    expect(await users.count()).to.equal(1);
  });

  test('deletes a record and returns whether there was one', async ({ store }) => {
    const users = store.collection('users');
    await users.insert(aUser('auth0|1'));
    expect(await users.delete('auth0|1')).to.equal(true);
    expect(await users.delete('auth0|1')).to.equal(false);
    expect(await users.get('auth0|1')).to.equal(undefined);
  });

  test('returns and deletes a record by take', async ({ store }) => {
    const artifacts = store.collection('artifacts');
    await artifacts.insert(anArtifact('code:1', 'g1'));
    expect(await artifacts.take('code:1')).to.deep.equal(anArtifact('code:1', 'g1'));
    expect(await artifacts.take('code:1')).to.equal(undefined);
    expect(await artifacts.findBy('grantId', 'g1')).to.deep.equal([]);
  });

  test('refuses a record without an id', async ({ store }) => {
    const users = store.collection('users');
    expect(await rejection(users.insert(aUser('')))).to.be.instanceOf(TypeError);
    expect(await rejection(users.put({ ...aUser('x'), id: 7 } as never))).to.be.instanceOf(TypeError);
    expect(await users.count()).to.equal(0);
  });

  test('returns a record as it was last written, however often it was read before', async ({
    store,
  }, time) => {
    const users = store.collection('users');
    const user = aUser('auth0|1', 'ada@example.com');
    const name = async () => {
      await users.get(user.id);
      return (await users.get(user.id))?.name;
    };
    await users.put({ ...user, name: 'one' });
    expect(await name()).to.equal('one');
    const [, read] = await Promise.all([
      users.update(user.id, (before) => ({ ...before, name: 'two' })),
      name(),
    ]);
    expect(read).to.equal('two');
    await store.batch([
      { collection: 'users', update: user.id, change: (before) => ({ ...before, name: 'three' }) },
    ]);
    expect(await name()).to.equal('three');
    await users.deleteBy('email', 'ada@example.com');
    expect(await name()).to.equal(undefined);
    await users.insert({ ...user, name: 'four', expiresAt: time.now / 1000 + 10 });
    expect(await name()).to.equal('four');
    time.now += 10_000;
    expect(await name()).to.equal(undefined);
  });

  test('keeps text of any script, quotes, line ends and large values unchanged', async (opened) => {
    const user_metadata = {
      scripts: 'Zoë Ångström 山田太郎 עברית العربية नमस्ते e\u0301 👩🏽‍🚀',
      quoting: '"\\\'`\r\n\t\u2028</script>{"a":1},\n]}\n',
      'key "with" 👍\n': [null, true, 0.1, -1e21, { deep: { deeper: [[]] } }],
      large: '0123456789é'.repeat(100_000),
    };
    const id = 'oauth2|ünï "codé"\n|1';
    await opened.store.collection('users').insert({ ...aUser(id), user_metadata });
    expect((await opened.store.collection('users').get(id))?.user_metadata).to.deep.equal(user_metadata);
    const again = await opened.reopen();
    expect((await again.collection('users').get(id))?.user_metadata).to.deep.equal(user_metadata);
  });

  test('treats a key named __proto__ as data', async (opened) => {
    const user_metadata = JSON.parse('{"__proto__":{"polluted":true}}');
    await opened.store.collection('users').insert({ ...aUser('auth0|1'), user_metadata });
    const again = await opened.reopen();
    const read = (await again.collection('users').get('auth0|1'))?.user_metadata ?? {};
    expect(Object.keys(read)).to.deep.equal(['__proto__']);
    expect('polluted' in {}).to.equal(false);
  });
}

function uniqueKeyCases(test: Register): void {
  test('refuse an insert with a taken id, name the key, and change nothing', async ({ store }) => {
    const identities = store.collection('identities');
    await identities.insert({ ...anIdentity('auth0|1', 'ada@example.com'), provider: 'first' });
    await expectTaken(identities.insert({ ...anIdentity('auth0|1', 'eve@example.com') }), 'identities', 'id');
    expect(await identities.get('auth0|1')).to.include({ provider: 'first', email: 'ada@example.com' });
    expect(await identities.findBy('email', emailKey('eve@example.com'))).to.deep.equal([]);
  });

  test('refuse insert and put with a taken key, name the key, and change nothing', async ({ store }) => {
    const identities = store.collection('identities');
    await identities.insert(anIdentity('auth0|1', 'ada@example.com'));
    await expectTaken(identities.insert(anIdentity('auth0|2', 'ada@example.com')), 'identities', 'email');
    await expectTaken(identities.put(anIdentity('auth0|3', 'ada@example.com')), 'identities', 'email');
    expect(await identities.count()).to.equal(1);
  });

  test('refuse a put with the key of another record and leave the record as it was', async ({ store }) => {
    const identities = store.collection('identities');
    await identities.insert(anIdentity('auth0|1', 'ada@example.com'));
    await identities.insert(anIdentity('auth0|2', 'bob@example.com'));
    await expectTaken(identities.put(anIdentity('auth0|2', 'ada@example.com')), 'identities', 'email');
    expect(await identities.get('auth0|2')).to.include({ email: 'bob@example.com' });
    expect(await identities.findBy('email', emailKey('bob@example.com'))).to.have.length(1);
  });

  test('are named in the error, where a record has several', async ({ store }) => {
    const identities = store.collection('identities');
    await identities.insert(
      anIdentity('auth0|1', 'ada@example.com', { username: 'ada', phone_number: '+1' }),
    );
    const other = (more: object) => anIdentity('auth0|2', 'bob@example.com', more);
    await expectTaken(identities.insert(other({ username: 'ada' })), 'identities', 'username');
    await expectTaken(identities.insert(other({ phone_number: '+1' })), 'identities', 'phone_number');
  });

  test('do not collide for records without the key', async ({ store }) => {
    await store.collection('identities').insert(anIdentity('auth0|1'));
    await store.collection('identities').insert(anIdentity('auth0|2'));
    expect(await store.collection('identities').count()).to.equal(2);
  });

  test('are free after delete, take and deleteBy', async ({ store }) => {
    const identities = store.collection('identities');
    await identities.insert(anIdentity('auth0|1', 'ada@example.com'));
    await identities.delete('auth0|1');
    await identities.insert(anIdentity('auth0|2', 'ada@example.com'));
    await identities.take('auth0|2');
    await identities.insert(anIdentity('auth0|3', 'ada@example.com'));
    await identities.deleteBy('email', emailKey('ada@example.com'));
    await identities.insert(anIdentity('auth0|1', 'ada@example.com'));
    expect(await identities.count()).to.equal(1);
  });

  test('are freed by an update or put that gives them up, and taken by one that adds them', async ({
    store,
  }) => {
    const identities = store.collection('identities');
    await identities.insert(anIdentity('auth0|1', 'ada@example.com'));
    await identities.update('auth0|1', (one) => anIdentity(one.id, 'lovelace@example.com'));
    await identities.insert(anIdentity('auth0|2', 'ada@example.com'));
    await expectTaken(
      identities.insert(anIdentity('auth0|3', 'lovelace@example.com')),
      'identities',
      'email',
    );
    await identities.put(anIdentity('auth0|1'));
    await identities.insert(anIdentity('auth0|3', 'lovelace@example.com'));
    const found = await identities.findBy('email', emailKey('lovelace@example.com'));
    expect(found.map(({ id }) => id)).to.deep.equal(['auth0|3']);
  });

  test('refuse an update with the key of another record, and leave the record and its keys', async ({
    store,
  }) => {
    const identities = store.collection('identities');
    await identities.insert(anIdentity('auth0|1', 'ada@example.com'));
    await identities.insert(anIdentity('auth0|2', 'bob@example.com'));
    const update = identities.update('auth0|2', (one) => ({ ...anIdentity(one.id, 'ada@example.com') }));
    await expectTaken(update, 'identities', 'email');
    expect(await identities.get('auth0|2')).to.include({ email: 'bob@example.com' });
    await expectTaken(identities.insert(anIdentity('auth0|3', 'bob@example.com')), 'identities', 'email');
  });

  test('are compared exactly, with letter case and the parts of a joined key', async ({ store }) => {
    const grants = store.collection('clientGrants');
    await grants.insert({ id: '1', client_id: 'a', audience: 'b/c', scope: [] });
    await grants.insert({ id: '2', client_id: 'a', audience: 'B/c', scope: [] });
    await expectTaken(
      grants.insert({ id: '3', client_id: 'a', audience: 'b/c', scope: [] }),
      'clientGrants',
      'clientAudience',
    );
  });
}

function indexCases(test: Register): void {
  test('return all records of a value in id order, and no others', async ({ store }) => {
    const artifacts = store.collection('artifacts');
    for (const id of ['t:b', 't:a', 't:Z', 't:10', 't:9']) await artifacts.insert(anArtifact(id, 'g1'));
    await artifacts.insert(anArtifact('t:other', 'g2'));
    const ids = (await artifacts.findBy('grantId', 'g1')).map(({ id }) => id);
    expect(ids).to.deep.equal(['t:10', 't:9', 't:Z', 't:a', 't:b']);
  });

  test('find the one record of a unique key', async ({ store }) => {
    await store.collection('identities').insert(anIdentity('auth0|1', 'ada@example.com'));
    const found = await store.collection('identities').findBy('email', emailKey('ada@example.com'));
    expect(found).to.deep.equal([anIdentity('auth0|1', 'ada@example.com')]);
  });

  test('list a record under each of its values', async ({ store }) => {
    const identities = store.collection('identities');
    const identity = anIdentity('auth0|1', 'ada@example.com', { username: 'ada' });
    await identities.insert(identity);
    for (const [kind, address] of [
      ['email', 'ada@example.com'],
      ['username', 'ada'],
    ] as const) {
      const found = await identities.findBy('address', addressKey(connection, kind, address));
      expect(found).to.deep.equal([identity]);
    }
  });

  test('return no record for an unused value, even one that is the name of an object member', async ({
    store,
  }) => {
    for (const value of ['', 'nobody@example.com', '__proto__', 'constructor']) {
      expect(await store.collection('users').findBy('email', value)).to.deep.equal([]);
    }
  });

  test('throw for an index that is not declared', async ({ store }) => {
    expect(await rejection(store.collection('users').findBy('shoe_size', '9'))).to.be.instanceOf(Error);
    expect(await rejection(store.collection('users').deleteBy('shoe_size', '9'))).to.be.instanceOf(Error);
  });

  test('follow update, put and delete', async ({ store }) => {
    const users = store.collection('users');
    const idsOf = async (email: string) => (await users.findBy('email', email)).map(({ id }) => id);
    await users.insert(aUser('auth0|1', 'ada@example.com'));
    await users.insert(aUser('auth0|2', 'ada@example.com'));
    await users.update('auth0|1', ({ id }) => aUser(id, 'new@example.com'));
    expect(await idsOf('ada@example.com')).to.deep.equal(['auth0|2']);
    expect(await idsOf('new@example.com')).to.deep.equal(['auth0|1']);
    await users.put(aUser('auth0|2', 'new@example.com'));
    expect(await idsOf('new@example.com')).to.deep.equal(['auth0|1', 'auth0|2']);
    await users.delete('auth0|1');
    expect(await idsOf('new@example.com')).to.deep.equal(['auth0|2']);
  });

  test('delete by value what findBy returns, and return how many', async ({ store }) => {
    const artifacts = store.collection('artifacts');
    for (const id of ['a', 'b', 'c']) await artifacts.insert(anArtifact(id, 'g1'));
    await artifacts.insert(anArtifact('d', 'g2'));
    expect(await artifacts.deleteBy('grantId', 'g1')).to.equal(3);
    expect(await artifacts.deleteBy('grantId', 'g1')).to.equal(0);
    expect((await artifacts.list()).records.map(({ id }) => id)).to.deep.equal(['d']);
  });

  test('delete by a unique key', async ({ store }) => {
    const identities = store.collection('identities');
    await identities.insert(anIdentity('auth0|1', 'ada@example.com'));
    expect(await identities.deleteBy('email', emailKey('ada@example.com'))).to.equal(1);
    expect(await identities.count()).to.equal(0);
  });
}

function updateCases(test: Register): void {
  test('returns the new record, which is then read', async ({ store }) => {
    const users = store.collection('users');
    await users.insert(aUser('auth0|1'));
    const updated = await users.update('auth0|1', ({ id }) => ({ ...aUser(id), name: 'Ada' }));
    expect(updated).to.deep.equal({ ...aUser('auth0|1'), name: 'Ada' });
    expect(await users.get('auth0|1')).to.deep.equal(updated);
  });

  test('returns undefined for a missing record and does not call the function', async ({ store }) => {
    let called = false;
    const updated = await store.collection('users').update('auth0|none', ({ id }) => {
      called = true;
      return aUser(id);
    });
    expect(updated).to.equal(undefined);
    expect(called).to.equal(false);
    expect(await store.collection('users').count()).to.equal(0);
  });

  test('throws what the function throws, and leaves the record', async ({ store }) => {
    const users = store.collection('users');
    await users.insert(aUser('auth0|1', 'ada@example.com'));
    const fault = new Error('no');
    const update = users.update('auth0|1', () => {
      throw fault;
    });
    expect(await rejection(update)).to.equal(fault);
    expect(await users.get('auth0|1')).to.deep.equal(aUser('auth0|1', 'ada@example.com'));
    await users.update('auth0|1', ({ id }) => ({ ...aUser(id), name: 'still writable' }));
    expect(await users.get('auth0|1')).to.include({ name: 'still writable' });
  });

  test('refuses a different id, and leaves the record', async ({ store }) => {
    const users = store.collection('users');
    await users.insert(aUser('auth0|1'));
    expect(await rejection(users.update('auth0|1', () => aUser('auth0|2')))).to.be.instanceOf(TypeError);
    expect(await users.get('auth0|1')).to.deep.equal(aUser('auth0|1'));
    expect(await users.get('auth0|2')).to.equal(undefined);
  });

  test('keeps all of 100 concurrent changes of one counter', async ({ store }) => {
    const users = store.collection('users');
    await users.insert(aUser('auth0|1'));
    const results = await Promise.all(
      Array.from({ length: 100 }, () =>
        users.update('auth0|1', ({ id, logins_count }) => ({ ...aUser(id), logins_count: logins_count + 1 })),
      ),
    );
    const counts = results.map((user) => user?.logins_count ?? 0).sort((a, b) => a - b);
    expect(counts).to.deep.equal(Array.from({ length: 100 }, (_, i) => i + 1));
    expect(await users.get('auth0|1')).to.include({ logins_count: 100 });
  });

  test('counts correctly in a collection that is kept in memory only', async ({ store, reopen }) => {
    const limits = store.collection('limits');
    await limits.insert({ id: 'ip', tokens: 100, at: 0 });
    const spend = () => limits.update('ip', ({ tokens, ...rest }) => ({ ...rest, tokens: tokens - 1 }));
    await Promise.all(Array.from({ length: 100 }, spend));
    expect(await limits.get('ip')).to.include({ tokens: 0 });
    const again = (await reopen()).collection('limits');
    await again.put({ id: 'ip', tokens: 5, at: 0 });
    expect(await again.take('ip')).to.include({ tokens: 5 });
  });
}

function raceCases(test: Register): void {
  const racers = Array.from({ length: 50 }, (_, n) => n);

  test('give the record to exactly one of 50 concurrent takes', async ({ store }) => {
    const artifacts = store.collection('artifacts');
    await artifacts.insert(anArtifact('code:1', 'g1'));
    const taken = await Promise.all(racers.map(() => artifacts.take('code:1')));
    expect(taken.filter((record) => record !== undefined)).to.deep.equal([anArtifact('code:1', 'g1')]);
  });

  test('let exactly one of concurrent takes and deletes have the record', async ({ store }) => {
    const artifacts = store.collection('artifacts');
    await artifacts.insert(anArtifact('code:1', 'g1'));
    const results = await Promise.all([
      ...racers.map(() => artifacts.delete('code:1')),
      ...racers.map(async () => (await artifacts.take('code:1')) !== undefined),
      artifacts.deleteBy('grantId', 'g1').then((deleted) => deleted === 1),
    ]);
    expect(results.filter(Boolean)).to.have.length(1);
  });

  test('let exactly one of 50 concurrent inserts of one id succeed', async ({ store }) => {
    const users = store.collection('users');
    const results = await Promise.allSettled(
      racers.map((n) => users.insert(aUser('auth0|1', `${n}@a.example`))),
    );
    expect(results.filter(({ status }) => status === 'fulfilled')).to.have.length(1);
    expect(await users.count()).to.equal(1);
  });

  test('let exactly one of 50 concurrent inserts of one unique key succeed, and reject the others with the error', async ({
    store,
  }) => {
    const identities = store.collection('identities');
    const results = await Promise.allSettled(
      racers.map((n) => identities.insert(anIdentity(`auth0|${n}`, 'ada@a.example'))),
    );
    const refused = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []));
    expect(refused).to.have.length(49);
    for (const error of refused) expect(error).to.be.instanceOf(UniqueKeyError);
    expect(await identities.findBy('email', emailKey('ada@a.example'))).to.have.length(1);
  });
}

function listCases(test: Register): void {
  const ids = ['10', '9', 'A', 'B|1', 'Z', 'a', 'a|1', 'b', 'é', '中'];

  test('return pages in id order (by character code), with each record once', async ({ store }) => {
    const users = store.collection('users');
    for (const id of [...ids].reverse()) await users.insert(aUser(id));
    const seen: string[] = [];
    let after: string | undefined;
    do {
      const page: Page<UserRecord> = await users.list({
        limit: 3,
        ...(after === undefined ? {} : { after }),
      });
      expect(page.records.length).to.be.within(1, 3);
      seen.push(...page.records.map(({ id }) => id));
      after = page.next;
    } while (after !== undefined);
    expect(seen).to.deep.equal(ids);
  });

  test('return no next for a page that ends with the last record', async ({ store }) => {
    const users = store.collection('users');
    for (const id of ['a', 'b', 'c', 'd']) await users.insert(aUser(id));
    const first = await users.list({ limit: 2 });
    expect(first.next).to.equal('b');
    const second = await users.list({ limit: 2, after: 'b' });
    expect(second.records.map(({ id }) => id)).to.deep.equal(['c', 'd']);
    expect(second).not.to.have.property('next');
    expect(await users.list({ limit: 2, after: 'd' })).to.deep.equal({ records: [] });
  });

  test('continue after an id that no longer exists', async ({ store }) => {
    const users = store.collection('users');
    for (const id of ['a', 'b', 'c']) await users.insert(aUser(id));
    await users.delete('b');
    expect((await users.list({ after: 'b' })).records.map(({ id }) => id)).to.deep.equal(['c']);
  });

  test('return 50 records by default, and thousands in order', async ({ store }) => {
    const logs = store.collection('logs');
    const numbers = Array.from({ length: 3000 }, (_, n) => (n * 1753) % 3000);
    const idOf = (n: number) => `log${String(n).padStart(5, '0')}`;
    // In groups: an overloaded database refuses requests that wait too long.
    const some = async (all: number[], work: (n: number) => Promise<unknown>) => {
      for (let at = 0; at < all.length; at += 200) await Promise.all(all.slice(at, at + 200).map(work));
    };
    await some(numbers, (n) => logs.insert({ id: idOf(n), type: 's', date: '2026-11-01' }));
    expect((await logs.list()).records).to.have.length(50);
    const all = await logs.list({ limit: 3000 });
    expect(all.records.map(({ id }) => id)).to.deep.equal(numbers.map((_, n) => idOf(n)));
    expect(all).not.to.have.property('next');
    await some(
      numbers.filter((n) => n % 3 !== 0),
      (n) => logs.delete(idOf(n)),
    );
    const rest = (await logs.list({ limit: 3000 })).records.map(({ id }) => id);
    expect(rest).to.deep.equal(Array.from({ length: 1000 }, (_, n) => idOf(n * 3)));
  });

  test('return an empty page for an empty collection', async ({ store }) => {
    expect(await store.collection('users').list()).to.deep.equal({ records: [] });
    expect(await store.collection('users').count()).to.equal(0);
  });

  test('count inserted and deleted records', async ({ store }) => {
    const users = store.collection('users');
    for (const id of ['a', 'b', 'c']) await users.insert(aUser(id));
    await users.delete('b');
    expect(await users.count()).to.equal(2);
  });
}

function expiryCases(test: Register): void {
  const expiresAt = startSeconds + 60;

  test('keeps a record until the second it expires', async ({ store }, time) => {
    const artifacts = store.collection('artifacts');
    await artifacts.insert(anArtifact('t:1', 'g1', expiresAt));
    time.now = expiresAt * 1000 - 1;
    expect(await artifacts.get('t:1')).to.deep.equal(anArtifact('t:1', 'g1', expiresAt));
    time.now = expiresAt * 1000;
    expect(await artifacts.get('t:1')).to.equal(undefined);
  });

  test('hides an expired record from every method', async ({ store }, time) => {
    const artifacts = store.collection('artifacts');
    await artifacts.insert(anArtifact('t:1', 'g1', expiresAt));
    await artifacts.insert(anArtifact('t:2', 'g1'));
    time.now = expiresAt * 1000;
    expect((await artifacts.findBy('grantId', 'g1')).map(({ id }) => id)).to.deep.equal(['t:2']);
    expect((await artifacts.list()).records.map(({ id }) => id)).to.deep.equal(['t:2']);
    expect(await artifacts.list({ limit: 1 })).not.to.have.property('next');
    expect(await artifacts.count()).to.equal(1);
    expect(await artifacts.update('t:1', ({ id }) => anArtifact(id, 'g2'))).to.equal(undefined);
    expect(await artifacts.take('t:1')).to.equal(undefined);
    expect(await artifacts.delete('t:1')).to.equal(false);
    expect(await artifacts.deleteBy('grantId', 'g1')).to.equal(1);
  });

  test('hides an expired record of a collection that is kept in memory only', async ({ store }, time) => {
    const limits = store.collection('limits');
    await limits.insert({ id: 'ip', tokens: 1, at: 0, expiresAt });
    time.now = expiresAt * 1000;
    expect(await limits.get('ip')).to.equal(undefined);
    expect(await limits.count()).to.equal(0);
    await limits.insert({ id: 'ip', tokens: 2, at: 0 });
    expect(await limits.get('ip')).to.include({ tokens: 2 });
  });

  test('frees the id of an expired record', async ({ store }, time) => {
    const artifacts = store.collection('artifacts');
    await artifacts.insert(anArtifact('t:1', 'g1', expiresAt));
    time.now = expiresAt * 1000;
    await artifacts.insert(anArtifact('t:1', 'g2'));
    expect(await artifacts.findBy('grantId', 'g1')).to.deep.equal([]);
    expect(await artifacts.findBy('grantId', 'g2')).to.have.length(1);
  });

  test('frees the unique keys of an expired record for insert, put and update', async (opened, time) => {
    const identities = opened.store.collection('identities');
    for (const name of ['a', 'b', 'c']) {
      await identities.insert({ ...anIdentity(`old|${name}`, `${name}@a.example`), expiresAt });
    }
    await identities.insert(anIdentity('new|c'));
    time.now = expiresAt * 1000;
    await identities.insert(anIdentity('new|a', 'a@a.example'));
    await identities.put(anIdentity('new|b', 'b@a.example'));
    await identities.update('new|c', ({ id }) => anIdentity(id, 'c@a.example'));
    const again = (await opened.reopen()).collection('identities');
    for (const name of ['a', 'b', 'c']) {
      const found = await again.findBy('email', emailKey(`${name}@a.example`));
      expect(found.map(({ id }) => id)).to.deep.equal([`new|${name}`]);
    }
    expect(await again.count()).to.equal(3);
  });

  test('is moved or removed by update and put', async ({ store }, time) => {
    const artifacts = store.collection('artifacts');
    for (const id of ['later', 'never', 'sooner']) await artifacts.insert(anArtifact(id, 'g1', expiresAt));
    await artifacts.update('later', ({ id }) => anArtifact(id, 'g1', expiresAt + 3600));
    await artifacts.put(anArtifact('never', 'g1'));
    await artifacts.put(anArtifact('sooner', 'g1', startSeconds + 1));
    time.now = (startSeconds + 1) * 1000;
    expect(await artifacts.count()).to.equal(2);
    time.now = expiresAt * 1000;
    expect((await artifacts.list()).records.map(({ id }) => id)).to.deep.equal(['later', 'never']);
    time.now = (expiresAt + 3600) * 1000;
    expect((await artifacts.list()).records.map(({ id }) => id)).to.deep.equal(['never']);
    expect(await artifacts.count()).to.equal(1);
  });

  test('survives reopening the store, before and after it is due', async (opened, time) => {
    await opened.store.collection('artifacts').insert(anArtifact('t:1', 'g1', expiresAt));
    await opened.store.collection('artifacts').insert(anArtifact('t:2', 'g1', expiresAt + 3600));
    const second = await opened.reopen();
    expect(await second.collection('artifacts').count()).to.equal(2);
    time.now = expiresAt * 1000;
    expect(await second.collection('artifacts').get('t:1')).to.equal(undefined);
    const third = await opened.reopen();
    expect((await third.collection('artifacts').list()).records.map(({ id }) => id)).to.deep.equal(['t:2']);
  });
}

function ownershipCases(test: Register): void {
  test('are not affected by changes to an object after it was stored', async ({ store }) => {
    const users = store.collection('users');
    const inserted = { ...aUser('auth0|1', 'ada@example.com'), user_metadata: { tags: ['a'] } };
    const inserting = users.insert(inserted);
    inserted.user_metadata.tags.push('b');
    inserted.email = 'eve@example.com';
    await inserting;
    const read = await users.get('auth0|1');
    expect(read).to.deep.include({ email: 'ada@example.com', user_metadata: { tags: ['a'] } });
  });

  test('are not affected by changes to the object that an update returned', async ({ store }) => {
    const users = store.collection('users');
    await users.insert(aUser('auth0|1'));
    const made = { ...aUser('auth0|1'), user_metadata: { tags: ['a'] } };
    await users.update('auth0|1', () => made);
    made.user_metadata.tags.push('b');
    expect((await users.get('auth0|1'))?.user_metadata).to.deep.equal({ tags: ['a'] });
  });

  test('are not affected by changes to a record that was read', async ({ store }) => {
    const users = store.collection('users');
    await users.insert({ ...aUser('auth0|1', 'ada@example.com'), user_metadata: { tags: ['a'] } });
    const spoil = (user: unknown) => {
      const record = user as { email: string; user_metadata: { tags: string[] } };
      // An engine may return frozen records or copies.
      for (const change of [
        () => record.user_metadata.tags.push('b'),
        () => (record.email = 'eve@a.example'),
      ]) {
        try {
          change();
        } catch (error) {
          expect(error).to.be.instanceOf(TypeError);
        }
      }
    };
    spoil(await users.get('auth0|1'));
    spoil((await users.findBy('email', 'ada@example.com'))[0]);
    spoil((await users.list()).records[0]);
    await rejection(
      users.update('auth0|1', (user) => {
        spoil(user);
        throw new Error('no');
      }),
    );
    const read = await users.get('auth0|1');
    expect(read).to.deep.include({ email: 'ada@example.com', user_metadata: { tags: ['a'] } });
  });

  test('have no properties that are undefined', async ({ store }) => {
    const users = store.collection('users');
    await users.insert({ ...aUser('auth0|1'), user_metadata: { gone: undefined, there: null } });
    expect((await users.get('auth0|1'))?.user_metadata).to.have.all.keys('there');
  });
}

function reopenCases(test: Register): void {
  test('keeps everything that was written, with its keys and indexes', async (opened) => {
    const identities = opened.store.collection('identities');
    await identities.insert(anIdentity('auth0|1', 'ada@example.com'));
    await identities.insert(anIdentity('auth0|2', 'bob@example.com'));
    await identities.insert(anIdentity('auth0|3', 'eve@example.com'));
    await identities.update('auth0|2', ({ id }) => ({
      ...anIdentity(id, 'bob@example.com'),
      provider: 'Bob',
    }));
    await identities.delete('auth0|3');
    const again = (await opened.reopen()).collection('identities');
    expect((await again.list()).records).to.deep.equal([
      anIdentity('auth0|1', 'ada@example.com'),
      { ...anIdentity('auth0|2', 'bob@example.com'), provider: 'Bob' },
    ]);
    expect(await again.findBy('email', emailKey('bob@example.com'))).to.have.length(1);
    await expectTaken(again.insert(anIdentity('auth0|4', 'ada@example.com')), 'identities', 'email');
    await again.insert(anIdentity('auth0|4', 'eve@example.com'));
  });

  test('keeps changes over several openings', async (opened) => {
    let store = opened.store;
    for (let n = 0; n < 4; n++) {
      await store.collection('users').insert(aUser(`auth0|${n}`, `${n}@a.example`));
      if (n > 0) expect(await store.collection('users').delete(`auth0|${n - 1}`)).to.equal(true);
      store = await opened.reopen();
    }
    expect((await store.collection('users').list()).records).to.deep.equal([aUser('auth0|3', '3@a.example')]);
  });

  test('waits for pending writes', async (opened) => {
    const users = opened.store.collection('users');
    const writes = Array.from({ length: 20 }, (_, n) => users.insert(aUser(`auth0|${n}`)));
    const again = await opened.reopen();
    await Promise.all(writes);
    expect(await again.collection('users').count()).to.equal(20);
  });

  test('is ready while the store is open; a closed store is not, and refuses reads and writes', async ({
    store,
  }) => {
    await store.ready();
    const users = store.collection('users');
    await store.close();
    await store.close();
    for (const refused of [
      store.ready(),
      users.get('a'),
      users.findBy('email', 'a'),
      users.list(),
      users.count(),
      users.insert(aUser('a')),
      users.put(aUser('a')),
      users.update('a', ({ id }) => aUser(id)),
      users.take('a'),
      users.delete('a'),
      users.deleteBy('email', 'a'),
    ]) {
      expect(await rejection(refused)).to.be.instanceOf(Error);
    }
  });
}
