// The authorization request to a provider: what the connection sets, what the application may add, and what it cannot override.
import { expect } from 'chai';
import { createAgent } from '../../support/agent.ts';
import { authorize, responseOf, tenant, webRequest } from '../../support/flows.ts';
import { type OAuth2Provider, optionsFor, startProvider } from '../../support/oauth2-provider.ts';
import { startServer, type TestServer } from '../../support/server.ts';
import { fromProvider, logInUpstream, toProvider } from '../../support/upstream-login.ts';

describe('the authorization request to an OAuth 2.0 provider', () => {
  let provider: OAuth2Provider;
  let server: TestServer;
  before(async () => {
    provider = await startProvider();
    const connections = {
      acme: { scope: ['profile', 'email'] },
      spaces: { scope: 'profile', useOauthSpecScope: true },
      pkce: { pkce_enabled: true },
      mapped: {
        scope: 'profile',
        authParamsMap: { a: 'dpop_jkt', b: 'password', theme: 'theme_of' },
        upstream_params: { c: { alias: 'client_secret' }, d: { alias: 'dpop_jkt' } },
      },
      query: { authorizationURL: `${provider.url}/authorize?tenant=1` },
      params: {
        authParams: { hd: 'acme.test', access_type: 'offline', max: 3, client_id: 'evil', state: 'evil' },
        authParamsMap: { theme: 'their_theme', hd: 'domain', redirect_uri: 'their_theme', x: 'state' },
        upstream_params: {
          fixed: { value: 'yes' },
          login: { alias: 'login_hint' },
          locale: { alias: 'ui_locales' },
        },
      },
      headers: {
        customHeaders: { 'X-Api-Key': 'key-1', Authorization: 'Basic Z2F0ZQ==', 'User-Agent': 'Ours/1' },
      },
    };
    server = await startServer({
      tenant: {
        ...tenant,
        connections: Object.entries(connections).map(([name, more]) => ({
          name,
          strategy: 'oauth2',
          enabled_clients: ['web'],
          options: optionsFor(provider, more),
        })),
      },
    });
  });
  after(async () => {
    await server?.stop();
    await provider?.stop();
  });

  /** Returns the parameters of the request to the provider, without those that every request has. */
  const scopesOf = async (connection: string, more: Record<string, string> = {}) => {
    const answer = await authorize(createAgent(server), webRequest({ connection, ...more }));
    const { response_type, client_id, redirect_uri, state, ...rest } = Object.fromEntries(
      new URL(answer.location).searchParams,
    );
    expect({ response_type, client_id, redirect_uri }).to.deep.equal({
      response_type: 'code',
      client_id: 'gatehouse',
      redirect_uri: `${server.url}/login/callback`,
    });
    expect(state).to.match(/^[\w-]{43}$/);
    return rest;
  };

  it('has the scopes of the connection, and those of connection_scope, separated by commas or spaces', async () => {
    expect(await scopesOf('acme')).to.deep.equal({ scope: 'profile email' });
    for (const connection_scope of ['repo,read:org, email', 'repo read:org  email']) {
      expect(await scopesOf('acme', { connection_scope })).to.deep.equal({
        scope: 'profile,email,repo,read:org',
      });
      expect(await scopesOf('spaces', { connection_scope })).to.deep.equal({
        scope: 'profile repo read:org email',
      });
    }
    expect(await scopesOf('acme', { connection_scope: ' ,' })).to.deep.equal({ scope: 'profile email' });
  });

  it('keeps the query of the authorization URL when the application sends the same parameter', async () => {
    expect(await scopesOf('query')).to.deep.equal({ tenant: '1', scope: 'profile email' });
    expect(await scopesOf('query', { tenant: '2' })).to.deep.equal({ tenant: '1', scope: 'profile email' });
  });

  it('has a PKCE challenge if the connection uses PKCE, and the token request has the verifier', async () => {
    const login = await toProvider(server, { connection: 'pkce' });
    expect(Object.fromEntries(login.at.searchParams)).to.include({ code_challenge_method: 'S256' });
    expect(responseOf(await fromProvider(server, login)), server.logged()).to.have.property('code');
    // The test provider verifies it.
    expect(provider.last('/token').form.code_verifier).to.match(/^[\w-]{43}$/);
    expect(provider.last('/userinfo').headers.authorization).to.match(/^Bearer token-/);
    expect(await logInUpstream(server)).to.have.property('code');
    expect(provider.last('/token').form).not.to.have.any.keys('code_verifier');
  });

  it('has unknown parameters of the application, and none of its own protocol parameters', async () => {
    const added = await scopesOf('acme', {
      their_own: 'a b',
      login_hint: 'ada@example.test',
      prompt: 'login',
      auth0Client: 'e30',
      nonce: 'n',
      code_challenge: 'c'.repeat(43),
      code_challenge_method: 'S256',
      response_mode: 'query',
      audience: '',
      client_secret: 'stolen',
      anon_transfer_token: 'a-ticket',
    });
    expect(added).to.deep.equal({
      scope: 'profile email',
      their_own: 'a b',
      login_hint: 'ada@example.test',
      prompt: 'login',
    });
  });

  it('has no credential of the application or its user, and no parameter that an endpoint of ours understands', async () => {
    const secrets = {
      client_assertion: 'signed',
      client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
      password: 'Correct-Horse-1',
      new_password: 'Correct-Horse-2',
      otp: '123456',
      mfa_token: 'a-token',
      binding_code: '654321',
      code: 'a-code',
      login_hint_token: 'a-token',
      id_token_hint_2: 'kept',
      dpop_jkt: 'd'.repeat(43),
      refresh_token: 'a-token',
      subject_token: 'a-token',
      assertion: 'signed',
      actor_token_type: 'urn:a',
      auth_session: 'a-session',
      api_key: 'a-key',
      userPassword: 'Correct-Horse-3',
      SAMLResponse: 'signed',
      returnTo: 'https://app.test',
    };
    expect(await scopesOf('acme', secrets)).to.deep.equal({
      scope: 'profile email',
      id_token_hint_2: 'kept',
    });
    // Names that only resemble those of credentials.
    const harmless = {
      token_access_type: 'offline',
      country_code: 'de',
      access_type: 'offline',
      hd: 'a.test',
    };
    expect(await scopesOf('acme', harmless)).to.deep.equal({ scope: 'profile email', ...harmless });
  });

  it('has no credential even if the connection maps it to a name of the provider', async () => {
    const credentials = { dpop_jkt: 'd'.repeat(43), password: 'Correct-Horse-1', theme_of: 'dark' };
    expect(await scopesOf('mapped', credentials)).to.deep.equal({ scope: 'profile', theme: 'dark' });
  });

  it('has fixed parameters of the connection when the application sends others', async () => {
    expect(
      await scopesOf('params', { access_type: 'online', fixed: 'no', hd: 'evil.test', max: '9' }),
    ).to.deep.equal({
      scope: 'profile email',
      hd: 'acme.test',
      access_type: 'offline',
      max: '3',
      fixed: 'yes',
    });
  });

  it('has mapped parameters under their names at the provider, and never maps reserved ones', async () => {
    expect(
      await scopesOf('params', {
        their_theme: 'dark',
        domain: 'other.test',
        theme: 'light',
        login_hint: 'ada@example.test',
        ui_locales: 'de',
      }),
    ).to.deep.equal({
      scope: 'profile email',
      theme: 'dark',
      hd: 'other.test',
      access_type: 'offline',
      max: '3',
      fixed: 'yes',
      login: 'ada@example.test',
      locale: 'de',
    });
  });

  it('is followed by a token request with the customHeaders of the connection', async () => {
    await fromProvider(server, await toProvider(server, { connection: 'headers' }));
    expect(provider.last('/token').headers).to.include({
      'x-api-key': 'key-1',
      authorization: 'Basic Z2F0ZQ==',
      'user-agent': 'Ours/1',
      'content-type': 'application/x-www-form-urlencoded',
    });
    const file = JSON.stringify(await server.store.collection('connections').list());
    expect(file).to.contain('Z2F0ZQ==');
  });
});
