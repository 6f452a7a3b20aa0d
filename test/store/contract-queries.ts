// The tests of upsert, batches and queries in the contract: see storeContract.
import { expect } from 'chai';
import type { IdentityRecord } from '../../src/records/connections/identities.ts';
import type { UserRecord } from '../../src/records/users/users.ts';
import { type Filter, type Query, type Store, UniqueKeyError } from '../../src/store/contract.ts';
import { anIdentity, aUser, emailKey, type Register, rejection } from './contract.ts';

export function upsertCases(test: Register): void {
  test('adds the record made from undefined, and changes an existing one', async ({ store }) => {
    const users = store.collection('users');
    const count = () =>
      users.upsert('auth0|1', (user) => ({
        ...(user ?? aUser('auth0|1')),
        logins_count: (user?.logins_count ?? 0) + 1,
      }));
    expect(await count()).to.deep.equal({ ...aUser('auth0|1'), logins_count: 1 });
    await Promise.all(Array.from({ length: 20 }, count));
    expect(await users.get('auth0|1')).to.include({ logins_count: 21 });
  });

  test('keeps all 50 concurrent upserts of a record that does not exist yet', async ({ store }) => {
    for (const name of ['limits', 'logs'] as const) {
      const made = await Promise.all(
        Array.from({ length: 50 }, () =>
          name === 'limits'
            ? store
                .collection('limits')
                .upsert('a', (one) => ({ id: 'a', at: 0, tokens: (one?.tokens ?? 0) + 1 }))
            : store
                .collection('logs')
                .upsert('a', (one) => ({ id: 'a', type: `${one?.type ?? ''}x`, date: '' })),
        ),
      );
      expect(new Set(made.map((one) => JSON.stringify(one))).size).to.equal(50);
    }
    expect(await store.collection('limits').get('a')).to.include({ tokens: 50 });
    expect((await store.collection('logs').get('a'))?.type).to.have.length(50);
  });

  test("refuses a different id and another record's unique key, and changes nothing", async ({ store }) => {
    const identities = store.collection('identities');
    await identities.insert(anIdentity('1', 'ada@a.example'));
    expect(await rejection(identities.upsert('2', () => anIdentity('3')))).to.be.instanceOf(TypeError);
    const taken = identities.upsert('2', () => anIdentity('2', 'ada@a.example'));
    expect(await rejection(taken)).to.be.instanceOf(UniqueKeyError);
    expect(await identities.count()).to.equal(1);
  });

  test('adds a new record where the old one has expired', async ({ store }, time) => {
    const artifacts = store.collection('artifacts');
    await artifacts.insert({ id: 'a', model: 'old', payload: {}, expiresAt: time.now / 1000 + 1 });
    time.now += 1000;
    await artifacts.upsert('a', (one) => ({
      id: 'a',
      model: one === undefined ? 'new' : 'kept',
      payload: {},
    }));
    expect(await artifacts.get('a')).to.deep.equal({ id: 'a', model: 'new', payload: {} });
  });
}

