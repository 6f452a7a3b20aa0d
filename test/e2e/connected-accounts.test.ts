// Connected accounts with the published SDK, at a page of an application in a real browser.
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { expect } from 'chai';
import type { BrowserContext, Page } from 'playwright-core';
import { launchBrowser, type TestBrowser } from '../support/browser.ts';
import { type Callback, startCallback } from '../support/callback.ts';
import { tenant } from '../support/flows.ts';
import { type OAuth2Provider, optionsFor, startProvider } from '../support/oauth2-provider.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { plugInKey } from '../support/virtual-key.ts';
import { PATIENCE } from '../support/wait-until.ts';

const AUDIENCE = 'https://elsewhere.example.test/me/';
const SCOPES = ['create', 'read', 'delete'].map((verb) => `${verb}:me:connected_accounts`);
const PASSKEY_GRANT = 'urn:okta:params:oauth:grant-type:webauthn';

describe('auth0-spa-js, connected accounts', () => {
  let server: TestServer;
  let provider: OAuth2Provider;
  let browser: TestBrowser;
  let site: Callback;
  let context: BrowserContext;
  let page: Page;

  before(async () => {
    [site, provider] = await Promise.all([startCallback(), startProvider()]);
    const app = {
      client_id: 'app',
      name: 'app',
      app_type: 'spa',
      token_endpoint_auth_method: 'none',
      grant_types: [PASSKEY_GRANT, 'refresh_token', 'authorization_code'],
      web_origins: [new URL(site.url).origin],
      callbacks: [site.url],
    };
    server = await startServer({
      tenant: {
        ...tenant,
        clients: [...tenant.clients, app],
        clientGrants: [{ client_id: 'app', audience: AUDIENCE, subject_type: 'user', scope: SCOPES }],
        databases: [
          {
            name: 'keys',
            enabled_clients: ['app'],
            options: { authentication_methods: { passkey: { enabled: true } } },
          },
          ...tenant.databases,
        ],
        connections: [
          {
            name: 'drive',
            strategy: 'oauth2',
            enabled_clients: ['app'],
            connected_accounts: { active: true },
            options: optionsFor(provider),
          },
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
    const cdp = await context.newCDPSession(page);
    await cdp.send('WebAuthn.enable');
    await plugInKey(cdp);
    await page.goto(site.url);
    await openClient();
  });
  after(async () => {
    await context?.close();
    await browser?.close();
    await server?.stop();
    await provider?.stop();
    site?.close();
  });

  const openClient = async () => {
    const spa = createRequire(import.meta.url).resolve('@auth0/auth0-spa-js/dist/auth0-spa-js.production.js');
    await page.addScriptTag({ content: await readFile(spa, 'utf8') });
    await page.evaluate(`window.client = new auth0.Auth0Client({
      domain: ${JSON.stringify(new URL(server.url).host)}, clientId: 'app', useRefreshTokens: true, useMrrt: true,
      cacheLocation: 'localstorage',
      authorizationParams: { scope: 'openid profile email offline_access', redirect_uri: ${JSON.stringify(site.url)} },
    })`);
  };
  const run = (code: string): Promise<any> =>
    page.evaluate(`(async () => {
      try { return await (async () => { ${code} })(); }
      catch (error) {
        return { failed: error.type ?? error.error ?? error.name, connection: error.connection, state: error.appState };
      }
    })()`);
  /** Goes to the provider, and returns to the application. */
  const connect = async (options: object) => {
    await page.goto(site.url);
    await openClient();
    await run(`await client.connectAccountWithRedirect(${JSON.stringify(options)});`).catch(() => undefined);
    await page.waitForURL(`${site.url}?*`, { timeout: PATIENCE });
    await openClient();
    return run('return client.handleRedirectCallback();');
  };

  it('connects an account: connectAccountWithRedirect, handleRedirectCallback', async () => {
    const login = await run(
      `return client.passkey.signup({ email: 'ada-drive@example.test', realm: 'keys' });`,
    );
    expect(login, JSON.stringify(login)).to.have.property('access_token');
    const made = await connect({ connection: 'drive', scopes: ['files.read'], appState: { tab: 'files' } });
    expect(made, JSON.stringify(made)).to.deep.include({
      connection: 'drive',
      access_type: 'offline',
      scopes: ['files.read'],
      response_type: 'connect_code',
      appState: { tab: 'files' },
    });
    expect(provider.last('/authorize').query.scope).to.equal('profile email files.read');
    expect(await server.store.collection('connectedAccounts').get(made.id)).to.include({
      connection: 'drive',
    });
    // The transaction is used up, so a planted response is rejected.
    expect(await run('return client.handleRedirectCallback();')).to.include({
      failed: 'missing_transaction',
    });
  });

  it("gets the provider's refusal: ConnectError", async () => {
    provider.token = (response) =>
      void response.writeHead(400, { 'content-type': 'application/json' }).end('{"error":"access_denied"}');
    const failure = await connect({ connection: 'drive', appState: 'kept' });
    provider.token = undefined;
    expect(failure, JSON.stringify(failure)).to.include({ connection: 'drive', state: 'kept' });
    const refused = await run(`return client.connectAccountWithRedirect({ connection: 'nowhere' });`);
    expect(refused).to.include({ failed: 'urn:gatehouse:error:invalid_request' });
  });
});
