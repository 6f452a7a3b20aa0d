// Signatures per second with each algorithm, and how long they block the event loop: on the thread pool, as in the
// server, and on the main thread, for comparison. Then tokens per second with each, alternating with RS256.
import { constants, createPrivateKey, type JsonWebKey, type KeyObject, sign } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { fileURLToPath } from 'node:url';
import autocannon from 'autocannon';
import { signLocally } from '../src/capabilities/signing/local.ts';
import { makeSigningKey } from '../src/capabilities/signing/make-key.ts';
import { SIGNING_ALGS, type SigningAlg } from '../src/records/base/signing-algs.ts';
import { API, MACHINE, TENANT } from './fixture.ts';
import { local, median, PROXIED, proxiedEnvironment, start, stop } from './server.ts';

const MILLISECONDS = Number(process.env.BENCH_SECONDS ?? 3) * 1000;
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 3);
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

/** Signatures per second, and the delay of the event loop beyond a timer's resolution, in milliseconds. */
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
  // Sixteen requests that arrive together are signed within one turn of the event loop.
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

const directory = mkdtempSync(join(tmpdir(), 'gatehouse-bench-'));
const apiOf = (alg: string) => (alg === 'RS256' ? API : `${API}${alg}`);
const others = SIGNING_ALGS.filter((alg) => alg !== 'RS256');
const apis = others.map(
  (alg) =>
    `{ name: ${alg}, identifier: '${apiOf(alg)}', signing_alg: ${alg}, token_lifetime: 3600, scopes: [{ value: 'read:things' }] }, `,
);
const grants = others.map(
  (alg) => `{ client_id: bench, audience: '${apiOf(alg)}', scope: ['read:things'] }, `,
);
const tenant = TENANT.replace('resourceServers: [', `resourceServers: [${apis.join('')}`).replace(
  'clientGrants: [',
  `clientGrants: [${grants.join('')}`,
);
writeFileSync(join(directory, 'tenant.yaml'), tenant);
const server = await start(
  fileURLToPath(new URL('../src/main.js', import.meta.url)),
  proxiedEnvironment(directory),
);

/** Returns tokens per second for an API with an algorithm. */
async function tokens(alg: string): Promise<number> {
  const result = await autocannon({
    url: `${local(server)}/oauth/token`,
    connections: AT_ONCE,
    duration: MILLISECONDS / 1000,
    method: 'POST',
    headers: { ...PROXIED, 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ ...MACHINE, audience: apiOf(alg) }).toString(),
  });
  if (result.non2xx > 0 || result.errors > 0) throw new Error(`${alg}: ${result.non2xx} failures`);
  return result['2xx'] / result.duration;
}

await tokens('RS256');
const issued = [];
for (const alg of others) {
  const pairs: [number, number][] = [];
  for (let round = 0; round < ROUNDS; round++) pairs.push([await tokens(alg), await tokens('RS256')]);
  issued.push({
    alg,
    'tokens/s': Math.round(median(pairs.map(([a]) => a))),
    'RS256/s': Math.round(median(pairs.map(([, b]) => b))),
    ratio: Number(median(pairs.map(([a, b]) => a / b)).toFixed(2)),
  });
}
console.table(issued);
await stop(server);
rmSync(directory, { recursive: true });
