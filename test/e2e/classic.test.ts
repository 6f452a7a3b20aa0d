// Customized login pages as people write them for the hosted service, in a real browser, with the vendor's unmodified SDKs; the
// test serves them in place of the vendor's CDN. What the scripts of such pages need works, and what they must not do fails.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import type { BrowserContext, Page } from 'playwright-core';
import { tenant } from '../connections/passwordless/tenant.ts';
import { factors } from '../factors/tenant.ts';
import { launchBrowser, type TestBrowser } from '../support/browser.ts';
import { bundle } from '../support/bundle.ts';
import { type Callback, startCallback } from '../support/callback.ts';
import { payload, USER } from '../support/flows.ts';
import { nextMessageTo } from '../support/inbox.ts';
import { startServer, type TestServer } from '../support/server.ts';

const CDN = 'https://cdn.auth0.com';
const require = createRequire(import.meta.url);
const SDKS: Record<string, string> = {
  '/widget.js': `${bundle('auth0-lock', 'lock')};globalThis.Auth0Lock=lock.Auth0Lock;`,
  '/auth0.js': readFileSync(
    join(dirname(require.resolve('auth0-js/package.json')), 'dist/auth0.min.js'),
    'utf8',
  ),
};

const READ_CONFIG = "JSON.parse(decodeURIComponent(escape(window.atob('@@config@@'))))";

/** A page with the login widget. */
const WIDGET_PAGE = `<!doctype html><html><head><meta charset="utf-8"><title>Widget</title></head><body>
<script src="${CDN}/widget.js"></script>
<script>
  var config = ${READ_CONFIG};
  new Auth0Lock(config.clientID, config.auth0Domain, {
    auth: {
      redirectUrl: config.callbackURL,
      responseType: config.internalOptions.response_type,
      params: config.internalOptions
    },
    configurationBaseUrl: config.clientConfigurationBaseUrl,
    overrides: { __tenant: config.auth0Tenant, __token_issuer: config.authorizationServer.issuer },
    assetsUrl: config.assetsUrl,
    allowedConnections: config.connection ? [config.connection] : null,
    rememberLastLogin: !config.prompt,
    prefill: { email: config.extraParams.login_hint },
    closable: false
  }).show();
</script></body></html>`;

/** A page with its own forms, which use the SDK. */
const FORM_PAGE = `<!doctype html><html><head><meta charset="utf-8"><title>Form</title></head><body>
<p id="hint"></p><p id="error"></p>
<script src="${CDN}/auth0.js"></script>
<script>
  var config = ${READ_CONFIG};
  document.getElementById('hint').innerHTML = config.extraParams.login_hint || '';
  window.webAuth = new auth0.WebAuth(Object.assign({
    overrides: { __tenant: config.auth0Tenant, __token_issuer: config.authorizationServer.issuer },
    domain: config.auth0Domain,
    clientID: config.clientID,
    redirectUri: config.callbackURL,
    responseType: 'code'
  }, config.internalOptions));
</script></body></html>`;

