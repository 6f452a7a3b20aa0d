// The examples of applications: log in, call an API, log out, in a browser.
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { launchBrowser, type TestBrowser } from '../support/browser.ts';
import { ADA, control, type Example, logInAs, startExample } from './example.ts';

const APPLICATIONS = ['express', 'react'];

for (const name of APPLICATIONS) {
  describe(`the example ${name}`, () => {
    let example: Example;
    let browser: TestBrowser;
    let page: Page;
    before(async () => {
      example = await startExample(name);
      browser = await launchBrowser(example.server.ca);
      page = await (await browser.newContext()).newPage();
    });
    after(async () => {
      await browser?.close();
      await example?.stop();
    });

    it('logs in, calls its API with an access token, and logs out', async () => {
      await page.goto(example.origin);
      await control(page, 'Log in').click();
      await logInAs(page);
      await page.getByText(`You are logged in as ${ADA.email}.`).waitFor();
      await control(page, 'Call the API').click();
      const answer = page.getByRole('status').filter({ hasText: /\S/ });
      expect(await answer.textContent()).to.match(/^The API knows you as auth0\|/);
      await control(page, 'Log out').click();
      await control(page, 'Log in').waitFor();
      // The session at Gatehouse has ended as well: it asks for the password again.
      await control(page, 'Log in').click();
      await page.getByLabel('Password', { exact: true }).waitFor();
    });
  });
}
