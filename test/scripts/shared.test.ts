// Scripts that share a thread: one runs while others wait for their requests. None can observe or delay another.
import type { ServerResponse } from 'node:http';
import { expect } from 'chai';
import type { ScriptOutcome } from '../../src/capabilities/scripts/scripts.ts';
import { every, until } from '../support/wait-until.ts';
import { type Provider, startProvider, startSandbox } from './support.ts';

const MIB = 1024 * 1024;
const LIMITS = { wallMs: 60_000, cpuMs: 400, memoryBytes: 32 * MIB };
/** How many of one key may run at once in threads of their own: half of the threads. */
const ALONE = 2;

describe('scripts that share a thread', () => {
  let provider: Provider;
  let sandbox: ReturnType<typeof startSandbox>;
  /** Responses to scripts that are held back until others have come. */
  let gathered: ServerResponse[] = [];
  let holds = false;
  const held: ServerResponse[] = [];
  before(async () => {
    provider = await startProvider({
      '/gather': (_request, response) => {
        gathered.push(response);
        const all = gathered;
        if (all.length > ALONE) gathered = [];
        const answer = all.length > ALONE ? 'shared' : 'alone';
        const tell = () => {
          for (const one of all) if (!one.writableEnded) one.end(answer);
          if (gathered === all) gathered = [];
        };
        if (all.length > ALONE) tell();
        else setTimeout(tell, 100);
      },
      '/held': (_request, response) => void (holds ? held.push(response) : response.end('{}')),
    });
    sandbox = startSandbox({ limits: LIMITS, threads: 2 * ALONE });
  });
  after(async () => {
    await sandbox.stop();
    await provider.stop();
  });
  const seen = (path: string) => provider.seen.filter(({ url }) => url.startsWith(path)).length;

  /** Returns a function that runs a script with various contexts, once it shares a thread. */
  const sharing = async (body: string, one = sandbox) => {
    const source = `async function (token, context) {
      const ask = async (path, init) => (await fetch('${provider.url}' + path, init)).text();
      if (context.gather) return ask('/gather');
      ${body}
    }`;
    const run = (context: object) => one.run(source, { args: ['token', context] });
    // At the same time there are more than may run in threads of their own.
    await until(async () => {
      const outcomes = await Promise.all(Array.from({ length: ALONE + 1 }, () => run({ gather: true })));
      return outcomes.every(({ result }) => result === 'shared');
    });
    return run;
  };

  it('get their own arguments and results', async () => {
    const run = await sharing(`
      globalThis.seen = (globalThis.seen ?? []).concat(context.n);
      Object.prototype.left = context.n;
      const before = [seen.join(), {}.left, Math.random(), Date.now()];
      const { url } = JSON.parse(await ask('/echo?' + context.n));
      console.log('run ' + context.n);
      return [...before, url, seen.join(), {}.left];`);
    const began = Date.now();
    const outcomes = await Promise.all(Array.from({ length: 40 }, (_, n) => run({ n })));
    const numbers = new Set<unknown>();
    for (const [n, { result, printed, used }] of outcomes.entries()) {
      const [own, left, random, now, ...later] = result as unknown[];
      expect([own, left, ...later]).to.deep.equal([String(n), n, `/echo?${n}`, String(n), n]);
      expect(printed.map(({ text }) => text)).to.deep.equal([`run ${n}`]);
      expect(used.requests).to.equal(1);
      numbers.add(random);
      expect(now).to.be.at.least(began);
    }
    expect(numbers.size).to.equal(40);
  });

  it('leave nothing behind for the next run in the same sandbox', async () => {
    const run = await sharing(`
      if (context.spoil) {
        globalThis.left = 1; Array.prototype.map = () => 'evil'; JSON.parse = () => 'evil';
        setInterval(() => console.log('timer'), 1); void ask('/echo').then(() => console.log('answer'));
        return 1;
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
      return [typeof left, [1].map((x) => x + 1), JSON.parse('2')];`);
    for (let round = 0; round < 5; round++) {
      await Promise.all(Array.from({ length: 8 }, () => run({ spoil: true })));
      for (const { result, printed } of await Promise.all(Array.from({ length: 8 }, () => run({})))) {
        expect(result).to.deep.equal(['undefined', [2], 2]);
        expect(printed).to.deep.equal([]);
      }
    }
  });

  /** Runs five scripts that wait for an answer which never comes, and one beside them that blocks the thread. */
  const beside = async (bomb: string) => {
    // Another source each time, because a script that blocked the thread does not share one again.
    const run = await sharing(`
      // ${Math.random()}
      if (context.bomb) { ${bomb} }
      console.log('waits');
      await ask('/held');
      return 'done';`);
    const before = seen('/held');
    holds = true;
    const others = Promise.all(Array.from({ length: 5 }, () => run({})));
    await Promise.race([until(() => seen('/held') >= before + 5, every(20)), every(10_000)()]);
    // The earlier requests are never answered, so the scripts can only end where they were begun again.
    holds = false;
    const { failure } = await run({ bomb: true });
    return { failure, others };
  };
  const goOn = async (others: Promise<ScriptOutcome[]>) => {
    for (const response of held.splice(0)) response.end('{}');
    for (const { result, printed, used } of await others) {
      expect(result).to.equal('done');
      expect(printed.map(({ text }) => text)).to.deep.equal(['waits']);
      expect(used.requests).to.equal(1);
    }
  };

  const bombs: [string, string][] = [
    ['a loop', 'for (;;);'],
    ['a regular expression', 'return /^(a+)+$/.test("a".repeat(40) + "b");'],
  ];
  for (const [what, bomb] of bombs) {
    it(`continue when one of them blocks the thread with ${what}`, async () => {
      const { failure, others } = await beside(bomb);
      expect(failure).to.include({ kind: 'cpu' });
      await goOn(others);
    });
  }

  it('are begun again in other threads when one of them cannot be stopped', async () => {
    await until(async () => {
      const { failure, others } = await beside('return new Array(1e9) + "";');
      expect(failure?.kind, failure?.message).to.be.oneOf(['cpu', 'memory']);
      const areOver = await Promise.race([others.then(() => true), every(20_000)().then(() => false)]);
      // On a busy machine some may not have been in the shared thread.
      await goOn(others);
      return areOver;
    });
  });

  it('end at their own limits while others continue', async () => {
    for (const kind of ['output', 'requests', 'memory', 'cpu']) {
      // Another source for each, because a script that needs much does not share a thread again.
      const run = await sharing(`
        // ${kind}
        if (context.memory) { const all = []; for (;;) all.push(new Uint8Array(1e6)); }
        if (context.cpu) for (;;) await 0;
        if (context.output) return 'x'.repeat(100001);
        if (context.requests) for (;;) await ask('/echo');
        await ask('/echo');
        return 'done';`);
      const [one, ...others] = await Promise.all([run({ [kind]: true }), run({}), run({}), run({})]);
      expect(one?.failure, kind).to.include({ kind });
      for (const { result } of others) expect(result).to.equal('done');
    }
  });

  it('end when they have not answered in time', async () => {
    const hasty = startSandbox({ limits: { ...LIMITS, wallMs: 1_500 }, threads: 2 * ALONE });
    try {
      const run = await sharing('return new Promise((resolve) => setTimeout(resolve, 1e9));', hasty);
      expect((await run({})).failure).to.include({ kind: 'wall' });
    } finally {
      await hasty.stop();
    }
  });

  it('may use more memory and time in a thread of their own', async () => {
    const run = await sharing(`
      if (context.memory) try { return new Uint8Array(22e6).length; } catch { return 'less'; }
      const until = Date.now() + context.ms;
      while (Date.now() < until) await 0;
      return 'done';`);
    const outcomes = await Promise.all([run({ memory: true }), run({ ms: 200 }), run({ ms: 0 })]);
    expect(outcomes.map(({ result }) => result)).to.deep.equal([22e6, 'done', 'done']);
  });

  it('run in a thread of their own when they send other than safe requests, and send nothing twice', async () => {
    const run = await sharing(`
      await ask('/echo?' + context.n);
      return ask('/echo?post' + context.n, { method: context.method, body: 'x' });`);
    for (const [n, method] of ['POST', 'PUT', 'PATCH', 'DELETE', 'post'].entries()) {
      const outcomes = await Promise.all([run({ n, method }), run({ n: `${n}b`, method })]);
      for (const { failure } of outcomes) expect(failure).to.equal(undefined);
      for (const one of [`/echo?post${n}`, `/echo?post${n}b`]) {
        expect(provider.seen.filter(({ url }) => url === one).length, one).to.equal(1);
      }
    }
  });

  it('that are dismissed continue in a thread of their own, without repeating the jobs that have ended', async () => {
    await (await sharing('return 1;'))({});
    const source = `async (index, round, method) => {
      const path = '${provider.url}/echo?away' + index + round;
      if (index === 0) await fetch(path);
      else void fetch(path, { method });
      if (index === 2) console.log('last');
      return index === 2 ? 'last' : [{ method: 'tell', args: [index] }];
    }`;
    const inTurn = (round: string, method: string) =>
      sandbox.scripts.runAll({
        passing: { methods: ['tell'], most: 20 },
        runs: [0, 1, 2].map((index) => ({
          of: 'away',
          askedBy: undefined,
          source,
          entry: 'run',
          args: [index, round, method],
        })),
      });
    for (let n = 0; n < 4; n++) await inTurn('before', 'GET');
    const rounds = Array.from({ length: 5 }, (_, n) => `-${n}`);
    for (const outcomes of await Promise.all(rounds.map((round) => inTurn(round, 'POST')))) {
      const [first, second, last] = outcomes;
      expect(outcomes).to.have.length(3);
      expect(first?.result).to.deep.equal([{ method: 'tell', args: [0] }]);
      expect(second?.result).to.deep.equal([{ method: 'tell', args: [1] }]);
      expect(last?.result).to.equal('last');
      expect(last?.printed.map(({ text }) => text)).to.deep.equal(['last']);
    }
    for (const round of rounds) expect(seen(`/echo?away0${round}`), round).to.equal(1);
  });

  it('that are dismissed get no more time than others', async () => {
    const wallMs = 2_000;
    const hasty = startSandbox({ limits: { ...LIMITS, wallMs }, threads: 2 * ALONE });
    try {
      // In a thread of its own it ends in time.
      await until(async () => {
        const run = await sharing(
          `
          await new Promise((resolve) => setTimeout(resolve, ${0.6 * wallMs}));
          await ask('/echo?late${Math.random()}', { method: 'POST' });
          return 'done';`,
          hasty,
        );
        const { failure, used } = await run({});
        if (failure !== undefined) expect(failure.message).to.equal(`it did not answer within ${wallMs} ms`);
        return failure?.kind === 'wall' && used.wallMs >= wallMs - 1;
      });
    } finally {
      await hasty.stop();
    }
  });

  it('may send anything as a request: an invalid one is an error of theirs', async () => {
    const run = await sharing(`
      if (context.spoil) JSON.stringify = () => context.spoil;
      try { await ask('/echo'); } catch (error) { return 'refused'; }
      return 'done';`);
    for (const spoil of [
      '{',
      'null',
      '[]',
      '{"method":1}',
      '{"url":"http://169.254.169.254/","method":"GET","headers":[]}',
    ]) {
      const [one, other] = await Promise.all([run({ spoil }), run({})]);
      expect(one?.failure ?? one?.result).to.not.equal('done');
      expect(other?.result).to.equal('done');
    }
  });

  it('run in turn in the shared thread, too', async () => {
    const run = await sharing('return 1;');
    expect((await run({})).result).to.equal(1);
    const source = `async (index) => {
      const { url } = JSON.parse(await (await fetch('${provider.url}/echo?turn' + index)).text());
      const before = typeof left;
      globalThis.left = index;
      return [{ method: 'tell', args: [url, before] }];
    }`;
    const inTurn = () =>
      sandbox.scripts.runAll({
        passing: { methods: ['tell'], most: 20 },
        runs: [0, 1, 2].map((index) => ({
          of: 'turn',
          askedBy: undefined,
          source,
          entry: 'run',
          args: [index],
        })),
      });
    for (let n = 0; n < 4; n++) await inTurn();
    for (const outcomes of await Promise.all(Array.from({ length: 10 }, inTurn))) {
      expect(outcomes.map(({ result }) => result)).to.deep.equal(
        [0, 1, 2].map((index) => [{ method: 'tell', args: [`/echo?turn${index}`, 'undefined'] }]),
      );
    }
  });

  it('are ended with the server', async () => {
    const ending = startSandbox({ limits: LIMITS, threads: 2 * ALONE });
    const run = await sharing(`await ask('/held');`, ending);
    const before = seen('/held');
    holds = true;
    const waiting = run({});
    await until(() => seen('/held') > before);
    await ending.stop();
    holds = false;
    expect((await waiting).failure)
      .to.have.property('kind')
      .that.is.oneOf(['busy', 'crashed']);
  });
});
