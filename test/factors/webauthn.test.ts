// Security keys and built-in authenticators (WebAuthn) as second factors, with Chromium's virtual authenticators.
import { expect } from 'chai';
import type { BrowserContext, CDPSession, Page } from 'playwright-core';
import { accessibilityFaults } from '../support/accessibility.ts';
import { createAgent } from '../support/agent.ts';
import { launchBrowser, type TestBrowser } from '../support/browser.ts';
import { type Callback, startCallback } from '../support/callback.ts';
import { payload, token, USER, webRequest } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { plugInKey } from '../support/virtual-key.ts';
import { factors, POLICY, REALM_GRANT, tenant } from './tenant.ts';

const ROAMING = 'Security key';
const PLATFORM = 'This device';

describe('WebAuthn as a second factor', () => {
  let server: TestServer;
  let browser: TestBrowser;
  let callbacks: Callback;
  let context: BrowserContext;
  let page: Page;
  let cdp: CDPSession;
  let people = 0;

  before(async () => {
    callbacks = await startCallback();
    server = await startServer({
      tenant: {
        ...tenant,
        guardianFactors: factors('webauthn-roaming', 'webauthn-platform', 'otp', 'recovery-code'),
        clients: tenant.clients.map((client) => ({ ...client, callbacks: [callbacks.url] })),
      },
    });
    browser = await launchBrowser(server.ca);
  });
  after(async () => {
    await browser?.close();
    await server?.stop();
    callbacks?.close();
  });
  beforeEach(async () => {
    context = await browser.newContext();
    page = await context.newPage();
    cdp = await context.newCDPSession(page);
    await cdp.send('WebAuthn.enable');
  });
  afterEach(() => context.close());

  const someone = () => `mfa-${people++}@example.test`;
  /** Connects an authenticator. */
  const plugIn = (transport: 'usb' | 'internal', over: object = {}) => plugInKey(cdp, transport, over);
  const start = async (email: string) => {
    await context.clearCookies();
    const params = webRequest({ redirect_uri: callbacks.url, response_type: 'id_token', nonce: 'n' });
    await page.goto(`${server.url}/authorize?${new URLSearchParams(params)}`);
    await page.getByLabel('Email address').fill(email);
    await page.getByLabel('Password', { exact: true }).fill(USER.password);
    await page.getByRole('button', { name: 'Continue' }).click();
  };
  const press = (name: string) => page.getByRole('button', { name }).click();
  const choose = async (name: string) => {
    await page.getByRole('link', { name: new RegExp(name) }).click();
  };
  const arrived = async () => {
    await page.waitForURL((url) => url.origin === new URL(callbacks.url).origin);
    return payload(new URLSearchParams(new URL(page.url()).hash.slice(1)).get('id_token') ?? '');
  };
  const saveRecoveryCode = async () => {
    await page.getByLabel('I have saved the code').check();
    await press('Continue');
  };
  const enrolled = async (email: string, way = ROAMING) => {
    await start(email);
    await choose(way);
    await press(way === ROAMING ? 'Add security key' : 'Add this device');
    await saveRecoveryCode();
    return arrived();
  };
  const recordOf = async (email: string) => {
    const [user] = await server.users.withEmail(email);
    const all = await server.store.collection('authenticators').findBy('user', user?.id ?? '');
    return all.find(({ webauthn }) => webauthn !== undefined);
  };
  /** Posts a form of the page with a modified answer of the browser. */
  const post = async (change: (answer: Record<string, never>) => object, times = 1): Promise<number[]> =>
    page.evaluate(
      `(async () => {
        const form = document.querySelector('form[data-webauthn]');
        const options = JSON.parse(form.dataset.options);
        const publicKey = form.dataset.webauthn === 'get'
          ? PublicKeyCredential.parseRequestOptionsFromJSON(options)
          : PublicKeyCredential.parseCreationOptionsFromJSON(options);
        const how = form.dataset.webauthn === 'get' ? 'get' : 'create';
        const answer = (await navigator.credentials[how]({ publicKey })).toJSON();
        form.elements.code.value = JSON.stringify((${change.toString()})(answer));
        const send = () => fetch(form.action, { method: 'POST', body: new URLSearchParams(new FormData(form)), redirect: 'manual' });
        const answers = await Promise.all(Array.from({ length: ${times} }, send));
        return answers.map(({ status }) => status);
      })()`,
    );

  for (const [way, transport, again] of [
    [ROAMING, 'usb', 'Use security key'],
    [PLATFORM, 'internal', 'Confirm with this device'],
  ] as const) {
    it(`is enrolled and given the next time: ${way}`, async () => {
      const email = someone();
      await plugIn(transport);
      await start(email);
      await choose(way);
      expect(await accessibilityFaults(page)).to.deep.equal([]);
      await press(way === ROAMING ? 'Add security key' : 'Add this device');
      await saveRecoveryCode();
      expect(await arrived()).to.deep.include({ email, amr: ['mfa'], acr: POLICY });
      const before = await recordOf(email);
      await start(email);
      await page.getByRole('button', { name: again }).waitFor();
      expect(await accessibilityFaults(page)).to.deep.equal([]);
      await press(again);
      expect(await arrived()).to.deep.include({ email, amr: ['mfa'] });
      expect((await recordOf(email))?.webauthn?.sign_count).to.be.above(before?.webauthn?.sign_count ?? 9);
    });
  }

  for (const [name, over] of [
    ['stores no credential itself', { hasResidentKey: false }],
    [
      'stores no credential and cannot verify the user',
      { hasResidentKey: false, hasUserVerification: false, isUserVerified: false },
    ],
    [
      'only supports U2F',
      { protocol: 'u2f', hasResidentKey: false, hasUserVerification: false, isUserVerified: false },
    ],
  ] as const) {
    it(`is enrolled and given by a key that ${name}`, async () => {
      const email = someone();
      const key = await plugIn('usb', over);
      expect(await enrolled(email)).to.deep.include({ email, amr: ['mfa'] });
      const { credentials } = await cdp.send('WebAuthn.getCredentials', { authenticatorId: key });
      expect(credentials.map(({ isResidentCredential }) => isResidentCredential)).to.deep.equal([false]);
      await start(email);
      await press('Use security key');
      expect(await arrived()).to.deep.include({ email, amr: ['mfa'], acr: POLICY });
    });
  }

  it('requires user verification on a built-in authenticator', async () => {
    await plugIn('internal', { isUserVerified: false });
    await start(someone());
    await choose(PLATFORM);
    await press('Add this device');
    await page.getByText('It was cancelled, or took too long.').waitFor();
  });

  it('shows an error when no key of the account answers', async () => {
    const email = someone();
    const key = await plugIn('usb');
    await enrolled(email);
    await cdp.send('WebAuthn.removeVirtualAuthenticator', { authenticatorId: key });
    await plugIn('usb');
    await start(email);
    await press('Use security key');
    await page.getByText('It was cancelled, or took too long.').waitFor();
  });

  it('accepts an answer once for concurrent requests', async () => {
    const email = someone();
    await plugIn('usb');
    await enrolled(email);
    await start(email);
    await page.getByRole('button', { name: 'Use security key' }).waitFor();
    const statuses = await post((answer) => answer, 10);
    // A script cannot read the location of a redirect.
    expect(statuses.filter((status) => status === 0).length, String(statuses)).to.equal(1);
  });

  it('rejects an answer that was modified, of another origin, or with a counter that does not increase', async () => {
    const email = someone();
    await plugIn('usb');
    await enrolled(email);
    const record = await recordOf(email);
    await start(email);
    const wrong: ((answer: never) => object)[] = [
      (answer: { response: object }) => ({ ...answer, response: { ...answer.response, signature: 'AAAA' } }),
      (answer: object) => ({ ...answer, id: 'AAAA', rawId: 'AAAA' }),
      (answer: { response: { clientDataJSON: string } }) => {
        const text = atob(answer.response.clientDataJSON.replace(/-/g, '+').replace(/_/g, '/'));
        const data = { ...JSON.parse(text), origin: 'https://elsewhere.test' };
        const clientDataJSON = btoa(JSON.stringify(data)).replace(/[+]/g, '-').replace(/[/]/g, '_');
        return {
          ...answer,
          response: { ...answer.response, clientDataJSON: clientDataJSON.replace(/=/g, '') },
        };
      },
      () => ({}),
      () => [] as object,
    ];
    for (const change of wrong) {
      await page.getByRole('button', { name: 'Use security key' }).waitFor();
      expect(await post(change as never)).to.deep.equal([400]);
      await page.reload();
    }
    await server.store.collection('authenticators').update(record?.id ?? '', (current) => ({
      ...current,
      ...(current.webauthn && { webauthn: { ...current.webauthn, sign_count: 1_000 } }),
    }));
    await page.reload();
    expect(await post((answer) => answer)).to.deep.equal([400]);
  });

  it('rejects a key of another account, at enrolment and at login', async () => {
    const owner = someone();
    const key = await plugIn('usb');
    await enrolled(owner);
    const record = await recordOf(owner);
    const { credentials } = await cdp.send('WebAuthn.getCredentials', { authenticatorId: key });
    expect(credentials.length).to.equal(1);
    await start(someone());
    await choose(ROAMING);
    await page.getByRole('button', { name: 'Add security key' }).waitFor();
    // The same credential id with another key.
    const id = record?.webauthn?.credential_id ?? '';
    expect(
      await page.evaluate(
        `(async () => {
          const form = document.querySelector('form[data-webauthn]');
          form.elements.code.value = JSON.stringify({ id: ${JSON.stringify(id)}, rawId: ${JSON.stringify(id)}, type: 'public-key', response: { clientDataJSON: 'e30', attestationObject: 'oA' } });
          return (await fetch(form.action, { method: 'POST', body: new URLSearchParams(new FormData(form)), redirect: 'manual' })).status;
        })()`,
      ),
    ).to.equal(400);
  });

  it('is listed by the MFA API, but cannot be given at the token endpoint', async () => {
    const email = someone();
    await plugIn('usb');
    await enrolled(email);
    const agent = createAgent(server);
    const refused = await token(agent, {
      grant_type: REALM_GRANT,
      realm: 'users',
      client_id: 'web',
      client_secret: 'web-secret',
      username: email,
      password: USER.password,
    });
    const { error, mfa_token, mfa_requirements } = refused.json();
    expect(error).to.equal('mfa_required');
    expect(mfa_requirements.challenge).to.deep.include({ type: 'webauthn-roaming' });
    const challenged = await agent.request('/mfa/challenge', {
      json: { client_id: 'web', client_secret: 'web-secret', mfa_token, challenge_type: 'otp oob' },
    });
    expect([challenged.status, challenged.json().error]).to.deep.equal([401, 'unsupported_challenge_type']);
  });

  it('offers users without JavaScript another factor', async () => {
    const without = await browser.newContext({ javaScriptEnabled: false });
    const plain = await without.newPage();
    const params = webRequest({ redirect_uri: callbacks.url });
    await plain.goto(`${server.url}/authorize?${new URLSearchParams(params)}`);
    await plain.getByLabel('Email address').fill(someone());
    await plain.getByLabel('Password', { exact: true }).fill(USER.password);
    await plain.getByRole('button', { name: 'Continue' }).click();
    await plain.getByRole('link', { name: new RegExp(ROAMING) }).click();
    expect(await plain.locator('noscript').textContent()).to.contain('This way needs JavaScript');
    expect(await plain.locator('button[type=submit]').isHidden()).to.equal(true);
    await plain.getByRole('link', { name: 'Try another way' }).waitFor();
    await without.close();
  });
});
