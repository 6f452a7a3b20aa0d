// Whatever can refuse a token request is asked before its user is authenticated, because authenticating writes: it
// creates users, confirms authenticators and uses up codes.
import { expect } from 'chai';
import { callsOf, codeOf, factors, OTP_GRANT, tenant } from '../factors/tenant.ts';
import { createAgent, readForm } from '../support/agent.ts';
import { authorize, follow, responseOf, submitLogin, THIRD_CALLBACK, USER } from '../support/flows.ts';
import { nextMessageTo } from '../support/inbox.ts';
import { startServer, type TestServer } from '../support/server.ts';

/** Those that the engine itself has; they ask for no user. */
const STANDARD = ['authorization_code', 'refresh_token', 'client_credentials', 'implicit'];
/** The grants whose users were asked for consent at our pages, and CIBA, which asks for a first party itself. */
const FROM_PAGES = ['urn:ietf:params:oauth:grant-type:device_code', 'urn:openid:params:grant-type:ciba'];
const REFUSED = { error: 'unauthorized_client' };
const CONSENTED = 'urn:asks-each-time';

const everything = [
  ...new Set([...tenant.clients.flatMap(({ grant_types }) => grant_types), ...FROM_PAGES]),
  'password',
  'http://auth0.com/oauth/grant-type/mfa-webauthn',
  'urn:okta:params:oauth:grant-type:webauthn',
  'urn:ietf:params:oauth:grant-type:token-exchange',
  'urn:auth0:params:oauth:grant-type:token-exchange:federated-connection-access-token',
];

describe('a token request is refused before anything is written', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer({
      tenant: {
        ...tenant,
        guardianPolicies: { policies: [] },
        guardianFactors: factors('otp'),
        clients: tenant.clients.map((client) =>
          client.client_id === 'third'
            ? { ...client, grant_types: everything, client_secret: 'third-secret' }
            : client,
        ),
        connections: tenant.connections.map((one) => ({
          ...one,
          enabled_clients: [...one.enabled_clients, 'third'],
        })),
        resourceServers: [
          ...tenant.resourceServers,
          {
            name: 'Asks each time',
            identifier: CONSENTED,
            scopes: [{ value: 'pay' }],
            consent_policy: 'transactional-authorization-with-mfa',
          },
        ],
      },
    });
  });
  after(() => server.stop());

  const third = { client_id: 'third', client_secret: 'third-secret' };
  const ask = (fields: Record<string, unknown>) =>
    createAgent(server).request('/oauth/token', { json: { ...third, ...fields } });
  const start = (email: string, client: Record<string, string> = third) =>
    createAgent(server).request('/passwordless/start', {
      json: { ...client, connection: 'email', email, send: 'code' },
    });

  it('for a third-party application, by every grant that asks for a user', async () => {
    const document = (await createAgent(server).get('/.well-known/openid-configuration')).json();
    const grants = (document.grant_types_supported as string[]).filter((one) => !STANDARD.includes(one));
    expect(grants).to.include.members([...FROM_PAGES, 'password', OTP_GRANT]);
    for (const grant_type of grants) {
      // None of its parameters: it is refused before they are read.
      const answer = await ask({ grant_type });
      if (FROM_PAGES.includes(grant_type)) expect(answer.status, grant_type).to.be.within(400, 403);
      else expect(answer.json(), grant_type).to.include(REFUSED);
    }
  });

  it('a third party that may enrol cannot make its own authenticator the user’s second factor', async () => {
    const browser = createAgent(server);
    const asked = {
      client_id: 'third',
      response_type: 'code',
      redirect_uri: THIRD_CALLBACK,
      scope: 'openid enroll read:authenticators',
      audience: `${server.issuer}mfa/`,
      state: 's',
    };
    const consent = await submitLogin(
      browser,
      server,
      await follow(browser, await authorize(browser, asked), server.url),
    );
    const { action, fields } = readForm(consent, '_csrf');
    const back = await browser.request(action, { form: { ...fields, decision: 'accept' } });
    const { code } = responseOf(await follow(browser, back, server.url));
    const given = await ask({ grant_type: 'authorization_code', code, redirect_uri: THIRD_CALLBACK });
    const { access_token } = given.json();
    expect(access_token, given.text).to.be.a('string');
    const calls = callsOf(server);
    const begun = await calls.associate(access_token, { authenticator_types: ['otp'] });
    expect(begun.status).to.equal(403);
    expect(begun.json()).to.include(REFUSED);
    const confirmed = await ask({
      grant_type: 'http://auth0.com/oauth/grant-type/mfa-otp',
      mfa_token: access_token,
      otp: '123456',
    });
    expect(confirmed.status).to.equal(403);
    expect(confirmed.json()).to.include(REFUSED);
    const { id = '' } = (await server.users.findInConnection({ name: 'users' }, USER.email)) ?? {};
    const stored = await server.store.collection('authenticators').findBy('user', id);
    expect(stored).to.have.length(0);
  });

  it('a third party’s code creates no user, and stays good', async () => {
    const email = 'nobody-yet@example.test';
    expect((await start(email)).status).to.equal(200);
    const otp = (await nextMessageTo(server, email)).code;
    const asked = { grant_type: OTP_GRANT, username: email, realm: 'email', otp };
    expect((await ask(asked)).json()).to.include(REFUSED);
    expect(await server.users.findInConnection({ name: 'email' }, email)).to.equal(undefined);
  });

  for (const [what, over, error] of [
    ['an API that does not exist', { audience: 'urn:no-api' }, 'access_denied'],
    ['an API that asks each time', { audience: CONSENTED }, 'unauthorized_client'],
    ['an organization that does not exist', { organization: 'org_nowhere' }, 'invalid_request'],
  ] as const) {
    it(`a code for ${what} creates no user, and stays good`, async () => {
      const email = `${what.replaceAll(' ', '-').toLowerCase()}@example.test`;
      const web = { client_id: 'web', client_secret: 'web-secret' };
      expect((await start(email, web)).status).to.equal(200);
      const otp = (await nextMessageTo(server, email)).code;
      const asked = { ...web, grant_type: OTP_GRANT, username: email, realm: 'email', otp };
      expect((await ask({ ...asked, ...over })).json().error).to.equal(error);
      expect(await server.users.findInConnection({ name: 'email' }, email)).to.equal(undefined);
      expect((await ask(asked)).status).to.equal(200);
    });
  }

  it('a user who was blocked after the first factor confirms no authenticator', async () => {
    const calls = callsOf(server);
    const user = 'mfa-7@example.test';
    const { id = '' } = (await server.users.findInConnection({ name: 'users' }, user)) ?? {};
    await server.users.update(id, { multifactor: ['otp'] });
    const mfa_token = await calls.mfaToken(user);
    const { secret } = (await calls.associate(mfa_token, { authenticator_types: ['otp'] })).json();
    await server.users.update(id, { blocked: true });
    const refused = await calls.verify('otp', { mfa_token, otp: codeOf(secret) });
    expect(refused.json()).to.include({ error: 'unauthorized', error_description: 'user is blocked' });
    await server.users.update(id, { blocked: false });
    // Neither the code nor the token was used up.
    const confirmed = await calls.verify('otp', { mfa_token, otp: codeOf(secret) });
    expect(confirmed.status, confirmed.text).to.equal(200);
  });
});
