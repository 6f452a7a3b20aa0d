// A stand-in of the hosted service: a second Gatehouse in this process, behind a proxy that answers as the hosted service does
// where the two differ. Tests make it misbehave by `instead`.
import { createPrivateKey, type JsonWebKey } from 'node:crypto';
import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import type http from 'node:http';
import https from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { getCACertificates, setDefaultCACertificates, type TLSSocket } from 'node:tls';
import bcrypt from 'bcryptjs';
import { decodeJwt, decodeProtectedHeader, generateKeyPair, SignJWT } from 'jose';
import { localCertificate } from '../../src/capabilities/tls/authority.ts';
import { transferUsers } from '../../src/server/administration/transfer.ts';
import { withoutPauses } from '../../src/users/transfer/whole-file.ts';
import { MFA_GRANTS } from '../factors/tenant.ts';
import { databaseUser } from '../support/database-user.ts';
import { SCRATCH } from '../support/scratch-directory.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { fillDataDir } from '../support/template.ts';
import { tenantWith } from '../support/tenant.ts';

/** The application there that verifies passwords and reads users (`management` of the record of the move). */
export const MOVE_CLIENT = { client_id: 'move-management', client_secret: 'a-secret-of-the-move-client' };

/** The application there for browsers without a session (`sessions` of the record). Its callbacks are the test's. */
export const SESSION_CLIENT = { client_id: 'move-sessions', client_secret: 'a-secret-of-the-session-client' };

/** Authenticates proxies of the custom domain to the hosted service. */
export const CNAME_API_KEY = 'a-key-of-the-proxy-of-the-custom-domain';

/** The old tenant in the test's vocabulary: that of the other tests, whose users have other kinds of credentials. */
export const oldTenant = tenantWith({
  users: [],
  guardianFactors: [
    { name: 'otp', enabled: true },
    { name: 'sms', enabled: true },
  ],
  add: {
    clients: [
      {
        ...MOVE_CLIENT,
        name: 'Move to our own server',
        app_type: 'regular_web',
        grant_types: ['client_credentials', 'password', ...MFA_GRANTS],
        is_token_endpoint_ip_header_trusted: true,
      },
      {
        ...SESSION_CLIENT,
        name: 'Sessions of our own server',
        app_type: 'regular_web',
        grant_types: ['authorization_code'],
      },
    ],
  },
  connections: [
    {
      name: 'google-oauth2',
      strategy: 'google-oauth2',
      options: { client_id: 'id-there', client_secret: 'secret-there' },
      enabled_clients: ['web', 'spa'],
    },
  ],
  enable: [MOVE_CLIENT.client_id, SESSION_CLIENT.client_id],
});

const PASSWORD = 'Old-Horse-Battery-1';

/** The users of the old tenant; ids are those of the hosted service, after `auth0|`. */
export const OLD = {
  bcrypt: { id: 'auth0|5f1d7f3f0aaaaa0000000001', email: 'bcrypt@example.test', password: PASSWORD },
  argon2: { id: 'auth0|5f1d7f3f0aaaaa0000000002', email: 'argon2@example.test', password: PASSWORD },
  /** Without a password. */
  none: { id: 'auth0|5f1d7f3f0aaaaa0000000003', email: 'none@example.test', password: PASSWORD },
  /** With an authenticator app. */
  otp: {
    id: 'auth0|5f1d7f3f0aaaaa0000000004',
    email: 'otp@example.test',
    password: PASSWORD,
    secret: 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP',
  },
  /** With a telephone as the second factor. */
  sms: {
    id: 'auth0|5f1d7f3f0aaaaa0000000005',
    email: 'sms@example.test',
    password: PASSWORD,
    phone: '+15005550123',
  },
  /** Has a second identity of a social connection. */
  linked: { id: 'auth0|5f1d7f3f0aaaaa0000000006', email: 'linked@example.test', password: PASSWORD },
  blocked: { id: 'auth0|5f1d7f3f0aaaaa0000000007', email: 'blocked-there@example.test', password: PASSWORD },
  unverified: { id: 'auth0|5f1d7f3f0aaaaa0000000008', email: 'unverified@example.test', password: PASSWORD },
} as const;

/** A request to the old tenant. */
export interface Asked {
  method: string;
  /** Without the query. */
  path: string;
  query: Record<string, string>;
  headers: http.IncomingHttpHeaders;
  /** The name that TLS was for; undefined for an address. */
  servername: string | undefined;
  body: string;
  /** The members of a form or of a JSON body. */
  form: Record<string, string>;
}

