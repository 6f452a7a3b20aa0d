// Processor time of a request, of the main thread and of the whole process, compared with a bare oidc-provider in the
// same run. Other load on the machine hardly changes it, unlike requests per second (token.ts). node bench/cpu.ts
// [journey …]      PROFILE=directory writes a .cpuprofile of the server
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import autocannon from 'autocannon';
import { API, client, MACHINE, PASSWORD, TENANT } from './fixture.ts';
import { local, median, PROXIED, processorTime, proxiedEnvironment, start, stop } from './server.ts';

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 3);
const REQUESTS = Number(process.env.BENCH_REQUESTS ?? 4_000);
/** Rounds that are not counted: V8 compiles during the first 12,000 requests or so, which takes up to an eighth of their time. */
const WARM_UP = Number(process.env.BENCH_WARM_UP ?? 3);
const here = (file: string) => fileURLToPath(new URL(file, import.meta.url));

type Fields = Record<string, string>;
interface Load {
  url: string;
  fields?: Fields;
  headers?: Record<string, string>;
  requests?: number;
}

async function send({ url, fields, headers = {}, requests = REQUESTS }: Load): Promise<number> {
  const result = await autocannon({
    url,
    connections: 8,
    amount: requests,
    headers: {
      ...PROXIED,
      ...headers,
      ...(fields === undefined ? {} : { 'content-type': 'application/x-www-form-urlencoded' }),
    },
    ...(fields === undefined ? {} : { method: 'POST', body: new URLSearchParams(fields).toString() }),
  });
  if (result.non2xx > 0 || result.errors > 0) throw new Error(`${url}: ${result.non2xx} failures`);
  return result['2xx'];
}

/** Processor time of a request in microseconds, of the main thread and of all threads. */
async function cost(pid: number, load: Load) {
  const before = processorTime(pid);
  const count = await send(load);
  const after = processorTime(pid);
  return { main: (after.main - before.main) / count / 1_000, all: (after.all - before.all) / count / 1_000 };
}

async function post(url: string, fields: Fields): Promise<Record<string, string>> {
  const answer = await fetch(url, { method: 'POST', body: new URLSearchParams(fields), headers: PROXIED });
  if (!answer.ok) throw new Error(`${url}: ${answer.status} ${await answer.text()}`);
  return answer.json() as Promise<Record<string, string>>;
}

const directory = mkdtempSync(join(tmpdir(), 'gatehouse-bench-'));
writeFileSync(join(directory, 'tenant.yaml'), TENANT);
const { PROFILE } = process.env;
const gatehouse = await start(here('../src/main.js'), {
  ...proxiedEnvironment(directory),
  ...(PROFILE === undefined ? {} : { NODE_OPTIONS: `--cpu-prof --cpu-prof-dir=${PROFILE}` }),
});
const bare = await start(here('bare.ts'), {});
const ours = local(gatehouse);
const tokens = await post(`${ours}/oauth/token`, PASSWORD);
const bareClient = { client_id: 'bench', client_secret: 'bench-secret' };
const refresh = (refresh_token: unknown) => ({
  grant_type: 'refresh_token',
  refresh_token: String(refresh_token),
});
const bearer = (token: unknown) => ({ authorization: `Bearer ${String(token)}` });

const journeys: Record<string, { ours: Load; bare?: Load }> = {
  userinfo: {
    ours: { url: `${ours}/userinfo`, headers: bearer(tokens.access_token) },
    bare: { url: `${bare.url}/me`, headers: bearer(bare.facts.accessToken) },
  },
  client_credentials: {
    ours: { url: `${ours}/oauth/token`, fields: MACHINE },
    bare: {
      url: `${bare.url}/token`,
      fields: { ...bareClient, grant_type: 'client_credentials', resource: API, scope: 'read:things' },
    },
  },
  refresh_token: {
    ours: { url: `${ours}/oauth/token`, fields: { ...client, ...refresh(tokens.refresh_token) } },
    bare: { url: `${bare.url}/token`, fields: { ...bareClient, ...refresh(bare.facts.refreshToken) } },
  },
  discovery: {
    ours: { url: `${ours}/.well-known/openid-configuration` },
    bare: { url: `${bare.url}/.well-known/openid-configuration` },
  },
  password: {
    ours: { url: `${ours}/oauth/token`, fields: { ...PASSWORD, scope: 'openid' }, requests: REQUESTS / 8 },
  },
};

const chosen = process.argv.slice(2);
const rows = [];
for (const [name, { ours, bare: baseline }] of Object.entries(journeys)) {
  if (chosen.length > 0 && !chosen.includes(name)) continue;
  const pairs: { a: Awaited<ReturnType<typeof cost>>; b: Awaited<ReturnType<typeof cost>> | undefined }[] =
    [];
  for (let round = 0; round < WARM_UP; round++) {
    await send(ours);
    if (baseline !== undefined) await send(baseline);
  }
  for (let round = 0; round < ROUNDS; round++) {
    const a = await cost(Number(gatehouse.child.pid), ours);
    const b = baseline === undefined ? undefined : await cost(Number(bare.child.pid), baseline);
    pairs.push({ a, b });
  }
  const middle = (of: (pair: (typeof pairs)[number]) => number) => Math.round(median(pairs.map(of)));
  rows.push({
    name,
    'gatehouse main µs': middle(({ a }) => a.main),
    'gatehouse all µs': middle(({ a }) => a.all),
    ...(baseline === undefined
      ? {}
      : {
          'bare main µs': middle(({ b }) => b?.main ?? 0),
          'bare all µs': middle(({ b }) => b?.all ?? 0),
          'bare / gatehouse': Number(median(pairs.map(({ a, b }) => (b?.all ?? 0) / a.all)).toFixed(3)),
        }),
  });
}
console.table(rows);
await stop(bare);
await stop(gatehouse);
rmSync(directory, { recursive: true });
