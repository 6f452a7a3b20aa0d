// The cost of a request with two worker processes (WORKERS=2) compared with one process, over one PostgreSQL: processor
// time of all the server's processes and of the database. Each process gets the same number of requests per second, few
// enough that none waits for a processor, so that any additional cost is what the processes cause each other. node
// bench/workers.ts [journey …]      BENCH_ROUNDS=3 BENCH_SECONDS=4 BENCH_RATE=1 (times those below)
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startCluster } from '../test/support/postgres.ts';
import { TENANT } from './fixture.ts';
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
const SECONDS = Number(process.env.BENCH_SECONDS ?? 4);
const TIMES = Number(process.env.BENCH_RATE ?? 1);
/** Requests per second to each process. */
const RATES: Record<string, number> = { client_credentials: 400, refresh_token: 150, userinfo: 800 };
/** Connections to each process. */
const CONNECTIONS = 8;
const WARM = 5_000;
const main = fileURLToPath(new URL('../src/main.js', import.meta.url));

/** A server with a number of processes. */
interface Measured {
  server: Started;
  processes: number;
  agent: http.Agent;
  asked: Record<string, Asked>;
}

/** Returns a process and its descendants. */
function family(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
  return [pid, ...(children === '' ? [] : children.split(' ').flatMap((child) => family(Number(child))))];
}

const spent = (pid: number) => family(pid).reduce((sum, one) => sum + processorTime(one).all, 0);

function send({ server, agent }: Measured, { path, fields, headers = {} }: Asked): Promise<void> {
  const body = fields && new URLSearchParams(fields).toString();
  const type = fields && { 'content-type': 'application/x-www-form-urlencoded' };
  return new Promise((resolve, reject) => {
    const options = { agent, method: fields ? 'POST' : 'GET', headers: { ...PROXIED, ...headers, ...type } };
    const request = http.request(`${local(server)}${path}`, options, (answer) => {
      if (answer.statusCode === 200) answer.on('end', resolve).resume();
      else reject(new Error(`${path}: ${answer.statusCode}`));
    });
    request.on('error', reject).end(body);
  });
}

/** Sends requests at a fixed rate, without waiting for earlier answers. @returns processor time of each in microseconds. */
async function cost(measured: Measured, asked: Asked, rate: number, database: number) {
  const perSecond = rate * measured.processes;
  const total = perSecond * SECONDS;
  const pid = measured.server.child.pid ?? 0;
  const before = { server: spent(pid), database: spent(database) };
  const answers: Promise<void>[] = [];
  const began = performance.now();
  while (answers.length < total) {
    const due = Math.min(total, ((performance.now() - began) / 1000) * perSecond);
    while (answers.length < due) answers.push(send(measured, asked));
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await Promise.all(answers);
  const of = (what: number) => what / 1000 / total;
  return { server: of(spent(pid) - before.server), database: of(spent(database) - before.database) };
}

const cluster = await startCluster({ durable: true, onDisk: true });
const directories: string[] = [];
async function serve(processes: number): Promise<Measured> {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-bench-workers-'));
  directories.push(directory);
  writeFileSync(join(directory, 'tenant.yaml'), TENANT);
  const database = `processes_${processes}`;
  await cluster.query(`CREATE DATABASE ${database}`);
  const server = await start(main, {
    ...proxiedEnvironment(directory),
    DATABASE_URL: cluster.url(database),
    ...(processes > 1 && { WORKERS: String(processes) }),
  });
  const agent = new http.Agent({ keepAlive: true, maxSockets: CONNECTIONS * processes, scheduling: 'fifo' });
  return { server, processes, agent, asked: await requestsTo(server) };
}

/** Returns the process id of the database's main process. */
async function postmaster(): Promise<number> {
  const { rows } = await cluster.query('SHOW data_directory');
  return Number.parseInt(readFileSync(join(rows[0].data_directory, 'postmaster.pid'), 'utf8'), 10);
}

const database = await postmaster();
const one = await serve(1);
const two = await serve(2);
const chosen = process.argv.slice(2);
const rows = [];
for (const [name, rate] of Object.entries(RATES)) {
  const asked = (of: Measured) => of.asked[name] ?? { path: '/' };
  if (chosen.length > 0 && !chosen.includes(name)) continue;
  for (const measured of [one, two])
    for (let count = 0; count < WARM * measured.processes; count += 40)
      await Promise.all(Array.from({ length: 40 }, () => send(measured, asked(measured))));
  const pairs: [Awaited<ReturnType<typeof cost>>, Awaited<ReturnType<typeof cost>>][] = [];
  for (let round = 0; round < ROUNDS; round++)
    pairs.push([
      await cost(one, asked(one), rate * TIMES, database),
      await cost(two, asked(two), rate * TIMES, database),
    ]);
  const middle = (of: (pair: (typeof pairs)[number]) => number) => median(pairs.map(of));
  rows.push({
    name,
    'a second, each': rate * TIMES,
    'one µs': Math.round(middle(([a]) => a.server)),
    'two µs': Math.round(middle(([, b]) => b.server)),
    'one / two': Number(middle(([a, b]) => a.server / b.server).toFixed(2)),
    'database, one µs': Math.round(middle(([a]) => a.database)),
    'database, two µs': Math.round(middle(([, b]) => b.database)),
  });
}
console.table(rows);
for (const { agent, server } of [one, two]) {
  agent.destroy();
  await stop(server);
}
await cluster.stop();
for (const directory of directories) rmSync(directory, { recursive: true });
