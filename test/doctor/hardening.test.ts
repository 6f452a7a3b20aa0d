// The hardening checklist of `gatehouse doctor`: each line is passed by a server that is set up well, and names what is
// missing in one that is not.
import 'reflect-metadata';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { HARDENING } from '../../src/commands/doctor/hardening/hardening.ts';
import { runCommand } from '../support/command.ts';
import { freePort } from '../support/free-port.ts';
import { serveFolder } from '../support/server.ts';

interface Finding {
  check: string;
  verdict: string;
  text: string;
}

type Tenant = Record<string, unknown>;

const MANAGEMENT = 'https://login.example.test/api/v2/';
const RANDOM = Buffer.from(Array.from({ length: 32 }, (_, at) => (at * 37 + 11) % 251)).toString('base64');

const WEB = {
  client_id: 'web',
  name: 'Web',
  client_secret: 'a-secret-of-the-web-application-0',
  app_type: 'regular_web',
  callbacks: ['https://web.example.test/callback'],
  grant_types: ['authorization_code', 'refresh_token'],
};
const APP = {
  client_id: 'app',
  name: 'App',
  app_type: 'native',
  callbacks: ['http://127.0.0.1/callback', 'com.example.app:/callback'],
  grant_types: ['authorization_code', 'refresh_token'],
  refresh_token: { rotation_type: 'rotating' },
};
const PASSWORDS = { complexity: { min_length: 15 }, dictionary: { active: true } };
const DATABASE = {
  name: 'people',
  strategy: 'auth0',
  enabled_clients: ['web'],
  options: { password_options: PASSWORDS },
};
const API = { name: 'API', identifier: 'https://api.example.test/', token_lifetime: 3600 };

/** A tenant with which every line is passed. */
const GOOD: Tenant = {
  clients: [WEB, APP],
  databases: [DATABASE],
  connections: [],
  resourceServers: [API],
  clientGrants: [{ client_id: 'web', audience: MANAGEMENT, scope: ['read:users'] }],
  guardianFactors: [{ name: 'otp', enabled: true }],
  guardianPolicies: ['confidence-score'],
  emailProvider: {
    name: 'smtp',
    enabled: true,
    default_from_address: 'login@example.test',
    credentials: { smtp_host: '127.0.0.1', smtp_port: 25, smtp_user: 'x', smtp_pass: 'y' },
  },
  logStreams: [{ name: 'SIEM', type: 'http', sink: { httpEndpoint: 'https://siem.example.test/' } }],
  networkACLs: [
    {
      description: 'Ours',
      active: true,
      priority: 1,
      rule: { scope: 'management', not_match: { ipv4_cidrs: ['192.0.2.0/24'] }, action: { block: true } },
    },
  ],
};

const SAMLP = { callback: 'https://sp.example.test/acs', audience: 'https://sp.example.test' };

