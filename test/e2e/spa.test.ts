// @auth0/auth0-spa-js, unmodified, in a real browser, against a running server.
import { readFileSync } from 'node:fs';
import http from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import type { BrowserContext, Page } from 'playwright-core';
import { membershipId } from '../../src/records/users/organizations.ts';
import { hashSecret } from '../../src/runtime/secrets.ts';
import { launchBrowser, type TestBrowser } from '../support/browser.ts';
import { API, payload, USER } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { tenantWith } from '../support/tenant.ts';

const require = createRequire(import.meta.url);
const SDK = readFileSync(
  join(dirname(require.resolve('@auth0/auth0-spa-js/package.json')), 'dist/auth0-spa-js.production.js'),
);

/** The application: a page with the SDK, and an API that checks tokens by their signature only. */
async function startApplication(): Promise<{ origin: string; close(): Promise<void> }> {
  const server = http.createServer((request, response) => {
    if (request.url === '/sdk.js') {
      response.setHeader('content-type', 'text/javascript');
      return response.end(SDK);
    }
    response.setHeader('content-type', 'text/html');
    response.end('<!doctype html><title>App</title><h1>App</h1><script src="/sdk.js"></script>');
  });
  await new Promise<void>((resolve) => server.listen(0, 'localhost', resolve));
  const origin = `http://localhost:${(server.address() as AddressInfo).port}`;
  return { origin, close: () => new Promise((resolve) => server.close(() => resolve())) };
}

