// Token introspection by APIs (RFC 7662).
import { expect } from 'chai';
import { callApi, startManaged } from '../management/support.ts';
import { createAgent } from '../support/agent.ts';
import {
  API,
  authorize,
  follow,
  PASSWORD_REQUEST,
  payload,
  redeem,
  responseOf,
  submitLogin,
  tenant,
  token,
  USER,
  webRequest,
} from '../support/flows.ts';
import { resetPassword } from '../support/reset.ts';
import type { TestServer } from '../support/server.ts';

const ownTenant = {
  ...tenant,
  clients: [
    ...tenant.clients,
    api('things', API),
    api('hs256-things', 'hs256-api'),
    { ...api('public', API), client_secret: undefined, token_endpoint_auth_method: 'none' },
    { ...api('web-of-api', API), app_type: 'regular_web' },
    api('of-nothing', 'https://no-such-api.test/'),
  ],
};

function api(id: string, identifier: string) {
  return {
    client_id: id,
    name: id,
    app_type: 'resource_server',
    client_secret: `${id}-secret`,
    resource_server_identifier: identifier,
  };
}

describe('introspection', () => {
  let server: TestServer;
  beforeEach(async () => {
    server = await startManaged(ownTenant);
  });
  afterEach(() => server.stop());

  const tokens = async (over: Record<string, string | undefined> = {}) =>
    (
      await token(createAgent(server), {
        ...PASSWORD_REQUEST,
        scope: 'openid read:things offline_access',
        audience: API,
        ...over,
      })
    ).json();
  const ask = (value: string | undefined, client = 'things', secret = `${client}-secret`) =>
    createAgent(server).request('/oauth/introspect', {
      form: {
        client_id: client,
        ...(secret === '' ? {} : { client_secret: secret }),
        ...(value === undefined ? {} : { token: value }),
      },
    });

  it('returns the claims of a user’s token for the API', async () => {
    const { access_token } = await tokens();
    const { azp, ...claims } = payload(access_token);
    const answer = await ask(access_token);
    expect(answer.status).to.equal(200);
    expect(answer.headers['cache-control']).to.equal('no-store');
    expect(answer.json()).to.deep.equal({ active: true, token_type: 'Bearer', client_id: azp, ...claims });
  });

  it('accepts HTTP Basic, client_credentials tokens, and tokens signed with the API’s secret', async () => {
    const machine = await token(createAgent(server), {
      grant_type: 'client_credentials',
      client_id: 'm2m',
      client_secret: 'm2m-secret',
      audience: API,
    });
    const answer = await createAgent(server).request('/oauth/introspect', {
      form: { token: machine.json().access_token },
      headers: { authorization: `Basic ${Buffer.from('things:things-secret').toString('base64')}` },
    });
    expect(answer.json()).to.include({ active: true, sub: 'm2m@clients', scope: 'read:things' });
    const { access_token } = await tokens({ audience: 'hs256-api', scope: 'read' });
    expect((await ask(access_token, 'hs256-things')).json()).to.include({ active: true, scope: 'read' });
  });

  it('answers only { active: false } for every other token', async () => {
    const { access_token, id_token, refresh_token } = await tokens();
    const other = await tokens({ audience: 'urn:rfc9068', scope: 'read' });
    const opaque = await tokens({ audience: undefined, scope: 'openid' });
    const hs256 = await tokens({ audience: 'hs256-api', scope: 'read' });
    const [head, body] = access_token.split('.');
    const unsigned = `${Buffer.from('{"alg":"none"}').toString('base64url')}.${body}.`;
    const wrong = [other.access_token, opaque.access_token, hs256.access_token, id_token, refresh_token];
    for (const value of [...wrong, unsigned, `${head}.${body}.AAAA`, 'nonsense', 'a.b.c']) {
      const answer = await ask(value);
      expect([answer.status, answer.json()]).to.deep.equal([200, { active: false }]);
    }
    expect((await ask(access_token, 'hs256-things')).json()).to.deep.equal({ active: false });
  });

  it('answers { active: false } when the token has expired, and while its user is blocked', async () => {
    const { access_token } = await tokens();
    const { sub } = payload(access_token);
    await server.users.update(sub, { blocked: true });
    expect((await ask(access_token)).json()).to.deep.equal({ active: false });
    await server.users.update(sub, { blocked: false });
    expect((await ask(access_token)).json()).to.include({ active: true });
    server.tick(3_601_000);
    expect((await ask(access_token)).json()).to.deep.equal({ active: false });
  });

  it('answers { active: false } once the user has recovered the account by a new password', async () => {
    const { access_token } = await tokens();
    server.tick(2_000);
    await resetPassword(server, USER.email, 'Quite-Another-Word-1');
    expect((await ask(access_token)).json()).to.deep.equal({ active: false });
    server.tick(2_000);
    const again = await tokens({ password: 'Quite-Another-Word-1' });
    expect((await ask(again.access_token)).json()).to.include({ active: true });
  });

  it('answers { active: false } once all access of the user was ended, also when the user may log in again', async () => {
    const { access_token } = await tokens();
    server.tick(2_000);
    const path = `/users/${encodeURIComponent(payload(access_token).sub)}`;
    for (const blocked of [true, false])
      expect((await callApi(server, 'PATCH', path, { blocked })).status).to.equal(200);
    expect((await ask(access_token)).json()).to.deep.equal({ active: false });
    server.tick(2_000);
    expect((await ask((await tokens()).access_token)).json()).to.include({ active: true });
  });

  it('answers { active: false } after a logout, unless there is a refresh token, after its revocation, and after the end', async () => {
    const browser = createAgent(server);
    const loggedIn = async (scope: string) => {
      const request = webRequest({ audience: API, scope });
      const begun = await follow(browser, await authorize(browser, request), server.url);
      const answer = begun.status === 200 ? await submitLogin(browser, server, begun) : begun;
      const { code } = responseOf(answer);
      return (await redeem(browser, code)).json();
    };
    const kept = await loggedIn('openid read:things offline_access');
    const ofSession = await loggedIn('openid read:things');
    await browser.get('/v2/logout?client_id=web');
    expect((await ask(ofSession.access_token)).json()).to.deep.equal({ active: false });
    expect((await ask(kept.access_token)).json()).to.include({ active: true });
    const secret = { client_id: 'web', client_secret: 'web-secret' };
    await browser.request('/oauth/revoke', { form: { ...secret, token: kept.refresh_token } });
    expect((await ask(kept.access_token)).json()).to.deep.equal({ active: false });
    const { access_token } = await tokens();
    server.tick(7_201_000);
    expect((await ask(access_token)).json()).to.deep.equal({ active: false });
  });

  it('refuses every client but the confidential client of an API', async () => {
    const { access_token } = await tokens();
    expect((await ask(access_token, 'things', 'wrong')).status).to.equal(401);
    expect((await ask(access_token, 'nobody')).json()).to.include({ error: 'invalid_client' });
    for (const client of ['web', 'web-of-api', 'of-nothing'])
      expect((await ask(access_token, client)).json()).to.include({ error: 'unauthorized_client' });
    expect((await ask(access_token, 'public', '')).json()).to.include({
      error: 'unauthorized_client',
    });
    expect((await ask(undefined)).json()).to.include({ error: 'invalid_request' });
  });

  it('is announced in the metadata', async () => {
    const { introspection_endpoint } = (
      await createAgent(server).get('/.well-known/openid-configuration')
    ).json();
    expect(introspection_endpoint).to.equal(`${server.url}/oauth/introspect`);
  });

  // Last: it deletes the user.
  it('answers { active: false } once the user of the token is deleted', async () => {
    const { access_token } = await tokens();
    expect((await ask(access_token)).json()).to.include({ active: true });
    await server.users.remove(payload(access_token).sub);
    expect((await ask(access_token)).json()).to.deep.equal({ active: false });
  });
});
