// A script thread for tests that computes for seconds in a function of Node.js, which nothing interrupts.
import { pbkdf2Sync } from 'node:crypto';
import { parentPort } from 'node:worker_threads';

parentPort?.on('message', (messages) => {
  for (const { type } of messages) {
    if (type === 'take') parentPort?.postMessage([{ type: 'ready', processorMs: 0 }]);
    if (type === 'run') pbkdf2Sync('password', 'salt', 10_000_000, 32, 'sha512');
  }
});
