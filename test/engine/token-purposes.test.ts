// Tokens that this server signs are good for their own purpose only, whatever other reader they are sent to. The
// application and the API of these tests have one identifier, so that no audience tells their tokens apart.
import { expect } from 'chai';
import { managementToken, startManaged } from '../management/support.ts';
import { createAgent } from '../support/agent.ts';
import {
  authorize,
  tenant as base,
  logIn,
  payload,
  responseOf,
  token,
  USER,
  WEB_CALLBACK,
  webRequest,
} from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';

const BOTH = 'https://both.example.test/';
const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
const TYPE = 'urn:ietf:params:oauth:token-type:';
const KEEPER = { client_id: 'keeper', client_secret: 'keeper-secret' };
const SECRET = { client_id: BOTH, client_secret: 'both-secret' };

const tenant = {
  ...base,
  clients: [
    ...base.clients,
    {
      ...SECRET,
      name: 'Application',
      app_type: 'regular_web',
      callbacks: [WEB_CALLBACK],
      grant_types: ['authorization_code', 'refresh_token', EXCHANGE],
    },
    { ...KEEPER, name: 'The API itself', app_type: 'resource_server', resource_server_identifier: BOTH },
  ],
  databases: base.databases.map((one) => ({ ...one, enabled_clients: [...one.enabled_clients, BOTH] })),
  resourceServers: [
    ...base.resourceServers,
    { name: 'Both', identifier: BOTH, scopes: [{ value: 'read' }], allow_offline_access: true },
  ],
};

describe('a token of this server', () => {
  let server: TestServer;
  let tokens: { access_token: string; id_token: string; refresh_token: string };
  let agent: ReturnType<typeof createAgent>;
  let admin: string;
  before(async () => {
    server = await startManaged(tenant);
    admin = await managementToken(server);
    agent = createAgent(server);
    const wanted = webRequest({ client_id: BOTH, audience: BOTH, scope: 'read' });
    const { code } = responseOf(await logIn(agent, server, wanted, USER));
    const access = await token(agent, {
      grant_type: 'authorization_code',
      ...SECRET,
      code,
      redirect_uri: WEB_CALLBACK,
    });
    const again = webRequest({ client_id: BOTH, scope: 'openid offline_access' });
    const { code: second } = responseOf(await authorize(agent, again));
    const identity = await token(agent, {
      grant_type: 'authorization_code',
      ...SECRET,
      code: second,
      redirect_uri: WEB_CALLBACK,
    });
    const { id_token, refresh_token } = identity.json();
    tokens = { access_token: access.json().access_token, id_token, refresh_token };
  });
  after(() => server.stop());

  const bearer = (one: string) => ({ headers: { authorization: `Bearer ${one}` } });
  const exchanged = (kind: 'id_token' | 'access_token', subject_token: string, more: object = {}) =>
    token(agent, {
      grant_type: EXCHANGE,
      ...SECRET,
      subject_token,
      subject_token_type: TYPE + kind,
      ...more,
    });
  const introspected = (one: string) =>
    agent.request('/oauth/introspect', { form: { ...KEEPER, token: one } });

  it('is for one audience under both names', () => {
    for (const one of [tokens.access_token, tokens.id_token]) expect(payload(one).aud).to.equal(BOTH);
  });

  it('that is an access token is no ID token: as a hint, a subject, an actor, or a proof', async () => {
    const { access_token: one, id_token } = tokens;
    const hinted = await agent.get(`/oidc/logout?${new URLSearchParams({ id_token_hint: one })}`);
    expect(hinted.status).to.equal(400);
    expect((await exchanged('id_token', one)).status).to.equal(400);
    const actor = { actor_token: one, actor_token_type: `${TYPE}id_token` };
    expect((await exchanged('id_token', id_token, actor)).status).to.equal(400);
    const id = encodeURIComponent('auth0|somebody');
    const made = await agent.request('/api/v2/users', {
      json: {
        connection: 'users',
        user_id: 'somebody',
        email: 'some@example.test',
        password: 'Own-Password-1',
      },
      ...bearer(admin),
    });
    expect(made.status, made.text).to.equal(201);
    const linked = await agent.request(`/api/v2/users/${id}/identities`, {
      json: { link_with: one },
      ...bearer(admin),
    });
    expect(linked.status).to.equal(400);
  });

  it('that is an ID token is no access token: at APIs of ours, introspection, and as a subject or actor', async () => {
    const { id_token: one, access_token } = tokens;
    for (const path of [
      '/userinfo',
      '/me/v1/authentication-methods',
      '/api/v2/users/x',
      '/mfa/authenticators',
    ])
      expect((await agent.request(path, { method: 'GET', ...bearer(one) })).status, path).to.equal(401);
    expect((await introspected(access_token)).json().active).to.equal(true);
    expect((await introspected(one)).json()).to.deep.equal({ active: false });
    expect((await exchanged('access_token', one)).status).to.equal(400);
    const actor = { actor_token: one, actor_token_type: `${TYPE}access_token` };
    expect((await exchanged('access_token', access_token, actor)).status).to.equal(400);
  });

  it('that is a refresh token is neither', async () => {
    const { refresh_token: one } = tokens;
    expect((await agent.request('/userinfo', { method: 'GET', ...bearer(one) })).status).to.equal(401);
    expect((await introspected(one)).json()).to.deep.equal({ active: false });
    for (const kind of ['id_token', 'access_token'] as const)
      expect((await exchanged(kind, one)).status, kind).to.equal(400);
  });

  it('is accepted by the reader of its own kind', async () => {
    expect((await exchanged('id_token', tokens.id_token)).status).to.equal(200);
    expect((await exchanged('access_token', tokens.access_token)).status).to.equal(200);
  });
});
