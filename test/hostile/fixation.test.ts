// A waiting request belongs to the browser that made it. A sibling sub-domain can plant the engine's own cookies,
// because `__Secure-` does not bind them to the host. It must neither have its request completed by somebody else, nor
// make somebody else's browser finish a login of its own.
import { expect } from 'chai';
import { codeOf, factors, tenant } from '../factors/tenant.ts';
import { type Agent, type Answer, createAgent, readForm } from '../support/agent.ts';
import { openPage, uidOf } from '../support/browser-logins.ts';
import { authorize, follow, responseOf, submitLogin, USER, webRequest } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';

const MFA = 'http://schemas.openid.net/pape/policies/2007/06/multi-factor';

describe('a waiting request', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer({
      tenant: { ...tenant, guardianFactors: factors('otp'), guardianPolicies: { policies: [] } },
    });
  });
  after(() => server.stop());

  /** Adds the cookies that a sibling sub-domain can set to those of the browser. */
  const planted = (victim: Agent, attacker: Agent) => {
    const canBePlanted = attacker.cookies().filter(({ name }) => !name.startsWith('__Host-'));
    return [...canBePlanted, ...victim.cookies()].map(({ name, value }) => `${name}=${value}`).join('; ');
  };
  const isLoggedIn = async (agent: Agent) => {
    const answer = await authorize(agent, webRequest({ prompt: 'none' }));
    return 'code' in responseOf(answer);
  };
  const refused = (answer: Answer) => {
    expect(answer.status, answer.text).to.equal(400);
    expect(answer.text).to.contain('This page has expired');
  };
  const filledIn = (page: Answer) => {
    const { action, fields } = readForm(page, 'password');
    return { action, form: { ...fields, username: USER.email, password: USER.password } };
  };

  it('is neither shown nor answered in another browser, whatever cookies are planted there', async () => {
    const [attacker, victim] = [createAgent(server), createAgent(server)];
    const page = await openPage(attacker, server, webRequest());
    const uid = uidOf(page);
    // The victim's browser knows our pages, so it has a token for forms.
    const own = readForm(await openPage(victim, server, webRequest()), '_csrf').fields;
    const pages = server.tenant.routes.filter(({ path }) => path.startsWith('/u/:uid'));
    expect(pages.length).to.be.above(10);
    for (const { methods, path } of pages) {
      const at = path
        .replace(':uid', uid)
        .replace(':connection', 'email')
        .replace(':step', 'login')
        .replace(':way', 'otp');
      for (const method of methods) {
        const form = { ...own, username: USER.email, password: USER.password, decision: 'accept' };
        const headers = { cookie: planted(victim, attacker) };
        refused(await victim.request(at, { method, headers, ...(method === 'POST' && { form }) }));
      }
    }
    expect(await isLoggedIn(attacker)).to.equal(false);
  });

  it("is not resumed in another browser, so nobody is logged in to somebody else's account", async () => {
    const [attacker, victim] = [createAgent(server), createAgent(server)];
    const { action, form } = filledIn(await openPage(attacker, server, webRequest()));
    const { location } = await attacker.request(action, { form });
    expect(location).to.contain('/authorize/');
    for (const address of [location, `${server.url}/authorize/${'a'.repeat(21)}`]) {
      refused(await victim.get(address, { cookie: planted(victim, attacker) }));
    }
    expect(await isLoggedIn(victim)).to.equal(false);
    // In its own browser it is.
    expect(responseOf(await attacker.get(location))).to.have.property('code');
  });

  it('is not resumed at the address of another request of the same browser', async () => {
    const browser = createAgent(server);
    const { action, form } = filledIn(await openPage(browser, server, webRequest()));
    const { location } = await browser.request(action, { form });
    const other = uidOf(await openPage(browser, server, webRequest()));
    const cookie = browser
      .cookies()
      .filter(({ path }) => path === '/' || location.endsWith(path))
      .map(({ name, value }) => `${name}=${value}`)
      .join('; ');
    refused(await browser.get(`/authorize/${other}`, { cookie }));
    expect(responseOf(await browser.get(location))).to.have.property('code');
  });

  it('stays bound at every step of the login', async () => {
    const [browser, thief] = [createAgent(server), createAgent(server)];
    const request = {
      ...webRequest({ client_id: 'third', redirect_uri: 'https://third.example.test/callback' }),
      acr_values: MFA,
    };
    const first = await openPage(browser, server, request);
    const step = await submitLogin(browser, server, first, {
      email: 'mfa-3@example.test',
      password: USER.password,
    });
    const secret = /[A-Z2-7]{32}/.exec(step.text.replaceAll(/(?<=[A-Z2-7]{4}) (?=[A-Z2-7]{4})/g, ''))![0];
    refused(await thief.get(`/u/${uidOf(step)}/mfa`, { cookie: planted(thief, browser) }));
    const { action, fields } = readForm(step, 'code');
    const form = { ...fields, code: codeOf(secret) };
    const consent = await follow(browser, await browser.request(action, { form }), server.url);
    expect(consent.text).to.contain('decision');
    refused(await thief.get(`/u/${uidOf(consent)}`, { cookie: planted(thief, browser) }));
    const given = readForm(consent, '_csrf');
    const posted = await browser.request(given.action, { form: { ...given.fields, decision: 'accept' } });
    refused(await thief.get(posted.location, { cookie: planted(thief, browser) }));
    const back = await follow(browser, posted, server.url);
    expect(responseOf(back)).to.have.property('code');
    expect(browser.cookies().filter(({ name }) => name.includes('_login_'))).to.deep.equal([]);
  });

  it('is independent of others in the same browser, even of concurrent ones', async () => {
    const browser = createAgent(server);
    const pages = await Promise.all(
      Array.from({ length: 8 }, () => openPage(browser, server, webRequest({ prompt: 'login' }))),
    );
    for (const page of pages) {
      // A page that was opened first may have the form token of one that was opened at the same time.
      const fresh = await browser.get(`/u/${uidOf(page)}/login`);
      expect(responseOf(await submitLogin(browser, server, fresh))).to.have.property('code');
    }
  });

  it('is forgotten, the oldest first, when too many wait in one browser', async () => {
    const browser = createAgent(server);
    const pages: Answer[] = [];
    for (let i = 0; i < 24; i++) pages.push(await openPage(browser, server, webRequest()));
    expect(browser.cookies().filter(({ name }) => name.includes('_login_'))).to.have.length(20);
    refused(await browser.get(`/u/${uidOf(pages[0] as Answer)}`));
    expect(responseOf(await submitLogin(browser, server, pages[4] as Answer))).to.have.property('code');
  });
});
