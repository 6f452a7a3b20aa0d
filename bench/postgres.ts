// Requests per second with the store in PostgreSQL and with the embedded store, alternately in one run: the same
// server, one process, all writes durable, the database on the same disk and processors.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import autocannon from 'autocannon';
import { startCluster } from '../test/support/postgres.ts';
import { PASSWORD, TENANT } from './fixture.ts';
import { type Asked, requestsTo } from './requests.ts';
import {
  local,
  median,
  PROXIED,
  processorTime,
  proxiedEnvironment,
  type Started,
  start,
  stop,
} from './server.ts';

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 3);
const SECONDS = Number(process.env.BENCH_SECONDS ?? 5);
const main = fileURLToPath(new URL('../src/main.js', import.meta.url));

/** Requests per second, and the server's processor time for each in microseconds. */
async function load(server: Started, { path, fields, headers = {} }: Asked) {
  const pid = server.child.pid ?? 0;
  const before = processorTime(pid);
  const result = await autocannon({
    url: `${local(server)}${path}`,
    connections: 16,
    duration: SECONDS,
    headers: {
      ...PROXIED,
      ...headers,
      ...(fields && { 'content-type': 'application/x-www-form-urlencoded' }),
    },
    ...(fields && { method: 'POST', body: new URLSearchParams(fields).toString() }),
  });
  if (result.non2xx > 0 || result.errors > 0) {
    throw new Error(`${path}: ${result.non2xx} failures, ${result.errors} errors`);
  }
  const spent = processorTime(pid).all - before.all;
  return { perSecond: result['2xx'] / result.duration, micros: spent / 1000 / result['2xx'] };
}

const directories = ['embedded', 'postgres'].map((name) => {
  const directory = mkdtempSync(join(tmpdir(), `gatehouse-bench-${name}-`));
  writeFileSync(join(directory, 'tenant.yaml'), TENANT);
  return directory;
});
const [embeddedDirectory = '', postgresDirectory = ''] = directories;
const cluster = await startCluster({ durable: true, onDisk: true });
const embedded = await start(main, proxiedEnvironment(embeddedDirectory));
const postgres = await start(main, { ...proxiedEnvironment(postgresDirectory), DATABASE_URL: cluster.url() });

const asked = async (server: Started): Promise<Record<string, Asked>> => ({
  ...(await requestsTo(server)),
  password: { path: '/oauth/token', fields: { ...PASSWORD, scope: 'openid' } },
});
const [ofEmbedded, ofPostgres] = [await asked(embedded), await asked(postgres)];
const rows = [];
for (const [name, one] of Object.entries(ofEmbedded)) {
  const other = ofPostgres[name];
  if (other === undefined) continue;
  const pairs: Awaited<ReturnType<typeof load>>[][] = [];
  for (let round = 0; round < ROUNDS; round++) {
    pairs.push([await load(embedded, one), await load(postgres, other)]);
  }
  const of = (which: number, what: 'perSecond' | 'micros') =>
    Math.round(median(pairs.map((pair) => pair[which]?.[what] ?? 0)));
  rows.push({
    name,
    'embedded/s': of(0, 'perSecond'),
    'postgres/s': of(1, 'perSecond'),
    ratio: Number(median(pairs.map(([a, b]) => (b?.perSecond ?? 0) / (a?.perSecond ?? 1))).toFixed(2)),
    goal: 0.6,
    'embedded µs': of(0, 'micros'),
    'postgres µs': of(1, 'micros'),
  });
}
console.table(rows);
await stop(embedded);
await stop(postgres);
await cluster.stop();
for (const directory of directories) rmSync(directory, { recursive: true });
