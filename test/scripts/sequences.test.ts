// Scripts that run one after the other in one call of a thread. Each still knows nothing of those before it.
import { expect } from 'chai';
import type { ScriptOutcome } from '../../src/capabilities/scripts/scripts.ts';
import { type Provider, startProvider, startSandbox } from './support.ts';

const MIB = 1024 * 1024;
const LIMITS = { cpuMs: 30_000, memoryBytes: 32 * MIB };

/** A result after which the next script may begin. */
const told = (value: string) => `[{ method: 'tell', args: [${value}] }]`;

describe('scripts that run in turn', () => {
  let provider: Provider;
  let sandbox: ReturnType<typeof startSandbox>;
  before(async () => {
    provider = await startProvider();
    sandbox = startSandbox({ limits: LIMITS });
  });
  after(async () => {
    await sandbox.stop();
    await provider.stop();
  });

  /** Runs functions that are called with a callback and their index. */
  const inTurn = (bodies: readonly string[], passing = ['tell', 'show'], of = 'turn') =>
    sandbox.scripts.runAll({
      passing: { methods: passing, most: 20 },
      runs: bodies.map((body, index) => ({
        of,
        askedBy: undefined,
        source: `function (index, cb) { ${body} }`,
        entry: 'run',
        args: [index],
      })),
    });
  const results = (outcomes: readonly ScriptOutcome[]) =>
    outcomes.map(({ result, failure }) => failure?.kind ?? result);
  const tells = (value: string) => `cb(null, ${told(value)})`;
  const said = (value: unknown) => [{ method: 'tell', args: [value] }];

  it('all run, each with its own arguments', async () => {
    const outcomes = await inTurn([tells('index'), tells('index'), 'cb(null, "last")']);
    expect(results(outcomes)).to.deep.equal([said(0), said(1), 'last']);
  });

  const endings: [string, string][] = [
    [
      'a command after which the next must not begin',
      `cb(null, [{ method: 'tell', args: [] }, { method: 'deny', args: [] }])`,
    ],
    ['a result that is no list', 'cb(null, { method: "tell", args: [] })'],
    ['an invalid command', 'cb(null, [null])'],
    ['arguments that are no list', 'cb(null, [{ method: "tell", args: "x" }])'],
    ['more commands than there may be', `cb(null, Array(21).fill({ method: 'tell', args: [] }))`],
    ['its error', 'cb(new Error("no"))'],
    ['no answer', ''],
    ['a limit', 'cb(null, "x".repeat(100001))'],
    [
      'a result that was manipulated to be invalid JSON',
      `const real = Array.prototype[Symbol.iterator];
       const isWritten = (one) => one.length === 1 && one[0] === '"x"';
       Array.prototype[Symbol.iterator] = function () { return real.call(isWritten(this) ? ['{'] : this); };
       cb(null, 'x')`,
    ],
  ];
  for (const [what, body] of endings) {
    it(`stop before the next one after ${what}`, async () => {
      const before = provider.seen.length;
      const asks = `request.get('${provider.url}/echo', () => cb(null, 1))`;
      const outcomes = await inTurn([tells('1'), body, asks]);
      expect(outcomes).to.have.length(2);
      // The thread that ran them has been used by others meanwhile.
      expect(results(await inTurn(['cb(null, 2)']))).to.deep.equal([2]);
      expect(provider.seen.length).to.equal(before);
    });
  }

  it('stop before one whose source is too long, which may run alone', async () => {
    const outcomes = await inTurn([tells('1'), `/* ${'x'.repeat(102_400)} */`]);
    expect(results(outcomes)).to.deep.equal([said(1)]);
  });

  it('find nothing that earlier ones left: names, prototypes, modules, prepared objects', async () => {
    const leaves = `
      globalThis.left = 1; Object.prototype.left = 1; Array.prototype.push = () => 'left';
      JSON.stringify = ((before) => (x) => before(x))(JSON.stringify); JSON.stringify.left = 1;
      require('lodash').left = 1; Promise.prototype.then.left = 1; Math.left = 1;
      ${tells('index')}`;
    const looks = `
      const found = [typeof left, typeof {}.left, [].push(1), JSON.stringify.left, require('lodash').left,
        Promise.prototype.then.left, Math.left].map(String);
      ${tells('found.join()')}`;
    const outcomes = await inTurn([leaves, looks, leaves, looks]);
    const nothing = 'undefined,undefined,1,undefined,undefined,undefined,undefined';
    expect(results(outcomes)).to.deep.equal([said(0), said(nothing), said(2), said(nothing)]);
  });

  it('are not called by timers, promises or answers of earlier ones', async () => {
    const leaves = `
      setTimeout(() => console.log('timer'), 1); setInterval(() => console.log('interval'), 1);
      Promise.resolve().then(() => {}).then(() => console.log('promise'));
      request.get('${provider.url}/echo', () => console.log('answer'));
      fetch('${provider.url}/echo').then(() => console.log('answer'));
      ${tells('1')}`;
    const waits = `
      let left = 20;
      const again = () => request.get('${provider.url}/userinfo', () => --left === 0 ? cb(null, 'done') : setTimeout(again, 2));
      left = 8; again();`;
    const [first, second] = await inTurn([leaves, waits]);
    expect(first?.result).to.deep.equal(said(1));
    expect(second?.result).to.equal('done');
    expect(second?.printed).to.deep.equal([]);
  });

  it('begin with their own limits, and have only their own output', async () => {
    const asks = `
      console.log('run ' + index);
      let left = 9;
      const next = () => left-- === 0 ? cb(null, ${told('1')}) : request.get('${provider.url}/echo', next);
      next();`;
    const outcomes = await inTurn([asks, asks, 'console.log("run " + index); cb(null, 1)']);
    expect(outcomes.map(({ printed }) => printed.map(({ text }) => text))).to.deep.equal([
      ['run 0'],
      ['run 1'],
      ['run 2'],
    ]);
    expect(outcomes.map(({ used }) => used.requests)).to.deep.equal([9, 9, 0]);
  });

  it('are not affected by an earlier one that grew the memory or was cut off in a call', async () => {
    const grows = `const x = new Uint8Array(${20 * MIB}).fill(7); ${tells('x.length')}`;
    const looks = `
      const bytes = new Uint8Array(${18 * MIB});
      ${tells('bytes.indexOf(7) === -1')}`;
    const outcomes = await inTurn([grows, looks, tells('index')]);
    expect(results(outcomes)).to.deep.equal([said(20 * MIB), said(true), said(2)]);
    const cut = `${tells('1')}; (function f() { try { f() } finally { for (;;); } })()`;
    const [first, second] = await inTurn([cut, 'cb(null, [typeof f, 6 * 7])']);
    expect(first?.result).to.deep.equal(said(1));
    expect(second?.result).to.deep.equal(['undefined', 42]);
  });

  it('get other random numbers than earlier ones', async () => {
    const random = tells(
      `[Math.random(), crypto.randomUUID(), crypto.randomBytes(8).toString('hex')].join()`,
    );
    const outcomes = await Promise.all(Array.from({ length: 5 }, () => inTurn([random, random, random])));
    const all = outcomes.flat().map(({ result }) => JSON.stringify(result));
    expect(new Set(all).size).to.equal(15);
    const numbers = outcomes.flat().map(({ result }) => String((result as [{ args: [string] }])[0].args[0]));
    expect(new Set(numbers.map((one) => one.split(',')[0])).size).to.equal(15);
  });

  it('get their own arguments when fifty run at once', async () => {
    const keeps = `globalThis.seen = (globalThis.seen ?? []).concat(mine); ${tells('seen.join()')}`;
    const asks = `request.get('${provider.url}/echo?' + mine, (e, r, body) =>
      cb(null, [mine, JSON.parse(body).url.split('?')[1], typeof seen].join()))`;
    const outcomes = await Promise.all(
      Array.from({ length: 50 }, (_, n) =>
        inTurn([`const mine = ${n}; ${keeps}`, `const mine = ${n}; ${asks}`], ['tell'], `of ${n % 4}`),
      ),
    );
    expect(outcomes.map(results)).to.deep.equal(
      Array.from({ length: 50 }, (_, n) => [said(String(n)), `${n},${n},undefined`]),
    );
  });

  it('end with one that has to be terminated, while other scripts run', async () => {
    const hasty = startSandbox({ limits: { ...LIMITS, cpuMs: 400 }, threads: 4 });
    try {
      const run = (source: string) => ({ of: 'turn', askedBy: undefined, source, entry: 'run', args: [] });
      const outcomes = await hasty.scripts.runAll({
        passing: { methods: ['tell'], most: 20 },
        runs: [
          run(`(cb) => cb(null, ${told('1')})`),
          run('(cb) => cb(null, new Array(1e9) + "")'),
          run('(cb) => cb(null, 1)'),
        ],
      });
      expect(outcomes[0]?.result).to.deep.equal(said(1));
      expect(outcomes[1]?.failure?.kind).to.be.oneOf(['cpu', 'memory']);
      expect(outcomes).to.have.length(2);
      expect((await hasty.scripts.run(run('(cb) => cb(null, 2)'))).result).to.equal(2);
    } finally {
      await hasty.stop();
    }
  });
});
