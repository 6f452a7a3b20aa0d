// What strangers can make the store keep is bounded as its collection declares.
import { expect } from 'chai';
import { originOf } from '../../src/http/addresses.ts';
import type { Bound } from '../../src/records/base/collection-spec.ts';
import type { Stored } from '../../src/records/base/record.ts';
import { type CollectionName, collections } from '../../src/records/collections.ts';
import { askedBy, raiseStanding } from '../../src/runtime/requester.ts';
import { boundedStore } from '../../src/store/bounded.ts';
import type { Store } from '../../src/store/contract.ts';
import { collectionByName } from '../../src/store/contract.ts';
import { openMemoryStore } from '../../src/store/memory/store.ts';

/** A record of each kind under each bound of each collection. */
const EXAMPLES: Partial<Record<CollectionName, readonly object[]>> = {
  artifacts: ['Interaction', 'PushedAuthorizationRequest', 'ReplayDetection'].map((model) => ({
    model,
    payload: {},
  })),
  challenges: [
    { purpose: 'internal_login', isWaiting: true, secretHash: 'h', triesLeft: 1, spent: false, data: {} },
    { purpose: 'device_code', secretHash: 'h', triesLeft: 1, spent: false, data: {} },
  ],
  failures: [{ failures: 1, at: 0 }],
  samlMessages: [{}],
  registrations: [
    { client: { name: 'One', callbacks: [] }, created_at: '2026-01-01T00:00:00.000Z' },
    {
      client: { name: 'One', callbacks: [], external_metadata_type: 'cimd' },
      created_at: '2026-01-01T00:00:00.000Z',
    },
    { client: { name: 'One', callbacks: [] }, last_used_at: '2026-01-01T00:00:00.000Z' },
  ],
  deliveries: [{ kind: 'email', content: '{}', dueAt: '2026-01-01T00:00:00.000Z', holder: 'h', tries: 0 }],
};

const boundsOf = (name: CollectionName): readonly Bound<Stored>[] => {
  const { writtenFor } = collections[name];
  return typeof writtenFor === 'object' && 'strangers' in writtenFor
    ? (writtenFor.strangers as readonly Bound<Stored>[])
    : [];
};
const names = Object.keys(collections) as CollectionName[];
const bounded = names.filter((name) => boundsOf(name).length > 0);
const as = <T>(ip: string, work: () => T): T => askedBy({ id: 'request', origin: () => originOf(ip) }, work);

