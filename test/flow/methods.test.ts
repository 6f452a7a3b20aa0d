// The authentication methods of a login are known to the end, for each kind of login: a service provider that
// requests an authentication context (RequestedAuthnContext) gets them.
import { expect } from 'chai';
import { codeOf, factors, tenant } from '../factors/tenant.ts';
import { authnRequest, redirectQuery } from '../saml/messages.ts';
import { posted, samlClient } from '../saml/support.ts';
import { type Agent, createAgent, readForm } from '../support/agent.ts';
import {
  byCode,
  byLink,
  byPassword,
  bySignUp,
  openPage,
  REALM_GRANT,
  ticketFor,
} from '../support/browser-logins.ts';
import {
  follow,
  payload,
  responseOf,
  SPA_CALLBACK,
  token,
  USER,
  WEB_CALLBACK,
  webRequest,
} from '../support/flows.ts';
import { nextMessageTo } from '../support/inbox.ts';
import { startServer, type TestServer } from '../support/server.ts';

const PASSWORD = 'urn:oasis:names:tc:SAML:2.0:ac:classes:PasswordProtectedTransport';
const MFA = 'https://refeds.org/profile/mfa';
const WEB = { client_id: 'web', client_secret: 'web-secret' };

describe('the methods of a login', () => {
  let server: TestServer;
  let people = 0;

  before(async () => {
    const [users, ...others] = tenant.databases;
    server = await startServer({
      tenant: {
        ...tenant,
        tenant: { ...tenant.tenant, flags: { mfa_for_passwordless: true } },
        clients: [...tenant.clients, samlClient('saml')],
        databases: [{ ...users, enabled_clients: [...users!.enabled_clients, 'saml'] }, ...others],
        guardianFactors: factors('otp'),
        guardianPolicies: { policies: [] },
      },
    });
  });
  after(() => server.stop());

  const someone = () => `way-${++people}@example.test`;
  const isGiven = async (agent: Agent, context: string) => {
    const content = `<samlp:RequestedAuthnContext><saml:AuthnContextClassRef>${context}</saml:AuthnContextClassRef></samlp:RequestedAuthnContext>`;
    const xml = authnRequest({ content, attributes: { IsPassive: 'true' } });
    const page = await follow(agent, await agent.get(`/samlp/saml?${redirectQuery(xml)}`), server.url);
    return posted(page).xml.includes(`<saml:AuthnContextClassRef>${context}</saml:AuthnContextClassRef>`);
  };
  const amrOf = async (code: string | undefined, redirect_uri = WEB_CALLBACK) =>
    payload(
      (
        await token(createAgent(server), { ...WEB, grant_type: 'authorization_code', code, redirect_uri })
      ).json().id_token,
    ).amr;
  const coded = { grant_type: 'http://auth0.com/oauth/grant-type/passwordless/otp' };

  const ways: [string, (agent: Agent) => Promise<unknown>, boolean][] = [
    ['the password at the page', (agent) => byPassword(agent, server, webRequest()), true],
    ['signing up', (agent) => bySignUp(agent, server, webRequest(), someone()), true],
    [
      'a code by e-mail',
      (agent) => byCode(agent, server, webRequest(), { connection: 'email', address: someone() }),
      false,
    ],
    [
      'a code by SMS',
      (agent) => byCode(agent, server, webRequest(), { connection: 'sms', address: '+16505550142' }),
      false,
    ],
    ['a link', (agent) => byLink(agent, server, WEB, someone()), false],
    [
      'a ticket for a password',
      async (agent) => {
        const credentials = {
          credential_type: REALM_GRANT,
          realm: 'users',
          username: USER.email,
          password: USER.password,
        };
        const login_ticket = await ticketFor(agent, new URL(SPA_CALLBACK).origin, credentials);
        await openPage(agent, server, webTicket(login_ticket));
      },
      true,
    ],
    [
      'a ticket for a code',
      async (agent) => {
        const email = someone();
        await agent.request('/passwordless/start', {
          json: { client_id: 'spa', connection: 'email', email, send: 'code' },
        });
        const { code: otp } = await nextMessageTo(server, email, 1, 'code');
        const credentials = { credential_type: coded.grant_type, realm: 'email', username: email, otp };
        const login_ticket = await ticketFor(agent, new URL(SPA_CALLBACK).origin, credentials);
        await openPage(agent, server, webTicket(login_ticket));
      },
      false,
    ],
  ];
  const webTicket = (login_ticket: string) => ({
    client_id: 'spa',
    response_type: 'token id_token',
    redirect_uri: SPA_CALLBACK,
    scope: 'openid',
    nonce: 'n',
    login_ticket,
  });
  for (const [way, logIn, isPassword] of ways) {
    it(`${isPassword ? 'include' : 'do not include'} the password, and no second factor, for ${way}`, async () => {
      const agent = createAgent(server);
      await logIn(agent);
      expect([await isGiven(agent, PASSWORD), await isGiven(agent, MFA)]).to.deep.equal([isPassword, false]);
    });
  }

  it('are not in the ID token without a second factor, as with the hosted service', async () => {
    const back = await byPassword(createAgent(server), server, webRequest());
    expect(await amrOf(responseOf(back).code)).to.equal(undefined);
    const answer = await token(createAgent(server), {
      ...WEB,
      grant_type: 'password',
      username: USER.email,
      password: USER.password,
      scope: 'openid',
    });
    expect(payload(answer.json().id_token)).not.to.have.property('amr');
  });

  it('include both the password and the second factor', async () => {
    const agent = createAgent(server);
    const acr_values = 'http://schemas.openid.net/pape/policies/2007/06/multi-factor';
    const page = await byPassword(agent, server, webRequest({ acr_values }), 'mfa-1@example.test');
    const enroll = page.text.includes('name="code"')
      ? page
      : await agent.get(/href="([^"]*otp[^"]*)"/.exec(page.text)![1]!);
    const secret = /[A-Z2-7]{32}/.exec(enroll.text.replaceAll(/(?<=[A-Z2-7]{4}) (?=[A-Z2-7]{4})/g, ''))![0];
    const { action, fields } = readForm(enroll, 'code');
    const form = { ...fields, code: codeOf(secret) };
    const back = await follow(agent, await agent.request(action, { form }), server.url);
    expect(await amrOf(responseOf(back).code)).to.deep.equal(['mfa']);
    expect([await isGiven(agent, PASSWORD), await isGiven(agent, MFA)]).to.deep.equal([true, true]);
  });
});