describe('a customized login page in a browser', () => {
  let server: TestServer;
  let browser: TestBrowser;
  let callback: Callback;
  let context: BrowserContext;
  let page: Page;
  let refused: string[];

  before(async () => {
    callback = await startCallback();
    server = await startServer({
      tenant: {
        ...tenant,
        guardianFactors: factors('otp'),
        pages: [{ name: 'login', html: WIDGET_PAGE }],
        clients: tenant.clients.map((client) => ({
          ...client,
          callbacks: [callback.url],
          ...(['spa', 'leeway'].includes(client.client_id) && { custom_login_page: FORM_PAGE }),
        })),
      },
    });
    browser = await launchBrowser(server.ca);
  });
  after(async () => {
    await browser?.close();
    await server?.stop();
    callback?.close();
  });
  beforeEach(async () => {
    context = await browser.newContext();
    await context.route(`${CDN}/**`, (route) => {
      const body = SDKS[new URL(route.request().url()).pathname];
      return body === undefined ? route.abort() : route.fulfill({ body, contentType: 'text/javascript' });
    });
    page = await context.newPage();
    refused = [];
    page.on('console', (message) => {
      if (/Content Security Policy/.test(message.text())) refused.push(message.text());
    });
  });
  afterEach(() => context.close());

  const open = (clientId: string, over: Record<string, string> = {}) => {
    const params = new URLSearchParams({
      client_id: clientId,
      redirect_uri: callback.url,
      response_type: 'token id_token',
      scope: 'openid email',
      state: 'its-own-state',
      nonce: 'its-own-nonce',
      ...over,
    });
    return page.goto(`${server.url}/authorize?${params}`);
  };
  const fill = async (fields: Record<string, string>) => {
    for (const [name, value] of Object.entries(fields))
      await page.locator(`input[name="${name}"]`).fill(value);
  };
  const submit = () => page.locator('button[name="submit"]').click();
  const message = (text: string) => page.locator('.auth0-global-message', { hasText: text }).waitFor();
  /** Returns what the application's callback got. */
  const back = async () => {
    await page.waitForURL((url) => url.href.startsWith(callback.url));
    const { searchParams, hash } = new URL(page.url());
    const answer = {
      ...Object.fromEntries(searchParams),
      ...Object.fromEntries(new URLSearchParams(hash.slice(1))),
    };
    expect(answer).to.include({ state: 'its-own-state' });
    return answer as Record<string, string>;
  };
  /** Returns the user of the ID token at the application's callback. */
  const userBack = async () => {
    const { id_token = '' } = await back();
    expect(payload(id_token)).to.include({ nonce: 'its-own-nonce' });
    return payload(id_token).email;
  };
  /** Calls a method of the SDK in the page with forms. @returns its error, unless it leaves the page. */
  const call = (method: string, given: Record<string, unknown>) =>
    page
      .evaluate(
        ([path, args]) => {
          const names = path.split('.');
          const name = names.pop() ?? '';
          const { webAuth } = globalThis as any; // any: the SDK brings no types of its own
          const owner = names.reduce((of: any, member: string) => of[member], webAuth);
          return new Promise((resolve) => owner[name](args, resolve));
        },
        [method, given] as const,
      )
      // The browser left the page.
      .catch(() => undefined) as Promise<any>; // any: as above

  describe('with the login widget', () => {
    it('logs in', async () => {
      await open('web', { login_hint: USER.email });
      await fill({ password: USER.password });
      await submit();
      expect(await userBack()).to.equal(USER.email);
    });

    it('shows that a password is wrong, and allows another try', async () => {
      await open('web');
      await fill({ email: USER.email, password: 'wrong' });
      await submit();
      await message('Wrong email or password.');
      await fill({ password: USER.password });
      await submit();
      expect(await userBack()).to.equal(USER.email);
    });

    it('signs up and logs in', async () => {
      await open('web');
      const before = await page.locator('input[name="password"]').elementHandle();
      await page.getByText('Sign Up', { exact: true }).click();
      // Text typed while the previous pane slides away could go into that pane.
      await page.waitForFunction((field) => field?.isConnected === false, before);
      await fill({ email: 'classic@example.test', password: USER.password });
      await submit();
      expect(await userBack()).to.equal('classic@example.test');
    });

    it('requests a password reset', async () => {
      await open('web');
      await page.getByText("Don't remember your password?").click();
      // The previous pane is still sliding away.
      await page.locator('input[name="password"]').waitFor({ state: 'detached' });
      await fill({ email: USER.email });
      await submit();
      await message("We've just sent you an email to reset your password.");
      expect((await nextMessageTo(server, USER.email)).link).to.contain('/u/reset-password?ticket=');
    });

    it('continues at our own page for the second factor', async () => {
      await open('web', { acr_values: 'http://schemas.openid.net/pape/policies/2007/06/multi-factor' });
      await fill({ email: USER.email, password: USER.password });
      await submit();
      await page.waitForURL(/\/u\/[\w-]+\/mfa/);
    });
  });

  describe('with forms of its own', () => {
    it('logs in: login', async () => {
      await open('spa');
      await call('login', { realm: 'users', username: USER.email, password: USER.password });
      expect(await userBack()).to.equal(USER.email);
    });

    it('gets the error of a wrong password: login', async () => {
      await open('spa');
      const error = await call('login', { realm: 'users', username: USER.email, password: 'wrong' });
      expect(error).to.include({ code: 'invalid_user_password', description: 'Wrong email or password.' });
    });

    it('signs up and logs in: redirect.signupAndLogin', async () => {
      await open('spa');
      const email = 'classic-form@example.test';
      await call('redirect.signupAndLogin', { connection: 'users', email, password: USER.password });
      expect(await userBack()).to.equal(email);
    });

    it('logs in with a code: passwordlessStart, passwordlessLogin', async () => {
      await open('spa');
      const email = 'classic-code@example.test';
      await call('passwordlessStart', { connection: 'email', send: 'code', email });
      const { code } = await nextMessageTo(server, email);
      await call('passwordlessLogin', { connection: 'email', email, verificationCode: code });
      expect(await userBack()).to.equal(email);
    });

    it('requests a code for an application with a secret that the page does not know', async () => {
      await open('leeway', { response_type: 'code' });
      const email = 'classic-secret@example.test';
      await call('passwordlessStart', { connection: 'email', send: 'code', email });
      const { code } = await nextMessageTo(server, email);
      await call('passwordlessLogin', { connection: 'email', email, verificationCode: code });
      expect((await back()).code).to.be.a('string');
    });

    it('continues with another connection: authorize', async () => {
      await open('spa');
      await call('authorize', { connection: 'email', login_hint: USER.email });
      await page.waitForFunction(() => (globalThis as any).config?.connection === 'email');
      await call('passwordlessStart', { connection: 'email', send: 'code', email: USER.email });
      const { code } = await nextMessageTo(server, USER.email, 1, 'code');
      await call('passwordlessLogin', { connection: 'email', email: USER.email, verificationCode: code });
      expect(await userBack()).to.equal(USER.email);
    });

    it('learns that there is no session that satisfies the request: getSSOData', async () => {
      await open('spa');
      const told = await page.evaluate(
        () =>
          new Promise((resolve) => {
            const { webAuth } = globalThis as any; // any: as above
            webAuth.client.getSSOData((error: unknown, data: unknown) => resolve([error, data]));
          }),
      );
      expect(told).to.deep.equal([null, { sso: false }]);
    });

    it('learns whether a challenge is needed: renderCaptcha', async () => {
      await open('spa');
      const shown = await page.evaluate(
        () =>
          new Promise((resolve) => {
            const { document, webAuth } = globalThis as any; // any: these types are for servers
            const element = document.createElement('div');
            document.body.append(element);
            webAuth.renderCaptcha(element, null, (error: unknown) =>
              resolve([error ?? null, element.innerHTML]),
            );
          }),
      );
      expect(shown).to.deep.equal([null, '']);
    });
  });

  describe('is held to its content security policy', () => {
    it("which runs nothing that the request contains, whatever the page's script does with it", async () => {
      await open('spa', {
        login_hint: '<img src=x onerror="document.title=1"><a href="javascript:document.title=2">x</a>',
      });
      await page.locator('#hint a').click();
      expect(refused.join('\n')).to.match(/inline event handler/i);
      expect(await page.title()).to.equal('Form');
    });

    it('which allows calls and scripts only of the hosts that it names', async () => {
      await open('spa');
      const outcome = await page.evaluate(async () => {
        const { document } = globalThis as any; // any: as above
        const script = document.createElement('script');
        script.src = 'https://evil.example/x.js';
        const loaded = new Promise((resolve) => {
          script.onload = () => resolve('loaded');
          script.onerror = () => resolve('refused');
        });
        document.body.append(script);
        const called = fetch('https://evil.example/').then(
          () => 'called',
          () => 'refused',
        );
        return Promise.all([loaded, called]);
      });
      expect(outcome).to.deep.equal(['refused', 'refused']);
      expect(refused).to.have.length.at.least(2);
    });

    it('which allows what the page needs', async () => {
      await open('spa');
      await call('login', { realm: 'users', username: USER.email, password: 'wrong' });
      expect(refused).to.deep.equal([]);
    });
  });
});
