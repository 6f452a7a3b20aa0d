// The session of the account page while the account is changed elsewhere.
import { expect } from 'chai';
import { codeOf, factors } from '../factors/tenant.ts';
import { type Agent, createAgent } from '../support/agent.ts';
import { follow, submitLogin, USER } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { openAccount, send } from './support.ts';
import { callsOf, tenant } from './tenant.ts';

describe('the session of the account page', () => {
  let server: TestServer;
  let agent: Agent;
  beforeEach(async () => {
    server = await startServer({
      tenant: {
        ...tenant,
        tenant: { ...tenant.tenant, account_page: { client_id: 'web' } },
        guardianFactors: factors('otp', 'sms', 'recovery-code'),
      },
    });
    agent = createAgent(server);
  });
  afterEach(() => server.stop());

  it('requires a new login after a passkey was added elsewhere', async () => {
    await openAccount(agent, server);
    const calls = callsOf(server);
    const started = await calls.beginPasskey(await calls.accountToken(USER.email));
    expect((await started.verify({ authn_response: started.authn_response })).status).to.equal(201);
    const loginPage = await follow(agent, await agent.get('/account'), server.url);
    expect(loginPage.status).to.equal(200);
    expect(loginPage.text).to.contain('name="password"');
    const page = await submitLogin(agent, server, loginPage);
    expect(page.status).to.equal(200);
    expect(page.text).to.contain('action="/account/profile/email"');
  });

  it('allows a further second factor after the first', async () => {
    await openAccount(agent, server, '/account/security');
    const add = '/account/security/add';
    const app = await agent.get(`${add}/otp`);
    const [, secret = ''] = /<code[^>]*>([A-Z2-7 ]+)<\/code>/.exec(app.text) ?? [];
    const saved = await send(agent, app, `${add}/otp`, { code: codeOf(secret.replaceAll(' ', '')) });
    const done = await send(agent, saved, `${add}/recovery-code-saved`, { saved: 'yes' });
    expect(done.location).to.contain('said=methodAdded');
    const next = await agent.get(`${add}/phone`);
    expect(next.status).to.equal(200);
    expect(next.text).to.contain('name="address"');
  });
});
