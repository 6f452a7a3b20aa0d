// What a run leaves behind in the memory of its sandbox: nothing, compared byte by byte.

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { compute } from '../../src/capabilities/scripts/host-functions.ts';
import { moduleLoader, withLessMemory } from '../../src/capabilities/scripts/module.ts';
import {
  createSandbox,
  ignoreMappedArguments,
  type Sandbox,
} from '../../src/capabilities/scripts/sandbox.ts';
import { createPages, snapshot } from '../../src/capabilities/scripts/scripts-snapshot.ts';

const MIB = 1024 * 1024;
const SECRET = 'a-secret-of-one-run-alone';

describe('the memory of a sandbox', () => {
  let wasmModule: WebAssembly.Module;
  const pages = createPages();
  /** What the scripts answered. */
  const answers: unknown[] = [];
  before(async () => {
    wasmModule = await moduleLoader()();
  });

  /** Makes a sandbox, and returns its memory, too. */
  const make = async () => {
    const { Memory } = WebAssembly;
    let memory: WebAssembly.Memory | undefined;
    class Seen extends Memory {
      constructor(limits: { initial: number; maximum: number }) {
        super(limits);
        memory = this;
      }
    }
    WebAssembly.Memory = Seen;
    const called: string[] = [];
    try {
      const sandbox = await createSandbox({
        wasmModule,
        memoryBytes: 32 * MIB,
        prepared: [],
        pages,
        isOver: () => false,
        mayGrow: () => true,
        host: (name, args) => {
          called.push(name);
          if (name === 'succeed' || name === 'fail') answers.push(args[name === 'fail' ? 1 : 0]);
          return ['succeed', 'fail', 'request', 'wake'].includes(name) ? undefined : compute(name, args);
        },
      });
      return { sandbox, called, bytes: () => Buffer.from(memory?.buffer ?? new ArrayBuffer(0)) };
    } finally {
      WebAssembly.Memory = Memory;
    }
  };
  const start = (sandbox: Sandbox, body: string) =>
    sandbox.call('start', [
      `function (secret, callback) { ${body} }`,
      'run',
      JSON.stringify([SECRET]),
      JSON.stringify({ also: SECRET }),
      '',
    ]);

  const bodies: [string, string][] = [
    ['answered', 'callback(null, secret + also)'],
    [
      'waits for an answer and a timer',
      `fetch('https://provider.test/' + secret, { headers: { secret } }); setTimeout(() => secret, 1e6);`,
    ],
    ['threw', 'throw new Error(secret)'],
    [
      'changed what all have',
      'Object.prototype.left = secret; JSON.parse = () => secret; globalThis.left = also;',
    ],
    ['left work behind', 'for (let n = 0; n < 1000; n++) Promise.resolve(secret + n).then(() => secret);'],
    [
      'called itself deeply',
      'const deep = (n) => n === 0 ? secret : deep(n - 1) + n; callback(null, deep(500))',
    ],
    ['made it grow', 'globalThis.all = Array.from({ length: 60000 }, (_, n) => secret + n)'],
  ];
  it('is restored after each run, whatever the run did', async () => {
    const { sandbox, bytes } = await make();
    const before = Buffer.from(bytes());
    for (const [what, body] of bodies) {
      start(sandbox, body);
      expect(bytes().includes(SECRET), what).to.equal(true);
      expect(sandbox.reset(), what).to.equal(true);
      const after = bytes();
      expect(after.subarray(0, before.length).equals(before), what).to.equal(true);
      expect(
        after.subarray(before.length).every((byte) => byte === 0),
        what,
      ).to.equal(true);
    }
    expect(bytes().length).to.be.greaterThan(before.length);
    // The next run works as before.
    const { called, ...other } = await make();
    for (const one of [sandbox, other.sandbox]) expect(start(one, 'callback(null, 1)')).to.equal(undefined);
    expect(called).to.include('succeed');
  });

  it('is not reused once it has become large', async () => {
    const { sandbox } = await make();
    start(sandbox, 'globalThis.all = Array.from({ length: 200000 }, (_, n) => secret.repeat(2) + n)');
    expect(sandbox.memoryBytes()).to.be.greaterThan(16 * MIB);
    expect(sandbox.reset()).to.equal(false);
  });

  it('is not corrupted when garbage is collected while a sloppy function reads its arguments', async () => {
    const { sandbox } = await make();
    const bodies: [string, string][] = [
      ['parameters', 'function f(a, b) { const given = arguments; work(); return given.length + given[1] }'],
      [
        'parameters that were set',
        'function f(a, b) { arguments[1] = 1; work(); b++; return arguments.length + arguments[1] }',
      ],
      [
        'parameters that outlive it',
        `const kept = [];
        const one = (a, b) => function (c, d) { const x = { given: arguments }; x.x = x; return () => [x, a, d] };
        function f(a, b) {
          for (let n = 0; n < 20; n++) { const made = one(a, b)({ n }, b); arguments[0] = made; kept.push(made, arguments) }
          work();
          return kept.filter((each) => typeof each !== 'function' || each()[0].given[1] === 2).length / 10;
        }`,
      ],
      [
        'garbage with them',
        `function f(a, b) {
          const cycle = function (one) { one.given = arguments; arguments.self = arguments; one.fn = () => arguments };
          const alone = function (one, other) { arguments.self = arguments; one.other = other; return new WeakRef(one) };
          const seen = [];
          for (let n = 0; n < 1000; n++) { cycle({ a, n }, {}); seen.push(alone({ n }, [b])) }
          for (let n = 0; n < 3; n++) work();
          return arguments.length + seen.filter((one) => (one.deref() ?? { other: [2] }).other[0] === b).length / 500;
        }`,
      ],
    ];
    const work = 'const work = () => { for (let n = 0; n < 60000; n++) { const x = {}; x.x = x } };';
    for (const [what, body] of bodies) {
      answers.length = 0;
      start(sandbox, `${work} ${body} callback(null, f({}, 2))`);
      expect(answers, what).to.deep.equal(['4']);
      expect(sandbox.reset(), what).to.equal(true);
    }
  });

  it('is left alone when the engine is of another version', () => {
    const memory = new WebAssembly.Memory({ initial: 1, maximum: 1 });
    const words = new Uint32Array(memory.buffer);
    const runtime = 1024;
    const classes = (at: number, mapped: number) => {
      for (let number = 1; number <= 64; number++) words.set([number, 7, 8, 9, 0, 0], at / 4 + number * 6);
      words.set([9, 7, mapped, mapped], at / 4 + 9 * 6);
    };
    const fails = (what: string) => {
      const before = words.slice();
      expect(() => ignoreMappedArguments(memory, runtime), what).to.throw('another version');
      expect(words, what).to.deep.equal(before);
    };
    fails('nothing there');
    words[runtime / 4 + 20] = 4096;
    classes(4096, 8);
    fails('other classes');
    classes(4096, 3);
    classes(8192, 3);
    words[runtime / 4 + 21] = 8192;
    fails('twice');
    words[runtime / 4 + 21] = 0;
    ignoreMappedArguments(memory, runtime);
    expect([...words.subarray(4096 / 4 + 54, 4096 / 4 + 60)]).to.deep.equal([9, 7, 3, 0, 0, 0]);
  });

  it('reuses what only cycles refer to, however many there are', async () => {
    const { sandbox } = await make();
    answers.length = 0;
    // Far more than the memory could hold.
    const cycles = 'let n = 0; for (; n < 600000; n++) { const x = { n }; x.x = x; } callback(null, n)';
    start(sandbox, cycles);
    expect(answers).to.deep.equal(['600000']);
    expect(sandbox.reset()).to.equal(true);
  });

  it('has a stack that no recursion of a script can exhaust', async () => {
    const { sandbox, bytes } = await make();
    const before = Buffer.from(bytes());
    // Between the constants and the used end of the stack.
    const free = before.indexOf(Buffer.alloc(256 * 1024));
    const deep = ['f() + 1', '[2, 1].sort(f)', "'a'.replace(/a/, f)", "(0, eval)('{'.repeat(50000))"];
    const each = deep.map(
      (one) => `try { const f = () => ${one}; f() } catch (error) { all.push(error.message) }`,
    );
    answers.length = 0;
    start(sandbox, `const all = []; ${each.join(' ')} callback(null, all)`);
    const exceeded = 'Maximum call stack size exceeded';
    expect(JSON.parse(String(answers[0]))).to.deep.equal(deep.map(() => exceeded));
    const after = bytes().subarray(free);
    expect(after.equals(before.subarray(free))).to.equal(false);
    expect(after.subarray(0, 128 * 1024).every((byte) => byte === 0)).to.equal(true);
    expect(free).to.be.greaterThan(0);
  });

  it('is laid out anew only in the known version of the engine', () => {
    const file = import.meta.resolve('@jitl/quickjs-ng-wasmfile-release-sync/wasm');
    const engine = readFileSync(fileURLToPath(file));
    expect(withLessMemory(engine).length).to.equal(engine.length);
    // The address of its heap, as the constants hold it.
    const heap = engine.lastIndexOf(Buffer.from([0x70, 0x86, 0x51]));
    const other = Buffer.from(engine);
    other[heap] = 0x71;
    const twice = Buffer.from(engine);
    engine.copy(twice, heap - 300, heap, heap + 3);
    for (const one of [other, twice]) expect(() => withLessMemory(one)).to.throw('another version');
  });

  it('is restored wherever it was changed', () => {
    const memory = new WebAssembly.Memory({ initial: 8, maximum: 16 });
    Buffer.from(memory.buffer).fill(7, 100, 70_000);
    const before = Buffer.from(Buffer.from(memory.buffer));
    const { restore } = snapshot(memory, createPages());
    for (let at = 0; at < before.length; at += 1021) {
      for (const place of [at, before.length - 1]) Buffer.from(memory.buffer)[place] = 255;
      expect(restore()).to.equal(true);
      expect(Buffer.from(memory.buffer).equals(before), String(at)).to.equal(true);
    }
  });
});
