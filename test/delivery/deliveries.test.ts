// Deliveries that outlive the process that wrote them: which process tries them, and how often. Several processes are
// several sets of deliveries over one store; the test sets the time.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import {
  createDeliveries,
  type Deliveries,
  type Pause,
  timerPause,
} from '../../src/capabilities/delivery/deliveries.ts';
import { createLog } from '../../src/runtime/log.ts';
import { systemRandom } from '../../src/runtime/secrets.ts';
import type { Store } from '../../src/store/contract.ts';
import { openMemoryStore } from '../../src/store/memory/store.ts';
import { openStore } from '../../src/store/open.ts';
import { until as waitUntil } from '../support/wait-until.ts';

const MAX_DURATION = 10_000;
/** Longer than a lease. */
const LATER = 60_000;
const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

interface Seen {
  content: { text: string };
  id: string;
  by: number;
}

/** Stores that several processes can share. */
const STORES: Record<string, (dataDir: string, clock: () => number) => Promise<Store>> = {
  'in memory': async (_dataDir, clock) => openMemoryStore(clock),
  'in a database': async (dataDir, clock) => {
    const { exclusive: _alone, ...store } = await openStore({ dataDir, clock });
    return store;
  },
};

for (const [where, open] of Object.entries(STORES))
  describe(`deliveries ${where}`, () => {
    let dataDir: string;
    let store: Store;
    let now: number;
    let seen: Seen[];
    let gaveUp: unknown[];
    /** The outcome of a try. */
    let behave: (seen: Seen) => Promise<void>;
    let ends: AbortController[];
    beforeEach(async () => {
      now = Date.now();
      dataDir = mkdtempSync(join(tmpdir(), 'gatehouse-deliveries-'));
      store = await open(dataDir, () => now);
      seen = [];
      gaveUp = [];
      ends = [];
      behave = async () => {};
    });
    afterEach(async () => {
      for (const one of ends) one.abort();
      await store.close();
      rmSync(dataDir, { recursive: true, force: true });
    });

    /** Makes another process. @param by its number. */
    function process(by: number, pause: Pause = async () => settled(), over: Store = store) {
      const ending = new AbortController();
      ends.push(ending);
      const deliveries: Deliveries = createDeliveries({
        store: over,
        clock: () => now,
        random: systemRandom,
        log: createLog('silent'),
        pause,
        ending: ending.signal,
      });
      const prepare = deliveries.add<{ text: string }>({
        kind: 'test',
        attempt: async (content, { id }) => {
          const one = { content, id, by };
          seen.push(one);
          await behave(one);
        },
        isTemporary: (error) => (error as Error).message !== 'for good',
        onGiveUp: async (_content, error) => {
          gaveUp.push((error as Error).message);
        },
        pauses: [1_000, 5_000],
        maxDuration: MAX_DURATION,
        concurrency: 4,
        capacity: 1_000,
      });
      return { deliveries, prepare };
    }
    const left = () => store.collection('deliveries').count();
    const until = (is: () => boolean | Promise<boolean>) => waitUntil(is, settled);
    const write = async (prepared: { write: Parameters<Store['batch']>[0][number] }) =>
      store.batch([prepared.write]);
    const never = () => new Promise<void>(() => {});

    it('are tried once they are written, with an id of their own, and removed when accepted', async () => {
      const { prepare } = process(1);
      const all = ['a', 'b', 'c'].map((text) => prepare({ text }));
      for (const one of all) {
        await write(one);
        one.start();
      }
      await until(async () => (await left()) === 0);
      expect(seen.map(({ content }) => content.text)).to.deep.equal(['a', 'b', 'c']);
      expect(new Set(seen.map(({ id }) => id)).size).to.equal(3);
    });

    it('that a process has written and never tried are tried by exactly one of fifty others', async () => {
      const { prepare } = process(0);
      for (let i = 0; i < 20; i++) await write(prepare({ text: String(i) }));
      now += LATER;
      for (let by = 1; by <= 50; by++) process(by).deliveries.start();
      await until(async () => (await left()) === 0);
      expect(seen.map(({ content }) => Number(content.text)).sort((a, b) => a - b)).to.deep.equal(
        Array.from({ length: 20 }, (_, i) => i),
      );
    });

    it('of a process that was killed while its clock was a day ahead are tried once, by a process that starts then', async () => {
      const { prepare } = process(0);
      const right = now;
      now += 86_400_000;
      for (let i = 0; i < 3; i++) await write(prepare({ text: String(i) }));
      now = right;
      await write(prepare({ text: 'of a process that is right' }));
      process(1).deliveries.start();
      process(2).deliveries.start();
      await until(async () => (await left()) === 1);
      expect(seen.map(({ content }) => content.text).sort()).to.deep.equal(['0', '1', '2']);
    });

    it('are left alone while another process may be trying them', async () => {
      behave = never;
      const { prepare } = process(1);
      const one = prepare({ text: 'slow' });
      await write(one);
      one.start();
      now += MAX_DURATION;
      process(2).deliveries.start();
      for (let i = 0; i < 50; i++) await settled();
      expect(seen.map(({ by }) => by)).to.deep.equal([1]);
    });

    it('of a process that ended during a try are tried again by another, with the same id', async () => {
      behave = async ({ by }) => (by === 1 ? never() : undefined);
      const { prepare } = process(1);
      const one = prepare({ text: 'cut short' });
      await write(one);
      one.start();
      await until(() => seen.length === 1);
      now += LATER;
      process(2).deliveries.start();
      await until(async () => (await left()) === 0);
      expect(seen.map(({ by }) => by)).to.deep.equal([1, 2]);
      expect(new Set(seen.map(({ id }) => id)).size).to.equal(1);
    });

    it('that wait for their turn longer than the lease are not tried by two processes', async () => {
      let release = () => {};
      behave = async ({ by, content }) => {
        if (by === 1 && content.text !== 'last') await new Promise<void>((resolve) => (release = resolve));
      };
      const { prepare } = process(1);
      // The last one gets no turn while the four before it are tried.
      for (const text of ['a', 'b', 'c', 'd', 'last']) {
        const one = prepare({ text });
        await write(one);
        one.start();
      }
      await until(() => seen.length === 4);
      now += LATER;
      process(2).deliveries.start();
      await until(() => seen.some(({ content }) => content.text === 'last'));
      release();
      for (let i = 0; i < 50; i++) await settled();
      expect(seen.filter(({ content }) => content.text === 'last').map(({ by }) => by)).to.deep.equal([2]);
    });

    it('are tried again after a pause by one process, whichever is first', async () => {
      behave = async () => {
        if (seen.length === 1) throw new Error('busy');
      };
      let end = () => {};
      const { prepare } = process(1, () => new Promise((resolve) => (end = resolve)));
      const one = prepare({ text: 'again' });
      await write(one);
      one.start();
      await until(() => seen.length === 1);
      for (let i = 0; i < 10; i++) await settled();
      // The pause of a second is over for all processes; the first one is late.
      now += 1_000;
      process(2).deliveries.start();
      await until(() => seen.length === 2);
      end();
      await until(async () => (await left()) === 0);
      expect(seen.map(({ by }) => by)).to.deep.equal([1, 2]);
    });

    it('are given up after their last try, whichever processes made the earlier ones', async () => {
      behave = async () => {
        throw new Error('busy');
      };
      const first = process(1, () => never());
      const one = first.prepare({ text: 'refused' });
      await write(one);
      one.start();
      await until(() => seen.length === 1);
      for (let i = 0; i < 10; i++) await settled();
      now += LATER;
      process(2).deliveries.start();
      await until(async () => (await left()) === 0);
      expect(seen.map(({ by }) => by)).to.deep.equal([1, 2, 2]);
      expect(gaveUp).to.deep.equal(['busy']);
    });

    it('are given up at once when another try cannot help', async () => {
      behave = async () => {
        throw new Error('for good');
      };
      const { prepare } = process(1);
      const one = prepare({ text: 'refused' });
      await write(one);
      one.start();
      await until(async () => (await left()) === 0);
      expect(seen).to.have.length(1);
      expect(gaveUp).to.deep.equal(['for good']);
    });

    it('that a stop cuts short are left to another process, and not given up', async () => {
      behave = async () => {
        throw new Error('busy');
      };
      const first = process(1, timerPause);
      const one = first.prepare({ text: 'left' });
      await write(one);
      one.start();
      await until(() => seen.length === 1);
      for (let i = 0; i < 10; i++) await settled();
      ends[0]?.abort();
      await first.deliveries.flush(1_000);
      expect(await left()).to.equal(1);
      expect(gaveUp).to.deep.equal([]);
      behave = async () => {};
      process(2).deliveries.start();
      await until(async () => (await left()) === 0);
      expect(seen.at(-1)?.by).to.equal(2);
    });

    it('that could not be removed from the store are not sent again by the process that sent them', async () => {
      let broken = 3;
      const collection = store.collection('deliveries');
      const flaky: Store = {
        ...store,
        collection: ((name: string) =>
          name !== 'deliveries'
            ? store.collection(name as 'deliveries')
            : {
                ...collection,
                delete: async (id: string) => {
                  if (broken-- > 1) throw new Error('the database is away');
                  return collection.delete(id);
                },
              }) as Store['collection'],
      };
      const { prepare } = process(1, undefined, flaky);
      const one = prepare({ text: 'once' });
      await write(one);
      one.start();
      await until(async () => (await left()) === 0);
      expect(seen).to.have.length(1);
      expect(gaveUp).to.deep.equal([]);
    });
  });
