// Session transfer: an application opens a session in a browser with its refresh token, or with a token that an
// action has checked.
import { expect } from 'chai';
import { bindActions, eventsOf, managed } from '../actions/support.ts';
import { factors, POLICY } from '../factors/tenant.ts';
import { startManaged } from '../management/support.ts';
import { type Agent, createAgent } from '../support/agent.ts';
import { API, authorize, follow, payload, responseOf, submitLogin, token, USER } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { tenantWith } from '../support/tenant.ts';

const CALLBACK = 'https://site.example.test/callback';
const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
const SUBJECT = 'urn:acme:ticket';
const STT = 'urn:auth0:params:oauth:token-type:session_transfer_token';
const CLAIM = 'https://example.test/handed';
const SECRET = { client_secret: 'site-secret' };
const HANDS_OVER = { can_create_session_transfer_token: true };

const web = (client_id: string, session_transfer?: object, more: object = {}) => ({
  client_id,
  name: client_id,
  app_type: 'regular_web',
  token_endpoint_auth_method: 'client_secret_post',
  ...SECRET,
  callbacks: [CALLBACK],
  grant_types: ['authorization_code', 'refresh_token', 'password', 'implicit'],
  ...(session_transfer && { session_transfer }),
  ...more,
});
const app = (client_id: string, session_transfer: object, refresh_token: object = {}) => ({
  client_id,
  name: client_id,
  app_type: 'native',
  token_endpoint_auth_method: 'none',
  grant_types: ['password', 'refresh_token'],
  refresh_token: { rotation_type: 'rotating', expiration_type: 'expiring', ...refresh_token },
  session_transfer,
});
const TAKES = { allowed_authentication_methods: ['query', 'cookie'] };
const DELEGATES = { ...TAKES, delegation: { allow_delegated_access: true } };
const CLIENTS = [
  app('app', HANDS_OVER),
  app('loose', { ...HANDS_OVER, enforce_cascade_revocation: false }),
  app('mute', {}),
  web('site', TAKES),
  web('online', { ...TAKES, allow_refresh_token: true }),
  web('anywhere', { ...TAKES, enforce_device_binding: 'none', allow_refresh_token: true }),
  web('paged', TAKES, { custom_login_page: '<title>Ours</title> @@config@@' }),
  web('by-cookie', { allowed_authentication_methods: ['cookie'] }),
  web('closed', undefined),
  web('desk', HANDS_OVER, {
    is_token_endpoint_ip_header_trusted: true,
    token_exchange: { allow_any_profile_of_type: ['custom_authentication'] },
  }),
  web('shown', DELEGATES),
  web(
    'members',
    { ...DELEGATES },
    { organization_usage: 'allow', initiate_login_uri: 'https://site.example.test/login' },
  ),
];
const tenant = tenantWith({
  add: { clients: [...CLIENTS] },
  enable: [...CLIENTS.map(({ client_id }) => client_id)],
  guardianFactors: factors('otp'),
});

