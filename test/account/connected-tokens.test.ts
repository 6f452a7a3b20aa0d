// Tokens of connected accounts, which applications get in exchange for a token of ours (docs/reference/wire/token.md).
import type { ServerResponse } from 'node:http';
import { expect } from 'chai';
import { storeConnectedAccount } from '../../src/users/users-connected-accounts.ts';
import { createAgent } from '../support/agent.ts';
import { databaseUser } from '../support/database-user.ts';
import { createProver, type Prover } from '../support/dpop.ts';
import { API, tenant as base, payload, token, WEB_CALLBACK } from '../support/flows.ts';
import { json, type OAuth2Provider, optionsFor, startProvider } from '../support/oauth2-provider.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { logInUpstream } from '../support/upstream-login.ts';
import { openAccount, send } from './support.ts';

const GRANT = 'urn:auth0:params:oauth:grant-type:token-exchange:federated-connection-access-token';
const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
const TYPE = 'urn:ietf:params:oauth:token-type:';
const REFRESH_TOKEN = `${TYPE}refresh_token`;
const ACCESS_TOKEN = `${TYPE}access_token`;
const PASSWORD = 'Another-Horse-2';

/** The application of an API that agents call. */
const tools = (client_id: string, resource_server_identifier: string) => ({
  client_id,
  name: client_id,
  app_type: 'resource_server',
  client_secret: `${client_id}-secret`,
  resource_server_identifier,
  grant_types: [GRANT],
});

