// The memory that all scripts together may take of the process.
import type { ServerResponse } from 'node:http';
import { expect } from 'chai';
import { SCRIPT_LIMITS } from '../../src/capabilities/scripts/limits.ts';
import { threadsWithin } from '../../src/capabilities/scripts/threads.ts';
import { PATIENCE, until } from '../support/wait-until.ts';
import { startProvider, startSandbox } from './support.ts';

const MIB = 1024 * 1024;
const THREADS = 5;

describe('the memory of scripts', () => {
  it("is at most a third of the machine's, so fewer run at once where there is less", () => {
    const threads = (mib: number) => threadsWithin(mib * MIB, SCRIPT_LIMITS);
    expect([128, 512, 768, 1024, 2048, 4096, 65_536].map(threads)).to.deep.equal([2, 2, 4, 5, 10, 16, 16]);
  });

  it('is bounded in the shared thread, and scripts that find no room there run in threads of their own', async () => {
    let waiting: ServerResponse[] = [];
    let most = 0;
    const provider = await startProvider({
      '/held': (_request, response) => {
        waiting.push(response);
        most = Math.max(most, waiting.length);
        // Requests that come together are answered together.
        if (waiting.length === 1)
          setTimeout(() => {
            const all = waiting;
            waiting = [];
            for (const one of all) one.end('{}');
          }, 300);
      },
    });
    const sandbox = startSandbox({ threads: 2 });
    const all = async (count: number, mib: number) => {
      most = 0;
      const source = `function (token, { mib }, callback) {
        const kept = new Uint8Array(mib * ${MIB});
        request.get('${provider.url}/held', () => callback(null, { user_id: String(kept.length) }));
      }`;
      const one = (_: unknown, n: number) =>
        sandbox.run(source, { of: `connection ${n % 2}`, args: ['token', { mib }] });
      const outcomes = await Promise.all(Array.from({ length: count }, one));
      expect(outcomes.map(({ failure }) => failure)).to.deep.equal(outcomes.map(() => undefined));
      return most;
    };
    try {
      // More than there are threads, so they share one.
      await until(async () => (await all(6, 0)) === 6);
      expect(await all(24, 12)).to.be.lessThan(16);
    } finally {
      await sandbox.stop();
      await provider.stop();
    }
  });

  it('is given back when a script that needed much of it has ended', async () => {
    const sandbox = startSandbox({ threads: THREADS });
    // They wait for each other, so that each has a thread.
    const all = (mib: number) =>
      Promise.all(
        Array.from({ length: THREADS }, (_, n) =>
          sandbox.run(
            `function (token, context, callback) {
              const kept = Array.from({ length: ${mib} }, (_, n) => new Uint8Array(${MIB}).fill(n + 1));
              setTimeout(() => callback(null, { user_id: String(kept.length) }), 300);
            }`,
            { of: `connection ${n}` },
          ),
        ),
      );
    try {
      await all(0);
      const before = process.memoryUsage.rss();
      for (const round of [1, 2]) {
        for (const { failure } of await all(48)) expect(failure, `round ${round}`).to.equal(undefined);
      }
      const isBack = () => process.memoryUsage.rss() < before + 150 * MIB;
      for (const end = performance.now() + PATIENCE; !isBack() && performance.now() < end; )
        await new Promise((resolve) => setTimeout(resolve, 50));
      expect(isBack(), `${Math.round((process.memoryUsage.rss() - before) / MIB)} MiB more`).to.equal(true);
    } finally {
      await sandbox.stop();
    }
  });
});
