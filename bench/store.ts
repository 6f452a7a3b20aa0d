// The cost of the embedded store by the number of users in it: start, memory, writes by one and by 64 concurrent
// writers, the longest stall of the event loop meanwhile, reads, and bytes on disk. Run: node bench/store.ts [users …]
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { fileURLToPath } from 'node:url';
import type { Records } from '../src/records/collections.ts';
import type { ArtifactRecord } from '../src/records/state/engine.ts';
import type { UserRecord } from '../src/records/users/users.ts';
import type { Store } from '../src/store/contract.ts';
import { openStore } from '../src/store/open.ts';

/** The task of a separate process. */
interface Task {
  what: 'fill' | 'measure';
  dataDir: string;
  users: number;
}

const tokens = 300_000;
const seconds = 4;

function user(n: number, logins = 0): UserRecord {
  const name = `user${n}`;
  const user_id = n.toString(16).padStart(24, '0');
  return {
    id: `auth0|${user_id}`,
    email: `${name}@example.com`,
    email_verified: n % 2 === 0,
    name: `Ada ${name}`,
    given_name: 'Ada',
    family_name: name,
    nickname: name,
    picture: `https://images.example.com/avatars/${name}.png`,
    locale: 'en-GB',
    user_metadata: { theme: 'dark', newsletter: true, city: 'Zürich' },
    app_metadata: { plan: 'free', roles: ['reader', 'writer'] },
    created_at: '2026-11-01T09:00:00.000Z',
    updated_at: '2026-11-20T09:00:00.000Z',
    last_login: '2026-11-20T09:00:00.000Z',
    last_ip: '203.0.113.7',
    logins_count: logins,
  };
}

function token(n: number, users: number): ArtifactRecord {
  const id = n.toString(36).padStart(43, 'x');
  return {
    id: `RefreshToken:${id}`,
    model: 'RefreshToken',
    payload: {
      accountId: user(n % users).id,
      clientId: 'client'.padEnd(32, '0'),
      grantId: id,
      sessionUid: id.toUpperCase(),
      scope: 'openid profile email offline_access',
      padding: 'x'.repeat(400),
    },
    expiresAt: 9_000_000_000 + n,
  };
}

async function fill(dataDir: string, users: number): Promise<void> {
  const store = await openStore({ dataDir, clock: Date.now });
  const step = 1000;
  for (let n = 0; n < users; n += step) {
    const some = Array.from({ length: Math.min(step, users - n) }, (_, i) => n + i);
    await Promise.all(some.map((i) => store.collection('users').put(user(i))));
  }
  for (let n = 0; n < tokens; n += step) {
    const some = Array.from({ length: step }, (_, i) => n + i);
    await Promise.all(some.map((i) => store.collection('artifacts').put(token(i, users))));
  }
  await store.close();
}

/** Writes per second (of users, updated at random) by a number of concurrent writers, and the longest stall in milliseconds. */
async function writes(store: Store, users: number, writers: number) {
  const collection = store.collection('users');
  const latencies: number[] = [];
  const histogram = monitorEventLoopDelay({ resolution: 1 });
  histogram.enable();
  await sleep(20);
  histogram.reset();
  const start = performance.now();
  const end = start + seconds * 1000;
  let logins = 0;
  const writer = async () => {
    for (let before = performance.now(); before < end; before = performance.now()) {
      logins++;
      const id = user(Math.floor(Math.random() * users)).id;
      await collection.update(id, (current) => ({ ...current, logins_count: logins }));
      latencies.push(performance.now() - before);
    }
  };
  await Promise.all(Array.from({ length: writers }, writer));
  const elapsed = performance.now() - start;
  histogram.disable();
  latencies.sort((a, b) => a - b);
  return {
    perSecond: Math.round((latencies.length / elapsed) * 1000),
    p99: Number((latencies[Math.floor(latencies.length * 0.99)] ?? 0).toFixed(1)),
    stall: Number((histogram.max / 1e6).toFixed(1)),
  };
}

