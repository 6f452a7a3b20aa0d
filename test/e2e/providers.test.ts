// The examples of upstream providers in docs: two servers and a real browser, login and logout.
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import tls from 'node:tls';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import type { BrowserContext, Page } from 'playwright-core';
import { loadTenantFile } from '../../src/tenant/load.ts';
import { createAgent } from '../support/agent.ts';
import { launchBrowser, type TestBrowser } from '../support/browser.ts';
import { payload, pkce } from '../support/flows.ts';
import { freePort } from '../support/free-port.ts';
import { startServer, type TestServer } from '../support/server.ts';

const SECRET = 'a-secret-of-the-provider';
const USER = { email: 'grace@example.test', password: 'Correct-Horse-1' };
/** The address of the application in the examples. */
const EXAMPLE_HOME = 'http://localhost:5173';

/** By name: the two files, and what is changed in the connection. */
const EXAMPLES: Record<string, { file: string; provider: string; change?: (options: Options) => void }> = {
  openid: { file: 'openid.yaml', provider: 'oauth2-provider.yaml' },
  saml: { file: 'saml.yaml', provider: 'saml-provider.yaml' },
  oauth2: { file: 'oauth2.yaml', provider: 'oauth2-provider.yaml' },
  'oauth2 with a script for its logout': {
    file: 'oauth2.yaml',
    provider: 'oauth2-provider.yaml',
    change: (options) => {
      const address = options.logoutUrl;
      delete options.logoutUrl;
      options.scripts = {
        ...(options.scripts as object),
        getLogoutUrl: `function (query, callback) {
          callback(null, '${address}&returnTo=' + encodeURIComponent(query.returnTo));
        }`,
      };
    },
  },
};
type Options = Record<string, unknown>;

for (const [name, { file, provider: providerFile, change }] of Object.entries(EXAMPLES)) {
  describe(`the example of a provider: ${name}`, () => {
    const trusted = tls.getCACertificates('default');
    let upstream: TestServer;
    let server: TestServer;
    let browser: TestBrowser;
    let context: BrowserContext;
    let page: Page;
    let application: http.Server;
    let home = '';

    before(async () => {
      const [there, here] = [await freePort(), await freePort()];
      // Cookies do not depend on the port; with the same host the two servers would overwrite each other's.
      const env = {
        PROVIDER: `https://127.0.0.1:${there}`,
        GATEHOUSE: `https://localhost:${here}`,
        PROVIDER_SECRET: SECRET,
      };
      const example = async (one: string) => {
        const path = fileURLToPath(new URL(`../../config/examples/${one}`, import.meta.url));
        return (await loadTenantFile(path, env)).tenant;
      };
      const ofProvider = { PORT: String(there), BASE_URL: env.PROVIDER };
      upstream = await startServer({ tenant: await example(providerFile), env: ofProvider });
      // What NODE_EXTRA_CA_CERTS does for a process.
      tls.setDefaultCACertificates([...trusted, upstream.ca]);
      const tenant = await example(file);
      for (const { options } of tenant.connections) change?.(options);
      application = http.createServer((_request, response) => {
        response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><h1>Books</h1>');
      });
      await new Promise<void>((resolve) => application.listen(0, 'localhost', resolve));
      home = `http://localhost:${(application.address() as AddressInfo).port}`;
      server = await startServer({
        tenant: JSON.parse(JSON.stringify(tenant).replaceAll(EXAMPLE_HOME, home)),
        env: { PORT: String(here) },
      });
      browser = await launchBrowser(server.ca);
      context = await browser.newContext({ ignoreHTTPSErrors: true });
      page = await context.newPage();
    });
    after(async () => {
      await browser?.close();
      await server?.stop();
      await upstream?.stop();
      application?.closeAllConnections();
      application?.close();
      tls.setDefaultCACertificates(trusted);
    });

    const { verifier, challenge } = pkce();
    const request = () =>
      new URLSearchParams({
        client_id: 'books',
        response_type: 'code',
        redirect_uri: `${home}/callback`,
        scope: 'openid profile email',
        code_challenge: challenge,
        code_challenge_method: 'S256',
      });

    it('logs in by the button of the page, and logs out at both by /oidc/logout?federated', async () => {
      await page.goto(`${server.url}/authorize?${request()}`);
      await page.getByRole('link', { name: /Harbour ID/ }).click();
      await page.waitForURL(`${upstream.url}/**`);
      await page.fill('input[name=username]', USER.email);
      await page.fill('input[name=password]', USER.password);
      await page.click('button[type=submit]');
      await page.waitForURL(`${home}/callback?**`);
      const answer = await createAgent(server).request('/oauth/token', {
        form: {
          grant_type: 'authorization_code',
          client_id: 'books',
          code: new URL(page.url()).searchParams.get('code') ?? '',
          redirect_uri: `${home}/callback`,
          code_verifier: verifier,
        },
      });
      const { id_token: idToken } = answer.json() as { id_token: string };
      expect(payload(idToken)).to.include({ email: USER.email, email_verified: true });

      const out = new URLSearchParams({ id_token_hint: idToken, post_logout_redirect_uri: home });
      await page.goto(`${server.url}/oidc/logout?federated&${out}`);
      await page.waitForURL(`${home}/**`);
      // The next login asks for the password at the provider again.
      await page.goto(`${server.url}/authorize?${request()}&connection=harbour-id`);
      await page.waitForURL(`${upstream.url}/**`);
      expect(await page.locator('input[name=password]').count()).to.equal(1);
    });
  });
}
