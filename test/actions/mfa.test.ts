// A second factor that an action asks for is given once, during the login. The actions run again, and their event has
// it.
import { expect } from 'chai';
import { callsOf, codeOf, unasked } from '../factors/tenant.ts';
import { createAgent, readForm } from '../support/agent.ts';
import { authorize, follow, logIn, payload, redeem, responseOf, USER, webRequest } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { actionsAt } from '../support/tenant.ts';
import { postLogin } from './support.ts';

const CODE = postLogin(`
  const methods = event.authentication.methods.map(({ name, type }) => (type ? name + ' ' + type : name));
  if (event.client.client_id === 'web') api.multifactor.enable('any');
  api.idToken.setCustomClaim('https://example.test/methods', methods);`);

describe('a second factor that an action asks for', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer({
      tenant: { ...unasked, ...actionsAt('post-login', { 'Second factor': CODE }) },
    });
  });
  after(() => server.stop());

  it('is given at the pages, once for the session, and is in the event of the actions', async () => {
    const calls = callsOf(server);
    const user = 'mfa-1@example.test';
    const { secret } = await calls.enrollOtp(user, 'leeway');
    const agent = createAgent(server);
    const page = await logIn(agent, server, webRequest({ scope: 'openid' }), {
      email: user,
      password: USER.password,
    });
    const form = readForm(page, 'code');
    const enter = (code: string) => agent.request(form.action, { form: { ...form.fields, code } });
    const wrong = await enter('000000');
    expect(wrong.location).not.to.contain('code=');
    const again = await enter(codeOf(secret, Date.now() + 30_000));
    const done = await follow(agent, again, server.url);
    const { code } = responseOf(done);
    expect(code, done.text).to.be.a('string');
    const tokens = (await redeem(agent, code)).json();
    expect(payload(tokens.id_token)['https://example.test/methods']).to.deep.equal(['pwd', 'mfa otp']);
    const silent = await authorize(agent, webRequest({ prompt: 'none' }));
    expect(responseOf(silent)).to.have.property('code');
  });

  it('is given at the token endpoint, with the token of the error', async () => {
    const calls = callsOf(server);
    const user = 'mfa-2@example.test';
    const { secret } = await calls.enrollOtp(user, 'leeway');
    const refused = await calls.login(user);
    expect(refused.json().error).to.equal('mfa_required');
    const { mfa_token } = refused.json();
    const given = await calls.verify('otp', { mfa_token, otp: codeOf(secret, Date.now() + 30_000) });
    expect(given.status, given.text).to.equal(200);
    expect(payload(given.json().id_token)['https://example.test/methods']).to.include('mfa');
  });
});
