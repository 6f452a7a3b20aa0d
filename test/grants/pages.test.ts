// The pages of device codes and CIBA approvals in a real browser: by keyboard alone, and without scripts.
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { createAgent } from '../support/agent.ts';
import { launchBrowser, type TestBrowser } from '../support/browser.ts';
import { USER } from '../support/flows.ts';
import { nextMessageTo } from '../support/inbox.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { callsOf, cibaTenant, deviceTenant } from './tenant.ts';

for (const javaScriptEnabled of [true, false]) {
  describe(`the pages of device codes and CIBA, ${javaScriptEnabled ? 'with' : 'without'} scripts`, () => {
    let server: TestServer;
    let browser: TestBrowser;
    before(async () => {
      server = await startServer({
        tenant: {
          ...deviceTenant,
          clients: [
            ...deviceTenant.clients,
            ...cibaTenant.clients.filter(({ client_id }) => client_id === 'mail-bank'),
          ],
          databases: deviceTenant.databases.map((one, place) => ({
            ...one,
            enabled_clients: [...(one?.enabled_clients ?? []), ...(place === 0 ? ['mail-bank'] : [])],
          })),
        },
      });
      browser = await launchBrowser(server.ca);
    });
    after(async () => {
      await browser?.close();
      await server?.stop();
    });

    const open = async (): Promise<Page> => {
      const context = await browser.newContext({ javaScriptEnabled, reducedMotion: 'reduce' });
      const page = await context.newPage();
      return page;
    };
    const type = async (page: Page, label: RegExp | string, text: string) => {
      await page.getByLabel(label, { exact: true }).focus();
      await page.keyboard.type(text);
    };
    const logIn = async (page: Page) => {
      await type(page, 'Email address', USER.email);
      await type(page, 'Password', USER.password);
      await page.keyboard.press('Enter');
    };
    const press = async (page: Page, name: string) => {
      await page.getByRole('button', { name }).focus();
      await page.keyboard.press('Enter');
    };
    const heading = (page: Page, name: string) => page.getByRole('heading', { level: 1, name }).waitFor();

    it('connect a device, after a wrong code', async () => {
      const { user_code } = (await callsOf(() => server).begin()).json();
      const page = await open();
      await page.goto(`${server.url}/activate`);
      await type(page, 'Code', 'wrong');
      await page.keyboard.press('Enter');
      await page.getByRole('alert').filter({ hasText: 'That code is wrong or expired.' }).waitFor();
      await page.getByLabel('Code').fill('');
      await type(page, 'Code', user_code.toLowerCase());
      await page.keyboard.press('Enter');
      await heading(page, 'Connect to The tv?');
      expect((await page.getByRole('status').textContent())?.trim()).to.equal(user_code);
      await press(page, 'Confirm');
      await logIn(page);
      await heading(page, 'Your device is connected');
      await page.context().close();
    });

    it('approve and deny a request from the link of an e-mail', async () => {
      const [user] = await server.users.withEmail(USER.email);
      const login_hint = JSON.stringify({ format: 'iss_sub', iss: server.issuer, sub: user?.id });
      const client = { client_id: 'mail-bank', client_secret: 'mail-bank-secret' };
      const page = await open();
      let mails = 0;
      for (const [name, outcome] of [
        ['Approve', 'You approved the request'],
        ['Deny', 'You denied the request'],
      ] as const) {
        const form = { ...client, scope: 'openid', binding_message: `Payment ${name}`, login_hint };
        expect((await createAgent(server).request('/bc-authorize', { form })).status).to.equal(200);
        const { link = '' } = await nextMessageTo(server, USER.email, ++mails);
        await page.goto(link);
        if (mails === 1) await logIn(page);
        await page.getByText(`Payment ${name}`).waitFor();
        await press(page, name);
        await heading(page, outcome);
      }
      await page.context().close();
    });
  });
}
