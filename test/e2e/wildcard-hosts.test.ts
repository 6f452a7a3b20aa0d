// @auth0/auth0-spa-js, unmodified, in a real browser, in an application with one host for each customer.
import { readFileSync } from 'node:fs';
import http from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import type { BrowserContext, Page } from 'playwright-core';
import { membershipId } from '../../src/records/users/organizations.ts';
import { launchBrowser, type TestBrowser } from '../support/browser.ts';
import { USER } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { tenantWith } from '../support/tenant.ts';

const require = createRequire(import.meta.url);
const SDK = readFileSync(
  join(dirname(require.resolve('@auth0/auth0-spa-js/package.json')), 'dist/auth0-spa-js.production.js'),
);

describe('@auth0/auth0-spa-js at hosts that a wildcard stands for', () => {
  let server: TestServer;
  let browser: TestBrowser;
  let pages: http.Server;
  let port: number;
  let context: BrowserContext;
  let page: Page;

  before(async () => {
    pages = http.createServer((request, response) => {
      const isSdk = request.url === '/sdk.js';
      response.setHeader('content-type', isSdk ? 'text/javascript' : 'text/html');
      response.end(
        isSdk ? SDK : '<!doctype html><title>App</title><h1>App</h1><script src="/sdk.js"></script>',
      );
    });
    await new Promise<void>((resolve) => pages.listen(0, 'localhost', resolve));
    ({ port } = pages.address() as AddressInfo);
    const listed = (host: string) => ({
      callbacks: [`http://${host}.localhost:${port}`],
      web_origins: [`http://${host}.localhost:${port}`],
      allowed_logout_urls: [`http://${host}.localhost:${port}`],
    });
    server = await startServer({
      tenant: tenantWith({
        change: { spa: listed('*') },
        add: {
          clients: [
            {
              client_id: 'named',
              name: 'Named',
              app_type: 'spa',
              organization_usage: 'require',
              grant_types: ['authorization_code', 'refresh_token'],
              ...listed('{organization_name}'),
            },
          ],
        },
        organizations: [{ id: 'org_acme', name: 'acme', connections: [{ name: 'users' }] }],
        enable: ['named'],
      }),
    });
    const user = await server.users.findInConnection({ name: 'users' }, USER.email);
    const membership = { organization_id: 'org_acme', user_id: user?.id ?? '', roles: [] };
    await server.store
      .collection('memberships')
      .insert({ id: membershipId('org_acme', membership.user_id), ...membership });
    browser = await launchBrowser(server.ca);
  });
  after(async () => {
    await browser?.close();
    await server?.stop();
    pages?.close();
  });
  beforeEach(async () => {
    context = await browser.newContext();
    page = await context.newPage();
  });
  afterEach(() => context.close());

  const at = (host: string) => `http://${host}.localhost:${port}`;
  /** Opens the application at a host, with the SDK's client, as it does at each load. */
  const open = async (origin: string, options: object) => {
    if (new URL(page.url()).origin !== origin) await page.goto(origin);
    await page.evaluate(
      async ([domain, here, more]) => {
        const authorizationParams = { redirect_uri: here, ...(more as any).authorizationParams };
        const given = { clientId: 'spa', ...(more as any), domain, authorizationParams };
        (globalThis as any).client = await (globalThis as any).auth0.createAuth0Client(given);
      },
      [new URL(server.url).host, origin, options] as const,
    );
  };
  const call = (method: string, ...given: object[]) =>
    page.evaluate(([name, args]) => (globalThis as any).client[name](...args), [method, given] as const);
  const logIn = async (origin: string, options: object = {}) => {
    await open(origin, options);
    await Promise.all([page.waitForURL(/\/u\//), call('loginWithRedirect')]);
    await page.getByLabel('Email address').fill(USER.email);
    await page.getByLabel('Password', { exact: true }).fill(USER.password);
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.waitForURL((url) => url.origin === origin);
    await open(origin, options);
    await call('handleRedirectCallback');
  };

  /** Logs out at the server, which ignores the query of the address. */
  const logOut = async (origin: string) => {
    await Promise.all([
      page.waitForURL((url) => url.origin === origin && url.search === '?out=1'),
      call('logout', { logoutParams: { returnTo: `${origin}?out=1` } }),
    ]);
    await page.waitForLoadState();
  };
  const expectRefusal = async () => {
    const [response] = await Promise.all([
      page.waitForResponse((one) => one.url().includes('/authorize')),
      page.waitForURL((url) => url.origin === new URL(server.url).origin),
      call('loginWithRedirect'),
    ]);
    expect(response.status()).to.equal(400);
  };

  it('logs in, renews silently at that host and at the next, and logs out to it', async () => {
    await logIn(at('blue'));
    expect(await call('getUser')).to.include({ email: USER.email });
    expect(await call('getTokenSilently', { cacheMode: 'off' })).to.be.a('string');
    await open(at('green'), {});
    expect(await call('getTokenSilently')).to.be.a('string');
    expect(await call('getUser')).to.include({ email: USER.email });
    await logOut(at('green'));
  });

  it('shows an error page, and goes nowhere, for a host that the wildcard does not stand for', async () => {
    await open(at('blue.green'), {});
    await expectRefusal();
  });

  it("logs members of an organization in at their organization's host, by refresh token too", async () => {
    const options = {
      clientId: 'named',
      useRefreshTokens: true,
      cacheLocation: 'localstorage',
      authorizationParams: { organization: 'org_acme' },
    };
    await logIn(at('acme'), options);
    expect(await call('getIdTokenClaims')).to.include({ org_id: 'org_acme' });
    expect(await call('getTokenSilently', { cacheMode: 'off' })).to.be.a('string');
    await logOut(at('acme'));
    await open(at('other'), options);
    await expectRefusal();
  });
});
