// One session of a real browser with two OpenID Connect applications and a SAML service provider by another author.
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Profile, SAML } from '@node-saml/node-saml';
import { expect } from 'chai';
import type { BrowserContext, Page } from 'playwright-core';
import { accessibilityFaults } from '../support/accessibility.ts';
import { launchBrowser, type TestBrowser } from '../support/browser.ts';
import { USER } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { samlClient, serviceProvider, startSamlServer } from './support.ts';

interface Application {
  origin: string;
  /** Set once the identity provider runs. */
  sp?: SAML;
  /** The user who is logged in at the service provider. */
  profile?: Profile | undefined;
  close(): void;
}

/** The service provider and, at /oidc, the parameters that an OpenID Connect application got. */
async function startApplication(): Promise<Application> {
  const application: Application = { origin: '', close: () => server.close() };
  const handle = async (path: string, query: string, form: Record<string, string>): Promise<string> => {
    const sp = application.sp!;
    const { profile } = application;
    if (path === '/login') return `>${await sp.getAuthorizeUrlAsync('the-state', undefined, {})}`;
    if (path === '/logout') return `>${await sp.getLogoutUrlAsync(profile!, '', {})}`;
    if (path === '/acs') {
      application.profile = (await sp.validatePostResponseAsync(form)).profile ?? undefined;
      return `logged in: ${application.profile?.nameID}, ${form.RelayState}`;
    }
    if (path === '/slo' && form.SAMLRequest !== undefined) {
      const request = await sp.validatePostRequestAsync(form);
      application.profile = undefined;
      return `>${await sp.getLogoutResponseUrlAsync(request.profile!, '', {}, true)}`;
    }
    if (path === '/slo') {
      application.profile = undefined;
      return `logged out: ${(await sp.validatePostResponseAsync(form)).loggedOut}`;
    }
    return `${path}${query}`;
  };
  const server = http.createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', async () => {
      const { pathname, search } = new URL(request.url ?? '/', application.origin);
      const form = Object.fromEntries(new URLSearchParams(Buffer.concat(chunks).toString()));
      const body = await handle(pathname, search, form).catch((error: Error) => `failed: ${error.message}`);
      if (body.startsWith('>')) return response.writeHead(302, { location: body.slice(1) }).end();
      response.writeHead(200, { 'content-type': 'text/plain' }).end(body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, 'localhost', resolve));
  application.origin = `http://localhost:${(server.address() as AddressInfo).port}`;
  return application;
}

describe('a SAML service provider in a browser', () => {
  let server: TestServer;
  let application: Application;
  let browser: TestBrowser;

  before(async () => {
    application = await startApplication();
    const { origin } = application;
    const oidc = (client_id: string) => ({
      client_id,
      name: client_id,
      app_type: 'regular_web',
      callbacks: [`${origin}/${client_id}`],
      allowed_logout_urls: [`${origin}/bye`],
    });
    server = await startSamlServer([
      samlClient('saml', { logout: { callback: `${origin}/slo` } }, { callbacks: [`${origin}/acs`] }),
      oidc('first') as never,
      oidc('second') as never,
    ]);
    application.sp = await serviceProvider(server, 'saml', {
      callbackUrl: `${origin}/acs`,
      logoutCallbackUrl: `${origin}/slo`,
    });
    browser = await launchBrowser(server.ca);
  });
  after(async () => {
    await browser?.close();
    await server?.stop();
    application?.close();
  });

  async function inBrowser(
    options: { javaScriptEnabled?: boolean },
    use: (page: Page, context: BrowserContext) => Promise<void>,
  ): Promise<void> {
    const context = await browser.newContext(options);
    const page = await context.newPage();
    try {
      await use(page, context);
    } finally {
      await context.close();
    }
  }
  const shown = (page: Page) => page.locator('body').innerText();
  async function fillIn(page: Page): Promise<void> {
    await page.fill('[name=username]', USER.email);
    await page.fill('[name=password]', USER.password);
    await page.click('button[type=submit]');
  }
  const authorize = (client: string, more = '') =>
    `${server.url}/authorize?response_type=code&client_id=${client}&redirect_uri=${encodeURIComponent(`${application.origin}/${client}`)}${more}`;
  const isLoggedIn = async (page: Page) => {
    await page.goto(authorize('first', '&prompt=none'));
    return (await shown(page)).includes('code=');
  };

  it('logs in once for all three, and logs out everywhere', async () => {
    await inBrowser({}, async (page) => {
      await page.goto(authorize('first'));
      await fillIn(page);
      await page.waitForURL(`${application.origin}/first?**`);
      await page.goto(`${application.origin}/login`);
      await page.waitForURL(`${application.origin}/acs`);
      expect(await shown(page)).to.equal(`logged in: ${USER.email}, the-state`);
      await page.goto(authorize('second'));
      expect(await shown(page)).to.include('/second?code=');
      await page.goto(`${application.origin}/logout`);
      await page.waitForURL(`${application.origin}/slo`);
      expect(await shown(page)).to.equal('logged out: true');
      expect(await isLoggedIn(page)).to.equal(false);
    });
  });

  it('is logged out by an OpenID Connect application, which the browser then returns to', async () => {
    await inBrowser({}, async (page) => {
      await page.goto(`${application.origin}/login`);
      await fillIn(page);
      await page.waitForURL(`${application.origin}/acs`);
      expect(await isLoggedIn(page)).to.equal(true);
      const returnTo = encodeURIComponent(`${application.origin}/bye`);
      await page.goto(`${server.url}/v2/logout?client_id=first&returnTo=${returnTo}`);
      await page.waitForURL(`${application.origin}/bye`);
      expect(application.profile).to.equal(undefined);
      expect(await isLoggedIn(page)).to.equal(false);
    });
  });

  it('is reached without scripts, by a button', async () => {
    await inBrowser({ javaScriptEnabled: false }, async (page) => {
      await page.goto(`${application.origin}/login`);
      await fillIn(page);
      await page.getByRole('button', { name: 'Continue' }).click();
      await page.waitForURL(`${application.origin}/acs`);
      expect(await shown(page)).to.include(`logged in: ${USER.email}`);
      await page.goto(`${application.origin}/logout`);
      await page.getByRole('button', { name: 'Continue' }).click();
      await page.waitForURL(`${application.origin}/slo`);
      expect(await shown(page)).to.equal('logged out: true');
    });
  });

  it('is reached by a page without accessibility violations', async () => {
    await inBrowser({}, async (page) => {
      const scheme = ['light', 'dark'] as const;
      // An answer without content leaves the browser on the page.
      await page.route(`${application.origin}/acs`, (route) => route.fulfill({ status: 204 }));
      for (const colorScheme of scheme) {
        await page.emulateMedia({ colorScheme });
        await page.setViewportSize({ width: colorScheme === 'dark' ? 375 : 1280, height: 800 });
        await page.goto(`${application.origin}/login`, { waitUntil: 'commit' }).catch(() => {});
        if (
          await page
            .locator('[name=password]')
            .isVisible()
            .catch(() => false)
        )
          await fillIn(page);
        await page.getByRole('heading', { name: 'One moment' }).waitFor();
        expect(await accessibilityFaults(page)).to.deep.equal([]);
        const { scrollWidth, clientWidth } = await page.evaluate(
          () => (globalThis as any).document.documentElement,
        );
        expect(scrollWidth).to.equal(clientWidth);
      }
    });
  });
});
