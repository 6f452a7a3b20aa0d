// Ending sessions for other reasons than a logout, such as a changed password or a blocked user.
import { expect } from 'chai';
import { createChallenges } from '../../src/capabilities/protection/challenges.ts';
import { createLoginTickets } from '../../src/capabilities/protection/login-tickets.ts';
import { createEventBudget } from '../../src/capabilities/protection/rate-limit.ts';
import { createSigning } from '../../src/capabilities/signing/signing.ts';
import { createCommits, createReadAhead } from '../../src/engine/base/commit.ts';
import { createAdapter } from '../../src/engine/provider/adapter.ts';
import { createEngine } from '../../src/engine/provider/provider.ts';
import {
  createLogoutChannels,
  type EndedSession,
  type LogoutChannel,
} from '../../src/engine/session/logout-channels.ts';
import { refreshTokenId } from '../../src/engine/session/refresh-families.ts';
import type { Sessions } from '../../src/engine/session/sessions.ts';
import { createLog } from '../../src/runtime/log.ts';
import { correlation } from '../../src/runtime/requester.ts';
import { systemRandom } from '../../src/runtime/secrets.ts';
import { openConfig } from '../../src/tenant/config.ts';
import { createEvents } from '../../src/tenant/events.ts';
import { isLoggedIn, logInAtTwo, logoutTenant, moreTokens, stored } from '../logout/support.ts';
import { createAgent, readForm } from '../support/agent.ts';
import { NO_CERTIFICATES, NO_DELEGATED_LOGINS, NO_SECOND_FACTOR } from '../support/engine-stubs.ts';
import { authorize, follow, payload, token, USER, webRequest } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';

