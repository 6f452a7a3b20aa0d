// Passkeys with the published SDKs, at a page of an application in a real browser.
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { expect } from 'chai';
import type { BrowserContext, CDPSession, Page } from 'playwright-core';
import { createAgent } from '../support/agent.ts';
import { launchBrowser, type TestBrowser } from '../support/browser.ts';
import { type Callback, startCallback } from '../support/callback.ts';
import { payload, tenant, token } from '../support/flows.ts';
import { resetPassword } from '../support/reset.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { plugInKey } from '../support/virtual-key.ts';

const GRANT = 'urn:okta:params:oauth:grant-type:webauthn';
const client = (client_id: string, more: object = {}) => ({
  client_id,
  name: client_id,
  app_type: 'spa',
  token_endpoint_auth_method: 'none',
  grant_types: [GRANT, 'refresh_token', 'authorization_code'],
  ...more,
});

describe('passkeys', () => {
  let server: TestServer;
  let browser: TestBrowser;
  let site: Callback;
  let context: BrowserContext;
  let page: Page;
  let cdp: CDPSession;
  let authenticatorId: string;

  before(async () => {
    site = await startCallback();
    const { origin } = new URL(site.url);
    const clients = [
      client('app', { web_origins: [origin], callbacks: [site.url] }),
      client('elsewhere', { web_origins: ['https://elsewhere.test'] }),
      client('without', { grant_types: ['refresh_token'] }),
    ];
    server = await startServer({
      tenant: {
        ...tenant,
        clients: [...tenant.clients, ...clients],
        guardianFactors: [{ name: 'otp', enabled: true }],
        guardianPolicies: { policies: ['all-applications'] },
        databases: [
          {
            name: 'keys',
            enabled_clients: ['app', 'elsewhere', 'without'],
            options: { authentication_methods: { passkey: { enabled: true } } },
          },
          { name: 'plain', enabled_clients: ['app'] },
          ...tenant.databases,
        ],
      },
    });
    browser = await launchBrowser(server.ca);
  });
  after(async () => {
    await browser?.close();
    await server?.stop();
    site?.close();
  });
  beforeEach(async () => {
    context = await browser.newContext();
    page = await context.newPage();
    cdp = await context.newCDPSession(page);
    await cdp.send('WebAuthn.enable');
    authenticatorId = await plugIn();
    await page.goto(new URL(site.url).origin);
    const spa = createRequire(import.meta.url).resolve('@auth0/auth0-spa-js/dist/auth0-spa-js.production.js');
    await page.addScriptTag({ content: await readFile(spa, 'utf8') });
  });
  afterEach(() => context.close());

  const plugIn = (over: object = {}) => plugInKey(cdp, 'internal', over);
  /** Runs code in the application's page with its client. */
  const run = (code: string, clientId = 'app'): Promise<Record<string, never>> =>
    page.evaluate(`(async () => {
      const client = new auth0.Auth0Client({
        domain: ${JSON.stringify(new URL(server.url).host)}, clientId: ${JSON.stringify(clientId)},
        useRefreshTokens: true, authorizationParams: { scope: 'openid profile email offline_access' },
      });
      try { return await (async () => { ${code} })(); }
      catch (error) { return { error: error.error ?? (typeof error.code === 'string' ? error.code : error.name), description: error.error_description ?? error.message, cause: error.cause?.error }; }
    })()`);
  const signUp = (email: string, more = '') =>
    run(`return client.passkey.signup({ email: ${JSON.stringify(email)}, realm: 'keys', ${more} });`);
  const logIn = (clientId?: string) => run(`return client.passkey.login({ realm: 'keys' });`, clientId);
  const userOf = async (email: string) => (await server.users.withEmail(email))[0];
  const call = (path: string, json: object) => createAgent(server).request(path, { json });

  it('sign up a user and log them in, by auth0-spa-js', async () => {
    const made = await signUp('key-1@example.test', `name: 'Ada', userMetadata: { plan: 'gold' }`);
    expect(payload(String(made.id_token))).to.deep.include({ email: 'key-1@example.test', name: 'Ada' });
    const user = await userOf('key-1@example.test');
    expect(user).to.deep.include({ email_verified: false, user_metadata: { plan: 'gold' } });
    expect((await server.store.collection('passkeys').findBy('user', user?.id ?? '')).length).to.equal(1);
    const again = await logIn();
    expect(payload(String(again.id_token))).to.deep.include({ sub: user?.id, amr: ['mfa'] });
  });

  it('are two factors: a tenant that requires a second factor asks for no other', async () => {
    await signUp('key-2@example.test');
    expect(await logIn()).to.have.property('access_token');
  });

  it('require user verification', async () => {
    await signUp('key-3@example.test');
    await cdp.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: false });
    expect(await logIn()).to.deep.include({ error: 'NotAllowedError' });
  });

  it('create no second account for an address, and do not log in a blocked or removed user', async () => {
    await signUp('key-4@example.test');
    await cdp.send('WebAuthn.clearCredentials', { authenticatorId });
    expect(await signUp('key-4@example.test')).to.have.property('error');
    expect((await server.users.withEmail('key-4@example.test')).length).to.equal(1);
    await cdp.send('WebAuthn.clearCredentials', { authenticatorId });
    await signUp('key-5@example.test');
    const user = await userOf('key-5@example.test');
    await server.users.update(user?.id ?? '', { blocked: true });
    expect(await logIn()).to.have.property('error');
    await server.users.remove(user?.id ?? '');
    expect(await logIn()).to.have.property('error');
  });

  it('are removed when the owner of an unverified address resets the password', async () => {
    const email = 'key-9@example.test';
    await signUp(email);
    await resetPassword(server, email, 'Entirely-New-Words-7', 'keys');
    expect(await logIn()).to.have.property('error');
    const { id = '' } = (await userOf(email)) ?? {};
    expect(await server.store.collection('passkeys').findBy('user', id)).to.deep.equal([]);
  });

  it('require an application with the grant and a connection that has passkeys', async () => {
    const told = async (answer: ReturnType<typeof call>) => {
      const { status, json } = await answer;
      return [status, json().error];
    };
    expect(await told(call('/passkey/challenge', { client_id: 'without' }))).to.deep.equal([
      403,
      'unauthorized_client',
    ]);
    expect(await told(call('/passkey/challenge', { client_id: 'app', realm: 'plain' }))).to.deep.equal([
      400,
      'invalid_request',
    ]);
    expect(await told(call('/passkey/challenge', { client_id: 'app', realm: 'nowhere' }))).to.deep.equal([
      400,
      'invalid_request',
    ]);
    for (const user_profile of [
      {},
      { email: 'no address' },
      { email: 'a@example.test', username: 'ada' },
      'x',
    ])
      expect(
        await told(call('/passkey/register', { client_id: 'app', realm: 'keys', user_profile })),
      ).to.deep.equal([400, 'invalid_request']);
    expect((await call('/passkey/challenge', { client_id: 'nobody' })).status).to.equal(401);
  });

  it('are accepted only from pages of their own application', async () => {
    await signUp('key-6@example.test');
    // The application has not registered the origin of this page.
    expect(await logIn('elsewhere')).to.have.property('error');
  });

  /** Requests a challenge. @returns it with the browser's response. */
  const answered = async (clientId = 'app') => {
    const begun = (await call('/passkey/challenge', { client_id: clientId, realm: 'keys' })).json();
    const answer = await page.evaluate(
      `navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(${JSON.stringify(
        begun.authn_params_public_key,
      )}) }).then((credential) => credential.toJSON())`,
    );
    return { auth_session: String(begun.auth_session), authn_response: JSON.stringify(answer) };
  };
  const exchange = (fields: Record<string, string>, client_id = 'app') =>
    token(createAgent(server), { grant_type: GRANT, client_id, scope: 'openid', ...fields });

  it('are accepted once per challenge, of any number at the same time', async () => {
    await signUp('key-7@example.test');
    const fields = await answered();
    const answers = await Promise.all(Array.from({ length: 20 }, () => exchange(fields)));
    expect(answers.map(({ status }) => status).sort()).to.deep.equal([200, ...Array(19).fill(403)]);
  });

  it('are rejected for another challenge, by another application, after five minutes, and with another signature', async () => {
    await signUp('key-8@example.test');
    const first = await answered();
    const second = await answered();
    expect((await exchange({ ...first, auth_session: second.auth_session })).json().error).to.equal(
      'invalid_grant',
    );
    expect((await exchange(await answered(), 'elsewhere')).json().error).to.equal('invalid_grant');
    const late = await answered();
    server.tick(301_000);
    expect((await exchange(late)).json().error).to.equal('invalid_grant');
    const forged = await answered();
    const answer = JSON.parse(forged.authn_response) as { response: Record<string, string> };
    answer.response.signature = 'MEUCIQ';
    expect((await exchange({ ...forged, authn_response: JSON.stringify(answer) })).json().error).to.equal(
      'invalid_grant',
    );
    for (const authn_response of ['', 'x', '{}', '[]', 'null', JSON.stringify({ id: 'x'.repeat(30_000) })])
      expect((await exchange({ ...(await answered()), authn_response })).status).to.be.within(400, 403);
  });
});
