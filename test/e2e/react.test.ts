// @auth0/auth0-react, unmodified, in a real browser, against a running server.
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { clientsAt, openApplication } from '../support/application.ts';
import { bundle } from '../support/bundle.ts';
import { API, payload, tenant, USER } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { plugInKey } from '../support/virtual-key.ts';
import { PATIENCE } from '../support/wait-until.ts';

/** The SDK must use the same React as the page. */
const PACKAGES = { React: 'react', dom: 'react-dom/client', sdk: '@auth0/auth0-react' };

const OPEN = 'urn:open';

describe('@auth0/auth0-react in a browser', () => {
  const opened = openApplication({
    script: () => bundle(PACKAGES, 'application'),
    tenant: (origin) => ({
      ...tenant,
      clients: clientsAt(tenant.clients, origin).map((client) =>
        client.client_id === 'spa'
          ? {
              ...client,
              allowed_logout_urls: [origin],
              anonymous_sessions: { active: true },
              grant_types: [...client.grant_types, 'urn:okta:params:oauth:grant-type:webauthn'],
            }
          : client,
      ),
      databases: [
        ...tenant.databases,
        {
          name: 'keys',
          enabled_clients: ['spa'],
          options: { authentication_methods: { passkey: { enabled: true } } },
        },
      ],
      resourceServers: [
        ...tenant.resourceServers,
        {
          name: 'Open',
          identifier: OPEN,
          scopes: [{ value: 'read:cart' }],
          allow_anonymous_access: true,
          subject_type_authorization: { anonymous_user: { policy: 'require_client_grant' } },
        },
      ],
      clientGrants: [
        ...tenant.clientGrants,
        { client_id: 'spa', audience: OPEN, subject_type: 'anonymous_user', scope: ['read:cart'] },
      ],
    }),
  });
  let server: TestServer;
  let origin: string;
  let page: Page;
  beforeEach(() => {
    ({ server, origin, page } = opened());
  });

  interface Options {
    guarded?: boolean;
    useRefreshTokens?: boolean;
    authorizationParams?: object;
  }
  /** Renders an application as people write it; the result of its hook is stored in the page as `auth`. */
  const render = async ({ guarded = false, ...options }: Options = {}) => {
    const provider = {
      domain: new URL(server.url).host,
      clientId: 'spa',
      cacheLocation: 'localstorage',
      ...options,
      authorizationParams: {
        redirect_uri: `${origin}/callback`,
        scope: 'openid profile email',
        ...options.authorizationParams,
      },
    };
    await page.evaluate(`{
      const { React, dom, sdk } = application;
      const Person = () => {
        const auth = globalThis.auth = sdk.useAuth0();
        const { isLoading, isAuthenticated, error, user } = auth;
        const text = isLoading ? 'loading' : error ? 'error: ' + (error.error ?? error.message)
          : isAuthenticated ? 'user: ' + user.email : 'nobody';
        return React.createElement('p', { id: 'said' }, text);
      };
      const shown = ${guarded} ? sdk.withAuthenticationRequired(Person) : Person;
      const provider = {
        ...${JSON.stringify(provider)},
        onRedirectCallback: (state) => {
          globalThis.appState = state;
          history.replaceState({}, '', '/');
        },
      };
      const root = document.createElement('div');
      document.body.append(root);
      dom.createRoot(root).render(React.createElement(sdk.Auth0Provider, provider, React.createElement(shown)));
    }`);
  };
  const said = async (text: RegExp) => {
    const isSaid = `${text}.test(document.querySelector('#said')?.textContent ?? '')`;
    await page.waitForFunction(isSaid, undefined, { timeout: PATIENCE });
    return page.textContent('#said');
  };
  const call = (code: string): Promise<any> =>
    page.evaluate(`(async () => { const { auth } = globalThis; ${code} })()`);
  /** Does the same for calls that leave the page. */
  const leave = (code: string) => call(code).catch(() => undefined);
  /** Waits until the application has loaded with a response in its URL. */
  const back = (parameter: string) =>
    page.waitForURL((url) => url.origin === origin && url.searchParams.has(parameter), { timeout: PATIENCE });
  const submitLogin = async () => {
    await page.waitForSelector('input[name=password]', { timeout: PATIENCE });
    await page.fill('input[name=username]', USER.email);
    await page.fill('input[name=password]', USER.password);
    await page.click('button[type=submit]');
    await back('code');
  };
  const logIn = async (options?: Options) => {
    await render(options);
    await said(/nobody/);
    await leave(`auth.loginWithRedirect({ appState: { to: '/here' } });`);
    await submitLogin();
    await render(options);
    await said(/user: /);
  };

  it('logs in by redirect, knows the user after a reload, and logs out: Auth0Provider, useAuth0', async () => {
    await logIn();
    expect(await said(/user/)).to.equal(`user: ${USER.email}`);
    expect(await call('return globalThis.appState;')).to.include({ to: '/here' });
    expect(await call('return (await auth.getIdTokenClaims()).email;')).to.equal(USER.email);
    await page.goto(`${origin}/again`);
    await render();
    await said(/user: /);
    await leave(`auth.logout({ logoutParams: { returnTo: ${JSON.stringify(origin)} } });`);
    await page.waitForURL((url) => url.origin === origin && url.pathname === '/', { timeout: PATIENCE });
    await render();
    await said(/nobody/);
    await leave(`auth.loginWithRedirect({ authorizationParams: { prompt: 'none' } });`);
    await back('error');
    await render();
    expect(await said(/error/)).to.equal('error: login_required');
  });

  it('gets tokens silently, by iframe and by refresh token: getAccessTokenSilently', async () => {
    await logIn({ authorizationParams: { audience: API } });
    const first = await call(`return auth.getAccessTokenSilently({ cacheMode: 'off' });`);
    expect([payload(first).aud].flat()).to.include(API);
    await page.goto(`${origin}/again`);
    await page.evaluate('localStorage.clear()');
    const renewing: Options = {
      useRefreshTokens: true,
      authorizationParams: { audience: API, scope: 'openid profile email offline_access' },
    };
    await render(renewing);
    await said(/nobody|user/);
    await leave(`auth.loginWithRedirect();`);
    await back('code');
    await render(renewing);
    await said(/user: /);
    const renewed = await call(
      `return auth.getAccessTokenSilently({ cacheMode: 'off', detailedResponse: true });`,
    );
    expect([payload(renewed.access_token).aud].flat()).to.include(API);
  });

  it('signs up a user and logs them in with a passkey: passkey.signup, passkey.login', async () => {
    const cdp = await page.context().newCDPSession(page);
    await cdp.send('WebAuthn.enable');
    await plugInKey(cdp);
    await render();
    await said(/nobody/);
    const email = 'react-key@example.test';
    const made = await call(
      `return auth.passkey.signup({ email: ${JSON.stringify(email)}, realm: 'keys', scope: 'openid email' });`,
    );
    const { sub } = payload(made.id_token);
    const again = await call(`return auth.passkey.login({ realm: 'keys', scope: 'openid email' });`);
    expect(payload(again.id_token)).to.include({ sub, email });
  });

  it('keeps an anonymous session, and forgets it: anonymous.createSession, getTokenSilently, logout', async () => {
    await render();
    await said(/nobody/);
    const asked = JSON.stringify({ audience: OPEN });
    const begun = await call(`return auth.anonymous.createSession(${asked});`);
    const first = payload(begun.accessToken);
    expect(first).to.include({ aud: OPEN, gty: 'anonymous', scope: 'read:cart' });
    const same = await call(`return auth.anonymous.getTokenSilently(${asked});`);
    expect(payload(same.accessToken).sub).to.equal(first.sub);
    expect(await said(/nobody/), 'a visitor is no user').to.equal('nobody');
    await call('await auth.anonymous.logout();');
    const next = await call(`return auth.anonymous.createSession(${asked});`);
    expect(payload(next.accessToken).sub).not.to.equal(first.sub);
  });

  it('redirects a user without a session to log in: withAuthenticationRequired', async () => {
    await render({ guarded: true });
    await submitLogin();
    await render({ guarded: true });
    expect(await said(/user/)).to.equal(`user: ${USER.email}`);
  });
});
