// What a write to the embedded store costs, and how long it holds up the event loop, by the number of users
// in the store and of concurrent writers; against plain lowdb (its JSONFile rewrites the whole file) in the
// same run. Run: node bench/store.ts [users …]
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { Low } from 'lowdb';
import { JSONFile } from 'lowdb/node';
import type { UserRecord } from '../src/store/collections.ts';
import { openLowdbStore } from '../src/store/lowdb.ts';

interface Figures {
  writesPerSecond: number;
  /** Milliseconds. */
  p99: number;
  /** Milliseconds, as monitorEventLoopDelay saw it. */
  delay: number;
  /** Milliseconds, the longest gap between two runs of an interval of one. */
  gap: number;
  folds: number;
}

const sizes = process.argv.length > 2 ? process.argv.slice(2).map(Number) : [1000, 10_000, 100_000];
const concurrency = [1, 64];
const seconds = 3;

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
): Promise<Omit<Figures, 'folds'>> {
  const latencies: number[] = [];
  let gap = 0;
  let last = performance.now();
  const interval = setInterval(() => {
    const now = performance.now();
    gap = Math.max(gap, now - last);
    last = now;
  }, 1);
  const histogram = monitorEventLoopDelay({ resolution: 1 });
  histogram.enable();
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
  await new Promise((resolve) => setTimeout(resolve, 5));
  histogram.disable();
  clearInterval(interval);
  latencies.sort((a, b) => a - b);
  return {
    writesPerSecond: (latencies.length / elapsed) * 1000,
    p99: latencies[Math.floor(latencies.length * 0.99)] ?? 0,
    delay: histogram.max / 1e6,
    gap,
  };
}

/** The store: for some seconds, and until a fold was begun and ended while it was measured. */
async function measureStore(dataDir: string, size: number): Promise<Map<number, Figures>> {
  const store = await openLowdbStore({ dataDir, clock: Date.now });
  const users = store.collection('users');
  for (let n = 0; n < size; n += 1000) {
    await Promise.all(Array.from({ length: Math.min(1000, size - n) }, (_, i) => users.put(user(n + i))));
  }
  await store.close();

  const results = new Map<number, Figures>();
  for (const writers of concurrency) {
    const measured = await openLowdbStore({ dataDir, clock: Date.now });
    const collection = measured.collection('users');
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
      (_writes, elapsed) => elapsed < 60_000 && (elapsed < seconds * 1000 || folds === 0),
      async () => {
        logins++;
        await collection.update(user(Math.floor(Math.random() * size)).id, (current) => ({
          ...structuredClone(current as UserRecord),
          logins_count: logins,
        }));
      },
    );
    clearInterval(watch);
    await measured.close();
    results.set(writers, { ...figures, folds });
  }
  return results;
}

/** Plain lowdb: so few writes as the time of whole-file writing allows. */
async function measureBaseline(dataDir: string, size: number): Promise<Map<number, Figures>> {
  const bound = size >= 100_000 ? 8 : size >= 10_000 ? 64 : 512;
  const results = new Map<number, Figures>();
  for (const writers of concurrency) {
    const low = new Low(new JSONFile<{ users: UserRecord[] }>(join(dataDir, `plain-${writers}.json`)), {
      users: Array.from({ length: size }, (_, n) => user(n)),
    });
    await low.write();
    let logins = 0;
    const figures = await measure(
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
    results.set(writers, { ...figures, folds: 0 });
  }
  return results;
}

async function main(): Promise<void> {
  const rows = [];
  for (const size of sizes) {
    const dataDir = await mkdtemp(join(tmpdir(), 'gatehouse-bench-'));
    try {
      const baseline = await measureBaseline(dataDir, size);
      const store = await measureStore(dataDir, size);
      for (const writers of concurrency) {
        const ours = store.get(writers);
        const plain = baseline.get(writers);
        if (ours === undefined || plain === undefined) continue;
        rows.push({
          users: size,
          writers,
          'writes/s': Math.round(ours.writesPerSecond),
          'plain writes/s': Number(plain.writesPerSecond.toPrecision(3)),
          'ratio writes': Number((ours.writesPerSecond / plain.writesPerSecond).toPrecision(3)),
          'p99 ms': Number(ours.p99.toFixed(1)),
          'stall ms': Number(ours.delay.toFixed(1)),
          'gap ms': Number(ours.gap.toFixed(1)),
          'plain stall ms': Math.round(plain.delay),
          'ratio stall': Number((ours.delay / plain.delay).toPrecision(2)),
          folds: ours.folds,
        });
      }
    } finally {
      await rm(dataDir, { recursive: true });
    }
  }
  console.table(rows);
}

await main();
