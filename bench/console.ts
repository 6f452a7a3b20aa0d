// Opens every page of the console with 100,000 users and 300,000 log events, the first time after a start and then
// repeatedly. Run: node bench/console.ts [users] [events]; with BENCH_DIR the data is kept for the next run.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { EXAMPLE_ADMINISTRATOR } from '../src/features/console/administrators/example.ts';
import type { Write } from '../src/store/contract.ts';
import { openStore } from '../src/store/open.ts';
import { eventIdAt } from '../src/tenant/events.ts';
import { EXAMPLE_FILE } from '../src/tenant/examples.ts';
import { createAgent, readForm } from '../test/support/agent.ts';
import { findPages } from '../test/support/console-pages.ts';
import { follow } from '../test/support/flows.ts';
import { freePort } from '../test/support/free-port.ts';
import { processorTime, start, stop } from './server.ts';

const USERS = Number(process.argv[2] ?? 100_000);
const EVENTS = Number(process.argv[3] ?? 300_000);
const TIMES = Number(process.env.BENCH_TIMES ?? 20);
const GOAL_MS = 100;
const DAY_MS = 86_400_000;
const DIRECTORY = 'Username-Password-Authentication';

/** Ids are in no order, like real ones. */
const nameOf = (n: number) => ((n * 2_654_435_761) % 2 ** 32).toString(16).padStart(24, '0');

function userOf(n: number): Write[] {
  const upstream = nameOf(n);
  const id = `auth0|${upstream}`;
  // Two common names that no user has together.
  const [given, nickname] = n % 2 === 0 ? ['Ada', `ada${n}`] : ['Grace', `grace${n}`];
  const email = `${nickname}@example.com`;
  const at = new Date(1_700_000_000_000 + n * 60_000).toISOString();
  const names = { name: `${given} User${n}`, given_name: given, family_name: `User${n}`, nickname };
  const app_metadata = { plan: 'free', customer: `c${n % 1000}` };
  const times = { created_at: at, updated_at: at };
  const user = {
    id,
    email,
    email_verified: n % 4 < 2,
    ...names,
    user_metadata: {},
    app_metadata,
    ...times,
    logins_count: n % 50,
    // Most users last logged in within 60 days, half of these within 30.
    ...(n % 50 > 0 && { last_login: new Date(Date.now() - (n % 60) * DAY_MS - 60_000).toISOString() }),
  };
  const shared = { connection: DIRECTORY, provider: 'auth0', isSocial: false, email };
  return [
    { collection: 'users', put: user },
    {
      collection: 'identities',
      put: {
        id: `${DIRECTORY}|${upstream}`,
        user_id: id,
        upstream_id: upstream,
        unique: ['email'],
        ...shared,
      },
    },
  ];
}

/** Events of the last 29 days, mostly logins: three events for each login. */
function eventOf(n: number): Write[] {
  const at = Date.now() - Math.floor(((EVENTS - n) / EVENTS) * 29 * DAY_MS);
  const login = Math.floor(n / 3);
  const type = ['s', 'seacft', 'f', 's', 'seacft', 'ss'][n % 6] ?? 's';
  return [
    {
      collection: 'logs',
      put: {
        id: `${eventIdAt(at)}${nameOf(n)}`,
        date: new Date(at).toISOString(),
        type,
        client_id: 'bench',
        connection: DIRECTORY,
        user_id: `auth0|${nameOf((login * 7919) % USERS)}`,
        user_name: `ada${(login * 7919) % USERS}@example.com`,
        ip: `203.0.113.${login % 250}`,
        transaction: nameOf(login),
        expiresAt: Math.floor(at / 1000) + 31 * 86_400,
      },
    },
  ];
}

async function fill(dataDir: string): Promise<void> {
  mkdirSync(dataDir, { recursive: true });
  const store = await openStore({ dataDir, clock: Date.now });
  const write = async (count: number, make: (n: number) => Write[]) => {
    for (let n = 0; n < count; n += 500) {
      const some = Array.from({ length: Math.min(500, count - n) }, (_, i) => n + i);
      await store.batch(some.flatMap(make));
    }
  };
  await write(USERS, userOf);
  await write(EVENTS, eventOf);
  await store.close();
}

