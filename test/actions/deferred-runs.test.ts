// Actions that run after the response are stored until they have run: none is lost when a process ends, and no two
// processes run the same one.
import { expect } from 'chai';
import type { Actions } from '../../src/capabilities/actions/actions.ts';
import type { ActionRun } from '../../src/capabilities/actions/progress.ts';
import { createDeferredRuns, type RecordedRun } from '../../src/capabilities/actions/registration.ts';
import { createDeliveries } from '../../src/capabilities/delivery/deliveries.ts';
import { AuthError } from '../../src/http/errors.ts';
import { createLog } from '../../src/runtime/log.ts';
import { systemRandom } from '../../src/runtime/secrets.ts';
import type { Store } from '../../src/store/contract.ts';
import { openMemoryStore } from '../../src/store/memory/store.ts';

const TRIGGER = 'post-user-registration';
/** Longer than the lease of another process. */
const LATER = 10 * 60_000;
const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

describe('actions that run after the response', () => {
  let now: number;
  let store: Store;
  let begun: string[];
  let dropReasons: string[];
  let ends: AbortController[];
  /** What happens to a run. */
  let behave: (name: string) => Promise<void>;
  beforeEach(() => {
    now = Date.now();
    store = openMemoryStore(() => now);
    begun = [];
    dropReasons = [];
    ends = [];
    behave = async () => {};
  });
  afterEach(async () => {
    for (const one of ends) one.abort();
    await store.close();
  });

  /** Makes one process. */
  function process(readEvent: (name: string) => Promise<object> = async (name) => ({ name })) {
    const ending = new AbortController();
    ends.push(ending);
    const deliveries = createDeliveries({
      store,
      clock: () => now,
      random: systemRandom,
      log: createLog('silent'),
      pause: settled,
      ending: ending.signal,
    });
    const actions: Pick<Actions, 'run' | 'recordDropped'> = {
      recordDropped: (_trigger, why) => dropReasons.push(why),
      run: async (_trigger, event) => {
        const name = String(event.name);
        begun.push(name);
        await behave(name);
        return {} as ActionRun;
      },
    };
    const afterwards = createDeferredRuns<string>({
      actions,
      deliveries,
      store,
      wallClock: () => now,
      eventOf: async (name) => ({ ...(await readEvent(name)) }),
    });
    const prepared = (name: string) => afterwards.prepare({ trigger: TRIGGER, of: name, about: {} });
    return {
      deliveries,
      /** Stores a run and never begins it, as a process that ends before. */
      keep: (name: string) => afterwards.record(prepared(name)),
      run: async (name: string) => {
        const run = prepared(name);
        await afterwards.record(run);
        run.start();
      },
    };
  }
  const left = () => store.collection('deliveries').count();
  const until = async (is: () => boolean | Promise<boolean>) => {
    for (const end = performance.now() + 20_000; performance.now() < end; await settled())
      if (await is()) return;
    throw new Error('it did not come to pass');
  };

  it('run two at once and in order, and are removed afterwards', async () => {
    const gate = Promise.withResolvers<void>();
    behave = () => gate.promise;
    const { run } = process();
    const names = Array.from({ length: 9 }, (_, n) => `${n}`);
    for (const name of names) await run(name);
    await until(() => begun.length === 2);
    for (let n = 0; n < 20; n++) await settled();
    expect(begun).to.deep.equal(['0', '1']);
    gate.resolve();
    await until(async () => (await left()) === 0);
    expect(begun).to.deep.equal(names);
  });

  it('are not run again after a failure, because they may have done half of their work', async () => {
    behave = async () => {
      throw new AuthError(403, 'access_denied', 'It failed.');
    };
    const { run } = process();
    await run('a');
    await until(async () => (await left()) === 0);
    now += LATER;
    process().deliveries.start();
    for (let n = 0; n < 50; n++) await settled();
    expect(begun).to.deep.equal(['a']);
    expect(dropReasons).to.deep.equal([]);
  });

  it('are run by one of ten other processes when the one that stored them has not begun', async () => {
    const { keep } = process();
    await keep('a');
    await keep('b');
    now += LATER;
    for (let n = 0; n < 10; n++) process().deliveries.start();
    await until(async () => (await left()) === 0);
    expect(begun.toSorted()).to.deep.equal(['a', 'b']);
  });

  it('are left to the process that works on them until its time is over', async () => {
    behave = () => (begun.length === 1 ? new Promise(() => {}) : Promise.resolve());
    await process().run('slow');
    await until(() => begun.length === 1);
    now += 300_000;
    process().deliveries.start();
    for (let n = 0; n < 50; n++) await settled();
    expect(begun).to.have.length(1);
    now += LATER;
    process().deliveries.start();
    await until(async () => (await left()) === 0);
    expect(begun).to.deep.equal(['slow', 'slow']);
  });

  it('are tried again when their event cannot be made, and then given up with a log event', async () => {
    let reads = 0;
    const { run } = process(async (name) => {
      if (name === 'never' || ++reads < 3) throw new Error('the store is away');
      return { name };
    });
    await run('later');
    await until(async () => (await left()) === 0);
    expect(begun).to.deep.equal(['later']);
    await run('never');
    await until(async () => (await left()) === 0);
    expect(dropReasons).to.deep.equal(['their event could not be made']);
  });

  it('are stored in the same write as what they report', async () => {
    const told: RecordedRun<string> = { trigger: TRIGGER, of: 'x', about: {} };
    await process().keep(told.of);
    const { records } = await store.collection('deliveries').list({ limit: 10 });
    expect(records.map(({ kind, content }) => [kind, JSON.parse(content)])).to.deep.equal([
      ['actions', told],
    ]);
  });
});
