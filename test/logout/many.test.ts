import { expect } from 'chai';
import { createAgent } from '../support/agent.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { isLoggedIn, logInAtTwo, logoutTenant, moreTokens, stored, WEB_HOME } from './support.ts';

const MANY = 80;
/** Not all at once: a code is valid for a minute, and on a busy machine each would wait for all others. */
const AT_ONCE = 20;

describe(`${MANY} logins and logouts, ${AT_ONCE} at once,`, () => {
  let server: TestServer;
  before(async () => {
    // All requests come from one address here.
    const wide = { capacity: 100_000, perMinute: 100_000 };
    const names = ['login', 'hosted', 'authorize', 'logout', 'token'];
    const rateLimits = Object.fromEntries(names.map((name) => [name, wide]));
    server = await startServer({ tenant: { ...logoutTenant(), attackProtection: { rateLimits } } });
  });
  after(() => server.stop());

  it('leave nothing behind in the store', async () => {
    const counted = async () => ({
      artifacts: await stored(server),
      challenges: await server.store.collection('challenges').count(),
    });
    const before = await counted();
    let most = 0;
    const one = async (index: number): Promise<void> => {
      const browser = createAgent(server);
      await logInAtTwo(browser, server);
      expect(await moreTokens(browser)).to.include.keys('access_token', 'id_token');
      // Counting all records takes longer than a login.
      if (index % 20 === 0) most = Math.max(most, (await stored(server)).Session ?? 0);
      // Half of the logouts run beside a silent request.
      const [answer] = await Promise.all([
        browser.get(`/v2/logout?client_id=web&returnTo=${encodeURIComponent(WEB_HOME)}`),
        index % 2 === 0 ? isLoggedIn(createAgent(server)) : isLoggedIn(browser),
      ]);
      expect(answer.location).to.equal(WEB_HOME);
    };
    await Promise.all(
      Array.from({ length: AT_ONCE }, async (_, first) => {
        for (let index = first; index < MANY; index += AT_ONCE) await one(index);
      }),
    );
    expect(most, 'sessions at once').to.be.above(1);
    expect((await stored(server)).EndedSession).to.equal(MANY);
    // Records of ended sessions stay for requests that are under way.
    server.tick(121_000);
    expect(await counted()).to.deep.equal(before);
  });
});
