// The hosted passwordless and password-reset pages, as users see them in a browser.
import { expect } from 'chai';
import type { BrowserContext, Page } from 'playwright-core';
import { accessibilityFaults } from '../../support/accessibility.ts';
import { launchBrowser, type TestBrowser } from '../../support/browser.ts';
import { type Callback, startCallback } from '../../support/callback.ts';
import { databaseUser } from '../../support/database-user.ts';
import { USER, webRequest } from '../../support/flows.ts';
import { messagesTo, nextMessageTo } from '../../support/inbox.ts';
import { startServer, type TestServer } from '../../support/server.ts';
import { generous, tenant } from './tenant.ts';

describe('the hosted passwordless pages', () => {
  let server: TestServer;
  let browser: TestBrowser;
  let callbacks: Callback;
  let callback: string;
  let context: BrowserContext;
  let page: Page;
  let people = 0;

  before(async () => {
    callbacks = await startCallback();
    callback = callbacks.url;
    server = await startServer({
      tenant: {
        ...tenant,
        attackProtection: {
          rateLimits: { ...tenant.attackProtection.rateLimits, changePassword: generous },
        },
        clients: [
          ...tenant.clients.map((client) => ({ ...client, callbacks: [callback] })),
          { client_id: 'codes', name: 'Codes only', client_secret: 'codes-secret', callbacks: [callback] },
        ],
        connections: tenant.connections.map((connection) =>
          connection.name === 'sms'
            ? { ...connection, enabled_clients: [...connection.enabled_clients, 'codes'] }
            : connection,
        ),
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
    context = await browser.newContext({ permissions: ['clipboard-read', 'clipboard-write'] });
    page = await context.newPage();
  });
  afterEach(() => context.close());

  const someone = () => `visitor-${++people}@example.test`;
  const request = (over: Record<string, string> = {}) =>
    `${server.url}/authorize?${new URLSearchParams(webRequest({ redirect_uri: callback, ...over }))}`;
  const arrived = async () => {
    await page.waitForURL((url) => url.origin === new URL(callback).origin);
    return Object.fromEntries(new URL(page.url()).searchParams);
  };
  const heading = () => page.getByRole('heading', { level: 1 }).textContent();
  const askByEmail = async (email: string) => {
    await page.getByLabel('Email address').fill(email);
    await page.getByRole('button', { name: 'Email me a code' }).click();
    await page.getByLabel('Code', { exact: true }).waitFor();
    return (await nextMessageTo(server, email)).code ?? '';
  };
  const enter = async (code: string) => {
    await page.getByLabel('Code', { exact: true }).fill(code);
    await page.getByRole('button', { name: 'Continue' }).click();
  };
  const wrong = (code: string) => String((Number(code) + 1) % 1e6).padStart(6, '0');

  it('are linked on the login page, and log in with a code by e-mail', async () => {
    await page.goto(request());
    await page.getByRole('link', { name: 'Email me a code' }).first().click();
    expect(await heading()).to.equal('Get a code by email');
    await enter(await askByEmail(someone()));
    expect(await arrived()).to.have.property('code');
  });

  it('log in with a code by SMS', async () => {
    await page.goto(request());
    await page.getByRole('link', { name: 'Text me a code' }).click();
    await page.getByLabel('Phone number').fill('+1 650 555-0100');
    await page.getByRole('button', { name: 'Text me a code' }).click();
    await page.getByLabel('Code', { exact: true }).waitFor();
    await enter((await nextMessageTo(server, '+16505550100')).code ?? '');
    expect(await arrived()).to.have.property('code');
  });

  it('are shown at once if the request names the connection, with the hint filled in', async () => {
    const email = someone();
    await page.goto(request({ connection: 'email', login_hint: email }));
    expect(await page.getByLabel('Email address').inputValue()).to.equal(email);
    await enter(await askByEmail(email));
    expect(await arrived()).to.have.property('code');
  });

  it('are shown at once if the application has no passwords', async () => {
    await page.goto(request({ client_id: 'codes' }));
    expect(await heading()).to.equal('Get a code by text message');
    expect(await page.getByRole('link', { name: 'Use a password' }).count()).to.equal(0);
  });

  it('accept a pasted code with spaces, by keyboard alone', async () => {
    await page.goto(request({ connection: 'email' }));
    await page.locator('#address:focus').waitFor();
    await page.keyboard.type(someone());
    await page.keyboard.press('Enter');
    await page.getByLabel('Code', { exact: true }).waitFor();
    const { code = '' } = await nextMessageTo(server, `visitor-${people}@example.test`);
    await page.locator('#code:focus').waitFor();
    await page.evaluate(`navigator.clipboard.writeText(' ${code.slice(0, 3)} ${code.slice(3)} ')`);
    await page.keyboard.press('ControlOrMeta+v');
    await page.keyboard.press('Enter');
    expect(await arrived()).to.have.property('code');
  });

  it('have a field that phones and browsers fill in', async () => {
    await page.goto(request({ connection: 'email' }));
    await askByEmail(someone());
    const field = page.getByLabel('Code', { exact: true });
    expect(await field.getAttribute('autocomplete')).to.equal('one-time-code');
    expect(await field.getAttribute('inputmode')).to.equal('numeric');
    expect(await page.locator('input:not([type=hidden])').count()).to.equal(1);
  });

  it('reject a wrong code three times, and then also the right one', async () => {
    await page.goto(request({ connection: 'email' }));
    const code = await askByEmail(someone());
    for (let i = 0; i < 3; i++) {
      await enter(wrong(code));
      await page.getByText('This code is wrong, used or expired.').waitFor();
    }
    await enter(code);
    await page.getByText('This code is wrong, used or expired.').waitFor();
    expect(page.url()).to.contain(server.url);
  });

  it('say that a code has expired', async () => {
    await page.goto(request({ connection: 'email' }));
    const code = await askByEmail(someone());
    server.tick(181_000);
    await enter(code);
    await page.getByText('This code is wrong, used or expired.').waitFor();
  });

  it('send another code after the countdown, and accept only the new one', async () => {
    const email = someone();
    await page.clock.install();
    await page.goto(request({ connection: 'email' }));
    const first = await askByEmail(email);
    const resend = page.locator('[data-cooldown]');
    expect(await resend.isDisabled()).to.equal(true);
    expect(await resend.textContent()).to.match(/^Another code in \d+ sec$/);
    server.tick(31_000);
    await page.clock.fastForward(31_000);
    await page.getByRole('button', { name: 'Send another code' }).click();
    const second = (await nextMessageTo(server, email, 2)).code ?? '';
    await page.locator('[data-cooldown]:disabled').waitFor();
    if (first !== second) {
      await enter(first);
      await page.getByText('This code is wrong, used or expired.').waitFor();
    }
    await enter(second);
    expect(await arrived()).to.have.property('code');
  });

  it('send no other code before the countdown ends, even to a script', async () => {
    const email = someone();
    await page.goto(request({ connection: 'email' }));
    await askByEmail(email);
    await page.evaluate(
      "for (const button of document.querySelectorAll('[data-cooldown]')) { button.disabled = false; button.click(); }",
    );
    await page.getByText('A code was sent a moment ago.').waitFor();
    expect(await messagesTo(server, email)).to.have.length(1);
  });

  it('lead back to another address, and to the password', async () => {
    await page.goto(request({ connection: 'email' }));
    await askByEmail(someone());
    await page.getByRole('link', { name: 'Use another address' }).click();
    expect(await heading()).to.equal('Get a code by email');
    await page.goto(request());
    await page.getByRole('link', { name: 'Text me a code' }).click();
    await page.getByRole('link', { name: 'Use a password' }).click();
    expect(await heading()).to.equal('Welcome');
  });

  for (const address of ['no address', 'two@a.test,b@c.test', '']) {
    it(`reject the invalid e-mail address ${JSON.stringify(address)}`, async () => {
      await page.goto(request({ connection: 'email' }));
      await page.evaluate('document.forms[0].noValidate = true');
      await page.getByLabel('Email address').fill(address);
      await page.getByRole('button', { name: 'Email me a code' }).click();
      await page.getByText('This is not an email address.').waitFor();
    });
  }

  it('show the same to users and to addresses that may not sign up', async () => {
    await server.users.whoProved({
      connection: 'members',
      provider: 'email',
      kind: 'email',
      mayCreate: true,
      address: 'insider@example.test',
    });
    const texts = [];
    for (const email of ['insider@example.test', 'outsider@example.test']) {
      await page.goto(request({ connection: 'members' }));
      await page.getByLabel('Email address').fill(email);
      await page.getByRole('button', { name: 'Email me a code' }).click();
      await page.getByLabel('Code', { exact: true }).waitFor();
      texts.push((await page.locator('.lead').textContent())?.replace(email, ''));
    }
    expect(texts[0]).to.equal(texts[1]);
  });

  it('work without scripts', async () => {
    const plain = await browser.newContext({ javaScriptEnabled: false });
    page = await plain.newPage();
    await page.goto(request({ connection: 'email' }));
    await enter(await askByEmail(someone()));
    expect(await arrived()).to.have.property('code');
    await plain.close();
  });

  it('reset a password, and show the rules while it is typed', async () => {
    const email = someone();
    await server.users.create(databaseUser({ connection: 'users', email, password: USER.password }));
    await page.goto(request());
    await page.getByRole('link', { name: 'Forgot your password?' }).click();
    await page.getByLabel('Email address').fill(email);
    await page.getByRole('button', { name: 'Send me a link' }).click();
    expect(await heading()).to.equal('Check your email');
    await page.goto((await nextMessageTo(server, email)).link ?? '');
    const field = page.getByLabel('New password', { exact: true });
    await field.pressSequentially('Brand-New');
    expect(await page.locator('#rules > .unmet').count()).to.equal(0);
    expect(await accessibilityFaults(page)).to.deep.equal([]);
    await field.fill('Brand-New-Words-1');
    await page.getByLabel('Repeat the new password').fill('Brand-New-Words-2');
    await page.getByRole('button', { name: 'Save the password' }).click();
    await page.getByText('The two passwords are not the same.').first().waitFor();
    await field.fill('Brand-New-Words-1');
    await page.getByLabel('Repeat the new password').fill('Brand-New-Words-1');
    await page.getByRole('button', { name: 'Save the password' }).click();
    await page.getByText('Your password is saved').waitFor();
    await page.goto(request());
    await page.getByLabel('Email address').fill(email);
    await page.getByLabel('Password', { exact: true }).fill('Brand-New-Words-1');
    await page.getByRole('button', { name: 'Continue' }).click();
    expect(await arrived()).to.have.property('code');
  });

  it('verify an address', async () => {
    const email = someone();
    await page.goto(request({ screen_hint: 'signup' }));
    await page.getByLabel('Email address').fill(email);
    await page.getByLabel('Password', { exact: true }).fill(USER.password);
    await page.getByRole('button', { name: 'Create account' }).click();
    await arrived();
    await page.goto((await nextMessageTo(server, email)).link ?? '');
    await page.getByRole('button', { name: 'Yes, this is my address' }).click();
    await page.getByText('Your email address is verified').waitFor();
  });
});
