// The authentication context of an assertion (AuthnContextClassRef), which states only what the login has proved.
import { expect } from 'chai';
import { codeOf, factors, tenant } from '../factors/tenant.ts';
import { type Agent, type Answer, createAgent, readForm } from '../support/agent.ts';
import { byCode, byPassword, uidOf } from '../support/browser-logins.ts';
import { follow, submitLogin, USER, webRequest } from '../support/flows.ts';
import { nextMessageTo } from '../support/inbox.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { authnRequest, redirectQuery } from './messages.ts';
import { posted, samlClient } from './support.ts';

const CLASS = 'urn:oasis:names:tc:SAML:2.0:ac:classes:';
const PASSWORD = `${CLASS}PasswordProtectedTransport`;
const UNSPECIFIED = `${CLASS}unspecified`;
const REFEDS = 'https://refeds.org/profile/mfa';
const PAPE = 'http://schemas.openid.net/pape/policies/2007/06/multi-factor';

describe('the authentication context of an assertion', () => {
  let server: TestServer;
  let people = 0;

  before(async () => {
    const [users, ...others] = tenant.databases;
    const clients = [
      samlClient('saml'),
      samlClient('says-password', { authnContextClassRef: PASSWORD }),
      samlClient('says-mfa', { authnContextClassRef: REFEDS }),
      samlClient('says-kerberos', { authnContextClassRef: `${CLASS}Kerberos` }),
    ];
    const ids = clients.map(({ client_id }) => client_id);
    server = await startServer({
      tenant: {
        ...tenant,
        tenant: { ...tenant.tenant, flags: { mfa_for_passwordless: true } },
        clients: [...tenant.clients, ...clients, samlClient('elsewhere')],
        connections: tenant.connections.map((one) => ({
          ...one,
          enabled_clients: [...one.enabled_clients, ...ids],
        })),
        databases: [{ ...users, enabled_clients: [...users!.enabled_clients, ...ids] }, ...others],
        guardianFactors: factors('otp', 'email'),
        guardianPolicies: { policies: [] },
      },
    });
  });
  after(() => server.stop());

  const classes = (...all: string[]) =>
    all.map((one) => `<saml:AuthnContextClassRef>${one}</saml:AuthnContextClassRef>`).join('');
  /** Returns the class that is stated for the present session, or the status that says that none applies. */
  async function stated(agent: Agent, client: string, wanted?: string, comparison?: string): Promise<string> {
    const compare = comparison === undefined ? '' : ` Comparison="${comparison}"`;
    const content =
      wanted === undefined
        ? ''
        : `<samlp:RequestedAuthnContext${compare}>${wanted}</samlp:RequestedAuthnContext>`;
    const xml = authnRequest({ content, attributes: { IsPassive: 'true' } });
    const page = await follow(agent, await agent.get(`/samlp/${client}?${redirectQuery(xml)}`), server.url);
    const answer = posted(page).xml;
    const found = /<saml:AuthnContextClassRef>([^<]*)</.exec(answer)?.[1];
    return found ?? [...answer.matchAll(/<samlp:StatusCode Value="[^"]*:([^":]*)"/g)].at(-1)?.[1] ?? '';
  }

  async function withPassword(): Promise<Agent> {
    const agent = createAgent(server);
    await byPassword(agent, server, webRequest());
    return agent;
  }
  async function withCode(): Promise<Agent> {
    const agent = createAgent(server);
    await byCode(agent, server, webRequest(), {
      connection: 'email',
      address: `context-${++people}@example.test`,
    });
    return agent;
  }
  /** Gives the code of an app at the pages of the second factor, where the app is enrolled. */
  async function giveOtp(agent: Agent, step: Answer): Promise<void> {
    const enroll = step.text.includes('name="code"')
      ? step
      : await agent.get(/href="([^"]*otp[^"]*)"/.exec(step.text)![1]!);
    const secret = /[A-Z2-7]{32}/.exec(enroll.text.replaceAll(/(?<=[A-Z2-7]{4}) (?=[A-Z2-7]{4})/g, ''))![0];
    const { action, fields } = readForm(enroll, 'code');
    await follow(
      agent,
      await agent.request(action, { form: { ...fields, code: codeOf(secret) } }),
      server.url,
    );
  }

  /** A second factor could be given, if the request allowed pages. */
  const denied = (wanted: string) =>
    [REFEDS, PAPE, `${CLASS}TimeSyncToken`].includes(wanted) ? 'NoPassive' : 'NoAuthnContext';

  it('is PasswordProtectedTransport after a password', async () => {
    const agent = await withPassword();
    for (const one of [PASSWORD, `${CLASS}Password`, UNSPECIFIED]) {
      expect(await stated(agent, 'saml', classes(`${CLASS}X509`, one))).to.equal(one);
    }
    for (const one of [
      REFEDS,
      PAPE,
      `${CLASS}TimeSyncToken`,
      `${CLASS}MobileTwoFactorContract`,
      `${CLASS}X509`,
    ]) {
      expect(await stated(agent, 'saml', classes(one)), one).to.equal(denied(one));
    }
  });

  it('is no password class after a code', async () => {
    const agent = await withCode();
    for (const one of [PASSWORD, `${CLASS}Password`, REFEDS, `${CLASS}TimeSyncToken`]) {
      expect(await stated(agent, 'saml', classes(one)), one).to.equal(denied(one));
      expect(await stated(agent, 'saml', classes(one, UNSPECIFIED)), one).to.equal(UNSPECIFIED);
    }
  });

  it('is stated to no service provider that the connection of the session is not enabled for', async () => {
    for (const agent of [await withCode(), await withPassword()])
      expect(await stated(agent, 'elsewhere')).to.equal('NoPassive');
  });

  it("is the addon's only if the login meets it", async () => {
    const [password, code] = [await withPassword(), await withCode()];
    expect(await stated(password, 'says-password')).to.equal(PASSWORD);
    expect(await stated(code, 'says-password')).to.equal(UNSPECIFIED);
    expect(await stated(code, 'says-password', classes(PASSWORD))).to.equal('NoAuthnContext');
    expect(await stated(password, 'says-mfa')).to.equal(UNSPECIFIED);
    // A class that we do not know is stated because the administrator configured it.
    expect(await stated(code, 'says-kerberos')).to.equal(`${CLASS}Kerberos`);
    expect(await stated(code, 'saml')).to.equal(UNSPECIFIED);
  });

  it('is TimeSyncToken after a password and the code of an authenticator app', async () => {
    const agent = createAgent(server);
    const content = `<samlp:RequestedAuthnContext>${classes(`${CLASS}TimeSyncToken`)}</samlp:RequestedAuthnContext>`;
    const started = await agent.get(`/samlp/saml?${redirectQuery(authnRequest({ content }))}`);
    const user = { email: 'mfa-2@example.test', password: USER.password };
    await giveOtp(agent, await submitLogin(agent, server, await follow(agent, started, server.url), user));
    for (const one of [`${CLASS}TimeSyncToken`, REFEDS, PAPE, PASSWORD]) {
      expect(await stated(agent, 'saml', classes(one)), one).to.equal(one);
    }
    expect(await stated(agent, 'saml', classes(`${CLASS}MobileTwoFactorContract`))).to.equal(
      'NoAuthnContext',
    );
    expect(await stated(agent, 'says-mfa')).to.equal(REFEDS);
  });

  it('is multi-factor, but not TimeSyncToken, after a password and a mailed code', async () => {
    const agent = createAgent(server);
    const content = `<samlp:RequestedAuthnContext>${classes(REFEDS)}</samlp:RequestedAuthnContext>`;
    const started = await agent.get(`/samlp/saml?${redirectQuery(authnRequest({ content }))}`);
    const user = { email: 'mfa-3@example.test', password: USER.password };
    const step = await submitLogin(agent, server, await follow(agent, started, server.url), user);
    const page = await agent.get(`/u/${uidOf(step)}/mfa/email`);
    const addressForm = readForm(page, 'address');
    const codePage = await agent.request(addressForm.action, {
      form: { ...addressForm.fields, address: 'box@example.test' },
    });
    const { code = '' } = await nextMessageTo(server, 'box@example.test', 1, 'code');
    const { action, fields } = readForm(codePage, 'code');
    await follow(agent, await agent.request(action, { form: { ...fields, code } }), server.url);
    expect(await stated(agent, 'saml', classes(`${CLASS}TimeSyncToken`, REFEDS))).to.equal(REFEDS);
    expect(await stated(agent, 'saml', classes(`${CLASS}TimeSyncToken`))).to.equal('NoAuthnContext');
  });

  it('is multi-factor and no password class after two factors without a password', async () => {
    const agent = createAgent(server);
    const step = await byCode(agent, server, webRequest({ acr_values: PAPE }), {
      connection: 'email',
      address: `context-${++people}@example.test`,
    });
    await giveOtp(agent, step);
    expect(await stated(agent, 'saml', classes(REFEDS))).to.equal(REFEDS);
    for (const one of [PASSWORD, `${CLASS}TimeSyncToken`]) {
      expect(await stated(agent, 'saml', classes(one)), one).to.equal('NoAuthnContext');
    }
  });

  it('is compared: an equal class meets exact, minimum and maximum, but not better', async () => {
    const agent = await withPassword();
    for (const comparison of ['exact', 'minimum', 'maximum']) {
      expect(await stated(agent, 'saml', classes(PASSWORD), comparison)).to.equal(PASSWORD);
    }
    expect(await stated(agent, 'saml', classes(PASSWORD), 'better')).to.equal('NoAuthnContext');
    const xml = authnRequest({
      content: `<samlp:RequestedAuthnContext Comparison="nicer">${classes(PASSWORD)}</samlp:RequestedAuthnContext>`,
    });
    expect((await agent.get(`/samlp/saml?${redirectQuery(xml)}`)).status).to.equal(400);
  });

  it('by declaration reference is never met', async () => {
    const declaration = '<saml:AuthnContextDeclRef>urn:some:declaration</saml:AuthnContextDeclRef>';
    expect(await stated(await withPassword(), 'saml', declaration)).to.equal('NoAuthnContext');
  });
});