const quantile = (times: number[], part: number) =>
  times.toSorted((a, b) => a - b)[Math.min(times.length - 1, Math.floor(times.length * part))] ?? 0;
const rounded = (value: number) => Number(value.toFixed(1));

const directory = process.env.BENCH_DIR ?? mkdtempSync(join(tmpdir(), 'gatehouse-bench-'));
const dataDir = join(directory, 'data');
if (!existsSync(dataDir)) await fill(dataDir);
const UNLIMITED = '{ capacity: 1000000, perMinute: 1000000 }';
const tenantFile = join(directory, 'tenant.yaml');
writeFileSync(
  tenantFile,
  `${readFileSync(EXAMPLE_FILE, 'utf8')}\nattackProtection: { rateLimits: { console: ${UNLIMITED} } }\n`,
);
const env = {
  PORT: String(await freePort()),
  TENANT_FILE: tenantFile,
  DATA_DIR: dataDir,
};
const server = await start(fileURLToPath(new URL('../src/main.js', import.meta.url)), env);
const there = { url: server.url, ca: readFileSync(join(dataDir, 'tls/ca.pem'), 'utf8') };
const agent = createAgent(there);
const rows: Record<string, string | number>[] = [];
try {
  const page = await follow(agent, await agent.get('/console'), there.url);
  const { action, fields } = readForm(page, 'password');
  const form = { ...fields, username: EXAMPLE_ADMINISTRATOR.email, password: EXAMPLE_ADMINISTRATOR.password };
  await follow(agent, await agent.request(action, { form }), there.url);
  const first = new Map<string, number>();
  const timed = async (path: string) => {
    const began = performance.now();
    const answer = await agent.get(path);
    const took = performance.now() - began;
    return { took, answer };
  };
  const open = async (path: string) => {
    const { took, answer } = await timed(path);
    if (answer.status !== 200) return undefined;
    first.set(path, took);
    return answer.text;
  };
  const searches = [
    ...['ada', 'ada user', 'user ada', 'user grace', 'ada grace', 'ada nobody', 'ada12', 'nobody'],
    'ada12@example.com',
  ].map((q) => `/console/users?q=${encodeURIComponent(q)}`);
  const someone = `auth0|${nameOf(7919)}`;
  const more = [
    ...searches,
    '/console/users?q=ada&page=39',
    '/console/users?q=ada&filter=blocked',
    '/console/users?q=ada&filter=unverified',
    `/console/users?q=ada&connection=${DIRECTORY}`,
    '/console/users?page=39',
    ...[
      'group=logins',
      'type=f',
      'ip=203.0.113.7',
      'client=bench',
      `user=${encodeURIComponent(someone)}`,
    ].map((one) => `/console/log?${one}`),
    `/console/log?connection=${DIRECTORY}`,
  ];
  const found = await findPages(open);
  const pages = [...found, ...more.map((path) => ({ route: path, path }))];
  for (const path of more) {
    const { answer } = await timed(path);
    if (answer.status !== 200) throw new Error(`${path}: ${answer.status}`);
  }
  for (const { route, path } of pages) {
    const times: number[] = [];
    const before = processorTime(server.child.pid ?? 0).all;
    for (let n = 0; n < TIMES; n++) {
      const { took, answer } = await timed(path);
      if (answer.status !== 200) console.log(`${path}: ${answer.status}`);
      times.push(took);
    }
    rows.push({
      page: route.replace('/console', '') || '/',
      first: rounded(first.get(path) ?? 0),
      p50: rounded(quantile(times, 0.5)),
      p95: rounded(quantile(times, 0.95)),
      // Processor time, which other load on the machine does not increase.
      processor: rounded((processorTime(server.child.pid ?? 0).all - before) / 1e6 / TIMES),
    });
  }
} finally {
  await stop(server);
  if (process.env.BENCH_DIR === undefined) rmSync(directory, { recursive: true });
}
for (const row of rows) console.log(Object.values(row).join('\t'));
const slow = rows.filter(({ first, p50, p95 }) => Math.max(...[first, p50, p95].map(Number)) > GOAL_MS);
console.log(`${rows.length} pages, of which ${slow.length} took over ${GOAL_MS} ms`);
if (slow.length > 0) {
  console.table(slow);
  process.exitCode = 1;
}
