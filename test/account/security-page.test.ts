// /account/security: the user's authentication methods at the account page.
import { expect } from 'chai';
import type { BrowserContext, Page } from 'playwright-core';
import { rememberConsent } from '../../src/engine/token/token-grants.ts';
import { codeOf, factors } from '../factors/tenant.ts';
import { accessibilityFaults } from '../support/accessibility.ts';
import { type Agent, createAgent, readForm } from '../support/agent.ts';
import { launchBrowser, type TestBrowser } from '../support/browser.ts';
import { follow, logIn, pkce, spaRequest, USER } from '../support/flows.ts';
import { nextMessageTo } from '../support/inbox.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { plugInKey } from '../support/virtual-key.ts';
import { formOf, openAccount, send } from './support.ts';
import { tenant } from './tenant.ts';

const SECURITY = '/account/security';

describe('the security page', () => {
  let server: TestServer;
  let browser: TestBrowser;
  let context: BrowserContext;
  let page: Page;
  beforeEach(async () => {
    server = await startServer({
      tenant: {
        ...tenant,
        tenant: { ...tenant.tenant, account_page: { client_id: 'web' } },
        guardianFactors: factors('otp', 'sms', 'recovery-code', 'webauthn-roaming'),
      },
    });
    browser = await launchBrowser(server.ca);
    context = await browser.newContext({ reducedMotion: 'reduce' });
    page = await context.newPage();
  });
  afterEach(async () => {
    await browser?.close();
    await server.stop();
  });

  const open = async () => {
    await page.goto(`${server.url}${SECURITY}`);
    await page.getByLabel('Email address').fill(USER.email);
    await page.getByLabel('Password', { exact: true }).fill(USER.password);
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.getByRole('heading', { level: 1, name: 'How you log in' }).waitFor();
  };
  /** Enrols an authenticator app at the page, as the first second factor. @returns its secret. */
  const addApp = async (): Promise<string> => {
    await page.getByRole('link', { name: 'Add a second step' }).click();
    await page.locator(`a[href="${SECURITY}/add/otp"]`).click();
    await page.locator('summary').click();
    const secret = ((await page.locator('.secret code').textContent()) ?? '').replace(/\s/g, '');
    await page.getByLabel('Code', { exact: true }).fill(codeOf(secret));
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.getByLabel('I have saved the code').check();
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.getByText('Added.', { exact: true }).waitFor();
    return secret;
  };

  it('adds a second factor, which the next login requires, and removes it', async () => {
    await open();
    expect(await accessibilityFaults(page)).to.deep.equal([]);
    const secret = await addApp();
    expect((await nextMessageTo(server, USER.email, 1)).text).to.contain('authenticator app');
    expect(await accessibilityFaults(page)).to.deep.equal([]);

    const other = await browser.newContext();
    const elsewhere = await other.newPage();
    await elsewhere.goto(`${server.url}${SECURITY}`);
    await elsewhere.getByLabel('Email address').fill(USER.email);
    await elsewhere.getByLabel('Password', { exact: true }).fill(USER.password);
    await elsewhere.getByRole('button', { name: 'Continue' }).click();
    // A code is used once, so this is the code of the next time step.
    server.tick(30_000);
    await elsewhere.getByLabel('Code', { exact: true }).fill(codeOf(secret, Date.now() + 30_000));
    await elsewhere.getByRole('button', { name: 'Continue' }).click();
    await elsewhere.getByRole('button', { name: 'Remove authenticator app' }).click();
    await elsewhere.getByText('Removed.', { exact: true }).waitFor();
    expect((await nextMessageTo(server, USER.email, 2)).text).to.contain('authenticator app');
    await other.close();
  });

  it('creates, renames and removes a passkey, and tells the user by mail', async () => {
    const devtools = await context.newCDPSession(page);
    await devtools.send('WebAuthn.enable');
    await plugInKey(devtools);
    await open();
    await page.getByRole('link', { name: 'Add a passkey' }).click();
    await page.getByRole('button', { name: 'Add a passkey' }).click();
    await page.getByText('Added.', { exact: true }).waitFor();
    expect((await nextMessageTo(server, USER.email, 1)).text).to.contain('passkey');
    await page.getByText('Rename').click();
    await page.getByLabel('Name').fill('<i>Laptop</i>');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('heading', { level: 3, name: '<i>Laptop</i>' }).waitFor();
    expect(await accessibilityFaults(page)).to.deep.equal([]);
    await page.getByRole('button', { name: 'Remove <i>Laptop</i>' }).click();
    await page.getByText('Removed.', { exact: true }).waitFor();
    expect((await nextMessageTo(server, USER.email, 2)).text).to.contain('passkey');
  });

  it('replaces the recovery code', async () => {
    await open();
    await addApp();
    await page.getByRole('button', { name: 'Make a new code' }).click();
    const code = await page.locator('.secret code').textContent();
    expect(code?.trim()).to.match(/^[A-Z2-9]{24}$/);
    expect((await nextMessageTo(server, USER.email, 2)).text).to.contain('recovery code');
  });

  it('leads to a new password, after which all sessions have ended', async () => {
    await open();
    await page.getByRole('button', { name: 'Set a new password' }).click();
    await page.getByLabel('New password', { exact: true }).fill('Brand-New-Horse-9');
    await page.locator('#repeat').fill('Brand-New-Horse-9');
    await page.locator('form button.primary').click();
    await page.getByLabel('Email address').waitFor();
    const agent = createAgent(server);
    const again = { ...USER, password: 'Brand-New-Horse-9' };
    expect((await openAccount(agent, server, SECURITY, again)).text).to.contain('How you log in');
  });

  it('leads a user who has only a username to a new password, and keeps their consents', async () => {
    const created = await server.users.create({
      identity: {
        connection: 'users',
        provider: 'auth0',
        upstreamId: 'by-name',
        addresses: { username: 'by.name' },
        unique: ['username'],
      },
      profile: {},
      password: USER.password,
    });
    if (!('user' in created)) throw new Error('the name is taken');
    await rememberConsent(server.store, created.user.id, 'web', { '': ['openid'] });
    const agent = createAgent(server);
    const user = { email: 'by.name', password: USER.password };
    const security = await openAccount(agent, server, SECURITY, user);
    const form = await follow(agent, await send(agent, security, `${SECURITY}/password`), server.url);
    const { action, fields } = readForm(form, 'password');
    const password = 'Brand-New-Horse-9';
    const done = await agent.request(action, { form: { ...fields, password, repeat: password } });
    expect(done.status, done.text).to.be.below(400);
    // The link is used once.
    const again = await agent.request(action, {
      form: { ...fields, password: 'Other-New-Horse-9', repeat: 'Other-New-Horse-9' },
    });
    expect(again.status).to.equal(400);
    expect(await server.users.verifyPassword(created.user.id, password)).to.be.a('number');
    expect(await server.users.verifyPassword(created.user.id, USER.password)).to.equal(undefined);
    expect(await server.store.collection('consents').findBy('user', created.user.id)).to.have.length(1);
  });

  it('keeps the second factors when a user with an unverified address sets a new password', async () => {
    await open();
    await addApp();
    const id = String((await server.users.withEmail(USER.email))[0]?.id);
    const stored = () => server.store.collection('authenticators').findBy('user', id);
    const before = await stored();
    expect(before.length).to.be.above(0);
    await server.users.update(id, { email_verified: false });
    await page.getByRole('button', { name: 'Set a new password' }).click();
    await page.getByLabel('New password', { exact: true }).fill('Brand-New-Horse-9');
    await page.locator('#repeat').fill('Brand-New-Horse-9');
    await page.locator('form button.primary').click();
    await page.getByLabel('Email address').waitFor();
    expect(await server.users.verifyPassword(id, 'Brand-New-Horse-9')).to.be.a('number');
    expect(await stored()).to.have.length(before.length);
    expect((await server.users.get(id))?.email_verified).to.equal(false);
  });

  it("forgets the user's remembered browsers, and nobody else's", async () => {
    await open();
    await addApp();
    const id = String((await server.users.withEmail(USER.email))[0]?.id);
    const browsers = server.store.collection('browsers');
    const expiresAt = Math.floor(Date.now() / 1000) + 86_400;
    for (const user_id of [id, 'auth0|other'])
      await browsers.put({
        id: `of ${user_id}`,
        user_id,
        credential_version: 0,
        ip: '127.0.0.1',
        rememberedUntil: expiresAt,
        expiresAt,
      });
    await page.locator(`form[action="${SECURITY}/browsers"] button`).click();
    await page.waitForURL((url) => url.searchParams.get('said') === 'browsersForgotten');
    expect(await browsers.findBy('user', id)).to.deep.equal([]);
    expect(await browsers.findBy('user', 'auth0|other')).to.have.length(1);
  });

  it('does not lead to a new password once the session has ended', async () => {
    const agent = createAgent(server);
    const sent = await send(agent, await openAccount(agent, server, SECURITY), `${SECURITY}/password`);
    expect((await agent.get(sent.location)).text).to.contain('name="password"');
    await agent.get('/v2/logout');
    expect((await agent.get(sent.location)).status).to.equal(400);
  });

  describe("protects the account against somebody with another person's session:", () => {
    let agent: Agent;
    beforeEach(() => {
      agent = createAgent(server);
    });

    it('it changes nothing with an old login', async () => {
      const opened = await openAccount(agent, server, SECURITY);
      const fields = formOf(opened, `${SECURITY}/password`);
      server.tick(11 * 60_000);
      for (const path of ['password', 'remove', 'recovery-code', 'passkey']) {
        const answer = await agent.request(`${SECURITY}/${path}`, { form: { ...fields, method: 'x' } });
        expect(answer.status, path).to.equal(303);
        expect(new URL(answer.location).searchParams.get('prompt'), path).to.equal('login');
      }
      for (const path of ['', '/otp', '/choose']) {
        const answer = await agent.get(`${SECURITY}/add${path}`);
        expect(answer.status, path).to.equal(303);
        expect(new URL(answer.location).pathname, path).to.equal('/authorize');
      }
      const started = await agent.request(`${SECURITY}/add/otp`, { form: { ...fields, code: '123456' } });
      expect(new URL(started.location).pathname).to.equal('/authorize');
    });

    it('it requires the second factor and not only the password', async () => {
      await logIn(agent, server, spaRequest(pkce().challenge));
      await open();
      await addApp();
      const loginPage = await follow(agent, await agent.get(SECURITY), server.url);
      expect(loginPage.text).not.to.contain('How you log in');
      expect(loginPage.text).to.match(/name="(code|password)"/);
    });

    it('it ends the session when a second factor is added elsewhere', async () => {
      await openAccount(agent, server, SECURITY);
      await open();
      await addApp();
      const answer = await agent.get(SECURITY);
      expect(answer.status).to.equal(303);
      expect(new URL(answer.location).pathname).to.equal('/authorize');
    });

    it("it does not reach another user's method", async () => {
      await open();
      await addApp();
      const ids = async () =>
        [...(await page.content()).matchAll(/name="method" value="([^"]+)"/g)].map(([, id = '']) => id);
      const theirs = await ids();
      expect(theirs).not.to.deep.equal([]);
      const other = { email: 'mfa-0@example.test', password: USER.password };
      const opened = await openAccount(agent, server, SECURITY, other);
      const fields = formOf(opened, `${SECURITY}/password`);
      for (const id of theirs) await agent.request(`${SECURITY}/remove`, { form: { ...fields, method: id } });
      await page.reload();
      expect(await ids()).to.deep.equal(theirs);
    });

    it('it accepts a form only from its own page and browser', async () => {
      const opened = await openAccount(agent, server, SECURITY);
      const fields = formOf(opened, `${SECURITY}/password`);
      for (const path of [
        'password',
        'rename',
        'remove',
        'browsers',
        'recovery-code',
        'passkey',
        'add/otp',
      ]) {
        const answer = await agent.request(`${SECURITY}/${path}`, { form: { ...fields, _csrf: 'x' } });
        expect(answer.status, path).to.equal(403);
      }
      expect((await send(agent, opened, `${SECURITY}/password`)).status).to.equal(303);
    });
  });
});
