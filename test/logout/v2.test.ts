import { expect } from 'chai';
import { createAgent } from '../support/agent.ts';
import {
  authorize,
  logIn,
  payload,
  redeem,
  responseOf,
  THIRD_CALLBACK,
  token,
  webRequest,
} from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';
import {
  events,
  HTML,
  isLoggedIn,
  logInAtTwo,
  logoutTenant,
  moreTokens,
  SPA_HOME,
  stored,
  TENANT_HOME,
  v2,
  WEB_HOME,
} from './support.ts';

describe('GET /v2/logout', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer({ tenant: logoutTenant() });
  });
  after(() => server.stop());

  describe('the redirect', () => {
    const goes = async (params: Record<string, string>) => {
      const answer = await v2(createAgent(server), params, HTML);
      return { status: answer.status, location: answer.headers.location };
    };

    it("goes with client_id to a returnTo of the application's list, exactly as sent", async () => {
      expect(await goes({ client_id: 'spa', returnTo: SPA_HOME })).to.deep.equal({
        status: 302,
        location: SPA_HOME,
      });
      expect(await goes({ client_id: 'web', returnTo: 'com.example.web://out' })).to.include({
        location: 'com.example.web://out',
      });
    });

    it("is refused with client_id to a returnTo of the tenant's list or another application's", async () => {
      for (const returnTo of [TENANT_HOME, WEB_HOME]) {
        expect(await goes({ client_id: 'spa', returnTo })).to.deep.equal({
          status: 400,
          location: undefined,
        });
      }
    });

    it("goes without client_id to a returnTo of the tenant's list, not of an application's", async () => {
      expect(await goes({ returnTo: TENANT_HOME })).to.include({ status: 302, location: TENANT_HOME });
      expect(await goes({ returnTo: SPA_HOME })).to.include({ status: 400 });
    });

    it('goes with client_id alone to the first URL of its list', async () => {
      expect(await goes({ client_id: 'spa' })).to.include({ status: 302, location: SPA_HOME });
      expect(await goes({ client_id: 'web', returnTo: '' })).to.include({ location: WEB_HOME });
    });

    it("goes without parameters to the first URL of the tenant's list", async () => {
      expect(await goes({})).to.include({ status: 302, location: TENANT_HOME });
    });

    it('is replaced by our own page for a client_id with an empty list', async () => {
      const answer = await v2(createAgent(server), { client_id: 'leeway' }, HTML);
      expect(answer.status).to.equal(200);
      expect(answer.text).to.contain('You are logged out');
    });

    it('is replaced by OK for a request that does not accept HTML', async () => {
      const answer = await v2(createAgent(server), { client_id: 'leeway' });
      expect(answer).to.include({ status: 200, text: 'OK' });
    });

    it('is refused with an unknown client_id', async () => {
      expect(await goes({ client_id: 'nobody', returnTo: SPA_HOME })).to.include({ status: 400 });
    });

    it('is refused when a parameter is sent twice', async () => {
      const twice = `/v2/logout?returnTo=${TENANT_HOME}&returnTo=https://evil.example`;
      expect((await createAgent(server).get(twice)).status).to.equal(400);
    });

    it('ignores further parameters that SDKs send', async () => {
      const answer = await createAgent(server).get(
        `/v2/logout?client_id=spa&returnTo=${encodeURIComponent(SPA_HOME)}&auth0Client=e30&federated`,
      );
      expect(answer).to.include({ status: 302 });
      expect(answer.headers.location).to.equal(SPA_HOME);
    });
  });

  describe('a returnTo that is not allowed', () => {
    it('is answered with a page that names the rule, escaped', async () => {
      const evil = 'https://evil.example/<script>alert(1)</script>';
      const answer = await v2(createAgent(server), { returnTo: evil }, HTML);
      expect(answer.status).to.equal(400);
      expect(answer.headers['content-type']).to.match(/^text\/html/);
      expect(answer.headers.location).to.equal(undefined);
      expect(answer.text).to.contain('The &#34;returnTo&#34; querystring parameter');
      expect(answer.text).to.contain('is not defined as a valid URL in &#34;Allowed Logout URLs&#34;.');
      expect(answer.text).not.to.contain('<script>alert');
    });

    it('keeps the session, and is logged', async () => {
      const browser = createAgent(server);
      await logInAtTwo(browser, server);
      expect((await v2(browser, { returnTo: 'https://evil.example' })).status).to.equal(400);
      expect(await isLoggedIn(browser)).to.equal(true);
      await server.tenant.close();
      expect(await events(server)).to.include('flo');
    });
  });

  describe('the session', () => {
    it('ends for all applications, and its cookie is removed', async () => {
      const browser = createAgent(server);
      await logInAtTwo(browser, server);
      const answer = await v2(browser, { client_id: 'spa', returnTo: SPA_HOME });
      expect(answer.headers.location).to.equal(SPA_HOME);
      expect(browser.cookies().map(({ name }) => name)).not.to.include('__Host-gatehouse_session');
      expect(await isLoggedIn(browser)).to.equal(false);
    });

    it('is removed from the store, not only the cookie', async () => {
      const browser = createAgent(server);
      await logInAtTwo(browser, server);
      const cookie = browser.cookies().find(({ name }) => name === '__Host-gatehouse_session');
      await v2(browser, { client_id: 'spa' });
      const stolen = createAgent(server);
      const answer = await stolen.get(`/authorize?${new URLSearchParams(webRequest({ prompt: 'none' }))}`, {
        cookie: `__Host-gatehouse_session=${cookie?.value}`,
      });
      expect(responseOf(answer)).to.include({ error: 'login_required' });
    });

    it('stays in other browsers of the user', async () => {
      const [here, there] = [createAgent(server), createAgent(server)];
      await logInAtTwo(here, server);
      await logInAtTwo(there, server);
      await v2(here, { client_id: 'spa' });
      expect(await isLoggedIn(there)).to.equal(true);
    });

    it('ends with its codes and tokens, except refresh tokens of offline_access', async () => {
      const browser = createAgent(server);
      const { code } = responseOf(await logIn(browser, server, webRequest()));
      const bound = await moreTokens(browser);
      const lasting = await moreTokens(browser, { scope: 'openid offline_access' });
      expect((await userinfo(server, bound.access_token)).status).to.equal(200);
      await v2(browser, { client_id: 'spa' });

      const late = await redeem(createAgent(server), code);
      expect(late.json()).to.include({ error: 'invalid_grant' });
      expect((await userinfo(server, bound.access_token)).status).to.equal(401);
      expect((await userinfo(server, lasting.access_token)).status).to.equal(200);
      const renewed = await token(createAgent(server), {
        grant_type: 'refresh_token',
        client_id: 'spa',
        refresh_token: lasting.refresh_token,
      });
      expect(renewed.json()).to.include.keys('access_token', 'refresh_token');
      expect(payload(renewed.json().id_token).sid).to.equal(payload(lasting.id_token).sid);
    });

    it('is logged with user, address and application', async () => {
      const browser = createAgent(server);
      await logInAtTwo(browser, server);
      await v2(browser, { client_id: 'web' });
      await server.tenant.close();
      const { records } = await server.store.collection('logs').list({ limit: 1000 });
      expect(records.findLast(({ type }) => type === 'slo')).to.include({
        client_id: 'web',
        connection: 'users',
        ip: '127.0.0.1',
      });
    });

    it('may be missing: the browser is redirected, and nothing is logged', async () => {
      const before = (await events(server)).length;
      const answer = await v2(createAgent(server), { returnTo: TENANT_HOME });
      expect(answer.headers.location).to.equal(TENANT_HOME);
      await server.tenant.close();
      expect(await events(server)).to.have.length(before);
    });

    it('is not ended by a HEAD request', async () => {
      const browser = createAgent(server);
      await logInAtTwo(browser, server);
      const answer = await browser.request('/v2/logout?client_id=spa', { method: 'HEAD' });
      expect(answer.status).to.equal(405);
      expect(await isLoggedIn(browser)).to.equal(true);
    });
  });

  it('is answered 404 or 405 with any other method', async () => {
    const answer = await createAgent(server).request('/v2/logout', { form: { client_id: 'spa' } });
    expect(answer.status).to.be.within(404, 405);
  });

  it('removes everything of a session from the store', async () => {
    server.tick(40 * 86_400_000);
    expect(await stored(server)).to.deep.equal({});
    const browser = createAgent(server);
    await logInAtTwo(browser, server);
    await moreTokens(browser);
    // A request that waits for its user in this session.
    await authorize(browser, webRequest({ client_id: 'third', redirect_uri: THIRD_CALLBACK }));
    expect(await stored(server)).to.include.keys('Session', 'Grant', 'Interaction', 'AccessToken');
    await v2(browser, { client_id: 'spa' });
    expect(await stored(server)).to.deep.equal({ EndedSession: 1 });
    server.tick(121_000);
    expect(await stored(server)).to.deep.equal({});
  });
});

function userinfo(server: TestServer, accessToken: string) {
  return createAgent(server).get('/userinfo', { authorization: `Bearer ${accessToken}` });
}
