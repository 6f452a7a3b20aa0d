// Second factors that an action names: one of them is required before the next action runs, in the same request.
import { expect } from 'chai';
import { callsOf, codeOf, unasked } from '../factors/tenant.ts';
import { type Agent, type Answer, createAgent, readForm } from '../support/agent.ts';
import { authorize, follow, logIn, payload, redeem, responseOf, USER, webRequest } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { actionsAt } from '../support/tenant.ts';
import { postLogin } from './support.ts';

const NS = 'https://example.test/';
const ACTIONS = {
  Before: postLogin(`api.transaction.setMetadata('n', (event.transaction.metadata.n ?? 0) + 1);`),
  Asks: postLogin(`if (event.client.client_id !== 'web') return;
     if (event.user.enrolledFactors.length === 0) api.authentication.enrollWithAny([{ type: 'otp' }, { type: 'email' }]);
     else api.authentication.challengeWith({ type: 'otp' }, { additionalFactors: [{ type: 'webauthn-roaming' }] });`),
  After: postLogin(`api.idToken.setCustomClaim('${NS}told', [event.transaction.metadata.n,
      event.authentication.methods.map(({ name }) => name).includes('mfa')]);`),
};

describe('second factors that an action names', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer({
      tenant: { ...unasked, ...actionsAt('post-login', ACTIONS) },
    });
  });
  after(() => server.stop());

  const claims = async (agent: Agent, done: Answer) => {
    const { code } = responseOf(done);
    expect(code, done.text).to.be.a('string');
    const got = await redeem(agent, code);
    return payload(got.json().id_token);
  };

  it('are asked of users who have them, with an open session, too, and earlier actions do not run again', async () => {
    const calls = callsOf(server);
    const email = 'mfa-1@example.test';
    const { secret } = await calls.enrollOtp(email, 'leeway');
    const agent = createAgent(server);
    const page = await logIn(agent, server, webRequest({ scope: 'openid' }), { ...USER, email });
    const form = readForm(page, 'code');
    // Neither another form of the page nor a silent request avoids it.
    const around = await agent.get(form.action.replace(/\/mfa\/.*$/, '/mfa/recovery-code'));
    expect(around.status).to.equal(400);
    const silent = await authorize(agent, webRequest({ prompt: 'none' }));
    expect(responseOf(silent)).to.include({ error: 'login_required' });
    const wrong = await agent.request(form.action, { form: { ...form.fields, code: '000000' } });
    expect(wrong.location).not.to.contain('code=');
    const given = await agent.request(form.action, {
      form: { ...form.fields, code: codeOf(secret, Date.now() + 30_000) },
    });
    const told = await claims(agent, await follow(agent, given, server.url));
    expect(told[`${NS}told`]).to.deep.equal([1, true]);
    // Another request asks again.
    const again = await follow(agent, await authorize(agent, webRequest()), server.url);
    expect(readForm(again, 'code').action).to.contain('/mfa/');
  });

  it('are enrolled by users who have none', async () => {
    const agent = createAgent(server);
    const page = await logIn(agent, server, webRequest({ scope: 'openid' }), {
      ...USER,
      email: 'mfa-2@example.test',
    });
    expect(page.text).to.contain('/mfa/otp').and.contain('/mfa/email').and.not.contain('/mfa/phone');
  });

  it('end the request where there is no browser, until one was given', async () => {
    const calls = callsOf(server);
    const email = 'mfa-3@example.test';
    const { secret } = await calls.enrollOtp(email, 'leeway');
    const refused = (await calls.login(email)).json();
    expect(refused.error).to.equal('mfa_required');
    const given = await calls.verify('otp', {
      mfa_token: refused.mfa_token,
      otp: codeOf(secret, Date.now() + 30_000),
    });
    expect(given.status, given.text).to.equal(200);
    expect(payload(given.json().id_token)[`${NS}told`]).to.deep.equal([1, true]);
  });
});