describe('the token of a connected account', () => {
  let server: TestServer;
  let provider: OAuth2Provider;
  let people = 0;
  let connected = 0;
  let userId: string;
  let email: string;

  before(async () => {
    provider = await startProvider();
    const drive = (name: string, more: object) => ({
      name,
      strategy: 'oauth2',
      enabled_clients: ['web', 'leeway', 'third', 'spa', 'tools', 'other-tools'],
      options: optionsFor(provider),
      authentication: { active: false },
      ...more,
    });
    server = await startServer({
      tenant: {
        ...base,
        tenant: { ...base.tenant, account_page: { client_id: 'web' } },
        clients: [
          ...base.clients.map((client) =>
            ['web', 'leeway', 'third', 'spa'].includes(client.client_id)
              ? {
                  ...client,
                  grant_types: [...client.grant_types, GRANT, EXCHANGE],
                  organization_usage: 'allow',
                }
              : client,
          ),
          tools('tools', API),
          tools('other-tools', 'urn:rfc9068'),
          { ...tools('no-vault', API), grant_types: [] },
        ],
        organizations: [
          {
            id: 'org_acme',
            name: 'acme',
            connections: [{ name: 'users', assign_membership_on_login: true }],
          },
        ],
        connections: [
          drive('drive', { connected_accounts: { active: true } }),
          drive('login-only', { authentication: { active: true } }),
          drive('shared', {
            authentication: { active: true },
            options: optionsFor(provider, { federated_connections_access_tokens: { active: true } }),
          }),
        ],
      },
    });
  });
  after(async () => {
    await server.stop();
    await provider.stop();
  });
  beforeEach(async () => {
    email = `vault-${++people}@example.test`;
    const created = await server.users.create(
      databaseUser({ connection: 'users', email, password: PASSWORD }),
    );
    if (!('user' in created)) throw new Error('the address is taken');
    userId = created.user.id;
  });

  const agent = () => createAgent(server);
  const web = { client_id: 'web', client_secret: 'web-secret' };
  const tokens = async (client: object = web, more: object = {}) => {
    const parameters = {
      grant_type: 'password',
      username: email,
      password: PASSWORD,
      audience: API,
      ...more,
    };
    const answer = await token(agent(), { ...client, ...parameters, scope: 'openid offline_access' });
    if (answer.status !== 200) throw new Error(answer.text);
    return answer.json() as { access_token: string; refresh_token: string };
  };
  /** Stores an account with its tokens. @param seconds until its access token expires. */
  const connect = async (upstreamId: string, grant: object, seconds = 3600) => {
    const [connection] = await server.store.collection('connections').findBy('name', 'drive');
    if (connection === undefined) throw new Error('there is no such connection');
    const expires_at = Math.floor(Date.now() / 1000) + seconds;
    const response = { access_token: `of-${upstreamId}`, scope: 'files.read', expires_at, ...grant };
    // One after the other, with a clock that shows the order.
    const deps = { store: server.store, wallClock: () => Date.now() + ++connected };
    return storeConnectedAccount(deps, userId, connection as never, {
      upstreamId,
      grant: response,
      requestedScopes: [],
    });
  };
  const exchange = (subject_token: string, more: object = {}, client: object = web) =>
    token(agent(), {
      ...client,
      grant_type: GRANT,
      connection: 'drive',
      subject_token,
      subject_token_type: REFRESH_TOKEN,
      ...more,
    });

  it('is issued for a refresh token, which stays valid, and for an access token; for the named account, or else the first', async () => {
    const own = await tokens();
    await connect('ada', {});
    await connect('work', {});
    const answer = await exchange(own.refresh_token, {
      requested_token_type: 'http://auth0.com/oauth/token-type/federated-connection-access-token',
    });
    expect(answer.status, answer.text).to.equal(200);
    const { expires_in, ...rest } = answer.json();
    expect(rest).to.deep.equal({
      access_token: 'of-ada',
      issued_token_type: 'http://auth0.com/oauth/token-type/federated-connection-access-token',
      token_type: 'Bearer',
      scope: 'files.read',
    });
    expect(expires_in).to.be.within(3000, 3600);
    expect(answer.headers['cache-control']).to.equal('no-store');
    const named = await exchange(own.access_token, { subject_token_type: ACCESS_TOKEN, login_hint: 'work' });
    expect(named.json().access_token, named.text).to.equal('of-work');
    expect((await exchange(own.refresh_token, { login_hint: 'grace' })).status).to.equal(401);
  });

  it('is issued to the API that an agent calls, for the access token that it has received, until the user ends the agent', async () => {
    await connect('ada', {});
    const { access_token } = await tokens();
    const by = (client_id: string) => ({ client_id, client_secret: `${client_id}-secret` });
    // As @auth0/ai sends it: in JSON, without login_hint.
    const asked = {
      subject_token_type: ACCESS_TOKEN,
      requested_token_type: 'http://auth0.com/oauth/token-type/federated-connection-access-token',
    };
    const given = await exchange(access_token, asked, by('tools'));
    expect(given.json(), given.text).to.include({ access_token: 'of-ada', scope: 'files.read' });
    expect((await exchange(access_token, asked, by('other-tools'))).json().error).to.equal('invalid_request');
    expect((await exchange(access_token, asked, by('no-vault'))).status).to.equal(403);
    const browser = agent();
    const page = await openAccount(browser, server, '/account/applications', { email, password: PASSWORD });
    await send(browser, page, '/account/applications', { application: 'web' });
    expect((await exchange(access_token, asked, by('tools'))).json().error).to.equal('invalid_request');
  });

  it('is issued for an access token that is bound to a key only to who has the key', async () => {
    await connect('ada', {});
    const [own, other] = await Promise.all([createProver(), createProver()]);
    const post = async (json: object, prover?: Prover) => {
      const proof = await prover?.proof('POST', `${server.url}/oauth/token`);
      return agent().request('/oauth/token', { json, headers: proof === undefined ? {} : { DPoP: proof } });
    };
    const parameters = { grant_type: 'password', username: email, password: PASSWORD, audience: API };
    const { access_token } = (await post({ ...web, ...parameters, scope: 'openid' }, own)).json();
    const body = { grant_type: GRANT, connection: 'drive', subject_token_type: ACCESS_TOKEN };
    const asked = { ...body, subject_token: access_token };
    expect((await post({ ...web, ...asked }, own)).json().access_token).to.equal('of-ada');
    expect((await post({ ...web, ...asked }, other)).status).to.equal(401);
    expect((await post({ ...web, ...asked })).status).to.equal(401);
    const received = { client_id: 'tools', client_secret: 'tools-secret', ...asked };
    expect((await post(received, other)).json().error).to.equal('invalid_grant');
  });

  it('is that of the last login, if the connection shares its tokens', async () => {
    const browser = createAgent(server);
    const loggedIn = async (connection: string) => {
      const { code = '' } = await logInUpstream(
        server,
        { connection, scope: 'openid offline_access' },
        browser,
      );
      const redirect_uri = WEB_CALLBACK;
      const answer = await token(agent(), { ...web, grant_type: 'authorization_code', code, redirect_uri });
      return answer.json().refresh_token as string;
    };
    provider.user = { id: `sharing-${people}` };
    const response = await exchange(await loggedIn('shared'), { connection: 'shared' });
    expect(response.status, response.text).to.equal(200);
    const [identity] = await server.users.identitiesOf(`oauth2|shared|sharing-${people}`);
    expect(response.json().access_token).to.equal(identity?.upstream?.access_token);
    // Another connection does not share its tokens, and this one does not share those of other users.
    const other = await loggedIn('login-only');
    expect((await exchange(other, { connection: 'login-only' })).status).to.equal(400);
    expect((await exchange(other, { connection: 'shared' })).status).to.equal(401);
  });

  it('is refreshed once after it expired, for any number of concurrent requests', async () => {
    const own = await tokens();
    provider.refreshTokens.push('of-ada-1');
    await connect('ada', { refresh_token: 'of-ada-1' }, -5);
    const before = provider.seen.length;
    const all = await Promise.all([1, 2, 3].map(() => exchange(own.refresh_token)));
    const issued = new Set(all.map((one) => one.json().access_token));
    expect(issued.size, all[0]?.text).to.equal(1);
    expect([...issued][0]).to.match(/^renewed-/);
    expect(provider.seen.length - before).to.equal(1);
  });

  it('reports that an account must be connected: when there is none, when it expired without a refresh token, or when the provider refuses', async () => {
    const own = await tokens();
    const none = await exchange(own.refresh_token);
    expect([none.status, none.json().error]).to.deep.equal([
      401,
      'federated_connection_refresh_token_not_found',
    ]);
    await connect('ada', {}, -5);
    expect((await exchange(own.refresh_token)).json().error).to.equal(
      'federated_connection_refresh_token_not_found',
    );
    await connect('ada', { refresh_token: 'taken back' }, -5);
    const failed = await exchange(own.refresh_token);
    expect([failed.status, failed.json().error]).to.deep.equal([
      401,
      'federated_connection_refresh_token_flow_failed',
    ]);
    expect(failed.text).not.to.contain('taken back');
  });

  it('is not issued for a token that is revoked, forged, of another application or type, or of a blocked user', async () => {
    const own = await tokens();
    await connect('ada', {});
    const refused = async (subject: string, more: object, client?: object) => {
      const answer = await exchange(subject, more, client);
      expect(answer.status, answer.text).to.be.oneOf([400, 401, 403]);
      expect(answer.text).not.to.contain('of-ada');
      return answer.json().error;
    };
    expect(await refused('made-up', {})).to.equal('invalid_grant');
    expect(await refused('', {})).to.equal('invalid_request');
    expect(await refused(own.access_token, {})).to.equal('invalid_grant');
    await refused(own.refresh_token, { subject_token_type: ACCESS_TOKEN });
    expect(await refused(own.refresh_token, { subject_token_type: `${TYPE}id_token` })).to.equal(
      'invalid_request',
    );
    expect(await refused(own.refresh_token, { requested_token_type: ACCESS_TOKEN })).to.equal(
      'invalid_request',
    );
    await refused(own.refresh_token, {}, { client_id: 'leeway' });
    await agent().request('/oauth/revoke', { form: { ...web, token: own.refresh_token } });
    expect(await refused(own.refresh_token, {}), 'revoked').to.equal('invalid_grant');
    const later = await tokens();
    await server.users.update(userId, { blocked: true });
    await refused(later.refresh_token, {});
    await refused(later.access_token, { subject_token_type: ACCESS_TOKEN });
  });

  for (const [what, end] of [
    ['its user was blocked', async () => void (await server.users.update(userId, { blocked: true }))],
    [
      'the refresh token was revoked',
      async (token: string) => void (await agent().request('/oauth/revoke', { form: { ...web, token } })),
    ],
    [
      'the account was disconnected',
      async () => {
        const accounts = server.store.collection('connectedAccounts');
        for (const { id } of await accounts.findBy('user', userId)) await accounts.delete(id);
      },
    ],
  ] as const)
    it(`is not issued where, while the provider renewed it, ${what}`, async () => {
      const own = await tokens();
      await connect('ada', { refresh_token: 'of-ada-1' }, -5);
      provider.token = async (response) => {
        await end(own.refresh_token);
        json(response, { access_token: 'of-ada-2', token_type: 'Bearer', expires_in: 3600 });
      };
      try {
        const answer = await exchange(own.refresh_token);
        expect(answer.status, answer.text).to.be.oneOf([400, 401]);
        expect(answer.text).not.to.contain('of-ada');
      } finally {
        provider.token = undefined;
      }
    });

  it('is never that of another user, whatever account is named', async () => {
    await connect('ada', {});
    const others = `vault-${++people}@example.test`;
    const created = await server.users.create(
      databaseUser({ connection: 'users', email: others, password: PASSWORD }),
    );
    if (!('user' in created)) throw new Error('the address is taken');
    const own = await tokens(web, { username: others });
    const [account] = await server.store.collection('connectedAccounts').findBy('user', userId);
    for (const login_hint of ['ada', userId, account?.id ?? '', email, '', '*']) {
      const answer = await exchange(own.refresh_token, { login_hint });
      expect([answer.status, answer.json().error], login_hint).to.deep.equal([
        401,
        'federated_connection_refresh_token_not_found',
      ]);
      expect(answer.text).not.to.contain('of-ada');
    }
  });

  it('is not issued, and nothing of it told, where the provider answers a renewal with something else', async () => {
    const own = await tokens();
    await connect('ada', { refresh_token: 'of-ada-1' }, -5);
    const answers: ((response: ServerResponse) => void)[] = [
      (response) => json(response, { access_token: { of: 'of-ada-2' }, token_type: 'Bearer' }),
      (response) => json(response, { access_token: 'of-ada-2', token_type: 'mac' }),
      (response) => json(response, [{ access_token: 'of-ada-2' }]),
      (response) =>
        json(response, { access_token: `of-ada-2${'x'.repeat(2_000_000)}`, token_type: 'Bearer' }),
      (response) => response.writeHead(302, { location: `${provider.url}/userinfo` }).end(),
      (response) => response.writeHead(200, { 'content-type': 'text/html' }).end('access_token=of-ada-2'),
      (response) => json(response, { error: 'of-ada-1', error_description: 'of-ada-1' }, 400),
    ];
    try {
      for (const [at, answerOf] of answers.entries()) {
        provider.token = answerOf;
        const answer = await exchange(own.refresh_token);
        expect([answer.status, answer.json().error], String(at)).to.deep.equal([
          401,
          'federated_connection_refresh_token_flow_failed',
        ]);
        expect(answer.text).not.to.contain('of-ada');
      }
      provider.token = undefined;
      provider.refreshTokens.push('of-ada-1');
      expect((await exchange(own.refresh_token)).status, 'the account is still there').to.equal(200);
    } finally {
      provider.token = undefined;
    }
  });

  it('is not issued to a former member for a token of the organization', async () => {
    await connect('ada', {});
    const own = await tokens(web, { organization: 'org_acme' });
    const byAccessToken = { subject_token_type: ACCESS_TOKEN };
    expect(payload(own.access_token).org_id).to.equal('org_acme');
    expect((await exchange(own.refresh_token)).status).to.equal(200);
    expect((await exchange(own.access_token, byAccessToken)).status).to.equal(200);
    expect(await server.store.collection('memberships').deleteBy('user', userId)).to.equal(1);
    for (const answer of [await exchange(own.refresh_token), await exchange(own.access_token, byAccessToken)])
      expect(answer.json()).to.include({ error: 'invalid_grant' });
    const alone = await tokens();
    expect((await exchange(alone.refresh_token)).status, 'for no organization').to.equal(200);
  });

  it('is not issued for a token that names an actor: the provider would take them for the user', async () => {
    await connect('ada', {});
    const [{ access_token: subject_token }, { access_token: actor_token }] = [await tokens(), await tokens()];
    const acted = await token(agent(), {
      ...web,
      grant_type: EXCHANGE,
      ...{ subject_token, subject_token_type: ACCESS_TOKEN, actor_token, actor_token_type: ACCESS_TOKEN },
    });
    const { access_token } = acted.json();
    expect(payload(access_token).act, acted.text).to.deep.equal({ sub: userId });
    const answer = await exchange(access_token, { subject_token_type: ACCESS_TOKEN });
    expect([answer.status, answer.json().error]).to.deep.equal([400, 'invalid_grant']);
    expect((await exchange(subject_token, { subject_token_type: ACCESS_TOKEN })).status).to.equal(200);
  });

  it('is not issued to an application that is public, a third party, without the grant, or without the connection', async () => {
    const own = await tokens();
    await connect('ada', {});
    const third = { client_id: 'third', client_secret: 'third-secret' };
    const outside = await exchange(own.refresh_token, {}, third);
    expect([outside.status, outside.json().error]).to.deep.equal([403, 'unauthorized_client']);
    const plain = await exchange(own.refresh_token, {}, { client_id: 'spa' });
    expect([plain.status, plain.json().error]).to.deep.equal([403, 'unauthorized_client']);
    for (const connection of ['login-only', 'nowhere', ''])
      expect((await exchange(own.refresh_token, { connection })).status, connection).to.equal(400);
    const wrong = await exchange(own.refresh_token, {}, { client_id: 'web', client_secret: 'wrong' });
    expect(wrong.status).to.equal(401);
  });

  it('logs successes and failures, without the token', async () => {
    const own = await tokens();
    await exchange(own.refresh_token);
    await connect('ada', {});
    await exchange(own.refresh_token);
    await server.tick(0);
    const { records } = await server.store.collection('logs').list({ limit: 500 });
    const tokenEvents = records.filter(({ type }) => type.startsWith('connected_token_'));
    expect(
      tokenEvents.some(({ type, user_id }) => type === 'connected_token_given' && user_id === userId),
    ).to.equal(true);
    expect(tokenEvents.some(({ type }) => type === 'connected_token_refused')).to.equal(true);
    expect(JSON.stringify(tokenEvents)).not.to.contain('of-ada');
  });
});
