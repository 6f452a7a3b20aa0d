// The My Account API with the published SDK, at a page of an application in a real browser.
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { expect } from 'chai';
import type { BrowserContext, CDPSession, Page } from 'playwright-core';
import { SCOPES } from '../account/tenant.ts';
import { codeOf, factors } from '../factors/tenant.ts';
import { launchBrowser, type TestBrowser } from '../support/browser.ts';
import { type Callback, startCallback } from '../support/callback.ts';
import { tenant } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { plugInKey } from '../support/virtual-key.ts';

const AUDIENCE = 'https://elsewhere.example.test/me/';

describe('auth0-spa-js, myAccount', () => {
  let server: TestServer;
  let browser: TestBrowser;
  let site: Callback;
  let context: BrowserContext;
  let page: Page;
  let cdp: CDPSession;

  before(async () => {
    site = await startCallback();
    const { origin } = new URL(site.url);
    const app = {
      client_id: 'app',
      name: 'app',
      app_type: 'spa',
      token_endpoint_auth_method: 'none',
      grant_types: ['urn:okta:params:oauth:grant-type:webauthn', 'refresh_token', 'authorization_code'],
      web_origins: [origin],
      callbacks: [site.url],
    };
    server = await startServer({
      tenant: {
        ...tenant,
        clients: [...tenant.clients, app],
        clientGrants: [{ client_id: 'app', audience: AUDIENCE, subject_type: 'user', scope: SCOPES }],
        guardianFactors: factors('otp', 'email', 'recovery-code'),
        databases: [
          {
            name: 'keys',
            enabled_clients: ['app'],
            options: { authentication_methods: { passkey: { enabled: true } } },
          },
          ...tenant.databases,
        ],
      },
    });
    await server.store.collection('clients').update('app', (now) => ({
      ...now,
      refresh_token: {
        ...now.refresh_token,
        policies: [{ audience: `${server.issuer}me/`, scope: SCOPES }],
      } as never,
    }));
    browser = await launchBrowser(server.ca);
    context = await browser.newContext();
    page = await context.newPage();
    cdp = await context.newCDPSession(page);
    await cdp.send('WebAuthn.enable');
    await plugIn('internal');
    await page.goto(origin);
    const spa = createRequire(import.meta.url).resolve('@auth0/auth0-spa-js/dist/auth0-spa-js.production.js');
    await page.addScriptTag({ content: await readFile(spa, 'utf8') });
    await page.evaluate(`window.client = new auth0.Auth0Client({
      domain: ${JSON.stringify(new URL(server.url).host)}, clientId: 'app', useRefreshTokens: true, useMrrt: true,
      authorizationParams: { scope: 'openid profile email offline_access' },
    })`);
  });
  after(async () => {
    await context?.close();
    await browser?.close();
    await server?.stop();
    site?.close();
  });

  const plugIn = (transport: 'internal' | 'usb') => plugInKey(cdp, transport);
  const run = (code: string): Promise<any> =>
    page.evaluate(`(async () => {
      try { return await (async () => { ${code} })(); }
      catch (error) { return { failed: error.type ?? error.error ?? error.name, status: error.status, detail: error.detail ?? error.message }; }
    })()`);

  it('lists, enrolls, names and removes: getFactors, getAuthenticationMethods, enrollmentChallenge, enrollmentVerify …', async () => {
    const login = await run(
      `return client.passkey.signup({ email: 'ada-spa@example.test', realm: 'keys' });`,
    );
    expect(login, JSON.stringify(login)).to.have.property('access_token');
    const offered = await run('return client.myAccount.getFactors();');
    expect(offered, JSON.stringify(offered)).to.be.an('array');
    expect(offered.map(({ type }: { type: string }) => type)).to.include.members(['totp', 'recovery-code']);
    const [first] = await run(`return client.myAccount.getAuthenticationMethods('passkey');`);
    expect(first).to.include({ type: 'passkey', relying_party_id: 'localhost' });
    const begun = await run(`return client.myAccount.enrollmentChallenge({ type: 'totp' });`);
    expect(begun, JSON.stringify(begun)).to.include.keys('id', 'location', 'auth_session', 'barcode_uri');
    const code = codeOf(begun.manual_input_code);
    const proof = {
      location: begun.location,
      type: 'totp',
      auth_session: begun.auth_session,
      otp_code: code,
    };
    const made = await run(`return client.myAccount.enrollmentVerify(${JSON.stringify(proof)});`);
    expect(made, JSON.stringify(made)).to.include({ type: 'totp', confirmed: true });
    const id = JSON.stringify(made.id);
    expect(
      await run(`return client.myAccount.updateAuthenticationMethod(${id}, { name: 'My phone' });`),
    ).to.include({
      name: 'My phone',
    });
    expect(await run(`return client.myAccount.getAuthenticationMethod(${id});`)).to.include({
      name: 'My phone',
    });
    await run(`return client.myAccount.deleteAuthenticationMethod(${id});`);
    expect(await run(`return client.myAccount.getAuthenticationMethod(${id});`)).to.include({ status: 404 });
  });

  it('adds a second passkey, created in the browser', async () => {
    await plugIn('usb');
    const made = await run(`
      const begun = await client.myAccount.enrollmentChallenge({ type: 'passkey' });
      const credential = await navigator.credentials.create({
        publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(begun.authn_params_public_key),
      });
      return client.myAccount.enrollmentVerify({
        type: 'passkey', location: begun.location, auth_session: begun.auth_session, authn_response: credential.toJSON(),
      });`);
    expect(made, JSON.stringify(made)).to.include({ type: 'passkey', credential_backed_up: false });
    expect(await run(`return client.myAccount.getAuthenticationMethods('passkey');`)).to.have.length(2);
  });

  it('gets an error if a login is too old for a change: MyAccountApiError', async () => {
    server.tick(601_000);
    // The page's clock is that of the browser.
    await run(`return client.getTokenSilently({ cacheMode: 'off', authorizationParams: {
      audience: ${JSON.stringify(`${server.issuer}me/`)}, scope: 'create:me:authentication_methods' } });`);
    const failure = await run(`return client.myAccount.enrollmentChallenge({ type: 'totp' });`);
    expect(failure).to.include({
      failed: 'urn:gatehouse:error:insufficient_user_authentication',
      status: 401,
      detail: 'A more recent login is required.',
    });
  });
});
