// Runs the server as main.ts does, with a stop budget of its own (its argument, milliseconds), and with the
// faults that a line on standard input asks for: see stop.test.ts.
import { createInterface } from 'node:readline';
import { createLog } from '../../../src/log.ts';
import { runServer } from '../../../src/run.ts';

createInterface({ input: process.stdin }).on('line', (line) => {
  if (line === 'reject') void Promise.reject(new Error('a bug that rejects'));
  if (line === 'throw') {
    setImmediate(() => {
      throw new Error('a bug that throws');
    });
  }
});

await runServer(process.env, createLog(process.env.LOG_LEVEL), Number(process.argv[2] ?? 9_000));
