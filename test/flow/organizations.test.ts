// Logging in as a member of an organization: the claims come from a membership, never from a parameter of the
// request.
import { expect } from 'chai';
import { membershipId } from '../../src/records/users/organizations.ts';
import { hashSecret } from '../../src/runtime/secrets.ts';
import { type Agent, type Answer, createAgent, readForm } from '../support/agent.ts';
import { openPage } from '../support/browser-logins.ts';
import {
  authorize,
  tenant as base,
  follow,
  logIn,
  payload,
  responseOf,
  token,
  USER,
  WEB_CALLBACK,
} from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { until } from '../support/wait-until.ts';

const NOT_PART = 'user is not part of the org_acme organization';
const secret = { client_secret: 'org-secret' };
const client = (client_id: string, over: object) => ({
  client_id,
  name: client_id,
  app_type: 'regular_web',
  ...secret,
  callbacks: [WEB_CALLBACK],
  grant_types: ['authorization_code', 'implicit', 'refresh_token', 'password'],
  ...over,
});
const APPS = ['allowing', 'requiring', 'naming', 'choosing', 'denying', 'realms', 'by-email', 'by-both'];
const tenant = {
  ...base,
  clients: [
    ...base.clients,
    client('allowing', { organization_usage: 'allow' }),
    client('requiring', { organization_usage: 'require' }),
    client('denying', { organization_usage: 'deny' }),
    client('realms', {
      organization_usage: 'allow',
      grant_types: ['http://auth0.com/oauth/grant-type/password-realm'],
    }),
    client('naming', { organization_usage: 'require', organization_require_behavior: 'pre_login_prompt' }),
    ...Object.entries({ 'by-email': ['email'], 'by-both': ['email', 'organization_name'] }).map(
      ([client_id, organization_discovery_methods]) =>
        client(client_id, {
          organization_usage: 'require',
          organization_require_behavior: 'pre_login_prompt',
          organization_discovery_methods,
        }),
    ),
    client('choosing', { organization_usage: 'require', organization_require_behavior: 'post_login_prompt' }),
  ],
  databases: [
    { name: 'users', enabled_clients: ['spa', 'web', ...APPS], options: { passwordPolicy: 'low' } },
    { name: 'staff', enabled_clients: ['web', ...APPS], options: { passwordPolicy: 'low' } },
  ],
  organizations: [
    {
      id: 'org_acme',
      name: 'acme',
      display_name: 'Acme',
      connections: [{ name: 'users' }],
      discovery_domains: [
        { domain: 'example.test', status: 'verified' },
        { domain: 'pending.test', status: 'pending' },
        { domain: 'unused.test', status: 'verified', use_for_organization_discovery: false },
      ],
    },
    {
      id: 'org_open',
      name: 'open',
      display_name: 'Open house',
      branding: { logo_url: 'https://open.example.test/logo.png', colors: { primary: '#aa2200' } },
      connections: [{ name: 'users', assign_membership_on_login: true, is_signup_enabled: true }],
    },
    {
      id: 'org_staff',
      name: 'staff-only',
      connections: [{ name: 'staff', assign_membership_on_login: true }],
    },
  ],
  users: [
    { ...USER, connection: 'users', email_verified: true },
    { email: 'grace@example.test', password: USER.password, connection: 'users' },
    { email: 'staff@example.test', password: USER.password, connection: 'staff' },
  ],
};
const GRACE = { email: 'grace@example.test', password: USER.password };
const STAFF = { email: 'staff@example.test', password: USER.password };

