// Unmodified SDKs in applications whose users have logged in at the old tenant, before the applications were given the new one.
import { readFileSync } from 'node:fs';
import http from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import type { BrowserContext, Page } from 'playwright-core';
import { createAgent } from '../support/agent.ts';
import { launchBrowser, type TestBrowser } from '../support/browser.ts';
import { API, payload, submitLogin, token } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { tenantWith } from '../support/tenant.ts';
import { OLD, oldTenant, type StandIn, startStandIn } from './stand-in.ts';
import { browserAt, newTenant, startNew } from './support.ts';

/** Imported without its types: those of Next.js require the DOM, and would change the types of the server. */
const load = (name: string): Promise<any> => import(name);
const { Auth0Client } = await load('@auth0/nextjs-auth0/server');
const { NextRequest, NextResponse } = await load('next/server.js');

const SDK = readFileSync(
  join(
    dirname(createRequire(import.meta.url).resolve('@auth0/auth0-spa-js/package.json')),
    'dist/auth0-spa-js.production.js',
  ),
);
const NEXT = 'http://localhost:3000';

describe('applications after a move', () => {
  let old: StandIn;
  let server: TestServer;
  let application: http.Server;
  let origin: string;
  let browser: TestBrowser;
  let context: BrowserContext;
  let page: Page;

  before(async () => {
    application = http.createServer((request, response) => {
      const isScript = request.url === '/sdk.js';
      response.setHeader('content-type', isScript ? 'text/javascript' : 'text/html');
      response.end(isScript ? SDK : '<!doctype html><title>App</title><script src="/sdk.js"></script>');
    });
    await new Promise<void>((resolve) => application.listen(0, 'localhost', resolve));
    origin = `http://localhost:${(application.address() as AddressInfo).port}`;
    const change = {
      spa: { callbacks: [origin], web_origins: [origin] },
      web: { callbacks: [`${NEXT}/auth/callback`] },
    };
    old = await startStandIn({ tenant: tenantWith({ change }, oldTenant) });
    server = await startNew(old, tenantWith({ change }, newTenant));
    browser = await launchBrowser(server.ca);
  });
  after(async () => {
    await browser?.close();
    await server?.stop();
    await old?.stop();
    application?.close();
  });
  beforeEach(async () => {
    old.reset();
    context = await browser.newContext();
    page = await context.newPage();
    await page.goto(origin);
  });
  afterEach(() => context.close());

  const OPTIONS = {
    cacheLocation: 'localstorage',
    authorizationParams: { audience: API, scope: 'openid profile email read:things' },
  };
  const createClient = (url: string, more: object = {}) =>
    page.evaluate(
      async ([domain, redirect_uri, { authorizationParams, ...rest }]) => {
        const sdk = (globalThis as any).auth0;
        const params = { redirect_uri, ...authorizationParams };
        const options = { domain, clientId: 'spa', authorizationParams: params, ...rest };
        (globalThis as any).client = await sdk.createAuth0Client(options);
      },
      [new URL(url).host, origin, { ...OPTIONS, ...more } as any] as const,
    );
  const call = (method: string, ...given: unknown[]): Promise<any> =>
    page.evaluate(
      async ([name, args]) => {
        try {
          return await (globalThis as any).client[name](...(args as unknown[]));
        } catch (error) {
          return { thrown: (error as any).error ?? String(error) };
        }
      },
      [method, given] as const,
    );
  const logInThere = async (more: object = {}) => {
    await createClient(old.origin, more);
    await Promise.all([page.waitForURL(/\/u\//), call('loginWithRedirect')]);
    await page.getByLabel('Email address').fill(OLD.bcrypt.email);
    await page.getByLabel('Password', { exact: true }).fill(OLD.bcrypt.password);
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.waitForURL((url) => url.origin === origin);
    await createClient(old.origin, more);
    expect(await call('handleRedirectCallback')).not.to.have.property('thrown');
    await page.goto(origin);
  };

  it('@auth0/auth0-spa-js keeps its user logged in by a silent login in its frame', async () => {
    await logInThere();
    await createClient(server.url);
    const token = await call('getTokenSilently', { cacheMode: 'off' });
    expect(payload(String(token))).to.include({ iss: server.issuer, sub: OLD.bcrypt.id, azp: 'spa' });
    expect(await call('getUser')).to.include({ sub: OLD.bcrypt.id, email: OLD.bcrypt.email });
    const again = await call('getTokenSilently', { cacheMode: 'off' });
    expect(payload(String(again)).iss).to.equal(server.issuer);
    expect(old.asked('/authorize').length, 'our own session answers').to.equal(2);
  });

  it('@auth0/auth0-spa-js keeps its user logged in by its refresh token', async () => {
    const more = { useRefreshTokens: true };
    await logInThere(more);
    await context.clearCookies();
    await createClient(server.url, more);
    for (const _ of [1, 2, 3]) {
      const token = await call('getTokenSilently', { cacheMode: 'off' });
      expect(payload(String(token))).to.include({ iss: server.issuer, sub: OLD.bcrypt.id, azp: 'spa' });
    }
    const asked = old.asked('/oauth/token').filter(({ form }) => form.grant_type === 'refresh_token');
    expect(asked.length).to.equal(1);
  });

  it('@auth0/nextjs-auth0 keeps its user logged in by its refresh token', async () => {
    const auth0 = new Auth0Client({
      domain: server.url,
      allowInsecureRequests: true,
      clientId: 'web',
      clientSecret: 'web-secret',
      appBaseUrl: NEXT,
      secret: 'a-secret-of-the-application-of-32-bytes-or-more',
      authorizationParameters: { scope: 'openid profile email offline_access', audience: API },
    });
    const jar = new Map<string, string>();
    const request = (path: string) =>
      new NextRequest(new URL(path, NEXT), {
        headers: { cookie: [...jar].map(([name, value]) => `${name}=${value}`).join('; ') },
      });
    const keep = (answer: { cookies: { getAll(): { name: string; value: string }[] } }) => {
      for (const { name, value } of answer.cookies.getAll()) jar.set(name, value);
    };
    const visitor = browserAt(server, old);
    const begun = await auth0.middleware(request('/auth/login'));
    keep(begun);
    const login = await visitor.follow(await visitor.here.get(begun.headers.get('location')));
    const back = await submitLogin(visitor.here, server, login, OLD.argon2);
    keep(await auth0.middleware(request(back.location)));
    // The SDK takes no domain that is an address, so the token of the old tenant is put into its session.
    const session = await auth0.getSession(request('/'));
    const theirs = await token(createAgent({ url: old.origin, ca: old.ca }), {
      grant_type: 'password',
      client_id: 'web',
      client_secret: 'web-secret',
      username: OLD.argon2.email,
      password: OLD.argon2.password,
      scope: 'openid profile email offline_access',
      audience: API,
    });
    const { refresh_token: refreshToken } = theirs.json();
    const moved = NextResponse.next();
    const tokenSet = { ...session.tokenSet, refreshToken };
    await auth0.updateSession(request('/'), moved, { ...session, tokenSet });
    keep(moved);

    for (const _ of [1, 2]) {
      const response = NextResponse.next();
      const { token: renewed } = await auth0.getAccessToken(request('/'), response, { refresh: true });
      keep(response);
      expect(payload(renewed)).to.include({ iss: server.issuer, sub: OLD.argon2.id, azp: 'web' });
    }
    const kept = await auth0.getSession(request('/'));
    expect(kept.user.sub).to.equal(OLD.argon2.id);
    expect(kept.tokenSet.refreshToken).to.be.a('string').and.not.equal(refreshToken);
  });
});
