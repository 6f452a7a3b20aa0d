// E-mail addresses with an international domain: browsers send its A-labels (`xn--bcher-kva`), other programs its letters.
// Both are one address. Addresses with invisible characters are none.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { lookupEmail, normalizeEmail, spellingsOf } from '../../src/records/email.ts';
import type { IdentityRecord } from '../../src/records/identities.ts';
import type { UserRecord } from '../../src/records/users.ts';
import type { Write } from '../../src/store/contract.ts';
import { callsWith, type ManagementCall, managementToken, startManaged } from '../management/support.ts';
import { type Agent, createAgent } from '../support/agent.ts';
import { nextMessageTo } from '../support/inbox.ts';
import type { TestServer } from '../support/server.ts';
import { openStoreOf } from '../support/store.ts';
import { aMoment } from '../support/wait-until.ts';

const LETTERS = 'bücher.example';
const LABELS = 'xn--bcher-kva.example';
const PASSWORD = 'Correct-Horse-1';
const SECRET = 'a-secret-of-the-web-application';

const tenant = {
  tenant: { default_directory: 'users' },
  attackProtection: { rateLimits: { login: { capacity: 10_000, perMinute: 10_000 } } },
  clients: [
    {
      name: 'Web',
      client_id: 'web',
      client_secret: SECRET,
      grant_types: ['password', 'http://auth0.com/oauth/grant-type/passwordless/otp'],
      callbacks: ['https://app.example.test/callback'],
    },
  ],
  databases: [{ name: 'users', strategy: 'auth0', enabled_clients: ['web'], options: {} }],
  connections: [
    { name: 'email', strategy: 'email', enabled_clients: ['web'], options: {} },
    {
      name: 'corp',
      strategy: 'oidc',
      enabled_clients: ['web'],
      options: {
        type: 'back_channel',
        issuer: 'https://id.example.test',
        authorization_endpoint: 'https://id.example.test/authorize',
        token_endpoint: 'https://id.example.test/token',
        jwks_uri: 'https://id.example.test/jwks',
        client_id: 'gatehouse',
        client_secret: 'the-secret-at-the-provider',
        domain_aliases: ['Köln.example', 'xn--mnchen-3ya.example'],
      },
    },
  ],
};

describe('the stored form of an e-mail address', () => {
  for (const [typed, stored] of [
    [`Ada@${LETTERS}`, `ada@${LABELS}`],
    ['ADA@BÜCHER.EXAMPLE', `ada@${LABELS}`],
    ['ada@bu\u0308cher.example', `ada@${LABELS}`],
    ['ada@bücher。example', `ada@${LABELS}`],
    [`ada@${LABELS}`, `ada@${LABELS}`],
    ['ada@XN--Bcher-KVA.example', `ada@${LABELS}`],
    ['jürgen@straße.example', 'jürgen@xn--strae-oqa.example'],
    ['ada@sub_domain.example', 'ada@sub_domain.example'],
    ['ada@xn--zzzz-.example', 'ada@xn--zzzz-.example'],
    // What Node's function would end at, decode, or read as an IPv4 address.
    ['ada@victim.example/ü', undefined],
    ['ada@victim.example#ü', undefined],
    ['ada@victim.example?ü', undefined],
    ['ada@victim%2eexample.ü', undefined],
    ['ada@１２７.１', undefined],
    ['ada@ü.', undefined],
    ['ada@ü。', undefined],
    ['ada@℀.example', undefined],
    // What Node's function turns into letters that an address cannot have: a comment, a second address.
    ['ada@victim.example⁽thief.example', undefined],
    ['ada@victim.example，thief.example', undefined],
    ['ada@victim.example；thief', undefined],
    ['ada@victim.example！', undefined],
    [`${'a'.repeat(230)}@${LETTERS}`, `${'a'.repeat(230)}@${LABELS}`],
    [`${'a'.repeat(236)}@${LETTERS}`, undefined],
    ['a\u200bda@example.test', undefined],
    ['ada\u200e@example.test', undefined],
    ['ada@example.test\u200b', undefined],
    ['ada@exam\u00adple.test', undefined],
    ['a\ufe0fda@example.test', undefined],
    ['a\u3164@example.test', undefined],
  ] as const) {
    it(`of ${JSON.stringify(typed.slice(0, 40))} is ${stored?.slice(-40) ?? 'none'}`, () => {
      expect(normalizeEmail(typed)).to.equal(stored);
      if (stored !== undefined) expect(normalizeEmail(stored)).to.equal(stored);
    });
  }

  it('is looked up in both spellings, and without characters that a domain cannot have', () => {
    expect(spellingsOf(`ada@${LABELS}`)).to.deep.equal([`ada@${LABELS}`, `ada@${LETTERS}`]);
    expect(spellingsOf('ada@example.test')).to.deep.equal(['ada@example.test']);
    expect(lookupEmail('ada@exam\u200bple.test')).to.equal('ada@example.test');
    expect(lookupEmail('a\u200bda@example.test')).to.equal('a\u200bda@example.test');
  });
});

