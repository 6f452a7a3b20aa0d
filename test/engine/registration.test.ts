// Applications that register themselves (RFC 7591, RFC 7592), as agents do.
import { expect } from 'chai';
import { createLocalJWKSet, jwtVerify } from 'jose';
import { managed } from '../actions/support.ts';
import { managementToken, startManaged } from '../management/support.ts';
import { type Agent, type Answer, createAgent, readForm } from '../support/agent.ts';
import { authorize, follow, logIn, payload, pkce, responseOf, tenant, token } from '../support/flows.ts';
import { nextMessageTo } from '../support/inbox.ts';
import { startServer, type TestServer } from '../support/server.ts';

const MCP = 'https://mcp.example.test/mcp';
const CALLBACK = 'https://agent.example.test/callback';
const DAY = 86_400_000;

const ownTenant = {
  ...tenant,
  tenant: {
    ...tenant.tenant,
    friendly_name: 'Harbour',
    flags: { enable_dynamic_client_registration: true },
    dynamic_client_registration: { unused_days: 10 },
  },
  attackProtection: {
    rateLimits: {
      ...tenant.attackProtection.rateLimits,
      registration: { capacity: 10_000, perMinute: 10_000 },
      registrationManagement: { capacity: 10_000, perMinute: 10_000 },
    },
  },
  databases: tenant.databases.map((one) => ({ ...one, is_domain_connection: one.name === 'users' })),
  resourceServers: [
    ...tenant.resourceServers,
    {
      name: 'Tools',
      identifier: MCP,
      scopes: [{ value: 'tools:read' }, { value: 'tools:write' }],
      allow_offline_access: true,
    },
  ],
  clientGrants: [
    ...tenant.clientGrants,
    {
      default_for: 'third_party_clients',
      audience: MCP,
      subject_type: 'user',
      scope: ['tools:read', 'tools:write'],
    },
  ],
};

