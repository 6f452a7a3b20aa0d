// Tokens for an organization by a passwordless code and after a second factor, and the login widget's settings.
import vm from 'node:vm';
import { expect } from 'chai';
import { membershipId } from '../../src/records/users/organizations.ts';
import { tenant as base, callsOf, codeOf, factors, OTP_GRANT } from '../factors/tenant.ts';
import { createAgent, readForm } from '../support/agent.ts';
import { openPage } from '../support/browser-logins.ts';
import { API, authorize, follow, payload, responseOf, webRequest } from '../support/flows.ts';
import { nextMessageTo } from '../support/inbox.ts';
import { startServer, type TestServer } from '../support/server.ts';

const OTHER = 'parameter organization is not that of the login';

const tenant = {
  ...base,
  clients: base.clients.flatMap((client) => {
    if (client.client_id !== 'web') return [client];
    const web = { ...client, organization_usage: 'allow', custom_login_page_on: false };
    return [
      web,
      {
        ...web,
        client_id: 'paged',
        name: 'Paged',
        custom_login_page_on: true,
        custom_login_page: '<p data-config="@@config@@">',
      },
    ];
  }),
  connections: base.connections.map((one) => ({
    ...one,
    enabled_clients: [...one.enabled_clients, 'paged'],
  })),
  pages: [{ name: 'login', html: '<p>', enabled: true }],
  guardianFactors: factors('otp', 'recovery-code'),
  guardianPolicies: { policies: [] as string[] },
  organizations: [
    {
      id: 'org_acme',
      name: 'acme',
      connections: [{ name: 'users' }, { name: 'email', show_as_button: false }],
    },
    { id: 'org_codes', name: 'codes', connections: [{ name: 'email', assign_membership_on_login: true }] },
    {
      id: 'org_doors',
      name: 'doors',
      connections: [{ name: 'users', is_signup_enabled: true, assign_membership_on_login: true }],
    },
    { id: 'org_shut', name: 'shut', connections: [{ name: 'users', is_signup_enabled: true }] },
    { id: 'org_off', name: 'off', connections: [{ name: 'users', is_enabled: false }] },
  ],
};

