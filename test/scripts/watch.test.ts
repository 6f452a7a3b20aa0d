// The watch over a thread counts processor time, and not the time in which the thread waits for a processor.
import { Worker } from 'node:worker_threads';
import { expect } from 'chai';
import { watchOver } from '../../src/runtime/worker-thread.ts';
import { every, until } from '../support/wait-until.ts';

const MAX = 150;

describe('the watch over a thread', () => {
  const workers: Worker[] = [];
  afterEach(() => Promise.all(workers.splice(0).map((worker) => worker.terminate())));

  /** Watches a thread that runs a statement without end, and never returns to its event loop. */
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
    const stop = watchOver({ worker, used: (user + system) / 1000, most: MAX, tooMuch });
    worker.postMessage('');
    return { worker, told, stop, busy: () => worker.performance.eventLoopUtilization(busySince).active };
  };

  it('reports a thread that has used too much processor time', async () => {
    const { worker, told, stop } = await watched('');
    await told;
    stop();
    const { user, system } = await worker.cpuUsage();
    expect((user + system) / 1000).to.be.at.least(MAX);
  });

  it('does not report a thread that is busy without a processor, however long', async () => {
    // As when other threads use the processor: it waits, and is not idle.
    const { worker, told, stop, busy } = await watched('Atomics.wait(one, 0, 0, 20);');
    let isTold = false;
    void told.then(() => {
      isTold = true;
    });
    await until(() => busy() >= 4 * MAX, every(20));
    // Answered after the request of the watch.
    await worker.cpuUsage();
    stop();
    expect(isTold).to.equal(false);
  });
});