/** Puts per second, by 64 concurrent writers, into a collection that is kept elsewhere than in the database. */
async function putsInto(name: 'resourceServers' | 'limits', store: Store): Promise<number> {
  const end = performance.now() + 1000;
  let count = 0;
  const writer = async (_: unknown, n: number) => {
    for (; performance.now() < end; count++) {
      const id = `${n}`;
      if (name === 'limits') await store.collection('limits').put({ id, tokens: count, at: 0 });
      else {
        const api = { id, identifier: `https://api.example.com/${n}`, name: `${count}` };
        await store.collection(name).put(api as Records['resourceServers']);
      }
    }
  };
  await Promise.all(Array.from({ length: 64 }, writer));
  return count;
}

async function reads(store: Store, users: number): Promise<number> {
  const start = performance.now();
  let n = 0;
  for (; performance.now() - start < 2000; n++) {
    await store.collection('users').get(user(Math.floor(Math.random() * users)).id);
  }
  return Math.round((n / (performance.now() - start)) * 1000);
}

async function bytesIn(directory: string): Promise<number> {
  const names = await readdir(directory);
  const sizes = await Promise.all(names.map(async (name) => (await stat(join(directory, name))).size));
  return sizes.reduce((sum, size) => sum + size, 0);
}

async function measure(dataDir: string, users: number) {
  const before = performance.now();
  const store = await openStore({ dataDir, clock: Date.now });
  const start = Math.round(performance.now() - before);
  const rss = () => Math.round(process.memoryUsage().rss / 1e6);
  const rssAtStart = rss();
  const perSecond = await reads(store, users);
  const one = await writes(store, users, 1);
  const many = await writes(store, users, 64);
  const rssAfter = rss();
  const lowdb = await putsInto('resourceServers', store);
  const memory = await putsInto('limits', store);
  const closing = performance.now();
  await store.close();
  return {
    users,
    'start ms': start,
    'RSS MB': rssAtStart,
    'RSS after MB': rssAfter,
    'reads/s': perSecond,
    'writes/s (1)': one.perSecond,
    'p99 ms (1)': one.p99,
    'stall ms (1)': one.stall,
    'writes/s (64)': many.perSecond,
    'p99 ms (64)': many.p99,
    'stall ms (64)': many.stall,
    'lowdb writes/s (64)': lowdb,
    'memory writes/s (64)': memory,
    'close ms': Math.round(performance.now() - closing),
    'disk MB': Math.round((await bytesIn(join(dataDir, 'store'))) / 1e6),
  };
}

/** Runs one task in a separate process, so that none pays for another's garbage collection. */
async function apart(task: Task): Promise<Awaited<ReturnType<typeof measure>>> {
  const child = fork(fileURLToPath(import.meta.url), [JSON.stringify(task)]);
  const [figures] = await once(child, 'message');
  return figures;
}

async function compare(sizes: number[]): Promise<void> {
  const rows = [];
  for (const users of sizes) {
    const dataDir = await mkdtemp(join(tmpdir(), 'gatehouse-bench-'));
    try {
      await apart({ what: 'fill', dataDir, users });
      rows.push(await apart({ what: 'measure', dataDir, users }));
    } finally {
      await rm(dataDir, { recursive: true });
    }
  }
  console.log(`Node ${process.version}, ${cpus().length} × ${cpus()[0]?.model}, ${tokens} tokens`);
  console.table(rows);
}

function sleep(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

const parameters = process.argv.slice(2);
if (process.send !== undefined) {
  const { what, dataDir, users }: Task = JSON.parse(parameters[0] ?? '');
  if (what === 'fill') await fill(dataDir, users);
  process.send(what === 'fill' ? {} : await measure(dataDir, users));
  process.disconnect();
} else {
  await compare(parameters.length > 0 ? parameters.map(Number) : [1000, 10_000, 100_000]);
}
