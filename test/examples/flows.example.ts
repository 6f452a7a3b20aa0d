// The examples of flows: what a user does, in a browser or at a terminal.
import type { Page } from 'playwright-core';
import { codeOf } from '../factors/tenant.ts';
import { launchBrowser, type TestBrowser } from '../support/browser.ts';
import { nextMessageTo } from '../support/inbox.ts';
import { plugInKey } from '../support/virtual-key.ts';
import { every, until } from '../support/wait-until.ts';
import { ADA, control, type Example, logInAs, startExample } from './example.ts';

describe('the example', () => {
  let example: Example;
  let browser: TestBrowser;
  afterEach(async () => {
    await browser?.close();
    await example?.stop();
  });

  /** Starts an example and opens its application. */
  const open = async (name: string): Promise<Page> => {
    example = await startExample(name);
    const page = await newPage();
    await page.goto(example.origin);
    return page;
  };
  /** Returns a page that shares nothing with others. */
  const newPage = async (): Promise<Page> => {
    browser = await launchBrowser(example.server.ca);
    return (await browser.newContext()).newPage();
  };
  const press = (page: Page, name: string) => control(page, name).click();
  const loggedIn = (page: Page, email = ADA.email) =>
    page.getByText(`You are logged in as ${email}.`).waitFor();
  /** Logs out of the application and of Gatehouse. */
  const logOut = async (page: Page) => {
    await press(page, 'Log out');
    await control(page, 'Log in').waitFor();
  };
  /** Waits until a program has printed something. */
  const printed = async (pattern: RegExp): Promise<readonly string[]> => {
    await until(() => pattern.test(example.output()), every(50)).catch(() => {
      throw new Error(`it printed only:\n${example.output()}`);
    });
    return pattern.exec(example.output()) ?? [];
  };

  it('machine calls an API as itself, and may only do what it was granted', async () => {
    example = await startExample('machine', { listens: false });
    await printed(/The API knows you as machine@clients\nTo write, the API answers 403\./);
  });

  it('device prints a code, waits for the login elsewhere, and knows the user', async () => {
    example = await startExample('device', { listens: false });
    const [, address = '', code = ''] = await printed(/Open (\S+) and enter the code (\S+)/);
    const page = await newPage();
    await page.goto(address);
    await page.getByLabel('Code', { exact: true }).fill(code);
    await press(page, 'Continue');
    await press(page, 'Confirm');
    await logInAs(page);
    await page.getByText('Your device is connected').waitFor();
    await printed(/You are logged in as ada@example\.test\./);
  });

  it('step-up asks for a second factor for one page', async () => {
    const page = await open('step-up');
    await press(page, 'Log in');
    await logInAs(page);
    await loggedIn(page);
    await press(page, 'Open the safe');
    const secret = (await page.locator('.secret code').textContent()) ?? '';
    await page.getByText('Enter a key instead of scanning').click();
    await page.getByLabel('Code', { exact: true }).fill(codeOf(secret));
    await press(page, 'Continue');
    await page.getByText('The safe is open.').waitFor();
    // It stays open: the session knows the second factor.
    await press(page, 'Open the safe');
    await page.getByText('The safe is open.').waitFor();
    await logOut(page);
  });

  it('passkey signs up with a passkey, and logs in with it', async () => {
    const page = await open('passkey');
    const cdp = await page.context().newCDPSession(page);
    await cdp.send('WebAuthn.enable');
    await plugInKey(cdp);
    await page.getByLabel('Email address').fill(ADA.email);
    await press(page, 'Sign up');
    await loggedIn(page);
    await logOut(page);
    await press(page, 'Log in');
    await loggedIn(page);
  });

  it('passwordless logs in with a code from an e-mail', async () => {
    const page = await open('passwordless');
    await press(page, 'Log in');
    await page.getByLabel('Email address').fill(ADA.email);
    await press(page, 'Email me a code');
    const { code = '' } = await nextMessageTo(example.server, ADA.email, 1, 'code');
    await page.getByLabel('Code', { exact: true }).fill(code);
    await press(page, 'Continue');
    await loggedIn(page);
    await logOut(page);
  });

  it('organizations invites a colleague to the organization', async () => {
    const page = await open('organizations');
    await press(page, 'Log in');
    await page.getByLabel('Name of the organization').fill('acme');
    await press(page, 'Continue');
    await logInAs(page);
    await loggedIn(page);
    await page.getByText('Your organization is acme.').waitFor();
    const grace = 'grace@example.test';
    await page.getByLabel('E-mail of a colleague').fill(grace);
    await press(page, 'Invite');
    await page.getByText(`${grace} is invited.`).waitFor();
    const { link = '' } = await nextMessageTo(example.server, grace, 1, 'link');
    const other = await newPage();
    await other.goto(link);
    await other.getByLabel('Password', { exact: true }).fill('Gatehouse-2');
    await press(other, 'Create account');
    await loggedIn(other, grace);
  });

  it('saml logs in and out by SAML', async () => {
    const page = await open('saml');
    await press(page, 'Log in');
    await logInAs(page);
    await loggedIn(page);
    await logOut(page);
    await press(page, 'Log in');
    await page.getByLabel('Password', { exact: true }).waitFor();
  });

  it('own-login logs in with a form of its own', async () => {
    const page = await open('own-login');
    await page.getByLabel('Email address').fill(ADA.email);
    await page.getByLabel('Password').fill('wrong');
    await press(page, 'Log in');
    await page.getByText('Wrong email or password.').waitFor();
    await page.getByLabel('Password').fill(ADA.password);
    await press(page, 'Log in');
    await loggedIn(page);
    await press(page, 'Call the API');
    await page.getByText(/^The API knows you as auth0\|/).waitFor();
    await logOut(page);
  });
});