describe('@auth0/auth0-spa-js in a browser', () => {
  let server: TestServer;
  let browser: TestBrowser;
  let application: { origin: string; close(): Promise<void> };
  let context: BrowserContext;
  let page: Page;

  before(async () => {
    application = await startApplication();
    server = await startServer({
      tenant: tenantWith({
        change: {
          spa: (client) => ({
            organization_usage: 'allow',
            anonymous_sessions: { active: true },
            refresh_token: {
              ...client.refresh_token,
              policies: [{ audience: 'urn:other', scope: ['read'] }],
            },
            callbacks: [application.origin],
            web_origins: [application.origin],
            allowed_logout_urls: [application.origin],
          }),
        },
        add: {
          resourceServers: [
            {
              name: 'Other',
              identifier: 'urn:other',
              scopes: [{ value: 'read' }],
              allow_offline_access: true,
            },
            ...['urn:open', 'urn:open-too'].map((identifier) => ({
              name: identifier,
              identifier,
              scopes: [{ value: 'read:cart' }],
              allow_anonymous_access: true,
              subject_type_authorization: { anonymous_user: { policy: 'require_client_grant' } },
            })),
          ],
          clientGrants: [
            ...['urn:open', 'urn:open-too'].map((audience) => ({
              client_id: 'spa',
              audience,
              subject_type: 'anonymous_user',
              scope: ['read:cart'],
            })),
          ],
        },
        organizations: [{ id: 'org_acme', name: 'acme', connections: [{ name: 'users' }] }],
      }),
    });
    browser = await launchBrowser(server.ca);
  });
  after(async () => {
    await browser?.close();
    await server?.stop();
    await application?.close();
  });
  beforeEach(async () => {
    context = await browser.newContext();
    page = await context.newPage();
    await page.goto(application.origin);
  });
  afterEach(() => context.close());

  /** Creates the SDK's client in the page, as the application does at each load. */
  const createClient = (options: Record<string, unknown> = {}) =>
    page.evaluate(
      async ([domain, origin, more]) => {
        const sdk = (globalThis as any).auth0;
        const { authorizationParams, ...rest } = more as any;
        (globalThis as any).client = await sdk.createAuth0Client({
          domain,
          clientId: 'spa',
          authorizationParams: { redirect_uri: origin, ...authorizationParams },
          ...rest,
        });
      },
      [new URL(server.url).host, application.origin, options] as const,
    );
  const call = (method: string, ...given: unknown[]) =>
    page.evaluate(
      async ([name, args]) => {
        try {
          return await (globalThis as any).client[name](...(args as unknown[]));
        } catch (error) {
          return {
            thrown: (error as any).error ?? String(error),
            description: (error as any).error_description,
          };
        }
      },
      [method, given] as const,
    );
  const logInByRedirect = async (options: Record<string, unknown> = {}) => {
    await createClient(options);
    await Promise.all([page.waitForURL(/\/u\//), call('loginWithRedirect')]);
    await page.getByLabel('Email address').fill(USER.email);
    await page.getByLabel('Password', { exact: true }).fill(USER.password);
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.waitForURL((url) => url.origin === application.origin);
    await createClient(options);
    return call('handleRedirectCallback');
  };

  it('logs in by redirect, reads the profile, and gets a token for an API', async () => {
    const result = await logInByRedirect({
      authorizationParams: { audience: API, scope: 'openid profile email read:things' },
    });
    expect(result).not.to.have.property('thrown');
    expect(await call('isAuthenticated')).to.equal(true);
    expect(await call('getUser')).to.include({ email: USER.email, email_verified: true });
    const token = await call('getTokenSilently');
    expect(payload(token)).to.deep.include({ azp: 'spa', scope: 'openid profile email read:things' });
  });

  it('renews tokens silently in an iframe', async () => {
    await logInByRedirect();
    const framed: string[] = [];
    page.on('request', (request) => {
      if (request.url().includes('response_mode=web_message')) framed.push(request.url());
    });
    const token = await call('getTokenSilently', { cacheMode: 'off' });
    expect(token).to.be.a('string');
    expect(framed).to.have.length(1);
    expect(framed[0]).to.contain('prompt=none');
  });

  it("renews tokens silently after a reload, by the server's session alone", async () => {
    await logInByRedirect();
    await page.goto(application.origin);
    await createClient();
    await call('checkSession');
    expect(await call('getUser')).to.include({ email: USER.email });
  });

  it('refreshes with a rotating refresh token', async () => {
    await logInByRedirect({ useRefreshTokens: true, cacheLocation: 'localstorage' });
    const requests: string[] = [];
    page.on('request', (request) => {
      if (request.url().endsWith('/oauth/token')) requests.push(request.postData() ?? '');
    });
    const first = await call('getTokenSilently', { cacheMode: 'off' });
    const second = await call('getTokenSilently', { cacheMode: 'off' });
    expect(first).to.be.a('string').and.not.to.equal(second);
    expect(requests).to.have.length(2);
    for (const request of requests) expect(request).to.contain('refresh_token');
  });

  it('gets a token for another API by the same refresh token (useMrrt)', async () => {
    const options = { useRefreshTokens: true, useMrrt: true, cacheLocation: 'localstorage' };
    await logInByRedirect({
      ...options,
      authorizationParams: { audience: API, scope: 'openid profile email' },
    });
    const other = { audience: 'urn:other', scope: 'openid profile email read' };
    const token = await call('getTokenSilently', { authorizationParams: other });
    expect(payload(token)).to.include({ azp: 'spa' });
    expect(payload(token).scope).to.contain('read');
    expect([payload(token).aud].flat()).to.include('urn:other');
  });

  it('gets login_required if there is no session', async () => {
    await createClient();
    expect(await call('getTokenSilently')).to.include({
      thrown: 'login_required',
      description: 'Login required',
    });
  });

  it('forgets the user after a logout of the application alone', async () => {
    await logInByRedirect();
    await call('logout', { openUrl: false });
    expect(await call('isAuthenticated')).to.equal(false);
    expect(await call('getUser')).to.equal(undefined);
  });

  for (const federated of [false, true]) {
    it(`logs out at the server and returns${federated ? ', federated' : ''}`, async () => {
      await logInByRedirect();
      await Promise.all([
        page.waitForResponse((response) => response.url().includes('/v2/logout')),
        page.waitForURL((url) => url.origin === application.origin && url.search === ''),
        call('logout', { logoutParams: { returnTo: application.origin, federated } }),
      ]);
      await page.waitForLoadState();
      await createClient();
      expect(await call('getTokenSilently')).to.include({ thrown: 'login_required' });
    });
  }

  it('logs in a member of an organization, and nobody else', async () => {
    const user = await server.users.findInConnection({ name: 'users' }, USER.email);
    const membership = { organization_id: 'org_acme', user_id: user?.id ?? '', roles: [] };
    const id = membershipId('org_acme', membership.user_id);
    const options = { useRefreshTokens: true, cacheLocation: 'localstorage' };
    const asMember = { ...options, authorizationParams: { organization: 'org_acme' } };
    expect(await logInByRedirect(asMember)).to.include({ thrown: 'access_denied' });
    await server.store.collection('memberships').put({ id, ...membership });
    expect(await logInByRedirect(asMember)).not.to.have.property('thrown');
    expect(await call('getIdTokenClaims')).to.include({ org_id: 'org_acme' });
    expect(await call('getTokenSilently', { cacheMode: 'off' })).to.be.a('string');
    await server.store.collection('memberships').delete(id);
    expect(await call('getTokenSilently', { cacheMode: 'off' })).to.have.property('thrown');
  });

  it('accepts an invitation', async () => {
    const email = 'invited-spa@example.test';
    await server.store.collection('invitations').insert({
      id: 'uinv_spa',
      organization_id: 'org_acme',
      ticketHash: hashSecret('the-ticket'),
      inviter: { name: 'Grace' },
      invitee: { email },
      client_id: 'spa',
      app_metadata: {},
      user_metadata: {},
      roles: [],
      created_at: new Date().toISOString(),
      expires_at: new Date().toISOString(),
    });
    await createClient({ authorizationParams: { organization: 'org_acme', invitation: 'the-ticket' } });
    await Promise.all([page.waitForURL(/\/u\//), call('loginWithRedirect')]);
    expect(await page.getByLabel('Email address').inputValue()).to.equal(email);
    await page.getByLabel('Password', { exact: true }).fill('Another-Horse-7');
    await page.locator('button.primary').click();
    await page.waitForURL((url) => url.origin === application.origin);
    await createClient({ authorizationParams: { organization: 'org_acme' } });
    expect(await call('handleRedirectCallback')).not.to.have.property('thrown');
    expect(await call('getUser')).to.include({ email });
    expect(await call('getIdTokenClaims')).to.include({ org_id: 'org_acme' });
  });

  it('logs in in a popup', async () => {
    await createClient();
    const [popup] = await Promise.all([
      context.waitForEvent('page'),
      page.evaluate(() => {
        (globalThis as any).done = (globalThis as any).client.loginWithPopup();
      }),
    ]);
    await popup.getByLabel('Email address').fill(USER.email);
    await popup.getByLabel('Password', { exact: true }).fill(USER.password);
    await popup.getByRole('button', { name: 'Continue' }).click();
    await page.evaluate(() => (globalThis as any).done);
    expect(await call('getUser')).to.include({ email: USER.email });
  });

  it('signs a new user up at the hosted page', async () => {
    await createClient();
    await Promise.all([
      page.waitForURL(/\/u\//),
      call('loginWithRedirect', { authorizationParams: { screen_hint: 'signup' } }),
    ]);
    await page.getByLabel('Email address').fill('grace@example.test');
    await page.getByLabel('Password', { exact: true }).fill('Another-Horse-2');
    await page.getByRole('button', { name: 'Create account' }).click();
    await page.waitForURL((url) => url.origin === application.origin);
    await createClient();
    await call('handleRedirectCallback');
    expect(await call('getUser')).to.include({ email: 'grace@example.test', nickname: 'grace' });
  });

  it('keeps one anonymous session for all APIs, until it is forgotten or expires', async () => {
    const anonymous = (method: string, ...given: unknown[]): Promise<any> =>
      page.evaluate(
        ([name, args]) =>
          (globalThis as any).client.anonymous[name](...args).catch((error: any) => ({ thrown: error.code })),
        [method, given] as const,
      );
    const hasSession = () => page.evaluate(() => (globalThis as any).client.anonymous.hasSession());
    await createClient({ createAnonymousSessionOnFailedSilentAuth: true });
    expect(await call('isAuthenticated')).to.equal(false);
    expect(await hasSession()).to.equal(true);
    await anonymous('logout');
    expect(await hasSession()).to.equal(false);

    const begun = await anonymous('createSession', { audience: 'urn:open', metadata: { cart: 'c-1' } });
    const { sub } = payload(begun.accessToken);
    expect(payload(begun.sessionToken)).to.deep.include({ sub, metadata: { cart: 'c-1' } });
    const same = await anonymous('getTokenSilently', { audience: 'urn:open' });
    expect(same.accessToken).to.equal(begun.accessToken);
    const other = await anonymous('getTokenSilently', { audience: 'urn:open-too', scope: 'read:cart' });
    expect(payload(other.accessToken)).to.include({ sub, aud: 'urn:open-too', scope: 'read:cart' });
    expect(await anonymous('getTokenSilently', { audience: API })).to.deep.equal({
      thrown: 'invalid_target',
    });

    server.tick(31 * 24 * 3_600_000);
    const late = await anonymous('getTokenSilently', { audience: 'urn:open', scope: 'read:cart' });
    expect(payload(late.accessToken).sub)
      .to.match(/^anon@/)
      .and.not.equal(sub);
  });

  it('is rejected from an origin that no application has registered', async () => {
    const foreign = await startApplication();
    try {
      await page.goto(foreign.origin);
      const failed = await page.evaluate(
        (url) =>
          fetch(`${url}/oauth/token`, {
            method: 'POST',
            body: '{}',
            headers: { 'content-type': 'application/json' },
          }).then(
            () => 'read',
            () => 'refused',
          ),
        server.url,
      );
      expect(failed).to.equal('refused');
    } finally {
      await foreign.close();
    }
  });
});
