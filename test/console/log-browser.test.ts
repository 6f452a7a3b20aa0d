// The log of the console in a real browser, while events are recorded.
import { expect } from 'chai';
import { databaseEvents } from '../../src/features/connections/database/base/database-declaration.ts';
import { launchBrowser, type TestBrowser } from '../support/browser.ts';
import { openConsolePage, startConsole } from '../support/console.ts';
import type { TestServer } from '../support/server.ts';

describe('the log of the console, in a browser', () => {
  let server: TestServer;
  let browser: TestBrowser;

  before(async () => {
    server = await startConsole();
    browser = await launchBrowser(server.ca);
  });
  after(async () => {
    await browser?.close();
    await server?.stop();
  });

  it('shows new events live, hostile values as text, and the related events of one', async () => {
    const context = await browser.newContext();
    const page = await context.newPage();
    const dialogs: string[] = [];
    page.on('dialog', (dialog) => {
      dialogs.push(dialog.message());
      void dialog.dismiss();
    });
    await openConsolePage(page, server, { path: '/console/log?type=fu' });
    await page.getByText('No event matches this filter.').waitFor();
    await page.getByRole('button', { name: 'Follow' }).click();
    server.tenant.events.record({
      type: databaseEvents.fu,
      user_name: '<img src=x onerror=alert(1)>',
      description: 'Wrong email or password.',
    });
    const event = page.getByRole('link', { name: 'A password was tried for <img src=x onerror=alert(1)>' });
    await event.waitFor({ timeout: 20_000 });
    await page.getByRole('button', { name: 'Pause' }).click();
    await event.click();
    await page.getByText('failed: Wrong email or password.').waitFor();
    expect(dialogs).to.deep.equal([]);
    await context.close();
  });
});
