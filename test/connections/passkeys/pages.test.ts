// Passkeys at the hosted pages in a real browser: created after a password login, and used instead of the password.
import { expect } from 'chai';
import type { BrowserContext, CDPSession, Page } from 'playwright-core';
import { accessibilityFaults } from '../../support/accessibility.ts';
import { createAgent } from '../../support/agent.ts';
import { launchBrowser, type TestBrowser } from '../../support/browser.ts';
import { type Callback, startCallback } from '../../support/callback.ts';
import { payload, tenant, USER, webRequest } from '../../support/flows.ts';
import { nextMessageTo } from '../../support/inbox.ts';
import { startServer, type TestServer } from '../../support/server.ts';
import { plugInKey } from '../../support/virtual-key.ts';

const passkeys = (more: object = {}) => ({
  authentication_methods: { passkey: { enabled: true } },
  passkey_options: { challenge_ui: 'button', ...more },
});

describe('the hosted pages of passkeys', () => {
  let server: TestServer;
  let browser: TestBrowser;
  let callbacks: Callback;
  let context: BrowserContext;
  let page: Page;
  let cdp: CDPSession;
  let authenticatorId: string;
  let people = 0;

  before(async () => {
    callbacks = await startCallback();
    const users = Array.from({ length: 20 }, (_, i) => ({
      email: `pass-${i}@example.test`,
      password: USER.password,
      connection: 'users',
    }));
    server = await startServer({
      tenant: {
        ...tenant,
        clients: tenant.clients.map((client) => ({ ...client, callbacks: [callbacks.url] })),
        databases: [
          ...tenant.databases.map((one) =>
            one.name === 'users' ? { ...one, options: { ...one.options, ...passkeys() } } : one,
          ),
          {
            name: 'quiet',
            enabled_clients: ['web'],
            options: passkeys({ challenge_ui: 'autofill', progressive_enrollment_enabled: false }),
          },
        ],
        users: [
          ...tenant.users,
          ...users,
          { email: 'quiet@example.test', password: USER.password, connection: 'quiet' },
        ],
        guardianFactors: [{ name: 'otp', enabled: true }],
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
    authenticatorId = await plugInKey(cdp);
  });
  afterEach(() => context.close());

  const someone = () => `pass-${people++}@example.test`;
  const open = async (over: Record<string, string> = {}) => {
    const request = {
      redirect_uri: callbacks.url,
      response_type: 'id_token',
      nonce: 'n',
      connection: 'users',
    };
    const params = webRequest({ ...request, ...over });
    await page.goto(`${server.url}/authorize?${new URLSearchParams(params)}`);
  };
  const press = (name: string) => page.getByRole('button', { name }).click();
  const typePassword = async (email: string) => {
    await page.getByLabel('Email address').fill(email);
    await page.getByLabel('Password', { exact: true }).fill(USER.password);
    await press('Continue');
  };
  const arrived = async () => {
    await page.waitForURL((url) => url.origin === new URL(callbacks.url).origin);
    return payload(new URLSearchParams(new URL(page.url()).hash.slice(1)).get('id_token') ?? '');
  };
  /** Creates a user with a passkey and without a session. */
  const enrolled = async (email = someone()) => {
    await open();
    await typePassword(email);
    await press('Create a passkey');
    await arrived();
    await context.clearCookies();
    return email;
  };
  const idOf = async (email: string) => (await server.users.withEmail(email))[0]?.id ?? '';
  const passkeysOf = async (email: string) =>
    server.store.collection('passkeys').findBy('user', await idOf(email));

  it('offer one after a password, and log in with it the next time as two factors', async () => {
    const email = someone();
    await open();
    await typePassword(email);
    await page.getByRole('heading', { name: 'Log in faster next time' }).waitFor();
    expect(await accessibilityFaults(page)).to.deep.equal([]);
    await press('Create a passkey');
    expect(await arrived())
      .to.include({ email })
      .and.not.to.have.property('amr');
    expect((await passkeysOf(email)).map(({ connection }) => connection)).to.deep.equal(['users']);
    expect((await nextMessageTo(server, email)).subject).to.equal('New way to log in: passkey');
    await context.clearCookies();
    await open({ acr_values: 'http://schemas.openid.net/pape/policies/2007/06/multi-factor' });
    expect(await accessibilityFaults(page)).to.deep.equal([]);
    await press('Use a passkey');
    expect(await arrived()).to.deep.include({ email, amr: ['mfa'] });
  });

  it('do not offer one again for a while to a user who declined', async () => {
    const email = someone();
    await open();
    await typePassword(email);
    await press('Not now');
    expect(await arrived()).to.include({ email });
    await open({ prompt: 'login' });
    await typePassword(email);
    expect(await arrived()).to.include({ email });
    expect(await passkeysOf(email)).to.deep.equal([]);
  });

  it('do not offer one to a user who has a second factor and has not given it', async () => {
    const email = someone();
    await server.store.collection('authenticators').insert({
      id: `totp|dev_${email}`,
      user_id: await idOf(email),
      kind: 'otp',
      active: true,
      secret: 'JBSWY3DPEHPK3PXP',
      created_at: new Date().toISOString(),
    });
    await open();
    await typePassword(email);
    expect(await arrived()).to.include({ email });
  });

  it('do not offer one if the connection says so; then the browser offers passkeys at the address field', async () => {
    await open({ connection: 'quiet' });
    expect(await page.getByLabel('Email address').getAttribute('autocomplete')).to.equal('username webauthn');
    expect(await page.getByRole('button', { name: 'Use a passkey' }).count()).to.equal(0);
    await typePassword('quiet@example.test');
    expect(await arrived()).to.include({ email: 'quiet@example.test' });
  });

  it('offer one for this device after a login with one of another device, and the browser creates it here only', async () => {
    await cdp.send('WebAuthn.removeVirtualAuthenticator', { authenticatorId });
    const plugIn = (transport: 'usb' | 'internal') => plugInKey(cdp, transport);
    const roaming = await plugIn('usb');
    const email = await enrolled();
    const own = await plugIn('internal');
    await open();
    await press('Use a passkey');
    await page.getByRole('heading', { name: 'Use this device next time' }).waitFor();
    expect(await accessibilityFaults(page)).to.deep.equal([]);
    await press('Create a passkey');
    expect(await arrived()).to.include({ email });
    expect(await passkeysOf(email)).to.have.length(2);
    expect((await cdp.send('WebAuthn.getCredentials', { authenticatorId: own })).credentials).to.have.length(
      1,
    );
    await cdp.send('WebAuthn.removeVirtualAuthenticator', { authenticatorId: roaming });
    await context.clearCookies();
    await open();
    await press('Use a passkey');
    // A login with the passkey of this device makes no further offer.
    expect(await arrived()).to.include({ email });
    expect(await passkeysOf(email)).to.have.length(2);
  });

  it('reject the passkey of a removed user, or of a connection that the request does not allow, with a message', async () => {
    const email = await enrolled();
    await server.users.remove(await idOf(email));
    await open();
    await press('Use a passkey');
    await page.getByText('This passkey belongs to no account here.').waitFor();
    await cdp.send('WebAuthn.clearCredentials', { authenticatorId });
    const other = await enrolled();
    const [passkey] = await passkeysOf(other);
    await server.store
      .collection('passkeys')
      .update(passkey?.id ?? '', (current) => ({ ...current, connection: 'quiet' }));
    await open();
    await press('Use a passkey');
    await page.getByText('This passkey belongs to no account here.').waitFor();
  });

  it('offer one beside the code by e-mail of a connection without passwords, and tell there that one is unknown', async () => {
    const connections = server.store.collection('connections');
    const { id = '', options = {} } = (await connections.findBy('name', 'users'))[0] ?? {};
    const email = await enrolled();
    const methods = {
      passkey: { enabled: true },
      password: { enabled: false },
      email_otp: { enabled: true },
    };
    await connections.update(id, (now) => ({
      ...now,
      options: { ...options, authentication_methods: methods },
    }));
    try {
      await open();
      await page.getByRole('heading', { name: 'Get a code by email' }).waitFor();
      expect(await accessibilityFaults(page)).to.deep.equal([]);
      await press('Use a passkey');
      expect(await arrived()).to.include({ email });
      await context.clearCookies();
      await server.users.remove(await idOf(email));
      await open();
      await press('Use a passkey');
      await page.getByText('This passkey belongs to no account here.').waitFor();
      expect(await page.getByRole('button', { name: 'Email me a code' }).count()).to.equal(1);
      expect(await page.getByLabel('Password').count()).to.equal(0);
    } finally {
      await connections.update(id, (now) => ({ ...now, options }));
    }
  });

  it('tell a user who cancels, or has no passkey, what to do', async () => {
    await open();
    await press('Use a passkey');
    await page.getByText('It was cancelled, or took too long.').waitFor();
    await page.getByLabel('Email address').waitFor();
  });

  /** Returns the fields of the page's form as the browser fills them. */
  const filled = (): Promise<{ action: string; fields: Record<string, string> }> =>
    page.evaluate(`(async () => {
      const form = document.querySelector('form[data-webauthn]');
      const options = JSON.parse(form.dataset.options);
      const create = form.dataset.webauthn === 'create';
      const publicKey = create
        ? PublicKeyCredential.parseCreationOptionsFromJSON(options)
        : PublicKeyCredential.parseRequestOptionsFromJSON(options);
      const credential = await navigator.credentials[create ? 'create' : 'get']({ publicKey });
      form.elements.code.value = JSON.stringify(credential);
      return { action: new URL(form.action).pathname, fields: Object.fromEntries(new FormData(form)) };
    })()`);
  /** Posts the form as the browser does. */
  const post = async ({ action, fields }: Awaited<ReturnType<typeof filled>>) => {
    const cookie = (await context.cookies()).map(({ name, value }) => `${name}=${value}`).join('; ');
    return createAgent(server).request(action, { form: fields, headers: { cookie, origin: server.url } });
  };
  const isLoggedIn = ({ status, location = '' }: { status: number; location?: string | undefined }) =>
    status < 400 && location !== '';

  it('accept one response to a challenge, of any number at the same time', async () => {
    await enrolled();
    await open();
    const form = await filled();
    const answers = await Promise.all(Array.from({ length: 10 }, () => post(form)));
    expect(answers.filter(isLoggedIn).length).to.equal(1);
  });

  it('accept a response only from our own form', async () => {
    await enrolled();
    await open();
    const { action, fields } = await filled();
    expect((await post({ action, fields: { ...fields, _csrf: 'x' } })).status).to.equal(403);
  });

  it('do not create one for a login that a new password has ended meanwhile', async () => {
    const email = someone();
    await open();
    await typePassword(email);
    await page.getByRole('button', { name: 'Create a passkey' }).waitFor();
    await server.users.setPassword(await idOf(email), 'Entirely-New-Words-7');
    await post(await filled());
    expect(await passkeysOf(email)).to.deep.equal([]);
  });
});
