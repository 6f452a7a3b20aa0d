// With a second factor required of everybody, no kind of login returns tokens without it.
import { expect } from 'chai';
import { type Agent, type Answer, createAgent, readForm } from '../support/agent.ts';
import {
  authorize,
  follow,
  logIn,
  pkce,
  responseOf,
  spaRequest,
  submitLogin,
  USER,
  WEB_CALLBACK,
  webRequest,
} from '../support/flows.ts';
import { nextMessageTo } from '../support/inbox.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { callsOf, codeOf, OTP_GRANT, POLICY, REALM_GRANT, tenant } from './tenant.ts';

const NO_TOKENS = /access_token|id_token|code=|refresh_token/;

describe('with a second factor required', () => {
  let server: TestServer;
  let calls: ReturnType<typeof callsOf>;
  let people = 0;
  before(async () => {
    server = await startServer({ tenant });
    calls = callsOf(server);
  });
  after(() => server.stop());
  const someone = () => ({ email: `mfa-${people++}@example.test`, password: USER.password });

  const passwordless = async () => {
    const email = `code-${people++}@example.test`;
    await calls.agent.request('/passwordless/start', {
      json: { client_id: 'web', client_secret: 'web-secret', connection: 'email', email, send: 'code' },
    });
    return { email, code: (await nextMessageTo(server, email)).code };
  };

  const grants: [string, () => Promise<Answer>][] = [
    ['password', () => calls.login(someone().email)],
    ['password-realm', () => calls.login(someone().email, { grant_type: REALM_GRANT, realm: 'users' })],
    [
      'passwordless/otp',
      async () => {
        const { email, code } = await passwordless();
        return calls.token({ grant_type: OTP_GRANT, realm: 'email', username: email, otp: code });
      },
    ],
    [
      '/passwordless/verify',
      async () => {
        const { email, code } = await passwordless();
        return calls.agent.request('/passwordless/verify', {
          json: {
            client_id: 'web',
            client_secret: 'web-secret',
            connection: 'email',
            grant_type: 'password',
            username: email,
            password: code,
          },
        });
      },
    ],
  ];
  for (const [name, run] of grants) {
    it(`the token endpoint issues no tokens by ${name}`, async () => {
      const answer = await run();
      expect(answer.status, answer.text).to.equal(403);
      expect(answer.json().error).to.equal('mfa_required');
      expect(answer.text).not.to.match(NO_TOKENS);
    });
  }

  const { challenge } = pkce();
  const requests: [string, Record<string, string>][] = [
    ['a code', spaRequest(challenge)],
    [
      'an access token',
      spaRequest(challenge, {
        response_type: 'token',
        code_challenge: undefined,
        code_challenge_method: undefined,
      }),
    ],
    [
      'an ID token',
      spaRequest(challenge, {
        response_type: 'id_token',
        code_challenge: undefined,
        code_challenge_method: undefined,
      }),
    ],
    ['a code and tokens', webRequest({ response_type: 'code id_token token', nonce: 'n' })],
    ['a code by form_post', webRequest({ response_mode: 'form_post' })],
    ['a code to an application with a secret', webRequest()],
  ];
  for (const [what, params] of requests) {
    it(`the login page does not return ${what}`, async () => {
      const end = await logIn(createAgent(server), server, params, someone());
      expect(end.status).to.equal(200);
      expect(end.text).to.contain('One more step').and.not.match(NO_TOKENS);
    });
  }

  it('a sign-up does not return a code', async () => {
    const browser = createAgent(server);
    const page = await follow(
      browser,
      await authorize(browser, webRequest({ screen_hint: 'signup' })),
      server.url,
    );
    const { action, fields } = readForm(page, 'email');
    const posted = await browser.request(action, {
      form: { ...fields, email: `new-${people++}@example.test`, password: USER.password },
    });
    expect((await follow(browser, posted, server.url)).text).to.contain('One more step');
  });

  it('a passwordless link does not return a code', async () => {
    const browser = createAgent(server);
    const email = `link-${people++}@example.test`;
    await browser.request('/passwordless/start', {
      json: { client_id: 'web', client_secret: 'web-secret', connection: 'email', email, send: 'link' },
      headers: { origin: new URL(WEB_CALLBACK).origin },
    });
    const link = new URL((await nextMessageTo(server, email)).link ?? '');
    const end = await follow(browser, await browser.get(link.pathname + link.search), server.url);
    expect(end.text).to.contain('One more step');
  });

  it('a login ticket does not return tokens', async () => {
    const browser = createAgent(server);
    const origin = new URL(spaRequest(challenge).redirect_uri ?? '').origin;
    const { login_ticket } = (
      await browser.request('/co/authenticate', {
        json: {
          client_id: 'spa',
          credential_type: REALM_GRANT,
          realm: 'users',
          username: someone().email,
          password: USER.password,
        },
        headers: { origin },
      })
    ).json();
    const params = { ...spaRequest(challenge), login_ticket };
    const end = await follow(browser, await authorize(browser, params), server.url);
    expect(end.text).to.contain('One more step');
  });

  /** Logs in up to the second factor. */
  const half = async (browser: Agent, user = someone()) => ({
    user,
    page: await logIn(browser, server, webRequest(), user),
  });

  it('a login without its second factor creates no session', async () => {
    const browser = createAgent(server);
    await half(browser);
    const silent = await authorize(browser, webRequest({ prompt: 'none' }));
    expect(responseOf(silent)).to.include({ error: 'login_required' });
  });

  it('other steps of the request do not complete a login without its second factor', async () => {
    const browser = createAgent(server);
    const { page } = await half(browser);
    const uid = /\/u\/([\w-]+)\/mfa/.exec(page.text)?.[1] ?? '';
    const csrf = /name="_csrf" value="([^"]+)"/.exec((await browser.get(`/u/${uid}/login`)).text)?.[1] ?? '';
    for (const step of [
      'account',
      'consent',
      'mfa/recovery-code-saved',
      'mfa/otp',
      'mfa/push-notification',
    ]) {
      const posted = await browser.request(`/u/${uid}/${step}`, {
        form: { _csrf: csrf, decision: 'accept', saved: 'yes', code: '000000' },
      });
      const end = await follow(browser, posted, server.url);
      expect(new URL(end.location || server.url).origin, step).to.equal(server.url);
      expect(end.text, step).not.to.match(NO_TOKENS);
    }
  });

  it('the second factor of one browser does not complete a login in another', async () => {
    const [mine, theirs] = [createAgent(server), createAgent(server)];
    const { page } = await half(mine);
    const uid = /\/u\/([\w-]+)\/mfa/.exec(page.text)?.[1] ?? '';
    expect((await theirs.get(`/u/${uid}/mfa`)).status).to.equal(400);
  });

  it("a user who logs in as somebody else in the same request has to give that user's second factor", async () => {
    const browser = createAgent(server);
    const [first, second] = [someone(), someone()];
    const { secret } = await calls.enrollOtp(first.email);
    await calls.enrollOtp(second.email);
    server.tick(31_000);
    const { page } = await half(browser, first);
    const uid = /\/u\/([\w-]+)\/mfa/.exec(page.text)?.[1] ?? '';
    const again = await submitLogin(browser, server, await browser.get(`/u/${uid}/login`), second);
    const { action, fields } = readForm(again, 'code');
    const answer = await browser.request(action, { form: { ...fields, code: codeOf(secret) } });
    expect(answer.status).to.equal(400);
    expect(answer.text).to.contain('This code is wrong or expired');
  });

  it('a new password ends a login that was begun with the old one', async () => {
    const browser = createAgent(server);
    const user = someone();
    const { secret } = await calls.enrollOtp(user.email);
    server.tick(31_000);
    const { page } = await half(browser, user);
    const record = await server.users.findInConnection({ name: 'users' }, user.email);
    await server.users.setPassword(record?.id ?? '', 'Another-New-Word-9');
    const { action, fields } = readForm(page, 'code');
    const answer = await browser.request(action, { form: { ...fields, code: codeOf(secret) } });
    const loginPage = await follow(browser, answer, server.url);
    expect(loginPage.text).to.contain('name="password"').and.not.match(NO_TOKENS);
    const wrong = await submitLogin(browser, server, loginPage, user);
    expect(wrong.status).to.equal(400);
  });

  it('a user who is blocked meanwhile cannot complete the login', async () => {
    const browser = createAgent(server);
    const user = someone();
    const { secret } = await calls.enrollOtp(user.email);
    server.tick(31_000);
    const { page } = await half(browser, user);
    const record = await server.users.findInConnection({ name: 'users' }, user.email);
    await server.users.update(record?.id ?? '', { blocked: true });
    const { action, fields } = readForm(page, 'code');
    const end = await follow(
      browser,
      await browser.request(action, { form: { ...fields, code: codeOf(secret) } }),
      server.url,
    );
    expect(responseOf(end)).to.include({ error: 'unauthorized', error_description: 'user is blocked' });
  });

  it('the end of a session ends the step-up that was begun in it', async () => {
    const relaxed = await startServer({ tenant: { ...tenant, guardianPolicies: [] } });
    try {
      const browser = createAgent(relaxed);
      const email = 'mfa-2@example.test';
      await callsOf(relaxed).login(email);
      await logIn(browser, relaxed, webRequest(), { email, password: USER.password });
      const page = await follow(
        browser,
        await authorize(browser, webRequest({ acr_values: POLICY })),
        relaxed.url,
      );
      const path = /\/u\/[\w-]+\/mfa/.exec(page.text)?.[0] ?? '';
      const enrolling = await browser.get(`${path}/otp`);
      const { action, fields } = readForm(enrolling, 'code');
      const secret = /<code dir="ltr">([A-Z2-7]{32})</.exec(enrolling.text)?.[1] ?? '';
      for (const { id, model } of (await relaxed.store.collection('artifacts').list({ limit: 1000 }))
        .records) {
        if (model === 'Session') await relaxed.store.collection('artifacts').delete(id);
      }
      const answer = await browser.request(action, { form: { ...fields, code: codeOf(secret) } });
      expect(answer.status).to.equal(400);
      expect(answer.text).to.contain('This page has expired');
    } finally {
      await relaxed.stop();
    }
  });

  it('a session with one factor does not answer a request for two', async () => {
    const relaxed = await startServer({ tenant: { ...tenant, guardianPolicies: [] } });
    try {
      const browser = createAgent(relaxed);
      const user = { email: 'mfa-1@example.test', password: USER.password };
      expect(responseOf(await logIn(browser, relaxed, webRequest(), user)).code).to.be.a('string');
      const stepUp = { acr_values: POLICY };
      const silent = await authorize(browser, webRequest({ prompt: 'none', ...stepUp }));
      expect(responseOf(silent)).to.include({
        error: 'login_required',
        error_description: 'Multifactor authentication required',
      });
      const page = await follow(browser, await authorize(browser, webRequest(stepUp)), relaxed.url);
      expect(page.text).to.contain('One more step');
    } finally {
      await relaxed.stop();
    }
  });
});
