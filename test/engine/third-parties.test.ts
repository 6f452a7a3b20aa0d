// Applications of third parties, which strangers operate: what they get, and what their users see (third_party_security_mode).
import { expect } from 'chai';
import { managed } from '../actions/support.ts';
import { startManaged } from '../management/support.ts';
import { type Agent, type Answer, createAgent, readForm } from '../support/agent.ts';
import {
  API,
  authorize,
  follow,
  logIn,
  payload,
  pkce,
  responseOf,
  THIRD_CALLBACK,
  tenant,
  token,
} from '../support/flows.ts';
import { nextMessageTo } from '../support/inbox.ts';
import type { TestServer } from '../support/server.ts';

const OPEN = 'https://open.example.test/';
const CLOSED = 'https://closed.example.test/';
const DEVICE = 'urn:ietf:params:oauth:grant-type:device_code';
const LOOPBACK = 'http://127.0.0.1/callback';
const REALM = 'http://auth0.com/oauth/grant-type/password-realm';

const stranger = (client_id: string, more: object = {}) => ({
  client_id,
  name: `The ${client_id}`,
  app_type: 'regular_web',
  client_secret: `${client_id}-secret`,
  is_first_party: false,
  callbacks: [THIRD_CALLBACK],
  grant_types: ['authorization_code', 'refresh_token'],
  ...more,
});
/** What a first-party application may have, and a record without a mode of its own may still have. */
const EVERYTHING = {
  grant_types: [
    ...['authorization_code', 'implicit', 'refresh_token', 'password', 'client_credentials', DEVICE, REALM],
  ],
  cross_origin_authentication: true,
  web_origins: ['https://third.example.test'],
  addons: { samlp: {} },
  mobile: { ios: { team_id: 'TEAM', app_bundle_identifier: 'app' } },
  refresh_token: {
    rotation_type: 'rotating',
    expiration_type: 'expiring',
    policies: [{ audience: API, scope: ['read:things'] }],
  },
};
const api = (identifier: string, user?: string) => ({
  name: identifier,
  identifier,
  scopes: [{ value: 'read' }, { value: 'write' }],
  allow_offline_access: true,
  ...(user && { subject_type_authorization: { user: { policy: user } } }),
});

const ownTenant = {
  ...tenant,
  clients: [
    ...tenant.clients,
    stranger('plain'),
    stranger('greedy', EVERYTHING),
    stranger('returning', { redirection_policy: 'allow_always' }),
    stranger('desktop', {
      app_type: 'native',
      client_secret: undefined,
      token_endpoint_auth_method: 'none',
      callbacks: [LOOPBACK, 'com.example.tool:/callback'],
    }),
    stranger('growing'),
    stranger('growing-desktop', { app_type: 'native', callbacks: [LOOPBACK] }),
    stranger('moving', { callbacks: [THIRD_CALLBACK, 'https://elsewhere.example.test/callback'] }),
    stranger('member', { organization_usage: 'allow' }),
    stranger('bidi', { name: 'Ada\u202e knab\u200b' }),
  ],
  databases: [
    { ...tenant.databases[0], enabled_clients: ['web', 'third'], is_domain_connection: true },
    { ...tenant.databases[1], enabled_clients: ['web', 'plain'] },
  ],
  resourceServers: [...tenant.resourceServers, api(OPEN), api(CLOSED, 'deny_all'), api('mine', 'allow_all')],
  clientGrants: [
    ...tenant.clientGrants,
    { default_for: 'third_party_clients', audience: OPEN, subject_type: 'user', scope: ['read'] },
    { default_for: 'third_party_clients', audience: CLOSED, subject_type: 'user', scope: ['read'] },
    { client_id: 'plain', audience: 'mine', subject_type: 'user', scope: ['read', 'write'] },
    { client_id: 'growing', audience: 'mine', subject_type: 'user', scope: ['read', 'write'] },
    { client_id: 'growing-desktop', audience: 'mine', subject_type: 'user', scope: ['read', 'write'] },
    { client_id: 'plain', audience: 'https://tenant.example.test/api/v2/', subject_type: 'user', scope: [] },
    { client_id: 'greedy', audience: 'https://tenant.example.test/api/v2/', scope: ['read:clients'] },
  ],
  organizations: [
    { id: 'org_open', name: 'open', third_party_client_access: 'allow' },
    { id: 'org_shut', name: 'shut' },
  ],
};

