// Records read together with those that they name, in one query.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Collection, Store } from '../../src/store/contract.ts';
import { openStore } from '../../src/store/open.ts';
import { aUser } from '../store/contract.ts';
import { type Cluster, startCluster } from '../support/postgres.ts';

describe('getWithNamed in PostgreSQL', () => {
  let cluster: Cluster;
  let dataDir: string;
  let store: Store;
  let now = 1_800_000_000_000;
  before(async () => {
    cluster = await startCluster();
    dataDir = mkdtempSync(join(tmpdir(), 'gatehouse-named-'));
    store = await openStore({ dataDir, databaseUrl: cluster.url(), clock: () => now });
  });
  after(async () => {
    await store.close();
    await cluster.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });

  const artifacts = () => store.collection('artifacts');
  const token = (id: string, grantId: string, accountId: string, more = {}) =>
    artifacts().put({ id, model: 'AccessToken', payload: { grantId, accountId }, ...more });
  const grant = (grantId: string, more = {}) =>
    artifacts().put({ id: `Grant:${grantId}`, model: 'Grant', payload: { of: grantId }, ...more });
  const read = async (id: string) => {
    const { getWithNamed } = artifacts() as Required<Collection<{ id: string }>>;
    const found = await getWithNamed(id);
    return (
      found && [found.record.id, ...found.named.map(({ collection, record }) => [collection, record.id])]
    );
  };

  it('returns tokens with their grants and users, for many tokens at once', async () => {
    await store.collection('users').insert(aUser('auth0|ada'));
    await store.collection('users').insert(aUser('auth0|bob'));
    await grant('g');
    await token('ada', 'g', 'auth0|ada');
    await token('bob', 'none', 'auth0|bob');
    await token('nobody', 'none', 'auth0|none');
    const whole = ['ada', ['artifacts', 'Grant:g'], ['users', 'auth0|ada']];
    expect(await Promise.all(['ada', 'bob', 'nobody', 'gone', 'ada'].map(read))).to.deep.equal([
      whole,
      ['bob', ['users', 'auth0|bob']],
      ['nobody'],
      undefined,
      whole,
    ]);
    expect((await artifacts().getWithNamed?.('ada'))?.named[1]?.record).to.deep.equal(
      await store.collection('users').get('auth0|ada'),
    );
  });

  it('leaves out named records that have expired or were deleted', async () => {
    await grant('brief', { expiresAt: now / 1000 + 10 });
    await token('outlives', 'brief', 'auth0|ada');
    await token('expires', 'g', 'auth0|ada', { expiresAt: now / 1000 + 10 });
    expect(await read('outlives')).to.have.length(3);
    now += 10_000;
    expect(await read('outlives')).to.deep.equal(['outlives', ['users', 'auth0|ada']]);
    expect(await read('expires')).to.equal(undefined);
    await store.collection('users').delete('auth0|ada');
    expect(await read('outlives')).to.deep.equal(['outlives']);
  });

  it('finds names with any characters, and leaves out one that is too long for an index', async () => {
    const odd = 'a\n\u0000\u0001\ud800 💧 | % _';
    const long = 'é'.repeat(5000);
    await store.collection('users').insert(aUser(odd));
    await store.collection('users').insert(aUser(long));
    const oddGrant = odd.replace('\ud800', '');
    await grant(oddGrant);
    await token(odd, oddGrant, odd);
    await token('long', 'none', long);
    expect(await read(odd)).to.deep.equal([odd, ['artifacts', `Grant:${oddGrant}`], ['users', odd]]);
    expect(await read('long')).to.deep.equal(['long']);
  });
});
