// Work for one process at a time. Several processes are simulated by several sets of leases over one store.
import { expect } from 'chai';
import { systemRandom } from '../../src/runtime/secrets.ts';
import type { Store } from '../../src/store/contract.ts';
import { createLeases } from '../../src/store/leases.ts';
import { openMemoryStore } from '../../src/store/memory/store.ts';

describe('leases', () => {
  let now: number;
  let store: Store;
  beforeEach(() => {
    now = Date.now();
    store = openMemoryStore(() => now);
  });
  const process = (over: Store = store) =>
    createLeases({ store: over, clock: () => now, random: systemRandom });
  const never = () => new Promise<void>(() => {});

  it('are given to one of fifty concurrent callers, and to another when its work is done', async () => {
    let end = () => {};
    const work = () => new Promise<void>((resolve) => (end = resolve));
    const asked = Array.from({ length: 50 }, () => process().ifFree('work', work));
    const refused = Promise.all(
      asked.map((one) => Promise.race([one, new Promise((r) => setTimeout(r, 50, 'at work'))])),
    );
    expect((await refused).filter((one) => one === 'at work')).to.have.length(1);
    end();
    expect((await Promise.all(asked)).filter(Boolean)).to.have.length(1);
    expect(await process().ifFree('work', async () => {})).to.equal(true);
  });

  it('do not block work of another name', async () => {
    void process().ifFree('one', never);
    expect(await process().ifFree('other', async () => {})).to.equal(true);
  });

  it('expire soon after a process that never returned them', async () => {
    void process().ifFree('work', never);
    now += 29_000;
    expect(await process().ifFree('work', async () => {})).to.equal(false);
    now += 2_000;
    expect(await process().ifFree('work', async () => {})).to.equal(true);
  });

  it('are free for a process whose clock is a day behind, once another has returned them', async () => {
    const ahead = createLeases({ store, clock: () => now + 86_400_000, random: systemRandom });
    expect(await ahead.ifFree('work', async () => {})).to.equal(true);
    expect(await process().ifFree('work', async () => {})).to.equal(true);
  });

  it('of a killed process whose clock was a year ahead are taken over by one of fifty, if nobody renews them', async () => {
    const ahead = createLeases({ store, clock: () => now + 365 * 86_400_000, random: systemRandom });
    void ahead.ifFree('work', never);
    const others = Array.from({ length: 50 }, () => process());
    let taken = 0;
    const ask = async () => {
      const work = () => {
        taken += 1;
        return never();
      };
      for (const one of others) void one.ifFree('work', work);
      for (let i = 0; i < 50; i++) await new Promise((resolve) => setImmediate(resolve));
    };
    await ask();
    now += 29_000;
    await ask();
    expect(taken).to.equal(0);
    // The holder is still working and renews its lease.
    await store
      .collection('leases')
      .update('work', (held) => ({ ...held, expiresAt: (held.expiresAt ?? 0) + 10 }));
    now += 2_000;
    await ask();
    now += 29_000;
    await ask();
    expect(taken).to.equal(0);
    now += 1_000;
    await ask();
    expect(taken).to.equal(1);
  });

  it('are returned when the work fails', async () => {
    const failed = process().ifFree('work', async () => {
      throw new Error('no');
    });
    expect(await failed.catch((thrown: Error) => thrown.message)).to.equal('no');
    expect(await process().ifFree('work', async () => {})).to.equal(true);
  });

  it('make callers of afterOthers work one at a time', async () => {
    let atWork = 0;
    let most = 0;
    const work = async () => {
      most = Math.max(most, ++atWork);
      await new Promise((resolve) => setImmediate(resolve));
      atWork--;
    };
    await Promise.all(Array.from({ length: 4 }, () => process().afterOthers('work', work)));
    expect(most).to.equal(1);
  });

  it('use no records in a store that no other process can open', async () => {
    const alone: Store = { ...store, exclusive: true, collection: () => expect.fail('the store was asked') };
    const leases = process(alone);
    expect(
      await leases.ifFree('work', async () => {
        expect(await leases.ifFree('work', async () => {})).to.equal(false);
      }),
    ).to.equal(true);
  });
});