const application = { client_id: 'web', client_secret: SECRET };

async function logIn(agent: Agent, username: string, password = PASSWORD) {
  const json = { ...application, grant_type: 'password', scope: 'openid', username, password };
  const answer = await agent.request('/oauth/token', { json });
  return answer.status === 200 ? subject(answer.json().id_token) : answer.status;
}

const subject = (token: string) =>
  JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()).sub as string;

describe('an address with an international domain', () => {
  let server: TestServer;
  let agent: Agent;
  let call: ManagementCall;
  before(async () => {
    server = await startManaged(tenant);
    agent = createAgent(server);
    call = callsWith(server, await managementToken(server));
  });
  after(() => server.stop());

  const signUp = (email: string, connection = 'users') =>
    agent.request('/dbconnections/signup', {
      json: { client_id: 'web', connection, email, password: PASSWORD },
    });
  const found = async (path: string) =>
    (await call('GET', path)).json().map((user: { email: string }) => user.email);

  it('is one account at sign-up and login, whatever is typed', async () => {
    expect((await signUp(`ada@${LETTERS}`)).status).to.equal(200);
    expect((await signUp(`ada@${LABELS}`)).status).to.equal(400);
    const id = await logIn(agent, `ada@${LETTERS}`);
    expect(id).to.match(/^auth0\|/);
    expect(await logIn(agent, `Ada@${LABELS}`)).to.equal(id);
  });

  it('is none where a letter stands for one that no domain has: mails would go to another address', async () => {
    for (const [email, to] of [
      ['thief@own.example，corp.example', 'thief@own.example,corp.example'],
      ['thief@own.example⁽corp.example', 'thief@own.example(corp.example'],
    ] as const) {
      expect((await signUp(email)).status, email).to.equal(400);
      const json = { ...application, connection: 'email', email, send: 'code' };
      expect((await agent.request('/passwordless/start', { json })).status, email).to.equal(400);
      expect(await found(`/users-by-email?email=${encodeURIComponent(to)}`)).to.deep.equal([]);
    }
  });

  it('is one account for codes', async () => {
    const json = { ...application, connection: 'email', email: `grace@${LETTERS}`, send: 'code' };
    expect((await agent.request('/passwordless/start', { json })).status).to.equal(200);
    const { code } = await nextMessageTo(server, `grace@${LABELS}`);
    const grant_type = 'http://auth0.com/oauth/grant-type/passwordless/otp';
    const login = { ...application, grant_type, realm: 'email', scope: 'openid', otp: code };
    const answer = await agent.request('/oauth/token', { json: { ...login, username: `grace@${LABELS}` } });
    expect(answer.status, answer.text).to.equal(200);
    const again = await agent.request('/passwordless/start', { json: { ...json, email: `grace@${LABELS}` } });
    expect(again.status).to.equal(200);
    const next = await nextMessageTo(server, `grace@${LABELS}`, 2);
    const second = await agent.request('/oauth/token', {
      json: { ...login, otp: next.code, username: `grace@${LETTERS}` },
    });
    expect(subject(second.json().id_token)).to.equal(subject(answer.json().id_token));
  });

  it('is one account for the Management API, which finds it by both spellings', async () => {
    const user = { connection: 'users', password: PASSWORD };
    expect((await call('POST', '/users', { ...user, email: `hedy@${LETTERS}` })).status).to.equal(201);
    expect((await call('POST', '/users', { ...user, email: `hedy@${LABELS}` })).status).to.equal(409);
    for (const domain of [LETTERS, LABELS]) {
      const email = encodeURIComponent(`hedy@${domain}`);
      expect(await found(`/users-by-email?email=${email}`)).to.deep.equal([`hedy@${LABELS}`]);
      for (const q of [
        `email:"hedy@${domain}"`,
        `email:hedy@${domain.slice(0, -3)}*`,
        `email:*y@${domain}`,
        `email.domain:"${domain}" AND email:hedy*`,
        `email.domain:*${domain} AND email:hedy*`,
      ])
        expect(await found(`/users?search_engine=v3&q=${encodeURIComponent(q)}`), q).to.deep.equal([
          `hedy@${LABELS}`,
        ]);
    }
  });

  it('is one account for imports', async () => {
    expect(await signUp(`joan@${LABELS}`)).to.have.property('status', 200);
    const connections = (await call('GET', '/connections?name=users')).json();
    const form = new FormData();
    form.set('connection_id', connections[0].id);
    form.set('upsert', 'true');
    form.set(
      'users',
      new Blob([JSON.stringify([{ email: `joan@${LETTERS}`, given_name: 'Joan' }])], {
        type: 'application/json',
      }),
      'users.json',
    );
    const headers = { authorization: `Bearer ${await managementToken(server)}` };
    const started = await fetch(`${server.url}/api/v2/jobs/users-imports`, {
      method: 'POST',
      headers,
      body: form,
    });
    const { id } = (await started.json()) as { id: string };
    while ((await call('GET', `/jobs/${id}`)).json().status !== 'completed') await aMoment();
    const users = (
      await call('GET', `/users-by-email?email=${encodeURIComponent(`joan@${LETTERS}`)}`)
    ).json();
    expect(users.map((one: { given_name?: string }) => one.given_name)).to.deep.equal(['Joan']);
  });

  it('counts as one name for wrong passwords of nobody', async () => {
    for (let tries = 0; tries < 5; tries++) {
      await logIn(agent, `nobody@${LETTERS}`, 'wrong');
      await logIn(agent, `nobody@${LABELS}`, 'wrong');
    }
    const json = {
      ...application,
      grant_type: 'password',
      username: `nobody@${LABELS}`,
      password: 'wrong',
    };
    expect((await agent.request('/oauth/token', { json })).json().error).to.equal('too_many_attempts');
  });

  it('leads to the connection of its domain, however that is written', async () => {
    for (const [domain, status] of [
      ['köln.example', 200],
      ['xn--kln-sna.example', 200],
      ['münchen.example', 200],
      ['XN--mnchen-3ya.example', 200],
      ['koln.example', 404],
    ] as const) {
      const resource = encodeURIComponent(`urn:auth0:discovery:domain:${domain}`);
      const answer = await agent.get(`/.well-known/webfinger?resource=${resource}`);
      expect(answer.status, domain).to.equal(status);
    }
  });

  it('leads to the organization of its domain, which only one can have', async () => {
    const [one, other] = await Promise.all(
      ['one', 'other'].map(async (name) => (await call('POST', '/organizations', { name })).json().id),
    );
    const add = (id: string, domain: string) =>
      call('POST', `/organizations/${id}/discovery-domains`, { domain, status: 'verified' });
    const added = await add(one, 'Zürich.example');
    expect(added.status, added.text).to.equal(201);
    expect(added.json().domain).to.equal('xn--zrich-kva.example');
    expect((await add(other, 'xn--zrich-kva.example')).status).to.equal(409);
    const name = encodeURIComponent('zürich.example');
    expect((await call('GET', `/organizations/${one}/discovery-domains/name/${name}`)).status).to.equal(200);
  });

  it('is refused with invisible characters, which would make an account that nobody finds', async () => {
    for (const email of ['mal\u200blory@example.test', 'mallory@example.test\u200e']) {
      expect((await signUp(email)).status).to.equal(400);
      const answer = await call('POST', '/users', { connection: 'users', password: PASSWORD, email });
      expect(answer.status).to.equal(400);
    }
  });
});

