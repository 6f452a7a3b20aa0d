// The hosted pages in a real browser: wide and narrow, light and dark, by keyboard, by the rules of screen readers
// (axe), without scripts, in several languages.
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import type { BrowserContext, Page } from 'playwright-core';
import {
  accessibilityFaults,
  faultsInAllLooks,
  NARROWEST,
  sidewaysScroll,
  WIDE,
} from '../support/accessibility.ts';
import { launchBrowser, type TestBrowser } from '../support/browser.ts';
import { API, pkce, spaRequest as spa, tenant, USER, webRequest as web } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';

const SHOTS = process.env.SHOTS;

describe('the hosted pages', () => {
  let server: TestServer;
  let browser: TestBrowser;
  let callbacks: http.Server;
  let CALLBACK: string;
  const { challenge } = pkce();
  const spaRequest = (over: Record<string, string> = {}) =>
    spa(challenge, { redirect_uri: CALLBACK, ...over });
  const webRequest = (over: Record<string, string> = {}) => web({ redirect_uri: CALLBACK, ...over });

  before(async () => {
    // The applications' callback: it only matters that the browser is sent there.
    callbacks = http.createServer((_request, response) => {
      response.setHeader('content-type', 'text/html');
      response.end('<title>callback</title>');
    });
    callbacks.listen(0, 'localhost');
    await once(callbacks, 'listening');
    CALLBACK = `http://localhost:${(callbacks.address() as AddressInfo).port}/callback`;
    server = await startServer({
      tenant: {
        ...tenant,
        branding: { terms_url: 'https://example.test/terms', privacy_url: 'https://example.test/privacy' },
        clients: tenant.clients.map((client) => ({
          ...client,
          callbacks: [CALLBACK],
          ...(client.client_id === 'web' ? { name: '<script>alert(1)</script> {{ 7 | times: 7 }}' } : {}),
        })),
      },
    });
    browser = await launchBrowser(server.ca);
  });
  after(async () => {
    await browser?.close();
    await server?.stop();
    callbacks?.close();
  });

  type ContextOptions = Parameters<TestBrowser['newContext']>[0];
  const open = async (options: ContextOptions = {}): Promise<{ context: BrowserContext; page: Page }> => {
    const context = await browser.newContext(options);
    const page = await context.newPage();
    return { context, page };
  };
  const authorizeUrl = (params: Record<string, string>) =>
    `${server.url}/authorize?${new URLSearchParams(params)}`;
  const third = () => ({
    ...webRequest({
      scope: 'openid profile offline_access read:things write:things',
      audience: API,
    }),
    client_id: 'third',
  });
  const logIn = async (page: Page) => {
    await page.getByLabel(/mail/i).fill(USER.email);
    await page.getByLabel('Password', { exact: true }).fill(USER.password);
    await page.getByRole('button', { name: 'Continue' }).click();
  };

  /** Each page, with the steps that lead to it. */
  const pages: Record<string, (page: Page) => Promise<void>> = {
    login: async (page) => {
      await page.goto(authorizeUrl(spaRequest()));
    },
    'login with an error': async (page) => {
      await page.goto(authorizeUrl(spaRequest({ login_hint: 'someone@example.test' })));
      await page.getByLabel('Password', { exact: true }).fill('not-the-password');
      await page.getByRole('button', { name: 'Continue' }).click();
      await page.getByRole('alert').waitFor();
    },
    signup: async (page) => {
      await page.goto(authorizeUrl(spaRequest({ screen_hint: 'signup' })));
    },
    'signup with an error': async (page) => {
      await page.goto(authorizeUrl(webRequest({ screen_hint: 'signup', connection: 'staff' })));
      await page.getByLabel('Email address').fill('new@example.test');
      await page.getByLabel('Username').fill('newby');
      await page.getByLabel('Password', { exact: true }).fill('weak');
      await page.getByRole('button', { name: 'Create account' }).click();
      await page.getByRole('alert').waitFor();
    },
    consent: async (page) => {
      await page.goto(authorizeUrl(third()));
      await logIn(page);
      await page.getByRole('button', { name: 'Allow' }).waitFor();
    },
    'choice of account': async (page) => {
      await page.goto(authorizeUrl(spaRequest()));
      await logIn(page);
      await page.waitForURL((url) => url.href.startsWith(CALLBACK));
      await page.goto(authorizeUrl(spaRequest({ prompt: 'select_account' })));
    },
    error: async (page) => {
      await page.goto(authorizeUrl(spaRequest({ redirect_uri: 'https://evil.example/' })));
    },
    home: async (page) => {
      await page.goto(server.url);
    },
    tokens: async (page) => {
      await page.goto(server.url);
      await page.getByRole('button', { name: 'Try login' }).click();
      await logIn(page);
      await page.getByRole('heading', { name: 'ID token' }).waitFor();
    },
  };

  for (const [name, reach] of Object.entries(pages)) {
    describe(`the page ${name}`, () => {
      let context: BrowserContext;
      let page: Page;
      before(async () => {
        ({ context, page } = await open({ colorScheme: 'light', reducedMotion: 'reduce', viewport: WIDE }));
        await reach(page);
      });
      after(() => context?.close());

      it('has no accessibility violations, light and dark, wide and narrow', async () => {
        const shoot = (look: string) =>
          page.screenshot({ path: `${SHOTS}/${name.replaceAll(' ', '-')}-${look}.png`, fullPage: true });
        expect(await faultsInAllLooks(page, SHOTS ? shoot : undefined)).to.deep.equal([]);
      });

      it('does not scroll sideways on the narrowest phone', async () => {
        await page.setViewportSize(NARROWEST);
        expect(await sidewaysScroll(page)).to.equal(0);
      });
    });
  }

  it('log in by keyboard alone', async () => {
    const { context, page } = await open();
    await pages.login!(page);
    await page.locator('input:focus').waitFor();
    await page.keyboard.type(USER.email);
    await page.keyboard.press('Tab');
    await page.keyboard.type(USER.password);
    await page.keyboard.press('Enter');
    await page.waitForURL((url) => url.href.startsWith(CALLBACK));
    await context.close();
  });

  it('show the password on demand, and hide it again', async () => {
    const { context, page } = await open();
    await pages.login!(page);
    const field = page.getByLabel('Password', { exact: true });
    await field.fill('visible?');
    await page.getByRole('button', { name: 'Show' }).click();
    expect(await field.getAttribute('type')).to.equal('text');
    await page.getByRole('button', { name: 'Hide' }).click();
    expect(await field.getAttribute('type')).to.equal('password');
    await context.close();
  });

  it('show which rules a new password meets while it is typed', async () => {
    const { context, page } = await open();
    await pages.signup!(page);
    const length = page.getByRole('listitem').filter({ hasText: 'At least 8 characters' });
    await page.getByLabel('Password', { exact: true }).fill('short');
    expect(await length.textContent()).to.contain('still missing');
    await page.getByLabel('Password', { exact: true }).fill('Long-enough-1');
    expect(await length.textContent()).to.contain('done');
    await context.close();
  });

  describe('without scripts', () => {
    it('sign up, log in, and show the rules that a password breaks', async () => {
      const { context, page } = await open({ javaScriptEnabled: false });
      await page.goto(authorizeUrl(spaRequest()));
      await page.getByRole('link', { name: 'Sign up' }).click();
      await page.getByLabel('Email address').fill('plain@example.test');
      await page.getByLabel('Password', { exact: true }).fill('weak');
      await page.getByRole('button', { name: 'Create account' }).click();
      expect(await page.getByRole('alert').textContent()).to.contain('could not be created');
      expect(await page.getByRole('list').first().textContent()).to.contain('still missing');
      expect(await page.getByLabel('Email address').inputValue()).to.equal('plain@example.test');
      expect(await page.getByLabel('Password', { exact: true }).inputValue()).to.equal('');
      await page.getByLabel('Password', { exact: true }).fill('Strong-Enough-1');
      await page.getByRole('button', { name: 'Create account' }).click();
      await page.waitForURL((url) => url.href.startsWith(CALLBACK));
      await context.close();
    });

    it('ask for consent', async () => {
      const { context, page } = await open({ javaScriptEnabled: false });
      await page.goto(authorizeUrl({ ...third(), scope: 'openid email' }));
      await logIn(page);
      await page.getByRole('button', { name: 'Allow' }).click();
      await page.waitForURL((url) => url.href.startsWith(CALLBACK) && url.searchParams.has('code'));
      await context.close();
    });
  });

  it('fill in login_hint, escaped', async () => {
    const { context, page } = await open();
    const hint = '"><img src=x onerror=alert(1)>';
    let alerted = false;
    page.on('dialog', () => {
      alerted = true;
    });
    await page.goto(authorizeUrl(spaRequest({ login_hint: hint })));
    expect(await page.getByLabel('Email address').inputValue()).to.equal(hint);
    expect(alerted).to.equal(false);
    await context.close();
  });

  it("show an application's name, escaped", async () => {
    const { context, page } = await open();
    await page.goto(authorizeUrl(webRequest()));
    expect(await page.locator('.lead').textContent()).to.contain(
      '<script>alert(1)</script> {{ 7 | times: 7 }}',
    );
    expect(await page.content()).not.to.contain('<script>alert');
    await context.close();
  });

  it('link to the terms that the branding names', async () => {
    const { context, page } = await open();
    await pages.login!(page);
    expect(await page.getByRole('link', { name: 'Terms' }).getAttribute('href')).to.equal(
      'https://example.test/terms',
    );
    await context.close();
  });

  for (const [how, options, over] of [
    ['Accept-Language', { locale: 'de-AT' }, {}],
    ['ui_locales, which comes first', { locale: 'ar' }, { ui_locales: 'xx de' }],
  ] as const) {
    it(`are in the user's language by ${how}`, async () => {
      const { context, page } = await open(options);
      await page.goto(authorizeUrl(spaRequest(over)));
      expect(await page.getByRole('heading', { level: 1 }).textContent()).to.equal('Willkommen');
      expect(await page.locator('html').getAttribute('lang')).to.equal('de');
      await context.close();
    });
  }

  it('are laid out from right to left in Arabic', async () => {
    const { context, page } = await open({ locale: 'ar', viewport: { width: 1280, height: 900 } });
    await page.goto(authorizeUrl(spaRequest({ screen_hint: 'signup' })));
    expect(await page.locator('html').getAttribute('dir')).to.equal('rtl');
    if (SHOTS) await page.screenshot({ path: `${SHOTS}/signup-arabic.png` });
    expect(await accessibilityFaults(page)).to.deep.equal([]);
    await context.close();
  });

  it("use the tenant's first language for an unsupported language", async () => {
    const { context, page } = await open({ locale: 'tlh' });
    await pages.login!(page);
    expect(await page.locator('html').getAttribute('lang')).to.equal('en');
    await context.close();
  });

  it('allow the login’s redirect chain to end at another origin than the callback', async () => {
    const onward = http.createServer((_request, response) => response.end('<title>arrived</title>'));
    onward.listen(0, 'localhost');
    await once(onward, 'listening');
    const target = `http://localhost:${(onward.address() as AddressInfo).port}/`;
    callbacks.once('request', (_request, response) => response.writeHead(302, { location: target }).end());
    const answer = callbacks.listeners('request')[0] as () => void;
    callbacks.removeListener('request', answer);
    const { context, page } = await open();
    try {
      await page.goto(authorizeUrl(spaRequest()));
      await logIn(page);
      await page.waitForURL(target);
    } finally {
      callbacks.on('request', answer);
      await context.close();
      onward.close();
    }
  });

  it('can both be finished when two login pages are open in one browser', async () => {
    const { context, page } = await open();
    const second = await context.newPage();
    await page.goto(authorizeUrl(spaRequest({ state: 'one' })));
    await second.goto(authorizeUrl(spaRequest({ state: 'two' })));
    await logIn(page);
    await page.waitForURL((url) => url.searchParams.get('state') === 'one');
    await logIn(second);
    await second.waitForURL((url) => url.searchParams.get('state') === 'two' && url.searchParams.has('code'));
    await context.close();
  });
});
