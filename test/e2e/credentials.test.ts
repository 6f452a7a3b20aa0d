// auth0-js, unmodified, with the password form at the application's own page: in popup mode no page of ours is shown, and the
// response comes as a message from a hidden frame.
import { expect } from 'chai';
import type { BrowserContext, Page } from 'playwright-core';
import { tenant } from '../connections/passwordless/tenant.ts';
import { factors } from '../factors/tenant.ts';
import { auth0Js, clientsAt, openApplication } from '../support/application.ts';
import { payload, USER } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';

const CAREFUL = { email: 'careful@example.test', password: USER.password };

describe('auth0-js with credentials', () => {
  const opened = openApplication({
    script: auth0Js,
    tenant: (origin) => ({
      ...tenant,
      clients: clientsAt(tenant.clients, origin),
      guardianFactors: factors('otp'),
      users: [...tenant.users, { ...CAREFUL, connection: 'users', multifactor: ['guardian'] }],
    }),
  });
  let server: TestServer;
  let origin: string;
  let context: BrowserContext;
  let page: Page;
  beforeEach(() => {
    ({ server, origin, context, page } = opened());
  });

  /** Calls a method of WebAuth, or of a member of it, that takes a callback. */
  const call = (method: string, given: Record<string, unknown> = {}) =>
    page.evaluate(
      ([domain, at, path, args]) => {
        const { auth0 } = globalThis as any; // any: the SDK brings no types of its own
        const webAuth = new auth0.WebAuth({
          domain,
          clientID: 'spa',
          redirectUri: `${at}/callback`,
          responseType: 'token id_token',
          scope: 'openid email',
          timeout: 8_000,
        });
        const names = path.split('.');
        const name = names.pop() ?? '';
        const owner = names.reduce((of: any, member: string) => of[member], webAuth);
        return new Promise((resolve) =>
          owner[name](args, (error: unknown, result: unknown) => resolve({ error, result })),
        );
      },
      [new URL(server.url).host, origin, method, given] as const,
    ) as Promise<{ error: any; result: any }>; // any: a test reads what it expects
  const logIn = (user: { email: string; password: string }) =>
    call('popup.loginWithCredentials', {
      connection: 'users',
      username: user.email,
      password: user.password,
    });

  it('logs in without leaving the page: popup.loginWithCredentials', async () => {
    const { error, result } = await logIn(USER);
    expect(error).to.equal(null);
    expect(result.idTokenPayload).to.include({ email: USER.email });
    expect(result.accessToken).to.be.a('string');
    expect(page.url()).to.equal(`${origin}/`);
  });

  it('has a session afterwards: checkSession', async () => {
    await logIn(USER);
    const { error, result } = await call('checkSession');
    expect(error).to.equal(null);
    expect(result.idTokenPayload).to.include({ email: USER.email });
  });

  it('signs up and logs in: popup.signupAndLogin', async () => {
    const email = 'new-by-popup@example.test';
    const { error, result } = await call('popup.signupAndLogin', {
      connection: 'users',
      email,
      password: USER.password,
    });
    expect(error).to.equal(null);
    expect(result.idTokenPayload).to.include({ email });
  });

  /** Opens the login page in a popup, which sends its response as a message. */
  const inPopup = async (given: Record<string, unknown>, act: (popup: Page) => Promise<void>) => {
    const [popup] = await Promise.all([
      context.waitForEvent('page'),
      page.evaluate(
        ([domain, at, args]) => {
          const held = globalThis as any; // any: as above
          const webAuth = new held.auth0.WebAuth({ domain, clientID: 'spa', redirectUri: `${at}/callback` });
          held.done = new Promise((resolve) =>
            webAuth.popup.authorize(
              { responseType: 'token id_token', owp: true, nonce: 'n', ...(args as object) },
              (error: unknown, result: unknown) => resolve({ error, result }),
            ),
          );
        },
        [new URL(server.url).host, origin, given] as const,
      ),
    ]);
    await act(popup);
    return (await page.evaluate(() => (globalThis as any).done)) as { error: any; result: any }; // any: as above
  };

  it('logs in at our page in a popup, which responds and closes: popup.authorize with owp', async () => {
    const { error, result } = await inPopup({}, async (popup) => {
      await popup.getByLabel('Email address').fill(USER.email);
      await popup.getByLabel('Password', { exact: true }).fill(USER.password);
      await Promise.all([
        popup.waitForEvent('close'),
        popup.getByRole('button', { name: 'Continue' }).click(),
      ]);
    });
    expect(error).to.equal(null);
    expect(payload(result.idToken)).to.include({ email: USER.email });
  });

  it('gets an error from a popup, too', async () => {
    const { error } = await inPopup({ prompt: 'none' }, async () => {});
    expect(error).to.include({ code: 'login_required', description: 'Login required' });
  });

  it('gets the error of a wrong password', async () => {
    const { error } = await logIn({ ...USER, password: 'wrong' });
    expect(error).to.include({ code: 'access_denied', description: 'Wrong email or password.' });
  });

  it('gets an error and no login if a second factor is required', async () => {
    const { error } = await logIn(CAREFUL);
    expect(error).to.include({
      code: 'login_required',
      description: 'Multifactor authentication required',
    });
    expect((await call('checkSession')).error).to.include({ code: 'login_required' });
  });
});
