// What a fleet for many users needs, extrapolated from one process and one database on this machine: each journey is
// made some hundred times against a store with FILLED users, and its cost is multiplied by the rates of the fleet.
// Processor time and bytes are counted rather than requests per second, so that other load on the machine hardly
// changes the result. node bench/simulate.ts      FILLED=20000 TIMES=200 USERS=1e8 LOGINS=1e4 (per second, at the peak)
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Store } from '../src/store/contract.ts';
import { openStore } from '../src/store/open.ts';
import { type Cluster, startCluster } from '../test/support/postgres.ts';
import { MACHINE, PASSWORD, TENANT } from './fixture.ts';
import { fleet, type Taken } from './fleet.ts';
import { createCaller, logIn } from './login.ts';
import { local, processorTime, proxiedEnvironment, type Started, start, stop } from './server.ts';

const FILLED = Number(process.env.FILLED ?? 20_000);
const TIMES = Number(process.env.TIMES ?? 200);
const AT_ONCE = 4;
/** PostgreSQL's processes report their statistics within this time, in milliseconds. */
const TOLD = 11_000;
const main = fileURLToPath(new URL('../src/main.js', import.meta.url));
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Adds copies of the tenant file's user: all of its records, under other names. */
async function addUsers(store: Store): Promise<void> {
  const [ada] = (await store.collection('users').list({ limit: 1 })).records;
  if (ada === undefined) throw new Error('there is no user');
  const identities = await store.collection('identities').findBy('user', ada.id);
  const credentials = await store.collection('credentials').get(ada.id);
  const renamed = <T>(record: T, n: number): T =>
    JSON.parse(
      JSON.stringify(record)
        .replaceAll(ada.id, `${ada.id.slice(0, -8)}${String(n).padStart(8, '0')}`)
        .replaceAll('ada@', `user-${n}@`),
    );
  for (let n = 0; n < FILLED; n += 100)
    await store.batch(
      Array.from({ length: 100 }, (_, i) => [
        { collection: 'users' as const, put: renamed(ada, n + i) },
        ...identities.map((one) => ({
          collection: 'identities' as const,
          put: { ...renamed(one, n + i), id: `${one.id}-${n + i}` },
        })),
        ...(credentials ? [{ collection: 'credentials' as const, put: renamed(credentials, n + i) }] : []),
      ]).flat(),
    );
}

/** Returns the bytes on disk of each table with its indexes and keys. */
async function sizes(cluster: Cluster): Promise<Map<string, number>> {
  await cluster.query('CHECKPOINT');
  const { rows } = await cluster.query(
    `SELECT split_part(relname, '_', 1) AS name, sum(pg_total_relation_size(oid))::float8 AS bytes
      FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace GROUP BY 1`,
  );
  return new Map(rows.map(({ name, bytes }) => [name, bytes]));
}

/** Returns the processor time so far in nanoseconds, of all processes of the database, including those that have ended. */
function databaseTime(postmaster: string): number {
  const ticks =
    readFileSync(`/proc/${postmaster}/stat`, 'utf8').split(') ')[1]?.split(' ').slice(13, 15) ?? [];
  const ended = ticks.reduce((total, one) => total + Number(one) * 1e7, 0);
  const running = readFileSync(`/proc/${postmaster}/task/${postmaster}/children`, 'utf8').trim().split(' ');
  return running.reduce((total, pid) => total + timeOf(pid), ended);
}

function timeOf(pid: string): number {
  try {
    return processorTime(Number(pid)).all;
  } catch {
    // It has ended meanwhile; from the next call on it counts among the ended ones.
    return 0;
  }
}

/** Returns the database's counters. */
async function counted(cluster: Cluster) {
  const { rows } = await cluster.query(
    `SELECT xact_commit::float8 AS commits, (tup_inserted + tup_updated + tup_deleted)::float8 AS writes,
      (pg_current_wal_insert_lsn() - '0/0')::float8 AS wal, current_setting('data_directory') AS directory
      FROM pg_stat_database WHERE datname = current_database()`,
  );
  const { directory: data, ...done } = rows[0] as Record<'commits' | 'writes' | 'wal', number> & {
    directory: string;
  };
  const [postmaster = ''] = readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n');
  return { ...done, database: databaseTime(postmaster) };
}