/** For each line: settings or a part of the tenant with which it is not passed, and a part of what is then said. */
const BAD: Readonly<Record<string, { env?: Record<string, string>; tenant?: Tenant; text: string }>> = {
  production: { env: { NODE_ENV: 'development' }, text: 'set NODE_ENV=production' },
  https: { env: { NODE_ENV: 'development', TLS: 'auto' }, text: 'TLS=auto is a local CA' },
  'trusted-proxies': { env: { TRUSTED_PROXIES: '10.1.2.3,10.0.0.0/8' }, text: '10.0.0.0/8' },
  'plain-port': { env: { HOST: '0.0.0.0' }, text: 'HOST is 0.0.0.0' },
  process: { env: { NODE_OPTIONS: '--inspect=0.0.0.0' }, text: 'debugger' },
  'secrets-key': { env: { SECRETS_KEY: '' }, text: 'set SECRETS_KEY' },
  outbound: { env: { OUTBOUND_ALLOW: 'idp.example.test,169.254.0.0/16' }, text: '169.254.0.0/16' },
  metrics: { env: { METRICS_PORT: '9464', METRICS_HOST: '0.0.0.0' }, text: 'set METRICS_TOKEN' },
  console: { env: { CONSOLE_URL: '' }, text: 'set CONSOLE_URL' },
  'audit-log': { tenant: { logStreams: [] }, text: 'no active log stream' },
  guesses: {
    tenant: { attackProtection: { bruteForceProtection: { shields: ['user_notification'] } } },
    text: 'bruteForceProtection',
  },
  passwords: {
    tenant: { databases: [{ ...DATABASE, options: { passwordPolicy: 'good' } }] },
    text: 'people (needs 15 characters and a dictionary)',
  },
  'second-factors': { tenant: { guardianPolicies: [] }, text: 'nobody is asked' },
  enumeration: {
    tenant: { tenant: { flags: { enable_public_signup_user_exists_error: true } } },
    text: 'enable_public_signup_user_exists_error',
  },
  resets: {
    tenant: { tenant: { flags: { keep_sessions_on_password_reset: true } } },
    text: 'keep_sessions_on_password_reset',
  },
  sessions: { tenant: { tenant: { session_lifetime: 8760 } }, text: '8760 hours' },
  grants: { tenant: { clients: [WEB, { ...APP, grant_types: ['password'] }] }, text: 'App' },
  callbacks: {
    tenant: { clients: [{ ...WEB, callbacks: ['https://localhost:3000/callback'] }, APP] },
    text: 'Web',
  },
  wildcards: {
    tenant: { clients: [{ ...WEB, allowed_logout_urls: ['https://*.web.example.test'] }, APP] },
    text: 'Web',
  },
  'refresh-tokens': { tenant: { clients: [WEB, { ...APP, refresh_token: {} }] }, text: 'App' },
  'shared-keys': { tenant: { clients: [{ ...WEB, jwt_configuration: { alg: 'HS256' } }, APP] }, text: 'Web' },
  'token-lifetime': { tenant: { resourceServers: [{ ...API, token_lifetime: 86_401 }] }, text: 'API' },
  'management-access': {
    tenant: { clientGrants: [{ client_id: 'web', audience: MANAGEMENT, allow_all_scopes: true }] },
    text: 'Web',
  },
  'management-networks': { tenant: { networkACLs: [] }, text: 'no active list' },
  'cross-origin': { tenant: { clients: [{ ...WEB, cross_origin_authentication: true }, APP] }, text: 'Web' },
  'own-pages': {
    tenant: { pages: [{ name: 'login', html: '<p>Log in</p>', enabled: true }] },
    text: 'pages: login',
  },
  scripts: {
    tenant: { rules: [{ name: 'Mine', script: 'function () {}', enabled: true }] },
    text: '1 rules',
  },
  saml: {
    tenant: {
      clients: [{ ...WEB, addons: { samlp: { ...SAMLP, signatureAlgorithm: 'rsa-sha1' } } }, APP],
    },
    text: 'Web gets SHA-1',
  },
  directories: {
    tenant: {
      connections: [
        {
          name: 'corp',
          strategy: 'ad',
          options: { LDAP_URL: 'ldap://127.0.0.1:9', LDAP_STARTTLS: false, LDAP_BASE: 'dc=example' },
        },
      ],
    },
    text: 'corp',
  },
};

/** Lines that no setting and no tenant file decides; they are tested one by one, or nothing here can see them. */
const OTHERS = [
  'user',
  'files',
  'database-tls',
  'administrators',
  'signing-keys',
  'outbox',
  'backups',
  'disk',
  'updates',
];
/** Lines that are for people to look at, with the settings of the tests. */
const BY_HAND = ['https', 'administrators', 'signing-keys', 'backups', 'disk', 'updates'];