export function batchCases(test: Register): void {
  const credential = (id: string) => ({ id, passwordHash: 'hash', history: [] });

  test('makes all its writes in order, in several collections', async ({ store, reopen }) => {
    await store.collection('identities').insert(anIdentity('old', 'ada@a.example'));
    await store.batch([
      { collection: 'identities', delete: 'old' },
      { collection: 'identities', insert: anIdentity('new', 'ada@a.example') },
      { collection: 'credentials', put: credential('new') },
      { collection: 'identities', delete: 'none' },
    ]);
    const again = await reopen();
    expect((await again.collection('identities').list()).records).to.deep.equal([
      anIdentity('new', 'ada@a.example'),
    ]);
    expect(await again.collection('credentials').get('new')).to.deep.equal(credential('new'));
  });

  test('makes none of its writes when one is refused', async ({ store }) => {
    const identities = store.collection('identities');
    await identities.insert(anIdentity('1', 'ada@a.example'));
    const batch = store.batch([
      { collection: 'credentials', insert: credential('2') },
      { collection: 'identities', put: anIdentity('1', 'free@a.example') },
      { collection: 'identities', insert: anIdentity('2', 'bob@a.example') },
      { collection: 'identities', insert: anIdentity('3', 'bob@a.example') },
    ]);
    expect(await rejection(batch)).to.be.instanceOf(UniqueKeyError);
    expect((await identities.list()).records).to.deep.equal([anIdentity('1', 'ada@a.example')]);
    expect(await store.collection('credentials').count()).to.equal(0);
    await identities.insert(anIdentity('4', 'bob@a.example'));
    await identities.insert(anIdentity('5', 'free@a.example'));
  });

  test('keeps pending writes of others when one of its own is refused', async ({ store }) => {
    const identities = store.collection('identities');
    const first = identities.insert(anIdentity('1', 'ada@a.example'));
    const batch = store.batch([
      { collection: 'identities', put: anIdentity('1', 'eve@a.example') },
      { collection: 'identities', insert: anIdentity('1') },
    ]);
    expect(await rejection(batch)).to.be.instanceOf(UniqueKeyError);
    await first;
    expect(await identities.get('1')).to.include({ email: 'ada@a.example' });
    expect(await identities.findBy('email', emailKey('eve@a.example'))).to.deep.equal([]);
  });

  test('adds many records with any characters, and finds each by its keys', async ({ store, reopen }) => {
    const odd = [
      'plain',
      '"a\\"',
      '{b},\\\\',
      'c\nd',
      'NULL',
      '\0e',
      'f\u0001',
      'g\ud800',
      '\u{1f600}',
      'h'.repeat(3000),
    ];
    const identity = (text: string, n: number) =>
      anIdentity(`id ${text}`, `${n}@a.example`, { username: text });
    const user = (text: string, n: number) => aUser(`id ${text}`, n % 2 === 0 ? `${n}@a.example` : undefined);
    await store.batch([
      ...odd.map((text, n) => ({ collection: 'users' as const, insert: user(text, n) })),
      ...odd.map((text, n) => ({ collection: 'identities' as const, insert: identity(text, n) })),
      ...odd.map((text) => ({ collection: 'credentials' as const, put: credential(text) })),
    ]);
    const again = await reopen();
    for (const [n, text] of odd.entries()) {
      expect(await again.collection('users').get(`id ${text}`)).to.deep.equal(user(text, n));
      const found = await again.collection('identities').findBy('user', `user of id ${text}`);
      expect(found).to.deep.equal([identity(text, n)]);
      expect(await again.collection('identities').findBy('email', emailKey(`${n}@a.example`))).to.deep.equal(
        found,
      );
      expect(await again.collection('credentials').get(text)).to.deep.equal(credential(text));
    }
    const { records } = await again.collection('users').list({ sort: { field: 'email' } });
    expect(records.map(({ email }) => email)).to.deep.equal(
      ['0', '2', '4', '6', '8'].map((n) => `${n}@a.example`).concat(Array(5).fill(undefined)),
    );
  });

  test('adds many records in place of expired ones that have their ids or keys', async ({ store }, time) => {
    const identities = store.collection('identities');
    const expiresAt = time.now / 1000 + 60;
    await identities.insert({ ...anIdentity('old', 'a@a.example'), expiresAt });
    await identities.insert({ ...anIdentity('b', 'before@a.example'), expiresAt });
    await store
      .collection('credentials')
      .insert({ ...credential('b'), history: ['before'], expiresAt } as never);
    const news = ['a', 'b', 'c', 'd'];
    const adding = () =>
      store.batch([
        ...news.map((id) => ({
          collection: 'identities' as const,
          insert: anIdentity(id, `${id}@a.example`),
        })),
        ...news.map((id) => ({ collection: 'credentials' as const, insert: credential(id) })),
      ]);
    expect(await rejection(adding())).to.be.instanceOf(UniqueKeyError);
    expect(await identities.count()).to.equal(2);
    time.now = expiresAt * 1000;
    await adding();
    expect((await identities.list()).records.map(({ id }) => id)).to.deep.equal(news);
    expect(await store.collection('credentials').get('b')).to.deep.equal(credential('b'));
    expect(await identities.findBy('email', emailKey('before@a.example'))).to.deep.equal([]);
    expect(await identities.findBy('email', emailKey('a@a.example'))).to.have.length(1);
  });

  test('adds none of many records if one has the id or a key of another, and names it', async ({ store }) => {
    const identities = store.collection('identities');
    await identities.insert(anIdentity('taken', 'taken@a.example'));
    await store.collection('credentials').insert(credential('taken'));
    const adding = (...more: IdentityRecord[]) =>
      store.batch([
        ...[anIdentity('1', '1@a.example'), ...more, anIdentity('2', '2@a.example')].map((one) => ({
          collection: 'identities' as const,
          insert: one,
        })),
        { collection: 'credentials', put: credential('1') },
        { collection: 'credentials', put: credential('taken') },
      ]);
    for (const [refused, key] of [
      [anIdentity('3', 'taken@a.example'), 'email'],
      [anIdentity('3', '1@a.example'), 'email'],
      [anIdentity('3', '2@a.example'), 'email'],
      [anIdentity('taken', 'free@a.example'), 'id'],
      [anIdentity('1', 'free@a.example'), 'id'],
    ] as const) {
      const error = await rejection(adding(refused));
      expect(error).to.be.instanceOf(UniqueKeyError);
      expect(error).to.include({ collection: 'identities', key });
      expect(await identities.count()).to.equal(1);
      expect(await store.collection('credentials').count()).to.equal(1);
    }
    await adding();
    expect(await identities.count()).to.equal(3);
  });

  test('refuses collections of the configuration', async ({ store }) => {
    const batch = store.batch([{ collection: 'clients', delete: 'app' }]);
    expect(await rejection(batch)).to.be.instanceOf(TypeError);
  });

  test('changes records as they are when the batch is made, and adds none', async ({ store }) => {
    const identities = store.collection('identities');
    await identities.insert(anIdentity('1', 'ada@a.example'));
    const named = (provider: string) => ({
      collection: 'identities' as const,
      update: '1',
      change: (one: IdentityRecord) => ({ ...one, provider: `${one.provider} ${provider}` }),
    });
    await store.batch([named('a'), named('b'), { ...named('c'), update: 'none' }]);
    expect(await identities.get('1')).to.include({ provider: 'auth0 a b' });
    expect(await identities.count()).to.equal(1);
    const refused = store.batch([named('c'), { collection: 'identities', insert: anIdentity('1') }]);
    expect(await rejection(refused)).to.be.instanceOf(UniqueKeyError);
    expect(await identities.get('1')).to.include({ provider: 'auth0 a b' });
  });
}