/** What the old tenant answers. */
export interface Reply {
  status: number;
  headers: Record<string, string | string[]>;
  body: string;
  /** How the body is encoded; `latin1` keeps the bytes of what is no text. */
  encoding?: 'utf8' | 'latin1';
}

/** Answers in place of the old tenant. @param pass asks the old tenant. */
export type Instead = (asked: Asked, response: http.ServerResponse, pass: () => Promise<Reply>) => unknown;

export interface StandIn {
  /** Its origin: the canonical name of the old tenant. */
  origin: string;
  issuer: string;
  /** The host that its custom domain leads to, which takes proxies with {@link CNAME_API_KEY}. */
  edge: string;
  /** To be trusted by agents and browsers, PEM; the process trusts it already. */
  ca: string;
  gatehouse: TestServer;
  /** The requests, oldest first. */
  seen: Asked[];
  /** The requests to a path. */
  asked(path: string): Asked[];
  /** By method and path, such as `POST /oauth/token`; `*` for all others. */
  instead: Record<string, Instead | undefined>;
  /** Requests left of the hosted service's rate limits; 429 after that. */
  left: { management: number; token: number };
  /** Adds a user with a password there. */
  add(more?: { username?: string }): Promise<{ id: string; email: string; password: string }>;
  /** Ends what a test has changed: answers, limits, and the requests seen. */
  reset(): void;
  /** Signs the claims of a token anew, with changes. */
  resign(
    token: string,
    changes: object,
    how?: { key?: 'own' | 'other' | 'none'; alg?: string },
  ): Promise<string>;
  stop(): Promise<void>;
}

interface StandInOptions {
  /** In the tenant file's vocabulary, with a database `users` and a connection `google-oauth2`. */
  tenant?: { clientGrants: readonly object[] };
  /** The origin of its custom domain: requests to it are answered as if the tenant had no other name. */
  customDomain?: string;
  /** The grants of its Management API. */
  grants?: (audience: string) => object[];
}

