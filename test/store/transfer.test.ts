// Filling a store from another: it is only used when complete, and an interrupted attempt can be repeated.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Store } from '../../src/store/contract.ts';
import { openStore } from '../../src/store/open.ts';
import { fillStore } from '../../src/store/transfer/fill.ts';
import { type Part, transferredParts } from '../../src/store/transfer/transfer-parts.ts';
import { aUser } from './contract.ts';

describe('filling a store with another', () => {
  const clock = () => 1_800_000_000_000;
  let directory: string;
  let source: Store;
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'gatehouse-moving-'));
    source = await openStore({ dataDir: join(directory, 'source'), clock });
    const ids = Array.from({ length: 900 }, (_, n) => `user|${n}`);
    await source.batch(ids.map((id) => ({ collection: 'users', insert: aUser(id) })));
    await source.collection('sharedSecrets').insert({ id: 'one', value: 'secret' });
  });
  after(async () => {
    await source.close();
    await rm(directory, { recursive: true });
  });

  const open = (name: string, isFilling = true) =>
    openStore({ dataDir: join(directory, name), clock, isFilling });
  /** The source, which fails after this many parts. */
  async function* parts(most = Number.POSITIVE_INFINITY): AsyncGenerator<Part> {
    const all: Part[] = [];
    await source.withSnapshot(async (snapshot) => {
      for await (const part of transferredParts(snapshot)) all.push(part);
    });
    for (const [n, part] of all.entries()) {
      if (n >= most) throw new Error('cut short');
      yield part;
    }
  }
  const failure = (work: Promise<unknown>) =>
    work.then(
      () => undefined,
      (error: Error) => error.message,
    );

  it('refuses to open a half filled store, and continues where it was interrupted', async () => {
    const all: Part[] = [];
    for await (const part of parts()) all.push(part);
    const half = all.findIndex(({ collection }) => collection === 'users') + 2;
    const first = await open('target');
    expect(await failure(fillStore(first, parts(half)))).to.equal('cut short');
    expect(await first.collection('users').count()).to.be.within(1, 899);
    await first.close();
    expect(await failure(open('target', false))).to.contain('half filled');
    const second = await open('target');
    expect(await fillStore(second, parts())).to.be.above(900);
    await second.close();
    const whole = await open('target', false);
    expect(await whole.collection('users').count()).to.equal(900);
    expect(await whole.collection('sharedSecrets').get('one')).to.deep.equal({ id: 'one', value: 'secret' });
    await whole.close();
  });

  it('refuses a store that holds anything, and leaves it unchanged', async () => {
    const other = await open('other', false);
    await other.collection('users').insert(aUser('user|other'));
    expect(await failure(fillStore(other, parts()))).to.contain('not empty: it has users');
    expect(await other.collection('users').count()).to.equal(1);
    await other.close();
    await (await open('other', false)).close();
  });

  it('reports when the copy differs from the source, and keeps it from being opened', async () => {
    const target = await open('wrong');
    const lossy: Store = {
      ...target,
      batch: (writes) => target.batch(writes.filter((one) => !('put' in one) || one.put.id !== 'user|77')),
    };
    expect(await failure(fillStore(lossy, parts()))).to.match(/differs .* in users:/);
    await target.close();
    expect(await failure(open('wrong', false))).to.contain('half filled');
  });
});
