// The identifier page in a browser: without scripts, by keyboard, and with the browser's back button.
import { expect } from 'chai';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { makeCertificate } from '../saml/support.ts';
import { accessibilityFaults } from '../support/accessibility.ts';
import { launchBrowser, type TestBrowser } from '../support/browser.ts';
import { type Callback, startCallback } from '../support/callback.ts';
import { tenant, USER, webRequest } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';

describe('the identifier page in a browser', () => {
  let server: TestServer;
  let browser: TestBrowser;
  let callback: Callback;
  before(async () => {
    callback = await startCallback();
    const { certificate: signingCert } = await makeCertificate();
    server = await startServer({
      tenant: {
        ...tenant,
        clients: tenant.clients.map((client) => ({ ...client, callbacks: [callback.url] })),
        connections: [
          {
            name: 'corp',
            strategy: 'samlp',
            enabled_clients: ['web'],
            options: {
              signInEndpoint: `${callback.url}?at=corp`,
              signingCert,
              domain_aliases: ['corp.example'],
            },
          },
        ],
      },
    });
    browser = await launchBrowser(server.ca);
  });
  after(async () => {
    await browser?.close();
    await server?.stop();
    await callback?.close();
  });

  const visit = async (options: BrowserContextOptions, use: (page: Page) => Promise<void>) => {
    const context = await browser.newContext(options);
    const page = await context.newPage();
    const request = webRequest({ redirect_uri: callback.url });
    await page.goto(`${server.url}/authorize?${new URLSearchParams(request)}`);
    await use(page);
    await context.close();
  };

  for (const javaScriptEnabled of [true, false]) {
    it(`leads to the password by keyboard alone, ${javaScriptEnabled ? 'with' : 'without'} scripts`, () =>
      visit({ javaScriptEnabled }, async (page) => {
        await page.locator('#identifier:focus').waitFor();
        await page.keyboard.type(USER.email);
        await page.keyboard.press('Enter');
        await page.locator('#password:focus').waitFor();
        expect(await accessibilityFaultsOf(page, javaScriptEnabled)).to.deep.equal([]);
        await page.keyboard.type(USER.password);
        await page.keyboard.press('Enter');
        await page.waitForURL((url) => url.searchParams.has('code'));
      }));
  }

  it('leads to an upstream provider, which its content security policy allows', () =>
    visit({}, async (page) => {
      await page.locator('#identifier').fill('ada@corp.example');
      await page.getByRole('button', { name: 'Continue' }).click();
      await page.waitForURL((url) => url.searchParams.get('at') === 'corp');
    }));

  it('can be returned to by the link and by the back button, to change the address', () =>
    visit({}, async (page) => {
      await page.locator('#identifier').fill('wrong@example.test');
      await page.getByRole('button', { name: 'Continue' }).click();
      await page.getByRole('link', { name: 'Change the address' }).click();
      expect(await page.locator('#identifier').inputValue()).to.equal('wrong@example.test');
      await page.locator('#identifier').fill(USER.email);
      await page.getByRole('button', { name: 'Continue' }).click();
      expect(await page.locator('#username').inputValue()).to.equal(USER.email);
      await page.goBack();
      await page.locator('#identifier').fill('ada@corp.example');
      await page.getByRole('button', { name: 'Continue' }).click();
      await page.waitForURL((url) => url.searchParams.get('at') === 'corp');
    }));
});

/** axe needs scripts itself. */
function accessibilityFaultsOf(page: Page, hasScripts: boolean): Promise<string[]> {
  return hasScripts ? accessibilityFaults(page) : Promise.resolve([]);
}