describe('an application that registers itself', () => {
  let server: TestServer;
  before(async () => {
    server = await startManaged(ownTenant);
  });
  after(() => server?.stop());

  /** What the SDK of the Model Context Protocol sends. */
  const AGENT = {
    client_name: 'Some agent',
    redirect_uris: [CALLBACK],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
    scope: 'tools:read',
    software_id: 'x',
  };
  const register = (body: object = {}, headers: Record<string, string> = {}) =>
    createAgent(server).request('/oidc/register', { json: { ...AGENT, ...body }, headers });
  const registered = async (body: object = {}) => {
    const answer = await register(body);
    expect(answer.status, answer.text).to.equal(201);
    return answer.json() as Record<string, any>; // any: a test reads what it expects
  };
  const own = (
    client: Record<string, any>,
    method: string,
    json?: object,
    bearer = client.registration_access_token,
  ) =>
    createAgent(server).request(new URL(client.registration_client_uri).pathname, {
      method,
      headers: { authorization: `Bearer ${bearer}` },
      ...(json && { json }),
    });
  const { verifier, challenge } = pkce();
  const request = (client_id: string, over: Record<string, string> = {}) => ({
    client_id,
    response_type: 'code',
    redirect_uri: CALLBACK,
    resource: MCP,
    scope: 'tools:read offline_access',
    state: 'the-state',
    code_challenge: challenge,
    code_challenge_method: 'S256',
    ...over,
  });
  const decide = async (agent: Agent, page: Answer) => {
    const { action, fields } = readForm(page, '_csrf');
    const answer = await agent.request(action, { form: { ...fields, decision: 'accept' } });
    return responseOf(await follow(agent, answer, server.url));
  };
  const login = async (client_id: string, over: Record<string, string> = {}) => {
    const agent = createAgent(server);
    const page = await logIn(agent, server, request(client_id, over));
    return page.status === 302 ? responseOf(page) : decide(agent, page);
  };
  const exchange = (client_id: string, code: string | undefined, more: Record<string, string> = {}) =>
    token(createAgent(server), {
      grant_type: 'authorization_code',
      client_id,
      code,
      code_verifier: verifier,
      redirect_uri: CALLBACK,
      ...more,
    });

  it('finds the endpoint in both metadata documents', async () => {
    for (const name of ['openid-configuration', 'oauth-authorization-server']) {
      const { registration_endpoint } = (await createAgent(server).get(`/.well-known/${name}`)).json();
      expect(registration_endpoint).to.equal(`${server.issuer}oidc/register`);
    }
  });

  it('is a strict third party, whose users log in, consent, and give it tokens for the API that is open to such', async () => {
    const answer = await register();
    expect(answer.headers['cache-control']).to.equal('no-store');
    const client = answer.json();
    expect(client).to.deep.include({
      client_name: 'Some agent',
      redirect_uris: [CALLBACK],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
    });
    expect(client.client_id).to.match(/^tpc_[\w-]{32}$/);
    expect(client).not.to.have.property('client_secret');
    const agent = createAgent(server);
    const page = await logIn(agent, server, request(client.client_id));
    expect(page.text)
      .to.contain('Some agent')
      .and.to.contain('agent.example.test')
      .and.to.contain('Not verified');
    const { code } = await decide(agent, page);
    const tokens = (await exchange(client.client_id, code)).json();
    expect(payload(tokens.access_token)).to.include({
      azp: client.client_id,
      scope: 'tools:read offline_access',
    });
    const refreshed = await token(createAgent(server), {
      grant_type: 'refresh_token',
      client_id: client.client_id,
      refresh_token: tokens.refresh_token,
    });
    expect(refreshed.status, refreshed.text).to.equal(200);
    // What it registered as its scope is no ceiling.
    const more = await login(client.client_id, { scope: 'tools:read tools:write' });
    const wider = (await exchange(client.client_id, more.code)).json();
    expect(payload(wider.access_token).scope).to.contain('tools:write');
  });

  it('with a secret authenticates with it', async () => {
    const client = await registered({ token_endpoint_auth_method: undefined });
    expect(client).to.deep.include({
      token_endpoint_auth_method: 'client_secret_basic',
      client_secret_expires_at: 0,
    });
    const { code } = await login(client.client_id);
    expect((await exchange(client.client_id, code)).status).to.equal(401);
    const { code: second } = await login(client.client_id);
    const tokens = await exchange(client.client_id, second, { client_secret: client.client_secret });
    expect(tokens.status, tokens.text).to.equal(200);
  });

  it('gets what it may have of what it asks for, and nothing else', async () => {
    const client = await registered({
      grant_types: [
        'authorization_code',
        'urn:ietf:params:oauth:grant-type:device_code',
        'client_credentials',
        'password',
      ],
      response_types: ['code', 'id_token', 'code token'],
      is_first_party: true,
      client_id: 'web',
      client_secret: 'chosen-by-myself',
      addons: { samlp: {} },
      third_party_security_mode: 'permissive',
    });
    expect(client).to.deep.include({ grant_types: ['authorization_code'], response_types: ['code'] });
    expect(client).not.to.have.any.keys('client_secret', 'is_first_party', 'addons');
    const { body } = await managed(server, 'GET', `/clients/${client.client_id}`);
    expect(body).to.deep.include({
      is_first_party: false,
      third_party_security_mode: 'strict',
      external_metadata_type: 'dcr',
      external_metadata_created_by: 'client',
    });
    const answer = await authorize(createAgent(server), {
      ...request(client.client_id),
      resource: `${server.issuer}api/v2/`,
    });
    expect(answer.status).to.equal(400);
  });

  it('is refused with callbacks that browsers must not be sent to', async () => {
    for (const uri of [
      'http://agent.example.test/callback',
      'javascript:alert(1)',
      'data:text/html,x',
      'agent:callback',
      'https://agent.example.test/callback#here',
      'https://*.example.test/callback',
      'https://{organization_name}.example.test/callback',
      'https://user:secret@agent.example.test/callback',
      'https://agent.example.test./callback',
      'https://agent.example.test/\u202e',
      'https:\\\\agent.example.test',
      'file:///etc/passwd',
      `https://agent.example.test/${'a'.repeat(600)}`,
      '',
      `${server.url}/callback`,
      `${server.issuer}device/callback`,
    ]) {
      const answer = await register({ redirect_uris: [CALLBACK, uri] });
      expect([answer.status, answer.json().error], uri).to.deep.equal([400, 'invalid_redirect_uri']);
    }
    for (const redirect_uris of [undefined, [], 'x', Array(11).fill(CALLBACK)]) {
      const answer = await register({ redirect_uris });
      expect([answer.status, answer.json().error]).to.deep.equal([400, 'invalid_redirect_uri']);
    }
    for (const uri of [
      'http://localhost:3000/cb',
      'http://127.0.0.1/cb',
      'http://[::1]:1/cb',
      'com.example.tool:/cb',
    ])
      expect((await register({ redirect_uris: [uri] })).status, uri).to.equal(201);
  });

  it('may name a page of its own at http://localhost, as pages in development do', async () => {
    const client_uri = 'http://localhost:5173';
    expect(await registered({ client_uri })).to.include({ client_uri });
  });

  it('is refused with names that pose as another, and other members that cannot be', async () => {
    for (const body of [
      ...[
        'Single page',
        'single-page',
        'S\u0456ngle p\u0430ge',
        'SINGLE  PAGE',
        'Sing1e page',
        'Harbour',
        'Harb0ur',
        // Letters of Lisu, Coptic and Canadian syllabics, small capitals, a stroke.
        ...[
          '\ua4e7arbour',
          '\u2c8earbour',
          '\u157carbour',
          '\u029c\u1d00\u0280\u0299\u1d0f\u1d1c\u0280',
          'Harb\u00f8ur',
        ],
      ],
      ...[
        'Ada\u202egnp.exe',
        'Ada\u200b',
        'Ada\u0000',
        ' Ada',
        'Ada\nEva',
        '<b>Ada</b>',
        'Ad\u0430',
        'x'.repeat(101),
        '',
      ],
      'Z\u0300\u0301\u0302\u0303',
      // Hosts that are not its own.
      ...[
        'accounts.google.com',
        'Google (accounts.google.com)',
        'ACCOUNTS.GOOGLE.COM!',
        'https://google.com/',
      ],
      ...[
        'accounts\uff0egoogle\u3002com',
        'login to my-bank.co.uk',
        '\u4f8b\u5b50.\u4e2d\u56fd',
        'xn--fsqu00a.xn--fiqs8s',
      ],
    ]
      .map((client_name): object => ({ client_name }))
      .concat([
        { logo_uri: 'javascript:alert(1)' },
        { logo_uri: 'http://agent.example.test/logo.png' },
        { client_uri: 'javascript:alert(1)' },
        { grant_types: ['client_credentials'] },
        { grant_types: ['refresh_token'] },
        { response_types: ['token'] },
        { token_endpoint_auth_method: 'private_key_jwt' },
        { id_token_signed_response_alg: 'none' },
        { subject_type: 'pairwise' },
        { grant_types: Array(21).fill('x') },
      ])) {
      const answer = await register(body);
      expect([answer.status, answer.json().error], JSON.stringify(body)).to.deep.equal([
        400,
        'invalid_client_metadata',
      ]);
    }
    for (const client_name of [
      'Ada',
      'وكيل',
      'エージェント',
      'Агент',
      'AI 助手',
      'Smørrebrød',
      'एजेंट GPT',
      'ตัวแทน',
      'Zoë’s agent 2',
      '👩‍💻'.slice(0, 2),
      ...['Node.js 24.1 client', 'v1.2.3', 'Dr. Who', 'agent.local'],
    ])
      expect((await register({ client_name })).status, client_name).to.equal(201);
    const at = (...hosts: string[]) => hosts.map((host) => `https://${host}/callback`);
    for (const [redirect_uris, status] of [
      [at('cal.example.com'), 201],
      [at('cal.example.com:8443'), 201],
      [['com.example.cal://cal.example.com/callback'], 400],
      [at('cal.example.com', 'other.example.com'), 400],
      [[...at('cal.example.com'), 'http://127.0.0.1/callback'], 400],
      [at('my.cal.example.com'), 400],
    ] as const)
      expect(
        (await register({ client_name: 'Cal (cal.example.com)', redirect_uris })).status,
        redirect_uris.join(),
      ).to.equal(status);
    const long = await register({ padding: 'x'.repeat(9_000) });
    expect(long.status).to.equal(413);
    expect(
      (await createAgent(server).request('/oidc/register', { form: { client_name: 'x' } })).status,
    ).to.be.within(400, 415);
  });

  it('is shown without its logo, which its host could tell its viewers by', async () => {
    const client = await registered({ logo_uri: 'https://tracker.example.test/pixel.png' });
    const page = await follow(
      createAgent(server),
      await authorize(createAgent(server), request(client.client_id)),
      server.url,
    );
    const consent = await logIn(createAgent(server), server, request(client.client_id));
    for (const { text, headers } of [page, consent])
      expect(`${text}${headers['content-security-policy']}`).not.to.contain('tracker.example.test');
  });

  it('is shown without its logo also where its users choose a provider', async () => {
    const provider = (name: string) => ({
      name,
      strategy: 'oidc',
      is_domain_connection: true,
      options: {
        type: 'front_channel',
        client_id: 'gatehouse',
        issuer: 'https://provider.example.test',
        authorization_endpoint: 'https://provider.example.test/authorize',
        jwks_uri: 'https://provider.example.test/keys',
      },
    });
    const { default_directory: _, ...settings } = ownTenant.tenant as Record<string, unknown>;
    const elsewhere = await startServer({
      tenant: {
        ...ownTenant,
        tenant: settings,
        databases: ownTenant.databases.map((one) => ({ ...one, is_domain_connection: false })),
        connections: [provider('one'), provider('two')],
      },
    });
    try {
      const answer = await createAgent(elsewhere).request('/oidc/register', {
        json: { ...AGENT, logo_uri: 'https://tracker.example.test/pixel.png' },
      });
      const agent = createAgent(elsewhere);
      const page = await follow(
        agent,
        await authorize(agent, request(answer.json().client_id)),
        elsewhere.url,
      );
      expect(page.text).to.contain('/connection/one').and.contain('Some agent');
      expect(`${page.text}${page.headers['content-security-policy']}`).not.to.contain('tracker.example.test');
    } finally {
      await elsewhere.stop();
    }
  });

  it('gives no words to messages that anybody can have sent', async () => {
    const client = await registered({ client_name: 'Call 555 now' });
    await createAgent(server).request('/dbconnections/change_password', {
      json: { client_id: client.client_id, email: 'ada@example.test', connection: 'users' },
    });
    const mail = JSON.stringify(await nextMessageTo(server, 'ada@example.test'));
    expect(mail).to.contain('Harbour').and.not.to.contain('Call 555');
  });

  it('is not there where registration is off', async () => {
    const set = (value: boolean) =>
      managed(server, 'PATCH', '/tenants/settings', { flags: { enable_dynamic_client_registration: value } });
    await set(false);
    try {
      const answer = await register();
      expect([answer.status, answer.json().error]).to.deep.equal([403, 'access_denied']);
      const metadata = (await createAgent(server).get('/.well-known/openid-configuration')).json();
      expect(metadata).not.to.have.property('registration_endpoint');
    } finally {
      await set(true);
    }
  });

  it('needs a token of an administrator where the tenant says so', async () => {
    const set = (requires_token: boolean) =>
      managed(server, 'PATCH', '/tenants/settings', {
        dynamic_client_registration: { requires_token, unused_days: 10 },
      });
    expect((await set(true)).status).to.equal(200);
    try {
      const ask = async (bearer?: string) =>
        (await register({}, bearer === undefined ? {} : { authorization: `Bearer ${bearer}` })).status;
      expect(await ask()).to.equal(401);
      expect(await ask('x')).to.equal(401);
      expect(await ask(await managementToken(server, 'read:clients'))).to.equal(401);
      expect(await ask(await managementToken(server, 'create:clients'))).to.equal(201);
    } finally {
      await set(false);
    }
  });

  describe('its registration', () => {
    it('is read and removed with its token alone, and then its tokens end', async () => {
      const client = await registered();
      const other = await registered();
      for (const bearer of [other.registration_access_token, '', 'x', client.client_id]) {
        for (const method of ['GET', 'PUT', 'DELETE']) {
          const refused = await own(
            client,
            method,
            method === 'PUT' ? { ...AGENT, client_id: client.client_id } : undefined,
            bearer,
          );
          expect([refused.status, refused.json().error], `${method} ${bearer}`).to.deep.equal([
            401,
            'invalid_token',
          ]);
        }
      }
      expect((await own(client, 'GET')).json()).to.deep.include({
        client_id: client.client_id,
        client_name: 'Some agent',
      });
      const { code } = await login(client.client_id, { scope: 'openid tools:read offline_access' });
      const { refresh_token, access_token } = (await exchange(client.client_id, code)).json();
      const opaque = await login(client.client_id, { resource: '', scope: 'openid' });
      const tokens = [access_token, (await exchange(client.client_id, opaque.code)).json().access_token];
      const profiles = () =>
        Promise.all(
          tokens.map(async (one) => {
            const headers = { authorization: `Bearer ${one}` };
            return (await createAgent(server).request('/userinfo', { headers })).status;
          }),
        );
      expect(await profiles()).to.deep.equal([200, 200]);
      expect((await own(client, 'DELETE')).status).to.equal(204);
      expect(await profiles()).to.deep.equal([401, 401]);
      expect((await own(client, 'GET')).status).to.equal(401);
      const refreshed = await token(createAgent(server), {
        grant_type: 'refresh_token',
        client_id: client.client_id,
        refresh_token,
      });
      expect(refreshed.status).to.be.within(400, 403);
      expect((await authorize(createAgent(server), request(client.client_id))).status).to.equal(400);
    });

    it('can be replaced, but not its name and hosts once a user has allowed them', async () => {
      const client = await registered();
      const { client_id } = client;
      const put = (body: object) => own(client, 'PUT', { ...AGENT, client_id, ...body });
      const moved = await put({
        redirect_uris: ['https://elsewhere.example.test/cb'],
        client_name: 'Renamed',
      });
      expect(moved.status, moved.text).to.equal(200);
      expect(moved.json()).to.deep.include({
        client_name: 'Renamed',
        redirect_uris: ['https://elsewhere.example.test/cb'],
      });
      expect((await put({})).status).to.equal(200);
      await login(client_id);
      for (const body of [
        { redirect_uris: ['https://thief.example.test/callback'] },
        { redirect_uris: [CALLBACK, 'http://localhost/callback'] },
        { client_name: 'Your bank' },
        { client_id: 'web' },
        { client_secret: 'chosen-by-myself' },
        { token_endpoint_auth_method: 'client_secret_post' },
        { redirect_uris: ['javascript:alert(1)'] },
      ])
        expect((await put(body)).status, JSON.stringify(body)).to.equal(400);
      expect((await put({ redirect_uris: [`${CALLBACK}/2`] })).status).to.equal(200);
      expect(
        (await authorize(createAgent(server), request(client_id))).status,
        'the former callback',
      ).to.equal(400);
    });

    it('sends what a user has allowed to no host that the user was not shown', async () => {
      const thief = 'https://thief.example.test/callback';
      const several = await registered({ redirect_uris: [CALLBACK, thief] });
      const swapped = await registered();
      for (const { client, change } of [
        { client: several, change: undefined },
        { client: swapped, change: { redirect_uris: [CALLBACK, thief] } },
      ]) {
        const { client_id } = client;
        const agent = createAgent(server);
        const page = await logIn(agent, server, request(client_id));
        expect(page.text).to.contain('agent.example.test').and.not.to.contain('thief');
        // While the user reads the page.
        if (change !== undefined)
          expect((await own(client, 'PUT', { ...AGENT, client_id, ...change })).status).to.equal(200);
        expect(await decide(agent, page)).to.have.property('code');
        const silent = (redirect_uri: string) =>
          authorize(agent, request(client_id, { redirect_uri, prompt: 'none' }));
        expect(responseOf(await silent(CALLBACK))).to.have.property('code');
        const refused = await silent(thief);
        expect(refused.text + (refused.headers.location ?? '')).to.contain('consent_required');
        const asked = await authorize(agent, request(client_id, { redirect_uri: thief }));
        expect((await follow(agent, asked, server.url)).text).to.contain('thief.example.test');
      }
    });

    it('asks its user each time where any program of the device may wait for the answer', async () => {
      for (const redirect_uri of ['http://app.localhost/callback', 'https://localhost:8443/callback']) {
        const { client_id } = await registered({ redirect_uris: [redirect_uri] });
        const agent = createAgent(server);
        const page = await logIn(agent, server, request(client_id, { redirect_uri }));
        expect(page.text, redirect_uri).to.contain('a program on this device');
        expect(await decide(agent, page)).to.have.property('code');
        const again = await authorize(agent, request(client_id, { redirect_uri }));
        expect((await follow(agent, again, server.url)).text, redirect_uri).to.contain('name="decision"');
      }
    });

    it('has its token and secret nowhere in the store as they are', async () => {
      const client = await registered({ token_endpoint_auth_method: 'client_secret_post' });
      const stored = JSON.stringify(await server.store.collection('registrations').get(client.client_id));
      expect(stored).not.to.contain(client.registration_access_token);
    });
  });

  it('is forgotten after a day if nobody has allowed it anything, and else when it is not used any more', async () => {
    const own = await startManaged(ownTenant);
    try {
      const make = async () =>
        (await createAgent(own).request('/oidc/register', { json: AGENT })).json().client_id as string;
      const [unused, used] = [await make(), await make()];
      const agent = createAgent(own);
      const page = await logIn(agent, own, request(used));
      const { action, fields } = readForm(page, '_csrf');
      const answer = await follow(
        agent,
        await agent.request(action, { form: { ...fields, decision: 'accept' } }),
        own.url,
      );
      const exchanged = await token(createAgent(own), {
        grant_type: 'authorization_code',
        client_id: used,
        code: responseOf(answer).code,
        code_verifier: verifier,
        redirect_uri: CALLBACK,
      });
      let { refresh_token } = exchanged.json();
      const known = async (id: string) => (await authorize(createAgent(own), request(id))).status === 302;
      own.tick(DAY + 1000);
      expect([await known(unused), await known(used)]).to.deep.equal([false, true]);
      const refresh = async () => {
        const refreshed = await token(createAgent(own), {
          grant_type: 'refresh_token',
          client_id: used,
          refresh_token,
        });
        refresh_token = refreshed.json().refresh_token;
        return refreshed.status;
      };
      for (let i = 0; i < 2; i++) {
        own.tick(9 * DAY);
        expect(await refresh(), 'each use keeps it').to.equal(200);
      }
      own.tick(11 * DAY + 1000);
      expect(await known(used)).to.equal(false);
    } finally {
      await own.stop();
    }
  });

  it('reads what it may know of the user as a JWT, if it has registered that', async () => {
    const client = await registered({ userinfo_signed_response_alg: 'RS256' });
    expect(client).to.include({ userinfo_signed_response_alg: 'RS256' });
    const { code } = await login(client.client_id, { scope: 'openid email' });
    const { access_token } = (await exchange(client.client_id, code)).json();
    const answer = await createAgent(server).get('/userinfo', { authorization: `Bearer ${access_token}` });
    expect(answer.headers['content-type']).to.match(/^application\/jwt/);
    const keys = createLocalJWKSet({
      keys: (await createAgent(server).get('/.well-known/jwks.json')).json().keys,
    });
    const { payload: claims, protectedHeader } = await jwtVerify(answer.text, keys, {
      issuer: server.issuer,
      audience: client.client_id,
    });
    expect(protectedHeader).to.include({ alg: 'RS256' });
    expect(Object.keys(claims)).to.have.members(['sub', 'email', 'email_verified', 'iss', 'aud']);
    // It is no ID token.
    const logout = await createAgent(server).get(`/oidc/logout?id_token_hint=${answer.text}`);
    expect(logout.status).to.equal(400);
    const refused = await register({ userinfo_signed_response_alg: 'none' });
    expect([refused.status, refused.json().error]).to.deep.equal([400, 'invalid_client_metadata']);
  });

  it('is limited by address, and a flood takes the place of its own alone', async () => {
    const { registration: _, ...rateLimits } = ownTenant.attackProtection.rateLimits;
    const limited = await startManaged({ ...ownTenant, attackProtection: { rateLimits } });
    try {
      const ask = async () => (await createAgent(limited).request('/oidc/register', { json: AGENT })).status;
      const answers = await Promise.all(Array.from({ length: 40 }, ask));
      expect(answers).to.include(201).and.to.include(429);
    } finally {
      await limited.stop();
    }
    const small = await startManaged(ownTenant, undefined, {}, { boundsScale: 20 / 5_000 });
    try {
      for (let i = 0; i < 60; i++)
        expect((await createAgent(small).request('/oidc/register', { json: AGENT })).status).to.equal(201);
      expect(await small.store.collection('registrations').count()).to.be.at.most(25);
    } finally {
      await small.stop();
    }
  });

  it('is kept by the first user who allows it something, who can do that for some alone', async () => {
    const { newApplications: _, ...rateLimits } = ownTenant.attackProtection.rateLimits as Record<
      string,
      object
    >;
    const limited = await startManaged({
      ...ownTenant,
      attackProtection: {
        rateLimits: { ...rateLimits, newApplications: { capacity: 2, perMinute: 1 / 60 } },
      },
    });
    try {
      const make = async () =>
        (await createAgent(limited).request('/oidc/register', { json: AGENT })).json().client_id as string;
      const isUsed = async (id: string) =>
        (await limited.store.collection('registrations').get(id))?.last_used_at !== undefined;
      const allow = async (id: string, scope = 'tools:read') => {
        const agent = createAgent(limited);
        const { action, fields } = readForm(await logIn(agent, limited, request(id, { scope })), '_csrf');
        const answer = await agent.request(action, { form: { ...fields, decision: 'accept' } });
        if (answer.status === 429) return 'refused';
        return 'code' in responseOf(await follow(agent, answer, limited.url)) && 'allowed';
      };
      const [first, second, third] = [await make(), await make(), await make()];
      expect([await allow(first), await allow(second), await allow(third)]).to.deep.equal([
        'allowed',
        'allowed',
        'refused',
      ]);
      expect([await isUsed(second), await isUsed(third)]).to.deep.equal([true, false]);
      const consents = await limited.store.collection('consents').list({ limit: 50 });
      expect(consents.records.map(({ client_id }) => client_id)).not.to.include(third);
      expect(await allow(first, 'tools:write'), 'one that is used already').to.equal('allowed');
      limited.tick(3_600_000);
      expect(await allow(third)).to.equal('allowed');
    } finally {
      await limited.stop();
    }
  });

  describe('to pages of other sites', () => {
    const ORIGIN = 'https://agent.example.test';
    const send = (path: string, origin: string, form: Record<string, string>) =>
      createAgent(server).request(path, { form, headers: { origin, 'sec-fetch-site': 'cross-site' } });

    it('gives tokens where the page is its own, without credentials of the browser', async () => {
      const client = await registered();
      const fields = {
        grant_type: 'authorization_code',
        client_id: client.client_id,
        code_verifier: verifier,
        redirect_uri: CALLBACK,
      };
      const { code = '' } = await login(client.client_id);
      const foreign = await send('/oauth/token', 'https://thief.example.test', { ...fields, code });
      expect([foreign.status, foreign.json().error]).to.deep.equal([403, 'access_denied']);
      const answer = await send('/oauth/token', ORIGIN, { ...fields, code });
      expect(answer.status, answer.text).to.equal(200);
      expect(answer.headers['access-control-allow-origin']).to.equal('*');
      expect(answer.headers['access-control-allow-credentials']).to.equal(undefined);
    });

    it('opens no other endpoint, and no application of the tenant', async () => {
      await registered();
      const password = {
        grant_type: 'password',
        client_id: 'web',
        username: 'ada@example.test',
        password: 'x',
      };
      expect((await send('/oauth/token', ORIGIN, password)).status).to.equal(403);
      const signup = {
        client_id: 'web',
        connection: 'users',
        email: 'x@example.test',
        password: 'Correct-Horse-1',
      };
      expect((await send('/dbconnections/signup', ORIGIN, signup)).status).to.equal(403);
    });
  });

  describe('at the Management API', () => {
    it('is listed with third parties and by its kind, changed and removed, and in no other list', async () => {
      const { client_id } = await registered({ client_name: 'Listed' });
      const list = async (query: string) =>
        (await managed(server, 'GET', `/clients?per_page=100&${query}`)).body;
      const ids = async (query: string) =>
        (await list(query)).map((one: { client_id: string }) => one.client_id);
      expect(await ids('external_metadata_type=dcr'))
        .to.include(client_id)
        .and.not.to.include('web');
      expect(await ids('is_first_party=false')).to.include(client_id);
      expect(await ids('')).not.to.include(client_id);
      const found: string[] = [];
      for (let from: string | undefined = ''; from !== undefined; ) {
        const cursor = from === '' ? '' : `&from=${from}`;
        const { body } = await managed(
          server,
          'GET',
          `/clients?external_metadata_type=dcr&fields=client_id&take=7${cursor}`,
        );
        found.push(...body.clients.map((one: { client_id: string }) => one.client_id));
        from = body.next;
      }
      const { body: counted } = await managed(
        server,
        'GET',
        '/clients?external_metadata_type=dcr&include_totals=true&per_page=1',
      );
      expect([found[0], found.length, new Set(found).size]).to.deep.equal([
        client_id,
        counted.total,
        counted.total,
      ]);
      const change = (body: object) => managed(server, 'PATCH', `/clients/${client_id}`, body);
      expect((await change({ name: 'Known to us' })).body).to.include({ name: 'Known to us' });
      expect((await change({ grant_types: ['password'] })).status).to.equal(400);
      expect((await change({ is_first_party: true })).status).to.equal(400);
      expect((await authorize(createAgent(server), request(client_id))).status).to.equal(302);
      expect((await managed(server, 'DELETE', `/clients/${client_id}`)).status).to.equal(204);
      expect((await managed(server, 'GET', `/clients/${client_id}`)).status).to.equal(404);
      expect((await authorize(createAgent(server), request(client_id))).status).to.equal(400);
    });

    it('is in no list that selects among more than are read for it, which is refused, and else in each', async () => {
      const { client_id } = await registered({ client_name: 'Selected' });
      const list = (query: string) =>
        managed(server, 'GET', `/clients?external_metadata_type=dcr&per_page=100&${query}`);
      const { app_type } = (await managed(server, 'GET', `/clients/${client_id}`)).body;
      const selecting = [`app_type=${app_type}`, 'q=client_grant.allow_any_organization:true'];
      expect(JSON.stringify((await list(`app_type=${app_type}`)).body)).to.contain(client_id);
      const registrations = server.store.collection('registrations');
      const one = await registrations.get(client_id);
      const ids = Array.from({ length: 1_001 }, (_, n) => `tpc_${String(n).padStart(32, 'm')}`);
      for (const id of ids)
        await registrations.insert({ ...one, id, client: { ...one?.client, client_id: id, id } } as never);
      try {
        for (const query of selecting) {
          const { status, body } = await list(query);
          expect([status, body.errorCode], query).to.deep.equal([400, 'invalid_query_string']);
        }
        expect((await list('')).status).to.equal(200);
      } finally {
        for (const id of ids) await registrations.delete(id);
      }
      for (const query of selecting) expect((await list(query)).status, query).to.equal(200);
    });

    it('is in the log', async () => {
      const { client_id } = await registered();
      await register({ redirect_uris: ['x'] });
      const { body } = await managed(server, 'GET', '/logs?per_page=20&q=type:sdcr');
      expect(body.some((one: { client_id?: string }) => one.client_id === client_id)).to.equal(true);
    });
  });

  it('has the rules of OpenID Connect where the tenant is permissive', async () => {
    const set = (dynamic_client_registration_security_mode: string | null) =>
      managed(server, 'PATCH', '/tenants/settings', { dynamic_client_registration_security_mode });
    expect((await set('permissive')).status).to.equal(200);
    try {
      const client = await registered({
        grant_types: ['authorization_code', 'implicit'],
        response_types: ['code', 'code id_token'],
        token_endpoint_auth_method: 'client_secret_basic',
      });
      expect(client).to.deep.include({ response_types: ['code', 'code id_token'] });
      const {
        code_challenge: _,
        code_challenge_method: __,
        resource: ___,
        ...plain
      } = request(client.client_id, { scope: 'openid' });
      const agent = createAgent(server);
      const { code } = await decide(agent, await logIn(agent, server, plain));
      const tokens = await token(createAgent(server), {
        grant_type: 'authorization_code',
        client_id: client.client_id,
        client_secret: client.client_secret,
        code,
        redirect_uri: CALLBACK,
      });
      expect(tokens.json()).to.have.property('id_token');
    } finally {
      await set(null);
    }
  });
});