/** The same records as client grants (in a file, by audience) and as log events (in the database, by connection). */
const rows: [id: string, client_id?: string, audience?: string][] = [
  ['1', 'b', 'https://api/%'],
  ['2', 'a', 'https://api/_x'],
  ['3', 'B', 'https://apix'],
  ['4', 'é', '日本'],
  ['5', 'a'],
];

export function queryCases(test: Register): void {
  const kinds: ['clientGrants' | 'logs', (store: Store) => Promise<unknown>][] = [
    [
      'clientGrants',
      (store) =>
        Promise.all(
          rows.map(([id, client_id, audience]) =>
            store.collection('clientGrants').insert({ id, client_id, audience, scope: [] } as never),
          ),
        ),
    ],
    [
      'logs',
      (store) =>
        Promise.all(
          rows.map(([id, client_id, connection]) =>
            store.collection('logs').insert({ id, type: 's', date: '2026', client_id, connection } as never),
          ),
        ),
    ],
  ];
  for (const [name, fill] of kinds) {
    const second = name === 'logs' ? 'connection' : 'audience';
    const ids = async (store: Store, query: Query) =>
      (await store.collection(name as 'logs').list(query)).records.map(({ id }) => id);

    test(`filters ${name}`, async ({ store }) => {
      await fill(store);
      const client = 'client_id';
      const expected: [Filter, string[]][] = [
        [{ field: client, equals: 'a' }, ['2', '5']],
        [{ field: client, in: ['b', 'B', 'none'] }, ['1', '3']],
        [{ field: client, in: [] }, []],
        [{ field: second, prefix: 'https://api/' }, ['1', '2']],
        [{ field: second, prefix: 'https://api/%' }, ['1']],
        [{ field: second, prefix: '日' }, ['4']],
        [{ field: second, contains: '/_' }, ['2']],
        [{ field: second, contains: '本' }, ['4']],
        [{ field: second, contains: 'API' }, []],
        [{ field: second, suffix: 'x' }, ['2', '3']],
        [{ field: second, suffix: '%' }, ['1']],
        [{ field: client, suffix: 'ab' }, []],
        [{ field: client, from: 'a', to: 'b' }, ['1', '2', '5']],
        [{ field: client, from: 'b' }, ['1', '4']],
        [{ field: second, exists: false }, ['5']],
        [{ field: client, equals: 1 }, []],
        [{ not: { field: second, equals: 'https://apix' } }, ['1', '2', '4', '5']],
        [{ not: { field: second, exists: false } }, ['1', '2', '3', '4']],
        [{ all: [] }, ['1', '2', '3', '4', '5']],
        [{ any: [] }, []],
        [
          {
            all: [
              { field: client, equals: 'a' },
              { field: second, exists: true },
            ],
          },
          ['2'],
        ],
        [
          {
            any: [
              { field: 'id', equals: '3' },
              { field: client, equals: 'é' },
            ],
          },
          ['3', '4'],
        ],
        [{ field: 'id', from: '2', to: '3' }, ['2', '3']],
      ];
      for (const [where, found] of expected) {
        expect(await ids(store, { where }), JSON.stringify(where)).to.deep.equal(found);
      }
    });

    test(`sorts ${name} with records without the field last, and pages them`, async ({ store }) => {
      await fill(store);
      expect(await ids(store, { sort: { field: 'client_id' } })).to.deep.equal(['3', '2', '5', '1', '4']);
      const descending = { field: second, descending: true };
      expect(await ids(store, { sort: descending })).to.deep.equal(['4', '3', '2', '1', '5']);
      const page = await store
        .collection(name as 'logs')
        .list({ sort: { field: 'client_id' }, page: 1, limit: 2, total: true });
      expect(page.records.map(({ id }) => id)).to.deep.equal(['5', '1']);
      expect(page).to.include({ total: 5 }).and.not.have.property('next');
      const where: Filter = { field: 'client_id', from: 'a' };
      const first = await store.collection(name as 'logs').list({ where, limit: 2, total: true });
      expect(first).to.include({ next: '2', total: 4 });
      expect(await ids(store, { where, after: '2' })).to.deep.equal(['4', '5']);
    });

    test(`refuses fields of ${name} that are not declared`, async ({ store }) => {
      for (const query of [
        { where: { field: 'secret', equals: 'x' } },
        { where: { not: { all: [{ field: '__proto__', exists: true }] } } },
        { sort: { field: "id'; DROP TABLE logs; --" } },
        { sort: { field: 'client_id' }, after: '1' },
        { order: 'any', sort: { field: 'client_id' } },
        { order: 'any', after: '1' },
        { limit: -1 },
        { page: 0.5 },
      ]) {
        expect(await rejection(store.collection(name as 'logs').list(query as Query))).to.be.instanceOf(
          Error,
        );
      }
    });
  }

  test('includes every write that has resolved, and no expired record', async ({ store }, time) => {
    const users = store.collection('users');
    const expiresAt = time.now / 1000 + 1;
    await users.insert({ ...aUser('1'), logins_count: 3, blocked: true, expiresAt });
    await users.insert({ ...aUser('2'), logins_count: 20, blocked: false });
    void users.insert({ ...aUser('3'), logins_count: 100 });
    const query: Query = {
      where: { field: 'logins_count', from: 4 },
      sort: { field: 'logins_count', descending: true },
    };
    expect((await users.list(query)).records.map(({ id }) => id)).to.deep.equal(['3', '2']);
    expect((await users.list({ where: { field: 'blocked', equals: true } })).records).to.have.length(1);
    time.now += 1000;
    expect(await users.list({ where: { field: 'blocked', equals: true }, total: true })).to.deep.equal({
      records: [],
      total: 0,
    });
  });
}

