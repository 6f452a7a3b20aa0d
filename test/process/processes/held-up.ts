// A process whose thread computes for hours in a function of Node.js: see stop.test.ts.
import { Worker } from 'node:worker_threads';
import { exitNow } from '../../../src/runtime/exit-now.ts';

const worker = new Worker(
  `require('node:worker_threads').parentPort.postMessage('');
   require('node:crypto').pbkdf2Sync('a', 'b', 2 ** 31 - 1, 64, 'sha512');`,
  { eval: true },
);
worker.once('message', () => {
  process.on('SIGTERM', () => {
    void worker.terminate();
    exitNow(3);
  });
  process.stdout.write('computing\n');
});
