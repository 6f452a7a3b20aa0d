import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { tenant } from '../connections/passwordless/tenant.ts';
import { clientsAt, openApplication } from '../support/application.ts';
import { bundle } from '../support/bundle.ts';
import { payload, USER } from '../support/flows.ts';
import { nextMessageTo } from '../support/inbox.ts';
import type { TestServer } from '../support/server.ts';

describe('the login widget in an application', () => {
  const opened = openApplication({
    script: () => bundle('auth0-lock', 'lock'),
    tenant: (origin) => ({ ...tenant, clients: clientsAt(tenant.clients, origin) }),
    context: { locale: 'de-AT' },
  });
  let server: TestServer;
  let origin: string;
  let page: Page;
  beforeEach(() => {
    ({ server, origin, page } = opened());
  });

  interface Shown {
    passwordless?: boolean;
    redirect: boolean;
    options?: Record<string, unknown>;
  }
  /** Creates the widget and shows it; its events are stored in the page. */
  const show = ({ passwordless = false, redirect, options = {} }: Shown) =>
    page.evaluate(
      ([domain, at, isPasswordless, isRedirect, more]) => {
        const { lock, told } = Object.assign(globalThis as any, { told: {} }); // any: it brings no types of its own
        const Widget = isPasswordless ? lock.Auth0LockPasswordless : lock.Auth0Lock;
        const widget = new Widget('spa', domain, {
          auth: {
            redirect: isRedirect,
            redirectUrl: `${at}/callback`,
            responseType: 'token id_token',
            params: { scope: 'openid email' },
          },
          autoclose: false,
          ...(more as object),
        });
        for (const event of [
          'authenticated',
          'authorization_error',
          'unrecoverable_error',
          'signup success',
        ]) {
          widget.on(event, (value: unknown) => {
            told[event] = value ?? true;
          });
        }
        (globalThis as any).widget = widget;
        widget.show();
      },
      [new URL(server.url).host, origin, passwordless, redirect, options] as const,
    );
  const told = async (event: string): Promise<any> => {
    // any: a test reads what it expects
    await page.waitForFunction((name) => (globalThis as any).told[name] !== undefined, event);
    return page.evaluate((name) => (globalThis as any).told[name], event);
  };
  const fill = async (fields: Record<string, string>) => {
    for (const [name, value] of Object.entries(fields))
      await page.locator(`input[name="${name}"]`).fill(value);
  };
  const submit = () => page.locator('button[name="submit"]').click();
  /** Returns the e-mail address in the ID token that the application's callback got. */
  const atCallback = async () => {
    await page.waitForURL((url) => url.origin === origin && url.pathname === '/callback');
    const answer = new URLSearchParams(new URL(page.url()).hash.slice(1));
    return payload(answer.get('id_token') ?? '').email;
  };
  const message = (text: string) => page.locator('.auth0-global-message', { hasText: text }).waitFor();

  it('logs in by redirect', async () => {
    await show({ redirect: true });
    await fill({ email: USER.email, password: USER.password });
    await submit();
    expect(await atCallback()).to.equal(USER.email);
  });

  it('logs in in popup mode, without leaving the page', async () => {
    await show({ redirect: false });
    await fill({ email: USER.email, password: USER.password });
    await submit();
    const { idTokenPayload, accessToken } = await told('authenticated');
    expect(idTokenPayload).to.include({ email: USER.email });
    expect(accessToken).to.be.a('string');
    expect(page.url()).to.equal(`${origin}/`);
  });

  it('shows who was logged in last, and logs them in again without a password', async () => {
    await show({ redirect: false });
    await fill({ email: USER.email, password: USER.password });
    await submit();
    await told('authenticated');
    await page.goto(origin);
    await show({ redirect: false });
    await page.getByText(USER.email).first().click();
    expect((await told('authenticated')).idTokenPayload).to.include({ email: USER.email });
  });

  it('shows that a password is wrong', async () => {
    await show({ redirect: false });
    await fill({ email: USER.email, password: 'wrong' });
    await submit();
    await message('Wrong email or password.');
  });

  it('signs up and logs in', async () => {
    await show({ redirect: false, options: { initialScreen: 'signUp' } });
    await fill({ email: 'by-widget@example.test', password: USER.password });
    await submit();
    await told('signup success');
    expect((await told('authenticated')).idTokenPayload).to.include({ email: 'by-widget@example.test' });
  });

  it('shows the password policy, and why a sign-up was rejected', async () => {
    await show({ redirect: false, options: { initialScreen: 'signUp' } });
    await fill({ email: USER.email, password: 'weak' });
    await page.getByText('At least 8 characters in length').waitFor();
    await fill({ password: USER.password });
    await submit();
    await message("We're sorry, something went wrong when attempting to sign up.");
  });

  it('requests a password reset', async () => {
    await show({ redirect: false, options: { initialScreen: 'forgotPassword' } });
    await fill({ email: USER.email });
    await submit();
    await message("We've just sent you an email to reset your password.");
    expect((await nextMessageTo(server, USER.email)).link).to.contain('/u/reset-password?ticket=');
  });

  it('logs in with a code by e-mail', async () => {
    const email = 'code-by-widget@example.test';
    await show({
      passwordless: true,
      redirect: true,
      options: { allowedConnections: ['email'], passwordlessMethod: 'code' },
    });
    await fill({ email });
    await submit();
    await page.locator('input[name="vcode"]').waitFor();
    await fill({ vcode: (await nextMessageTo(server, email)).code ?? '' });
    await submit();
    expect(await atCallback()).to.equal(email);
  });

  it('starts a phone number with the prefix of the country', async () => {
    await show({ passwordless: true, redirect: true, options: { allowedConnections: ['sms'] } });
    await page.getByText('+43').first().waitFor();
  });
});
