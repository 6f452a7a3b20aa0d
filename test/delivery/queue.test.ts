// The queue of background messages. Time is a list of pauses that the test ends.
import { AsyncLocalStorage } from 'node:async_hooks';
import { expect } from 'chai';
import { createQueue, type Pause } from '../../src/capabilities/delivery/deliveries.ts';
import { type Requester, requester } from '../../src/runtime/requester.ts';

const SERVER = requester();

/** Pauses that end when the test says so, or when the queue is flushed. */
function manualPauses() {
  const open: { ms: number; end: () => void }[] = [];
  const pause: Pause = (ms, signal) =>
    new Promise((resolve) => {
      if (signal.aborted) return resolve();
      open.push({ ms, end: resolve });
      signal.addEventListener('abort', () => resolve());
    });
  return { open, pause };
}

const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

/** A job that fails a number of times, and its outcome. */
function job(failures: number, { passing = true } = {}) {
  const seen = { tries: 0, onGiveUp: undefined as unknown };
  return {
    seen,
    job: {
      from: SERVER,
      run: async () => {
        if (seen.tries++ < failures) throw new Error(`try ${seen.tries}`);
      },
      isTemporary: () => passing,
      onGiveUp: async (error: unknown) => {
        seen.onGiveUp = error;
      },
    },
  };
}

