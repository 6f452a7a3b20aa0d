// How PostgreSQL finds records in large tables: never by a sequential scan.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import pg from 'pg';
import { openStore } from '../../src/store/open.ts';
import { greeting } from '../../src/store/postgres/postgres-connection.ts';
import { anyExpired } from '../../src/store/postgres/postgres-purge.ts';
import { keyTables, postgresStatements } from '../../src/store/postgres/postgres-statements.ts';
import { collectionSpecs } from '../../src/store/record.ts';
import { openAccount } from '../account/support.ts';
import { bindActions } from '../actions/support.ts';
import { startManaged } from '../management/support.ts';
import { createAgent } from '../support/agent.ts';
import { createProver } from '../support/dpop.ts';
import {
  API,
  authorize,
  follow,
  logIn,
  payload,
  responseOf,
  spaTokens,
  tenant,
  token,
  USER,
  WEB_CALLBACK,
  webRequest,
} from '../support/flows.ts';
import { nextMessageTo } from '../support/inbox.ts';
import { type Cluster, startCluster } from '../support/postgres.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { softwareKey } from '../support/software-key.ts';

/** The number of rows in each table; `npm run test:long` has a million in the tables that a login uses. */
const ROWS = 3000;
const MANY = Number(process.env.PLAN_ROWS ?? ROWS);
const OF_LOGINS = [
  'users',
  'identities',
  'credentials',
  'artifacts',
  'challenges',
  'failures',
  'knownCallers',
  'logs',
];

/** Tables that stay small, however many users there are. */
const SMALL = ['signingKeys', 'keyChecks'];

const PASSKEY_GRANT = 'urn:okta:params:oauth:grant-type:webauthn';
const OTHER_WAYS = {
  ...tenant,
  tenant: { ...tenant.tenant, account_page: { client_id: 'web' } },
  clients: [
    ...tenant.clients.map((one) =>
      one.client_id === 'web'
        ? {
            ...one,
            organization_usage: 'allow',
            grant_types: [...one.grant_types, 'http://auth0.com/oauth/grant-type/passwordless/otp'],
          }
        : one,
    ),
    {
      client_id: 'app',
      name: 'app',
      app_type: 'spa',
      token_endpoint_auth_method: 'none',
      grant_types: [PASSKEY_GRANT],
    },
    {
      client_id: 'hands-over',
      name: 'hands-over',
      app_type: 'native',
      token_endpoint_auth_method: 'none',
      grant_types: ['password', 'refresh_token'],
      session_transfer: { can_create_session_transfer_token: true },
    },
    {
      client_id: 'takes-over',
      name: 'takes-over',
      app_type: 'regular_web',
      client_secret: 'takes-over-secret',
      callbacks: [WEB_CALLBACK],
      grant_types: ['authorization_code'],
      session_transfer: { allowed_authentication_methods: ['query'] },
    },
  ],
  connections: [{ name: 'email', strategy: 'email', enabled_clients: ['web'] }],
  databases: [
    ...tenant.databases.map((one) => ({
      ...one,
      enabled_clients: [...one.enabled_clients, 'hands-over', 'takes-over'],
    })),
    {
      name: 'keys',
      enabled_clients: ['app'],
      options: { authentication_methods: { passkey: { enabled: true } } },
    },
  ],
  organizations: [
    { id: 'org_open', name: 'open', connections: [{ name: 'users', assign_membership_on_login: true }] },
  ],
};

/**
 * Fills a collection's tables. Each record has its own value of each key; of the fields indexed in the JSON, one record
 * has a rare value.
 */