const people: [id: string, fields: Partial<UserRecord>][] = [
  ['1', { name: 'Ada', logins_count: 3, user_metadata: { city: 'Zürich', tags: ['a', 'b'], age: 40 } }],
  ['2', { name: 'Adam', logins_count: 10, user_metadata: { city: 'Bern', age: '40', vip: true } }],
  ['3', { name: 'Zoë', app_metadata: { roles: [{ name: 'admin', scopes: ['x', 'y'] }, { name: 'user' }] } }],
  ['4', { user_metadata: { city: null, "it's": 'quoted', address: { zip: '8000' }, vip: false } }],
];

/** The searches for users that the Management API makes. */
export function searchCases(test: Register): void {
  const filled = (store: Store) =>
    Promise.all(people.map(([id, fields]) => store.collection('users').insert({ ...aUser(id), ...fields })));
  const ids = async (store: Store, query: Query) =>
    (await store.collection('users').list(query)).records.map(({ id }) => id);

  test('filters users by members at any depth and by elements of arrays', async ({ store }) => {
    await filled(store);
    const expected: [Filter, string[]][] = [
      [{ field: 'user_metadata.city', equals: 'Bern' }, ['2']],
      [{ field: 'user_metadata.city', prefix: 'Z' }, ['1']],
      [{ field: 'user_metadata.city', exists: true }, ['1', '2']],
      [{ field: 'user_metadata.city', exists: false }, ['3', '4']],
      [{ field: 'user_metadata.city', in: ['Bern', 'Zürich', 7] }, ['1', '2']],
      [{ field: 'user_metadata.city', in: [] }, []],
      [{ field: 'user_metadata.tags', equals: 'b' }, ['1']],
      [{ field: 'user_metadata.city', contains: 'ric' }, ['1']],
      [{ field: 'user_metadata.city', suffix: 'n' }, ['2']],
      [{ field: 'user_metadata.age', contains: '4' }, ['2']],
      [{ field: 'user_metadata.age', equals: 40 }, ['1']],
      [{ field: 'user_metadata.age', equals: '40' }, ['2']],
      [{ field: 'user_metadata.age', from: 30, to: 40 }, ['1']],
      [{ field: 'user_metadata.age', from: 41 }, []],
      [{ field: 'user_metadata.vip', equals: true }, ['2']],
      [{ field: 'user_metadata.vip', equals: 1 }, []],
      [{ field: 'user_metadata.vip', in: [false] }, ['4']],
      [{ not: { field: 'user_metadata.vip', equals: true } }, ['1', '3', '4']],
      [{ field: "user_metadata.it's", equals: 'quoted' }, ['4']],
      [{ field: 'user_metadata.address', exists: true }, ['4']],
      [{ field: 'user_metadata.address', equals: 'x' }, []],
      [{ field: 'user_metadata.address.zip', equals: '8000' }, ['4']],
      [{ field: 'app_metadata.roles.name', equals: 'user' }, ['3']],
      [{ field: 'app_metadata.roles.scopes', equals: 'y' }, ['3']],
      [{ field: 'app_metadata.roles.scopes.none', exists: true }, []],
      [
        {
          any: [
            { all: [{ field: 'name', prefix: 'Ada' }, { not: { field: 'name', equals: 'Ada' } }] },
            { field: 'app_metadata.roles.name', equals: 'admin' },
          ],
        },
        ['2', '3'],
      ],
    ];
    for (const [where, found] of expected) {
      expect(await ids(store, { where }), JSON.stringify(where)).to.deep.equal(found);
    }
  });

  test('filters users by the values of an index: equal, by prefix, and by what follows the prefix', async ({
    store,
  }) => {
    await filled(store);
    const expected: [Filter, string[]][] = [
      [{ index: 'search', equals: 'name\nada' }, ['1']],
      [{ index: 'search', equals: 'name\nAda' }, []],
      [{ index: 'search', equals: 'app_metadata.roles.scopes\nsy' }, ['3']],
      [{ index: 'search', prefix: 'name\n' }, ['1', '2', '3']],
      [{ index: 'search', prefix: 'name\nad' }, ['1', '2']],
      [{ index: 'search', prefix: 'name\n', contains: 'da' }, ['1', '2']],
      [{ index: 'search', prefix: 'name\n', contains: 'name' }, []],
      [{ index: 'search', prefix: 'name\n', suffix: 'oë' }, ['3']],
      [{ index: 'search', prefix: 'name\nad', suffix: 'dam' }, []],
      [{ not: { index: 'search', equals: 'name\nada' } }, ['2', '3', '4']],
      [
        {
          all: [
            { field: 'logins_count', from: 4 },
            { index: 'search', equals: 'user_metadata.city\nsBern' },
          ],
        },
        ['2'],
      ],
      [
        {
          any: [
            { index: 'search', equals: 'user_metadata.vip\nbtrue' },
            { index: 'search', equals: 'user_metadata.age\nn40' },
          ],
        },
        ['1', '2'],
      ],
    ];
    for (const [where, found] of expected) {
      expect(await ids(store, { where }), JSON.stringify(where)).to.deep.equal(found);
      const { total } = await store.collection('users').list({ where, total: true });
      expect(total, JSON.stringify(where)).to.equal(found.length);
    }
    const where: Filter = { index: 'search', prefix: 'name\n' };
    expect(await ids(store, { where, sort: { field: 'name', descending: true }, limit: 2 })).to.deep.equal([
      '3',
      '2',
    ]);
    await store.collection('users').delete('1');
    expect(await ids(store, { where: { index: 'search', equals: 'name\nada' } })).to.deep.equal([]);
  });

  test('returns each match once over all pages in any order, with and without an index for the filter', async ({
    store,
  }, time) => {
    await filled(store);
    const expiresAt = time.now / 1000 + 1;
    const users = store.collection('users');
    await users.insert({ ...aUser('5'), name: 'Adelheid', email: 'ade@a.example', expiresAt });
    time.now += 1000;
    for (const one of ['6', '7', '8']) {
      await users.insert({ ...aUser(one), name: `Ad ${one}`, email: `ad${one}@a.example`, nickname: 'Add' });
    }
    const begins = (field: string, text: string): Filter => ({
      index: 'search',
      prefix: `${field}\n${text}`,
      isSingle: true,
    });
    const ad: Filter = { any: ['email', 'name', 'nickname'].map((field) => begins(field, 'ad')) };
    const expected: [Filter, string[]][] = [
      [ad, ['1', '2', '6', '7', '8']],
      [{ any: [ad, { field: 'id', equals: '3' }] }, ['1', '2', '3', '6', '7', '8']],
      [{ any: [begins('name', 'adam'), { all: [ad, begins('nickname', 'a')] }] }, ['2', '6', '7', '8']],
      [{ all: [{ field: 'id', from: '2' }, ad, { not: begins('name', 'ad 7') }] }, ['2', '6', '8']],
      [{ all: [{ field: 'nickname', equals: 'Add' }, ad] }, ['6', '7', '8']],
      // No index covers all alternatives of this filter.
      [{ any: [begins('name', 'ad 6'), { field: 'nickname', equals: 'Add' }] }, ['6', '7', '8']],
      [begins('name', 'x'), []],
    ];
    for (const [where, found] of expected) {
      for (const limit of [1, 2, 4]) {
        const told: string[] = [];
        for (let page = 0; page <= found.length / limit; page++) {
          told.push(...(await ids(store, { where, order: 'any', page, limit })));
        }
        expect(told.toSorted(), `${JSON.stringify(where)} by ${limit}`).to.deep.equal(found);
      }
      const { total, next } = await users.list({ where, order: 'any', limit: 1, total: true });
      expect({ total, next }).to.deep.equal({ total: found.length, next: undefined });
    }
  });

  test('sorts users in both directions with users without the field last, and counts up to a maximum', async ({
    store,
  }) => {
    await filled(store);
    expect(await ids(store, { sort: { field: 'name' } })).to.deep.equal(['1', '2', '3', '4']);
    expect(await ids(store, { sort: { field: 'name', descending: true } })).to.deep.equal([
      '3',
      '2',
      '1',
      '4',
    ]);
    const page = { sort: { field: 'name', descending: true }, page: 1, limit: 2 };
    expect(await ids(store, page)).to.deep.equal(['1', '4']);
    const total = async (most: number | true) =>
      (await store.collection('users').list({ where: { field: 'id', from: '1' }, limit: 1, total: most }))
        .total;
    expect(await total(true)).to.equal(4);
    expect(await total(1000)).to.equal(4);
    expect(await total(3)).to.equal(3);
  });

  test('refuses to sort by fields with several values, and names that are not declared', async ({
    store,
  }) => {
    for (const query of [
      { sort: { field: 'user_metadata.city' } },
      { where: { field: 'user_metadata.a"b', exists: true } },
      { where: { field: 'user_metadata.', exists: true } },
      { where: { field: 'user_metadatax', exists: true } },
      { where: { field: 'email.x', exists: true } },
      { where: { index: 'none', equals: 'x' } },
      { where: { of: 'clients' as const, index: 'x', equals: 'x' } },
      { where: { of: 'identities' as const, index: 'none', equals: 'x' } },
    ]) {
      expect(await rejection(store.collection('users').list(query))).to.be.instanceOf(Error);
    }
  });
}

