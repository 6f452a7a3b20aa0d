// A service provider that requests a second factor gets that of the hosted login.
import { expect } from 'chai';
import { codeOf, factors, tenant } from '../factors/tenant.ts';
import { createAgent, readForm } from '../support/agent.ts';
import { follow, submitLogin, USER } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { authnRequest, redirectQuery } from './messages.ts';
import { posted, samlClient } from './support.ts';

const REFEDS = 'https://refeds.org/profile/mfa';

describe('a SAML request for a second factor', () => {
  let server: TestServer;

  before(async () => {
    const [users, ...others] = tenant.databases;
    server = await startServer({
      tenant: {
        ...tenant,
        clients: [...tenant.clients, samlClient('saml')],
        databases: [{ ...users, enabled_clients: [...users!.enabled_clients, 'saml'] }, ...others],
        guardianFactors: factors('otp'),
        guardianPolicies: { policies: [] },
      },
    });
  });
  after(() => server.stop());

  const wanting = (context: string) =>
    `/samlp/saml?${redirectQuery(
      authnRequest({
        content: `<samlp:RequestedAuthnContext><saml:AuthnContextClassRef>${context}</saml:AuthnContextClassRef></samlp:RequestedAuthnContext>`,
      }),
    )}`;

  it('asks for it after the password, and is answered with the context that was met', async () => {
    const user = { email: 'mfa-0@example.test', password: USER.password };
    const agent = createAgent(server);
    const login = await follow(agent, await agent.get(wanting(REFEDS)), server.url);
    const step = await submitLogin(agent, server, login, user);
    expect(step.text).not.to.include('SAMLResponse');
    const enroll = step.text.includes('name="code"')
      ? step
      : await agent.get(/href="([^"]*otp[^"]*)"/.exec(step.text)![1]!);
    const secret = /[A-Z2-7]{32}/.exec(enroll.text.replaceAll(/(?<=[A-Z2-7]{4}) (?=[A-Z2-7]{4})/g, ''))![0];
    const { action, fields } = readForm(enroll, 'code');
    const form = { ...fields, code: codeOf(secret) };
    const done = await follow(agent, await agent.request(action, { form }), server.url);
    expect(posted(done).xml).to.include(`<saml:AuthnContextClassRef>${REFEDS}</saml:AuthnContextClassRef>`);
  });
});