describe('the queue of messages', () => {
  it('tries again after each pause until a try succeeds', async () => {
    const { open, pause } = manualPauses();
    const queue = createQueue({ pauses: [10, 20, 30], concurrency: 1, capacity: 10, pause });
    const { job: failing, seen } = job(2);
    queue.add(failing);
    await settled();
    expect(open.map(({ ms }) => ms)).to.deep.equal([10]);
    open[0]?.end();
    await settled();
    expect(open.map(({ ms }) => ms)).to.deep.equal([10, 20]);
    open[1]?.end();
    expect(await queue.flush(1000)).to.equal(0);
    expect(seen).to.deep.equal({ tries: 3, onGiveUp: undefined });
  });

  it('gives up once, when all pauses are used', async () => {
    const instant: Pause = async () => {};
    const queue = createQueue({ pauses: [1, 2], concurrency: 1, capacity: 10, pause: instant });
    const { job: failing, seen } = job(99);
    queue.add(failing);
    await settled();
    await settled();
    expect(await queue.flush(1000)).to.equal(0);
    expect(seen.tries).to.equal(3);
    expect(String(seen.onGiveUp)).to.equal('Error: try 3');
  });

  it('gives up at once when another try cannot help', async () => {
    const { open, pause } = manualPauses();
    const queue = createQueue({ pauses: [1, 2], concurrency: 1, capacity: 10, pause });
    const { job: failing, seen } = job(99, { passing: false });
    queue.add(failing);
    await queue.flush(1000);
    expect(seen.tries).to.equal(1);
    expect(open).to.deep.equal([]);
  });

  it('limits the jobs that run at once, and runs others while one pauses', async () => {
    const { pause } = manualPauses();
    const queue = createQueue({ pauses: [1], concurrency: 2, capacity: 100, pause });
    let running = 0;
    let most = 0;
    const ends: (() => void)[] = [];
    for (let i = 0; i < 10; i++) {
      queue.add({
        from: SERVER,
        run: async () => {
          most = Math.max(most, ++running);
          await new Promise<void>((resolve) => ends.push(resolve));
          running--;
          if (i === 0) throw new Error('pauses');
        },
        isTemporary: () => true,
        onGiveUp: async () => {},
      });
    }
    for (let ended = 0; ended < 10; ended++) {
      while (ends[ended] === undefined) await settled();
      ends[ended]?.();
    }
    await settled();
    expect(most).to.equal(2);
    expect(ends).to.have.length(10);
  });

  it('runs urgent jobs first, each in the async context of its caller', async () => {
    const queue = createQueue({ pauses: [], concurrency: 1, capacity: 10 });
    const context = new AsyncLocalStorage<string>();
    const seen: string[] = [];
    for (const name of ['first', 'a', 'urgent b', 'c', 'urgent d']) {
      const one = {
        from: SERVER,
        run: async () => {
          await settled();
          seen.push(`${name} of ${context.getStore()}`);
        },
        isTemporary: () => false,
        onGiveUp: async () => {},
        urgent: name.startsWith('urgent'),
      };
      context.run(name, () => queue.add(one));
    }
    expect(await queue.flush(1000)).to.equal(0);
    expect(seen).to.deep.equal(
      ['first', 'urgent b', 'urgent d', 'a', 'c'].map((name) => `${name} of ${name}`),
    );
  });

  it('rejects jobs beyond its capacity', async () => {
    const { pause } = manualPauses();
    const queue = createQueue({ pauses: [1], concurrency: 1, capacity: 3, pause });
    const taken = Array.from({ length: 5 }, () => queue.add(job(99).job));
    expect(taken).to.deep.equal([true, true, true, false, false]);
    await queue.flush(1000);
    expect(queue.add(job(0).job)).to.equal(true);
  });

  it('cuts pauses short for one more try when it is flushed', async () => {
    const { pause } = manualPauses();
    const queue = createQueue({ pauses: [1000, 2000, 3000], concurrency: 1, capacity: 10, pause });
    const [once, never] = [job(1), job(99)];
    queue.add(once.job);
    queue.add(never.job);
    await settled();
    expect(await queue.flush(1000)).to.equal(0);
    expect(once.seen).to.deep.equal({ tries: 2, onGiveUp: undefined });
    expect(never.seen.tries).to.equal(2);
    expect(String(never.seen.onGiveUp)).to.equal('Error: try 2');
  });

  it('waits a limited time when it is flushed, and returns how many jobs are left', async () => {
    const { pause } = manualPauses();
    const queue = createQueue({ pauses: [], concurrency: 1, capacity: 10, pause });
    queue.add({
      from: SERVER,
      run: () => new Promise(() => {}),
      isTemporary: () => true,
      onGiveUp: async () => {},
    });
    expect(await queue.flush(10)).to.equal(1);
  });

  describe('with jobs of several networks', () => {
    const by = (network: string, address: string, standing: Requester['standing'] = 'stranger') => ({
      origin: { network, address },
      standing,
    });
    /** Adds jobs that note their turns; the first one runs until `begin`. */
    const turnsOf = (froms: readonly Requester[], capacity = 1_000) => {
      const queue = createQueue({ pauses: [], concurrency: 1, capacity });
      const seen: string[] = [];
      const postponed: string[] = [];
      const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
      const taken = froms.map((from, index) =>
        queue.add({
          from,
          urgent: true,
          run: async () => {
            await begun;
            seen.push(`${from.origin.address}`);
          },
          isTemporary: () => false,
          onGiveUp: async () => {},
          onPostpone: async () => void postponed.push(`${from.origin.address} ${index}`),
        }),
      );
      const end = async () => {
        begin();
        await queue.flush(1_000);
        return seen;
      };
      return { end, taken, postponed };
    };

    it('gives each network its turn, and each address of a network', async () => {
      const many = Array.from({ length: 6 }, (_, i) => by('a', `a${i % 2}`));
      const { end } = turnsOf([...many, by('b', 'b0'), by('c', 'c0'), by('b', 'b0')]);
      expect(await end()).to.deep.equal(['a0', 'a1', 'b0', 'c0', 'a0', 'b0', 'a1', 'a0', 'a1']);
    });

    it('gives who is known the first turns, but not all', async () => {
      const { end } = turnsOf([
        ...Array.from({ length: 4 }, () => by('s', 'stranger')),
        ...Array.from({ length: 7 }, () => by('k', 'known', 'known')),
      ]);
      expect((await end()).map((one) => one[0]).join('')).to.equal('skkkkskkkss');
    });

    it('postpones the newest job of who has most, instead of that of another network', async () => {
      const { end, taken, postponed } = turnsOf(
        [...Array.from({ length: 5 }, () => by('a', 'a0')), by('b', 'b0'), by('a', 'a1')],
        4,
      );
      expect(taken).to.deep.equal([true, true, true, true, false, true, true]);
      expect(await end()).to.deep.equal(['a0', 'a0', 'b0', 'a1']);
      expect(postponed).to.deep.equal(['a0 3', 'a0 2']);
    });
  });
});
