// A thread that does one task after the other, and what becomes of tasks that exceed its limits.
import { isDeepStrictEqual } from 'node:util';
import { expect } from 'chai';
import { askedBy, raiseStanding } from '../../src/runtime/requester.ts';
import { createTaskThread, type TaskThread } from '../../src/runtime/task-thread.ts';
import { moduleBeside } from '../../src/runtime/worker-thread.ts';
import { until } from '../support/wait-until.ts';
import type { Task } from './task-worker.ts';

const LIMITS = {
  name: 'test',
  module: moduleBeside(import.meta.url, 'task-worker'),
  memory: { maxOldGenerationSizeMb: 32, maxYoungGenerationSizeMb: 4 },
  maxCpuMs: 200,
  maxElapsedMs: 20_000,
  maxWaiting: 4,
  maxWaitMs: 60_000,
  idleMs: 60_000,
};

describe('a task thread', () => {
  const threads: TaskThread<Task, string>[] = [];
  const open = (limits: Partial<typeof LIMITS> = {}) => {
    const thread = createTaskThread<Task, string>({ ...LIMITS, ...limits });
    threads.push(thread);
    return thread;
  };
  afterEach(() => Promise.all(threads.splice(0).map((thread) => thread.close())));

  const echo = (thread: TaskThread<Task, string>, value: string) => thread.run({ kind: 'echo', value });
  const from = <T>(address: string, work: () => T): T =>
    askedBy({ id: 'request', origin: () => ({ network: address.slice(0, 1), address }) }, work);

  const exceeding: [Task['kind'], Partial<typeof LIMITS>][] = [
    ['loop', {}],
    ['fill', { maxCpuMs: 60_000 }],
    ['wait', { maxElapsedMs: 300 }],
  ];
  for (const [kind, limits] of exceeding) {
    it(`ends one that exceeds its limits (${kind}), and does the next one in another thread`, async () => {
      const thread = open(limits);
      expect(await echo(thread, 'first')).to.deep.equal({ answer: 'first' });
      const [over, next] = await Promise.all([thread.run({ kind }), echo(thread, 'next')]);
      expect(over.failure).to.equal('overused');
      expect(next).to.deep.equal({ answer: 'next' });
    });
  }

  it('says what one threw, and does the next one in another thread', async () => {
    const thread = open();
    const thrown = await thread.run({ kind: 'throw', value: 'why' });
    expect(thrown).to.include({ failure: 'failed' });
    expect(String('cause' in thrown && thrown.cause)).to.equal('Error: why');
    expect((await thread.run({ kind: 'exit' })).failure).to.equal('failed');
    expect(await echo(thread, 'next')).to.deep.equal({ answer: 'next' });
  });

  it('that cannot be started says so', async () => {
    const thread = open({ module: moduleBeside(import.meta.url, 'nothing') });
    expect((await echo(thread, 'first')).failure).to.equal('failed');
  });

  it('gives each network its turn, and refuses the newest of whoever has most waiting when it is full', async () => {
    const thread = open();
    const order: string[] = [];
    const ask = (address: string, value: string) =>
      from(address, async () => {
        const { failure = 'answered' } = await echo(thread, value);
        order.push(`${value} ${failure}`);
      });
    const greedy = ['1', '2', '3', '4', '5', '6'].map((value) => ask('a1', value));
    await Promise.all([...greedy, ask('a2', 'neighbour'), ask('b1', 'other')]);
    const answered = order.filter((one) => one.endsWith('answered'));
    const first = ['1 answered', '2 answered', 'neighbour answered', 'other answered'];
    expect(answered.slice(0, 4)).to.have.members(first);
    expect(order).to.include.members(['4 busy', '5 busy', '6 busy']);
    expect(answered).to.have.length(5);
  });

  it('does those of known callers before those of strangers', async () => {
    const thread = open();
    const order: string[] = [];
    const ask = async (value: string) => {
      await echo(thread, value);
      order.push(value);
    };
    const strangers = ['1', '2', '3'].map((value) => from('a1', () => ask(value)));
    const known = from('a1', () => {
      raiseStanding('known');
      return ask('known');
    });
    await Promise.all([...strangers, known]);
    expect(order).to.deep.equal(['1', 'known', '2', '3']);
  });

  it('refuses one that has waited too long, or is not wanted any more', async () => {
    const thread = open({ maxWaitMs: 400, maxCpuMs: 2_000 });
    await echo(thread, 'started');
    const loop = thread.run({ kind: 'loop' });
    const late = await echo(thread, 'late');
    expect(late.failure).to.equal('busy');
    expect((await loop).failure).to.equal('overused');
    const unwanted = await thread.run({ kind: 'echo' }, { isWanted: () => false });
    expect(unwanted.failure).to.equal('unwanted');
  });

  it('is started anew after it was idle for a time', async () => {
    const thread = open({ idleMs: 1 });
    const first = await thread.run({ kind: 'id' });
    await until(async () => !isDeepStrictEqual(await thread.run({ kind: 'id' }), first));
    expect(await echo(thread, 'two')).to.deep.equal({ answer: 'two' });
  });

  it('is not waited for at the end when nothing can interrupt it', async () => {
    const thread = open({ maxCpuMs: 60_000 });
    await echo(thread, 'started');
    const begun = new Int32Array(new SharedArrayBuffer(4));
    const native = thread.run({ kind: 'native', begun });
    await until(() => Atomics.load(begun, 0) === 1);
    const since = performance.now();
    await thread.close();
    expect(performance.now() - since).to.be.below(1_900);
    expect(thread.isHeldUp()).to.equal(true);
    expect((await native).failure).to.equal('busy');
    expect((await echo(thread, 'after the end')).failure).to.equal('busy');
  });
});
