// The pages of docs/learn do what they say: their files are written, their commands run, and a reader logs in.
import { Secret, TOTP } from 'otpauth';
import type { Page } from 'playwright-core';
import { launchBrowser, type TestBrowser } from '../support/browser.ts';
import { createReader, type Reader } from '../support/documented.ts';

describe('the pages to learn from', () => {
  let reader: Reader;
  let browser: TestBrowser;
  let page: Page;

  before(async () => {
    reader = await createReader([3000, 3100, 4000, 5173]);
    browser = await launchBrowser();
    // The reader accepts the warnings about the certificates.
    page = await (await browser.newContext({ ignoreHTTPSErrors: true })).newPage();
  });
  after(async () => {
    await browser?.close();
    await reader?.stop();
  });

  const application = () => reader.here('http://localhost:5173');
  const press = (name: string) => page.getByRole('button', { name, exact: true }).click();
  const state = (text: string) => page.locator('#state', { hasText: text }).waitFor();

  async function logIn(email: string, password: string): Promise<void> {
    await page.getByLabel('Email address').fill(email);
    await page.getByLabel('Password', { exact: true }).fill(password);
    await press('Continue');
  }

  it('lead to a first login', async () => {
    await reader.follow('first-login.md');
    await page.goto(reader.here('https://localhost:3000'));
    await press('Try login');
    await logIn('user@example.test', 'Gatehouse-1');
    await page.getByRole('heading', { name: 'ID token' }).waitFor();

    await page.context().clearCookies();
    await page.goto(application());
    await state('Nobody is logged in.');
    await press('Log in');
    await logIn('user@example.test', 'Gatehouse-1');
    await state('Hello, user@example.test');
  });

  it('protect an API, and call it from a program and from the page', async () => {
    await reader.follow('protect-an-api.md');
    await page.goto(application());
    await press('Log in');
    await page.waitForURL(`${application()}/`);
    await press('Show my things');
    await state('a hammer, a saw');
  });

  it('add a second factor', async () => {
    await reader.follow('add-a-second-factor.md', 'Require it');
    await page.context().clearCookies();
    await page.goto(application());
    await press('Log in');
    await logIn('user@example.test', 'Gatehouse-1');
    const secret = (await page.locator('.secret').textContent())?.replaceAll(/[^A-Z2-7]/g, '') ?? '';
    const app = new TOTP({ secret: Secret.fromBase32(secret) });
    await page.locator('#code').fill(app.generate());
    await press('Continue');
    await page.getByLabel('I have saved the code').check();
    await press('Continue');
    await state('Hello, user@example.test');

    await reader.follow('add-a-second-factor.md', 'Ask only where it matters');
    await page.context().clearCookies();
    await page.goto(application());
    await press('Log in');
    await logIn('user@example.test', 'Gatehouse-1');
    await state('Hello, user@example.test');
    await press('Pay');
    await page.locator('#code').fill(app.generate({ timestamp: Date.now() + 30_000 }));
    await press('Continue');
    await state('Hello, user@example.test, with a second factor');
  });

  it('let a company log in', async () => {
    await reader.follow('let-companies-log-in.md');
    await page.context().clearCookies();
    await page.goto(application());
    await press('Log in with Harbour Books');
    await logIn('grace@harbour.example', 'Correct-Horse-1');
    await state('Hello, grace@harbour.example of harbour');
  });

  it('test an application', () => reader.follow('test-your-application.md'));
});
