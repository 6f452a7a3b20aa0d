// An application in a real browser: created, tried, changed and deleted.
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { launchBrowser, type TestBrowser } from '../support/browser.ts';
import { openConsolePage, startConsole } from '../support/console.ts';
import { USER } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';

describe('an application in the console, in a browser', () => {
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

  it('is created in two clicks, tried by a login, changed after a review, and deleted', async () => {
    await openConsolePage(page, server, { path: '/console/applications' });
    await page.getByRole('link', { name: 'Create an application' }).click();
    await page.locator('button[value="spa"]').click();
    await page.getByRole('heading', { name: 'Its values' }).waitFor();
    expect(await page.locator('h1').textContent()).to.contain('My application');

    await page.getByRole('link', { name: 'Try it' }).click();
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.locator('input[name="username"]').fill(USER.email);
    await page.locator('input[name="password"]').fill(USER.password);
    await page.locator('form button[type="submit"]').first().click();
    await page.getByRole('heading', { name: 'ID token' }).waitFor();
    expect(await page.locator('#id-token ~ pre').first().textContent()).to.contain(USER.email);

    await page.getByRole('link', { name: 'All settings' }).click();
    await page.getByRole('link', { name: 'Change the application' }).click();
    await page.getByLabel('Name', { exact: true }).fill('Harbour Books');
    await page.getByRole('button', { name: 'Review the changes' }).click();
    expect(await page.locator('ins').allTextContents()).to.deep.equal(['Harbour Books']);
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('heading', { name: 'Harbour Books' }).waitFor();

    await page.getByRole('link', { name: 'Delete the application' }).click();
    await page.getByRole('button', { name: 'Delete the application' }).click();
    await page.getByText('Deleted.').waitFor();
    expect(await page.getByText('Harbour Books').count()).to.equal(0);
  });
});
