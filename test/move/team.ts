// A team at the hosted service: its tenant with 200 users under a custom domain, and the files that it gets out of there.
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import net, { type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gunzipSync } from 'node:zlib';
import bcrypt from 'bcryptjs';
import { transferUsers } from '../../src/server/administration/transfer.ts';
import { createHasher } from '../../src/users/hashing.ts';
import { withoutPauses } from '../../src/users/transfer/whole-file.ts';
import { MFA_GRANTS } from '../factors/tenant.ts';
import { ADMIN, callApi } from '../management/support.ts';
import { API, SPA_CALLBACK, WEB_CALLBACK } from '../support/flows.ts';
import { CHEAP, type TestServer } from '../support/server.ts';
import { until } from '../support/wait-until.ts';
import { MOVE_CLIENT, OLD, SESSION_CLIENT, type StandIn, startStandIn } from './stand-in.ts';

/** A host name that leads to one server at a time, as a DNS record does. Below TLS, so that it changes nothing. */
export interface Name {
  /** `https://` and the name. */
  origin: string;
  /** Points the name at another port of this machine, and ends the connections to the former. */
  lead(to: string): void;
  stop(): void;
}

export async function startName(): Promise<Name> {
  const sockets = new Set<net.Socket>();
  let port = 0;
  const server = net.createServer((socket) => {
    const onward = net.connect(port, '127.0.0.1');
    for (const [one, other] of [
      [socket, onward],
      [onward, socket],
    ] as const) {
      sockets.add(one);
      one.on('error', () => other.destroy());
      one.on('close', () => {
        sockets.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const end = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    origin: `https://localhost:${(server.address() as AddressInfo).port}`,
    lead: (to) => {
      port = Number(new URL(to).port);
      end();
    },
    stop: () => {
      end();
      server.close();
    },
  };
}

export const NEXT = 'http://localhost:3000';
const PASSWORD = 'Old-Horse-Battery-1';
const COUNT = 200;

/** Users beside {@link OLD}: what files have of them goes round by their number. */
const KINDS = ['bcrypt', 'argon2', 'unhashed'] as const;
const kindOf = (index: number) => KINDS[index % KINDS.length] as (typeof KINDS)[number];
const idOf = (index: number) => `5f1d7f3f0bbbbb${String(index).padStart(10, '0')}`;

/** A user whose password is in no file. @param index 0, 1, … */
export function unhashed(index: number) {
  const number = index * KINDS.length + KINDS.indexOf('unhashed');
  return { id: `auth0|${idOf(number)}`, email: `user-${number}@example.test`, password: PASSWORD };
}

/** What the operator lets the application of the move do. */
export const READS = [
  'read:users',
  'read:authentication_methods',
  'read:clients',
  'read:client_keys',
  'read:connections',
  'read:organizations',
  'read:organization_members',
  'read:organization_member_roles',
  'read:roles',
];

/** @param domain the origin of its custom domain. @param spa that of the single-page application */
function tenantOf(domain: string, spa: string) {
  const logins = ['spa', 'web', 'native', MOVE_CLIENT.client_id, SESSION_CLIENT.client_id];
  const refresh_token = {
    rotation_type: 'rotating',
    expiration_type: 'expiring',
    leeway: 0,
    token_lifetime: 2_592_000,
    idle_token_lifetime: 1_296_000,
  };
  return {
    // The tool asks for the custom texts of each language.
    tenant: { friendly_name: 'Acme', default_directory: 'users', enabled_locales: ['en', 'de'] },
    clients: [
      {
        client_id: 'spa',
        name: 'Shop',
        app_type: 'spa',
        oidc_conformant: true,
        callbacks: [spa],
        web_origins: [spa],
        grant_types: ['authorization_code', 'refresh_token'],
        refresh_token,
      },
      {
        client_id: 'web',
        name: 'Back office',
        app_type: 'regular_web',
        client_secret: 'web-secret',
        token_endpoint_auth_method: 'client_secret_post',
        oidc_conformant: true,
        organization_usage: 'allow',
        callbacks: [WEB_CALLBACK, `${NEXT}/auth/callback`],
        grant_types: ['authorization_code', 'refresh_token'],
        refresh_token,
      },
      {
        client_id: 'native',
        name: 'Phone',
        app_type: 'native',
        oidc_conformant: true,
        callbacks: [SPA_CALLBACK],
        grant_types: ['authorization_code', 'refresh_token'],
        refresh_token,
      },
      { ...ADMIN, name: 'Deployment', app_type: 'non_interactive', grant_types: ['client_credentials'] },
      {
        ...MOVE_CLIENT,
        name: 'Move: users',
        app_type: 'regular_web',
        grant_types: ['client_credentials', 'password', ...MFA_GRANTS],
        is_token_endpoint_ip_header_trusted: true,
      },
      {
        ...SESSION_CLIENT,
        name: 'Move: sessions',
        app_type: 'regular_web',
        callbacks: [`${domain}/move/callback`],
        allowed_logout_urls: [`${domain}/logout/callback`],
        grant_types: ['authorization_code'],
      },
    ],
    databases: [
      { name: 'users', enabled_clients: logins, options: { passwordPolicy: 'good' } },
      {
        name: 'staff',
        enabled_clients: ['web'],
        options: { requires_username: true, passwordPolicy: 'low' },
      },
    ],
    connections: [
      {
        name: 'google-oauth2',
        strategy: 'google-oauth2',
        options: { client_id: 'id-there', client_secret: 'secret-there', email: true, profile: true },
        enabled_clients: logins,
      },
      { name: 'email', strategy: 'email', enabled_clients: ['web'] },
      { name: 'sms', strategy: 'sms', enabled_clients: ['web'] },
    ],
    resourceServers: [
      {
        name: 'Orders',
        identifier: API,
        scopes: [{ value: 'read:things', description: 'Read things' }],
        allow_offline_access: true,
        token_lifetime: 86_400,
      },
    ],
    clientGrants: [] as object[],
    roles: [{ name: 'Editor', description: 'May edit' }],
    organizations: ['acme', 'globex'].map((name) => ({
      name,
      display_name: name.toUpperCase(),
      connections: [{ name: 'users', assign_membership_on_login: false }],
    })),
    actions: [
      {
        name: 'Second factor',
        code: `exports.onExecutePostLogin = async (event, api) => {
  if (event.user.enrolledFactors?.length > 0) api.multifactor.enable('any');
};`,
        deployed: true,
        supported_triggers: [{ id: 'post-login', version: 'v3' }],
      },
    ],
    triggers: { 'post-login': [{ action_name: 'Second factor' }] },
    guardianFactors: [
      { name: 'otp', enabled: true },
      { name: 'sms', enabled: true },
    ],
  };
}

/** Starts the team's tenant at the hosted service, with its users, roles and members. */
export async function startTeam(name: Name, spa: string): Promise<StandIn> {
  const old = await startStandIn({
    tenant: tenantOf(name.origin, spa),
    customDomain: name.origin,
    grants: (audience) => [
      { client_id: MOVE_CLIENT.client_id, audience, scope: READS },
      { client_id: ADMIN.client_id, audience, allow_all_scopes: true },
    ],
  });
  name.lead(old.origin);
  await addFurtherUsers(old.gatehouse);
  await addMembers(old.gatehouse);
  return old;
}

async function addFurtherUsers({ store }: TestServer): Promise<void> {
  const hash = await hashes();
  const lines = Array.from({ length: COUNT - Object.keys(OLD).length }, (_, index) => ({
    user_id: idOf(index),
    email: `user-${index}@example.test`,
    email_verified: true,
    name: `User ${index}`,
    user_metadata: { number: index },
    custom_password_hash: hash[kindOf(index)],
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
  const transfer = { command: 'import', connection: 'users', upsert: false } as const;
  for await (const progress of transferUsers(deps, transfer, file))
    if ('failed' in progress) throw new Error(JSON.stringify(progress.failed));
}

/** Returns the hashes of the password that all users have, as import files of users have them. */
async function hashes() {
  const custom = (algorithm: string, value: string) => ({ algorithm, hash: { value, encoding: 'utf8' } });
  const ofBcrypt = custom('bcrypt', await bcrypt.hash(PASSWORD, 4));
  const ofArgon2 = custom('argon2', await createHasher({ cost: CHEAP }).hash(PASSWORD));
  return { bcrypt: ofBcrypt, argon2: ofArgon2, unhashed: ofBcrypt };
}

/** Gives users roles, and makes them members of the organizations. */
async function addMembers(gatehouse: TestServer): Promise<void> {
  const call = async (method: string, path: string, body?: object): Promise<any> => {
    const answer = await callApi(gatehouse, method, path, body);
    if (!answer.ok) throw new Error(`${method} ${path}: ${await answer.text()}`);
    return answer.status === 204 ? undefined : answer.json();
  };
  const [role] = await call('GET', '/roles');
  await call('POST', `/roles/${role.id}/users`, { users: [OLD.bcrypt.id, OLD.linked.id] });
  for (const { id, name } of await call('GET', '/organizations')) {
    const members = name === 'acme' ? [OLD.bcrypt.id, OLD.argon2.id] : [unhashed(5).id];
    await call('POST', `/organizations/${id}/members`, { members });
    if (name !== 'acme') continue;
    await call('POST', `/organizations/${id}/members/${encodeURIComponent(OLD.bcrypt.id)}/roles`, {
      roles: [role.id],
    });
  }
}

/** Where {@link exportTeam} writes, in its folder. */
export const FILES = { tenant: 'export/tenant.yaml', users: 'users.ndjson', hashes: 'hashes.ndjson' };

/** The members of users that the page about moving says to ask for. */
const MEMBERS = [
  ...[
    'user_id',
    'email',
    'email_verified',
    'username',
    'phone_number',
    'phone_verified',
    'name',
    'given_name',
  ],
  ...[
    'family_name',
    'nickname',
    'picture',
    'user_metadata',
    'app_metadata',
    'blocked',
    'identities',
    'multifactor',
  ],
  ...['created_at', 'updated_at', 'last_login', 'last_ip', 'logins_count', 'last_password_reset'],
];

/** Writes what the team gets out of the hosted service: by the deploy tool, by a job, and from support. */
export async function exportTeam(old: StandIn, folder: string): Promise<void> {
  await exportTenant(old, join(folder, 'export'));
  writeFileSync(join(folder, FILES.users), await exportUsers(old.gatehouse));
  writeFileSync(join(folder, FILES.hashes), await hashFile());
}

async function exportTenant({ origin, gatehouse }: StandIn, output: string): Promise<void> {
  const preloaded = ['fast-timers', 'few-languages', 'fetch-retry'].flatMap((name) => [
    '--import',
    `./test/support/${name}.ts`,
  ]);
  const tool = ['node_modules/auth0-deploy-cli/lib/index.js', 'export', '--format', 'yaml'];
  const exported = promisify(execFile)(process.execPath, [...preloaded, ...tool, '--output_folder', output], {
    maxBuffer: 50_000_000,
    env: {
      PATH: process.env.PATH,
      NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
      AUTH0_DOMAIN: new URL(origin).host,
      AUTH0_CLIENT_ID: ADMIN.client_id,
      AUTH0_CLIENT_SECRET: ADMIN.client_secret,
      AUTH0_EXPORT_IDENTIFIERS: 'true',
      NODE_EXTRA_CA_CERTS: gatehouse.caFile,
    },
  });
  // The tool says on its standard output what failed.
  await exported.catch((thrown: Error & { stdout: string; stderr: string }) => {
    throw new Error(`${thrown.message}\n${thrown.stdout}\n${thrown.stderr}`);
  });
}

async function exportUsers(gatehouse: TestServer): Promise<string> {
  const fields = MEMBERS.map((name) => ({ name }));
  const begun = await callApi(gatehouse, 'POST', '/jobs/users-exports', { format: 'json', fields });
  const { id } = (await begun.json()) as { id: string };
  let location: string | undefined;
  await until(async () => {
    ({ location } = (await (await callApi(gatehouse, 'GET', `/jobs/${id}`)).json()) as { location?: string });
    return location !== undefined;
  });
  return gunzipSync(Buffer.from(await (await fetch(location ?? '')).arrayBuffer())).toString();
}

/** Returns the file that support sends, and after it lines of import files, which are how argon2 and factors get there. */
async function hashFile(): Promise<string> {
  const { bcrypt: ofBcrypt, argon2 } = await hashes();
  const sent = ($oid: string, email: string) => ({
    _id: { $oid },
    email,
    email_verified: true,
    passwordHash: ofBcrypt.hash.value,
    password_set_date: { $date: '2024-10-06T15:30:15.000Z' },
    tenant: 'acme',
    connection: 'users',
    _tmp_is_unique: true,
  });
  const short = (id: string) => id.slice('auth0|'.length);
  const lines: object[] = [OLD.bcrypt, OLD.otp, OLD.linked, OLD.blocked, OLD.unverified].map(
    ({ id, email }) => sent(short(id), email),
  );
  lines.push({ user_id: short(OLD.otp.id), mfa_factors: [{ totp: { secret: OLD.otp.secret } }] });
  lines.push({ user_id: short(OLD.argon2.id), custom_password_hash: argon2 });
  for (let index = 0; index < COUNT - Object.keys(OLD).length; index += 1) {
    if (kindOf(index) === 'bcrypt') lines.push(sent(idOf(index), `user-${index}@example.test`));
    if (kindOf(index) === 'argon2') lines.push({ user_id: idOf(index), custom_password_hash: argon2 });
  }
  return lines.map((line) => `${JSON.stringify(line)}\n`).join('');
}
