// Passwordless login and password reset with published SDKs, unmodified, on a server and in a browser.
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { tenant } from '../connections/passwordless/tenant.ts';
import { createAgent, readForm } from '../support/agent.ts';
import { auth0Js, clientsAt, openApplication } from '../support/application.ts';
import { follow, payload, USER, WEB_CALLBACK } from '../support/flows.ts';
import { nextMessageTo } from '../support/inbox.ts';
import { type SdkProcess, startSdkProcess } from '../support/sdk.ts';
import { startServer, type TestServer } from '../support/server.ts';

const PHONE = '+16505551234';

describe('@auth0/auth0-auth-js, passwordless', () => {
  let server: TestServer;
  let sdk: SdkProcess;
  before(async () => {
    server = await startServer({
      tenant: { ...tenant, clients: tenant.clients.map((client) => ({ ...client, oidc_conformant: true })) },
    });
    sdk = await startSdkProcess(server.caFile);
  });
  after(async () => {
    await sdk?.stop();
    await server?.stop();
  });

  const options = () => ({ domain: new URL(server.url).host, clientId: 'web', clientSecret: 'web-secret' });
  const call = (method: string, ...args: unknown[]) =>
    sdk.call('auth-js', { options: options(), method, args });

  it('sends a code by e-mail and exchanges it: sendEmail, getTokenByPasswordlessEmail', async () => {
    const email = 'sdk-code@example.test';
    await call('passwordless.sendEmail', { email, language: 'de' });
    const { code } = await nextMessageTo(server, email);
    const tokens = await call('getTokenByPasswordlessEmail', { email, code, scope: 'openid email' });
    expect(tokens.claims).to.include({ email, email_verified: true });
    const failure = await call('getTokenByPasswordlessEmail', { email, code }).catch((error) => error);
    expect(failure.cause).to.include({
      error: 'invalid_grant',
      error_description: 'Wrong email or verification code.',
    });
  });

  it('sends a code by SMS and exchanges it: sendSms, getTokenByPasswordlessSms', async () => {
    await call('passwordless.sendSms', { phoneNumber: PHONE });
    const { code } = await nextMessageTo(server, PHONE);
    const tokens = await call('getTokenByPasswordlessSms', {
      phoneNumber: PHONE,
      code,
      scope: 'openid phone',
    });
    expect(tokens.claims).to.include({ phone_number: PHONE, phone_number_verified: true });
  });

  it('sends a link and exchanges the code at its end: sendEmail, getTokenByMagicLinkCode', async () => {
    const email = 'sdk-link@example.test';
    const authParams = {
      scope: 'openid email',
      redirect_uri: WEB_CALLBACK,
      response_type: 'code',
      state: 'sdk-state',
    };
    await call('passwordless.sendEmail', { email, send: 'link', authParams });
    const link = new URL((await nextMessageTo(server, email)).link ?? '');
    // The browser has no cookie of the server, so the link asks for confirmation.
    const browser = createAgent(server);
    const { action, fields } = readForm(await browser.get(link.pathname + link.search), 'verification_code');
    const opened = await browser.request(action, { form: fields });
    const { location: callback } = await follow(browser, opened, server.url);
    const tokens = await sdk.call('auth-js-magic-link', { options: options(), callback, state: 'sdk-state' });
    expect(tokens.claims).to.include({ email, email_verified: true });
  });

  it('gets the error of an invalid request', async () => {
    const failure = await call('passwordless.sendEmail', { email: 'no address' }).catch((error) => error);
    expect(failure.name).to.equal('PasswordlessStartError');
    expect(failure.message).to.contain('email format validation failed');
  });

  it('requests a password reset: database.changePassword', async () => {
    const answer = await call('database.changePassword', { email: USER.email, connection: 'users' });
    expect(answer).to.equal("We've just sent you an email to reset your password.");
    expect((await nextMessageTo(server, USER.email)).link).to.contain('/u/reset-password?ticket=');
  });
});

