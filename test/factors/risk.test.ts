// The risk policy in a browser: a user with a known browser and address is not asked for a second factor.
import { expect } from 'chai';
import type { BrowserContext } from 'playwright-core';
import { type Agent, createAgent, readForm } from '../support/agent.ts';
import { launchBrowser, type TestBrowser } from '../support/browser.ts';
import { type Callback, startCallback } from '../support/callback.ts';
import { follow, logIn, payload, responseOf, USER, webRequest } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { callsOf, codeOf, tenant as everybody } from './tenant.ts';

const tenant = { ...everybody, guardianPolicies: { policies: ['confidence-score'] } };

describe('the risk policy', () => {
  describe('in a browser', () => {
    let server: TestServer;
    let browser: TestBrowser;
    let callbacks: Callback;
    before(async () => {
      callbacks = await startCallback();
      const clients = tenant.clients.map((client) => ({ ...client, callbacks: [callbacks.url] }));
      server = await startServer({ tenant: { ...tenant, clients } });
      browser = await launchBrowser(server.ca);
    });
    after(async () => {
      await browser?.close();
      await server?.stop();
      callbacks?.close();
    });

    /** Logs in with the password. */
    const logInAt = async (context: BrowserContext, email: string) => {
      const page = await context.newPage();
      const params = webRequest({
        redirect_uri: callbacks.url,
        response_type: 'id_token',
        nonce: 'n',
        prompt: 'login',
      });
      await page.goto(`${server.url}/authorize?${new URLSearchParams(params)}`);
      await page.getByLabel('Email address').fill(email);
      await page.getByLabel('Password', { exact: true }).fill(USER.password);
      await page.getByRole('button', { name: 'Continue' }).click();
      return page;
    };
    const arrived = async (page: Awaited<ReturnType<typeof logInAt>>) => {
      await page.waitForURL((url) => url.origin === new URL(callbacks.url).origin);
      return payload(new URLSearchParams(new URL(page.url()).hash.slice(1)).get('id_token') ?? '');
    };

    it('requires a second factor in a new browser, and not in one in which it was given before', async () => {
      const email = 'mfa-0@example.test';
      const { secret } = await callsOf({ url: server.url, ca: server.ca }).enrollOtp(email);
      server.tick(31_000);
      const context = await browser.newContext();
      const loginPage = await logInAt(context, email);
      await loginPage.getByText('Open your authenticator app').waitFor();
      await loginPage.getByLabel('Code', { exact: true }).fill(codeOf(secret));
      await loginPage.getByRole('button', { name: 'Continue' }).click();
      expect(await arrived(loginPage)).to.deep.include({ email, amr: ['mfa'] });
      // The user has not ticked "do not ask again": having given it here is enough.
      const known = await arrived(await logInAt(context, email));
      expect(known).to.deep.include({ email }).and.not.to.have.property('amr');
      const stranger = await browser.newContext();
      await (await logInAt(stranger, email)).getByText('Open your authenticator app').waitFor();
      // A browser is known for one user.
      const other = await logInAt(context, 'mfa-1@example.test');
      await other.getByRole('heading', { name: 'One more step' }).waitFor();
      await Promise.all([context.close(), stranger.close()]);
    });
  });

  describe('at an address', () => {
    const ORIGIN = 'https://login.example.test';
    let server: TestServer;
    let people = 0;
    before(async () => {
      server = await startServer({
        tenant,
        env: { TLS: 'proxy', TRUSTED_PROXIES: '127.0.0.1', BASE_URL: ORIGIN },
      });
    });
    after(() => server.stop());

    /** A browser behind the proxy, whose address changes. */
    const createBrowser = () => {
      const agent = createAgent({ url: `http://127.0.0.1:${server.settings.port}`, ca: '' });
      const at = { ip: '198.51.100.1' };
      const request: Agent['request'] = async (path, options = {}) => {
        const { pathname, search } = new URL(path, ORIGIN);
        const headers = { 'x-forwarded-proto': 'https', 'x-forwarded-for': at.ip, ...options.headers };
        const answer = await agent.request(`${pathname}${search}`, { ...options, headers });
        const { location } = answer.headers;
        return {
          ...answer,
          location: typeof location === 'string' ? new URL(location, ORIGIN).href : '',
        };
      };
      const get: Agent['get'] = (path, headers = {}) => request(path, { headers });
      return { at, agent: { request, get, cookies: agent.cookies } satisfies Agent };
    };
    const open = (agent: Agent, email: string, password = USER.password) =>
      logIn(agent, { url: ORIGIN }, webRequest({ prompt: 'login' }), { email, password });
    /** Returns a user who has enrolled an app, and given its code in this browser. */
    const known = async () => {
      const email = `mfa-${people++}@example.test`;
      const { at, agent } = createBrowser();
      const path = /\/u\/[\w-]+\/mfa/.exec((await open(agent, email)).text)?.[0] ?? '';
      const enrolling = await agent.get(`${path}/otp`);
      const secret = /<code dir="ltr">([A-Z2-7]{32})</.exec(enrolling.text)?.[1] ?? '';
      const { action, fields } = readForm(enrolling, 'code');
      const response = await agent.request(action, { form: { ...fields, code: codeOf(secret) } });
      const saved = readForm(response, 'saved');
      const end = await agent.request(saved.action, { form: { ...saved.fields, saved: 'yes' } });
      expect(responseOf(await follow(agent, end, ORIGIN)).code).to.be.a('string');
      return { email, at, agent, secret };
    };

    it('requires a second factor in a known browser at a new address, until it was given there', async () => {
      const { email, at, agent, secret } = await known();
      expect(responseOf(await open(agent, email)).code, 'from where it was').to.be.a('string');
      at.ip = '203.0.113.9';
      const loginPage = await open(agent, email);
      expect(loginPage.text).to.contain('Open your authenticator app');
      server.tick(31_000);
      const { action, fields } = readForm(loginPage, 'code');
      // Without "do not ask again", which applies at all addresses.
      const form = { ...fields, remember: '', code: codeOf(secret) };
      const response = await agent.request(action, { form });
      expect(responseOf(await follow(agent, response, ORIGIN)).code).to.be.a('string');
      expect(responseOf(await open(agent, email)).code, 'known there').to.be.a('string');
      at.ip = '198.51.100.1';
      expect((await open(agent, email)).text, 'and no more where it was').to.contain('authenticator app');
    });

    it('requires a second factor in another browser at a known address, where somebody else may be', async () => {
      const { email } = await known();
      expect((await open(createBrowser().agent, email)).text).to.contain('Open your authenticator app');
    });

    it('requires a second factor in a known browser after ninety days', async () => {
      const { email, agent } = await known();
      server.tick(90 * 86_400_000);
      expect((await open(agent, email)).text).to.contain('Open your authenticator app');
    });

    it('is not the policy for all applications, which requires a second factor in a known browser, too', async () => {
      const { email, agent } = await known();
      expect(responseOf(await open(agent, email)).code).to.be.a('string');
      await server.store
        .collection('tenant')
        .update(
          'tenant',
          (all) => ({ ...structuredClone(all), guardianPolicies: ['all-applications'] }) as never,
        );
      expect((await open(agent, email)).text).to.contain('Open your authenticator app');
    });
  });
});
