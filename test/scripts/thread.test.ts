// A thread that several runs share, driven by messages as the process sends them.
import { expect } from 'chai';
import { SCRIPT_LIMITS } from '../../src/capabilities/scripts/limits.ts';
import { moduleLoader } from '../../src/capabilities/scripts/module.ts';
import type { FromThread, Job } from '../../src/capabilities/scripts/scripts-messages.ts';
import { openWorker } from '../../src/capabilities/scripts/threads.ts';

const job = (body: string): Job => ({
  source: `function (cb) { ${body} }`,
  entry: 'run',
  args: '[]',
  globals: '{}',
  files: undefined,
});
const passing = { methods: ['tell'], most: 20 };

describe('a shared thread', () => {
  it('ends all runs that are dropped, however far they have come', async () => {
    const { worker, send, receive } = openWorker({
      wasmModule: await moduleLoader()(),
      limits: SCRIPT_LIMITS,
      prepared: [],
      entered: new Int32Array(new SharedArrayBuffer(8)),
      ending: new Set(),
    });
    try {
      const heard: FromThread[] = [];
      const hears = (is: (message: FromThread) => boolean) =>
        new Promise<void>((resolve) => {
          receive((message) => {
            heard.push(message);
            if (is(message)) resolve();
          });
        });
      await hears(({ type }) => type === 'ready');
      const second = hears((message) => message.type === 'log' && message.run === 2);
      const without = 'cb(null, [])';
      const prints = `setInterval(() => console.log('still there'), 5)`;
      send({ type: 'run', run: 1, jobs: [job(without), job(prints), job(without)], passing });
      await second;
      // The sender does not know yet that the second run has begun.
      send({ type: 'drop', run: 1, last: 3 });
      const other = hears((message) => message.type === 'outcome' && message.run === 4);
      heard.length = 0;
      send({
        type: 'run',
        run: 4,
        jobs: [job(`console.log('begins'); setTimeout(() => cb(null, 1), 100)`)],
        passing,
      });
      await other;
      const begins = heard.findIndex((message) => message.type === 'log' && message.run === 4);
      expect(begins).to.be.at.least(0);
      expect(heard.slice(begins).filter((message) => 'run' in message && message.run !== 4)).to.deep.equal(
        [],
      );
    } finally {
      await worker.terminate();
    }
  });
});
