// Logout in a real browser: two applications in one session.
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import type { BrowserContext, Page } from 'playwright-core';
import { accessibilityFaults } from '../support/accessibility.ts';
import { launchBrowser, type TestBrowser } from '../support/browser.ts';
import { pkce, spaRequest, USER, webRequest } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { logoutTenant } from './support.ts';

interface Application {
  origin: string;
  /** The requested paths, with queries. */
  requested: string[];
  stop(): Promise<void>;
}

async function startApplication(name: string): Promise<Application> {
  const requested: string[] = [];
  const server = http.createServer((request, response) => {
    requested.push(request.url ?? '');
    response.setHeader('content-type', 'text/html');
    response.end(`<!doctype html><title>${name}</title><h1>${name}</h1>`);
  });
  server.listen(0, 'localhost');
  await once(server, 'listening');
  return {
    origin: `http://localhost:${(server.address() as AddressInfo).port}`,
    requested,
    stop: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

describe('logout in a browser', () => {
  let server: TestServer;
  let browser: TestBrowser;
  let shop: Application;
  let blog: Application;
  let context: BrowserContext;
  let page: Page;

  before(async () => {
    [shop, blog] = await Promise.all([startApplication('Shop'), startApplication('Blog')]);
    server = await startServer({
      tenant: logoutTenant({
        web: { callbacks: [`${shop.origin}/in`], allowed_logout_urls: [`${shop.origin}/out`] },
        spa: {
          callbacks: [`${blog.origin}/in`],
          allowed_logout_urls: [`${blog.origin}/out`],
          frontchannel_logout_uri: `${blog.origin}/front`,
        },
      }),
    });
    browser = await launchBrowser(server.ca);
  });
  after(async () => {
    await browser?.close();
    await server?.stop();
    await Promise.all([shop?.stop(), blog?.stop()]);
  });
  afterEach(() => context.close());

  const open = async (options: Parameters<TestBrowser['newContext']>[0] = {}) => {
    context = await browser.newContext(options);
    page = await context.newPage();
  };
  const at = (params: Record<string, string>) => `${server.url}/authorize?${new URLSearchParams(params)}`;
  const shopLogin = (over = {}) => at(webRequest({ redirect_uri: `${shop.origin}/in`, ...over }));
  const blogLogin = (over = {}) =>
    at(spaRequest(pkce().challenge, { redirect_uri: `${blog.origin}/in`, ...over }));
  const logInAtBoth = async () => {
    await page.goto(shopLogin({ ui_locales: 'en' }));
    await page.getByLabel('Email address').fill(USER.email);
    await page.getByLabel('Password', { exact: true }).fill(USER.password);
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.waitForURL(`${shop.origin}/in?**`);
    await page.goto(blogLogin());
    await page.waitForURL(`${blog.origin}/in?**`);
  };
  const isLoggedInAtBlog = async () => {
    await page.goto(blogLogin({ prompt: 'none' }));
    return new URL(page.url()).searchParams.has('code');
  };
  const question = (over: Record<string, string> = {}) =>
    `${server.url}/oidc/logout?${new URLSearchParams({
      client_id: 'web',
      post_logout_redirect_uri: `${shop.origin}/out`,
      state: 'mine',
      ...over,
    })}`;

  for (const javaScriptEnabled of [true, false]) {
    const how = javaScriptEnabled ? '' : ', without scripts';
    it(`asks, logs out at the other application, and returns to the one that asked${how}`, async () => {
      await open({ javaScriptEnabled });
      await logInAtBoth();
      blog.requested.length = 0;
      await page.goto(question());
      await page.getByRole('button', { name: 'Log out' }).click();
      // The page would continue by itself a few seconds later.
      if (!javaScriptEnabled) await page.getByRole('link', { name: 'Continue' }).click();
      await page.waitForURL(`${shop.origin}/out?state=mine`);
      expect(await page.getByRole('heading').textContent()).to.equal('Shop');
      const front = blog.requested.find((path) => path.startsWith('/front?')) ?? '';
      const { iss, sid } = Object.fromEntries(new URLSearchParams(front.slice('/front?'.length)));
      expect(iss).to.equal(server.issuer);
      expect(sid).to.match(/^[\w-]{20,}$/);
      expect(await isLoggedInAtBlog()).to.equal(false);
    });
  }

  it('leaves both applications logged in when cancelled', async () => {
    await open();
    await logInAtBoth();
    await page.goto(question());
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('heading', { name: 'You are still logged in' }).waitFor();
    expect(await isLoggedInAtBlog()).to.equal(true);
  });

  it('can be answered by keyboard, with logging out as the first button', async () => {
    await open();
    await logInAtBoth();
    await page.goto(question());
    await page.keyboard.press('Tab');
    expect(await page.locator(':focus').textContent()).to.equal('Log out');
    await page.keyboard.press('Tab');
    expect(await page.locator(':focus').textContent()).to.equal('Cancel');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'You are still logged in' }).waitFor();
  });

  it("accepts an application's form post from another site", async () => {
    await open();
    await logInAtBoth();
    await page.goto(`${shop.origin}/account`);
    await page.setContent(
      `<form method="post" action="${server.url}/oidc/logout"><input name="client_id" value="web"><input name="ui_locales" value="de"><button>Out</button></form>`,
    );
    await page.getByRole('button', { name: 'Out' }).click();
    // It shows the session, so the cookie was sent.
    await page.getByText(USER.email).waitFor();
    expect(await page.getByRole('heading', { level: 1 }).textContent()).to.equal(
      'Möchten Sie sich abmelden?',
    );
  });

  for (const [name, options, locale] of [
    ['light', { colorScheme: 'light' }, 'en'],
    ['dark', { colorScheme: 'dark' }, 'de'],
    ['phone', { viewport: { width: 375, height: 740 } }, 'en'],
    ['arabic', { colorScheme: 'dark', viewport: { width: 375, height: 740 } }, 'ar'],
  ] as const) {
    it(`has no accessibility faults: ${name}`, async () => {
      await open({ ...options });
      await logInAtBoth();
      await page.goto(question({ ui_locales: locale }));
      expect(await accessibilityFaults(page)).to.deep.equal([]);
      if (process.env.SCREENSHOTS !== undefined) {
        await page.screenshot({ path: `${process.env.SCREENSHOTS}/logout-${name}.png` });
      }
      const nextPage = page.waitForEvent('load');
      await page.locator('button.secondary').click();
      await nextPage;
      expect(await accessibilityFaults(page)).to.deep.equal([]);
      await page.goto(`${server.url}/v2/logout?client_id=leeway`);
      expect(await accessibilityFaults(page)).to.deep.equal([]);
    });
  }
});