/** Starts the old tenant. Its users are {@link OLD}. */
export async function startStandIn({
  tenant = oldTenant,
  customDomain,
  grants = grantsOfMove,
}: StandInOptions = {}): Promise<StandIn> {
  const dataDir = mkdtempSync(join(SCRATCH, 'gatehouse-stand-in-'));
  await fillDataDir(dataDir, true);
  // Signing keys of its own: servers of a test process share those of the template.
  for (const name of ['store', 'keys']) await rm(join(dataDir, name), { recursive: true });
  const { key, cert } = await localCertificate(
    join(dataDir, 'tls'),
    ['localhost', '127.0.0.1', '::1'],
    Date.now,
  );
  const proxy = https.createServer({ key, cert });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  // Not `localhost`, where a browser would mix its cookies with those of the new tenant.
  const origin = `https://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  const gatehouse = await startServer({
    tenant: { ...tenant, clientGrants: [...tenant.clientGrants, ...grants(`${origin}/api/v2/`)] },
    dataDir,
    env: { BASE_URL: origin },
  });
  const { ca } = gatehouse;
  if (!getCACertificates('default').includes(ca))
    setDefaultCACertificates([...getCACertificates('default'), ca]);
  await addUsers(gatehouse);
  const standIn: StandIn = {
    origin,
    issuer: gatehouse.issuer,
    edge: `localhost:${new URL(origin).port}`,
    ca,
    gatehouse,
    seen: [],
    asked: (path) => standIn.seen.filter((one) => one.path === path),
    instead: {},
    left: { ...LIMITS },
    add: (more) => addUser(gatehouse, more),
    reset: () => {
      standIn.instead = {};
      standIn.left = { ...LIMITS };
      standIn.seen = [];
    },
    resign: (token, changes, how) => resign(gatehouse, token, changes, how),
    stop: async () => {
      proxy.closeAllConnections();
      await new Promise((resolve) => proxy.close(resolve));
      await gatehouse.stop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
  const address = new URL(gatehouse.localUrl);
  proxy.on('request', async (request, response) => {
    const { host, 'cname-api-key': key } = request.headers;
    const isOfProxy = host === standIn.edge;
    const isCustom = customDomain !== undefined && (isOfProxy || host === new URL(customDomain).host);
    const sent = await readAsked(request, origin);
    const asked = isCustom ? { ...sent, headers: renamed(sent.headers, customDomain, origin) } : sent;
    standIn.seen.push(asked);
    if (!isCustom && !isOfProxy && host !== new URL(origin).host)
      return send(response, jsonReply(404, { message: 'Unknown host' }));
    if (isOfProxy && key !== CNAME_API_KEY)
      return send(response, jsonReply(403, { message: 'Invalid API key' }));
    const pass = async () => {
      const own = withOwnCookies(withOwnTokens(asked));
      const reply = withForeignCookies(withForeignTokens(await forward(address, origin, ca, own), asked));
      return isCustom ? renamed(await resigned(gatehouse, reply, customDomain), origin, customDomain) : reply;
    };
    const instead = standIn.instead[`${asked.method} ${asked.path}`] ?? standIn.instead['*'];
    if (instead !== undefined) return void (await instead(asked, response, pass));
    send(response, limited(standIn, asked) ?? deviating(asked) ?? (await pass()));
  });
  return standIn;
}

/** Lets the application of the move read users, as its grant at the hosted service does. */
const grantsOfMove = (audience: string): object[] => [
  { client_id: MOVE_CLIENT.client_id, audience, scope: ['read:users', 'read:authentication_methods'] },
];

/** Adds {@link OLD} to a server that has the database `users`, and a connection `google-oauth2`. */
export async function addUsers({ store, users }: TestServer): Promise<void> {
  const value = await bcrypt.hash(PASSWORD, 4);
  const custom = { algorithm: 'bcrypt', hash: { value } };
  const lines = Object.entries(OLD).map(([kind, one]) => ({
    user_id: one.id.slice('auth0|'.length),
    email: one.email,
    email_verified: kind !== 'unverified',
    name: `The user ${kind}`,
    blocked: kind === 'blocked',
    user_metadata: { theme: kind },
    app_metadata: { plan: 'gold' },
    // The argon2 hash is made below, by this server itself.
    ...(kind !== 'none' && kind !== 'argon2' && { custom_password_hash: custom }),
    ...('secret' in one && { mfa_factors: [{ totp: { secret: one.secret } }] }),
    ...('phone' in one && { mfa_factors: [{ phone: { value: one.phone } }] }),
  }));
  const deps = {
    store,
    clock: Date.now,
    random: (bytes: number) => Buffer.from(crypto.getRandomValues(new Uint8Array(bytes))),
    endBlocked: async () => undefined,
    between: withoutPauses,
  };
  const file = (async function* () {
    yield lines.map((line) => JSON.stringify(line)).join('\n');
  })();
  for await (const progress of transferUsers(
    deps,
    { command: 'import', connection: 'users', upsert: false },
    file,
  ))
    if ('failed' in progress) throw new Error(JSON.stringify(progress.failed));
  await users.setPassword(OLD.argon2.id, OLD.argon2.password);
  // The hosted service says so of users who have a second factor, whom it asks for it then.
  for (const { id } of [OLD.otp, OLD.sms]) await users.update(id, { multifactor: ['guardian'] });
  const social = await users.create({
    identity: {
      connection: 'google-oauth2',
      provider: 'google-oauth2',
      upstreamId: '104000000000000000001',
      addresses: { email: OLD.linked.email },
      unique: [],
    },
    profile: { email_verified: true },
  });
  if (!('user' in social)) throw new Error('the social user was not created');
  if (!(await users.link(OLD.linked.id, social.user.id))) throw new Error('the social user was not linked');
}

let added = 0;

async function addUser({ users }: TestServer, more: { username?: string } = {}) {
  const email = `somebody-${++added}@example.test`;
  const created = await users.create({
    ...databaseUser({ connection: 'users', email, ...more }),
    password: PASSWORD,
  });
  if (!('user' in created)) throw new Error('the user was not created');
  return { id: created.user.id, email, password: PASSWORD };
}

// How the hosted service differs.

const LIMITS = { management: 1_000, token: 1_000 };

/** Returns 429 as the hosted service words it, when a limit is used up. */
function limited({ left }: StandIn, { path, method }: Asked): Reply | undefined {
  const limit = path.startsWith('/api/v2/') ? 'management' : path === '/oauth/token' ? 'token' : undefined;
  if (limit === undefined || method === 'OPTIONS') return undefined;
  left[limit] -= 1;
  if (left[limit] >= 0) return undefined;
  const reset = Math.floor(Date.now() / 1000) + 1;
  const headers = {
    'x-ratelimit-limit': String(LIMITS[limit]),
    'x-ratelimit-remaining': '0',
    'x-ratelimit-reset': String(reset),
    'retry-after': '1',
  };
  const ofApi = {
    statusCode: 429,
    error: 'Too Many Requests',
    message: 'Global limit has been reached',
    errorCode: 'too_many_requests',
  };
  const ofToken = {
    error: 'too_many_requests',
    error_description:
      'Too many requests. Check the X-RateLimit-Limit, X-RateLimit-Remaining and X-RateLimit-Reset headers.',
  };
  return jsonReply(429, limit === 'management' ? ofApi : ofToken, headers);
}

/** Returns the answer where the hosted service has no such page, or another one. */
function deviating({ path }: Asked): Reply | undefined {
  if (
    path === '/' ||
    path === '/healthz' ||
    path === '/readyz' ||
    /^\/(dev|docs|console|account)(\/|\.|$)/.test(path)
  )
    return { status: 404, headers: { 'content-type': 'text/plain' }, body: 'Not found' };
  return undefined;
}

/** The hosted service's refresh tokens begin with `v1.`, unlike ours. */
const withOwnTokens = (asked: Asked): Asked => ({
  ...asked,
  body: asked.path.startsWith('/oauth/') ? asked.body.replaceAll(/\bv1\.([\w-]{65})\b/g, '$1') : asked.body,
});
const withForeignTokens = (reply: Reply, { path }: Asked): Reply => ({
  ...reply,
  body:
    path === '/oauth/token' ? reply.body.replace('"refresh_token":"', '"refresh_token":"v1.') : reply.body,
});

// The hosted service's cookies of a session, of which the second is for browsers that do not know `SameSite=None`.

const SESSION_COOKIE = '__Host-gatehouse_session';

function withOwnCookies(asked: Asked): Asked {
  const { cookie = '', ...headers } = asked.headers;
  const found = cookie.split('; ').filter((one) => /^auth0(_compat)?=/.test(one));
  const others = cookie.split('; ').filter((one) => one !== '' && !found.includes(one));
  const session = found[0]?.replace(/^\w+/, SESSION_COOKIE);
  const own = [...others, ...(session === undefined ? [] : [session])].join('; ');
  return { ...asked, headers: own === '' ? headers : { ...headers, cookie: own } };
}

function withForeignCookies(reply: Reply): Reply {
  const { 'set-cookie': set = [], ...headers } = reply.headers;
  const lines = [set].flat().flatMap((line) => {
    if (!line.startsWith(`${SESSION_COOKIE}=`)) return [line];
    const rest = line.slice(SESSION_COOKIE.length);
    return [`auth0${rest}`, `auth0_compat${rest.replace(/; samesite=none/i, '')}`];
  });
  return { ...reply, headers: { ...headers, ...(lines.length > 0 && { 'set-cookie': lines }) } };
}

// The hosted service's tokens, pages and documents name the domain that they are asked for at.

/** Returns the value with another origin in all of its texts, also where it is encoded. */
function renamed<T>(value: T, from: string, to: string): T {
  if (typeof value === 'string')
    return value.replaceAll(from, to).replaceAll(encodeURIComponent(from), encodeURIComponent(to)) as T;
  if (Array.isArray(value)) return value.map((one) => renamed(one, from, to)) as T;
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name, renamed(member, from, to)]),
  ) as T;
}

/** Returns the answer with tokens that name the custom domain. */
async function resigned(gatehouse: TestServer, reply: Reply, customDomain: string): Promise<Reply> {
  if (!/"(access|id)_token":"/.test(reply.body)) return reply;
  const members = JSON.parse(reply.body) as Record<string, unknown>;
  for (const name of ['access_token', 'id_token']) {
    const { [name]: token } = members;
    if (typeof token !== 'string' || token.split('.').length !== 3) continue;
    const origin = new URL(gatehouse.issuer).origin;
    members[name] = await resign(gatehouse, token, renamed(decodeJwt(token), origin, customDomain));
  }
  return { ...reply, body: JSON.stringify(members) };
}

// The proxy.

async function readAsked(request: http.IncomingMessage, origin: string): Promise<Asked> {
  const at = new URL(request.url ?? '/', origin);
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part);
  const body = Buffer.concat(parts).toString();
  const isJson = body !== '' && request.headers['content-type']?.includes('json') === true;
  return {
    method: request.method ?? 'GET',
    path: at.pathname,
    query: Object.fromEntries(at.searchParams),
    headers: request.headers,
    servername: (request.socket as TLSSocket).servername || undefined,
    body,
    form: isJson ? JSON.parse(body) : Object.fromEntries(new URLSearchParams(body)),
  };
}

/** Headers of the connection between the proxy and a client. */
const OF_CONNECTION = ['connection', 'keep-alive', 'transfer-encoding', 'content-length', 'host'];

function forward(to: URL, origin: string, ca: string, asked: Asked): Promise<Reply> {
  const path = `${asked.path}?${new URLSearchParams(asked.query)}`;
  const headers = Object.fromEntries(
    Object.entries(asked.headers).filter(([name]) => !OF_CONNECTION.includes(name)),
  );
  const { promise, resolve, reject } = Promise.withResolvers<Reply>();
  const request = https.request({
    host: '127.0.0.1',
    port: to.port,
    ca,
    method: asked.method,
    path: path.replace(/\?$/, ''),
    headers: { ...headers, host: new URL(origin).host, 'content-length': Buffer.byteLength(asked.body) },
    agent: false,
  });
  request.on('error', reject);
  request.on('response', async (response) => {
    const parts: Buffer[] = [];
    for await (const part of response) parts.push(part);
    const kept = Object.entries(response.headers).filter(([name]) => !OF_CONNECTION.includes(name));
    const isText = /^text|json|javascript/.test(response.headers['content-type'] ?? 'text');
    const encoding = isText ? 'utf8' : 'latin1';
    resolve({
      status: response.statusCode ?? 0,
      headers: Object.fromEntries(kept) as Reply['headers'],
      body: Buffer.concat(parts).toString(encoding),
      encoding,
    });
  });
  request.end(asked.body);
  return promise;
}

export function send(response: http.ServerResponse, { status, headers, body, encoding }: Reply): void {
  response.writeHead(status, headers).end(body, encoding ?? 'utf8');
}

// Misbehaviour, for `instead`.

function jsonReply(status: number, body: unknown, headers: Reply['headers'] = {}): Reply {
  return { status, headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(body) };
}

/** Answers with JSON of the test. */
export function answering(status: number, body: unknown, headers?: Reply['headers']): Instead {
  return (_asked, response) => send(response, jsonReply(status, body, headers));
}

/** Asks the old tenant and changes the members of its answer. */
export function changing(
  change: (body: Record<string, any>, asked: Asked) => unknown, // any: the test knows what it changes
): Instead {
  return async (asked, response, pass) => {
    const { status, headers, body } = await pass();
    send(response, { status, headers, body: JSON.stringify(await change(JSON.parse(body), asked)) });
  };
}

export function redirecting(location: string, status = 307): Instead {
  return (_asked, response) => send(response, { status, headers: { location }, body: '' });
}

/** Never answers. */
export const silent: Instead = () => undefined;

/** Sends the head, and then a byte now and then for ever. */
export const slow: Instead = (_asked, response) => {
  response.writeHead(200, { 'content-type': 'application/json' });
  const drip = setInterval(() => response.write(' '), 100);
  response.on('close', () => clearInterval(drip));
};

/** Sends more than anybody should read. */
export const huge: Instead = (_asked, response) => {
  response.writeHead(200, { 'content-type': 'application/json' });
  const block = Buffer.alloc(1 << 20, ' ');
  const more = () => {
    while (!response.destroyed && response.write(block));
  };
  response.on('drain', more);
  more();
};

/** Ends the connection without an answer. */
export const broken: Instead = (_asked, response) => response.destroy();

async function resign(
  { store }: TestServer,
  token: string,
  changes: object,
  { key = 'own', alg = 'RS256' }: { key?: 'own' | 'other' | 'none'; alg?: string } = {},
): Promise<string> {
  const claims = JSON.parse(JSON.stringify({ ...decodeJwt(token), ...changes }));
  const { kid = '' } = decodeProtectedHeader(token);
  if (key === 'none') {
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
    return `${part({ alg: 'none', kid })}.${part(claims)}.`;
  }
  const signing = new SignJWT(claims).setProtectedHeader({ alg, kid });
  if (key === 'other') return signing.sign((await generateKeyPair(alg)).privateKey);
  const record = await store.collection('signingKeys').get(kid);
  if (record === undefined) throw new Error(`the old tenant has no key ${kid}`);
  return signing.sign(createPrivateKey({ key: record.jwk as JsonWebKey, format: 'jwk' }));
}