describe('session transfer', () => {
  let server: TestServer;
  before(async () => {
    server = await startManaged(tenant);
    const made = await managed(server, 'POST', '/actions/actions', {
      name: 'desk',
      // `<id of the user>|<actor as JSON>`
      code: `exports.onExecuteCustomTokenExchange = async (event, api) => {
        if (!(event.resource_server?.identifier ?? ':session_transfer').endsWith(':session_transfer'))
          return api.access.deny('invalid_request', 'another audience');
        const { id, actor, organization } = JSON.parse(event.transaction.subject_token);
        if (organization) api.authentication.setOrganization(organization);
        if (actor) api.authentication.setActor(actor);
        api.authentication.setUserById(id);
      };`,
      supported_triggers: [{ id: 'custom-token-exchange', version: 'v1' }],
    });
    await managed(server, 'POST', `/actions/actions/${made.body.id}/deploy`);
    await managed(server, 'POST', '/token-exchange-profiles', {
      name: 'desk',
      subject_token_type: SUBJECT,
      action_id: made.body.id,
      type: 'custom_authentication',
    });
    const grant = await managed(server, 'POST', '/client-grants', {
      client_id: 'shown',
      audience: `${server.issuer}me/`,
      subject_type: 'user',
      scope: ['create:me:authentication_methods'],
    });
    expect(grant.status, JSON.stringify(grant.body)).to.equal(201);
    await bindActions(server, 'post-login', {
      code: `exports.onExecutePostLogin = async (event, api) => {
        const { session, session_transfer_token: handed } = event;
        if (handed) api.idToken.setCustomClaim('${CLAIM}', { by: handed.client_id, actor: session.actor });
        if (handed) api.idToken.setCustomClaim('${CLAIM}/scope', handed.scope);
        if (session) api.idToken.setCustomClaim('${CLAIM}/session', session.session_transfer);
        if (event.refresh_token) api.idToken.setCustomClaim('${CLAIM}/token', event.refresh_token.session_transfer);
      };`,
    });
  });
  after(() => server.stop());

  const audience = () => `urn:${new URL(server.url).host}:session_transfer`;
  const ada = async () => (await server.users.findInConnection({ name: 'users' }, USER.email))?.id ?? '';
  const warnings = async () => (await eventsOf(server, 'w')).map(({ description }) => description ?? '');
  const refreshToken = async (client_id: string, more: object = {}) => {
    const { email: username, password } = USER;
    const scope = 'openid profile offline_access';
    const asked = { grant_type: 'password', client_id, username, password, scope, ...more };
    return (await token(createAgent(server), asked)).json().refresh_token as string;
  };
  const transfer = (client_id: string, refresh_token: string, more: object = {}) =>
    token(createAgent(server), {
      grant_type: 'refresh_token',
      client_id,
      refresh_token,
      audience: audience(),
      ...more,
    });
  const handed = async (client_id = 'app') => {
    const answer = await transfer(client_id, await refreshToken(client_id));
    expect(answer.status, answer.text).to.equal(200);
    return answer.json() as { access_token: string; refresh_token: string };
  };
  const desk = async (subject: object, more: Record<string, string | undefined> = {}, headers = {}) => {
    const json = {
      grant_type: EXCHANGE,
      client_id: 'desk',
      ...SECRET,
      subject_token: JSON.stringify({ id: await ada(), ...subject }),
      subject_token_type: SUBJECT,
      scope: 'openid profile email',
      audience: audience(),
      ...more,
    };
    return createAgent(server).request('/oauth/token', { json, headers });
  };
  const AGENT = { sub: 'agent|7', role: 'support' };
  const acting = async (subject: object = {}) =>
    (await desk({ actor: AGENT, ...subject })).json().access_token;
  const open = async (agent: Agent, client_id: string, more: Record<string, string> = {}) => {
    const asked = {
      client_id,
      response_type: 'code',
      redirect_uri: CALLBACK,
      scope: 'openid profile email',
      state: 's',
    };
    return follow(agent, await authorize(agent, { ...asked, ...more }), server.url);
  };
  const withToken = (session_transfer_token: string) => ({ session_transfer_token });
  /** Begins a request that waits for a login. @returns the path where it continues. */
  const waiting = async (agent: Agent, client_id: string, more: Record<string, string> = {}) => {
    const asked = { client_id, response_type: 'code', redirect_uri: CALLBACK, scope: 'openid', state: 's' };
    const { headers } = await authorize(agent, { ...asked, ...more });
    expect(headers.location).to.match(/^\/u\//);
    return String(headers.location).replace('/u/', '/authorize/');
  };
  const tokens = async (client_id: string, { code }: Record<string, string>) => {
    const grant = { grant_type: 'authorization_code', client_id, ...SECRET, redirect_uri: CALLBACK };
    const answer = await token(createAgent(server), { ...grant, code });
    expect(answer.status, answer.text).to.equal(200);
    return answer.json() as {
      id_token: string;
      access_token: string;
      refresh_token?: string;
      expires_in: number;
    };
  };
  const isAsked = ({ text }: { text: string }) => text.includes('name="password"');

  describe('from an app to a browser', () => {
    it('logs in the user of the refresh token without a page, and is visible to actions', async () => {
      const given = await transfer('app', await refreshToken('app'));
      const { access_token, refresh_token, id_token, ...rest } = given.json();
      expect(rest).to.deep.equal({
        issued_token_type: STT,
        token_type: 'N_A',
        expires_in: 60,
        scope: 'openid profile offline_access',
      });
      expect(payload(id_token)).to.include({ sub: await ada(), aud: 'app' });
      expect(refresh_token).to.be.a('string');
      expect((await eventsOf(server, 'sertft'))[0]).to.include({ client_id: 'app', user_id: await ada() });
      const agent = createAgent(server);
      const first = await tokens('site', responseOf(await open(agent, 'site', withToken(access_token))));
      expect(payload(first.id_token)).to.deep.include({ sub: await ada(), [CLAIM]: { by: 'app' } });
      // The browser now has a session.
      expect(responseOf(await open(agent, 'closed', { prompt: 'none' }))).to.have.property('code');
      // A silent request accepts a token, too.
      const silent = await open(createAgent(server), 'site', {
        prompt: 'none',
        ...withToken((await handed()).access_token),
      });
      expect(responseOf(silent)).to.have.property('code');
    });

    it('gives actions the metadata of the parent refresh token, in the session and its refresh tokens', async () => {
      const given = await refreshToken('loose');
      const [parent] = (
        await managed(server, 'GET', `/users/${encodeURIComponent(await ada())}/refresh-tokens`)
      ).body.tokens.filter(({ client_id }: { client_id: string }) => client_id === 'loose');
      const notes = { refresh_token_metadata: { device: 'Ada’s phone' } };
      const noted = await managed(server, 'PATCH', `/refresh-tokens/${parent.id}`, notes);
      expect(noted.status, JSON.stringify(noted.body)).to.equal(200);
      const { access_token } = (await transfer('loose', given, { scope: 'openid profile' })).json();
      const asked = { ...withToken(access_token), scope: 'openid offline_access' };
      const first = await tokens('online', responseOf(await open(createAgent(server), 'online', asked)));
      const told = { parent_refresh_token: { id: parent.id, metadata: { device: 'Ada’s phone' } } };
      expect(payload(first.id_token)).to.deep.include({
        [`${CLAIM}/session`]: told,
        [`${CLAIM}/scope`]: ['openid', 'profile'],
      });
      const refreshed = async () => {
        const grant = { grant_type: 'refresh_token', client_id: 'online', ...SECRET };
        const answer = await token(createAgent(server), { ...grant, refresh_token: first.refresh_token });
        expect(answer.status, answer.text).to.equal(200);
        return payload(answer.json().id_token);
      };
      expect(await refreshed()).to.deep.include({ [`${CLAIM}/token`]: told });
      // The application's setting lets it outlive the parent, whose metadata is then empty.
      await managed(server, 'DELETE', `/refresh-tokens/${parent.id}`);
      expect(await refreshed()).to.deep.include({ [`${CLAIM}/token`]: {} });
      // A login without a transfer has no parent.
      const own = await refreshToken('site', SECRET);
      const plain = { grant_type: 'refresh_token', client_id: 'site', ...SECRET, refresh_token: own };
      const { id_token } = (await token(createAgent(server), plain)).json();
      expect(payload(id_token)).to.include({ [`${CLAIM}/token`]: null });
    });

    it('succeeds once, in one of fifty simultaneous browsers', async () => {
      const { access_token } = await handed();
      const all = await Promise.all(
        Array.from({ length: 50 }, () => open(createAgent(server), 'site', withToken(access_token))),
      );
      expect(all.filter((page) => !isAsked(page)).map(responseOf)).to.have.length(1);
    });

    it('is refused after a minute, and its token at any other endpoint', async () => {
      const late = (await handed()).access_token;
      server.tick(61_000);
      const { access_token } = await handed();
      for (const bad of [late, 'x', '', `${access_token.slice(0, -1)}!`])
        expect(isAsked(await open(createAgent(server), 'site', withToken(bad))), bad).to.equal(true);
      expect(await warnings()).to.include(
        'Single Sign-On failed: Session Transfer Token not found or expired. This may indicate token reuse or expiration.',
      );
      const info = await createAgent(server).get('/userinfo', { authorization: `Bearer ${access_token}` });
      expect(info.status).to.equal(401);
      const again = await transfer('app', access_token);
      expect(again.status).to.equal(400);
      expect(isAsked(await open(createAgent(server), 'site', { login_ticket: access_token }))).to.equal(true);
    });

    it('is accepted only by applications that allow it, by query or cookie as set', async () => {
      const { access_token } = await handed();
      for (const client of ['closed', 'by-cookie'])
        expect(isAsked(await open(createAgent(server), client, withToken(access_token))), client).to.equal(
          true,
        );
      const cookie = { cookie: `auth0_session_transfer_token=${access_token}` };
      const query = new URLSearchParams({
        client_id: 'by-cookie',
        response_type: 'code',
        redirect_uri: CALLBACK,
      });
      const agent = createAgent(server);
      const begun = await agent.get(`/authorize?${query}`, cookie);
      expect(responseOf(await follow(agent, begun, server.url))).to.have.property('code');
    });

    it('is allowed only to applications that may create tokens, without using up the refresh token when refused', async () => {
      const own = await refreshToken('mute');
      const refused = await transfer('mute', own);
      expect(`${refused.status} ${refused.json().error}`).to.equal('400 unauthorized_client');
      const other = { grant_type: 'refresh_token', client_id: 'mute', refresh_token: own };
      expect((await token(createAgent(server), other)).status).to.equal(200);
      // With another host in the audience, and with another application's refresh token.
      const foreign = await transfer('app', await refreshToken('app'), {
        audience: 'urn:other.example.test:session_transfer',
      });
      expect(foreign.json().issued_token_type).to.equal(undefined);
      expect((await transfer('app', await refreshToken('loose'))).status).to.equal(400);
      // Other grants issue no session transfer token.
      const asked = { client_id: 'web', client_secret: 'web-secret', audience: audience() };
      const machine = await token(createAgent(server), { grant_type: 'client_credentials', ...asked });
      expect(machine.status).to.equal(403);
    });

    it('is bound to the IP address of the app, unless the application switches that off', async () => {
      const login = { client_id: 'desk', ...SECRET };
      const elsewhere = async () => {
        const asked = { grant_type: 'refresh_token', ...login, audience: audience() };
        const refresh_token = await refreshToken('desk', SECRET);
        const headers = { 'auth0-forwarded-for': '198.51.100.7' };
        const answer = await createAgent(server).request('/oauth/token', {
          json: { ...asked, refresh_token },
          headers,
        });
        return withToken(answer.json().access_token);
      };
      expect(isAsked(await open(createAgent(server), 'site', await elsewhere()))).to.equal(true);
      expect(await warnings()).to.include(
        'Single Sign-On failed: Session Transfer Token device binding validation failed due to IP/ASN mismatch.',
      );
      expect(responseOf(await open(createAgent(server), 'anywhere', await elsewhere()))).to.have.property(
        'code',
      );
    });

    it('does not satisfy prompt=login or max_age, and ends the session of another user', async () => {
      for (const more of [{ prompt: 'login' }, { max_age: '0' }])
        expect(
          isAsked(
            await open(createAgent(server), 'site', { ...more, ...withToken((await handed()).access_token) }),
          ),
        ).to.equal(true);
      const other = { connection: 'users', email: 'other@example.test', password: USER.password };
      expect((await managed(server, 'POST', '/users', other)).status).to.equal(201);
      const agent = createAgent(server);
      await submitLogin(agent, server, await open(agent, 'site'), { ...USER, email: 'other@example.test' });
      const page = await open(agent, 'site', withToken((await handed()).access_token));
      expect(isAsked(page)).to.equal(true);
      expect(responseOf(await open(agent, 'site', { prompt: 'none' }))).to.include({
        error: 'login_required',
      });
      expect(responseOf(await submitLogin(agent, server, await open(agent, 'site')))).to.have.property(
        'code',
      );
    });

    it('is refused after the password has changed', async () => {
      const { access_token } = await handed();
      const reset = await managed(server, 'PATCH', `/users/${encodeURIComponent(await ada())}`, {
        password: USER.password,
        connection: 'users',
      });
      expect(reset.status, JSON.stringify(reset.body)).to.equal(200);
      expect(isAsked(await open(createAgent(server), 'site', withToken(access_token)))).to.equal(true);
    });

    it('ends, with its tokens, when its refresh token is revoked, unless the application switches that off', async () => {
      const offline = { scope: 'openid offline_access' };
      for (const [client, stays] of [
        ['app', false],
        ['loose', true],
      ] as const) {
        const { access_token, refresh_token } = await handed(client);
        const agent = createAgent(server);
        const session = await open(agent, 'online', { ...offline, ...withToken(access_token) });
        const { refresh_token: own } = await tokens('online', responseOf(session));
        const unused = await transfer(client, refresh_token);
        const revoke = { client_id: client, token: unused.json().refresh_token };
        expect((await createAgent(server).request('/oauth/revoke', { json: revoke })).status).to.equal(200);
        const silent = responseOf(await open(agent, 'online', { prompt: 'none' }));
        expect(silent.error, client).to.equal(stays ? undefined : 'login_required');
        const refreshed = { grant_type: 'refresh_token', client_id: 'online', ...SECRET, refresh_token: own };
        expect((await token(agent, refreshed)).status, client).to.equal(stays ? 200 : 400);
        const page = await open(createAgent(server), 'site', withToken(unused.json().access_token));
        expect(isAsked(page), client).to.equal(!stays);
      }
    });

    it('yields refresh tokens only when allowed, which end with the session and cannot be transferred again', async () => {
      const scope = 'openid offline_access';
      const none = await open(createAgent(server), 'site', {
        scope,
        ...withToken((await handed()).access_token),
      });
      expect(await tokens('site', responseOf(none))).not.to.have.property('refresh_token');
      await server.store.collection('clients').update('online', (now) => ({
        ...now,
        session_transfer: { ...now.session_transfer, ...HANDS_OVER },
      }));
      const agent = createAgent(server);
      const page = await open(agent, 'online', { scope, ...withToken((await handed()).access_token) });
      const { refresh_token } = await tokens('online', responseOf(page));
      const nested = await transfer('online', refresh_token ?? '', SECRET);
      expect(`${nested.status} ${nested.json().error}`).to.equal('400 invalid_request');
      const again = { grant_type: 'refresh_token', client_id: 'online', ...SECRET, refresh_token };
      expect((await token(agent, again)).status).to.equal(200);
      await agent.get('/v2/logout');
      expect((await token(agent, again)).status).to.equal(400);
    });

    it('limits a request that waited in the browser before', async () => {
      const agent = createAgent(server);
      const offline = await waiting(agent, 'site', { scope: 'openid offline_access' });
      const later = createAgent(server);
      const afterwards = await waiting(later, 'site');
      const { access_token, refresh_token } = await handed();
      await open(agent, 'site', withToken(access_token));
      expect(await tokens('site', responseOf(await agent.get(offline)))).not.to.have.property(
        'refresh_token',
      );
      const { json } = await transfer('app', refresh_token);
      await open(later, 'site', withToken(json().access_token));
      const revoke = { client_id: 'app', token: json().refresh_token };
      expect((await createAgent(server).request('/oauth/revoke', { json: revoke })).status).to.equal(200);
      expect(responseOf(await later.get(afterwards)).error).to.equal('login_required');
    });

    it('is not taken over with the id of the request that it waits in, in another browser or its own', async () => {
      const owner = createAgent(server);
      const asked = { acr_values: POLICY, ...withToken((await handed()).access_token) };
      const { headers } = await authorize(owner, {
        client_id: 'paged',
        response_type: 'code',
        redirect_uri: CALLBACK,
        scope: 'openid',
        ...asked,
      });
      const state = `gatehouse.waiting.${String(headers.location).split('/').pop()}`;
      const restart = (agent: Agent) =>
        authorize(agent, { client_id: 'paged', response_type: 'code', redirect_uri: CALLBACK, state });
      const thief = createAgent(server);
      const stolen = await restart(thief);
      expect(stolen.status).to.equal(400);
      expect(responseOf(await open(thief, 'closed', { prompt: 'none' })).error).to.equal('login_required');
      // Its own browser restarts what the application asked for, not the login.
      const again = await follow(owner, await restart(owner), server.url);
      expect(again.text).to.contain('<title>Ours</title>');
      expect(responseOf(await open(owner, 'closed', { prompt: 'none' })).error).to.equal('login_required');
    });

    it('cannot enroll a second factor without a login', async () => {
      const asked = { acr_values: POLICY };
      const given = { ...asked, ...withToken((await handed()).access_token) };
      expect(isAsked(await open(createAgent(server), 'site', given))).to.equal(true);
      const agent = createAgent(server);
      await open(agent, 'site', withToken((await handed()).access_token));
      const page = await open(agent, 'site', asked);
      expect(isAsked(page)).to.equal(true);
      const enrols = await submitLogin(agent, server, page);
      expect(enrols.text).to.include('/mfa');
      expect(isAsked(enrols)).to.equal(false);
    });

    it('offers no passkey, because the user has proved nothing new', async () => {
      const { body } = await managed(server, 'GET', '/connections?name=users');
      const [{ id, options }] = body;
      const offer = (methods: object) =>
        managed(server, 'PATCH', `/connections/${id}`, {
          options: { ...options, authentication_methods: methods },
        });
      const both = await offer({ password: { enabled: true }, passkey: { enabled: true } });
      expect(both.status, JSON.stringify(both.body)).to.equal(200);
      const agent = createAgent(server);
      const asked = await submitLogin(agent, server, await open(agent, 'site'));
      expect(asked.text).to.include('/offer');
      const given = await open(createAgent(server), 'site', withToken((await handed()).access_token));
      await offer({ password: { enabled: true }, passkey: { enabled: false } });
      expect(responseOf(given)).to.have.property('code');
    });

    it('counts its lifetime from the transfer, not from the login of its refresh token', async () => {
      const old = await refreshToken('app');
      server.tick(10 * 24 * 3_600_000);
      const { access_token } = (await transfer('app', old)).json();
      const agent = createAgent(server);
      await open(agent, 'site', withToken(access_token));
      server.tick(3_600_000);
      expect(responseOf(await open(agent, 'site', { prompt: 'none' }))).to.have.property('code');
      expect(responseOf(await open(agent, 'site', { prompt: 'none', max_age: '86400' }))).to.include({
        error: 'login_required',
      });
    });
  });

  describe('to somebody who acts for the user (delegation)', () => {
    it('begins a short session with act, whose tokens do not outlive it, and which counts as no login', async () => {
      const before = await server.users.get(await ada());
      const answer = await desk({ actor: AGENT });
      const { access_token, ...rest } = answer.json();
      expect(rest).to.deep.equal({ issued_token_type: STT, token_type: 'N_A', expires_in: 60 });
      const agent = createAgent(server);
      const page = await open(agent, 'shown', {
        scope: 'openid profile offline_access',
        audience: API,
        ...withToken(access_token),
      });
      const given = await tokens('shown', responseOf(page));
      const sub = await ada();
      expect(payload(given.id_token)).to.deep.include({
        sub,
        act: AGENT,
        [CLAIM]: { by: 'desk', actor: AGENT },
      });
      expect(payload(given.access_token)).to.deep.include({ sub, act: AGENT });
      expect(given).not.to.have.property('refresh_token');
      expect((await eventsOf(server, 'sdel'))[0]).to.include({ user_id: sub, client_id: 'shown' });
      const { logins_count, last_login } = (await server.users.get(sub)) ?? {};
      expect({ logins_count, last_login }).to.deep.equal({
        logins_count: before?.logins_count,
        last_login: before?.last_login,
      });
      const silent = await open(agent, 'shown', { prompt: 'none' });
      const later = await tokens('shown', responseOf(silent));
      expect(payload(later.id_token)).to.deep.include({ act: AGENT });
      server.tick(2 * 3_600_000);
      expect(responseOf(await open(agent, 'shown', { prompt: 'none' })).error).to.equal('login_required');
    });

    it('requires an actor, a confidential client, and the setting', async () => {
      const refusal = async (...asked: Parameters<typeof desk>) => {
        const answer = await desk(...asked);
        return `${answer.status} ${answer.json().error}`;
      };
      expect(await refusal({})).to.equal('400 invalid_request');
      expect(await refusal({ actor: { ...AGENT, act: { sub: 'another' } } })).to.equal('400 invalid_request');
      const { access_token: api } = (await desk({ actor: AGENT }, { audience: API })).json();
      expect(api).to.equal(undefined);
      const change = (session_transfer: Record<string, unknown>, more: object = {}) =>
        server.store.collection('clients').update('desk', (now) => ({ ...now, ...more, session_transfer }));
      await change({});
      expect(await refusal({ actor: AGENT })).to.equal('403 unauthorized_client');
      await change(HANDS_OVER, { token_endpoint_auth_method: 'none' });
      expect(await refusal({ actor: AGENT }, { client_secret: undefined })).to.equal(
        '403 unauthorized_client',
      );
      await change(HANDS_OVER, { token_endpoint_auth_method: 'client_secret_post' });
      // A token of ours identifies its user, and does not allow anybody to act for them.
      const own = await refusal({}, { subject_token_type: 'urn:ietf:params:oauth:token-type:access_token' });
      expect(own).to.match(/^40\d /);
    });

    it('is accepted only by applications that allow it, with a code, from the same address, in a browser without a session', async () => {
      for (const client of ['site', 'closed'])
        expect(isAsked(await open(createAgent(server), client, withToken(await acting())))).to.equal(true);
      const implicit = { response_type: 'id_token', nonce: 'n', ...withToken(await acting()) };
      expect(isAsked(await open(createAgent(server), 'shown', implicit))).to.equal(true);
      const far = await desk({ actor: AGENT }, {}, { 'auth0-forwarded-for': '198.51.100.7' });
      expect(isAsked(await open(createAgent(server), 'shown', withToken(far.json().access_token)))).to.equal(
        true,
      );
      const agent = createAgent(server);
      await submitLogin(agent, server, await open(agent, 'shown'));
      const busy = responseOf(await open(agent, 'shown', withToken(await acting())));
      expect(busy).to.include({ error: 'access_denied' });
    });

    it('is refused for other applications, prompts, the account page and the My Account API', async () => {
      const agent = createAgent(server);
      await open(agent, 'shown', withToken(await acting()));
      expect(isAsked(await open(agent, 'closed'))).to.equal(true);
      expect(responseOf(await open(agent, 'site', { prompt: 'none' })).error).to.equal('login_required');
      expect(responseOf(await open(agent, 'shown', { prompt: 'login' })).error).to.equal(
        'interaction_required',
      );
      const me = { audience: `${server.issuer}me/`, scope: 'openid create:me:authentication_methods' };
      expect(responseOf(await open(agent, 'shown', me)).error).to.equal('access_denied');
      const account = await follow(agent, await agent.get('/account'), server.url);
      expect(isAsked(account), account.text.slice(0, 300)).to.equal(true);
    });

    it('limits a request that waited in the browser before in the same way', async () => {
      const me = { audience: `${server.issuer}me/`, scope: 'openid create:me:authentication_methods' };
      const after = async (more: Record<string, string>) => {
        const agent = createAgent(server);
        const path = await waiting(agent, 'shown', more);
        await open(agent, 'shown', withToken(await acting()));
        return responseOf(await agent.get(path));
      };
      expect((await after(me)).error).to.equal('access_denied');
      expect((await after({ prompt: 'login' })).error).to.equal('interaction_required');
      const offline = await after({ scope: 'openid offline_access' });
      expect(await tokens('shown', offline)).not.to.have.property('refresh_token');
    });

    it('ends in an error when a second factor is needed', async () => {
      await bindActions(server, 'post-login', {
        code: `exports.onExecutePostLogin = async (event, api) => { api.multifactor.enable('any'); };`,
      });
      const answer = responseOf(await open(createAgent(server), 'shown', withToken(await acting())));
      expect(answer.error).to.be.oneOf(['interaction_required', 'login_required', 'access_denied']);
      await managed(server, 'PATCH', '/actions/triggers/post-login/bindings', { bindings: [] });
    });

    it('is accepted only for the organization that it was requested for', async () => {
      const { body } = await managed(server, 'GET', '/organizations/name/acme');
      const { body: connection } = await managed(server, 'GET', '/connections?name=users');
      await managed(server, 'POST', `/organizations/${body.id}/enabled_connections`, {
        connection_id: connection[0].id,
        assign_membership_on_login: true,
      });
      const organization = body.id as string;
      const ofAcme = () => acting({ organization });
      for (const [given, asked] of [
        [await ofAcme(), {}],
        [await acting(), { organization }],
      ] as const)
        expect(
          isAsked(await open(createAgent(server), 'members', { ...asked, ...withToken(given) })),
        ).to.equal(true);
      const right = await open(createAgent(server), 'members', {
        organization,
        ...withToken(await ofAcme()),
      });
      const { id_token } = await tokens('members', responseOf(right));
      expect(payload(id_token)).to.include({ org_id: organization });
      // Only the user may accept an invitation.
      const made = await managed(server, 'POST', `/organizations/${organization}/invitations`, {
        inviter: { name: 'Somebody' },
        invitee: { email: USER.email },
        client_id: 'members',
      });
      const invitation = new URL(made.body.invitation_url).searchParams.get('invitation') ?? '';
      const asked = { organization, invitation, ...withToken(await ofAcme()) };
      expect(responseOf(await open(createAgent(server), 'members', asked)).error).to.equal(
        'interaction_required',
      );
    });
  });
});
