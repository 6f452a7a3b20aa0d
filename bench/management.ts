// The Management API with 100,000 users: the duration of lists, searches, reads and patches, and how they and an import
// by the command delay concurrent logins, alternating with logins alone. Run: node bench/management.ts [users]
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Write } from '../src/store/contract.ts';
import { openStore } from '../src/store/open.ts';
import { local, median, PROXIED, proxiedEnvironment, start, stop } from './server.ts';

const USERS = Number(process.argv[2] ?? 100_000);
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 3);
const SECONDS = Number(process.env.BENCH_SECONDS ?? 10);
/** Management calls per second: as many as the limit allows one address, like a busy tool. */
const CALLS = 20;
const GOAL = { milliseconds: 50, ratio: 1.2, importSeconds: 300 };
const AUDIENCE = 'https://bench.example.test/api/v2/';
const UNLIMITED = '{ capacity: 100000000, perMinute: 100000000 }';

const TENANT = `
tenant: { friendly_name: Bench, default_directory: users }
clients:
  - client_id: bench
    name: Bench
    app_type: regular_web
    client_secret: bench-secret-that-is-no-example
    grant_types: [client_credentials, password]
databases: [{ name: users, enabled_clients: [bench] }]
clientGrants: [{ client_id: bench, audience: '${AUDIENCE}', allow_all_scopes: true }]
users: [{ email: ada@example.test, password: Correct-Horse-1, connection: users, email_verified: true }]
attackProtection:
  rateLimits: { login: ${UNLIMITED}, token: ${UNLIMITED}, management: ${UNLIMITED} }
`;
const client = { client_id: 'bench', client_secret: 'bench-secret-that-is-no-example' };

const nameOf = (n: number) => n.toString(16).padStart(24, '0');

function writesOf(n: number): Write[] {
  // Ids are in no order, like real ones.
  const upstream = nameOf((n * 2_654_435_761) % 2 ** 32);
  const id = `auth0|${upstream}`;
  const email = `user${n}@example.com`;
  const at = new Date(1_700_000_000_000 + n * 60_000).toISOString();
  return [
    {
      collection: 'users',
      put: {
        id,
        email,
        email_verified: n % 2 === 0,
        name: `Ada User${n}`,
        given_name: 'Ada',
        family_name: `User${n}`,
        nickname: `user${n}`,
        user_metadata: { theme: 'dark', city: 'Zürich' },
        app_metadata: { plan: 'free', roles: ['reader', 'writer'], customer: `c${n % 1000}` },
        created_at: at,
        updated_at: at,
        logins_count: n % 50,
      },
    },
    {
      collection: 'identities',
      put: {
        id: `users|${upstream}`,
        user_id: id,
        connection: 'users',
        provider: 'auth0',
        upstream_id: upstream,
        isSocial: false,
        email,
        unique: ['email'],
      },
    },
  ];
}

/** Returns the duration in seconds. */
async function fill(dataDir: string): Promise<number> {
  const began = performance.now();
  const store = await openStore({ dataDir, clock: Date.now });
  for (let n = 0; n < USERS; n += 500) {
    const some = Array.from({ length: Math.min(500, USERS - n) }, (_, i) => n + i);
    await store.batch(some.flatMap(writesOf));
  }
  await store.close();
  return (performance.now() - began) / 1000;
}

