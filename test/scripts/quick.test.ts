// Scripts that make no requests and need little processor time run in one thread, one right after the other. None can
// observe or delay another.
import type { ServerResponse } from 'node:http';
import { expect } from 'chai';
import { SCRIPT_LIMITS } from '../../src/capabilities/scripts/limits.ts';
import { createScriptRatings } from '../../src/capabilities/scripts/scripts.ts';
import type { ToThread } from '../../src/capabilities/scripts/scripts-messages.ts';
import { createSharedRuns } from '../../src/capabilities/scripts/shared-runs.ts';
import type { JobOutcome } from '../../src/capabilities/scripts/threads.ts';
import { createOutbound, outboundRules } from '../../src/http/outbound/outbound.ts';
import { every, until } from '../support/wait-until.ts';
import { type Provider, startProvider, startSandbox } from './support.ts';

const MIB = 1024 * 1024;
const LIMITS = { wallMs: 60_000, cpuMs: 400, memoryBytes: 32 * MIB };

describe('quick scripts', () => {
  let provider: Provider;
  let sandbox: ReturnType<typeof startSandbox>;
  const held: ServerResponse[] = [];
  before(async () => {
    provider = await startProvider({ '/held': (_request, response) => void held.push(response) });
    // A script that waits holds the only thread for scripts that run alone.
    sandbox = startSandbox({ limits: LIMITS, threads: 1 });
  });
  after(async () => {
    await sandbox.stop();
    await provider.stop();
  });

  /** Runs `work` while the only thread for scripts that run alone is in use. */
  const whileHeld = async <T>(work: () => Promise<T>): Promise<T> => {
    const source = `async function () { await fetch('${provider.url}/held'); }`;
    const waiting = sandbox.run(source, { of: 'one that waits' });
    try {
      await until(() => held.length > 0);
      return await work();
    } finally {
      for (const response of held.splice(0)) response.end('{}');
      await waiting;
    }
  };
  const args = (context: object) => ({ args: ['token', context] });

  /** Returns a function that runs a script with various contexts, once it runs in the shared thread. */
  const quickly = async (body: string) => {
    const source = `async function (token, context) {
      if (context.nothing) return 'nothing';
      ${body}
    }`;
    const run = (context: object) => sandbox.run(source, args(context));
    await until(async () => {
      for (let n = 0; n < 4; n++) await run({ nothing: true });
      return whileHeld(() => {
        const ran = run({ nothing: true }).then(() => true);
        return Promise.race([ran, every(2_000)().then(() => false)]);
      });
    });
    return run;
  };

  it('get their own arguments and results, and leave nothing behind for others', async () => {
    const run = await quickly(`
      const before = [typeof seen, {}.left, [1].map((x) => x + 1)[0], JSON.parse('2'), Math.random()];
      globalThis.seen = context.n;
      Object.prototype.left = context.n;
      Array.prototype.map = () => 'evil';
      console.log('run ' + context.n);
      setTimeout(() => console.log('late'), 0);
      JSON.parse = () => 'evil';
      return [context.n, ...before];`);
    await whileHeld(async () => {
      const outcomes = await Promise.all(Array.from({ length: 30 }, (_, n) => run({ n })));
      const numbers = new Set<unknown>();
      for (const [n, { result, printed, used, failure }] of outcomes.entries()) {
        expect(failure).to.equal(undefined);
        const [own, seen, left, mapped, parsed, random] = result as unknown[];
        expect([own, seen, left, mapped, parsed]).to.deep.equal([n, 'undefined', null, 2, 2]);
        expect(printed.map(({ text }) => text)).to.deep.equal([`run ${n}`]);
        expect(used.wallMs).to.be.greaterThan(0);
        numbers.add(random);
      }
      expect(numbers.size).to.equal(30);
    });
  });

  it('continue in a thread of their own when one makes a request, which is sent once', async () => {
    const run = await quickly(`
      console.log('asks');
      const init = { method: 'POST', body: 'x' };
      return (await fetch('${provider.url}/echo?quick' + context.n, init)).status;`);
    const outcomes = await Promise.all([run({ n: 1 }), run({ nothing: true }), run({ n: 2 })]);
    expect(outcomes.map(({ result }) => result)).to.deep.equal([200, 'nothing', 200]);
    expect(outcomes[0]?.printed).to.have.length(1);
    for (const n of [1, 2])
      expect(provider.seen.filter(({ url }) => url === `/echo?quick${n}`)).to.have.length(1);
  });

  it('end at their own limits while others are answered', async () => {
    const bombs: [bomb: string, ...kinds: string[]][] = [
      ['for (;;) await 0;', 'cpu'],
      ['return new Array(1e9) + "";', 'cpu', 'memory'],
      ['const all = []; for (;;) all.push(new Uint8Array(1e6));', 'memory'],
      ['return "x".repeat(100001);', 'output'],
      ['throw new TypeError("mine");', 'script'],
      ['return new Promise(() => {});', 'unanswered'],
    ];
    const run = await quickly(`const [bomb] = context.bomb ?? [];
      ${bombs.map(([bomb]) => `if (bomb === ${JSON.stringify(bomb)}) { ${bomb} }`).join('\n')}
      return 'done';`);
    // A script that kept others from running runs alone from then on, so those that do not come first.
    for (const bomb of bombs.toReversed()) {
      const [first, one, ...others] = await Promise.all([run({}), run({ bomb }), run({}), run({})]);
      expect(one?.failure?.kind, bomb[0]).to.be.oneOf(bomb.slice(1));
      for (const each of [first, ...others]) expect(each?.result, bomb[0]).to.equal('done');
    }
  });

  it('continue when one of them blocks the thread, which then runs alone', async () => {
    for (const bomb of ['for (;;);', 'return new Array(1e9) + "";']) {
      const run = await quickly(`if (context.bomb) { ${bomb} }\nreturn 'done';`);
      const [first, one, ...others] = await Promise.all([run({}), run({ bomb: true }), run({}), run({})]);
      expect(one?.failure?.kind, bomb).to.be.oneOf(['cpu', 'memory']);
      for (const each of [first, ...others]) expect(each?.result, bomb).to.equal('done');
    }
  });

  it('may wait for a moment, and may use more in a thread of their own', async () => {
    const run = await quickly(`
      if (context.memory) return new Uint8Array(22e6).length;
      await new Promise((resolve) => setTimeout(resolve, 20));
      const until = Date.now() + context.ms;
      while (Date.now() < until) await 0;
      return 'done';`);
    const outcomes = await Promise.all([run({ ms: 0 }), run({ memory: true }), run({ ms: 200 })]);
    expect(outcomes.map(({ result }) => result)).to.deep.equal(['done', 22e6, 'done']);
  });

  it('run in turn in the shared thread, too', async () => {
    const inTurn = () =>
      sandbox.scripts.runAll({
        passing: { methods: ['tell'], most: 20 },
        runs: [0, 1, 2].map((index) => ({
          of: 'turn',
          askedBy: undefined,
          source: `async (index) => { const before = typeof left; left = index; return [{ method: 'tell', args: [index, before] }]; }`,
          entry: 'run',
          args: [index],
        })),
      });
    const results = [0, 1, 2].map((index) => [{ method: 'tell', args: [index, 'undefined'] }]);
    await until(async () => {
      for (let n = 0; n < 4; n++) await inTurn();
      return whileHeld(() => Promise.race([inTurn().then(() => true), every(2_000)().then(() => false)]));
    });
    for (const outcomes of await Promise.all(Array.from({ length: 20 }, inTurn)))
      expect(outcomes.map(({ result }) => result)).to.deep.equal(results);
  });
});

