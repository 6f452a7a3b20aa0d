// "Log in with …" in a real browser: the vendor's unmodified SDKs name a connection, or the hosted page offers it.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { auth0Js, clientsAt, openApplication } from '../support/application.ts';
import { bundle } from '../support/bundle.ts';
import { payload, tenant, USER } from '../support/flows.ts';
import { type OAuth2Provider, optionsFor, startProvider } from '../support/oauth2-provider.ts';
import { toProvider } from '../support/upstream-login.ts';

const require = createRequire(import.meta.url);
const spaJs = () =>
  readFileSync(
    join(dirname(require.resolve('@auth0/auth0-spa-js/package.json')), 'dist/auth0-spa-js.production.js'),
  );

describe('a social connection in a browser', () => {
  let provider: OAuth2Provider;
  before(async () => {
    provider = await startProvider();
  });
  after(() => provider.stop());
  afterEach(() => {
    provider.postsAnswer = false;
  });

  const connection = (name: string, more: object = {}) => ({
    name,
    strategy: 'oauth2',
    enabled_clients: ['spa'],
    options: optionsFor(provider),
    ...more,
  });
  const tenantAt = (origin: string) => ({
    ...tenant,
    clients: clientsAt(tenant.clients, origin),
    connections: [
      connection('acme', { display_name: 'Acme Works' }),
      connection('hidden', { show_as_button: false }),
    ],
  });

  describe('by auth0-spa-js', () => {
    const opened = openApplication({ script: spaJs, tenant: tenantAt });

    /** Calls the SDK in the page. */
    const call = (method: string, authorizationParams: Record<string, string>, ...args: unknown[]) => {
      const { page, server, origin } = opened();
      return page.evaluate(
        async ([domain, at, name, params, given]) => {
          const held = globalThis as any; // any: the SDK's types are not those of a page
          held.client ??= await held.auth0.createAuth0Client({
            domain,
            clientId: 'spa',
            authorizationParams: { redirect_uri: `${at}/callback`, ...(params as object) },
          });
          return held.client[name as string](...(given as unknown[]));
        },
        [new URL(server.url).host, origin, method, authorizationParams, args] as const,
      );
    };

    for (const how of ['a redirect', 'a form that it posts']) {
      it(`logs in at a provider that responds by ${how}: loginWithRedirect({ connection })`, async () => {
        const { page, origin } = opened();
        provider.postsAnswer = how !== 'a redirect';
        await Promise.all([
          page.waitForURL(`${origin}/callback?**`),
          call('loginWithRedirect', { connection: 'acme', login_hint: 'grace@upstream.test' }),
        ]);
        expect(provider.last('/authorize').query).to.include({ login_hint: 'grace@upstream.test' });
        await call('handleRedirectCallback', {});
        expect(await call('getUser', {})).to.include({
          sub: 'oauth2|acme|42',
          email: 'grace@upstream.test',
          email_verified: true,
          name: 'Grace',
        });
      });
    }

    it('logs in by the button of the hosted page', async () => {
      const { page, origin } = opened();
      await Promise.all([page.waitForURL(/\/u\//), call('loginWithRedirect', {})]);
      expect(await page.getByRole('link', { name: /^Continue with/ }).allTextContents()).to.deep.equal([
        'Continue with Acme Works',
      ]);
      await page.getByRole('link', { name: 'Continue with Acme Works' }).click();
      await page.waitForURL(`${origin}/callback?**`);
      await call('handleRedirectCallback', {});
      expect(await call('getUser', {})).to.include({ sub: 'oauth2|acme|42' });
    });

    it("gets the provider's error", async () => {
      const { page, origin } = opened();
      provider.token = (response) => void response.writeHead(500).end('no');
      await Promise.all([
        page.waitForURL(`${origin}/callback?**`),
        call('loginWithRedirect', { connection: 'acme' }),
      ]);
      provider.token = undefined;
      const thrown = await call('handleRedirectCallback', {}).catch((error: Error) => error.message);
      expect(thrown).to.contain('token endpoint answered with status 500');
    });

    it("rejects an attacker's response that was planted in its browser", async () => {
      const { page, server, context, origin } = opened();
      // The attacker logs in at the provider with their own account, and keeps the response.
      const { back: planted } = await toProvider(server, {
        client_id: 'spa',
        redirect_uri: `${origin}/callback`,
        code_challenge: 'c'.repeat(43),
        code_challenge_method: 'S256',
      });
      expect(planted).to.contain('/login/callback?code=');
      // The victim has begun a login.
      await Promise.all([page.waitForURL(/\/u\//), call('loginWithRedirect', {})]);
      const answer = await page.goto(planted);
      expect(answer?.status()).to.equal(400);
      expect((await context.cookies()).some(({ name }) => name === '__Host-gatehouse_session')).to.equal(
        false,
      );
    });
  });

  describe('by auth0-js', () => {
    const opened = openApplication({ script: auth0Js, tenant: tenantAt });

    it('logs in at the provider: authorize({ connection })', async () => {
      const { page, server, origin } = opened();
      await Promise.all([
        page.waitForURL(`${origin}/callback**`),
        page.evaluate(
          ([domain, at]) => {
            const { auth0 } = globalThis as any; // any: the SDK brings no types of its own
            const webAuth = new auth0.WebAuth({
              domain,
              clientID: 'spa',
              redirectUri: `${at}/callback`,
              responseType: 'token id_token',
              scope: 'openid email profile',
            });
            webAuth.authorize({ connection: 'acme', connection_scope: ['repo', 'gist'] });
          },
          [new URL(server.url).host, origin] as const,
        ),
      ]);
      expect(provider.last('/authorize').query.scope).to.equal('profile,email,repo,gist');
      const parameters = new URLSearchParams(new URL(page.url()).hash.slice(1));
      expect(payload(parameters.get('id_token') ?? '')).to.include({
        sub: 'oauth2|acme|42',
        email: 'grace@upstream.test',
      });
    });

    it('shows the form of the database if the request names it', async () => {
      const { page, server, origin } = opened();
      await Promise.all([
        page.waitForURL(/\/u\//),
        page.evaluate(
          ([domain, at]) => {
            const { auth0 } = globalThis as any; // any: as above
            const webAuth = new auth0.WebAuth({
              domain,
              clientID: 'spa',
              redirectUri: `${at}/callback`,
              responseType: 'token',
            });
            webAuth.authorize({ connection: 'users' });
          },
          [new URL(server.url).host, origin] as const,
        ),
      ]);
      await page.getByLabel('Email address').fill(USER.email);
      expect(await page.getByRole('link', { name: /^Continue with/ }).count()).to.equal(0);
    });
  });

  describe('by popup.authorize of auth0-js', () => {
    const opened = openApplication({ script: auth0Js, tenant: tenantAt });

    it('logs in at the provider in a new window', async () => {
      const { page, server, origin } = opened();
      const idToken = await page.evaluate(
        ([domain, at]) => {
          const { auth0 } = globalThis as any; // any: as above
          const webAuth = new auth0.WebAuth({
            domain,
            clientID: 'spa',
            redirectUri: `${at}/callback`,
            responseType: 'token id_token',
            scope: 'openid email profile',
          });
          return new Promise<string>((resolve, reject) => {
            webAuth.popup.authorize({ connection: 'acme', owp: true }, (error: any, answer: any) =>
              error ? reject(new Error(error.description)) : resolve(answer.idToken),
            );
          });
        },
        [new URL(server.url).host, origin] as const,
      );
      expect(payload(idToken).sub).to.equal('oauth2|acme|42');
      expect(page.url()).to.equal(`${origin}/`);
    });
  });

  describe('by the login widget', () => {
    /** An enterprise connection with domains. */
    const corp = () => ({
      name: 'corp',
      strategy: 'okta',
      enabled_clients: ['spa'],
      options: {
        client_id: 'ours',
        client_secret: 'our-secret',
        issuer: provider.url,
        authorization_endpoint: `${provider.url}/authorize`,
        token_endpoint: `${provider.url}/token`,
        jwks_uri: `${provider.url}/jwks`,
        tenant_domain: 'corp.example.test',
        domain_aliases: ['Corp.example.net'],
      },
    });
    const opened = openApplication({
      script: () => bundle('auth0-lock', 'lock'),
      tenant: (origin) => {
        const social = tenantAt(origin);
        return { ...social, connections: [...social.connections, corp()] };
      },
    });
    const show = (isRedirect: boolean) => {
      const { page, server, origin } = opened();
      return page.evaluate(
        ([domain, at, redirect]) => {
          const held = globalThis as any; // any: it brings no types of its own
          const widget = new held.lock.Auth0Lock('spa', domain, {
            auth: {
              redirect,
              redirectUrl: `${at}/callback`,
              responseType: 'token id_token',
              params: { scope: 'openid email' },
            },
          });
          widget.on('authenticated', (answer: unknown) => {
            held.authenticated = answer;
          });
          widget.show();
        },
        [new URL(server.url).host, origin, isRedirect] as const,
      );
    };

    it('has a button for the connection, which logs in by redirect', async () => {
      const { page, origin } = opened();
      await show(true);
      await page.locator('.auth0-lock-social-button', { hasText: 'Acme Works' }).click();
      await page.waitForURL((url) => url.origin === origin && url.pathname === '/callback');
      const answer = new URLSearchParams(new URL(page.url()).hash.slice(1));
      expect(payload(answer.get('id_token') ?? '').sub).to.equal('oauth2|acme|42');
    });

    it('logs in in popup mode, without leaving the page', async () => {
      const { page, origin } = opened();
      await show(false);
      await page.locator('.auth0-lock-social-button', { hasText: 'Acme Works' }).click();
      await page.waitForFunction(() => (globalThis as any).authenticated !== undefined); // any: as above
      const idToken = await page.evaluate(() => (globalThis as any).authenticated.idToken); // any: as above
      expect(payload(idToken).sub).to.equal('oauth2|acme|42');
      expect(page.url()).to.equal(`${origin}/`);
    });

    it('redirects a user whose address is of an enterprise connection there, without a password', async () => {
      for (const address of ['grace@corp.example.test', 'grace@corp.example.net']) {
        const { page } = opened();
        await show(true);
        await page.locator('.auth0-lock-input-email input').fill(address);
        const password = page.locator(
          '.auth0-lock-input-show-password input, .auth0-lock-input-password input',
        );
        await password.first().waitFor({ state: 'hidden' });
        const [asked] = await Promise.all([
          page.waitForRequest((request) => request.url().startsWith(`${provider.url}/authorize?`)),
          page.locator('.auth0-lock-submit').click(),
        ]);
        const { searchParams } = new URL(asked.url());
        expect(searchParams.get('login_hint')).to.equal(address);
        await page.waitForURL((url) => url.pathname === '/callback');
        await page.goto(opened().origin);
      }
    });
  });
});
