// The escape suite for every kind of script: with every trigger, a hostile script gets nothing out, leaves nothing
// behind, and what it was to decide is refused.
import diagnostics from 'node:diagnostics_channel';
import { expect } from 'chai';
import { KINDS, type Kind, SECRET } from './kinds.ts';
import { startSandbox } from './support.ts';

const MIB = 1024 * 1024;
/**
 * Limits of processor time, milliseconds: for scripts that must exceed it, and for those that must exceed another limit
 * first.
 */
const CPU_MS = { loops: 50, others: 5_000 };

/**
 * Bodies of scripts that fail, and the expected reason. Those that end the engine itself (`isOfEngine`) run for one
 * kind of each sort; `escape.test.ts` tries them in all ways.
 */
const FAILING: Record<string, { body: string; why: RegExp; isOfEngine?: true }> = {
  'loops without end': { body: 'for (;;);', why: /the processor/ },
  'loops in a promise': {
    body: 'await Promise.resolve().then(() => { for (;;); });',
    why: /the processor/,
    isOfEngine: true,
  },
  'floods the memory': {
    body: 'const all = []; for (;;) all.push(new Uint8Array(1e6));',
    why: /of memory/,
  },
  "makes text of a huge array, which the engine's own loops do": {
    body: "answer(new Array(1e9) + '');",
    why: /the processor|of memory/,
    isOfEngine: true,
  },
  'waits for a promise that never settles': {
    body: 'await new Promise(() => {});',
    why: /it ended without|did not answer/,
  },
  'answers with what is too large': { body: "answer('x'.repeat(2e5));", why: /larger than/ },
  'answers with what is never written': {
    body: 'answer({ toJSON() { for (;;); }, toString() { for (;;); } });',
    why: /the processor/,
  },
  'looks for the process': {
    body: "answer(this.constructor.constructor('return process')().pid + '');",
    why: /process is not defined|'?process'? is not defined|undefined/,
  },
  'asks for a module that is not there': { body: "require('fs'); answer('');", why: /Cannot find module/ },
  'makes requests without end': {
    body: "for (let n = 0; n < 20; n++) fetch('https://10.0.0.1/').catch(() => {}); await new Promise(() => {});",
    why: /more than 10 requests/,
  },
};

/** One kind of each sort, by the first word of its name. */
const SORTS = new Map([...KINDS].reverse().map((kind) => [kind.name.split(' ')[0], kind]));

/** Addresses that no script may reach, unless the operator allows them. */
const CLOSED = [
  'http://127.0.0.1/',
  'http://[::1]/',
  'http://0.0.0.0/',
  'http://169.254.169.254/latest/meta-data/',
  'https://10.0.0.1/',
  'https://192.168.0.1/',
  'http://[::ffff:127.0.0.1]/',
];

describe('every kind of script:', () => {
  let sandbox: ReturnType<typeof startSandbox>;
  let forLoops: ReturnType<typeof startSandbox>;
  before(() => {
    const limits = { wallMs: 60_000, graceMs: 50, memoryBytes: 32 * MIB };
    // One thread for each, so that the next run finds what a run leaves behind.
    const start = (cpuMs: number) => startSandbox({ limits: { ...limits, cpuMs }, threads: 1, allow: [] });
    sandbox = start(CPU_MS.others);
    forLoops = start(CPU_MS.loops);
  });
  after(() => Promise.all([sandbox.stop(), forLoops.stop()]));
  const run = (kind: Kind, body: string, at = sandbox) => kind.run(at.scripts, kind.source(body));
  const printed = () => JSON.stringify(sandbox.scripts.log.runs()[0]);

  for (const kind of KINDS) {
    describe(kind.name, () => {
      it('runs when it does nothing forbidden', async () => {
        const { result, told } = await run(kind, "answer('fine');");
        expect(told).to.match(/^(\[\])?$/);
        expect(result).not.to.equal(null);
      });

      const isOfSort = [...SORTS.values()].includes(kind);
      for (const [what, { body, why, isOfEngine }] of Object.entries(FAILING)) {
        if (isOfEngine && !isOfSort) continue;
        it(`is refused when it ${what}`, async () => {
          const isLoop = why.source.includes('the processor');
          const { result, told } = await run(kind, body, isLoop ? forLoops : sandbox);
          expect(result).to.equal(undefined);
          expect(told).to.match(why);
        });
      }

      it('leaves nothing behind for the next one, nor in this process', async () => {
        await run(
          kind,
          `globalThis.left = Object.prototype.left = 'behind'; JSON.stringify = () => '1'; Array.prototype.map = null;
           answer('fine');`,
        );
        await run(
          kind,
          `answer(JSON.parse('{"__proto__":{"left":1},"constructor":{"prototype":{"left":1}}}'));`,
        );
        const { told } = await run(
          kind,
          'throw new Error([typeof left, {}.left, [1].map((n) => n + 1)].join());',
        );
        expect(told).to.include('undefined,,2');
        expect(({} as { left?: unknown }).left).to.equal(undefined);
      });

      it('prints no more than its limit', async () => {
        await run(
          kind,
          "for (let n = 0; n < 3000; n++) console.log(''); console.log('y'.repeat(1e6)); answer('');",
        );
        expect(printed().length).to.be.below(250_000);
      });

      it('cannot reach forbidden addresses', async () => {
        const sockets: unknown[] = [];
        const onSocket = (message: unknown) => void sockets.push(message);
        diagnostics.subscribe('net.client.socket', onSocket);
        const { told } = await run(
          kind,
          `const all = await Promise.all(${JSON.stringify(CLOSED)}.map((url) => fetch(url).then(() => 'reached', (e) => e.cause?.code ?? e.code)));
           throw new Error('codes ' + all.join());`,
        );
        diagnostics.unsubscribe('net.client.socket', onSocket);
        expect(told).to.include(`codes ${CLOSED.map(() => 'EACCES').join()}`);
        expect(sockets).to.deep.equal([]);
      });

      it('does not reveal its secrets in what it prints or in its failure', async () => {
        const { told } = await run(
          kind,
          `console.log('it is', secret, { secret }, encodeURIComponent(secret));
           throw Object.assign(new Error('leaked ' + secret + JSON.stringify({ secret })), { name: secret, code: secret });`,
        );
        expect(told).to.include('leaked ***');
        for (const text of [told, printed()]) {
          expect(text).not.to.include('of the tenant').and.not.include(encodeURIComponent(SECRET));
        }
      });
    });
  }
});