describe('users whose addresses an earlier release stored with the letters of an international domain', () => {
  let dataDir: string;
  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'gatehouse-domains-'));
  });
  afterEach(() => rm(dataDir, { recursive: true, force: true }));

  /** Signs users up, and stores their addresses as an earlier release did. */
  const storeOlder = async (changes: Record<string, string>) => {
    const server = await startManaged(tenant, dataDir);
    const ids: Record<string, string> = {};
    try {
      for (const email of Object.keys(changes)) {
        await createAgent(server).request('/dbconnections/signup', {
          json: { client_id: 'web', connection: 'users', email, password: PASSWORD },
        });
        ids[email] = String(await logIn(createAgent(server), email));
      }
    } finally {
      await server.stop();
    }
    const store = await openStoreOf({ dataDir, clock: Date.now });
    try {
      for (const [from, to] of Object.entries(changes)) {
        const [identity] = await store.collection('identities').findBy('user', ids[from] ?? '');
        const user = await store.collection('users').get(ids[from] ?? '');
        await store.batch([
          { collection: 'identities', put: { ...identity, email: to } as IdentityRecord },
          { collection: 'users', put: { ...user, email: to } as UserRecord },
        ] satisfies Write[]);
      }
      for (const name of ['identities', 'users'])
        await store.collection('migrations').delete(`international-domains:${name}`);
    } finally {
      await store.close();
    }
    return ids;
  };

  it('are found by both spellings after the next start, and nobody else can sign up with either', async () => {
    const { 'ada@older.example': id } = await storeOlder({ 'ada@older.example': `ada@${LETTERS}` });
    const server = await startManaged(tenant, dataDir);
    try {
      const agent = createAgent(server);
      for (const domain of [LETTERS, LABELS]) {
        const email = `ada@${domain}`;
        expect(await logIn(agent, email)).to.equal(id);
        const json = { client_id: 'web', connection: 'users', email, password: PASSWORD };
        expect((await agent.request('/dbconnections/signup', { json })).status).to.equal(400);
      }
      expect((await server.users.get(id ?? ''))?.email).to.equal(`ada@${LABELS}`);
    } finally {
      await server.stop();
    }
  });

  it('each keep their account where two have one address, and the log names both', async () => {
    const ids = await storeOlder({
      'ada@older.example': `ada@${LETTERS}`,
      'other@older.example': `ada@${LABELS}`,
    });
    const [letters = '', labels = ''] = Object.values(ids);
    const server = await startManaged(tenant, dataDir);
    try {
      const agent = createAgent(server);
      expect(await logIn(agent, `ada@${LETTERS}`)).to.equal(letters);
      expect(await logIn(agent, `ada@${LABELS}`)).to.equal(labels);
      const call = callsWith(server, await managementToken(server));
      const users = (await call('GET', `/users-by-email?email=ada@${LABELS}`)).json();
      expect(users.map((one: { user_id: string }) => one.user_id)).to.have.members([letters, labels]);
      const warning = server
        .logged()
        .split('\n')
        .find((line) => line.includes('two users have one e-mail address'));
      expect(JSON.parse(warning ?? '{}').users).to.deep.equal([letters, labels]);
      // An administrator ends it: with another address, the account is found by that.
      const changed = await call('PATCH', `/users/${encodeURIComponent(letters)}`, {
        email: 'ada@new.example',
        connection: 'users',
        client_id: 'web',
      });
      expect(changed.status, changed.text).to.equal(200);
      expect(await logIn(agent, 'ada@new.example')).to.equal(letters);
      expect(await logIn(agent, `ada@${LETTERS}`)).to.equal(labels);
    } finally {
      await server.stop();
    }
  });

  it('keep their account where the address has invisible characters', async () => {
    const { 'ada@older.example': id } = await storeOlder({
      'ada@older.example': 'a\u200bda@example.test',
    });
    const server = await startManaged(tenant, dataDir);
    try {
      expect(await logIn(createAgent(server), 'a\u200bda@example.test')).to.equal(id);
    } finally {
      await server.stop();
    }
  });
});
