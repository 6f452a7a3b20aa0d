// The watch over a thread: what it computes counts, and what it waits for a processor does not.
import { Worker } from 'node:worker_threads';
import { expect } from 'chai';
import { watchOver } from '../../src/scripts/watch.ts';
import { every, until } from '../support/wait-until.ts';

const MOST = 150;

describe('the watch over a thread', () => {
  const workers: Worker[] = [];
  afterEach(() => Promise.all(workers.splice(0).map((worker) => worker.terminate())));

  /** Watches one that does this without end, and never comes back to its event loop. */
  const watched = async (work: string) => {
    const worker = new Worker(
      `const one = new Int32Array(new SharedArrayBuffer(4));
       require('node:worker_threads').parentPort.on('message', () => { for (;;) { ${work} } });`,
      { eval: true },
    );
    workers.push(worker);
    await new Promise((resolve) => worker.once('online', resolve));
    const { user, system } = await worker.cpuUsage();
    const busySince = worker.performance.eventLoopUtilization();
    let tooMuch = () => {};
    const told = new Promise<void>((resolve) => {
      tooMuch = resolve;
    });
    const stop = watchOver({ worker, used: (user + system) / 1000, most: MOST, tooMuch });
    worker.postMessage('');
    return { worker, told, stop, busy: () => worker.performance.eventLoopUtilization(busySince).active };
  };

  it('tells of one that has used too much of the processor', async () => {
    const { worker, told, stop } = await watched('');
    await told;
    stop();
    const { user, system } = await worker.cpuUsage();
    expect((user + system) / 1000).to.be.at.least(MOST);
  });

  it('tells nothing of one that is busy and has no processor, however long', async () => {
    // As it is with one that others keep from the processor: it waits, and is not idle.
    const { worker, told, stop, busy } = await watched('Atomics.wait(one, 0, 0, 20);');
    let isTold = false;
    void told.then(() => {
      isTold = true;
    });
    await until(() => busy() >= 4 * MOST, every(20));
    // Answered after what the watch has asked.
    await worker.cpuUsage();
    stop();
    expect(isTold).to.equal(false);
  });
});
