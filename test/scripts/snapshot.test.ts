// What a run leaves in the memory of its sandbox: nothing, looked at byte by byte.
import { expect } from 'chai';
import { compute } from '../../src/scripts/host-functions.ts';
import { moduleLoader } from '../../src/scripts/module.ts';
import { createSandbox, type Sandbox } from '../../src/scripts/sandbox.ts';
import { createPages, snapshot } from '../../src/scripts/snapshot.ts';

const MIB = 1024 * 1024;
const SECRET = 'a-secret-of-one-run-alone';

describe('the memory of a sandbox', () => {
  let wasmModule: WebAssembly.Module;
  const pages = createPages();
  before(async () => {
    wasmModule = await moduleLoader()();
  });

  /** A sandbox, and its memory. */
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
        pages,
        isOver: () => false,
        host: (name, args) => {
          called.push(name);
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
  it('is, after each run, what it was before, whatever the run did', async () => {
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
    // And the next one runs as ever.
    const { called, ...other } = await make();
    for (const one of [sandbox, other.sandbox]) expect(start(one, 'callback(null, 1)')).to.equal(undefined);
    expect(called).to.include('succeed');
  });

  it('is not used again once it has become large', async () => {
    const { sandbox } = await make();
    start(sandbox, 'globalThis.all = Array.from({ length: 200000 }, (_, n) => secret.repeat(2) + n)');
    expect(sandbox.memoryBytes()).to.be.greaterThan(16 * MIB);
    expect(sandbox.reset()).to.equal(false);
  });

  it('is brought back wherever it was changed', () => {
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