describe('logging in to an organization', () => {
  let server: TestServer;
  let agent: Agent;
  let ada: string;
  before(async () => {
    server = await startServer({ tenant });
    ada = (await server.users.findInConnection({ name: 'users' }, USER.email))?.id ?? '';
  });
  after(() => server.stop());
  beforeEach(async () => {
    agent = createAgent(server);
    for (const id of ['org_acme', 'org_open', 'org_staff', 'org_gone'])
      await server.store.collection('memberships').deleteBy('organization', id);
  });

  const join = (organization_id: string, user_id = ada, roles: string[] = []) =>
    server.store
      .collection('memberships')
      .put({ id: membershipId(organization_id, user_id), organization_id, user_id, roles });
  const leave = (organization: string, user = ada) =>
    server.store.collection('memberships').delete(membershipId(organization, user));
  const request = (over: Record<string, string> = {}) => ({
    client_id: 'allowing',
    response_type: 'code',
    redirect_uri: WEB_CALLBACK,
    scope: 'openid profile email offline_access',
    state: 'the-state',
    nonce: 'the-nonce',
    ...over,
  });
  const tokens = async (answer: Answer, client_id = 'allowing') =>
    token(agent, {
      grant_type: 'authorization_code',
      client_id,
      ...secret,
      code: responseOf(answer).code,
      redirect_uri: WEB_CALLBACK,
    });
  const refresh = (refresh_token: string, client_id = 'allowing') =>
    token(agent, { grant_type: 'refresh_token', client_id, ...secret, refresh_token });
  const claimsOf = async (answer: Answer, client_id?: string) =>
    payload((await tokens(answer, client_id)).json().id_token);

  it('puts org_id into both tokens of a member, also after a refresh', async () => {
    await join('org_acme');
    const params = request({ organization: 'org_acme', audience: 'https://api.example.test/' });
    const first = (await tokens(await logIn(agent, server, params))).json();
    const second = (await refresh(first.refresh_token)).json();
    for (const one of [first, second]) {
      expect(payload(one.id_token)).to.include({ org_id: 'org_acme', sub: ada });
      expect(payload(one.id_token)).not.to.have.property('org_name');
      expect(payload(one.access_token)).to.include({ org_id: 'org_acme' });
    }
  });

  it('puts org_id into tokens from /authorize, and from a silent login', async () => {
    await join('org_acme');
    const params = request({
      organization: 'org_acme',
      response_type: 'id_token token',
      scope: 'openid',
      audience: 'https://api.example.test/',
    });
    const direct = responseOf(await logIn(agent, server, params));
    expect(payload(direct.id_token ?? '')).to.include({ org_id: 'org_acme' });
    expect(payload(direct.access_token ?? '')).to.include({ org_id: 'org_acme' });
    const silent = responseOf(await authorize(agent, { ...params, prompt: 'none' }));
    expect(payload(silent.id_token ?? '')).to.include({ org_id: 'org_acme' });
    const framed = await authorize(agent, { ...params, prompt: 'none', response_mode: 'web_message' });
    expect(framed.text).to.contain('id_token');
  });

  it('adds org_name, and accepts the name in a request, when the tenant allows it', async () => {
    await join('org_acme');
    expect(responseOf(await authorize(agent, request({ organization: 'acme' }))).error).to.equal(
      'invalid_request',
    );
    const settings = server.store.collection('tenant');
    const allow = (allowed: boolean) =>
      settings.update(
        'tenant',
        (all) =>
          ({
            ...(all as never as Record<string, object>),
            id: 'tenant',
            tenant: { ...all.tenant, allow_organization_name_in_authentication_api: allowed },
          }) as never,
      );
    await allow(true);
    const claims = await claimsOf(await logIn(agent, server, request({ organization: 'acme' })));
    const inCapitals = await claimsOf(await authorize(agent, request({ organization: 'ACME' })));
    await allow(false);
    expect(claims).to.include({ org_id: 'org_acme', org_name: 'acme' });
    expect(inCapitals).to.include({ org_id: 'org_acme', org_name: 'acme' });
    const byId = await authorize(agent, request({ organization: 'ORG_ACME' }));
    expect(responseOf(byId)).to.include({ error: 'invalid_request' });
  });

  it('refuses a user who is no member, with and without a session', async () => {
    const refused = responseOf(await logIn(agent, server, request({ organization: 'org_acme' })));
    expect(refused).to.include({ error: 'access_denied', error_description: NOT_PART });
    await logIn(agent, server, request());
    const silent = await authorize(agent, request({ organization: 'org_acme', prompt: 'none' }));
    expect(responseOf(silent)).to.include({ error: 'login_required' });
    const page = await openPage(agent, server, request({ organization: 'org_acme' }));
    expect(page.text).to.contain('name="password"');
  });

  it('refuses a login by a connection that the organization has not enabled', async () => {
    const staff = (await server.users.findInConnection({ name: 'staff' }, STAFF.email))?.id ?? '';
    await join('org_acme', staff);
    const params = request({ organization: 'org_acme', connection: 'staff' });
    const page = await openPage(agent, server, params);
    expect(responseOf(page)).to.include({ error: 'invalid_request' });
    await logIn(agent, server, request({ connection: 'staff' }), STAFF);
    const silent = await authorize(agent, request({ organization: 'org_acme', prompt: 'none' }));
    expect(responseOf(silent)).to.include({ error: 'login_required' });
  });

  it('makes a user a member at a login with a connection that does so, and nobody else', async () => {
    const claims = await claimsOf(await logIn(agent, server, request({ organization: 'org_open' })));
    expect(claims).to.include({ org_id: 'org_open' });
    const [membership, ...more] = await server.store
      .collection('memberships')
      .findBy('organization', 'org_open');
    expect(membership).to.deep.include({ user_id: ada, roles: [] });
    expect(more).to.deep.equal([]);
    await join('org_acme');
    expect(responseOf(await authorize(agent, request({ organization: 'org_acme' })))).to.have.property(
      'code',
    );
    expect(await server.store.collection('memberships').findBy('organization', 'org_acme')).to.have.length(1);
  });

  it('refuses code and refresh token of a former member', async () => {
    await join('org_acme');
    const answer = await logIn(agent, server, request({ organization: 'org_acme' }));
    const { refresh_token } = (await tokens(answer)).json();
    const again = await authorize(agent, request({ organization: 'org_acme' }));
    await leave('org_acme');
    for (const refused of [await tokens(again), await refresh(refresh_token)]) {
      expect(refused.status).to.equal(403);
      expect(refused.json()).to.deep.equal({ error: 'access_denied', error_description: NOT_PART });
    }
    const silent = await authorize(agent, request({ organization: 'org_acme', prompt: 'none' }));
    expect(responseOf(silent)).to.include({ error: 'login_required' });
    await join('org_acme');
    expect(payload((await refresh(refresh_token)).json().id_token)).to.include({ org_id: 'org_acme' });
  });

  it('refuses the refresh token of a login by a connection that the organization no longer has', async () => {
    await join('org_acme');
    const { refresh_token } = (
      await tokens(await logIn(agent, server, request({ organization: 'org_acme' })))
    ).json();
    const organizations = server.store.collection('organizations');
    const before = await organizations.get('org_acme');
    await organizations.put({ ...structuredClone(before), enabled_connections: [] } as never);
    const refused = await refresh(refresh_token);
    await organizations.put(structuredClone(before) as never);
    expect(refused.status).to.equal(403);
    expect((await refresh(refresh_token)).status).to.equal(200);
  });

  it('refuses code and refresh token for a deleted organization', async () => {
    const organizations = server.store.collection('organizations');
    const open = await organizations.get('org_open');
    await organizations.put({ ...open, id: 'org_gone', name: 'gone' } as never);
    const { refresh_token } = (
      await tokens(await logIn(agent, server, request({ organization: 'org_gone' })))
    ).json();
    const waiting = await openPage(createAgent(server), server, request({ organization: 'org_gone' }));
    expect(waiting.text).to.contain('name="password"');
    await organizations.delete('org_gone');
    expect((await refresh(refresh_token)).status).to.equal(403);
    const asked = await authorize(agent, request({ organization: 'org_gone' }));
    expect(responseOf(asked)).to.include({ error: 'invalid_request' });
  });

  it('answers a silent request only for the organization of the session', async () => {
    await join('org_acme');
    await join('org_open');
    await logIn(agent, server, request({ organization: 'org_acme' }));
    const other = await authorize(agent, request({ organization: 'org_open', prompt: 'none' }));
    expect(responseOf(other)).to.include({ error: 'login_required' });
    // With the user present the session suffices: the user is a member of both.
    expect(await claimsOf(await authorize(agent, request({ organization: 'org_open' })))).to.include({
      org_id: 'org_open',
    });
  });

  it('adds no claim when no organization was requested', async () => {
    await join('org_acme');
    await logIn(agent, server, request({ organization: 'org_acme' }));
    const claims = JSON.stringify({ id_token: { org_id: { essential: true, value: 'org_acme' } } });
    for (const over of [{}, { claims }, { org_id: 'org_acme' }]) {
      const answer = await authorize(agent, request(over as Record<string, string>));
      expect(await claimsOf(answer)).not.to.have.any.keys('org_id', 'org_name');
    }
  });

  it('refuses `organization` for an application that denies it', async () => {
    await join('org_acme');
    const params = { ...request({ organization: 'org_acme' }), client_id: 'web' };
    expect(responseOf(await authorize(agent, params))).to.include({
      error: 'invalid_request',
      error_description: 'parameter organization is not allowed for this client',
    });
  });

  it('applies the roles of a member only within the organization', async () => {
    const roles = server.store.collection('roles');
    await roles.put({
      id: 'rol_guard',
      name: 'guard',
      permissions: [{ resource_server_identifier: 'guarded-api', permission_name: 'admin' }],
    });
    await join('org_acme', ada, ['rol_guard']);
    await join('org_open');
    const permissions = async (organization: string | undefined) => {
      const params = request({ audience: 'guarded-api', scope: 'openid admin' });
      const answer = await logIn(createAgent(server), server, {
        ...params,
        ...(organization === undefined ? {} : { organization }),
      });
      const { access_token, scope } = (await tokens(answer)).json();
      return [payload(access_token).permissions, scope];
    };
    expect(await permissions('org_acme')).to.deep.equal([['admin'], 'openid admin']);
    expect(await permissions('org_open')).to.deep.equal([[], 'openid']);
    expect(await permissions(undefined)).to.deep.equal([[], 'openid']);
  });

  it('shows the branding of the organization', async () => {
    const page = await openPage(agent, server, request({ organization: 'org_open' }));
    expect(page.text).to.contain('https://open.example.test/logo.png').and.contain('Open house');
    const own = await openPage(agent, server, request());
    expect(own.text).not.to.contain('Open house');
    expect(/--[\w-]+:#[0-9a-f]{6}/.exec(page.text)?.[0]).not.to.equal(undefined);
  });

  it('allows signing up only for an open organization', async () => {
    await join('org_acme');
    const closed = await openPage(
      agent,
      server,
      request({ organization: 'org_acme', screen_hint: 'signup' }),
    );
    expect(closed.text).not.to.contain('/signup');
    const open = await openPage(agent, server, request({ organization: 'org_open', screen_hint: 'signup' }));
    const { action, fields } = readForm(open, 'email');
    const form = { ...fields, email: 'new@example.test', password: USER.password };
    const done = await follow(agent, await agent.request(action, { form }), server.url);
    expect(await claimsOf(done)).to.include({ org_id: 'org_open' });
  });

  it('is in a client_credentials token when the client grant allows it', async () => {
    const grants = server.store.collection('clientGrants');
    const organizations = server.store.collection('organizations');
    const [grant] = await grants.findBy('client', 'm2m');
    const ask = (organization?: string) =>
      token(agent, {
        grant_type: 'client_credentials',
        client_id: 'm2m',
        client_secret: 'm2m-secret',
        audience: 'https://api.example.test/',
        organization,
      });
    const allow = (over: object) =>
      grants.update(grant?.id ?? '', (all) => ({ ...structuredClone(all), ...over }) as never);
    expect((await ask('org_acme')).json()).to.include({ error: 'access_denied' });
    await allow({ organization_usage: 'allow' });
    expect((await ask('org_acme')).json()).to.include({ error: 'access_denied' });
    await organizations.update(
      'org_acme',
      (all) => ({ ...structuredClone(all), client_grants: [grant?.id] }) as never,
    );
    expect(payload((await ask('org_acme')).json().access_token)).to.include({
      org_id: 'org_acme',
      sub: 'm2m@clients',
    });
    expect((await ask('org_open')).status).to.equal(403);
    expect((await ask('org_none')).json()).to.include({ error: 'invalid_request' });
    expect((await ask('acme')).json()).to.include({ error: 'invalid_request' });
    expect(payload((await ask()).json().access_token)).not.to.have.property('org_id');
    const usually = (default_organization?: object) =>
      server.store
        .collection('clients')
        .update('m2m', (all) => ({ ...structuredClone(all), default_organization }) as never);
    await usually({ organization_id: 'org_acme', flows: ['client_credentials'] });
    expect(payload((await ask()).json().access_token)).to.include({ org_id: 'org_acme' });
    expect((await ask('org_open')).status, 'the one that is named').to.equal(403);
    await usually({ organization_id: 'org_open', flows: ['client_credentials'] });
    expect((await ask()).json(), 'one that the grant is not for').to.include({ error: 'access_denied' });
    await allow({ organization_usage: 'deny' });
    expect(payload((await ask()).json().access_token)).not.to.have.property('org_id');
    await usually();
    await allow({ organization_usage: 'require', allow_any_organization: true });
    expect(payload((await ask('org_open')).json().access_token)).to.include({ org_id: 'org_open' });
    expect((await ask()).json()).to.include({ error: 'invalid_request' });
  });

  describe('at the token endpoint, without a page', () => {
    const ask = (over: Record<string, string | undefined> = {}) =>
      token(agent, {
        grant_type: 'password',
        client_id: 'allowing',
        ...secret,
        username: USER.email,
        password: USER.password,
        scope: 'openid offline_access',
        organization: 'org_acme',
        ...over,
      });
    const userinfo = async (access_token: string) =>
      (await agent.get('/userinfo', { authorization: `Bearer ${access_token}` })).json();

    it('puts org_id into the tokens of a member, after a refresh, and at /userinfo', async () => {
      await join('org_acme');
      for (const client_id of ['allowing', 'requiring']) {
        const audience = 'https://api.example.test/';
        for (const over of [{ client_id }, { client_id, audience }]) {
          const first = (await ask(over)).json();
          expect(payload(first.id_token)).to.include({ org_id: 'org_acme', sub: ada });
          const second = (await refresh(first.refresh_token, client_id)).json();
          expect(payload(second.id_token)).to.include({ org_id: 'org_acme' });
          for (const { access_token } of [first, second])
            expect(await userinfo(access_token)).to.include({ org_id: 'org_acme', sub: ada });
          if ('audience' in over) expect(payload(second.access_token)).to.include({ org_id: 'org_acme' });
        }
      }
      const without = (await ask({ organization: undefined })).json();
      expect(payload(without.id_token)).not.to.have.property('org_id');
      expect(await userinfo(without.access_token)).not.to.have.property('org_id');
    });

    it('refuses a user who is no member, logged in with another connection, or is no longer a member', async () => {
      const outside = await ask();
      expect(outside.status).to.equal(403);
      expect(outside.json()).to.include({ error: 'access_denied', error_description: NOT_PART });
      const staff = (await server.users.findInConnection({ name: 'staff' }, STAFF.email))?.id ?? '';
      await join('org_acme', staff);
      const realm = 'http://auth0.com/oauth/grant-type/password-realm';
      const byStaff = { grant_type: realm, realm: 'staff', username: STAFF.email };
      expect((await ask({ ...byStaff, client_id: 'realms' })).json()).to.include({ error: 'access_denied' });
      await join('org_acme');
      const { refresh_token, access_token } = (await ask()).json();
      await leave('org_acme');
      expect((await refresh(refresh_token)).json()).to.include({ error: 'access_denied' });
      expect(await userinfo(access_token)).not.to.have.property('org_id');
    });

    it('makes a user a member where the connection does so', async () => {
      expect(payload((await ask({ organization: 'org_open' })).json().id_token)).to.include({
        org_id: 'org_open',
      });
      expect(await server.store.collection('memberships').get(membershipId('org_open', ada))).not.to.equal(
        undefined,
      );
    });

    it('refuses an unknown or denied organization before the password is tried', async () => {
      for (const [over, error_description] of [
        [{ organization: 'org_none' }, 'the organization was not found'],
        [{ organization: 'acme' }, 'the organization was not found'],
        [{ client_id: 'denying' }, 'parameter organization is not allowed for this client'],
        [
          { client_id: 'requiring', organization: undefined },
          'parameter organization is required for this client',
        ],
        [{ client_id: 'requiring', organization: '' }, 'parameter organization is required for this client'],
      ] as const) {
        const refused = await ask({ ...over, password: 'wrong' });
        expect(refused.status).to.equal(400);
        expect(refused.json()).to.include({ error: 'invalid_request', error_description });
      }
    });

    it("applies a member's roles", async () => {
      await server.store.collection('roles').put({
        id: 'rol_guard',
        name: 'guard',
        permissions: [{ resource_server_identifier: 'guarded-api', permission_name: 'admin' }],
      });
      await join('org_acme', ada, ['rol_guard']);
      const { access_token } = (await ask({ audience: 'guarded-api', scope: 'openid admin' })).json();
      expect(payload(access_token).permissions).to.deep.equal(['admin']);
    });
  });

  describe('that the application requires', () => {
    it('is refused when missing', async () => {
      const answer = await authorize(agent, { ...request(), client_id: 'requiring' });
      expect(responseOf(answer)).to.include({
        error: 'invalid_request',
        error_description: 'parameter organization is required for this client',
      });
      const byPassword = await token(agent, {
        grant_type: 'password',
        client_id: 'requiring',
        ...secret,
        username: USER.email,
        password: USER.password,
      });
      expect(byPassword.status).to.equal(400);
    });

    it('is asked for by name before the login, when the application is set so', async () => {
      await join('org_acme');
      const params = { ...request(), client_id: 'naming' };
      const page = await openPage(agent, server, params);
      const { action, fields } = readForm(page, 'organization');
      const unknown = await agent.request(action, { form: { ...fields, organization: 'nobody' } });
      expect(unknown.status).to.equal(400);
      const next = await agent.request(action, { form: { ...fields, organization: ' Acme ' } });
      const login = await follow(agent, next, server.url);
      const form = readForm(login, 'password');
      const done = await agent.request(form.action, {
        form: { ...form.fields, username: USER.email, password: USER.password },
      });
      const ended = await follow(agent, done, server.url);
      expect(await claimsOf(ended, 'naming')).to.include({ org_id: 'org_acme' });
      // A user who is no member of the named organization is refused.
      const other = createAgent(server);
      const named = readForm(await openPage(other, server, params), 'organization');
      const asked = await follow(
        other,
        await other.request(named.action, { form: { ...named.fields, organization: 'acme' } }),
        server.url,
      );
      const last = readForm(asked, 'password');
      const refused = await follow(
        other,
        await other.request(last.action, {
          form: { ...last.fields, username: GRACE.email, password: GRACE.password },
        }),
        server.url,
      );
      expect(responseOf(refused)).to.include({ error: 'access_denied', error_description: NOT_PART });
    });

    /** Submits a text in the page that asks for an organization. @returns the answer. */
    const typed = async (client_id: string, text: string) => {
      const page = await openPage(agent, server, { ...request(), client_id });
      const { action, fields } = readForm(page, 'organization');
      return agent.request(action, { form: { ...fields, organization: text } });
    };

    for (const client_id of ['by-email', 'by-both']) {
      it(`is found by the domain of an e-mail address, when the application is set so: ${client_id}`, async () => {
        await join('org_acme');
        const login = await follow(
          agent,
          await typed(client_id, ` ${USER.email.toUpperCase()} `),
          server.url,
        );
        const form = readForm(login, 'password');
        expect(login.text).to.contain(`value="${USER.email.toUpperCase()}"`);
        const done = await agent.request(form.action, {
          form: { ...form.fields, username: USER.email, password: USER.password },
        });
        const ended = await follow(agent, done, server.url);
        expect(await claimsOf(ended, client_id)).to.include({ org_id: 'org_acme' });
      });

      it(`is not found by an unverified or unused domain: ${client_id}`, async () => {
        for (const domain of ['pending.test', 'unused.test', 'nowhere.test', 'sub.example.test']) {
          const answer = await typed(client_id, `ada@${domain}`);
          expect(answer.status, domain).to.equal(400);
          expect(answer.text).to.contain('No organization belongs to that address.');
        }
      });
    }

    it('is found only by name or domain as the application is set', async () => {
      expect((await typed('by-email', 'acme')).status).to.equal(400);
      expect((await typed('by-both', 'acme')).status).to.equal(302);
      expect((await typed('naming', USER.email)).status).to.equal(400);
    });

    it('does not reveal whether an account exists for an e-mail address', async () => {
      for (const name of ['nobody', 'ada'])
        expect((await typed('by-email', `${name}@example.test`)).status).to.equal(302);
    });

    it('is chosen by the user after the login, when the application is set so', async () => {
      const params = { ...request(), client_id: 'choosing' };
      const none = await logIn(createAgent(server), server, params);
      expect(responseOf(none)).to.include({ error: 'access_denied' });
      await join('org_acme');
      const alone = await logIn(agent, server, params);
      expect(await claimsOf(alone, 'choosing')).to.include({ org_id: 'org_acme' });
      await join('org_open');
      await join('org_staff');
      const other = createAgent(server);
      const page = await logIn(other, server, params);
      expect(page.text).to.contain('org_acme').and.contain('org_open').and.not.contain('org_staff');
      const form = readForm(page, '_csrf');
      const post = (organization: string) =>
        other.request(form.action, { form: { _csrf: form.fields._csrf ?? '', organization } });
      const forged = await post('org_staff');
      expect(forged.status).to.equal(200);
      const done = await follow(other, await post('org_open'), server.url);
      expect(await claimsOf(done, 'choosing')).to.include({ org_id: 'org_open' });
      const silent = await authorize(other, { ...params, prompt: 'none' });
      expect(await claimsOf(silent, 'choosing')).to.include({ org_id: 'org_open' });
      const stranger = await authorize(createAgent(server), { ...params, prompt: 'none' });
      expect(responseOf(stranger)).to.include({ error: 'login_required' });
    });
  });

  describe('by an invitation', () => {
    let invited = 0;
    const invite = async (email: string, over: object = {}) => {
      const ticket = `ticket-${++invited}`;
      await server.store.collection('invitations').insert({
        id: `uinv_${invited}`,
        organization_id: 'org_acme',
        ticketHash: hashSecret(ticket),
        inviter: { name: 'Grace' },
        invitee: { email },
        client_id: 'allowing',
        app_metadata: { plan: 'gold' },
        user_metadata: {},
        roles: ['rol_guard'],
        created_at: new Date().toISOString(),
        expires_at: new Date().toISOString(),
        ...over,
      });
      return request({ organization: 'org_acme', invitation: ticket });
    };
    const signUp = async (browser: Agent, params: Record<string, string>, email: string) => {
      const { action, fields } = readForm(await openPage(browser, server, params), 'email');
      const form = { ...fields, email, password: USER.password };
      return follow(browser, await browser.request(action, { form }), server.url);
    };

    it('stores no more metadata of a user than there may be, and makes the user a member all the same', async () => {
      const email = 'full@example.test';
      const params = await invite(email, { user_metadata: { long: 'x'.repeat(262_144) } });
      const claims = await claimsOf(await signUp(agent, params, email));
      expect(claims).to.include({ org_id: 'org_acme', email });
      expect((await server.users.get(claims.sub))?.user_metadata).to.deep.equal({});
      await until(async () => {
        const { records } = await server.store.collection('logs').list({ limit: 1000 });
        return records.some(({ type, user_id }) => type === 'metadata_refused' && user_id === claims.sub);
      });
    });

    it('accepts only the invited e-mail address for signing up, and gives the roles of the invitation', async () => {
      const email = 'invited@example.test';
      const params = await invite(email);
      const done = await signUp(agent, params, 'somebody-else@example.test');
      const claims = await claimsOf(done);
      expect(claims).to.include({ org_id: 'org_acme', email });
      expect(await server.users.findInConnection({ name: 'users' }, 'somebody-else@example.test')).to.equal(
        undefined,
      );
      const membership = await server.store
        .collection('memberships')
        .get(membershipId('org_acme', claims.sub));
      expect(membership?.roles).to.deep.equal(['rol_guard']);
      expect((await server.users.get(claims.sub))?.app_metadata).to.deep.equal({ plan: 'gold' });
      const reused = await authorize(createAgent(server), params);
      expect(responseOf(reused)).to.include({
        error: 'invalid_request',
        error_description: 'invitation not found or already used',
      });
    });

    it('logs in the invited account, also with a session, and refuses every other account', async () => {
      const params = await invite(GRACE.email);
      await logIn(agent, server, request());
      const other = await openPage(agent, server, params);
      expect(other.text).to.contain(GRACE.email);
      const attempt = async (user: typeof GRACE) => {
        const page = await openPage(agent, server, params);
        const login = await agent.get(`${readForm(page, 'email').action.replace('signup', 'login')}`);
        const { action, fields } = readForm(login, 'password');
        const form = { ...fields, username: user.email, password: user.password };
        return follow(agent, await agent.request(action, { form }), server.url);
      };
      expect(responseOf(await attempt(USER))).to.include({ error: 'access_denied' });
      expect(await server.store.collection('memberships').get(membershipId('org_acme', ada))).to.equal(
        undefined,
      );
      expect(await claimsOf(await attempt(GRACE))).to.include({ org_id: 'org_acme', email: GRACE.email });
    });

    it('succeeds once, also when it is used simultaneously', async () => {
      const params = await invite('racing@example.test');
      await signUp(createAgent(server), { ...request(), screen_hint: 'signup' }, 'racing@example.test');
      const racers = await Promise.all(
        [1, 2, 3].map(async () => {
          const browser = createAgent(server);
          const page = await openPage(browser, server, params);
          const login = await browser.get(readForm(page, 'email').action.replace('signup', 'login'));
          return { browser, form: readForm(login, 'password') };
        }),
      );
      await Promise.all(
        racers.map(async ({ browser, form: { action, fields } }) => {
          const form = { ...fields, username: 'racing@example.test', password: USER.password };
          return follow(browser, await browser.request(action, { form }), server.url);
        }),
      ).then((answers) => {
        const entered = answers.filter((answer) => 'code' in responseOf(answer));
        expect(entered).to.have.length(1);
      });
      expect(await server.store.collection('memberships').findBy('organization', 'org_acme')).to.have.length(
        1,
      );
    });

    it('is refused for another organization or application, and once it is deleted', async () => {
      const params = await invite('strict@example.test');
      for (const over of [
        { organization: 'org_open' },
        { client_id: 'requiring' },
        { invitation: 'forged' },
      ]) {
        const answer = await authorize(agent, { ...params, ...over });
        expect(responseOf(answer), JSON.stringify(over)).to.include({ error: 'invalid_request' });
      }
      const { organization: _, ...without } = params as Record<string, string>;
      expect(responseOf(await authorize(agent, without))).to.include({ error: 'invalid_request' });
      const page = await openPage(agent, server, params);
      await server.store.collection('invitations').delete(`uinv_${invited}`);
      const { action, fields } = readForm(page, 'email');
      const form = { ...fields, email: 'strict@example.test', password: USER.password };
      const late = await follow(agent, await agent.request(action, { form }), server.url);
      expect(late.location === '' ? {} : responseOf(late)).not.to.have.property('code');
      expect(await server.store.collection('memberships').findBy('organization', 'org_acme')).to.deep.equal(
        [],
      );
      const old = await invite('late@example.test', { expiresAt: 1 });
      expect(responseOf(await authorize(agent, old))).to.include({ error: 'invalid_request' });
    });
  });
});
