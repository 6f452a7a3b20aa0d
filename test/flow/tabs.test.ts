// Several tabs of one browser with a login in each: whatever one tab does to the session, the other continues.
import { expect } from 'chai';
import { type Agent, type Answer, createAgent, readForm } from '../support/agent.ts';
import { openPage } from '../support/browser-logins.ts';
import {
  authorize,
  follow,
  payload,
  responseOf,
  SPA_CALLBACK,
  spaRequest,
  submitLogin,
  tenant,
  USER,
  webRequest,
} from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';

const BOB = { email: 'bob@example.test', password: USER.password };
const THIRD = { client_id: 'third', redirect_uri: 'https://third.example.test/callback' };

describe('two tabs of one browser', () => {
  let server: TestServer;
  let browser: Agent;
  before(async () => {
    server = await startServer({
      tenant: {
        ...tenant,
        users: [...tenant.users, { ...BOB, connection: 'users', email_verified: true }],
      },
    });
  });
  after(() => server.stop());
  beforeEach(() => {
    browser = createAgent(server);
  });

  const idToken = (over: Record<string, string> = {}) =>
    spaRequest('', {
      response_type: 'id_token',
      code_challenge: undefined,
      code_challenge_method: undefined,
      ...over,
    });
  const open = (over: Record<string, string> = {}) => openPage(browser, server, idToken(over));
  const userOf = (answer: Answer) => {
    expect(answer.location, answer.text.slice(-900)).to.match(new RegExp(`^${SPA_CALLBACK}`));
    return payload(responseOf(answer).id_token ?? '').email;
  };
  const inSession = async () => userOf(await authorize(browser, idToken({ prompt: 'none' })));
  const press = async (page: Answer, more: Record<string, string> = {}) => {
    const { action, fields } = readForm(page, '_csrf');
    return follow(browser, await browser.request(action, { form: { ...fields, ...more } }), server.url);
  };

  it('can log in as two users, each with its own response, and the later one stays logged in', async () => {
    const [first, second] = [await open(), await open()];
    expect(userOf(await submitLogin(browser, server, first, USER))).to.equal(USER.email);
    expect(userOf(await submitLogin(browser, server, second, BOB))).to.equal(BOB.email);
    expect(await inSession()).to.equal(BOB.email);
  });

  it('can log in as two users while the answer of one is on its way back', async () => {
    const [first, second] = [await open(), await open()];
    const { action, fields } = readForm(second, 'password');
    // The second tab has answered; before its browser returns, the first logs in.
    const waiting = await browser.request(action, {
      form: { ...fields, username: BOB.email, password: BOB.password },
    });
    expect(userOf(await submitLogin(browser, server, first, USER))).to.equal(USER.email);
    expect(userOf(await follow(browser, waiting, server.url))).to.equal(BOB.email);
    expect(await inSession()).to.equal(BOB.email);
  });

  it('share one session when they log in as the same user', async () => {
    const [first, second] = [await open(), await open()];
    const sid = (answer: Answer) => payload(responseOf(answer).id_token ?? '').sid;
    const one = await submitLogin(browser, server, first, USER);
    const two = await submitLogin(browser, server, second, USER);
    expect([userOf(one), userOf(two)]).to.deep.equal([USER.email, USER.email]);
    expect(sid(two)).to.equal(sid(one));
  });

  it('continue when another user has logged in since they were opened with a session', async () => {
    await submitLogin(browser, server, await open(), USER);
    const [first, second] = [await open({ prompt: 'login' }), await open({ prompt: 'login' })];
    expect(userOf(await submitLogin(browser, server, first, BOB))).to.equal(BOB.email);
    expect(userOf(await submitLogin(browser, server, second, USER))).to.equal(USER.email);
    expect(await inSession()).to.equal(USER.email);
  });

  it('ask for a login when the chosen account has been logged out', async () => {
    await submitLogin(browser, server, await open(), USER);
    const choice = await open({ prompt: 'select_account' });
    await submitLogin(browser, server, await open({ prompt: 'login' }), BOB);
    const asked = await press(choice);
    expect(userOf(await submitLogin(browser, server, asked, USER))).to.equal(USER.email);
  });

  it('do not use the consent of one user for another', async () => {
    await submitLogin(browser, server, await open(), USER);
    const consent = await openPage(browser, server, webRequest({ ...THIRD, scope: 'openid email' }));
    expect(consent.text).to.contain('decision');
    await submitLogin(browser, server, await open({ prompt: 'login' }), BOB);
    const asked = await press(consent, { decision: 'accept' });
    expect(await server.store.collection('consents').count()).to.equal(0);
    const again = await submitLogin(browser, server, asked, BOB);
    expect(again.text).to.contain('decision');
    expect(responseOf(await press(again, { decision: 'accept' }))).to.have.property('code');
  });

  it('keep a consent that was given in an earlier session of the same user', async () => {
    await submitLogin(browser, server, await open(), USER);
    const consent = await openPage(browser, server, webRequest({ ...THIRD, scope: 'openid profile' }));
    const { action, fields } = readForm(consent, '_csrf');
    const waiting = await browser.request(action, { form: { ...fields, decision: 'accept' } });
    // Meanwhile the browser has lost its session and has another one of the same user.
    const other = createAgent(server);
    await submitLogin(other, server, await openPage(other, server, idToken()), USER);
    const session = other.cookies().find(({ name }) => name === '__Host-gatehouse_session')?.value;
    const cookie = browser
      .cookies()
      .map(({ name, value }) => `${name}=${name === '__Host-gatehouse_session' ? session : value}`)
      .join('; ');
    expect(responseOf(await browser.get(waiting.location, { cookie }))).to.have.property('code');
  });
});