describe('auth0-js in a browser', () => {
  const opened = openApplication({
    script: auth0Js,
    tenant: (origin) => ({ ...tenant, clients: clientsAt(tenant.clients, origin) }),
  });
  let server: TestServer;
  let origin: string;
  let page: Page;
  beforeEach(() => {
    ({ server, origin, page } = opened());
  });

  /** Calls a method of WebAuth, or of a member of it, that takes a callback. */
  const call = (method: string, given: Record<string, unknown>) =>
    page.evaluate(
      ([domain, at, name, args]) => {
        const { auth0 } = globalThis as any; // any: the SDK brings no types of its own
        const webAuth = new auth0.WebAuth({
          domain,
          clientID: 'spa',
          redirectUri: `${at}/callback`,
          responseType: 'token id_token',
          scope: 'openid email',
        });
        return new Promise((resolve) =>
          webAuth[name](args, (error: unknown, result: unknown) => resolve({ error, result })),
        );
      },
      [new URL(server.url).host, origin, method, given] as const,
    ) as Promise<{ error: any; result: any }>; // any: as above
  /** Returns what the application's callback got, parsed and verified by the SDK. */
  const parsed = async () => {
    await page.waitForURL((url) => url.origin === origin && url.pathname === '/callback');
    return page.evaluate(
      ([domain, at]) => {
        const { auth0 } = globalThis as any; // any: as above
        const webAuth = new auth0.WebAuth({
          domain,
          clientID: 'spa',
          redirectUri: `${at}/callback`,
          responseType: 'token id_token',
        });
        return new Promise((resolve) =>
          webAuth.parseHash((error: unknown, result: unknown) => resolve({ error, result })),
        );
      },
      [new URL(server.url).host, origin] as const,
    ) as Promise<{ error: any; result: any }>; // any: as above
  };

  it('starts a passwordless login and logs in with the code: passwordlessStart, passwordlessLogin', async () => {
    const email = 'browser-login@example.test';
    const started = await call('passwordlessStart', { connection: 'email', send: 'code', email });
    expect(started.error).to.equal(null);
    expect(started.result).to.include({ email });
    const { code } = await nextMessageTo(server, email);
    void call('passwordlessLogin', { connection: 'email', email, verificationCode: code }).catch(() => {});
    const { error, result } = await parsed();
    expect(error).to.equal(null);
    expect(result.idTokenPayload).to.include({ email, email_verified: true });
  });

  it('verifies a code and continues by redirect: passwordlessVerify', async () => {
    const email = 'browser-verify@example.test';
    await call('passwordlessStart', { connection: 'email', send: 'code', email });
    const { code } = await nextMessageTo(server, email);
    void call('passwordlessVerify', { connection: 'email', email, verificationCode: code }).catch(() => {});
    const { error, result } = await parsed();
    expect(error).to.equal(null);
    expect(result.idTokenPayload).to.include({ email });
  });

  it('logs in with a link: passwordlessStart', async () => {
    const email = 'browser-link@example.test';
    await call('passwordlessStart', {
      connection: 'email',
      send: 'link',
      email,
      authParams: { state: 'link-state', nonce: 'n' },
    });
    const { link } = await nextMessageTo(server, email);
    await page.goto(link ?? '');
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.waitForURL((url) => url.origin === origin);
    const answer = new URLSearchParams(new URL(page.url()).hash.slice(1));
    expect(answer.get('state')).to.equal('link-state');
    expect(payload(answer.get('id_token') ?? '')).to.include({ email, nonce: 'n' });
  });

  it('gets the error of a rejected code', async () => {
    const email = 'browser-wrong@example.test';
    await call('passwordlessStart', { connection: 'email', send: 'code', email });
    const { error } = await call('passwordlessVerify', {
      connection: 'email',
      email,
      verificationCode: 'wrong',
    });
    expect(error).to.include({ code: 'invalid_grant', description: 'Wrong email or verification code.' });
    const login = await call('passwordlessLogin', { connection: 'email', email, verificationCode: 'wrong' });
    expect(login.error).to.include({ code: 'access_denied' });
  });

  it("logs in with a password at the application's own page: login", async () => {
    void call('login', { realm: 'users', email: USER.email, password: USER.password }).catch(() => {});
    const { error, result } = await parsed();
    expect(error).to.equal(null);
    expect(result.idTokenPayload).to.include({ email: USER.email });
  });

  it('requests a password reset: changePassword', async () => {
    const { error, result } = await call('changePassword', { connection: 'users', email: USER.email });
    expect(error).to.equal(null);
    expect(result).to.equal("We've just sent you an email to reset your password.");
    expect((await nextMessageTo(server, USER.email)).link).to.contain('/u/reset-password?ticket=');
  });
});