describe('the sessions of a user', () => {
  let server: TestServer;
  let sessions: Sessions;
  const told: EndedSession[] = [];
  let userId: string;

  before(async () => {
    server = await startServer({ tenant: logoutTenant() });
    const log = createLog('silent');
    const channels: LogoutChannel[] = [
      {
        name: 'failing',
        notify: async () => {
          throw new Error('not today');
        },
      },
      {
        name: 'test',
        notify: async (session, browser) => {
          told.push(session);
          return browser === undefined ? undefined : `https://way.test/?then=${browser.returnTo}`;
        },
      },
    ];
    const logoutChannels = createLogoutChannels(channels, log);
    const { store, users, settings } = server;
    const challenges = createChallenges({ store, clock: Date.now, random: systemRandom });
    const config = await openConfig(store);
    const engine = await createEngine({
      ...NO_SECOND_FACTOR,
      ...NO_CERTIFICATES,
      ...NO_DELEGATED_LOGINS,
      connectionFault: async () => undefined,
      baseUrl: settings.baseUrl,
      issuer: settings.issuer,
      store,
      users,
      config,
      signing: createSigning({ store, config, clock: Date.now, commonName: 'localhost' }),
      clock: Date.now,
      wallClock: Date.now,
      random: systemRandom,
      correlation,
      log,
      challenges,
      tickets: createLoginTickets(challenges, systemRandom),
      grants: [],
      events: createEvents({
        store,
        clock: Date.now,
        random: systemRandom,
        log,
        budget: createEventBudget(Date.now),
      }),
      errorPage: async () => {},
      logoutChannels,
    });
    sessions = engine.sessions;
    userId = (await users.findInConnection({ name: 'users' }, USER.email))?.id ?? '';
  });
  after(() => server.stop());
  beforeEach(() => {
    told.length = 0;
  });
  afterEach(() => sessions.endAllOf(userId, { reason: 'session-revoked', refreshTokens: true }));

  const sidAt = async (browser: ReturnType<typeof createAgent>) =>
    String(payload((await moreTokens(browser)).id_token).sid);

  it('end in all browsers, and each is announced with its applications and the reason', async () => {
    const browsers = [createAgent(server), createAgent(server)];
    for (const browser of browsers) await logInAtTwo(browser, server);
    const sids = await Promise.all(browsers.map(sidAt));
    const count = await sessions.endAllOf(userId, { reason: 'password-changed', refreshTokens: false });
    expect(count).to.equal(2);
    for (const browser of browsers) expect(await isLoggedIn(browser)).to.equal(false);
    expect(told.map(({ sid }) => sid)).to.have.members(sids);
    for (const session of told) {
      expect(session).to.include({ userId, reason: 'password-changed' });
      expect(session.clientIds).to.have.members(['web', 'spa']);
    }
  });

  it('end except the one to keep, which keeps its tokens', async () => {
    const [here, there] = [createAgent(server), createAgent(server)];
    for (const browser of [here, there]) await logInAtTwo(browser, server);
    const keepSid = await sidAt(here);
    const kept = await moreTokens(here, { scope: 'openid offline_access' });
    const lost = await moreTokens(there, { scope: 'openid offline_access' });
    await sessions.endAllOf(userId, { reason: 'password-changed', keepSid, refreshTokens: true });
    expect(await isLoggedIn(here)).to.equal(true);
    expect(await isLoggedIn(there)).to.equal(false);
    expect(await renew(kept.refresh_token)).to.include.keys('access_token');
    expect(await renew(lost.refresh_token)).to.include({ error: 'invalid_grant' });
  });

  for (const refreshTokens of [true, false]) {
    it(`end ${refreshTokens ? 'with' : 'without'} refresh tokens, as asked`, async () => {
      const browser = createAgent(server);
      await logInAtTwo(browser, server);
      const { refresh_token } = await moreTokens(browser, { scope: 'openid offline_access' });
      const { refresh_token: withoutBrowser } = (
        await token(createAgent(server), {
          grant_type: 'password',
          client_id: 'leeway',
          client_secret: 'leeway-secret',
          username: USER.email,
          password: USER.password,
          scope: 'openid offline_access',
        })
      ).json();
      await sessions.endAllOf(userId, { reason: 'account-deactivated', refreshTokens });
      const key = refreshTokens ? 'error' : 'access_token';
      expect(await renew(refresh_token)).to.include.keys(key);
      expect(
        await renew(withoutBrowser, { client_id: 'leeway', client_secret: 'leeway-secret' }),
      ).to.include.keys(key);
    });
  }

  it('cannot be made by a login that waited while they ended', async () => {
    const thief = createAgent(server);
    const page = await follow(thief, await authorize(thief, webRequest()), server.url);
    const { action, fields } = readForm(page, 'password');
    const posted = await thief.request(action, {
      form: { ...fields, username: USER.email, password: USER.password },
    });
    expect(posted.location).to.contain('/authorize/');
    await sessions.endAllOf(userId, { reason: 'password-changed', refreshTokens: true });
    const late = await thief.get(posted.location);
    expect(late.status).to.equal(400);
    expect(await isLoggedIn(thief)).to.equal(false);
  });

  it('are not restored by simultaneous requests, and are announced once', async () => {
    for (let round = 0; round < 10; round++) {
      told.length = 0;
      const browser = createAgent(server);
      await logInAtTwo(browser, server);
      const sid = await sidAt(browser);
      // With a fixed cookie: each request sends the session as it was.
      const cookie = browser.cookies().find(({ name }) => name === '__Host-gatehouse_session')?.value;
      const request = () =>
        createAgent(server).get(`/authorize?${new URLSearchParams(webRequest({ prompt: 'none' }))}`, {
          cookie: `__Host-gatehouse_session=${cookie}`,
        });
      const racing = Array.from({ length: 6 }, request);
      await new Promise((resolve) => setImmediate(resolve));
      await Promise.all([
        ...racing,
        ...Array.from({ length: 3 }, () => sessions.end(sid, { reason: 'rp-logout' })),
      ]);
      expect(await isLoggedIn(browser)).to.equal(false);
      expect(told.filter((one) => one.sid === sid)).to.have.length(1);
    }
    const { Session = 0, AuthorizationCode = 0, Grant = 0 } = await stored(server);
    expect({ Session, AuthorizationCode, Grant }).to.deep.equal({
      Session: 0,
      AuthorizationCode: 0,
      Grant: 0,
    });
  });

  it('are not stored again by a request that read them before they ended', async () => {
    const browser = createAgent(server);
    await logInAtTwo(browser, server);
    const sid = await sidAt(browser);
    const artifacts = server.store.collection('artifacts');
    const [read] = await artifacts.findBy('uid', sid);
    const payload = structuredClone(read?.payload) as Record<string, unknown>;
    await sessions.end(sid, { reason: 'rp-logout' });
    const adapter = createAdapter({
      store: server.store,
      config: await openConfig(server.store),
      clock: Date.now,
      grantTypes: () => new Set(),
      ...NO_DELEGATED_LOGINS,
      commits: createCommits(server.store),
      ahead: createReadAhead(server.store, server.users),
    });
    await adapter('Session').upsert('again', payload, 60);
    for (const model of ['AuthorizationCode', 'Grant']) {
      await adapter(model).upsert('again', { jti: 'again', sessionUid: sid }, 60);
    }
    await adapter('Interaction').upsert('again', { jti: 'again', session: { uid: sid } } as never, 60);
    const again = await Promise.all(
      ['Session', 'AuthorizationCode', 'Grant', 'Interaction'].map((model) => adapter(model).find('again')),
    );
    expect(again).to.deep.equal([undefined, undefined, undefined, undefined]);
    // A refresh token that outlives the session is renewed.
    const refreshToken = refreshTokenId(systemRandom);
    await adapter('RefreshToken').upsert(refreshToken, { jti: refreshToken, sessionUid: sid }, 60);
    expect(await adapter('RefreshToken').find(refreshToken)).to.include({ sessionUid: sid });
    expect(await adapter('RefreshToken').find('again')).to.equal(undefined);
  });

  it('send the browser through the logout channels, although one of them fails', async () => {
    const browser = createAgent(server);
    await logInAtTwo(browser, server);
    const sid = await sidAt(browser);
    const leaving = { returnTo: 'https://www.example.test' };
    expect(await sessions.end(sid, { reason: 'rp-logout', browser: leaving, startedBy: 'sp' })).to.equal(
      'https://way.test/?then=https://www.example.test',
    );
    expect(told[0]).to.include({ sid, startedBy: 'sp' });
    // The session has ended already, so nothing is announced again.
    expect(await sessions.end(sid, { reason: 'rp-logout', browser: leaving })).to.equal(leaving.returnTo);
    expect(told).to.have.length(1);
  });

  const renew = async (
    refresh_token: string,
    client: Record<string, string> = { client_id: 'spa' },
  ): Promise<object> =>
    (await token(createAgent(server), { grant_type: 'refresh_token', refresh_token, ...client })).json();
});
