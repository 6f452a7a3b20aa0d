// What actions of post-login do with the session, the refresh token and the scopes of a login, and what their event
// says about them.
import { expect } from 'chai';
import { startManaged } from '../management/support.ts';
import { type Agent, createAgent } from '../support/agent.ts';
import {
  API,
  authorize,
  tenant as base,
  follow,
  logIn,
  PASSWORD_REQUEST,
  payload,
  pkce,
  responseOf,
  SPA_CALLBACK,
  spaRequest,
  spaTokens,
  token,
  USER,
} from '../support/flows.ts';
import { signingKey, startOpenIdProvider } from '../support/openid-provider.ts';
import type { TestServer } from '../support/server.ts';
import { logInUpstream } from '../support/upstream-login.ts';
import { actionFailures, bindActions, managed, postLogin } from './support.ts';

const NS = 'https://example.test/';
const HOUR = 3_600_000;
const tenant = { ...base, users: [{ ...USER, email_verified: true, multifactor: [] }] };

describe('actions of post-login and the session', () => {
  let server: TestServer;
  let agent: Agent;
  beforeEach(async () => {
    server = await startManaged(tenant);
    agent = createAgent(server);
  });
  afterEach(() => server.stop());

  const bind = (...bodies: string[]) =>
    bindActions(server, 'post-login', ...bodies.map((body) => ({ code: postLogin(body) })));
  const offline = (over: Record<string, string> = {}) =>
    spaTokens(agent, server, { scope: 'openid offline_access read:things', audience: API, ...over });
  const refresh = async (refresh_token: string, client_id = 'spa') => {
    const answer = await token(createAgent(server), {
      grant_type: 'refresh_token',
      client_id,
      refresh_token,
    });
    return { status: answer.status, body: answer.json() };
  };
  const silent = async () =>
    responseOf(await authorize(agent, spaRequest(pkce().challenge, { prompt: 'none' })));
  const later = (hours: number) => Date.now() + hours * HOUR;

  it('add scopes that the API has and remove scopes, and the response lists them', async () => {
    await bind(`api.accessToken.addScope('write:things').accessToken.removeScope('read:things');`);
    const tokens = await offline();
    expect(tokens.scope.split(' ')).to.include('write:things').and.not.include('read:things');
    expect(payload(tokens.access_token).scope.split(' ')).to.have.members([
      'openid',
      'offline_access',
      'write:things',
    ]);
    // They are set anew at a refresh.
    await bind('');
    const { body } = await refresh(tokens.refresh_token);
    expect(payload(body.access_token).scope.split(' '))
      .to.include('read:things')
      .and.not.include('write:things');
  });

  it('cannot add scopes that the API does not have or those of OpenID Connect, nor remove openid', async () => {
    await bind(`for (const scope of ['delete:everything', 'email', 'address', 'offline_access']) api.accessToken.addScope(scope);
      api.accessToken.removeScope('openid');`);
    const { challenge, verifier } = pkce();
    const { code } = responseOf(
      await logIn(agent, server, spaRequest(challenge, { scope: 'openid', audience: API })),
    );
    const answer = await token(agent, {
      grant_type: 'authorization_code',
      client_id: 'spa',
      code,
      code_verifier: verifier,
      redirect_uri: SPA_CALLBACK,
    });
    expect(payload(answer.json().access_token).scope).to.equal('openid');
    expect(answer.json()).not.to.have.property('refresh_token');
    expect((await actionFailures(server)).join()).to.contain('addScope delete:everything');
  });

  it('set the target scopes, which later actions see and the token gets', async () => {
    await bind(
      `api.transaction.addTargetScope('write:things').transaction.removeTargetScope('profile');
       api.accessToken.setCustomClaim('${NS}first', [event.transaction.target_scopes, event.transaction.requested_scopes]);`,
      `api.accessToken.setCustomClaim('${NS}second', event.transaction.target_scopes);`,
    );
    const tokens = await offline({ scope: 'openid profile read:things' });
    const { scope, ...claims } = payload(tokens.access_token);
    expect(scope.split(' ')).to.have.members(['openid', 'read:things', 'write:things']);
    expect(tokens.scope).to.equal(scope);
    const target = ['openid', 'read:things', 'write:things'];
    expect(claims).to.deep.include({
      [`${NS}first`]: [target, ['openid', 'profile', 'read:things']],
      [`${NS}second`]: target,
    });
  });

  it('clear the target scopes but openid, and leave out silently what application and user may not have', async () => {
    await bind(
      `api.transaction.clearTargetScopes(); api.transaction.setTargetScopes(['delete:everything', 'email', 'read:users']);`,
    );
    expect((await offline()).scope).to.equal('openid');
    expect(await actionFailures(server)).to.deep.equal([]);
    // A scope that needs a permission, which accessToken.addScope would ignore.
    const { records } = await server.store.collection('resourceServers').list();
    const { id } = records.find(({ identifier }) => identifier === API) ?? { id: '' };
    await managed(server, 'PATCH', `/resource-servers/${id}`, { enforce_policies: true });
    await bind(`api.transaction.addTargetScope('write:things');`);
    agent = createAgent(server);
    expect((await offline()).scope).not.to.contain('write:things');
  });

  it('cannot add scopes of the Management API', async () => {
    await bind(`api.accessToken.addScope('read:users');`);
    const answer = await token(agent, {
      ...PASSWORD_REQUEST,
      scope: 'openid read:current_user',
      audience: `${server.issuer}api/v2/`,
    });
    expect(answer.status, answer.text).to.equal(200);
    expect(String(payload(answer.json().access_token).scope)).not.to.contain('read:users');
    expect((await actionFailures(server)).join()).to.contain('addScope read:users');
  });

  it("end a session earlier, by time and by idleness, and never later than the tenant's limits", async () => {
    await bind(`api.session.setExpiresAt(${later(5)}); api.session.setExpiresAt(${later(2)});`);
    await offline();
    expect(await silent()).to.have.property('code');
    const { body } = await managed(server, 'GET', '/users?search_engine=v3');
    const id = encodeURIComponent(body[0]?.user_id ?? body.users?.[0]?.user_id);
    const shown = (await managed(server, 'GET', `/users/${id}/sessions`)).body.sessions[0];
    expect(Date.parse(shown.expires_at)).to.be.closeTo(later(2), 60_000);
    server.tick(3 * HOUR);
    expect(await silent()).to.include({ error: 'login_required' });
    await bind(`api.session.setIdleExpiresAt(Date.now() + 3 * ${HOUR} + ${HOUR});`);
    agent = createAgent(server);
    await offline();
    server.tick(2 * HOUR);
    expect(await silent()).to.include({ error: 'login_required' });
  });

  it('end a session earlier than its provider does, which a later login there does not undo', async () => {
    const provider = await startOpenIdProvider(await signingKey('k1'));
    const login = async (hours: number, id: string) => {
      provider.claims = { session_expiry: Math.floor(later(hours) / 1000) };
      const told = await logInUpstream(server, { connection: 'ending', prompt: 'login' }, agent);
      expect(told).to.have.property('code');
      const { sessions } = (await managed(server, 'GET', `/users/${id}/sessions`)).body;
      expect(sessions).to.have.length(1);
      return Math.round((Date.parse(sessions[0].expires_at) - Date.now()) / HOUR);
    };
    try {
      const options = {
        ...{ type: 'back_channel', client_id: 'gatehouse', client_secret: 'upstream-secret' },
        ...{ issuer: provider.url, id_token_session_expiry_supported: true },
      };
      const connection = { name: 'ending', strategy: 'oidc', enabled_clients: ['web'], options };
      expect((await managed(server, 'POST', '/connections', connection)).status).to.equal(201);
      const user = encodeURIComponent('oidc|ending|grace');
      expect(await login(4, user)).to.equal(4);
      await bind(`api.session.setExpiresAt(${later(3)});`);
      expect(await login(6, user)).to.equal(3);
      await bind('');
      expect(await login(6, user)).to.equal(3);
      // The earlier of both; the provider's earlier limit no longer applies.
      expect(await login(1, user)).to.equal(1);
      expect(await login(2, user)).to.equal(2);
      // A session that begins after it has none of its limits.
      server.tick(4 * HOUR);
      expect(await login(6, user)).to.equal(6);
    } finally {
      await provider.stop();
    }
  });

  it('cannot make a session last longer than the tenant allows', async () => {
    await bind(`api.session.setExpiresAt(${later(24 * 365)});`);
    await offline();
    server.tick(24 * 8 * HOUR);
    expect(await silent()).to.include({ error: 'login_required' });
  });

  it('make browsers forget the session when they are closed', async () => {
    await bind(`api.session.setCookieMode('non-persistent');`);
    const page = await follow(agent, await authorize(agent, spaRequest(pkce().challenge)), server.url);
    const { action, fields } = (await import('../support/agent.ts')).readForm(page, 'password');
    let answer = await agent.request(action, {
      form: { ...fields, username: USER.email, password: USER.password },
    });
    let cookie = '';
    for (let hops = 0; hops < 5 && answer.status >= 300 && answer.location.startsWith(server.url); hops++) {
      answer = await agent.get(answer.location);
      cookie =
        [answer.headers['set-cookie'] ?? []].flat().find((one) => one.includes('gatehouse_session')) ??
        cookie;
    }
    expect(cookie)
      .to.contain('gatehouse_session')
      .and.not.match(/expires/i);
  });

  it('store metadata of a session, which later logins and administrators read', async () => {
    await bind(`
      api.idToken.setCustomClaim('${NS}noted', event.session.metadata);
      if (event.session.metadata.from === undefined) api.session.setMetadata('from', event.client.name);
      else api.session.evictMetadata();`);
    expect(payload((await offline()).id_token)[`${NS}noted`]).to.deep.equal({});
    const claims = async () => {
      const { challenge, verifier } = pkce();
      const { code } = responseOf(await authorize(agent, spaRequest(challenge, { prompt: 'none' })));
      const answer = await token(agent, {
        grant_type: 'authorization_code',
        client_id: 'spa',
        code,
        code_verifier: verifier,
        redirect_uri: SPA_CALLBACK,
      });
      return payload(answer.json().id_token);
    };
    const second = await claims();
    expect(second[`${NS}noted`]).to.deep.equal({ from: 'Single page' });
    const third = await claims();
    expect(third[`${NS}noted`]).to.deep.equal({});
  });

  it('revoke the session, with its refresh tokens or without them', async () => {
    for (const [keeps, status] of [
      [true, 200],
      [false, 400],
    ] as const) {
      await bind('');
      agent = createAgent(server);
      const tokens = await offline();
      await bind(`if (event.transaction.prompt.includes('none'))
        api.session.revoke('Another network.', { preserveRefreshTokens: ${keeps} });`);
      expect(await silent()).to.include({ error: 'access_denied', error_description: 'Another network.' });
      await bind('');
      expect(await silent()).to.include({ error: 'login_required' });
      expect((await refresh(tokens.refresh_token)).status).to.equal(status);
    }
  });

  it('get the refresh token, store metadata of it, and revoke it', async () => {
    const tokens = await offline();
    await bind(`
      const { id, client_id, device, rotating, resource_servers, metadata } = event.refresh_token;
      api.accessToken.setCustomClaim('${NS}rt', { id, client_id, rotating, api: resource_servers[0].audience,
        agent: typeof device.last_ip, uses: metadata.uses });
      api.refreshToken.setMetadata('uses', String(Number(metadata.uses ?? 0) + 1));`);
    const first = await refresh(tokens.refresh_token);
    const told = payload(first.body.access_token)[`${NS}rt`];
    expect(told).to.include({ client_id: 'spa', rotating: true, api: API, agent: 'string' });
    expect(told.id).to.match(/^rt_/);
    const second = await refresh(first.body.refresh_token);
    expect(payload(second.body.access_token)[`${NS}rt`]).to.include({ uses: '1' });
    await bind(`api.refreshToken.revoke('Stolen.');`);
    const denied = await refresh(second.body.refresh_token);
    expect(denied).to.deep.equal({
      status: 403,
      body: { error: 'access_denied', error_description: 'Stolen.' },
    });
    await bind('');
    expect((await refresh(second.body.refresh_token)).status).to.equal(400);
  });

  it('end a refresh token and those that replace it earlier', async () => {
    const tokens = await offline();
    await bind(`if (!event.refresh_token.metadata.bound) {
      api.refreshToken.setExpiresAt(${later(3)}); api.refreshToken.setMetadata('bound', 'yes'); }`);
    const first = await refresh(tokens.refresh_token);
    expect(first.status, JSON.stringify(first.body)).to.equal(200);
    server.tick(2 * HOUR);
    const second = await refresh(first.body.refresh_token);
    expect(second.status).to.equal(200);
    server.tick(2 * HOUR);
    expect((await refresh(second.body.refresh_token)).status).to.equal(400);
  });

  it('get the user, the session and the request', async () => {
    await bind(`api.idToken.setCustomClaim('${NS}event', { session: event.session, user: event.user,
      transaction: event.transaction, security: event.security_context, configuration: event.configuration });`);
    const told = payload((await offline()).id_token)[`${NS}event`];
    expect(told.session).to.include.keys(
      ...[
        'id',
        'user_id',
        'created_at',
        'authenticated_at',
        'expires_at',
        'idle_expires_at',
        'last_interacted_at',
      ],
      ...['device', 'clients', 'cookie', 'metadata'],
    );
    expect(told.session.cookie).to.deep.equal({ mode: 'persistent' });
    expect(told.session.device).to.include.keys(
      'initial_ip',
      'last_ip',
      'initial_user_agent',
      'last_user_agent',
    );
    expect(told.user).to.deep.include({ email: USER.email, enrolledFactors: [], multifactor: [] });
    expect(told.user.identities[0]).to.include({ connection: 'users', provider: 'auth0', isSocial: false });
    expect(told.user).to.include.keys('last_ip', 'last_login', 'created_at', 'user_metadata', 'app_metadata');
    expect(JSON.stringify(told)).not.to.match(/password_?hash|code_challenge/i);
    expect(told.transaction).to.deep.include({ protocol: 'oidc-basic-profile', metadata: {} });
    expect(told.security).to.deep.equal({});
  });
});
