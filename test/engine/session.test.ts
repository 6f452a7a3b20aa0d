import { expect } from 'chai';
import { createAgent } from '../support/agent.ts';
import {
  authorize,
  follow,
  logIn,
  payload,
  pkce,
  responseOf,
  spaRequest,
  tenant,
  webRequest,
} from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';

const HOUR = 3600_000;

describe('the lifetime of a session', () => {
  let server: TestServer;
  const { challenge } = pkce();
  beforeEach(async () => {
    server = await startServer({
      tenant: { ...tenant, tenant: { ...tenant.tenant, session_lifetime: 10, idle_session_lifetime: 2 } },
    });
  });
  afterEach(() => server.stop());

  const silent = (browser: ReturnType<typeof createAgent>) =>
    authorize(browser, spaRequest(challenge, { prompt: 'none' }));

  it("ends after the tenant's idle lifetime without use", async () => {
    const browser = createAgent(server);
    await logIn(browser, server, webRequest());
    server.tick(1.9 * HOUR);
    expect(responseOf(await silent(browser))).to.have.property('code');
    server.tick(2.1 * HOUR);
    expect(responseOf(await silent(browser))).to.include({ error: 'login_required' });
  });

  it("ends after the tenant's absolute lifetime, however often it is used", async () => {
    const browser = createAgent(server);
    await logIn(browser, server, webRequest());
    for (let i = 0; i < 6; i++) {
      server.tick(1.5 * HOUR);
      expect(responseOf(await silent(browser)), `after ${1.5 * (i + 1)} hours`).to.have.property('code');
    }
    server.tick(1.5 * HOUR);
    expect(responseOf(await silent(browser))).to.include({ error: 'login_required' });
  });

  it('ends with the browser where the tenant says so, from the next answer on, and outlives it otherwise', async () => {
    const browser = createAgent(server);
    const cookie = async (answer: { headers: { 'set-cookie'?: string[] } }) =>
      answer.headers['set-cookie']?.find((one) => one.startsWith('__Host-gatehouse_session='));
    await logIn(browser, server, webRequest());
    expect(await cookie(await silent(browser))).to.match(/; expires=\w{3}, \d{2} /);
    const change = (mode: string) =>
      server.store.collection('tenant').update('tenant', (record) => ({
        ...record,
        tenant: { ...record.tenant, session_cookie: { mode: mode as 'persistent' } },
      }));
    await change('non-persistent');
    const other = createAgent(server);
    await logIn(other, server, webRequest());
    for (const one of [browser, other]) {
      const answer = await silent(one);
      expect(responseOf(answer)).to.have.property('code');
      expect(await cookie(answer))
        .to.be.a('string')
        .and.not.match(/expires|max-age/i);
    }
    await change('persistent');
    expect(await cookie(await silent(browser))).to.match(/; expires=/);
    server.tick(2.1 * HOUR);
    expect(responseOf(await silent(other))).to.include({ error: 'login_required' });
  });

  it('does not satisfy a smaller max_age, and the new login has its own auth_time', async () => {
    const browser = createAgent(server);
    await logIn(browser, server, webRequest());
    server.tick(HOUR);
    const fresh = await authorize(browser, spaRequest(challenge, { prompt: 'none', max_age: '7200' }));
    expect(responseOf(fresh)).to.have.property('code');
    const stale = await authorize(browser, spaRequest(challenge, { prompt: 'none', max_age: '600' }));
    expect(responseOf(stale)).to.include({ error: 'login_required' });
    const again = await logIn(
      browser,
      server,
      spaRequest(challenge, { response_type: 'id_token', max_age: '600' }),
    );
    const claims = payload(responseOf(again).id_token!);
    expect(claims.iat - claims.auth_time).to.be.within(0, 5);
  });

  it('shows an error page, without a redirect, for a login page that was open too long', async () => {
    const browser = createAgent(server);
    const page = await follow(browser, await authorize(browser, webRequest()), server.url);
    expect(page.status).to.equal(200);
    const at = browser.cookies().find(({ name }) => name.includes('interaction'))?.path ?? '';
    server.tick(1.1 * HOUR);
    const late = await browser.get(at);
    expect(late.status).to.equal(400);
    expect(late.text).to.contain('expired');
  });
});
