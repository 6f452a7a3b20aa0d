// Threads that do not end when they are told to: others take their place.
import { Worker } from 'node:worker_threads';
import { expect } from 'chai';
import { SCRIPT_LIMITS } from '../../src/capabilities/scripts/limits.ts';
import { createScripts } from '../../src/capabilities/scripts/scripts.ts';
import { createOutbound, outboundRules } from '../../src/http/outbound/outbound.ts';
import { PATIENCE } from '../support/wait-until.ts';

const STUCK = new URL('./stuck-worker.js', import.meta.url);
const QUICK = 'function (token, context, cb) { cb(null, 1) }';

describe('script threads that do not end', () => {
  /** Makes scripts whose first threads compute without end. @param stuck how many. */
  const scriptsWith = (stuck: number, threads: number) => {
    let left = stuck;
    const scripts = createScripts({
      outbound: createOutbound({ rules: outboundRules([]) }),
      clock: Date.now,
      keepsLog: false,
      limits: { ...SCRIPT_LIMITS, wallMs: 1_000 },
      waitMs: PATIENCE,
      threads,
      spareThreads: {
        take: () => (left-- > 0 ? new Worker(STUCK) : undefined),
        put: (_work, thread) => void thread.terminate(),
      },
    });
    const run = (of: string) =>
      scripts.run({ of, askedBy: undefined, source: QUICK, entry: 'fetchUserProfile', args: ['', {}] });
    return { scripts, run };
  };

  it('are replaced, so that other scripts run before they have ended', async () => {
    const { scripts, run } = scriptsWith(1, 1);
    expect((await run('a')).failure?.kind).to.equal('wall');
    const { result } = await run('b');
    expect(scripts.isHeldUp(), 'while it still computes').to.equal(true);
    expect(result).to.equal(1);
    await scripts.close();
  });

  it('are not waited for at the end', async () => {
    const { scripts, run } = scriptsWith(1, 2);
    expect((await run('a')).failure?.kind).to.equal('wall');
    const since = performance.now();
    await scripts.close();
    expect(performance.now() - since).to.be.below(1_900);
    expect(scripts.isHeldUp(), 'while it still computes').to.equal(true);
  });
});
