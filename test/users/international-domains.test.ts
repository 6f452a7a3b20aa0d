import { expect } from 'chai';
import { lookupEmail, normalizeEmail } from '../../src/records/base/email.ts';
import { callsWith, type ManagementCall, managementToken, startManaged } from '../management/support.ts';
import { type Agent, createAgent } from '../support/agent.ts';
import { nextMessageTo } from '../support/inbox.ts';
import type { TestServer } from '../support/server.ts';
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

  it('is looked up without characters that a domain cannot have', () => {
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