describe('a third-party application', () => {
  let server: TestServer;
  before(async () => {
    server = await startManaged(ownTenant);
  });
  after(() => server?.stop());

  const { verifier, challenge } = pkce();
  const request = (client_id: string, over: Record<string, string | undefined> = {}) =>
    Object.fromEntries(
      Object.entries({
        client_id,
        response_type: 'code',
        redirect_uri: THIRD_CALLBACK,
        scope: 'openid read',
        audience: OPEN,
        state: 'the-state',
        code_challenge: challenge,
        code_challenge_method: 'S256',
        ...over,
      }).filter((entry): entry is [string, string] => entry[1] !== undefined),
    );
  const begin = (
    client_id: string,
    over: Record<string, string | undefined> = {},
    agent = createAgent(server),
  ) => authorize(agent, request(client_id, over));
  const decide = async (agent: Agent, page: Answer, decision = 'accept') => {
    const { action, fields } = readForm(page, '_csrf');
    const answer = await agent.request(action, { form: { ...fields, decision } });
    return responseOf(await follow(agent, answer, server.url));
  };
  const exchange = (client_id: string, code: string | undefined, more: Record<string, string> = {}) =>
    token(createAgent(server), {
      grant_type: 'authorization_code',
      client_id,
      client_secret: `${client_id}-secret`,
      code,
      code_verifier: verifier,
      redirect_uri: THIRD_CALLBACK,
      ...more,
    });
  const refusalOf = (answer: Answer) =>
    `${answer.status} ${/invalid_request|unauthorized_client|unsupported_response_type|access_denied|login_required|invalid_scope/.exec(answer.text)?.[0]}`;

  it('gets a code with PKCE and a token for an API that all third parties may call, with the scopes of the grant', async () => {
    const agent = createAgent(server);
    const page = await logIn(agent, server, request('plain', { scope: 'openid offline_access read write' }));
    expect(page.text).to.contain('The plain').and.to.contain('third.example.test').and.to.contain('read');
    expect(page.text, 'a scope that the grant does not give').not.to.contain('write');
    const { code } = await decide(agent, page);
    const tokens = (await exchange('plain', code)).json();
    expect(payload(tokens.access_token)).to.include({ azp: 'plain', scope: 'openid read offline_access' });
    expect(tokens.refresh_token).to.be.a('string');
  });

  it('is refused without PKCE, with another response type, and with parameters of logins on its own pages', async () => {
    for (const [over, error] of [
      [{ code_challenge: undefined, code_challenge_method: undefined }, 'invalid_request'],
      [{ code_challenge: verifier, code_challenge_method: 'plain' }, 'invalid_request'],
      [{ response_type: 'token', nonce: 'n' }, 'unsupported_response_type'],
      [{ response_type: 'code id_token', nonce: 'n' }, 'unsupported_response_type'],
      [{ response_type: 'code token', nonce: 'n' }, 'unsupported_response_type'],
      [{ login_ticket: 'x' }, 'invalid_request'],
      [{ session_transfer_token: 'x' }, 'invalid_request'],
      [{ invitation: 'x', organization: 'org_open' }, 'invalid_request'],
    ] as [Record<string, string | undefined>, string][]) {
      const answer = await begin('greedy', over);
      expect(refusalOf(answer), JSON.stringify(over)).to.equal(`400 ${error}`);
      const pushed = await createAgent(server).request('/oauth/par', {
        form: { ...request('greedy', over), client_secret: 'greedy-secret' },
      });
      expect([pushed.status, pushed.json().error], JSON.stringify(over)).to.deep.equal([400, error]);
    }
  });

  it('gets no code for an API that nobody granted, that denies users, or for the server’s own APIs', async () => {
    const ofFactors = { audience: `${server.issuer}mfa/`, scope: ['read:authenticators'] };
    for (const whose of [{ client_id: 'plain' }, { default_for: 'third_party_clients' }]) {
      const grant = { ...whose, ...ofFactors, subject_type: 'user' };
      expect((await managed(server, 'POST', '/client-grants', grant)).status).to.equal(201);
    }
    for (const [client_id, audience] of [
      ['plain', API],
      ['plain', CLOSED],
      ['plain', `${server.issuer}api/v2/`],
      ['plain', `${server.issuer}me/`],
      ['plain', `${server.issuer}mfa/`],
      ['bidi', 'mine'],
    ] as const)
      expect(refusalOf(await begin(client_id, { audience })), audience).to.equal('400 unauthorized_client');
    expect((await begin('plain', { audience: 'mine' })).status).to.equal(302);
  });

  it('has no other grants, whatever its record says', async () => {
    const credentials = { client_id: 'greedy', client_secret: 'greedy-secret' };
    const user = { username: 'ada@example.test', password: 'Correct-Horse-1' };
    const ask = async (fields: Record<string, string>) =>
      (await token(createAgent(server), { ...credentials, ...fields })).json().error;
    expect(await ask({ grant_type: 'password', ...user })).to.equal('unauthorized_client');
    expect(await ask({ grant_type: REALM, realm: 'users', ...user })).to.equal('unauthorized_client');
    const management = { grant_type: 'client_credentials', audience: `${server.issuer}api/v2/` };
    expect(await ask(management), 'for the Management API').to.equal('access_denied');
    expect(await ask({ grant_type: 'client_credentials', audience: OPEN }), 'granted for users').to.equal(
      'access_denied',
    );
    const device = await createAgent(server).request('/oauth/device/code', { form: credentials });
    expect(device.json().error).to.equal('unauthorized_client');
    const own = await createAgent(server).request('/co/authenticate', {
      json: { ...credentials, ...user, credential_type: REALM, realm: 'users' },
      headers: { origin: 'https://third.example.test' },
    });
    expect(own.json().error).to.equal('unauthorized_client');
    expect((await createAgent(server).get('/samlp/greedy')).status).to.be.within(400, 404);
    expect((await createAgent(server).get('/.well-known/apple-app-site-association')).text).not.to.contain(
      'TEAM',
    );
  });

  it('logs users in with connections for all third parties alone, and not with one that names it', async () => {
    const agent = createAgent(server);
    const { text } = await follow(agent, await begin('plain', {}, agent), server.url);
    expect(text).to.contain('password');
    expect(refusalOf(await begin('plain', { connection: 'staff' }))).to.equal('400 invalid_request');
  });

  it('logs members of an organization in only if the organization allows third parties', async () => {
    expect((await begin('member', { organization: 'org_open' })).status).to.equal(302);
    expect(refusalOf(await begin('member', { organization: 'org_shut' }))).to.equal('400 invalid_request');
  });

  it('leads nobody to its callback who has not seen a page, unless its redirection_policy says so', async () => {
    for (const over of [
      { prompt: 'none' },
      { scope: 'x y' },
      { audience: 'https://nowhere.test/' },
      { max_age: 'x' },
    ]) {
      const answer = await begin('plain', over);
      if (answer.status === 302)
        expect(new URL(answer.location, server.url).origin, JSON.stringify(over)).to.equal(server.url);
      else expect(answer.status, JSON.stringify(over)).to.equal(400);
    }
    expect(refusalOf(await begin('plain', { prompt: 'none' })), 'no redirect').to.equal('400 login_required');
    const silent = await begin('returning', { prompt: 'none' });
    expect(responseOf(silent)).to.include({ error: 'login_required', state: 'the-state' });
    // The user has decided.
    const agent = createAgent(server);
    const page = await logIn(agent, server, request('plain', { prompt: 'consent' }));
    expect(await decide(agent, page, 'deny')).to.include({ error: 'access_denied' });
  });

  it('is shown to each user once for each API, and then answers silently', async () => {
    const agent = createAgent(server);
    const asked = request('returning', { scope: 'openid unknown', audience: undefined });
    const page = await logIn(agent, server, asked);
    expect(page.text).to.contain('third.example.test').and.not.to.contain('unknown');
    const silent = () => authorize(agent, { ...asked, prompt: 'none' });
    expect(responseOf(await silent())).to.include({ error: 'consent_required' });
    expect(await decide(agent, page)).to.have.property('code');
    expect(responseOf(await silent())).to.have.property('code');
    // Another API is another question.
    const other = await follow(agent, await authorize(agent, { ...asked, audience: OPEN }), server.url);
    expect(other.text).to.contain('third.example.test');
    expect(responseOf(await authorize(agent, { ...asked, audience: OPEN, prompt: 'none' }))).to.include({
      error: 'consent_required',
    });
  });

  it('that asks for more has what is new set apart from what it may do already', async () => {
    const part = (page: Answer, name: string) =>
      new RegExp(`<section class="${name}".*?</section>`, 's').exec(page.text)?.[0].replace(/<[^>]*>/g, ' ');
    for (const [client_id, over] of [
      ['growing', {}],
      ['growing-desktop', { redirect_uri: LOOPBACK }],
    ] as const) {
      const agent = createAgent(server);
      const asked = request(client_id, { audience: 'mine', scope: 'openid read', ...over });
      const first = await logIn(agent, server, asked);
      expect([part(first, 'added'), part(first, 'allowed')], client_id).to.deep.equal([undefined, undefined]);
      await decide(agent, first);
      const ask = async (more: object) =>
        follow(agent, await authorize(agent, { ...asked, ...more }), server.url);
      // Also where the request has the new scope alone.
      for (const scope of ['openid read write', 'openid write']) {
        const page = await ask({ scope });
        expect(part(page, 'added'), client_id).to.match(/New\s+mine\s+write\s*$/);
        expect(part(page, 'allowed'), client_id).to.match(
          /Already allowed\s+Know who you are\s+mine\s+read\s*$/,
        );
      }
      // Nothing is new: no word of ours makes light of what is asked for again.
      const again = await ask({ prompt: 'consent' });
      expect(again.text).to.contain('Know who you are').and.not.to.contain('Already allowed');
    }
  });

  it('has nothing shown as allowed before where the answer goes to another host than the user was shown', async () => {
    const agent = createAgent(server);
    const asked = request('moving', { scope: 'openid', audience: undefined });
    await decide(agent, await logIn(agent, server, asked));
    const elsewhere = { redirect_uri: 'https://elsewhere.example.test/callback', scope: 'openid email' };
    const ask = async (over: object) =>
      follow(agent, await authorize(agent, { ...asked, ...over }), server.url);
    expect((await ask({ scope: 'openid email' })).text).to.contain('Already allowed');
    expect((await ask(elsewhere)).text)
      .to.contain('See your email address')
      .and.contain('Know who you are')
      .and.not.to.contain('Already allowed');
  });

  it('is shown each time where any program of the device could ask in its name', async () => {
    for (const [redirect_uri, shown] of [
      ['http://127.0.0.1:51003/callback', 'a program on this device'],
      ['com.example.tool:/callback', 'com.example.tool:'],
    ] as const) {
      const agent = createAgent(server);
      const asked = request('desktop', { redirect_uri });
      const page = await logIn(agent, server, asked);
      expect(page.text).to.contain(shown);
      expect(await decide(agent, page)).to.have.property('code');
      const again = await follow(agent, await authorize(agent, asked), server.url);
      expect(again.text).to.contain(shown).and.to.contain('read');
      expect((await authorize(agent, { ...asked, prompt: 'none' })).text).to.contain('consent_required');
    }
    expect((await begin('desktop', { redirect_uri: 'http://localhost:1/callback' })).status).to.equal(400);
    expect((await begin('desktop', { redirect_uri: `${LOOPBACK}/more` })).status).to.equal(400);
  });

  it('cannot hide characters in its name', async () => {
    const page = await logIn(createAgent(server), server, request('bidi'));
    expect(page.text)
      .to.contain('Ada[U+202E] knab[U+200B]')
      .and.not.to.match(/[\u202e\u200b]/);
    await createAgent(server).request('/dbconnections/change_password', {
      json: { client_id: 'bidi', email: 'ada@example.test', connection: 'users' },
    });
    const mail = JSON.stringify(await nextMessageTo(server, 'ada@example.test'));
    const log = JSON.stringify((await managed(server, 'GET', '/logs?q=client_id:bidi')).body);
    for (const told of [mail, log])
      expect(told)
        .to.contain('Ada[U+202E] knab[U+200B]')
        .and.not.to.match(/[\u202e\u200b]/);
    const records = await managed(server, 'GET', '/clients/bidi?fields=name');
    expect(records.body.name, 'the record').to.equal('Ada\u202e knab\u200b');
  });

  it('gets claims of actions, and no rules run for it', async () => {
    const rule = await managed(server, 'POST', '/rules', {
      name: 'Deny',
      script: 'function (user, context, callback) { callback(new UnauthorizedError("no")); }',
      enabled: true,
    });
    expect(rule.status).to.equal(201);
    try {
      const agent = createAgent(server);
      const page = await logIn(agent, server, request('returning', { prompt: 'consent' }));
      expect(await decide(agent, page)).to.have.property('code');
      const old = await logIn(createAgent(server), server, {
        ...request('third', { audience: undefined }),
        client_id: 'third',
      });
      expect(old.text).to.contain('Third party');
    } finally {
      await managed(server, 'DELETE', `/rules/${rule.body.id}`);
    }
  });

  it('that is permissive is as before: any API that is open, and grants of its record', async () => {
    const answer = await authorize(createAgent(server), {
      client_id: 'third',
      response_type: 'code',
      redirect_uri: THIRD_CALLBACK,
      scope: 'openid',
      audience: API,
    });
    expect(answer.status).to.equal(302);
    expect(new URL(answer.location, server.url).origin).to.equal(server.url);
  });

  it('sends no callback with mails to others', async () => {
    await createAgent(server).request('/dbconnections/change_password', {
      json: { client_id: 'plain', email: 'ada@example.test', connection: 'users' },
    });
    expect((await nextMessageTo(server, 'ada@example.test')).text).not.to.contain('third.example.test');
  });

  describe('at the Management API', () => {
    const make = (body: object) =>
      managed(server, 'POST', '/clients', { name: 'Made', is_first_party: false, ...body });

    it('is strict by default, and its client_id says that it is a third party’s', async () => {
      const { body } = await make({ callbacks: [THIRD_CALLBACK] });
      expect(body).to.deep.include({
        third_party_security_mode: 'strict',
        grant_types: ['authorization_code', 'refresh_token'],
      });
      expect(body.client_id).to.match(/^tpc_[A-Za-z0-9]{28}$/);
    });

    it('has its mode for good, and as a strict one no other grants', async () => {
      const { body } = await make({});
      const change = (members: object) => managed(server, 'PATCH', `/clients/${body.client_id}`, members);
      expect((await change({ third_party_security_mode: 'permissive' })).status).to.equal(400);
      expect((await change({ grant_types: ['password'] })).status).to.equal(400);
      expect((await change({ is_first_party: true })).status).to.equal(400);
      expect((await change({ redirection_policy: 'sometimes' })).status).to.equal(400);
      expect((await change({ redirection_policy: 'allow_always' })).status).to.equal(200);
      expect((await make({ grant_types: ['implicit'] })).status).to.equal(400);
      const old = await make({ grant_types: ['implicit'], third_party_security_mode: 'permissive' });
      expect(old.status).to.equal(201);
    });
  });
});