async function json(url: string, init: RequestInit): Promise<Record<string, string>> {
  const headers = { ...PROXIED, 'content-type': 'application/json', ...init.headers };
  const answer = await fetch(url, { ...init, headers });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${url}: ${answer.status} ${text.slice(0, 300)}`);
  return JSON.parse(text) as Record<string, string>;
}

const quantile = (times: number[], part: number) =>
  times.toSorted((a, b) => a - b)[Math.min(times.length - 1, Math.floor(times.length * part))] ?? 0;
const rounded = (value: number) => Number(value.toFixed(1));

async function timed(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

const directory = mkdtempSync(join(tmpdir(), 'gatehouse-bench-'));
writeFileSync(join(directory, 'tenant.yaml'), TENANT);
const filled = await fill(join(directory, 'data'));
console.log(`${USERS} users written in ${filled.toFixed(0)} s`);
const server = await start(
  fileURLToPath(new URL('../src/main.js', import.meta.url)),
  proxiedEnvironment(directory),
);
const base = local(server);
const { access_token: token } = await json(`${base}/oauth/token`, {
  method: 'POST',
  body: JSON.stringify({ ...client, grant_type: 'client_credentials', audience: AUDIENCE }),
});
const headers = { authorization: `Bearer ${token}` };
const get = (path: string) => () => json(`${base}/api/v2/${path}`, { headers });
const search = (q: string, rest = '') => get(`users?include_totals=true&q=${encodeURIComponent(q)}${rest}`);
let turn = 0;
/** A different user at each call. */
const another = () => {
  turn = (turn + 7919) % USERS;
  return turn;
};
const someone = () => nameOf((another() * 2_654_435_761) % 2 ** 32);
const patch = () =>
  json(`${base}/api/v2/users/auth0%7C${someone()}`, {
    method: 'PATCH',
    headers,
    body: JSON.stringify({ app_metadata: { seen: turn } }),
  });

const calls: [name: string, call: () => Promise<unknown>][] = [
  ['list', get('users?include_totals=true&per_page=50')],
  ['list, newest first', get('users?include_totals=true&sort=created_at:-1')],
  ['read', () => get(`users/auth0%7C${someone()}`)()],
  ['by e-mail', () => get(`users-by-email?email=user${another()}@example.com`)()],
  ['search by e-mail', search('email:"USER77@example.com"')],
  ['search by user_id', () => search(`user_id:"auth0|${someone()}"`)()],
  ['search by the beginning of a name', search('name:ada\\ user12*')],
  ['search by metadata (100 users)', search('app_metadata.customer:c7')],
  ['search by metadata (all users)', search('app_metadata.plan:free')],
  ['search by connection (all users)', search('identities.connection:users')],
  ['patch', patch],
];

/** Makes password logins one after another for a while, with other work beside them. @returns their durations */
async function logins(beside?: () => Promise<unknown>, seconds = SECONDS): Promise<number[]> {
  const end = performance.now() + seconds * 1000;
  const body = JSON.stringify({
    ...client,
    grant_type: 'password',
    username: 'ada@example.test',
    password: 'Correct-Horse-1',
    scope: 'openid',
  });
  const times: number[] = [];
  const login = async () => {
    while (performance.now() < end) {
      times.push(await timed(() => json(`${base}/oauth/token`, { method: 'POST', body })));
    }
  };
  const other = async () => {
    while (beside !== undefined && performance.now() < end) {
      const took = await timed(beside);
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, 1000 / CALLS - took)));
    }
  };
  await Promise.all([login(), other()]);
  return times;
}

/** Imports users beside logins. @returns the duration of the import in seconds, and the durations of the logins meanwhile */
async function importing(): Promise<{ seconds: number; times: number[] }> {
  const file = join(directory, 'import.json');
  const lines = Array.from({ length: USERS }, (_, n) =>
    JSON.stringify({
      email: `import${n}@example.com`,
      name: `Grace Import${n}`,
      password_hash: `$2b$10$${'a'.repeat(53)}`,
      app_metadata: { plan: 'free' },
    }),
  );
  writeFileSync(file, lines.join('\n'));
  const cli = fileURLToPath(new URL('../src/cli.ts', import.meta.url));
  const env = { ...process.env, ...proxiedEnvironment(directory) };
  const began = performance.now();
  const child = spawn(process.execPath, [cli, 'users', 'import', file], { env, stdio: 'inherit' });
  let over = false;
  const ended = once(child, 'exit').then(([code]) => {
    over = true;
    if (code !== 0) throw new Error(`the import ended with ${String(code)}`);
    return (performance.now() - began) / 1000;
  });
  const times: number[] = [];
  while (!over) times.push(...(await logins(undefined, 1)));
  return { seconds: await ended, times };
}

let failed = false;
try {
  for (const [, call] of calls) await call();
  const rows = [];
  for (const [name, call] of calls) {
    const times = [];
    for (let n = 0; n < 40; n++) times.push(await timed(call));
    const p50 = rounded(quantile(times, 0.5));
    failed ||= p50 > GOAL.milliseconds;
    rows.push({ name, 'p50 ms': p50, 'p95 ms': rounded(quantile(times, 0.95)), goal: GOAL.milliseconds });
  }
  console.table(rows);
  await logins();
  const pairs: [alone: number, beside: number][] = [];
  let at = 0;
  const next = () => calls[at++ % calls.length]?.[1]() ?? Promise.resolve();
  for (let round = 0; round < ROUNDS; round++) {
    pairs.push([quantile(await logins(), 0.99), quantile(await logins(next), 0.99)]);
  }
  const ratio = median(pairs.map(([alone, beside]) => beside / alone));
  failed ||= ratio > GOAL.ratio;
  console.table([
    {
      name: `p99 of a login beside ${CALLS} calls a second`,
      'alone ms': rounded(median(pairs.map(([alone]) => alone))),
      'beside ms': rounded(median(pairs.map(([, beside]) => beside))),
      ratio: Number(ratio.toFixed(2)),
      goal: GOAL.ratio,
    },
  ]);
  const alone = quantile(await logins(), 0.99);
  const { seconds, times } = await importing();
  failed ||= seconds > GOAL.importSeconds;
  console.table([
    {
      name: `import of ${USERS} users by the command, beside logins`,
      seconds: rounded(seconds),
      'goal s': GOAL.importSeconds,
      'p99 alone ms': rounded(alone),
      'p50 ms': rounded(quantile(times, 0.5)),
      'p99 ms': rounded(quantile(times, 0.99)),
      'longest ms': rounded(Math.max(...times)),
    },
  ]);
} finally {
  await stop(server);
  rmSync(directory, { recursive: true });
}
if (failed) process.exitCode = 1;
