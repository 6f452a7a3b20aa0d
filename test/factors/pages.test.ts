// The pages of the second factor in a browser: with an app, by SMS, with a recovery code, and by approving the
// login in another browser.
import { expect } from 'chai';
import jsqr from 'jsqr';
import type { BrowserContext, Page } from 'playwright-core';
import { accessibilityFaults } from '../support/accessibility.ts';
import { createAgent } from '../support/agent.ts';
import { launchBrowser, type TestBrowser } from '../support/browser.ts';
import { type Callback, startCallback } from '../support/callback.ts';
import { payload, pkce, USER, webRequest } from '../support/flows.ts';
import { nextMessageTo } from '../support/inbox.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { callsOf, codeOf, POLICY, tenant } from './tenant.ts';

describe('the hosted pages of the second factor', () => {
  let server: TestServer;
  let browser: TestBrowser;
  let callbacks: Callback;
  let callback: string;
  let context: BrowserContext;
  let page: Page;
  let people = 0;

  const startTenant = () =>
    startServer({
      tenant: {
        ...tenant,
        tenant: { ...tenant.tenant, flags: { enable_dynamic_client_registration: true } },
        databases: tenant.databases.map((one) => ({ ...one, is_domain_connection: true })),
        clients: tenant.clients.map((client) => ({ ...client, callbacks: [callback] })),
      },
    });

  before(async () => {
    callbacks = await startCallback();
    callback = callbacks.url;
    server = await startTenant();
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
  });
  afterEach(() => context.close());

  const someone = () => `mfa-${people++}@example.test`;
  const start = async (email: string, over: Record<string, string> = {}) => {
    const params = webRequest({ redirect_uri: callback, response_type: 'id_token', nonce: 'n', ...over });
    await page.goto(`${server.url}/authorize?${new URLSearchParams(params)}`);
    await page.getByLabel('Email address').fill(email);
    await page.getByLabel('Password', { exact: true }).fill(USER.password);
    await page.getByRole('button', { name: 'Continue' }).click();
  };
  const arrived = async () => {
    await page.waitForURL((url) => url.origin === new URL(callback).origin);
    return payload(new URLSearchParams(new URL(page.url()).hash.slice(1)).get('id_token') ?? '');
  };
  const enter = async (code: string) => {
    await page.getByLabel('Code', { exact: true }).fill(code);
    await page.getByRole('button', { name: 'Continue' }).click();
  };
  const saveRecoveryCode = async () => {
    await page.getByRole('heading', { name: 'Save your recovery code' }).waitFor();
    const code = (await page.locator('#recovery-code').textContent()) ?? '';
    await page.getByLabel('I have saved the code').check();
    await page.getByRole('button', { name: 'Continue' }).click();
    return code;
  };
  /** Reads the QR code as a phone's camera does. */
  const scan = async (): Promise<string> => {
    const box = page.locator('.qr');
    const pixels = (await page.evaluate(`(async () => {
      const svg = document.querySelector('.qr svg');
      const image = new Image();
      image.src = 'data:image/svg+xml,' + encodeURIComponent(new XMLSerializer().serializeToString(svg));
      await image.decode();
      const canvas = new OffscreenCanvas(400, 400);
      const context = canvas.getContext('2d');
      context.fillStyle = 'white';
      context.fillRect(0, 0, 400, 400);
      context.drawImage(image, 20, 20, 360, 360);
      // As text, because a long list of numbers takes seconds to transfer.
      return new Uint8Array(context.getImageData(0, 0, 400, 400).data.buffer).toBase64();
    })()`)) as string;
    expect(await box.getAttribute('aria-label')).to.be.a('string');
    return jsqr.default(Uint8ClampedArray.from(Buffer.from(pixels, 'base64')), 400, 400)?.data ?? '';
  };
  const seen = async () => expect(await accessibilityFaults(page)).to.deep.equal([]);

  it('enrol an authenticator app by its QR code, and log in with it the next time', async () => {
    const email = someone();
    await start(email);
    await page.getByRole('heading', { name: 'One more step' }).waitFor();
    await seen();
    await page.getByRole('link', { name: /Authenticator app/ }).click();
    const secret = new URL(await scan()).searchParams.get('secret') ?? '';
    expect(secret).to.match(/^[A-Z2-7]{32}$/);
    await seen();
    await enter('000000');
    await page.getByText('This code is wrong or expired.').waitFor();
    expect(new URL(await scan()).searchParams.get('secret'), 'the same code after a mistake').to.equal(
      secret,
    );
    await enter(codeOf(secret));
    await seen();
    await saveRecoveryCode();
    expect(await arrived()).to.deep.include({ email, amr: ['mfa'], acr: POLICY });
    server.tick(31_000);
    await context.clearCookies();
    await start(email);
    await page.getByText('Open your authenticator app').waitFor();
    await enter(codeOf(secret));
    expect(await arrived()).to.deep.include({ email, amr: ['mfa'] });
  });

  it('name the account in the QR code by the phone number when there is no other name', async () => {
    const phone = '+16505550711';
    await page.goto(`${server.url}/authorize?${new URLSearchParams(webRequest({ redirect_uri: callback }))}`);
    await page.goto(`${page.url()}/passwordless/sms`);
    await page.locator('[name=address]').fill(phone);
    await page.getByRole('button', { name: 'Text me a code' }).click();
    await enter((await nextMessageTo(server, phone)).code ?? '');
    await page.getByRole('link', { name: /Authenticator app/ }).click();
    await page.locator('.qr').waitFor();
    expect(decodeURIComponent(new URL(await scan()).pathname)).to.match(/:\+16505550711$/);
  });

  it('accept the recovery code once in place of a lost phone, and show a new one', async () => {
    const email = someone();
    const { recoveryCode } = await callsOf(server).enrollOtp(email);
    await start(email);
    await page.getByRole('link', { name: 'Try another way' }).click();
    await page.getByRole('link', { name: /Recovery code/ }).click();
    await page.getByLabel('Recovery code').fill(recoveryCode);
    await page.getByRole('button', { name: 'Continue' }).click();
    const renewed = await saveRecoveryCode();
    expect(renewed).not.to.equal(recoveryCode);
    expect(await arrived()).to.deep.include({ email });
  });

  for (const [accepted, over, country] of [
    ['*', {}, 'United States (+1)'],
    ['de,en-US;q=0.7,en;q=0.3', { ui_locales: 'en' }, 'Germany (+49)'],
    ['de-AT,de;q=0.9', {}, 'Österreich (+43)'],
  ] as const) {
    it(`list countries in the page's language, with the likely one selected: ${accepted} ${JSON.stringify(over)}`, async () => {
      await context.setExtraHTTPHeaders({ 'accept-language': accepted });
      await page.goto(
        `${server.url}/authorize?${new URLSearchParams(webRequest({ redirect_uri: callback, ...over }))}`,
      );
      await page.locator('[name=username]').fill(someone());
      await page.locator('[name=password]').fill(USER.password);
      await page.locator('button[type=submit]').first().click();
      await page.locator('a[href*="mfa/phone"]').click();
      expect(await page.locator('#country option:checked').textContent()).to.equal(country);
    });
  }

  it('enrol a phone number with its country, and send a code to it', async () => {
    const email = someone();
    await start(email);
    await page.getByRole('link', { name: /Text message/ }).click();
    await page.getByLabel('Country').selectOption('DE');
    await page.getByLabel('Phone number').fill('12');
    await page.getByRole('button', { name: 'Text me a code' }).click();
    await page.getByText('This is not a phone number.').waitFor();
    await page.getByLabel('Country').selectOption('DE');
    await page.getByLabel('Phone number').fill('030 901820');
    await page.getByRole('button', { name: 'Text me a code' }).click();
    await page.getByLabel('Code', { exact: true }).waitFor();
    await seen();
    await enter((await nextMessageTo(server, '+4930901820')).code ?? '');
    await saveRecoveryCode();
    expect(await arrived()).to.deep.include({ email });
    await context.clearCookies();
    await start(email);
    await page.getByText('A text message with a code is on its way').waitFor();
    await page.reload();
    await enter((await nextMessageTo(server, '+4930901820', 2)).code ?? '');
    expect(await arrived()).to.deep.include({ email });
  });

  it('remember a browser for thirty days, for one user, until it is forgotten', async () => {
    const [email, other] = [someone(), someone()];
    const { secret } = await callsOf(server).enrollOtp(email);
    await callsOf(server).enrollOtp(other);
    server.tick(31_000);
    await start(email);
    await page.getByLabel('Do not ask in this browser for 30 days').check();
    await enter(codeOf(secret));
    await arrived();
    await start(email, { prompt: 'login' });
    expect(await arrived()).not.to.have.property('amr');
    await start(other, { prompt: 'login' });
    await page.getByText('Open your authenticator app').waitFor();
    await start(email, { prompt: 'login', acr_values: POLICY });
    await page.getByText('Open your authenticator app').waitFor();
    server.tick(30 * 86_400_000);
    await start(email, { prompt: 'login' });
    await page.getByText('Open your authenticator app').waitFor();
  });

  describe('and the authenticator', () => {
    let device: Page;
    // Real time, as in the browsers: a device dates what it signs.
    before(async () => {
      await browser.close();
      await server.stop();
      server = await startTenant();
      browser = await launchBrowser(server.ca);
    });
    beforeEach(async () => {
      device = await (await browser.newContext()).newPage();
    });
    afterEach(() => device.context().close());

    const enrollDevice = async (email: string) => {
      await start(email);
      await page.getByRole('link', { name: /Approval/ }).click();
      const barcode = await scan();
      expect(barcode).to.match(/^otpauth:\/\/totp\/.*enrollment_tx_id=/);
      await device.goto(`${server.url}/authenticator`);
      await device.getByLabel('Code from the login page').fill(barcode);
      await device.getByLabel('Name of this device').fill('Ada’s phone');
      await device.getByRole('button', { name: 'Add' }).click();
      await device.getByText(`Added ${email}.`).waitFor();
      // The login page notices the enrolled device by itself.
      await saveRecoveryCode();
      expect(await arrived()).to.deep.include({ email, amr: ['mfa'] });
      await context.clearCookies();
      return barcode;
    };

    it('enrols, and approves a login whose number it shows', async () => {
      const email = someone();
      const barcode = await enrollDevice(email);
      expect(await accessibilityFaults(device)).to.deep.equal([]);
      await start(email);
      await page.getByText('Ada’s phone').waitFor();
      await seen();
      const number = await page.locator('.match strong').textContent();
      await device.getByText('Log in to Web app?').waitFor();
      expect(await device.getByText('Not verified').isVisible(), 'an application of our own').to.equal(false);
      expect(await device.locator('.match strong').textContent()).to.equal(number);
      await device.getByRole('button', { name: 'Allow' }).click();
      await device.getByText('Allowed.').waitFor();
      expect(await arrived()).to.deep.include({ email, amr: ['mfa'] });
      // The QR code is used once.
      // When the device has an account, the form is collapsed.
      await device.getByText('Add an account').click();
      await device.getByLabel('Code from the login page').fill(barcode);
      await device.getByRole('button', { name: 'Add' }).click();
      await device.getByText('This code is too old or was already used.').waitFor();
    });

    it('warns of an application that nobody has verified', async () => {
      const email = someone();
      await enrollDevice(email);
      const registered = await createAgent(server).request('/oidc/register', {
        json: {
          client_name: 'Your bank',
          redirect_uris: ['https://agent.example.test/callback'],
          token_endpoint_auth_method: 'none',
        },
      });
      await start(email, {
        client_id: registered.json().client_id,
        redirect_uri: 'https://agent.example.test/callback',
        response_type: 'code',
        code_challenge: pkce().challenge,
        code_challenge_method: 'S256',
      });
      await device.getByText('Log in to Your bank?').waitFor();
      await device.getByText('Access goes to agent.example.test').waitFor();
      await device.getByText('Not verified: Test tenant does not know').waitFor();
      expect(await accessibilityFaults(device)).to.deep.equal([]);
    });

    it('denies a login', async () => {
      const email = someone();
      await enrollDevice(email);
      await start(email);
      await device.getByRole('button', { name: 'Deny' }).click();
      await device.getByText('Denied.').waitFor();
      await page.getByText('The login was denied on the other device.').waitFor();
      expect(page.url()).to.contain(server.url);
    });

    it('shows nothing of a login that has expired', async () => {
      const email = someone();
      await enrollDevice(email);
      await start(email);
      await device.getByText('Log in to Web app?').waitFor();
      const { records } = await server.store.collection('challenges').list();
      for (const { id } of records) await server.store.collection('challenges').delete(id);
      await device.getByRole('button', { name: 'Allow' }).click();
      await device.getByText('This request has been answered or has expired.').waitFor();
    });
  });
});
