// Hostile scripts: they cannot leave the sandbox, they end at their limits, and other scripts go on.
import diagnostics from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import { expect } from 'chai';
import type { ScriptFailureKind } from '../../src/capabilities/scripts/limits.ts';
import { stopwatch } from '../support/timing.ts';
import { type Provider, startProvider, startSandbox } from './support.ts';

const MIB = 1024 * 1024;
/** A busy machine gives a script its share of the processor late. */
const LIMITS = { wallMs: 60_000, cpuMs: 400, graceMs: 100, memoryBytes: 32 * MIB };
/** Other scripts must be answered within this time, or before the hostile one has ended, milliseconds. */
const MEANWHILE = 1_000;

describe('a hostile script', () => {
  let provider: Provider;
  let sandbox: ReturnType<typeof startSandbox>;
  /** For scripts that idle until their time is over. */
  let hasty: ReturnType<typeof startSandbox>;
  /** For scripts that exceed another limit, however long that takes on a busy machine. */
  let roomy: ReturnType<typeof startSandbox>;
  /** For scripts that use the processor until they are ended; each uses its full limit. */
  let brief: ReturnType<typeof startSandbox>;
  before(async () => {
    provider = await startProvider({
      '/inside': (_request, response) =>
        response.writeHead(302, { location: 'http://169.254.169.254/latest/meta-data/' }).end(),
      '/other': (_request, response) => response.writeHead(307, { location: 'http://127.0.0.2/' }).end(),
      '/large': (_request, response) => response.end(Buffer.alloc(5 * MIB, 'x')),
    });
    sandbox = startSandbox({ limits: LIMITS, threads: 4 });
    hasty = startSandbox({ limits: { ...LIMITS, wallMs: 2_000 }, threads: 4 });
    roomy = startSandbox({ limits: { ...LIMITS, cpuMs: 30_000 }, threads: 4 });
    brief = startSandbox({ limits: { ...LIMITS, cpuMs: 150 }, threads: 4 });
  });
  after(async () => {
    await sandbox.stop();
    await hasty.stop();
    await roomy.stop();
    await brief.stop();
    await provider.stop();
  });
  const script = (body: string) => `function (token, context, cb) { ${body} }`;

  /** Runs a hostile script and an innocent one beside it. @returns the outcome of the hostile one. */
  const beside = async (body: string, one = sandbox) => {
    // Two idle threads, so that the time to start one on a busy machine is not measured.
    const waits = 'async () => new Promise((resolve) => setTimeout(resolve, 20, 1))';
    await Promise.all([one.run(waits, { of: 'a' }), one.run(waits, { of: 'b' })]);
    let isOver = false;
    const outcome = one.run(script(body), { of: 'hostile' }).finally(() => {
      isOver = true;
    });
    const time = stopwatch();
    const innocent = await one.run(script('cb(null, { user_id: 1 })'), { of: 'innocent' });
    expect(innocent.result).to.deep.equal({ user_id: 1 });
    // A busy machine may take longer for both, but the innocent script has not waited for the other.
    if (isOver) expect(time()).to.be.below(MEANWHILE);
    return outcome;
  };

  describe('finds nothing of the process', () => {
    const chains = [
      'this.constructor.constructor("return process")()',
      'cb.constructor("return process")()',
      'Function("return process")()',
      '(async () => {}).constructor("return process")()',
      '(function* () {}).constructor("return process")().next()',
      'context.constructor.constructor("return process")()',
      'request.constructor.constructor("return process")()',
      'request.get.constructor.constructor("return process.mainModule")()',
      'console.log.constructor("return process")()',
      'require.constructor("return process")()',
      '(() => { try { new URL("x") } catch (e) { return e.constructor.constructor("return process")() } })()',
      '(() => { try { crypto.createHash("x").digest() } catch (e) { return e.constructor.constructor("return process")() } })()',
      '(() => { try { (function f() { f() })() } catch (e) { return e.constructor.constructor("return process")() } })()',
      '(() => { Error.prepareStackTrace = (e, frames) => frames; const s = new Error().stack; return s[0].getThis().process.pid })()',
      'Buffer.from("x").buffer.constructor.constructor("return process")()',
      'Reflect.construct(Function, ["return process"])()',
      'eval("process")',
      'setTimeout.constructor("return process")()',
      'arguments.callee.caller.arguments.callee.constructor("return process")()',
    ];
    for (const chain of chains) {
      it(`through ${chain}`, async () => {
        const { failure, result } = await sandbox.run(`async ${script(`cb(null, typeof (await ${chain}))`)}`);
        expect(result).to.equal(undefined);
        expect(failure).to.include({ kind: 'script' });
      });
    }

    it('through a name', async () => {
      const names = [
        'process',
        'WebAssembly',
        'Worker',
        'importScripts',
        'Deno',
        'Bun',
        'std',
        'os',
        'bjson',
        'print',
      ];
      names.push(
        'scriptArgs',
        'SharedArrayBuffer',
        'Atomics',
        'host',
        'load',
        'window',
        'self',
        'XMLHttpRequest',
      );
      const { result } = await sandbox.run(
        script(`cb(null, ${JSON.stringify(names)}.filter((n) => typeof globalThis[n] !== 'undefined'))`),
      );
      expect(result).to.deep.equal([]);
    });

    it('through an import', async () => {
      for (const name of [
        'fs',
        'node:fs',
        'std',
        'os',
        './runtime.js',
        '/etc/passwd',
        'data:text/javascript,1',
      ]) {
        const { failure } = await sandbox.run(`async () => Object.keys(await import('${name}'))`);
        expect(failure, name).to.include({ kind: 'script' });
      }
      expect((await sandbox.run('async () => import.meta.url')).failure).to.include({ kind: 'syntax' });
    });

    it('in errors, which have neither paths nor frames of the server', async () => {
      const { result } = await sandbox.run(
        script(
          'try { crypto.createHmac("sha256", {}) .digest() } catch (e) { cb(null, e.message + e.stack) }',
        ),
      );
      expect(result)
        .to.be.a('string')
        .and.not.match(/\/src\/|node:|worker|\.ts/);
    });
  });

  describe('leaves nothing behind', () => {
    const pollutions = [
      'Object.prototype.user_id = "evil"',
      'Array.prototype.map = () => "evil"; Array.prototype[Symbol.iterator] = null',
      'JSON.stringify = () => \'{"user_id":"evil"}\'; JSON.parse = () => ({ user_id: "evil" })',
      'Promise.prototype.then = function () { return this }; globalThis.Promise = null',
      'Function.prototype.call = Function.prototype.apply = () => "evil"',
      'Map.prototype.get = Map.prototype.set = () => undefined',
      'globalThis.request = globalThis.fetch = globalThis.Buffer = () => "evil"',
      'require("axios").defaults.headers.common.Authorization = "evil"; require("lodash").get = () => "evil"',
      'String.prototype.trim = () => "(a,c,cb) => cb(null, 7)"; globalThis.eval = () => () => 7',
      'Object.defineProperty(Object.prototype, "then", { get() { throw 1 } })',
      'Object.freeze(globalThis)',
      'globalThis.fetchUserProfile = (a, c, cb) => cb(null, "evil")',
    ];
    // One thread, so that the next run finds what a run leaves behind.
    let alone: ReturnType<typeof startSandbox>;
    before(() => {
      alone = startSandbox({ limits: LIMITS, threads: 1 });
    });
    after(() => alone.stop());
    for (const pollution of pollutions) {
      it(pollution.slice(0, 60), async () => {
        await alone.run(script(`${pollution}; cb(null, 1)`));
        const { result } = await alone.run(
          'async (t) => ({ own: ({}).user_id ?? null, list: [1].map((x) => x + 1), json: JSON.parse(JSON.stringify({ a: [t] })), bytes: Buffer.from("a").length, axios: typeof require("axios").defaults.headers.common.Authorization })',
        );
        expect(result).to.deep.equal({
          own: null,
          list: [2],
          json: { a: ['token'] },
          bytes: 1,
          axios: 'undefined',
        });
        expect((await alone.run('({})')).failure).to.include({ kind: 'syntax' });
      });
    }

    it('after fifty runs, each with another pollution', async () => {
      const ways = [
        'cb(null, 1)',
        'throw new Error("no")',
        'const all = []; for (;;) all.push(new Uint8Array(1e6))',
        '(function f() { f() })()',
        'globalThis.left = "behind".repeat(1e5); setInterval(() => {}, 1); cb(null, 1)',
        'Promise.reject(1); cb(null, [require("jose"), require("lodash")].length)',
        'console.log("x".repeat(1e5)); cb()',
      ];
      for (let n = 0; n < 50; n++) await alone.run(script(ways[n % ways.length] ?? ''));
      const { result, used } = await alone.run(
        'async (t) => [t, typeof left, [1, 2].map((x) => x * 2), Buffer.from("ü").length]',
      );
      expect(result).to.deep.equal(['token', 'undefined', [2, 4], 2]);
      expect(used.memoryBytes).to.equal(16 * MIB);
    });

    it('and gets other random numbers than the run before', async () => {
      const source =
        'async () => [Math.random(), crypto.randomUUID(), crypto.randomBytes(8).toString("hex")]';
      const runs = [];
      for (let n = 0; n < 5; n++) runs.push((await alone.run(source)).result as unknown[]);
      expect(new Set(runs.flat()).size).to.equal(15);
      const many = await alone.run('async () => Array.from({ length: 1000 }, Math.random)');
      for (const one of many.result as number[]) expect(one).to.be.within(0, 1).and.not.equal(1);
      expect(new Set(many.result as number[]).size).to.equal(1000);
    });

    it('in this process, because a result is only data', async () => {
      const source =
        'cb(null, JSON.parse(\'{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},"toJSON":1}\'))';
      const { result } = await sandbox.run(script(source));
      expect(Object.keys(result as object)).to.deep.equal(['constructor', 'toJSON']);
      expect(({} as Record<string, unknown>).polluted).to.equal(undefined);
      expect(
        (await sandbox.run(script('cb(null, { toJSON: () => ({ user_id: 2 }) })'))).result,
      ).to.deep.equal({ user_id: 2 });
    });
  });

  describe('is stopped at its limits, while others are answered:', () => {
    const bombs: [string, string, ScriptFailureKind[]][] = [
      ['a loop', 'for (;;);', ['cpu']],
      [
        'a loop that catches everything',
        'for (;;) { try { for (;;); } catch {} finally { continue } }',
        ['cpu'],
      ],
      ['a loop after the callback was lost', 'setTimeout(() => { for (;;); })', ['cpu']],
      ['a loop in a promise', 'Promise.resolve().then(() => { for (;;); })', ['cpu']],
      ['a flood of promises', '(function f() { Promise.resolve().then(f) })()', ['cpu', 'memory']],
      [
        'a growing flood of promises',
        '(function f() { Promise.resolve().then(f); Promise.resolve().then(f) })()',
        ['cpu', 'memory'],
      ],
      [
        'a flood of async functions',
        '(async function f() { await Promise.all([f(), f()]) })()',
        ['cpu', 'memory', 'script'],
      ],
      ['a flood of timers', 'for (;;) setTimeout(() => {}, 1e6)', ['cpu', 'memory']],
      ['timers without an end', 'setInterval(() => {}, 1)', ['wall', 'cpu']],
      [
        'a generator',
        '(function* () { for (;;) yield 1 })().forEach?.(() => 1); for (const x of (function* () { for (;;) yield 1 })());',
        ['cpu'],
      ],
      ['a regular expression', '/^(a+)+$/.test("a".repeat(40) + "b"); cb(null, 1)', ['cpu']],
      [
        'a replacement',
        'let s = "a"; for (;;) s = s.replace(/(a*)*b?/g, "$1$1a")',
        ['cpu', 'memory', 'script'],
      ],
      ['an array that becomes text', 'cb(null, new Array(1e9) + "")', ['cpu', 'memory']],
      [
        'a join of an endless array',
        'cb(null, Array.prototype.join.call({ length: 2 ** 53 - 1 }, "x"))',
        ['cpu', 'memory', 'script'],
      ],
      [
        'a search through an endless array',
        'Array.prototype.indexOf.call({ length: 2 ** 53 - 1 }, 1)',
        ['cpu'],
      ],
      [
        'a sort',
        'const x = Array.from({ length: 3e5 }, (_, i) => i % 7); for (;;) x.sort(() => Math.random() - 0.5)',
        ['cpu', 'memory'],
      ],
      ['a big number', 'let n = 3n; for (;;) n **= 3n', ['cpu', 'memory', 'script']],
      ['objects', 'const x = []; for (;;) x.push({ x, y: [x, x, x, x, x, x, x, x] })', ['memory']],
      ['arrays of bytes', 'const x = []; for (;;) x.push(new Uint8Array(1e6))', ['memory']],
      ['one large array of bytes', 'cb(null, new Uint8Array(2e9).length)', ['memory', 'script']],
      ['text', 'let s = "x"; const all = []; for (;;) { s += s; all.push(s + 1) }', ['memory', 'script']],
      ['text that is repeated', 'cb(null, "x".repeat(2 ** 29).length)', ['memory', 'script']],
      ['padding', 'cb(null, "x".padEnd(2 ** 29, "yz").length)', ['memory', 'script']],
      ['a map', 'const m = new Map(); for (let i = 0; ; i++) m.set({}, i)', ['memory', 'cpu']],
      [
        'Buffers of the host',
        'const x = []; for (;;) x.push(Buffer.from("x".repeat(1e6)))',
        ['memory', 'cpu'],
      ],
      ['recursion', '(function f() { f() })()', ['script']],
      [
        'recursion through the engine',
        'let o = {}; for (let i = 0; i < 1e5; i++) o = { o }; JSON.stringify(o); cb(null, 1)',
        ['script', 'crashed', 'memory', 'cpu'],
      ],
      ['recursion through a getter', 'const o = { get x() { return this.x } }; o.x', ['script', 'crashed']],
      [
        'recursion through a proxy',
        'let p = {}; for (let i = 0; i < 1e5; i++) p = new Proxy(p, {}); p.x; cb(null, 1)',
        ['script', 'crashed', 'memory', 'cpu'],
      ],
      ['deep source', 'eval("(".repeat(1e5) + ")".repeat(1e5))', ['script', 'crashed', 'memory']],
      ['an error whose message never ends', 'throw { get message() { for (;;); } }', ['cpu']],
      ['a result whose member never ends', 'cb(null, { get user_id() { for (;;); } })', ['cpu']],
      ['a thenable that never ends', 'return { then() { for (;;); } }', ['cpu']],
      ['a result of its own size', 'cb(null, "x".repeat(100001))', ['output']],
      ['waiting', 'setTimeout(() => cb(null, 1), 1e9)', ['wall']],
      ['waiting for a provider', `request.get("URL_/slow", cb)`, ['wall']],
      ['an answer that is too large', `request.get("URL_/large", (e) => cb(e))`, ['script']],
    ];
    for (const [what, body, kinds] of bombs) {
      it(what, async () => {
        const { failure, result } = await beside(
          body.replaceAll('URL_', provider.url),
          kinds.includes('wall') ? hasty : kinds.includes('cpu') ? brief : roomy,
        );
        expect(result).to.equal(undefined);
        expect(failure?.kind, failure?.message).to.be.oneOf(kinds);
      });
    }

    it('printing', async () => {
      const lines = await beside(
        'for (let i = 0; i < 3000; i++) console.log(""); console.log("y".repeat(1e6)); cb(null, 1)',
        roomy,
      );
      expect(lines.result).to.equal(1);
      expect(lines.printed.length).to.be.below(2_100);
      const large = await beside('console.log("y".repeat(1e6)); console.log("small"); cb(null, 1)', roomy);
      expect(JSON.stringify(large.printed).length).to.be.below(100_200);
    });

    it('more than ten requests, of which the eleventh is not made', async () => {
      const before = provider.seen.length;
      const { failure, used } = await beside(
        `
        let left = 11;
        const next = () => left-- === 0 ? cb(null, 1) : request.get('${provider.url}/echo', next);
        next();`,
        roomy,
      );
      expect(failure).to.include({ kind: 'requests' });
      expect([provider.seen.length - before, used.requests]).to.deep.equal([10, 11]);
      const burst = await beside(`for (let i = 0; i < 1000; i++) fetch('${provider.url}/echo')`, roomy);
      expect(burst.failure).to.include({ kind: 'requests' });
      expect(provider.seen.length - before).to.be.at.most(20);
    });

    it('a request whose body or headers are too large', async () => {
      for (const options of [
        'body: "x".repeat(1048577), method: "POST"',
        'headers: { a: "x".repeat(65536) }',
      ]) {
        const { failure } = await beside(`request({ url: '${provider.url}/echo', ${options} }, cb)`, roomy);
        expect(failure).to.include({ kind: 'script', message: 'the request is too large' });
      }
    });

    it('work after its answer', async () => {
      const before = provider.seen.length;
      const after = `request.get('${provider.url}/echo'); fetch('${provider.url}/echo'); setTimeout(() => fetch('${provider.url}/echo'), 1); for (;;);`;
      const { result } = await beside(`cb(null, 1); ${after}`);
      expect(result).to.equal(1);
      await sandbox.run(script('setTimeout(() => cb(null, 1), 50)'));
      expect(provider.seen.length).to.equal(before);
    });

    it('many runs of one connection, which does not get all threads', async () => {
      const bombs = Array.from({ length: 8 }, () => brief.run(script('for (;;);'), { of: 'hostile' }));
      const outcome = await beside('cb(null, 1)', brief);
      expect((await Promise.all(bombs)).map(({ failure }) => failure?.kind)).to.deep.equal(
        Array(8).fill('cpu'),
      );
      expect(outcome.result).to.equal(1);
    });

    it('many waiting runs of one connection, which does not get all places of the queue', async () => {
      const narrow = startSandbox({ limits: { ...LIMITS, cpuMs: 30_000 } });
      let ended = 0;
      const crowd = Array.from({ length: 520 }, async () => {
        const outcome = await narrow.run(script('setTimeout(() => cb(null, 1), 5)'), { of: 'hostile' });
        ended++;
        return outcome.failure?.kind;
      });
      const innocent = await narrow.run(script('cb(null, 2)'), { of: 'innocent' });
      const before = ended;
      await narrow.stop();
      expect(innocent.result).to.equal(2);
      const turnedAway = (await Promise.all(crowd)).filter((kind) => kind === 'busy').length;
      // All but 250 were rejected at once. Most of those that waited were behind the other connection.
      expect(turnedAway).to.be.at.least(520 - 251);
      expect(before).to.be.below(520 - 150);
    });
  });

  describe('cannot reach forbidden addresses:', () => {
    const sockets: Socket[] = [];
    const onSocket = (message: unknown) => void sockets.push((message as { socket: Socket }).socket);
    let narrow: ReturnType<typeof startSandbox>;
    let asked = 0;
    before(() => {
      narrow = startSandbox({
        limits: LIMITS,
        allow: ['127.0.0.1'],
        // The first answer is an allowed address, each later one is not.
        lookup: async (host) => [
          {
            address: host === 'inside.example' ? '10.0.0.1' : asked++ === 0 ? '127.0.0.1' : '127.0.0.2',
            family: 4,
          },
        ],
      });
      diagnostics.subscribe('net.client.socket', onSocket);
    });
    after(async () => {
      diagnostics.unsubscribe('net.client.socket', onSocket);
      await narrow.stop();
    });
    beforeEach(() => {
      sockets.length = 0;
    });

    for (const address of [
      'http://127.0.0.2/',
      'http://[::1]/',
      'http://0.0.0.0/',
      'http://169.254.169.254/latest/meta-data/',
      'https://10.0.0.1/',
      'http://0x7f.0.0.2/',
      'https://inside.example/',
      'file:///etc/passwd',
      'http://8.8.8.8/',
    ]) {
      it(`${address}, with any client`, async () => {
        const source = script(`
          const tell = (work) => Promise.resolve(work).then(() => 'reached', (e) => e.code ?? e.name);
          Promise.all([
            tell(fetch('${address}')), tell(require('axios').get('${address}')),
            tell(new Promise((r, j) => request('${address}', (e) => e ? j(e) : r()))),
          ]).then((all) => cb(null, all), cb)`);
        expect((await narrow.run(source)).result).to.deep.equal(['EACCES', 'EACCES', 'EACCES']);
        expect(sockets).to.deep.equal([]);
      });
    }

    it('through a redirect', async () => {
      for (const path of ['/inside', '/other']) {
        const { failure } = await narrow.run(
          script(`fetch('${provider.url}${path}').then(() => cb(null, 1), cb)`),
        );
        expect(failure?.message).to.match(/is not a public address/);
      }
      expect(sockets).to.have.length(2);
    });

    it('through a name whose address changes', async () => {
      const { port } = new URL(provider.url);
      const source = `async () => {
        const first = (await fetch('http://rebinding.example:${port}/echo')).status;
        return [first, await fetch('http://rebinding.example:${port}/echo').catch((e) => e.code)];
      }`;
      expect((await narrow.run(source)).result).to.deep.equal([200, 'EACCES']);
    });
  });

  it('gives no result when it makes the result invalid JSON', async () => {
    const source = script(`
      const real = Array.prototype[Symbol.iterator];
      const isWritten = (one) => one.length === 1 && one[0] === '"x"';
      Array.prototype[Symbol.iterator] = function () { return real.call(isWritten(this) ? ['{'] : this); };
      cb(null, 'x')`);
    const { failure } = await sandbox.run(source);
    expect(failure).to.deep.equal({ kind: 'script', name: 'TypeError', message: 'the result is no JSON' });
  });

  it('is rejected as busy when no thread can be started', async () => {
    const without = startSandbox({ limits: { memoryBytes: 65_536 } });
    const runs = await Promise.all([1, 2, 3].map(() => without.run(script('cb(null, 1)'))));
    expect(runs.map(({ failure }) => failure?.kind)).to.deep.equal(['busy', 'busy', 'busy']);
    await without.stop();
  });

  it('is rejected as busy when the server stops', async () => {
    const ending = startSandbox();
    const running = ending.run(script('setTimeout(() => cb(null, 1), 1e6)'));
    await new Promise((resolve) => setImmediate(resolve));
    await ending.stop();
    expect((await running).failure?.kind).to.be.oneOf(['crashed', 'busy']);
    expect((await ending.run(script('cb(null, 1)'))).failure).to.include({ kind: 'busy' });
  });
});
