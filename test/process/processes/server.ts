// Runs the server as main.js does, with a stop budget of its own (its first argument, milliseconds), with the faults
// that a line on standard input asks for, and at a terminal if `terminal` is its second argument: see stop.test.ts and
// terminal.test.ts.
import { createInterface } from 'node:readline';
import { startProcess } from '../../../src/commands/start.ts';

createInterface({ input: process.stdin }).on('line', (line) => {
  if (line === 'reject') void Promise.reject(new Error('a bug that rejects'));
  if (line === 'throw') {
    setImmediate(() => {
      throw new Error('a bug that throws');
    });
  }
});

const [budget = '9000', output] = process.argv.slice(2);
const terminal = { isTTY: true, write: (text: string) => process.stdout.write(text) };
await startProcess(process.env, output === 'terminal' ? terminal : process.stdout, Number(budget));