function filling(name: string, rows: number): string[] {
  const spec = collectionSpecs().find(([one]) => one === name)?.[1];
  if (spec === undefined) return [];
  const { unique, index } = keyTables(spec);
  const slots = (keys: object) =>
    `ARRAY[${Object.keys(keys).map((key) => `'${key}' || E'\\n' || n`)}]::text[]`;
  const text = (spec.indexedText ?? []).map(
    (field) => `, '${field}', CASE WHEN n = ${rows / 2} THEN 'rare' ELSE 'common' END`,
  );
  const fields = (spec.indexed ?? []).map((field) => `"field_${field}"`);
  const columns = [
    'id',
    'data',
    'expires_at',
    ...fields,
    ...(unique ? ['uniques'] : []),
    ...(index ? ['indexes'] : []),
  ];
  const values = [
    `'x|' || n`,
    `json_build_object('id', 'x|' || n${text.join('')})`,
    // Some rows will expire, but have not yet.
    'CASE WHEN n % 2 = 0 THEN 4e9 + n END',
    ...fields.map(() => `'v' || n`),
    ...(unique ? [slots(spec.unique)] : []),
    ...(index ? [slots(spec.indexes)] : []),
  ];
  const keys = (table: string, of: object) =>
    Object.keys(of).map(
      (key) =>
        `INSERT INTO "${table}" (key, value, id) SELECT '${key}', n, 'x|' || n FROM generate_series(1, ${rows}) n`,
    );
  return [
    `INSERT INTO "${name}" (${columns.join(', ')}) SELECT ${values.join(', ')} FROM generate_series(1, ${rows}) n`,
    ...keys(`${name}_unique`, spec.unique),
    ...keys(`${name}_index`, spec.indexes),
  ];
}

