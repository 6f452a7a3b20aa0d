// Whole logins at an external provider, from /authorize to the code at the application: with a script that requests the
// profile, compared with a strategy that makes the same request without a script; one at a time, and 50 in parallel.
// Run: node bench/upstream.ts
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { profileScript } from '../test/support/oauth2-provider.ts';
import { UNLIMITED } from '../test/support/unlimited.ts';
import { local, PROXIED, proxiedEnvironment, start, stop } from './server.ts';

const LOGINS = Number(process.env.BENCH_LOGINS ?? 300);
const PARALLEL = 50;
/** The goal: how many milliseconds a script may add to the median login once it is warm. */
const GOAL = 10;
const WARM = 20;
const CALLBACK = 'https://app.example.test/callback';
const OPTIONS = { client_id: 'ours', client_secret: 'upstream-secret' };

let people = 0;
const provider = http.createServer((request, response) => {
  response.writeHead(200, { 'content-type': 'application/json' });
  const sub = `user-${++people % 500}`;
  const user = { id: sub, sub, name: 'Ada', email: `${sub}@example.test`, email_verified: true };
  const token = { access_token: 'token', token_type: 'Bearer', expires_in: 3600 };
  response.end(JSON.stringify(request.url === '/token' ? token : user));
});
await new Promise<void>((resolve) => provider.listen(0, '127.0.0.1', resolve));
const url = `http://127.0.0.1:${(provider.address() as AddressInfo).port}`;
const endpoints = { authorizationURL: `${url}/authorize`, tokenURL: `${url}/token` };

const connection = (name: string, strategy: string, options: object) => ({
  name,
  strategy,
  enabled_clients: ['bench'],
  options: { ...OPTIONS, ...endpoints, ...options },
});
const directory = mkdtempSync(join(tmpdir(), 'gatehouse-bench-'));
const tenant = {
  tenant: { friendly_name: 'Bench' },
  clients: [
    {
      client_id: 'bench',
      name: 'Bench',
      app_type: 'regular_web',
      client_secret: 'bench-secret-that-is-no-example',
      oidc_conformant: true,
      callbacks: [CALLBACK],
      grant_types: ['authorization_code'],
    },
  ],
  connections: [
    connection('scripted', 'oauth2', { scripts: { fetchUserProfile: profileScript(url) } }),
    connection('plain', 'gitlab', { userInfoURL: `${url}/userinfo` }),
  ],
  ...UNLIMITED,
};
// JSON is also YAML.
writeFileSync(join(directory, 'tenant.yaml'), JSON.stringify(tenant));
const main = fileURLToPath(new URL('../src/main.js', import.meta.url));
const server = await start(main, { ...proxiedEnvironment(directory), OUTBOUND_ALLOW: '127.0.0.0/8' });

/** A login as a browser makes it, without the provider's own page. */
async function login(name: string): Promise<void> {
  const jar = new Map<string, string>();
  const get = async (path: string): Promise<string> => {
    const cookie = [...jar].map(([key, value]) => `${key}=${value}`).join('; ');
    const answer = await fetch(`${local(server)}${path}`, {
      redirect: 'manual',
      headers: { ...PROXIED, cookie },
    });
    for (const one of answer.headers.getSetCookie()) {
      const [key = '', value = ''] = (one.split(';')[0] ?? '').split(/=(.*)/s);
      jar.set(key, value);
    }
    await answer.arrayBuffer();
    const location = answer.headers.get('location');
    if (location === null) throw new Error(`${path}: ${answer.status}`);
    return location;
  };
  const request = {
    client_id: 'bench',
    response_type: 'code',
    redirect_uri: CALLBACK,
    scope: 'openid profile',
  };
  const away = await get(`/authorize?${new URLSearchParams({ ...request, connection: name })}`);
  const state = new URL(away).searchParams.get('state') ?? '';
  let at = await get(`/login/callback?${new URLSearchParams({ code: 'code', state })}`);
  while (!at.startsWith(CALLBACK)) {
    const { pathname, search } = new URL(at, 'https://bench.example.test');
    at = await get(pathname + search);
  }
  if (!new URL(at).searchParams.has('code')) throw new Error(at);
}

const quantile = (times: number[], part: number) =>
  times.toSorted((a, b) => a - b)[Math.floor((times.length - 1) * part)] ?? 0;
const timed = async (name: string) => {
  const began = performance.now();
  await login(name);
  return performance.now() - began;
};
const shown = (times: number[]) =>
  `median ${quantile(times, 0.5).toFixed(1)} ms, 95 % ${quantile(times, 0.95).toFixed(1)} ms`;

const NAMES = ['plain', 'scripted'] as const;
// Alternately, so that other load on the machine affects both alike.
const alone: Record<string, number[]> = { plain: [], scripted: [] };
for (let n = 0; n < LOGINS + WARM; n++) {
  for (const name of NAMES) {
    const ms = await timed(name);
    if (n >= WARM) alone[name]?.push(ms);
  }
}
for (const name of NAMES) console.log(`${name}, alone: ${shown(alone[name] ?? [])}`);
for (const name of NAMES) {
  const times: number[] = [];
  const began = performance.now();
  const walk = async () => {
    for (let n = 0; n < LOGINS / 10; n++) times.push(await timed(name));
  };
  await Promise.all(Array.from({ length: PARALLEL }, walk));
  const perSecond = times.length / ((performance.now() - began) / 1000);
  console.log(`${name}, ${PARALLEL} in parallel: ${shown(times)}, ${perSecond.toFixed(0)} a second`);
}
const overhead = quantile(alone.scripted ?? [], 0.5) - quantile(alone.plain ?? [], 0.5);
console.log(`a script adds ${overhead.toFixed(1)} ms to a login in the median (goal: below ${GOAL} ms)`);

await stop(server);
provider.close();
provider.closeAllConnections();
rmSync(directory, { recursive: true, force: true });
