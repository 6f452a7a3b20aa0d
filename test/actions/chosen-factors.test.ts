// Second factors that an action names: several to choose from, those that the user has already, and remembered
// browsers.
import { expect } from 'chai';
import { callsOf, codeOf, unasked } from '../factors/tenant.ts';
import { type Agent, type Answer, createAgent, readForm } from '../support/agent.ts';
import { authorize, follow, logIn, payload, redeem, responseOf, USER, webRequest } from '../support/flows.ts';
import { nextMessageTo } from '../support/inbox.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { actionsAt } from '../support/tenant.ts';
import { postLogin } from './support.ts';

const NS = 'https://example.test/';
const ACTIONS = {
  Asks: postLogin(`const { authentication, multifactor } = api;
     switch (event.request.query['ext-ask']) {
       case 'any': return authentication.challengeWithAny([{ type: 'otp' }, { type: 'recovery-code' }]);
       case 'one of any': return authentication.challengeWithAny([{ type: 'phone' }, { type: 'otp' }]);
       case 'enroll otp': return authentication.enrollWith({ type: 'otp' });
       case 'enroll email': return authentication.enrollWith({ type: 'email' });
       case 'enroll phone': return authentication.enrollWith({ type: 'phone' });
       case 'remembered': return multifactor.enable('any', { allowRememberBrowser: true });
       case 'each time': return multifactor.enable('any');
       case 'both': multifactor.enable('any', { allowRememberBrowser: true }); return multifactor.enable('any');
     }`),
  After:
    postLogin(`api.idToken.setCustomClaim('${NS}methods', event.authentication.methods.map(({ name }) => name));
     api.idToken.setCustomClaim('${NS}factors', event.user.enrolledFactors.map(({ type }) => type).sort());`),
};

describe('second factors of an action', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer({
      tenant: { ...unasked, ...actionsAt('post-login', ACTIONS) },
    });
  });
  after(() => server.stop());

  const asking = (agent: Agent, email: string, ask: string) =>
    logIn(agent, server, webRequest({ scope: 'openid', prompt: 'login', 'ext-ask': ask }), {
      ...USER,
      email,
    });
  const claims = async (agent: Agent, done: Answer) => {
    const { code } = responseOf(done);
    expect(code, done.text).to.be.a('string');
    const got = await redeem(agent, code);
    return payload(got.json().id_token);
  };
  /** Enters a code and follows the response. */
  const give = async (agent: Agent, page: Answer, code: string, more: Record<string, string> = {}) => {
    const { action: to, fields } = readForm(page, 'code');
    const answer = await agent.request(to, { form: { ...fields, code, ...more } });
    return follow(agent, answer, server.url);
  };
  const next = (secret: string, steps = 1) => codeOf(secret, Date.now() + steps * 30_000);

  it('are offered as a choice where any of several will do, and asked for directly where the user has only one', async () => {
    const email = 'mfa-11@example.test';
    const { secret } = await callsOf(server).enrollOtp(email, 'leeway');
    const agent = createAgent(server);
    const choice = await asking(agent, email, 'any');
    expect(choice.text)
      .to.contain('/mfa/otp"')
      .and.contain('/mfa/recovery-code"')
      .and.not.contain('name="code"');
    const [, path = ''] = /href="([^"]*\/mfa\/otp)"/.exec(choice.text) ?? [];
    const done = await give(agent, await agent.get(path), next(secret));
    expect((await claims(agent, done))[`${NS}methods`]).to.include('mfa');
    const one = await asking(createAgent(server), email, 'one of any');
    expect(readForm(one, 'code').action).to.contain('/mfa/otp');
  });

  it('are asked for instead of enrolled when the user has them already', async () => {
    const email = 'mfa-12@example.test';
    const { secret } = await callsOf(server).enrollOtp(email, 'leeway');
    const agent = createAgent(server);
    const page = await asking(agent, email, 'enroll otp');
    expect(readForm(page, 'code').action).to.contain('/mfa/');
    // A silent request does not pass without it.
    const silent = await authorize(agent, webRequest({ prompt: 'none', 'ext-ask': 'enroll otp' }));
    expect(responseOf(silent)).to.have.property('error');
    expect((await claims(agent, await give(agent, page, next(secret))))[`${NS}methods`]).to.include('mfa');
  });

  it('are enrolled in addition to another one after that was given', async () => {
    const email = 'mfa-13@example.test';
    const { secret } = await callsOf(server).enrollOtp(email, 'leeway');
    const agent = createAgent(server);
    const own = await asking(agent, email, 'enroll email');
    expect(own.text).not.to.contain('/mfa/email');
    const enrolling = await give(agent, own, next(secret));
    const { action: to, fields } = readForm(enrolling, 'address');
    expect(to).to.contain('/mfa/email');
    const typed = await agent.request(to, { form: { ...fields, address: email } });
    const { code = '' } = await nextMessageTo(server, email);
    const done = await give(agent, typed, code);
    const told = await claims(agent, done);
    expect(told[`${NS}factors`]).to.include.members(['email', 'otp']);
    // The session may be in other hands by now, so a factor of before is required first.
    const request = webRequest({ scope: 'openid', 'ext-ask': 'enroll phone' });
    const later = await follow(agent, await authorize(agent, request), server.url);
    expect(later.text).to.contain('/mfa/').and.not.contain('/mfa/phone');
    const around = await agent.get(readForm(later, 'code').action.replace(/\/mfa\/.*$/, '/mfa/phone'));
    expect(around.status).to.equal(400);
  });

  it('are not asked for in a remembered browser if all actions that ask for one allow that', async () => {
    const email = 'mfa-14@example.test';
    const { secret } = await callsOf(server).enrollOtp(email, 'leeway');
    const agent = createAgent(server);
    const first = await asking(agent, email, 'remembered');
    await claims(agent, await give(agent, first, next(secret), { remember: 'yes' }));
    const again = await asking(agent, email, 'remembered');
    expect((await claims(agent, again))[`${NS}methods`]).not.to.include('mfa');
    for (const ask of ['each time', 'both'])
      expect(readForm(await asking(agent, email, ask), 'code').action).to.contain('/mfa/');
    const elsewhere = await asking(createAgent(server), email, 'remembered');
    expect(readForm(elsewhere, 'code').action).to.contain('/mfa/');
  });
});