describe('the hardening checklist of gatehouse doctor', () => {
  let cwd: string;
  let env: Record<string, string>;
  before(async () => {
    env = {
      NODE_ENV: 'production',
      BASE_URL: `https://localhost:${await freePort()}`,
      TLS: 'proxy',
      TRUSTED_PROXIES: '127.0.0.1',
      SECRETS_KEY: RANDOM,
      CONSOLE_URL: `https://localhost:${await freePort()}`,
      TENANT_FILE: 'tenant.yaml',
    };
  });
  beforeEach(() => {
    cwd = mkdtempSync(join(tmpdir(), 'gatehouse-hardening-'));
  });
  afterEach(() => rmSync(cwd, { recursive: true, force: true }));

  /** Runs the doctor over a tenant file. @returns the findings of the checklist, by the id of their line */
  const go = async (tenant: Tenant, over: Record<string, string> = {}, args: readonly string[] = []) => {
    writeFileSync(join(cwd, 'tenant.yaml'), JSON.stringify(tenant));
    const { stdout } = await runCommand({
      cwd,
      env: { ...env, ...over },
      args: ['doctor', '--json', ...args],
    });
    const findings = (JSON.parse(stdout) as Finding[]).flatMap(({ check, verdict, text }) =>
      check.startsWith('hardening ') ? [[check.slice('hardening '.length), { verdict, text }] as const] : [],
    );
    return { stdout, lines: new Map(findings) };
  };

  const ids = Object.values(HARDENING).flatMap((lines) => lines.map(({ id }) => id));

  it('has a finding for each line, in the order of the document, each id once', async () => {
    const { lines, stdout } = await go(GOOD);
    expect([...lines.keys()]).to.deep.equal(ids);
    expect(ids).to.deep.equal([...new Set(ids)]);
    expect([...Object.keys(BAD), ...OTHERS]).to.have.members(ids);
    for (const { verdict, text } of lines.values())
      expect(
        text.startsWith({ ok: 'passed: ', warning: 'to do: ' }[verdict] ?? 'cannot be seen from here: '),
      ).to.equal(true);
    for (const secret of [WEB.client_secret, RANDOM]) expect(stdout).not.to.contain(secret);
  });

  it('is passed by a tenant and a server that are set up well', async () => {
    const { lines } = await go(GOOD);
    const others = [...lines].filter(([id, { verdict }]) => verdict !== 'ok' && id !== 'user');
    expect(others.map(([id, { verdict }]) => [id, verdict])).to.deep.equal(
      BY_HAND.map((id) => [id, 'by hand']),
    );
  });

  for (const [id, { env: over = {}, tenant = {}, text }] of Object.entries(BAD))
    it(`says what is to do about ${id}`, async () => {
      const { lines } = await go({ ...GOOD, ...tenant }, over, ['--hardening']);
      expect(lines.get(id)?.verdict).not.to.equal('ok');
      expect(lines.get(id)?.text).to.contain(text);
    });

  const TOO_FAR: readonly (readonly [string, string, string])[] = [
    // All of IPv4, written as IPv6.
    ['trusted-proxies', 'TRUSTED_PROXIES', '::ffff:0:0/96'],
    ['trusted-proxies', 'TRUSTED_PROXIES', '::/80'],
    ['trusted-proxies', 'TRUSTED_PROXIES', '::ffff:10.0.0.0/104'],
    ['outbound', 'OUTBOUND_ALLOW', '0.0.0.0'],
    ['outbound', 'OUTBOUND_ALLOW', '127.0.0.5'],
    ['outbound', 'OUTBOUND_ALLOW', '127.0.0.8/29'],
    ['outbound', 'OUTBOUND_ALLOW', 'localhost'],
    ['outbound', 'OUTBOUND_ALLOW', 'fd00:ec2::/64'],
    ['outbound', 'OUTBOUND_ALLOW', 'Metadata.Google.Internal'],
  ];
  for (const [id, name, value] of TOO_FAR)
    it(`takes ${value} for too much in ${name}`, async () => {
      const { lines } = await go(GOOD, { [name]: value });
      expect(lines.get(id)).to.deep.include({ verdict: 'warning' });
      expect(lines.get(id)?.text).to.contain(value);
    });

  it('takes a narrow range for what it is, however it is written', async () => {
    const { lines } = await go(GOOD, {
      TRUSTED_PROXIES: '::ffff:192.0.2.0/120,2001:db8::/64',
      OUTBOUND_ALLOW: '10.1.0.0/24,metadata.example.test',
    });
    for (const id of ['trusted-proxies', 'outbound']) expect(lines.get(id)?.verdict, id).to.equal('ok');
  });

  it('names the action of a token exchange, which runs without being bound', async () => {
    const code = 'exports.onExecuteCustomTokenExchange = async () => {};';
    const trigger = { id: 'custom-token-exchange', version: 'v1' };
    const actions = [{ name: 'Old', code, deployed: true, supported_triggers: [trigger] }];
    const tokenExchangeProfiles = [
      {
        name: 'Old tokens',
        subject_token_type: 'urn:acme:old',
        action: 'Old',
        type: 'custom_authentication',
      },
    ];
    const { lines } = await go({ ...GOOD, actions, tokenExchangeProfiles });
    expect(lines.get('scripts')?.text).to.contain('the token exchange Old tokens');
  });

  it('does not take a stream to this machine for one that sends the log away', async () => {
    const logStreams = [{ name: 'Here', type: 'http', sink: { httpEndpoint: 'http://localhost:9200/' } }];
    expect((await go({ ...GOOD, logStreams })).lines.get('audit-log')?.verdict).to.equal('warning');
  });

  it('does not take a list that blocks a few for one that lets only your networks in', async () => {
    const [acl] = GOOD.networkACLs as { rule: object }[];
    const rule = { scope: 'management', match: { ipv4_cidrs: ['192.0.2.0/24'] }, action: { block: true } };
    const { lines } = await go({ ...GOOD, networkACLs: [{ ...acl, rule }] });
    expect(lines.get('management-networks')?.verdict).to.equal('by hand');
  });

  it('finds a directory without TLS however its address and its option are written', async () => {
    const options = { LDAP_URL: 'LDAP://127.0.0.1:9', LDAP_STARTTLS: 'false', LDAP_BASE: 'dc=example' };
    const { lines } = await go({ ...GOOD, connections: [{ name: 'corp', strategy: 'ad', options }] });
    expect(lines.get('directories')?.text).to.contain('corp');
  });

  it('is gone through outside production on request only', async () => {
    const development = { NODE_ENV: 'development', TLS: 'auto' };
    expect((await go(GOOD, development)).lines.size).to.equal(0);
    expect([...(await go(GOOD, development, ['--hardening'])).lines.keys()]).to.deep.equal(ids);
  });

  it('names applications that can give themselves all scopes', async () => {
    const grant = { client_id: 'web', audience: MANAGEMENT, scope: ['update:client_grants'] };
    expect((await go({ ...GOOD, clientGrants: [grant] })).lines.get('management-access')?.text).to.contain(
      'Web',
    );
  });

  it('asks for shorter passwords where everybody has a second factor', async () => {
    const short = { complexity: { min_length: 8 }, dictionary: { active: true } };
    const databases = [{ ...DATABASE, options: { password_options: short } }];
    expect((await go({ ...GOOD, databases })).lines.get('passwords')?.verdict).to.equal('warning');
    const all = { ...GOOD, databases, guardianPolicies: ['all-applications'] };
    expect((await go(all)).lines.get('passwords')?.verdict).to.equal('ok');
  });

  it('looks at how a database is reached', async () => {
    const lineOf = async (url: string) =>
      (await go(GOOD, { DATABASE_URL: url })).lines.get('database-tls')?.verdict;
    const port = await freePort();
    expect(await lineOf(`postgres://a@127.0.0.1:${port}/db`)).to.equal('ok');
    expect(await lineOf(`postgres://a@127.0.0.2.nip.invalid:${port}/db?sslmode=disable`)).to.equal('warning');
    expect(await lineOf(`postgres://a@127.0.0.1:${port}/db?sslmode=verify-full`)).to.equal('ok');
    // The driver takes the host of the query.
    const elsewhere = `postgres://a@127.0.0.1:${port}/db?host=db.invalid&sslmode=disable`;
    expect(await lineOf(elsewhere)).to.equal('warning');
    expect(await lineOf('postgres:///db?host=/var/run/nowhere')).to.equal('ok');
  });

  it('looks at files, the outbox and the user', async function () {
    if (process.getuid === undefined) this.skip();
    mkdirSync(join(cwd, 'data/outbox'), { recursive: true });
    chmodSync(join(cwd, 'data'), 0o700);
    const clean = (await go(GOOD)).lines;
    expect(clean.get('files')?.verdict).to.equal('ok');
    expect(clean.get('outbox')?.verdict).to.equal('ok');
    expect(clean.get('user')?.verdict).to.equal(process.getuid() === 0 ? 'warning' : 'ok');
    writeFileSync(join(cwd, 'data/outbox/1.json'), '{}');
    chmodSync(join(cwd, 'data'), 0o755);
    const open = (await go(GOOD)).lines;
    expect(open.get('files')?.verdict).to.equal('warning');
    expect(open.get('outbox')?.text).to.contain('has 1 files');
  });

  it('looks at keys and administrators in the store, and at the tenant that is in force', async () => {
    const development = { ...env, NODE_ENV: 'development', TLS: 'auto', SECRETS_KEY: '' };
    writeFileSync(join(cwd, 'tenant.yaml'), JSON.stringify(GOOD));
    const server = await serveFolder(cwd, { TENANT_FILE: 'tenant.yaml' });
    const { store } = server;
    try {
      const fresh = (await go(GOOD, development, ['--hardening'])).lines;
      expect(fresh.get('signing-keys')?.verdict).to.equal('ok');
      expect(fresh.get('administrators')?.verdict).to.equal('ok');
      expect(fresh.get('process')?.verdict).to.equal('ok');
      for (const { id: key } of await store.collection('signingKeys').findBy('state', 'current'))
        await store.collection('signingKeys').update(key, (one) => ({ ...one, createdAt: 0 }));
      const [client] = await store
        .collection('clients')
        .list({ limit: 1 })
        .then(({ records }) => records);
      await store
        .collection('clients')
        .update(client?.id ?? '', (one) => ({ ...one, cross_origin_authentication: true }));
      const date = new Date().toISOString();
      await store.collection('administrators').upsert('administrators', () => ({
        id: 'administrators',
        members: [{ user_id: 'console|1', role: 'owner', since: date }] as never,
      }));
      await store.collection('administratorUsers').insert({
        id: 'console|1',
        email: 'owner@example.test',
        created_at: date,
        updated_at: date,
      } as never);
      // The server's own environment, which is not that of the command.
      const { NODE_OPTIONS: options = '' } = process.env;
      process.env.NODE_OPTIONS = `${options} --inspect=0.0.0.0:9229`;
      const later = (await go(GOOD, development, ['--hardening'])).lines;
      process.env.NODE_OPTIONS = options;
      expect(later.get('process')?.text).to.contain('--inspect opens a debugger');
      expect(later.get('signing-keys')?.text).to.contain('RS256');
      expect(later.get('cross-origin')?.verdict).to.equal('warning');
      expect(later.get('administrators')?.text).to.contain('owner@example.test');
    } finally {
      await server.stop();
    }
  });
});