/** Returns the cost of one journey, without the cost of what the store does when idle. */
async function measure(
  { cluster, server }: { cluster: Cluster; server: Started },
  journey: () => Promise<unknown>,
): Promise<Taken> {
  const all = async () => {
    let left = TIMES;
    const one = async () => {
      while (left-- > 0) await journey();
    };
    await Promise.all(Array.from({ length: AT_ONCE }, one));
  };
  await all();
  await pause(TOLD);
  const pid = server.child.pid ?? 0;
  const of = async (work: () => Promise<unknown>) => {
    const [before, spent, began] = [await counted(cluster), processorTime(pid).all, performance.now()];
    await work();
    await pause(TOLD);
    const after = await counted(cluster);
    return {
      server: (processorTime(pid).all - spent) / 1000,
      database: (after.database - before.database) / 1000,
      commits: after.commits - before.commits,
      writes: after.writes - before.writes,
      wal: after.wal - before.wal,
      ms: performance.now() - began,
    };
  };
  const [idle, busy] = [await of(async () => undefined), await of(all)];
  const each = (what: Exclude<keyof typeof busy, 'ms'>) =>
    Math.max(0, (busy[what] - (idle[what] * busy.ms) / idle.ms) / TIMES);
  return {
    server: each('server'),
    database: each('database'),
    commits: each('commits'),
    writes: each('writes'),
    wal: each('wal'),
  };
}

const directory = mkdtempSync(join(tmpdir(), 'gatehouse-simulate-'));
writeFileSync(join(directory, 'tenant.yaml'), TENANT);
const cluster = await startCluster({ durable: true, onDisk: true });
const environment = { ...proxiedEnvironment(directory), DATABASE_URL: cluster.url() };
await stop(await start(main, environment));
const before = await sizes(cluster);
const store = await openStore({
  dataDir: environment.DATA_DIR,
  databaseUrl: cluster.url(),
  clock: Date.now,
});
await addUsers(store);
await store.close();
const filled = await sizes(cluster);
const server = await start(main, environment);
const call = createCaller(local(server));
const [plain, offline] = ['openid profile email', 'openid profile email offline_access'];
const first = await logIn(local(server), offline);
let refreshToken = first.refresh_token ?? '';

const journeys: Record<string, () => Promise<unknown>> = {
  login: () => logIn(local(server), plain),
  'login with a refresh token': () => logIn(local(server), offline),
  'password grant': () => call.token({ ...PASSWORD, scope: plain }),
  refresh: async () => {
    const { client_id, client_secret } = MACHINE;
    const fields = { client_id, client_secret, grant_type: 'refresh_token', refresh_token: refreshToken };
    refreshToken = (await call.token(fields)).refresh_token ?? refreshToken;
  },
  client_credentials: () => call.token(MACHINE),
  userinfo: () => call.userinfo(first.access_token ?? ''),
};
const taken: Record<string, Taken> = {};
const grown: Record<string, Map<string, number>> = {};
for (const [name, journey] of Object.entries(journeys)) {
  const smaller = await sizes(cluster);
  taken[name] = await measure({ cluster, server }, journey);
  const larger = await sizes(cluster);
  grown[name] = new Map(
    [...larger].map(([table, n]) => [table, (n - (smaller.get(table) ?? 0)) / TIMES / 2]),
  );
}
const perUser = [...filled].map(([table, n]): [string, number] => [
  table,
  (n - (before.get(table) ?? 0)) / FILLED,
]);
fleet({ taken, grown, perUser: new Map(perUser.filter(([, n]) => n > 1)) });
console.log(
  `resident after it all: ${Math.round(Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.child.pid}/status`, 'utf8'))?.[1]) / 1024)} MB`,
);
await stop(server);
await cluster.stop();
rmSync(directory, { recursive: true });
