// Locked accounts, throttled addresses, and blocked users.
import { expect } from 'chai';
import { createAgent } from '../support/agent.ts';
import { logIn, responseOf, tenant, token, USER, WEB_CALLBACK, webRequest } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { callsWith, type ManagementCall, managementToken, startManaged } from './support.ts';

const CLIENT = { client_id: 'web', client_secret: 'web-secret' };

describe('blocks', () => {
  let server: TestServer;
  let admin: string;
  let call: ManagementCall;
  let people = 0;

  before(async () => {
    server = await startManaged({
      ...tenant,
      attackProtection: {
        rateLimits: tenant.attackProtection.rateLimits,
        bruteForceProtection: { max_attempts: 3 },
        suspiciousIpThrottling: { stage: { 'pre-login': { max_attempts: 8 } } },
      },
    });
    admin = await managementToken(server);
    call = callsWith(server, admin);
  });
  after(() => server.stop());

  const someone = async () => {
    const email = `block-${people++}@example.test`;
    const made = await call('POST', '/users', { connection: 'users', email, password: USER.password });
    const id = made.json().user_id as string;
    return { id, email, path: `/users/${encodeURIComponent(id)}` };
  };
  const login = (username: string, password = USER.password) =>
    token(createAgent(server), {
      grant_type: 'password',
      ...CLIENT,
      username,
      password,
      scope: 'openid offline_access',
    });
  const lock = async (email: string) => {
    for (let i = 0; i < 3; i++) await login(email, 'Wrong-Password-1');
    expect((await login(email)).status).to.equal(429);
  };

  it('of an account are listed by identifier and user, and removed, so that the owner can log in', async () => {
    const { id, email } = await someone();
    const byId = `/user-blocks/${encodeURIComponent(id)}`;
    const byName = `/user-blocks?identifier=${encodeURIComponent(email)}`;
    expect((await call('GET', byId)).json()).to.deep.equal({ blocked_for: [] });
    for (const path of [byId, byName]) {
      await lock(email);
      for (const at of [byId, byName]) {
        const { blocked_for } = (await call('GET', at)).json();
        expect(blocked_for).to.have.length(1);
        expect(blocked_for[0]).to.include({ identifier: email, connection: 'users' });
        expect(blocked_for[0].ip).to.match(/^(127\.0\.0\.1|::1|::ffff:127\.0\.0\.1)$/);
      }
      expect((await call('DELETE', path)).status).to.equal(204);
      expect((await call('GET', byId)).json()).to.deep.equal({ blocked_for: [] });
      expect((await login(email)).status).to.equal(200);
    }
    await call('DELETE', '/anomaly/blocks/ips/127.0.0.1');
    await call('DELETE', '/anomaly/blocks/ips/::1');
  });

  it('are rejected for unknown users, invalid parameters and missing scopes', async () => {
    expect((await call('GET', '/user-blocks/auth0%7Cnobody')).status).to.equal(404);
    expect((await call('DELETE', '/user-blocks/auth0%7Cnobody')).status).to.equal(404);
    expect((await call('GET', '/user-blocks')).status).to.equal(400);
    expect((await call('GET', '/anomaly/blocks/ips/nonsense')).status).to.equal(400);
    const reader = await managementToken(server, 'read:users');
    expect((await call('DELETE', '/user-blocks?identifier=x', undefined, reader)).status).to.equal(403);
    expect((await call('GET', '/anomaly/blocks/ips/192.0.2.1', undefined, reader)).status).to.equal(403);
  });

  it('of an address are shown and removed', async () => {
    const ip = '/anomaly/blocks/ips/';
    for (const address of ['127.0.0.1', '::1']) await call('DELETE', ip + address);
    for (let i = 0; i < 9; i++) await login(`nobody-${i}@example.test`, 'Wrong-Password-1');
    const { email } = await someone();
    expect((await login(email)).status).to.equal(429);
    const found = await Promise.all(['127.0.0.1', '::1'].map((one) => call('GET', ip + one)));
    expect(found.map(({ status }) => status).sort()).to.deep.equal([200, 404]);
    for (const address of ['127.0.0.1', '::1']) {
      expect((await call('DELETE', ip + address)).status).to.equal(204);
      expect((await call('GET', ip + address)).status).to.equal(404);
    }
    expect((await login(email)).status).to.equal(200);
  });

  describe('of a user', () => {
    it('end sessions and refresh tokens at once, and refuse further token requests', async () => {
      const { id, email, path } = await someone();
      const agent = createAgent(server);
      const { code } = responseOf(
        await logIn(agent, server, webRequest(), { email, password: USER.password }),
      );
      const exchanged = await token(agent, {
        grant_type: 'authorization_code',
        ...CLIENT,
        code,
        redirect_uri: WEB_CALLBACK,
      });
      expect(exchanged.status).to.equal(200);
      const { access_token } = exchanged.json();
      const { refresh_token } = (await login(email)).json();
      const silent = () =>
        agent.get(`/authorize?${new URLSearchParams({ ...webRequest(), prompt: 'none' })}`);
      expect(responseOf(await silent())).to.have.property('code');
      expect((await call('PATCH', path, { blocked: true })).json()).to.include({ blocked: true });
      expect(responseOf(await silent())).to.include({ error: 'login_required' });
      const refreshed = await token(agent, { grant_type: 'refresh_token', ...CLIENT, refresh_token });
      expect(refreshed.status).to.be.within(400, 403);
      const again = await login(email);
      expect(again.status).to.equal(403);
      expect(again.json()).to.deep.equal({ error: 'unauthorized', error_description: 'user is blocked' });
      const info = await agent.get('/userinfo', { authorization: `Bearer ${access_token}` });
      expect(info.status).to.be.within(400, 403);
      const left = await server.store.collection('artifacts').findBy('account', id);
      expect(left.filter(({ model }) => ['Session', 'RefreshToken'].includes(model))).to.deep.equal([]);
      const log = await server.store.collection('logs').list({ limit: 200 });
      expect(
        log.records.some(
          ({ type, details }) => type === 'sapi' && JSON.stringify(details).includes('"blocked":true'),
        ),
      ).to.equal(true);
      await call('PATCH', path, { blocked: false });
      expect((await login(email)).status).to.equal(200);
    });

    it('leave no session or refresh token of concurrent logins', async () => {
      const { id, email, path } = await someone();
      const logins = Array.from({ length: 6 }, () => login(email));
      const [patched, ...answers] = await Promise.all([call('PATCH', path, { blocked: true }), ...logins]);
      expect(patched.status).to.equal(200);
      for (const answer of answers) {
        if (answer.status !== 200) continue;
        const { refresh_token } = answer.json();
        const refreshed = await token(createAgent(server), {
          grant_type: 'refresh_token',
          ...CLIENT,
          refresh_token,
        });
        expect(refreshed.status).to.be.within(400, 403);
      }
      const left = await server.store.collection('artifacts').findBy('account', id);
      expect(left.filter(({ model }) => ['Session', 'RefreshToken'].includes(model))).to.deep.equal([]);
    });
  });
});