describe('the record of quick scripts', () => {
  const outcome = (used: object) =>
    ({ result: 'null', used: { cpuMs: 0.3, wallMs: 1, memoryBytes: 1, requests: 0, ...used } }) as JobOutcome;
  const after = (...used: object[]) => {
    const light = createScriptRatings();
    for (const one of used) light.note('script', [outcome(one)]);
    return light.isQuick('script');
  };
  const thrice = [{}, {}, {}];

  it('accepts scripts that were quick three times in a row', () => {
    expect(after({}, {})).to.equal(false);
    expect(after(...thrice)).to.equal(true);
    expect(after({}, {}, { cpuMs: 1.5 }, {})).to.equal(false);
    // Once a script is known as quick, one slow run on a busy machine makes no difference.
    expect(after(...thrice, { cpuMs: 1.5 })).to.equal(true);
  });

  it('does not accept scripts that compute, make requests, wait or need memory, and never again those that kept others from running', () => {
    for (const used of [{ cpuMs: 5 }, { requests: 1 }, { wallMs: 200 }, { memoryBytes: 20 * MIB }])
      expect(after(...thrice, used), JSON.stringify(used)).to.equal(false);
    const light = createScriptRatings();
    for (let n = 0; n < 3; n++) light.note('script', [outcome({})]);
    light.refuse('script');
    for (let n = 0; n < 3; n++) light.note('script', [outcome({})]);
    expect(light.isQuick('script')).to.equal(false);
  });
});

describe('the runs in a shared thread', () => {
  it('are matched to their script even before the outcomes of earlier runs have arrived', () => {
    const said: ToThread[] = [];
    const sequences = createSharedRuns({
      outbound: createOutbound({ rules: outboundRules([]) }),
      limits: SCRIPT_LIMITS,
      mayAsk: false,
      send: (message) => said.push(message),
      onLeft: () => {},
    });
    const job = { source: '', entry: '', args: '[]', globals: '{}' };
    const told: string[] = [];
    const passing = { methods: [], most: 0 };
    for (const name of ['first', 'second']) {
      void sequences.add(name, { jobs: [job, job], passing }, () => told.push(name));
    }
    expect(said.map((message) => message.type === 'run' && message.run)).to.deep.equal([1, 3]);
    sequences.refuseRun(4);
    sequences.refuseRun(5);
    sequences.dismissAll();
    expect(told).to.deep.equal(['second']);
  });
});