/** Users filtered by records of other collections; only in a database. */
export function heldCases(test: Register): void {
  const identity = (id: string, user: string, connection: string): IdentityRecord => ({
    ...anIdentity(id),
    id: `${connection}|${id}`,
    user_id: user,
    upstream_id: id,
    connection,
  });

  test('filters users by their identities and organizations', async ({ store }) => {
    await Promise.all(['1', '2', '3'].map((id) => store.collection('users').insert(aUser(id))));
    const identities = store.collection('identities');
    await identities.insert(identity('a', '1', 'one'));
    await identities.insert(identity('b', '1', 'one'));
    await identities.insert(identity('c', '2', 'one'));
    await identities.insert(identity('d', '2', 'two'));
    await identities.insert(identity('e', '3', 'one more'));
    const of = 'identities' as const;
    const one: Filter = { of, index: 'held', equals: 'connection=one' };
    const expected: [Filter, string[]][] = [
      [one, ['1', '2']],
      [{ of, index: 'held', equals: 'connection=two' }, ['2']],
      [{ of, index: 'held', equals: 'connection=none' }, []],
      [{ of, index: 'held', equals: 'user_id=c' }, ['2']],
      [{ not: one }, ['3']],
      [{ all: [{ field: 'id', from: '2' }, one] }, ['2']],
    ];
    for (const [where, found] of expected) {
      const page = await store.collection('users').list({ where, total: true });
      expect(
        page.records.map(({ id }) => id),
        JSON.stringify(where),
      ).to.deep.equal(found);
      expect(page.total).to.equal(found.length);
    }
    const next = await store.collection('users').list({ where: one, after: '1' });
    expect(next.records.map(({ id }) => id)).to.deep.equal(['2']);
  });

  test('combines filters by users and by their identities in any order', async ({ store }) => {
    for (const [id, name] of ['Ada', 'Adam', 'Bob'].entries()) {
      await store.collection('users').insert({ ...aUser(String(id)), name });
    }
    await store.collection('identities').insert(identity('a', '1', 'users'));
    await store.collection('identities').insert(identity('b', '2', 'users'));
    const held: Filter = { of: 'identities', index: 'held', equals: 'connection=users' };
    const named: Filter = { index: 'search', prefix: 'name\na', isSingle: true };
    const given = async (where: Filter) =>
      (await store.collection('users').list({ where, order: 'any' })).records.map(({ id }) => id).sort();
    expect(await given({ all: [held, named] })).to.deep.equal(['1']);
    expect(await given({ any: [held, named] })).to.deep.equal(['0', '1', '2']);
  });

  test('returns the same records in any order whether few or most of the records in an index match', async ({
    store,
  }) => {
    const names = [...Array(60).keys()].map((n) => ({ n, id: `u${String((n * 7) % 60).padStart(2, '0')}` }));
    await store.batch(
      names.flatMap(({ n, id }) => [
        { collection: 'users', insert: { ...aUser(id), name: `Ada ${n}`, nickname: n < 50 ? 'Abe' : 'Bea' } },
        { collection: 'identities', insert: identity(`i${n}`, id, n % 2 === 0 ? 'even' : 'odd') },
      ]),
    );
    const begins = (field: string, text: string): Filter => ({
      index: 'search',
      prefix: `${field}\n${text}`,
      isSingle: true,
    });
    const any = (text: string): Filter => ({ any: ['name', 'nickname'].map((one) => begins(one, text)) });
    const held = (which: string): Filter => ({
      of: 'identities',
      index: 'held',
      equals: `connection=${which}`,
    });
    const expected: [Filter, (n: number) => boolean][] = [
      [{ all: [any('a'), any('be')] }, (n) => n >= 50],
      [{ all: [any('a'), any('ab')] }, (n) => n < 50],
      [{ all: [any('ada'), any('x')] }, () => false],
      [{ all: [any('a'), held('odd')] }, (n) => n % 2 === 1],
      [{ all: [any('be'), { not: held('odd') }] }, (n) => n >= 50 && n % 2 === 0],
      [
        { all: [{ any: [any('a'), any('b')] }, { any: [held('even'), any('be')] }] },
        (n) => n % 2 === 0 || n >= 50,
      ],
    ];
    for (const [where, isMeant] of expected) {
      const given = async (query: Query) =>
        (await store.collection('users').list({ where, order: 'any', ...query })).records.map(({ id }) => id);
      const meant = names.filter(({ n }) => isMeant(n)).map(({ id }) => id);
      // A page of this size is read at once.
      const all = await given({ limit: 100 });
      expect(all.toSorted(), JSON.stringify(where)).to.deep.equal(meant.toSorted());
      const told: string[] = [];
      for (let page = 0; page * 4 <= meant.length; page++) told.push(...(await given({ page, limit: 4 })));
      expect(told, JSON.stringify(where)).to.deep.equal(all);
    }
  });

  test('leaves expired users out of the total, for all users, for those of a connection and for those with a property', async ({
    store,
  }, time) => {
    const soon = time.now / 1000 + 10;
    await store.collection('users').insert({ ...aUser('1'), expiresAt: soon });
    await store.collection('users').insert({ ...aUser('2'), expiresAt: soon });
    await store.collection('users').insert(aUser('3'));
    for (const [n, user] of ['1', '3', '3'].entries()) {
      await store.collection('identities').insert(identity(`${n}`, user, 'one'));
    }
    const where: Filter = { of: 'identities', index: 'held', equals: 'connection=one' };
    const verified: Filter = { index: 'search', equals: 'email_verified\nfalse' };
    const totals = () =>
      Promise.all(
        [{ where }, { where: verified }, {}].map(
          async (query) => (await store.collection('users').list({ ...query, total: true })).total,
        ),
      );
    expect(await totals()).to.deep.equal([2, 3, 3]);
    time.now += 10_000;
    expect(await totals()).to.deep.equal([1, 1, 1]);
  });
}
