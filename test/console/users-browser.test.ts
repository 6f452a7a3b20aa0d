// Users and actions in a real browser.
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { launchBrowser, type TestBrowser } from '../support/browser.ts';
import { openConsolePage, startConsole } from '../support/console.ts';
import type { TestServer } from '../support/server.ts';

describe('users and actions in the console, in a browser', () => {
  let server: TestServer;
  let browser: TestBrowser;
  let page: Page;
  const faults: string[] = [];
  before(async () => {
    server = await startConsole();
    browser = await launchBrowser(server.ca);
    page = await (await browser.newContext()).newPage();
    page.on('console', (message) => faults.push(message.text()));
    page.on('pageerror', (error) => faults.push(String(error)));
  });
  after(async () => {
    await browser?.close();
    await server?.stop();
  });

  it('imports users, finds one while typing, blocks them, and corrects faulty metadata', async () => {
    await openConsolePage(page, server, { path: '/console/users' });
    await page.getByRole('link', { name: 'Import and export' }).click();
    const people = ['Grace Hopper', 'Alan Turing', 'Edsger Dijkstra'].map((name) => ({
      name,
      email: `${name.split(' ')[1]?.toLowerCase()}@import.test`,
    }));
    const file = Buffer.from(JSON.stringify([...people, { email: 'no address' }]));
    await page
      .getByLabel('File')
      .setInputFiles({ name: 'users.json', mimeType: 'application/json', buffer: file });
    // The page's own text, independent of the browser's language.
    await page.locator('#file-name', { hasText: 'users.json' }).waitFor();
    await page.getByRole('button', { name: 'Import', exact: true }).click();
    await page.getByRole('heading', { name: 'Who was not imported, and why' }).waitFor();

    await page.getByRole('navigation', { name: 'Console' }).getByRole('link', { name: 'Users' }).click();
    await page.getByLabel('Search', { exact: true }).pressSequentially('grace');
    await page.waitForURL((url) => url.searchParams.get('q') === 'grace');
    await page.getByText('ada@example.test').waitFor({ state: 'detached' });
    // The list is replaced while the focus stays in the field.
    expect(await page.locator(':focus').getAttribute('id')).to.equal('q');

    await page.getByRole('link', { name: 'Grace Hopper' }).click();
    await page.getByRole('button', { name: 'Block', exact: true }).click();
    await page.getByText('The user is blocked.').waitFor();
    await page.getByRole('button', { name: 'Unblock' }).click();
    await page.getByText('The user is no longer blocked.').waitFor();

    const metadata = page.getByLabel('app_metadata');
    await metadata.fill('{"plan": gold}');
    await page.locator('form[action$="/metadata"] button').click();
    await page.getByText('Line 1, column 10.').waitFor();
    await page.getByLabel('app_metadata').fill('{"plan": "gold"}');
    await page.locator('form[action$="/metadata"] button').click();
    await page.getByText('Saved.').waitFor();
    const [grace] = await server.users.withEmail('hopper@import.test');
    expect(grace?.app_metadata).to.deep.equal({ plan: 'gold' });
  });

  it('creates an action, leaves the editor by Tab, and runs, deploys and binds it', async () => {
    await page.getByRole('navigation', { name: 'Console' }).getByRole('link', { name: 'Actions' }).click();
    await page.getByRole('link', { name: 'New action', exact: true }).click();
    await page.getByLabel('Name').fill('Plan');
    await page.getByRole('button', { name: 'Create the action' }).click();
    const editor = page.getByLabel('Code', { exact: true });
    await editor.fill(
      'exports.onExecutePostLogin = async (event, api) => {\n  console.log(event.user.name);\n};\n',
    );
    expect(await page.locator('.line-numbers').textContent()).to.equal('1\n2\n3\n4');
    await editor.press('Tab');
    expect(await page.locator(':focus').getAttribute('id')).to.equal('dependencies');
    await page.getByRole('button', { name: 'Save the draft' }).click();
    await page.getByText('The draft was saved.').waitFor();

    await page.getByRole('link', { name: 'Test', exact: true }).click();
    await page.getByRole('button', { name: 'Run the draft' }).click();
    await page.locator('pre', { hasText: 'Ada Lovelace' }).waitFor();

    await page.getByRole('link', { name: 'Deploy', exact: true }).click();
    await page.getByRole('button', { name: 'Deploy the draft' }).click();
    await page.getByText('The action was deployed.').waitFor();
    await page.getByRole('link', { name: 'Actions' }).first().click();
    await page.getByRole('button', { name: 'Bind: Plan' }).click();
    await page.getByRole('button', { name: 'Unbind: Plan' }).waitFor();
    expect(faults.filter((text) => !text.startsWith('Failed to load resource'))).to.deep.equal([]);
  });
});
