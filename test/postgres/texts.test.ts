// Limits of PostgreSQL that JSON and the embedded store do not have: some characters, and the length of index entries.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Store } from '../../src/store/contract.ts';
import { openStore } from '../../src/store/open.ts';
import { anIdentity, aUser, emailKey, rejection } from '../store/contract.ts';
import { type Cluster, startCluster } from '../support/postgres.ts';

describe('texts in PostgreSQL', () => {
  let cluster: Cluster;
  let dataDir: string;
  let store: Store;
  before(async () => {
    cluster = await startCluster();
    dataDir = mkdtempSync(join(tmpdir(), 'gatehouse-texts-'));
    store = await openStore({ dataDir, databaseUrl: cluster.url(), clock: Date.now });
  });
  after(async () => {
    await store.close();
    await cluster.stop();
    rmSync(dataDir, { recursive: true });
  });

  const nasty = [
    'a\u0000b',
    '\u0000',
    '\u0001',
    '\u0001\u0001',
    '\ud800',
    'x\udfff\ud800y',
    '\\u0000',
    '\\\\u0001',
    '👍',
    '\u001a',
  ];

  it('are returned unchanged in a record, its id and its keys, and can be searched for', async () => {
    const users = store.collection('users');
    for (const text of nasty) {
      const id = `auth0|${text}`;
      const user = {
        ...aUser(id, `${text}@a.example`),
        name: text,
        user_metadata: { [text]: text, list: [text] },
      };
      await users.insert(user);
      expect(await users.get(id), JSON.stringify(text)).to.deep.equal(user);
      expect(await users.findBy('email', `${text}@a.example`)).to.deep.equal([user]);
      expect((await users.list({ where: { field: 'name', equals: text } })).records).to.deep.include(user);
      await users.update(id, (one) => ({ ...one, nickname: text }) as never);
      expect(await users.take(id)).to.deep.equal({ ...user, nickname: text });
      expect(await users.findBy('email', `${text}@a.example`)).to.deep.equal([]);
    }
    expect(await users.count()).to.equal(0);
  });

  it('are distinguished when they differ only in special characters', async () => {
    const users = store.collection('users');
    for (const text of nasty) await users.insert(aUser(text, text));
    for (const text of nasty) {
      expect(
        (await users.findBy('email', text)).map(({ id }) => id),
        JSON.stringify(text),
      ).to.deep.equal([text]);
    }
    const { records } = await users.list({ where: { field: 'user_metadata.city', exists: false } });
    expect(records).to.have.length(nasty.length);
    for (const text of nasty) expect(await users.delete(text)).to.equal(true);
  });

  it('that are too long for an index are stored completely, found, and unique', async () => {
    const [users, identities] = [store.collection('users'), store.collection('identities')];
    const long = (end: string) =>
      `${Array.from({ length: 4000 }, (_, n) => (n * 7919).toString(36)).join('')}${end}`;
    const [one, other] = [`auth0|${long('1')}`, `auth0|${long('2')}`];
    await users.insert({ ...aUser(one), roles: [long('x')] } as never);
    await users.insert({ ...aUser(other), roles: [long('y')] } as never);
    expect((await users.get(one))?.id).to.equal(one);
    expect((await users.findBy('role', long('y'))).map(({ id }) => id)).to.deep.equal([other]);
    expect(String(await rejection(users.insert(aUser(one))))).to.contain('"id"');
    await identities.insert(anIdentity(one, `${long('a')}@a.example`));
    const taken = identities.insert(anIdentity(other, `${long('a')}@a.example`));
    expect(await rejection(taken)).to.include({ key: 'email' });
    await identities.insert(anIdentity(other, `${long('b')}@a.example`));
    expect(await identities.findBy('email', emailKey(`${long('b')}@a.example`))).to.have.length(1);
    await identities.put({ ...anIdentity(one, `${long('a')}@a.example`), provider: 'again' });
    await store.batch([
      { collection: 'identities', delete: one },
      { collection: 'identities', insert: anIdentity(one, `${long('c')}@a.example`) },
      { collection: 'users', update: other, change: (user) => ({ ...user, name: 'changed' }) },
    ]);
    expect((await users.get(other))?.name).to.equal('changed');
    const first = await users.list({ limit: 1 });
    expect((await users.list({ after: first.next ?? '' })).records).to.have.length(1);
    expect(await users.deleteBy('role', long('x'))).to.equal(1);
  });
});