describe('the statements on PostgreSQL', () => {
  it('are as many as the documentation on poolers says', () => {
    const texts = collectionSpecs().flatMap(([name, spec]) => Object.values(postgresStatements(name, spec)));
    // One more statement asks for expired records.
    const count = texts.filter(({ text }) => text !== '').length + 1;
    const [, kept, there] =
      /max_prepared_statements = (\d+)` \(there are (\d+) statements/.exec(
        readFileSync(new URL('../../docs/do/scaling.md', import.meta.url), 'utf8'),
      ) ?? [];
    expect(Number(there)).to.equal(count);
    expect(Number(kept)).to.be.above(count);
  });
});

describe(`PostgreSQL with ${MANY} rows in the tables that a login uses`, function () {
  this.timeout(1_800_000);
  let cluster: Cluster;
  let client: pg.Client;
  let dataDir: string;
  before(async () => {
    cluster = await startCluster();
    dataDir = mkdtempSync(join(tmpdir(), 'gatehouse-plans-'));
    const server = await startServer({ tenant: OTHER_WAYS, dataDir, env: { DATABASE_URL: cluster.url() } });
    await server.stop();
    client = new pg.Client(cluster.url());
    await client.connect();
    // The configuration is small by nature.
    for (const [name, { kept }] of collectionSpecs()) {
      if (kept === 'configuration' || SMALL.includes(name)) continue;
      const rows = OF_LOGINS.includes(name) ? MANY : ROWS;
      for (const statement of filling(name, rows)) await client.query(statement);
    }
    await client.query('VACUUM ANALYZE');
    await client.query(greeting(new URL(cluster.url())));
  });
  after(async () => {
    await client.end();
    await cluster.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });

  /** The plan of a statement for any parameters, in words of all releases of PostgreSQL. */
  async function genericPlan(text: string): Promise<string> {
    const parameters = new Set(text.match(/\$\d+/g)).size;
    const given = parameters > 0 ? `(${Array(parameters).fill('NULL').join(', ')})` : '';
    await client.query(`PREPARE one AS ${text}`);
    const { rows } = await client.query(`EXPLAIN EXECUTE one${given}`);
    await client.query('DEALLOCATE one');
    return rows.map((row) => row['QUERY PLAN']).join('\n');
  }

  it('uses an index for each statement, whatever its parameters', async () => {
    await client.query('SET plan_cache_mode = force_generic_plan');
    const through: string[] = [];
    for (const [name, spec] of collectionSpecs()) {
      if (spec.kept === 'configuration' || SMALL.includes(name)) continue;
      for (const [which, { text }] of Object.entries(postgresStatements(name, spec))) {
        // No login waits for these statements.
        if (text === '' || which === 'count') continue;
        const plan = await genericPlan(text);
        if (/Seq Scan/.test(plan)) through.push(`${name}.${which}:\n${plan}`);
      }
    }
    const { text } = anyExpired(collectionSpecs().map(([name]) => ({ name })));
    const plan = await genericPlan(text);
    for (const [name, { kept }] of collectionSpecs())
      if (kept !== 'configuration' && !SMALL.includes(name) && plan.includes(`Seq Scan on "${name}"`))
        through.push(plan);
    expect(through.join('\n\n')).to.equal('');
  });

  /** Does something at a server and checks that no large table was scanned meanwhile. */
  async function expectNoScan(file: object, work: (server: TestServer) => Promise<void>): Promise<void> {
    // The row counts are estimates that change meanwhile, so the tables are chosen once.
    const { rows: large } = await client.query(
      'SELECT relname FROM pg_stat_user_tables WHERE n_live_tup >= $1',
      [ROWS],
    );
    expect(large.length).to.be.above(20);
    const scans = async () => {
      const { rows } = await client.query(
        'SELECT relname, seq_scan FROM pg_stat_user_tables WHERE relname = ANY($1) ORDER BY relname',
        [large.map(({ relname }) => relname)],
      );
      return rows;
    };
    const server = await startServer({ tenant: file, dataDir, env: { DATABASE_URL: cluster.url() } });
    const before = await scans();
    await work(server);
    await server.stop();
    // A connection reports its statistics when it ends.
    expect(await scans()).to.deep.equal(before);
  }

  it('scans no large table for a login, a code exchange, a refresh and userinfo', async () => {
    await expectNoScan(OTHER_WAYS, async (server) => {
      const agent = createAgent(server);
      const tokens = await spaTokens(agent, server, { scope: 'openid offline_access' });
      const refreshed = await token(agent, {
        grant_type: 'refresh_token',
        client_id: 'spa',
        refresh_token: tokens.refresh_token,
      });
      expect(refreshed.status).to.equal(200);
      const authorization = `Bearer ${refreshed.json().access_token}`;
      expect((await agent.request('/userinfo', { headers: { authorization } })).status).to.equal(200);
    });
  });

  it('scans no large table for an Action, which each login and refresh runs and records', async () => {
    const managed = await startManaged(OTHER_WAYS, dataDir, { DATABASE_URL: cluster.url() });
    const claim = `api.idToken.setCustomClaim('https://example.test/runs', event.stats.logins_count > 0);`;
    const code = `exports.onExecutePostLogin = async (event, api) => { ${claim} };`;
    const ids = await bindActions(managed, 'post-login', { code });
    expect(ids).to.have.length(1);
    await managed.stop();
    await expectNoScan(OTHER_WAYS, async (server) => {
      const agent = createAgent(server);
      const tokens = await spaTokens(agent, server, { scope: 'openid offline_access' });
      const refresh = { grant_type: 'refresh_token', client_id: 'spa', refresh_token: tokens.refresh_token };
      const refreshed = await token(agent, refresh);
      for (const id_token of [tokens.id_token, refreshed.json().id_token])
        expect(payload(id_token)).to.have.property('https://example.test/runs', true);
    });
  });

  it('scans no large table for a passkey, a code by e-mail, an organization, or the account page', async () => {
    await expectNoScan(OTHER_WAYS, async (server) => {
      const agent = createAgent(server);
      const key = softwareKey();
      const passkey = async (path: string, more: object, answer: (asked: never) => object) => {
        const begun = await agent.request(path, { json: { client_id: 'app', realm: 'keys', ...more } });
        const { auth_session, authn_params_public_key: asked } = begun.json();
        const authn_response = JSON.stringify(answer(asked as never));
        const grant = { grant_type: PASSKEY_GRANT, client_id: 'app', scope: 'openid', auth_session };
        const answered = await token(agent, { ...grant, authn_response });
        expect(answered.status, answered.text).to.equal(200);
      };
      const user_profile = { email: 'key@example.test' };
      await passkey('/passkey/register', { user_profile }, (asked) => key.create(asked, server.url));
      await passkey('/passkey/challenge', {}, (asked) => key.get(asked, server.url));
      const email = 'mail@example.test';
      const secret = { client_id: 'web', client_secret: 'web-secret' };
      const start = { ...secret, connection: 'email', email, send: 'code' };
      await agent.request('/passwordless/start', { json: start });
      const { code: otp } = await nextMessageTo(server, email, 1, 'code');
      const grant_type = 'http://auth0.com/oauth/grant-type/passwordless/otp';
      const byCode = await token(agent, { ...secret, grant_type, realm: 'email', username: email, otp });
      expect(byCode.status, byCode.text).to.equal(200);
      const inOrganization = await logIn(agent, server, webRequest({ organization: 'org_open' }));
      expect(responseOf(inOrganization).code, inOrganization.text).to.be.a('string');
      const page = await openAccount(agent, server, '/account/security');
      expect(page.status, page.text).to.equal(200);
    });
  });

  it('scans no large table for sender-constrained tokens and session transfer', async () => {
    await expectNoScan(OTHER_WAYS, async (server) => {
      const agent = createAgent(server);
      const prover = await createProver();
      const bound = await agent.request('/oauth/token', {
        json: {
          grant_type: 'client_credentials',
          client_id: 'web',
          client_secret: 'web-secret',
          audience: API,
        },
        headers: { dpop: await prover.proof('POST', `${server.issuer}oauth/token`) },
      });
      expect(bound.json().token_type, bound.text).to.equal('DPoP');
      const app = { client_id: 'hands-over' };
      const byPassword = await token(agent, {
        ...app,
        grant_type: 'password',
        username: USER.email,
        password: USER.password,
        scope: 'openid offline_access',
      });
      const handed = await token(agent, {
        ...app,
        grant_type: 'refresh_token',
        refresh_token: byPassword.json().refresh_token,
        audience: `urn:${new URL(server.url).host}:session_transfer`,
      });
      expect(handed.status, handed.text).to.equal(200);
      const request = webRequest({
        client_id: 'takes-over',
        session_transfer_token: handed.json().access_token,
      });
      const back = await follow(agent, await authorize(agent, request), server.url);
      expect(responseOf(back).code, back.text).to.be.a('string');
    });
  });

  it('pages through users and the log, sorted and filtered, without reading all rows', async () => {
    const scans = async () => {
      const { rows } = await client.query(
        `SELECT relname, seq_scan FROM pg_stat_user_tables WHERE relname IN ('users', 'users_index', 'logs')`,
      );
      return rows;
    };
    const before = await scans();
    const store = await openStore({ dataDir, databaseUrl: cluster.url(), clock: Date.now });
    const [users, logs] = [store.collection('users'), store.collection('logs')];
    const pages = await Promise.all([
      logs.list({ sort: { field: 'date', descending: true }, limit: 50 }),
      logs.list({ sort: { field: 'date' }, limit: 50 }),
      users.list({ where: { index: 'email', equals: '7' } }),
      users.list({ where: { index: 'search', prefix: '77' }, limit: 50 }),
      users.list({ after: 'x|17', limit: 50 }),
    ]);
    expect(pages.map(({ records }) => records.length > 0)).to.deep.equal(pages.map(() => true));
    await store.close();
    expect(await scans()).to.deep.equal(before);
  });

  it('searches the log by address, application and connection, frequent or rare, reading few other events', async () => {
    const read = async () => {
      const { rows } = await client.query(
        `SELECT coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) AS n FROM pg_stat_user_tables WHERE relname = 'logs'`,
      );
      return Number(rows[0].n);
    };
    const before = await read();
    const store = await openStore({ dataDir, databaseUrl: cluster.url(), clock: Date.now });
    for (const [field, field2] of [
      ['ip', 'client_id'],
      ['client_id', 'connection'],
      ['connection', 'ip'],
    ] as const) {
      for (const equals of ['rare', 'common']) {
        // The queries of the console and the Management API, also combined with another filter and from a point in
        // time.
        const is = { field, equals };
        const both = { all: [is, { field: field2, equals }, { field: 'id', from: 'x|1' }] };
        for (const sort of [
          { field: 'id', descending: true },
          { field: 'date', descending: true },
        ])
          for (const where of [is, both]) {
            const { records } = await store.collection('logs').list({ where, sort, limit: 20 });
            expect(records).to.have.length(equals === 'rare' ? 1 : 20);
          }
      }
    }
    await store.close();
    expect((await read()) - before).to.be.below(ROWS / 3);
  });
});
