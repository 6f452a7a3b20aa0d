// prompt=select_account with a session: the page on which the user keeps the account or logs in to another.
import { expect } from 'chai';
import { type Agent, type Answer, createAgent, readForm } from '../support/agent.ts';
import { byPassword, openPage, uidOf } from '../support/browser-logins.ts';
import { follow, payload, responseOf, SPA_CALLBACK, spaRequest, tenant, USER } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';

describe('keeping the account at prompt=select_account', () => {
  let server: TestServer;
  let browser: Agent;
  before(async () => {
    server = await startServer({ tenant });
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
  const claimsOf = (answer: Answer) => {
    expect(answer.location).to.match(new RegExp(`^${SPA_CALLBACK}`));
    return payload(responseOf(answer).id_token ?? '');
  };
  const choose = () => openPage(browser, server, idToken({ prompt: 'select_account' }));
  const logIn = async () => claimsOf(await byPassword(browser, server, idToken()));

  it('continues as that user, in the same session, without a password', async () => {
    const first = await logIn();
    server.tick(60_000);
    const page = await choose();
    expect(page.text).to.contain(USER.email);
    const { action, fields } = readForm(page, '_csrf');
    expect(fields).not.to.have.property('password');
    const kept = claimsOf(await follow(browser, await browser.request(action, { form: fields }), server.url));
    expect(kept).to.include({ sub: first.sub, sid: first.sid });
  });

  it('is offered at each request, and nothing is returned before the user has chosen', async () => {
    await logIn();
    for (let time = 0; time < 2; time++) {
      const page = await choose();
      expect(page.status).to.equal(200);
      expect(readForm(page, '_csrf').action).to.equal(`/u/${uidOf(page)}/account`);
    }
  });

  it('requires the CSRF token of the page', async () => {
    await logIn();
    const { action } = readForm(await choose(), '_csrf');
    for (const form of [{}, { _csrf: 'x' }]) {
      const answer = await browser.request(action, { form });
      expect(answer.status).to.equal(403);
      expect(answer.location).to.equal('');
    }
  });

  it('is refused in another browser', async () => {
    await logIn();
    const { action, fields } = readForm(await choose(), '_csrf');
    const answer = await createAgent(server).request(action, { form: fields });
    expect(answer.status).to.be.within(400, 403);
    expect(answer.location).to.equal('');
  });

  it('is neither offered nor accepted when nobody is logged in', async () => {
    const page = await choose();
    const { action, fields } = readForm(page, 'password');
    expect(action).to.match(/\/login$/);
    const kept = await browser.request(`/u/${uidOf(page)}/account`, { form: { _csrf: fields._csrf ?? '' } });
    expect(kept.location).not.to.contain('code=').and.not.to.contain('id_token=');
    const shown = kept.location === '' ? kept : await follow(browser, kept, server.url);
    expect(readForm(shown, 'password').action).to.equal(action);
  });

  it('does not satisfy a max_age that requires a new login', async () => {
    await logIn();
    server.tick(120_000);
    const page = await openPage(browser, server, idToken({ prompt: 'select_account', max_age: '60' }));
    const kept = readForm(page, '_csrf');
    const next = await follow(browser, await browser.request(kept.action, { form: kept.fields }), server.url);
    expect(readForm(next, 'password').action).to.match(/\/login$/);
  });
});
