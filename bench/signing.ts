// Signatures a second by each algorithm, and how long the event loop is kept from others meanwhile: on the thread pool, as
// the server signs, and on the main thread, as it would be without.
import { constants, createPrivateKey, type JsonWebKey, type KeyObject, sign } from 'node:crypto';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { SIGNING_ALGS, type SigningAlg } from '../src/records/signing-algs.ts';
import { signLocally } from '../src/signing/local.ts';
import { makeSigningKey } from '../src/signing/make-key.ts';

const MILLISECONDS = Number(process.env.BENCH_SECONDS ?? 3) * 1000;
const AT_ONCE = 16;
const data = Buffer.alloc(600, 'x');

function signHere(alg: SigningAlg, key: KeyObject): Buffer {
  if (alg === 'EdDSA') return sign(null, data, key);
  const hash = alg === 'RS512' ? 'sha512' : 'sha256';
  return sign(
    hash,
    data,
    alg === 'PS256' ? { key, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 32 } : key,
  );
}

/** Signatures a second, and the loop's delay beyond a timer's resolution, milliseconds. */
async function measure(work: () => Promise<unknown>) {
  const delay = monitorEventLoopDelay({ resolution: 1 });
  const end = performance.now() + MILLISECONDS;
  let done = 0;
  delay.enable();
  const worker = async () => {
    while (performance.now() < end) {
      await work();
      done++;
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  delay.disable();
  const late = (nanoseconds: number) => Number((nanoseconds / 1e6).toFixed(1));
  return {
    perSecond: Math.round(done / (MILLISECONDS / 1000)),
    p99: late(delay.percentile(99)),
    max: late(delay.max),
  };
}

const rows = [];
for (const alg of SIGNING_ALGS) {
  const { jwk } = await makeSigningKey(Date.now, 'bench', alg);
  const key = createPrivateKey({ key: jwk as JsonWebKey, format: 'jwk' });
  const pool = await measure(() => signLocally(alg, key, data));
  // Sixteen requests that arrive together are signed before the loop turns.
  const main = await measure(async () => {
    signHere(alg, key);
    await Promise.resolve();
    await new Promise((resolve) => setImmediate(resolve));
  });
  rows.push({
    alg,
    'pool/s': pool.perSecond,
    'delay p99, ms': pool.p99,
    'delay max, ms': pool.max,
    'main/s': main.perSecond,
    'main: delay p99, ms': main.p99,
    'main: max, ms': main.max,
  });
}
console.table(rows);
