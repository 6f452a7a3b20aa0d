// A connection in a real browser: created, given a script, and tried by a login whose steps are shown.
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { launchBrowser, type TestBrowser } from '../support/browser.ts';
import { openConsolePage, startConsole } from '../support/console.ts';
import { type OAuth2Provider, profileScript, startProvider } from '../support/oauth2-provider.ts';
import type { TestServer } from '../support/server.ts';

describe('a connection in the console, in a browser', () => {
  let provider: OAuth2Provider;
  let server: TestServer;
  let browser: TestBrowser;
  let page: Page;
  before(async () => {
    provider = await startProvider();
    server = await startConsole();
    browser = await launchBrowser(server.ca);
    page = await (await browser.newContext()).newPage();
  });
  after(async () => {
    await browser?.close();
    await server?.stop();
    await provider?.stop();
  });

  it('is created for a provider, given a script, and tried by a login whose steps, profile and output are shown', async () => {
    await openConsolePage(page, server, { path: '/console/connections' });
    await page.getByRole('link', { name: 'New connection' }).click();
    await page.locator('a[href="/console/connections/new/oauth2"]').click();
    await page.getByLabel('Name', { exact: true }).fill('harbour');
    await page.getByLabel('Client ID').fill('gatehouse');
    await page.getByLabel('Client secret').fill('upstream-secret');
    await page.getByLabel('Authorization endpoint').fill(`${provider.url}/authorize`);
    await page.getByLabel('Token endpoint').fill(`${provider.url}/token`);
    await page.getByLabel('Scopes').fill('profile email');
    // By keyboard only, as every action here can be done.
    await page.getByRole('button', { name: 'Create', exact: true }).focus();
    await page.keyboard.press('Enter');
    await page.getByText(`${server.url}/login/callback`, { exact: true }).first().waitFor();

    await page.getByRole('link', { name: 'Scripts' }).click();
    const body = profileScript(provider.url).replace('{', '{ console.log("asked for the profile");');
    await page.locator('#source').fill(body);
    await page.locator('button[value="save"]').click();
    await page.getByText('Saved.', { exact: true }).waitFor();

    const users = await server.store.collection('users').count();
    await page.getByRole('link', { name: 'Try', exact: true }).click();
    await page.getByRole('button', { name: 'Try', exact: true }).click();
    await page.locator('.try-steps .redirect').waitFor();
    await page.locator('a.button.primary[rel]').click();
    await page.locator('.try-steps .profile').waitFor();
    expect(await page.getByRole('status').first().textContent()).to.contain('The login succeeded');
    const steps = await page.locator('.try-steps > li').evaluateAll((all) => all.map((one) => one.className));
    expect(steps.slice(0, 3)).to.deep.equal(['redirect', 'answer', 'request']);
    expect(steps).to.include.members(['script', 'profile']);
    expect(await page.locator('.try-steps .script').textContent()).to.contain('asked for the profile');
    expect(await page.locator('.try-steps .profile').textContent()).to.contain('grace@upstream.test');
    expect(await page.locator('main').textContent()).to.not.contain('upstream-secret');
    expect(await server.store.collection('users').count()).to.equal(users);
  });
});
