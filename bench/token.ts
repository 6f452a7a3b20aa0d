// Tokens per second compared with a bare oidc-provider with its memory adapter, and password logins compared with the
// rate of the hash alone; alternately, in one run. Both speak plain HTTP, so that TLS hides nothing.
//
// Password logins at 0.9 of the hash rate are out of reach on two cores: a hash takes about 14 ms of processor time, so
// 0.9 leaves 1.5 ms for the rest of a login, and the RS256 signature of its ID token with its dispatch takes half of
// that; 4 to 5 ms were measured on the main thread while its code is not yet optimized, spread over many small parts.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import autocannon from 'autocannon';
import { API, client, MACHINE, PASSWORD, TENANT } from './fixture.ts';
import { local, median, PROXIED, proxiedEnvironment, type Started, start, stop } from './server.ts';

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 3);
const SECONDS = Number(process.env.BENCH_SECONDS ?? 5);
const CONNECTIONS = 16;
const here = (file: string) => fileURLToPath(new URL(file, import.meta.url));

type Fields = Record<string, string>;

async function post(url: string, fields: Fields): Promise<Record<string, string>> {
  const answer = await fetch(url, { method: 'POST', body: new URLSearchParams(fields), headers: PROXIED });
  if (!answer.ok) throw new Error(`${url}: ${answer.status} ${await answer.text()}`);
  return answer.json() as Promise<Record<string, string>>;
}

interface Load {
  url: string;
  fields?: Fields;
  headers?: Record<string, string>;
  connections?: number;
}

/** Returns how many requests per second were answered with 200. */
async function load({ url, fields, headers = {}, connections = CONNECTIONS }: Load): Promise<number> {
  const result = await autocannon({
    url,
    connections,
    duration: SECONDS,
    headers: {
      ...PROXIED,
      ...headers,
      ...(fields === undefined ? {} : { 'content-type': 'application/x-www-form-urlencoded' }),
    },
    ...(fields === undefined ? {} : { method: 'POST', body: new URLSearchParams(fields).toString() }),
  });
  if (result.non2xx > 0 || result.errors > 0) {
    throw new Error(`${url}: ${result.non2xx} failures, ${result.errors} errors`);
  }
  return result['2xx'] / result.duration;
}

async function compare(name: string, goal: number, ours: () => Promise<number>, bare: () => Promise<number>) {
  const pairs: [number, number][] = [];
  for (let round = 0; round < ROUNDS; round++) pairs.push([await ours(), await bare()]);
  return {
    name,
    'gatehouse/s': Math.round(median(pairs.map(([a]) => a))),
    'baseline/s': Math.round(median(pairs.map(([, b]) => b))),
    ratio: Number(median(pairs.map(([a, b]) => a / b)).toFixed(3)),
    goal,
  };
}

const residentMegabytes = (pid: number | undefined) =>
  Math.round(Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024);

async function startToFirstToken(env: Record<string, string>): Promise<{ server: Started; seconds: number }> {
  const began = performance.now();
  const server = await start(here('../src/main.js'), env);
  await post(`${local(server)}/oauth/token`, MACHINE);
  return { server, seconds: Number(((performance.now() - began) / 1000).toFixed(2)) };
}

const directory = mkdtempSync(join(tmpdir(), 'gatehouse-bench-'));
writeFileSync(join(directory, 'tenant.yaml'), TENANT);
const env = proxiedEnvironment(directory);

const first = await startToFirstToken(env);
await stop(first.server);
const again = await startToFirstToken(env);
const gatehouse = again.server;
const idle = residentMegabytes(gatehouse.child.pid);
const bare = await start(here('bare.ts'), {});

const tokens = await post(`${local(gatehouse)}/oauth/token`, PASSWORD);
const bareClient = { client_id: 'bench', client_secret: 'bench-secret' };
const refresh = (refresh_token: unknown) => ({
  grant_type: 'refresh_token',
  refresh_token: String(refresh_token),
});
const bearer = (token: unknown) => ({ authorization: `Bearer ${String(token)}` });

const rows = [
  // First, while the baseline's adapter (which keeps the 1,000 latest artifacts) still has its token.
  await compare(
    'userinfo, opaque token',
    0.85,
    () => load({ url: `${local(gatehouse)}/userinfo`, headers: bearer(tokens.access_token) }),
    () => load({ url: `${bare.url}/me`, headers: bearer(bare.facts.accessToken) }),
  ),
  await compare(
    'client_credentials, RS256 JWT',
    0.85,
    () => load({ url: `${local(gatehouse)}/oauth/token`, fields: MACHINE }),
    () =>
      load({
        url: `${bare.url}/token`,
        fields: { ...bareClient, grant_type: 'client_credentials', resource: API, scope: 'read:things' },
      }),
  ),
  await compare(
    'refresh_token, access token and ID token',
    0.85,
    () =>
      load({
        url: `${local(gatehouse)}/oauth/token`,
        fields: { ...client, ...refresh(tokens.refresh_token) },
      }),
    () => load({ url: `${bare.url}/token`, fields: { ...bareClient, ...refresh(bare.facts.refreshToken) } }),
  ),
  await compare(
    'password login / hash rate',
    0.9,
    () =>
      load({
        url: `${local(gatehouse)}/oauth/token`,
        fields: { ...PASSWORD, scope: 'openid' },
        connections: 8,
      }),
    async () =>
      (
        JSON.parse(
          execFileSync(process.execPath, [here('hash.ts'), String(SECONDS)], { encoding: 'utf8' }),
        ) as {
          perSecond: number;
        }
      ).perSecond,
  ),
];
console.table(rows);
console.log(
  `start to first token: ${first.seconds} s at the first start, ${again.seconds} s after (goal 1.5 s)`,
);
const loaded = residentMegabytes(gatehouse.child.pid);
// A quiet minute is detected at the end of the following one at the latest.
await setTimeout(125_000);
const quiet = residentMegabytes(gatehouse.child.pid);
console.log(
  `resident: ${idle} MB after the start (goal 120 MB), ${loaded} MB after the load, ${quiet} MB when quiet (goal 250 MB)`,
);
await stop(bare);
await stop(gatehouse);
rmSync(directory, { recursive: true });
