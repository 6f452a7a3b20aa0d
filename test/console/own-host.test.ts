// The console with a host of its own. 127.0.0.1 and localhost are two hosts; the tests' certificate is valid for
// both.
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { createAgent } from '../support/agent.ts';
import { launchBrowser, type TestBrowser } from '../support/browser.ts';
import { addressOf, PASSWORD, startConsole } from '../support/console.ts';
import { freePort } from '../support/free-port.ts';
import type { TestServer } from '../support/server.ts';

describe('a console with a host of its own', () => {
  let server: TestServer;
  let console: TestServer;
  let browser: TestBrowser | undefined;
  beforeEach(async () => {
    const port = await freePort();
    const url = `https://127.0.0.1:${port}`;
    server = await startConsole({ env: { PORT: String(port), CONSOLE_URL: url } });
    console = { ...server, url };
  });
  afterEach(async () => {
    await browser?.close();
    await server.stop();
  });

  const statusOf = async (at: { url: string; ca: string }, path: string, headers = {}) =>
    (await createAgent(at).get(path, headers)).status;
  const logIn = async (page: Page) => {
    await page.locator('input[name="username"]').fill(addressOf('owner'));
    await page.locator('input[name="password"]').fill(PASSWORD);
    await page.locator('form button[type="submit"]').first().click();
  };

  it('is not reachable by any other host name', async () => {
    const { host } = new URL(console.url);
    for (const path of [
      '/console',
      '/console/users',
      '/console/callback?state=x',
      '/console-try/spa',
      '/console/link?ticket=x',
    ])
      expect(await statusOf(server, path), path).to.equal(404);
    for (const name of ['console.example.test', `${host}.example.test`, '127.0.0.1'])
      expect(await statusOf(console, '/console', { host: name }), name).to.be.oneOf([400, 404]);
  });

  it('shares its host with no page of the tenant, and with no API', async () => {
    for (const path of [
      ...[
        '/',
        '/authorize?client_id=spa',
        '/login',
        '/account',
        '/oauth/token',
        '/userinfo',
        '/api/v2/clients',
      ],
      ...['/.well-known/openid-configuration', '/dbconnections/signup', '/samlp/metadata', '/u/signup'],
    ])
      expect(await statusOf(console, path), path).to.equal(404);
    expect(await statusOf(console, '/healthz')).to.equal(200);
  });

  it('logs administrators in at the other host, and returns', async () => {
    browser = await launchBrowser(server.ca);
    const context = await browser.newContext({ ignoreHTTPSErrors: true, reducedMotion: 'reduce' });
    const page = await context.newPage();
    await page.goto(`${console.url}/console/applications`);
    expect(new URL(page.url()).origin).to.equal(server.url);
    await logIn(page);
    await page.getByRole('heading', { level: 1, name: 'Applications' }).waitFor();
    expect(page.url()).to.equal(`${console.url}/console/applications`);
    // A form that needs a recent login goes there and back, too.
    server.tick(3_600_000);
    await page.goto(`${console.url}/console/administrators`);
    await page.locator('form input[name="email"]').first().fill('new@console.example.test');
    await page.locator('form:has(input[name="email"]) button[type="submit"]').first().click();
    await page.waitForURL((url) => url.origin === server.url);
    await logIn(page);
    await page.waitForURL(`${console.url}/console/again`);
    await page.getByText('new@console.example.test').waitFor();
    await page.getByRole('button', { name: 'Send it now' }).click();
    const link = (await page.getByText('/console/link?ticket=').textContent()) ?? '';
    expect(link.trim().startsWith(`${console.url}/console/link?ticket=`), link).to.equal(true);
    const invited = await (await browser.newContext({ ignoreHTTPSErrors: true })).newPage();
    await invited.goto(link.trim());
    await invited.locator('input[name="name"]').fill('New');
    await invited.locator('input[name="password"]').fill('Another-Horse-2');
    await invited.locator('input[name="repeat"]').fill('Another-Horse-2');
    await invited.locator('form button[type="submit"]').first().click();
    await invited.locator('input[name="username"]').waitFor();
    expect(new URL(invited.url()).origin).to.equal(server.url);
  });
});
