// What a write to the embedded store costs, and how long it holds up the event loop, by the number of users
// in the store and of concurrent writers; against plain lowdb (its JSONFile rewrites the whole file) in the
// same run. Run: node bench/store.ts [users …]
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay, PerformanceObserver } from 'node:perf_hooks';
import { fileURLToPath } from 'node:url';
import { Low } from 'lowdb';
import { JSONFile } from 'lowdb/node';
import type { UserRecord } from '../src/records/collections.ts';
import { openLowdbStore } from '../src/store/lowdb.ts';

interface Figures {
  writesPerSecond: number;
  /** Milliseconds. */
  p99: number;
  /** The longest delay of the event loop as monitorEventLoopDelay saw it, in milliseconds. */
  delay: number;
  /** The longest gap between two runs of an interval of one millisecond, in milliseconds. */
  gap: number;
  /** The longest pause of the garbage collector, in milliseconds. */
  gc: number;
}

/** What a process of its own does. */
interface Task {
  what: 'fill' | 'plain' | 'store';
  dataDir: string;
  size: number;
  writers: number;
}

const concurrency = [1, 64];
const seconds = 3;
const maxSeconds = 60;

function user(n: number, logins = 0): UserRecord {
  const name = `user${n}`;
  return {
    id: `auth0|${n.toString(16).padStart(24, '0')}`,
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
    identities: [
      {
        provider: 'auth0',
        user_id: n.toString(16).padStart(24, '0'),
        connection: 'Username-Password-Authentication',
        isSocial: false,
      },
    ],
    created_at: '2026-11-01T09:00:00.000Z',
    updated_at: '2026-11-20T09:00:00.000Z',
    last_login: '2026-11-20T09:00:00.000Z',
    last_ip: '203.0.113.7',
    logins_count: logins,
  };
}

/** Runs `write` by so many writers for as long as `more` says, and watches the event loop meanwhile. */
async function measure(
  writers: number,
  more: (writes: number, elapsed: number) => boolean,
  write: () => Promise<void>,
): Promise<Figures> {
  const latencies: number[] = [];
  let gap = 0;
  let last = performance.now();
  const interval = setInterval(() => {
    const now = performance.now();
    gap = Math.max(gap, now - last);
    last = now;
  }, 1);
  let gc = 0;
  const observer = new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) gc = Math.max(gc, duration);
  });
  observer.observe({ entryTypes: ['gc'] });
  const histogram = monitorEventLoopDelay({ resolution: 1 });
  histogram.enable();
  // The watchers take their first reading before the writers, whose first step may already block.
  await sleep(10);
  const start = performance.now();
  let begun = 0;
  const writer = async () => {
    while (more(begun, performance.now() - start)) {
      begun++;
      const before = performance.now();
      await write();
      latencies.push(performance.now() - before);
    }
  };
  await Promise.all(Array.from({ length: writers }, writer));
  const elapsed = performance.now() - start;
  await sleep(10);
  histogram.disable();
  observer.disconnect();
  clearInterval(interval);
  latencies.sort((a, b) => a - b);
  return {
    writesPerSecond: (latencies.length / elapsed) * 1000,
    p99: latencies[Math.floor(latencies.length * 0.99)] ?? 0,
    delay: histogram.max / 1e6,
    gap,
    gc,
  };
}

/** Updates of random users for some seconds, and until a fold has ended while it was measured. */
async function measureStore(dataDir: string, size: number, writers: number) {
  const store = await openLowdbStore({ dataDir, clock: Date.now });
  const users = store.collection('users');
  const snapshot = join(dataDir, 'store', 'users.json');
  let inode = (await stat(snapshot)).ino;
  let folds = 0;
  const watch = setInterval(async () => {
    const now = (await stat(snapshot)).ino;
    if (now !== inode) folds++;
    inode = now;
  }, 50);
  let logins = 0;
  const figures = await measure(
    writers,
    (_writes, elapsed) => elapsed < maxSeconds * 1000 && (elapsed < seconds * 1000 || folds === 0),
    async () => {
      logins++;
      await users.update(user(Math.floor(Math.random() * size)).id, (current) => ({
        ...structuredClone(current as UserRecord),
        logins_count: logins,
      }));
    },
  );
  clearInterval(watch);
  await store.close();
  return { ...figures, folds };
}

/** A store with so many users. */
async function fill(dataDir: string, size: number): Promise<void> {
  const store = await openLowdbStore({ dataDir, clock: Date.now });
  const users = store.collection('users');
  for (let n = 0; n < size; n += 1000) {
    await Promise.all(Array.from({ length: Math.min(1000, size - n) }, (_, i) => users.put(user(n + i))));
  }
  await store.close();
}

/** Plain lowdb, which does not wait for the disk: so few writes as the time they take allows. */
async function measureBaseline(dataDir: string, size: number, writers: number): Promise<Figures> {
  const low = new Low(new JSONFile<{ users: UserRecord[] }>(join(dataDir, `plain-${writers}.json`)), {
    users: Array.from({ length: size }, (_, n) => user(n)),
  });
  await low.write();
  const bound = Math.max(8, Math.min(512, 1_000_000 / size));
  let logins = 0;
  return measure(
    writers,
    (writes) => writes < bound,
    async () => {
      const n = Math.floor(Math.random() * size);
      logins++;
      await low.update(({ users }) => {
        users[n] = user(n, logins);
      });
    },
  );
}

/** One measurement in a process of its own, so that none pays for the garbage of another. */
async function apart<F extends Figures>(task: Task): Promise<F> {
  const child = fork(fileURLToPath(import.meta.url), [JSON.stringify(task)]);
  const [figures] = await once(child, 'message');
  return figures;
}

async function run({ what, dataDir, size, writers }: Task): Promise<void> {
  if (what === 'fill') await fill(dataDir, size);
  const measured = what === 'plain' ? measureBaseline : measureStore;
  process.send?.(what === 'fill' ? {} : await measured(dataDir, size, writers));
  process.disconnect();
}

async function compare(sizes: number[]): Promise<void> {
  const rows = [];
  for (const size of sizes) {
    const dataDir = await mkdtemp(join(tmpdir(), 'gatehouse-bench-'));
    try {
      await apart({ what: 'fill', dataDir, size, writers: 1 });
      for (const writers of concurrency) {
        const plain = await apart({ what: 'plain', dataDir, size, writers });
        const ours = await apart<Figures & { folds: number }>({ what: 'store', dataDir, size, writers });
        rows.push({
          users: size,
          writers,
          'writes/s': Math.round(ours.writesPerSecond),
          'plain writes/s': Number(plain.writesPerSecond.toPrecision(3)),
          'writes ratio': Number((ours.writesPerSecond / plain.writesPerSecond).toPrecision(3)),
          'p99 ms': Number(ours.p99.toFixed(1)),
          'delay ms': Number(ours.delay.toFixed(1)),
          'gap ms': Number(ours.gap.toFixed(1)),
          'gc ms': Number(ours.gc.toFixed(1)),
          'plain gap ms': Number(plain.gap.toFixed(1)),
          'gap ratio': Number((ours.gap / plain.gap).toPrecision(2)),
          folds: ours.folds,
        });
      }
    } finally {
      await rm(dataDir, { recursive: true });
    }
  }
  console.log(`Node ${process.version}, ${cpus().length} × ${cpus()[0]?.model}`);
  console.table(rows);
}

function sleep(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

const parameters = process.argv.slice(2);
if (process.send !== undefined) await run(JSON.parse(parameters[0] ?? ''));
else await compare(parameters.length > 0 ? parameters.map(Number) : [1000, 10_000, 100_000]);
