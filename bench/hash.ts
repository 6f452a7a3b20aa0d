// The baseline for password logins in bench/token.ts: only verifies one argon2id hash repeatedly.
import { availableParallelism } from 'node:os';
import { hash, verify } from '@node-rs/argon2';

const seconds = Number(process.argv[2] ?? 5);
const PARAMETERS = { algorithm: 2, memoryCost: 19456, timeCost: 2, parallelism: 1 };
const stored = await hash('Correct-Horse-1', PARAMETERS);
const end = performance.now() + seconds * 1000;
let count = 0;

async function run(): Promise<void> {
  while (performance.now() < end) {
    await verify(stored, 'Correct-Horse-1');
    count++;
  }
}

const started = performance.now();
await Promise.all(Array.from({ length: availableParallelism() }, run));
console.log(JSON.stringify({ perSecond: count / ((performance.now() - started) / 1000) }));
