// What others get while one network asks for everything: `node bench/fairness.ts`. One line of JSON for each attack, with
// the number of people who were answered in time.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import http from 'node:http';
import https from 'node:https';
import type net from 'node:net';
import { text } from 'node:stream/consumers';
import { SMTPServer } from 'smtp-server';
import { tenant as passwordless } from '../test/connections/passwordless/tenant.ts';
import { tenant, USER, webRequest } from '../test/support/flows.ts';
import { startServer, type TestServer } from '../test/support/server.ts';
import { UNLIMITED } from '../test/support/unlimited.ts';

const PROXY = { TLS: 'proxy', TRUSTED_PROXIES: '127.0.0.1', BASE_URL: 'https://login.example.test' };
const WEB = { client_id: 'web', client_secret: 'web-secret' };
const PEOPLE = 8;
const SECONDS = Number(process.env.BENCH_SECONDS ?? 15);

const attacker = (i: number) => `2001:db8:66:${(i % 65_536).toString(16)}::1`;
const person = (i: number) => `198.51.${100 + i}.7`;
const times = <T>(count: number, make: (i: number) => T): T[] =>
  Array.from({ length: count }, (_, i) => make(i));

interface Answer {
  status: number;
  location: string;
  cookies: string;
}

/**
 * Connections of the attack, and those of people, which are open before it begins: how fast connections are accepted is
 * the kernel's matter.
 */
const AGENTS = { attack: new http.Agent({ keepAlive: true }), people: new http.Agent({ keepAlive: true }) };

async function ask(
  server: TestServer,
  ip: string,
  path: string,
  json?: object,
  cookie = '',
): Promise<Answer> {
  const body = json === undefined ? undefined : JSON.stringify(json);
  const request = http.request({
    host: '127.0.0.1',
    port: server.settings.port,
    path,
    method: body === undefined ? 'GET' : 'POST',
    agent: ip.includes(':') ? AGENTS.attack : AGENTS.people,
    signal: AbortSignal.timeout(SECONDS * 1_000),
    headers: {
      'x-forwarded-proto': 'https',
      'x-forwarded-for': ip,
      cookie,
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
  });
  request.end(body);
  const [answer] = (await once(request, 'response')) as [http.IncomingMessage];
  await text(answer);
  const cookies = (answer.headers['set-cookie'] ?? []).map((one) => one.replace(/;.*/, '')).join('; ');
  return { status: answer.statusCode ?? 0, location: answer.headers.location ?? '', cookies };
}

/** Opens the connections of people. */
const arrive = (server: TestServer) => Promise.all(times(PEOPLE, (i) => ask(server, person(i), '/healthz')));

/** Repeats a request from many addresses until it is stopped. */
function attack(workers: number, request: (i: number) => Promise<unknown>): () => Promise<number> {
  let isOver = false;
  let sent = 0;
  const all = times(workers, async () => {
    while (!isOver) await request(sent++).catch(() => undefined);
  });
  return async () => {
    isOver = true;
    await Promise.all(all);
    return sent;
  };
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const answered = (all: readonly PromiseSettledResult<Answer>[], status: number) =>
  all.filter((one) => one.status === 'fulfilled' && one.value.status === status).length;
/** Returns how many people got each answer, and how many none in time. */
const outcomes = (all: readonly PromiseSettledResult<Answer>[]) =>
  Object.groupBy(all, (one) => (one.status === 'fulfilled' ? String(one.value.status) : 'none'));
const countsOf = (all: readonly PromiseSettledResult<Answer>[]) =>
  Object.fromEntries(Object.entries(outcomes(all)).map(([status, some]) => [status, some?.length ?? 0]));
const report = (what: string, got: number, of: number, more: object = {}) =>
  process.stdout.write(`${JSON.stringify({ what, answered: got, of, ...more })}\n`);

async function hashes(): Promise<void> {
  const server = await startServer({ tenant: { ...tenant, ...UNLIMITED }, env: PROXY, realHashes: true });
  const login = (ip: string, username: string, password: string) =>
    ask(server, ip, '/oauth/token', { ...WEB, grant_type: 'password', username, password });
  await arrive(server);
  const stop = attack(600, (i) => login(attacker(i), `nobody-${i}@example.test`, 'wrong'));
  await pause(5_000);
  const people = await Promise.allSettled(times(PEOPLE, (i) => login(person(i), USER.email, USER.password)));
  report('logins with a password', answered(people, 200), PEOPLE, {
    answers: countsOf(people),
    attack: await stop(),
  });
  await server.stop();
}

async function mails(): Promise<void> {
  const received = new Set<string>();
  const smtp = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    onData: (stream, session, done) => {
      stream.resume();
      // A provider takes its time.
      stream.on('end', () =>
        setTimeout(() => {
          for (const { address } of session.envelope.rcptTo) received.add(address);
          done();
        }, 200),
      );
    },
  });
  smtp.listen(0, '127.0.0.1');
  await once(smtp.server, 'listening');
  const { port } = smtp.server.address() as net.AddressInfo;
  const env = { ...PROXY, SMTP_URL: `smtp://127.0.0.1:${port}`, MAIL_FROM: 'login@example.test' };
  const server = await startServer({ tenant: passwordless, env, maxWait: 100 });
  const start = (ip: string, email: string) =>
    ask(server, ip, '/passwordless/start', { ...WEB, connection: 'email', email, send: 'code' });
  await arrive(server);
  const stop = attack(50, (i) => start(attacker(i), `nobody-${i}@example.test`));
  await pause(5_000);
  await Promise.allSettled(times(PEOPLE, (i) => start(person(i), `person-${i}@example.test`)));
  await pause(SECONDS * 1_000);
  const got = [...received].filter((to) => to.startsWith('person')).length;
  report(`codes by e-mail within ${SECONDS} s`, got, PEOPLE, { attack: await stop() });
  smtp.close();
  await server.stop();
}

