// Passwordless logins per second (a code exchanged for an ID token), compared with the rate of RS256 signatures, of
// which each login needs one; and codes sent per second into the development outbox.
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { generateKeyPair, SignJWT } from 'jose';
import { local, median, PROXIED, proxiedEnvironment, start, stop } from './server.ts';

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 3);
const LOGINS = Number(process.env.BENCH_LOGINS ?? 1500);
const CONNECTIONS = 16;
const GRANT = 'http://auth0.com/oauth/grant-type/passwordless/otp';

const TENANT = `
tenant: { friendly_name: Bench }
clients:
  - client_id: bench
    name: Bench
    app_type: regular_web
    client_secret: bench-secret-that-is-no-example
    callbacks: [https://app.example.test/callback]
    grant_types: [authorization_code, '${GRANT}']
connections: [{ name: email, strategy: email, enabled_clients: [bench], options: { totp: { time_step: 3600 } } }]
attackProtection:
  rateLimits:
    passwordlessStart: { capacity: 100000000, perMinute: 100000000 }
    token: { capacity: 100000000, perMinute: 100000000 }
    other: { capacity: 100000000, perMinute: 100000000 }
`;
const client = { client_id: 'bench', client_secret: 'bench-secret-that-is-no-example' };

/** Runs `task` for each item, with a number of them at once. @returns how many per second. */
async function rate<T>(items: readonly T[], task: (item: T) => Promise<void>): Promise<number> {
  const began = performance.now();
  let next = 0;
  const work = async () => {
    for (let item = items[next++]; item !== undefined; item = items[next++]) await task(item);
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, work));
  return items.length / ((performance.now() - began) / 1000);
}

async function post(url: string, body: object): Promise<void> {
  const headers = { ...PROXIED, 'content-type': 'application/json' };
  const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${url}: ${answer.status} ${text}`);
}

async function signatures(): Promise<number> {
  const { privateKey } = await generateKeyPair('RS256');
  const sign = async () => {
    const claims = { sub: 'email|0123456789abcdef01234567', email: 'ada@example.test', email_verified: true };
    await new SignJWT(claims).setProtectedHeader({ alg: 'RS256' }).setIssuedAt().sign(privateKey);
  };
  return rate(
    Array.from({ length: LOGINS }, () => 0),
    sign,
  );
}

const directory = mkdtempSync(join(tmpdir(), 'gatehouse-bench-'));
writeFileSync(join(directory, 'tenant.yaml'), TENANT);
const environment = proxiedEnvironment(directory);
const server = await start(fileURLToPath(new URL('../src/main.js', import.meta.url)), environment);
const outbox = join(environment.DATA_DIR, 'outbox');

const rounds: { sent: number; logins: number; bare: number }[] = [];
for (let round = 0; round < ROUNDS; round++) {
  const people = Array.from({ length: LOGINS }, (_, i) => `person-${round}-${i}@example.test`);
  const sent = await rate(people, (email) =>
    post(`${local(server)}/passwordless/start`, { ...client, connection: 'email', email, send: 'code' }),
  );
  const codes = new Map<string, string>();
  for (const file of readdirSync(outbox)) {
    const { to, code } = JSON.parse(readFileSync(join(outbox, file), 'utf8')) as { to: string; code: string };
    codes.set(to, code);
  }
  const logins = await rate(people, (username) =>
    post(`${local(server)}/oauth/token`, {
      ...client,
      grant_type: GRANT,
      realm: 'email',
      username,
      otp: codes.get(username),
      scope: 'openid email',
    }),
  );
  rounds.push({ sent, logins, bare: await signatures() });
}
console.table([
  {
    name: 'passwordless login / signing rate',
    'gatehouse/s': Math.round(median(rounds.map(({ logins }) => logins))),
    'baseline/s': Math.round(median(rounds.map(({ bare }) => bare))),
    ratio: Number(median(rounds.map(({ logins, bare }) => logins / bare)).toFixed(3)),
  },
]);
console.log(`codes sent: ${Math.round(median(rounds.map(({ sent }) => sent)))} a second`);
await stop(server);
rmSync(directory, { recursive: true });