describe('the bounds of what strangers can make a store keep', () => {
  it('are declared by each collection: who can write, and what bounds it', () => {
    for (const name of names) {
      const { writtenFor, indexes } = collections[name] as (typeof collections)['challenges'];
      if (writtenFor === 'operators') continue;
      if ('strangers' in writtenFor) {
        expect(writtenFor.strangers, name).not.to.have.length(0);
        if (writtenFor.strangers.length > 1) expect(indexes, name).to.have.property('kind');
        for (const { max, maxLength } of writtenFor.strangers)
          expect(Math.min(max, maxLength), name).to.be.within(1, 1_000_000);
      } else expect('users' in writtenFor ? writtenFor.users : writtenFor.rate, name).not.to.equal('');
    }
    expect(Object.keys(EXAMPLES).sort(), 'each is tested below').to.deep.equal([...bounded].sort());
  });

  const opened = (scale: number) => {
    let now = 1_000_000;
    const clock = () => now;
    const inner = openMemoryStore(clock);
    return { inner, store: boundedStore(inner, { clock, scale }), pass: (ms: number) => (now += ms) };
  };
  const count = async (store: Store, name: CollectionName, bound: Bound<Stored>, kind: string) =>
    (await collectionByName(store, name).list({ limit: 10_000 })).records.filter(
      (one) => bound.kind(one as Stored) === kind,
    ).length;

  for (const name of bounded) {
    for (const example of EXAMPLES[name] ?? []) {
      const bound = boundsOf(name).find((one) => one.kind({ id: 'x', ...example }) !== undefined);
      if (bound === undefined) throw new Error(`no bound of ${name} is for its example`);
      const kind = bound.kind({ id: 'x', ...example }) ?? '';
      const scale = 100 / bound.max;
      const ofRecord = (id: string) => ({ id, ...example, expiresAt: 10_000 });

      it(`hold for ${name}, ${kind}: a network with many addresses has no place of others`, async () => {
        const { store, inner } = opened(scale);
        const collection = collectionByName(store, name);
        for (let i = 0; i < 5; i++)
          await as(`198.51.${i}.1`, () => collection.insert(ofRecord(`early-${i}`)));
        const refused: unknown[] = [];
        for (let i = 0; i < 400; i++)
          await as(`2001:db8:1:${i.toString(16)}::1`, () => collection.insert(ofRecord(`many-${i}`))).catch(
            (error: unknown) => refused.push(error),
          );
        for (let i = 0; i < 5; i++) await as(`203.0.${i}.1`, () => collection.put(ofRecord(`late-${i}`)));
        expect(await count(inner, name, bound, kind)).to.be.at.most(100);
        for (let i = 0; i < 5; i++) {
          expect(await collection.get(`early-${i}`)).to.have.property('id');
          expect(await collection.get(`late-${i}`)).to.have.property('id');
        }
        if (bound.whenFull === 'refuse') {
          expect(refused.length).to.be.above(200);
          for (const error of refused) expect(error).to.include({ status: 503 });
          expect(await collection.get('many-0'), 'nothing is forgotten').to.have.property('id');
        } else {
          expect(refused).to.deep.equal([]);
          expect(await collection.get('many-399')).to.have.property('id');
        }
      });

      it(`hold for ${name}, ${kind}: a record that is too long is refused`, async () => {
        const { store } = opened(1);
        const long = { ...ofRecord('long'), junk: 'x'.repeat(bound.maxLength) };
        const refusal = await as('198.51.100.1', () =>
          collectionByName(store, name).insert(long as Stored),
        ).catch((error: unknown) => error);
        expect(refusal).to.include({ status: 400 });
      });
    }
  }

  const challenge = (id: string, more: object = {}) =>
    ({
      id,
      purpose: 'device_code',
      secretHash: id,
      triesLeft: 1,
      spent: false,
      data: {},
      expiresAt: 10_000,
      ...more,
    }) as never;

  it('count what is deleted, taken or expired no more, and what a batch writes', async () => {
    const { store, pass } = opened(10 / 50_000);
    const all = store.collection('challenges');
    const ids = async () => (await all.list({ limit: 100 })).records.map(({ id }) => id);
    await as('198.51.100.1', async () => {
      for (let i = 0; i < 10; i++)
        await store.batch([{ collection: 'challenges', put: challenge(`a${i}`, { expiresAt: 1_060 }) }]);
      await all.delete('a9');
      await all.take('a8');
      await store.batch([{ collection: 'challenges', delete: 'a7' }]);
      for (const id of ['b1', 'b2', 'b3']) await all.put(challenge(id));
      expect(await ids())
        .to.have.length(10)
        .and.to.include('a0');
      await all.put(challenge('b4'));
      expect(await ids())
        .to.have.length(10)
        .and.not.to.include('a0');
      pass(61_000);
      for (let i = 0; i < 6; i++) await all.put(challenge(`c${i}`));
      expect(await ids()).to.include.members(['b1', 'c5']);
    });
  });

  it('count one that is written again once, and keep those that somebody has begun', async () => {
    const { store } = opened(50 / 10_000);
    const all = store.collection('artifacts');
    const put = (id: string, payload = {}) =>
      all.put({ id, model: 'Interaction', payload, expiresAt: 10_000 } as never);
    await as('198.51.100.1', async () => {
      for (const id of ['a', 'b', 'c', 'b', 'c']) await put(id);
      await put('a', { result: {} });
      await put('d');
      await put('e');
      expect((await all.list()).records.map(({ id }) => id)).to.deep.equal(['a', 'd', 'e']);
    });
  });

  it('do not apply to what administrators and the server itself write', async () => {
    const { store, inner } = opened(5 / 50_000);
    const all = store.collection('challenges');
    await as('198.51.100.1', async () => {
      raiseStanding('trusted');
      for (let i = 0; i < 20; i++) await all.put(challenge(`a${i}`));
    });
    for (let i = 0; i < 20; i++) await all.put(challenge(`b${i}`));
    expect(await inner.collection('challenges').count()).to.equal(40);
  });

  it('leave less room where other processes have written much, but always some', async () => {
    const { inner, store } = opened(100 / 50_000);
    for (let i = 0; i < 95; i++) await inner.collection('challenges').put(challenge(`other-${i}`));
    await as('198.51.100.1', async () => {
      const all = store.collection('challenges');
      for (let i = 0; i < 6; i++) await all.put(challenge(`first-${i}`));
      // The count of the others is under way.
      for (let i = 0; i < 10; i++) await new Promise((resolve) => setImmediate(resolve));
      for (let i = 0; i < 40; i++) await all.put(challenge(`mine-${i}`));
      expect(await inner.collection('challenges').count()).to.equal(105);
    });
  });
});