describe('tokens for an organization', () => {
  let server: TestServer;
  let calls: ReturnType<typeof callsOf>;
  before(async () => {
    server = await startServer({ tenant });
    calls = callsOf(server);
  });
  after(() => server.stop());

  const join = async (organization_id: string, email: string) => {
    const user_id = (await server.users.findInConnection({ name: 'users' }, email))?.id ?? '';
    await server.store
      .collection('memberships')
      .put({ id: membershipId(organization_id, user_id), organization_id, user_id, roles: [] });
  };

  it('are issued for a passwordless code, with membership by the connection, and refused to others', async () => {
    const exchange = async (email: string, organization: string) => {
      const client = { client_id: 'web', client_secret: 'web-secret' };
      await calls.agent.request('/passwordless/start', {
        json: { ...client, connection: 'email', email, send: 'code' },
      });
      const { code: otp } = await nextMessageTo(server, email, 1);
      return calls.token({
        grant_type: OTP_GRANT,
        realm: 'email',
        scope: 'openid',
        username: email,
        otp,
        organization,
      });
    };
    const done = await exchange('coded@example.test', 'org_codes');
    expect(payload(done.json().id_token)).to.include({ org_id: 'org_codes' });
    const refused = await exchange('outside@example.test', 'org_acme');
    expect(refused.status).to.equal(403);
    expect(refused.json()).to.include({
      error: 'access_denied',
      error_description: 'user is not part of the org_acme organization',
    });
    // Nor does the address have a user now.
    expect(await server.users.findInConnection({ name: 'email' }, 'outside@example.test')).to.equal(
      undefined,
    );
  });

  it('are refused at the page to whoever proves a new address there, for whom no user is created', async () => {
    const email = 'page-outside@example.test';
    const browser = createAgent(server);
    const request = webRequest({ organization: 'org_acme', connection: 'email' });
    const page = await follow(browser, await authorize(browser, request), server.url);
    const asked = readForm(page, 'address');
    const sent = await browser.request(asked.action, { form: { ...asked.fields, address: email } });
    const codePage = await follow(browser, sent, server.url);
    const { code } = await nextMessageTo(server, email, 1);
    const typed = readForm(codePage, 'code');
    const end = await follow(
      browser,
      await browser.request(typed.action, { form: { ...typed.fields, code: code ?? '' } }),
      server.url,
    );
    expect(responseOf(end)).to.include({
      error: 'access_denied',
      error_description: 'user is not part of the org_acme organization',
    });
    expect(await server.users.findInConnection({ name: 'email' }, email)).to.equal(undefined);
  });

  describe('whose login needs a second factor', () => {
    const [member, other] = ['mfa-0@example.test', 'mfa-1@example.test'] as const;
    let secret: string;
    before(async () => {
      await server.store
        .collection('tenant')
        .update(
          'tenant',
          (all) => ({ ...structuredClone(all), guardianPolicies: ['all-applications'] }) as never,
        );
      ({ secret } = await calls.enrollOtp(member));
    });
    const begin = async (more: Record<string, unknown>) => {
      server.tick(60_000);
      const answer = await calls.login(member, more);
      return answer.json().mfa_token as string;
    };
    const end = (mfa_token: string, more: Record<string, unknown> = {}) =>
      calls.verify('otp', { mfa_token, otp: codeOf(secret), ...more });

    it('are for the organization of the first request, whose membership is checked again', async () => {
      await join('org_acme', member);
      for (const more of [{}, { organization: 'org_acme' }]) {
        const token = await begin({ organization: 'org_acme', audience: API });
        const done = await end(token, more);
        expect(done.status, done.text).to.equal(200);
        expect(payload(done.json().id_token)).to.include({ org_id: 'org_acme' });
        expect(payload(done.json().access_token)).to.include({ org_id: 'org_acme' });
      }
      const token = await begin({ organization: 'org_acme' });
      await server.store.collection('memberships').deleteBy('organization', 'org_acme');
      expect((await end(token)).json()).to.include({ error: 'access_denied' });
    });

    it('are refused by a connection that the organization has switched off', async () => {
      await join('org_off', member);
      const refused = await calls.login(member, { organization: 'org_off' });
      expect(refused.status).to.be.within(400, 499);
      expect(refused.json()).not.to.have.any.keys('mfa_token', 'access_token');
    });

    it('are refused for another organization than that of the first request', async () => {
      await join('org_acme', member);
      await join('org_doors', member);
      for (const first of [{}, { organization: 'org_acme' }]) {
        const refused = await end(await begin(first), { organization: 'org_doors' });
        expect(refused.status).to.equal(400);
        expect(refused.json()).to.include({ error: 'invalid_request', error_description: OTHER });
      }
      const done = await end(await begin({}));
      expect(payload(done.json().id_token)).not.to.have.property('org_id');
    });

    it('are refused to others than members before the second factor', async () => {
      const refused = await calls.login(other, { organization: 'org_acme' });
      expect(refused.json()).to.include({ error: 'access_denied' }).and.not.have.property('mfa_token');
    });
  });

  describe('the login widget', () => {
    const settings = async (path: string) => {
      const given: any[] = []; // any: a test reads what it expects
      vm.runInNewContext((await calls.agent.get(path)).text, {
        Auth0: { setClient: (one: unknown) => given.push(one) },
      });
      return JSON.parse(JSON.stringify(given[0])).strategies as {
        connections: { name: string; showSignup?: boolean }[];
      }[];
    };
    const names = (all: Awaited<ReturnType<typeof settings>>) =>
      all.flatMap(({ connections }) => connections.map(({ name }) => name)).sort();

    it('gets the connections that the organization shows, and sign-up where it is open', async () => {
      expect(names(await settings('/client/web.js'))).to.include.members(['email', 'members', 'users']);
      const acme = await settings('/organizations/org_acme/client/web.js');
      expect(names(acme)).to.deep.equal(['users']);
      expect(acme[0]?.connections[0]?.showSignup).to.equal(false);
      const doors = await settings('/organizations/org_doors/client/web.js');
      expect(doors[0]?.connections[0]?.showSignup).to.equal(true);
      // Nobody who signed up there would become a member.
      const shut = await settings('/organizations/org_shut/client/web.js');
      expect(shut[0]?.connections[0]?.showSignup).to.equal(false);
      expect(names(await settings('/organizations/org_off/client/web.js')), 'is_enabled').to.deep.equal([]);
      expect(names(await settings('/organizations/org_none/client/web.js'))).to.deep.equal([]);
    });

    it('gets the URL of these settings from the page of a request for an organization', async () => {
      const at = async (client_id: string, over: Record<string, string>) => {
        const page = await openPage(createAgent(server), server, { ...webRequest(over), client_id });
        const encoded = /data-config="([\w+/=]+)"/.exec(page.text)?.[1] ?? '';
        const config = JSON.parse(Buffer.from(encoded, 'base64').toString('utf8'));
        return new URL(config.clientConfigurationBaseUrl).pathname;
      };
      expect(await at('paged', { organization: 'org_codes' })).to.equal('/organizations/org_codes/');
      expect(await at('paged', {})).to.equal('/');
    });
  });
});