async function waiting(): Promise<void> {
  const server = await startServer({ tenant: { ...tenant, ...UNLIMITED }, env: PROXY });
  const authorize = `/authorize?${new URLSearchParams(webRequest())}`;
  const begun = await Promise.all(times(PEOPLE, (i) => ask(server, person(i), authorize)));
  const stop = attack(50, (i) => ask(server, attacker(i), authorize));
  while ((await server.store.collection('artifacts').count()) < 9_900) await pause(500);
  await pause(5_000);
  const sent = await stop();
  const pages = await Promise.allSettled(
    begun.map(({ location, cookies }, i) => ask(server, person(i), location, undefined, cookies)),
  );
  report('logins that still wait', answered(pages, 200), PEOPLE, { attack: sent });
  await server.stop();
}

async function deviceCodes(): Promise<void> {
  const grant = 'urn:ietf:params:oauth:grant-type:device_code';
  const tv = {
    client_id: 'tv',
    name: 'TV',
    app_type: 'native',
    token_endpoint_auth_method: 'none',
    grant_types: [grant],
  };
  const server = await startServer({ tenant: { ...tenant, clients: [...tenant.clients, tv] }, env: PROXY });
  const scope = 'x'.repeat(2_000);
  const code = (ip: string) => ask(server, ip, '/oauth/device/code', { client_id: 'tv', scope });
  await arrive(server);
  const stop = attack(50, (i) => code(attacker(i)));
  await pause(SECONDS * 1_000);
  const people = await Promise.allSettled(times(PEOPLE, (i) => code(person(i))));
  const sent = await stop();
  const kept = await server.store.collection('challenges').count();
  report('device codes', answered(people, 200), PEOPLE, { attack: sent, kept });
  await server.stop();
}

/** Keeps more connections open from one address than there may be, and says nothing. */
const SILENT = `
const net = require('node:net');
let opened = 0;
const open = () => {
  const socket = net.connect({ port: Number(process.argv[1]), host: '127.0.0.1', localAddress: '127.0.66.1' });
  socket.on('error', () => undefined);
  socket.on('connect', () => { if (++opened === 1200) console.log('open'); });
  socket.resume().on('close', () => setTimeout(open, 50));
};
let started = 0;
const more = () => { for (let i = 0; i < 200 && started < 1100; i++, started++) open(); if (started < 1100) setTimeout(more, 50); };
more();
`;

async function connections(): Promise<void> {
  const server = await startServer({ tenant, env: { MAX_CONNECTIONS: '1000' } });
  const port = Number(new URL(server.url).port);
  // In a process of its own, because each side needs a file descriptor for each connection.
  const silence = spawn(process.execPath, ['-e', SILENT, String(port)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(silence.stdout, 'data');
  const people = await Promise.all(
    times(11, async (i) => {
      const request = https.get({
        host: '127.0.0.1',
        servername: 'localhost',
        ca: server.ca,
        port,
        path: '/healthz',
        localAddress: `127.1.${i}.1`,
        agent: false,
        signal: AbortSignal.timeout(SECONDS * 1_000),
      });
      const answer = await once(request, 'response').catch(() => undefined);
      return answer !== undefined;
    }),
  );
  report('connections', people.filter(Boolean).length, 11);
  silence.kill();
  await server.stop();
}

const ATTACKS = { hashes, mails, waiting, deviceCodes, connections };
const chosen = process.argv.slice(2);
for (const [name, run] of Object.entries(ATTACKS))
  if (chosen.length === 0 || chosen.includes(name)) await run();
process.exit(0);
