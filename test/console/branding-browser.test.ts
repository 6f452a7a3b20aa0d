// Branding in a real browser: the preview follows the form, and the login page follows what is saved.
import { expect } from 'chai';
import type { Page, Response } from 'playwright-core';
import { launchBrowser, type TestBrowser } from '../support/browser.ts';
import { openConsolePage, startConsole } from '../support/console.ts';
import type { TestServer } from '../support/server.ts';

const SOON = { timeout: 20_000 };

describe('branding in the console, in a browser', () => {
  let server: TestServer;
  let browser: TestBrowser;
  let page: Page;
  before(async () => {
    server = await startConsole();
    browser = await launchBrowser(server.ca);
    page = await (await browser.newContext()).newPage();
  });
  after(async () => {
    await browser.close();
    await server.stop();
  });

  it('previews the real page while typing, also dark and from right to left, and saves it', async () => {
    const said: string[] = [];
    page.on('pageerror', (error) => said.push(String(error)));
    await openConsolePage(page, server, { path: '/console/branding' });
    const frame = page.frameLocator('iframe[name="look-preview"]');
    await frame.locator('button.primary').waitFor(SOON);
    const isPreview = (answer: Response) =>
      answer.request().method() === 'POST' && answer.url().endsWith('/console/branding/preview');
    const previewed = page.waitForResponse(isPreview, SOON);
    await page.getByLabel('Main colour', { exact: true }).first().fill('#aa1155');
    expect(await (await previewed).text()).to.contain('--primary:#aa1155');
    await page.getByLabel('Light or dark').selectOption('dark');
    await frame.locator('meta[name="color-scheme"][content="dark"]').waitFor({ ...SOON, state: 'attached' });
    await page.getByLabel('Language').selectOption('ar');
    await frame.locator('html[dir="rtl"]').waitFor(SOON);
    await page.getByLabel('Width').selectOption('phone');
    const width = (await page.locator('iframe[name="look-preview"]').boundingBox())?.width ?? 0;
    expect(width).to.be.within(300, 400);

    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByText('Saved.').waitFor(SOON);
    const record = await server.store.collection('tenant').get('tenant');
    expect(record?.branding?.colors).to.include({ primary: '#aa1155' });
    expect(said).to.deep.equal([]);
  });
});
