// The link of a passwordless mail, and login tickets: who may use them, and where they lead.
import { expect } from 'chai';
import { decodeJwt } from 'jose';
import { type Agent, type Answer, createAgent, readForm } from '../../support/agent.ts';
import {
  authorize,
  follow,
  payload,
  pkce,
  redeem,
  responseOf,
  SPA_CALLBACK,
  token,
  USER,
  WEB_CALLBACK,
  webRequest,
} from '../../support/flows.ts';
import { messagesTo, nextMessageTo } from '../../support/inbox.ts';
import { startServer, type TestServer } from '../../support/server.ts';
import { OTP_GRANT, tenant } from './tenant.ts';

const REALM_GRANT = 'http://auth0.com/oauth/grant-type/password-realm';

describe('a passwordless link', () => {
  let server: TestServer;
  let people = 0;
  before(async () => {
    const withParams = {
      name: 'with-params',
      strategy: 'email',
      enabled_clients: ['web'],
      options: { authParams: { scope: 'openid email', ui_locales: 'de', client_id: 'spa' } },
    };
    server = await startServer({ tenant: { ...tenant, connections: [...tenant.connections, withParams] } });
  });
  after(() => server.stop());

  const someone = () => `reader-${++people}@example.test`;
  /** Requests a link in a browser. @returns the link in the mail. */
  const web = { client_id: 'web', client_secret: 'web-secret', connection: 'email', send: 'link' };
  /** Sent by a page of the application, unless the headers say otherwise. */
  const linkFor = async (
    browser: Agent,
    email: string,
    authParams: object = { state: 'the-state' },
    headers: Record<string, string> = { origin: new URL(WEB_CALLBACK).origin },
  ) => {
    const answer = await browser.request('/passwordless/start', {
      json: { ...web, email, authParams },
      headers,
    });
    expect(answer.status, answer.text).to.equal(200);
    return new URL((await nextMessageTo(server, email)).link ?? '');
  };
  const pathOf = (url: URL) => url.pathname + url.search;
  const visit = async (browser: Agent, link: URL, headers: Record<string, string> = {}) =>
    follow(browser, await browser.get(pathOf(link), headers), server.url);
  const goOn = async (browser: Agent, page: Answer) => {
    const { action, fields } = readForm(page, 'verification_code');
    return follow(browser, await browser.request(action, { form: fields }), server.url);
  };
  const userOf = async (answer: Answer) => {
    const { code } = responseOf(answer);
    const tokens = await redeem(createAgent(server), code);
    expect(tokens.status, tokens.text).to.equal(200);
    return payload(tokens.json().id_token);
  };

  it('redirects to the callback with the state, in the browser that requested it', async () => {
    const browser = createAgent(server);
    const email = someone();
    const link = await linkFor(browser, email, {
      state: 'the-state',
      nonce: 'the-nonce',
      scope: 'openid email',
    });
    const back = await visit(browser, link);
    expect(back.location.split('?')[0]).to.equal(WEB_CALLBACK);
    expect(responseOf(back)).to.include({ state: 'the-state', iss: server.issuer });
    expect(await userOf(back)).to.include({ email, email_verified: true, nonce: 'the-nonce' });
  });

  it("has the parameters that its connection adds, but the request's own take precedence", async () => {
    const email = someone();
    const answer = await createAgent(server).request('/passwordless/start', {
      json: { ...web, connection: 'with-params', email, authParams: { ui_locales: 'fr' } },
    });
    expect(answer.status, answer.text).to.equal(200);
    const { searchParams } = new URL((await nextMessageTo(server, email)).link ?? '');
    expect(Object.fromEntries(searchParams)).to.include({
      scope: 'openid email',
      ui_locales: 'fr',
      client_id: 'web',
    });
  });

  it('starts a session: the next request needs no login', async () => {
    const browser = createAgent(server);
    await visit(browser, await linkFor(browser, someone()));
    const silent = await authorize(browser, webRequest({ prompt: 'none' }));
    expect(responseOf(silent).code).to.be.a('string');
  });

  it('asks for confirmation in another browser', async () => {
    const email = someone();
    const link = await linkFor(createAgent(server), email);
    const other = createAgent(server);
    const page = await visit(other, link);
    expect(page.status).to.equal(200);
    expect(page.text).to.contain(email);
    const back = await goOn(other, page);
    expect(responseOf(back)).to.include({ state: 'the-state' });
    expect(await userOf(back)).to.include({ email });
  });

  it('is not used up by scanners that fetch it by GET and HEAD, any number of times', async () => {
    const browser = createAgent(server);
    const link = await linkFor(browser, someone());
    for (let i = 0; i < 5; i++) {
      expect((await createAgent(server).get(pathOf(link))).status).to.equal(200);
      expect((await createAgent(server).request(pathOf(link), { method: 'HEAD' })).status).to.equal(200);
    }
    // A HEAD request does not use it up, even with the browser's own cookies.
    await browser.request(pathOf(link), { method: 'HEAD' });
    expect(responseOf(await visit(browser, link)).code).to.be.a('string');
  });

  for (const [who, referer] of [
    ['a page of the application, where its users may write links', `${new URL(WEB_CALLBACK).origin}/`],
    ['another site', 'https://mail.example/'],
  ] as const) {
    it(`asks for confirmation if ${who} led there`, async () => {
      const link = await linkFor(createAgent(server), someone());
      const page = await visit(createAgent(server), link, { referer });
      expect(page.status).to.equal(200);
      expect(page.text).to.contain('verification_code');
    });
  }

  describe('with a code that was typed at a page of the application', () => {
    const origin = new URL(SPA_CALLBACK).origin;
    const typed = async (headers: Record<string, string>, referer: string) => {
      const email = someone();
      // The page's requests carry no cookies of ours, as in browsers without third-party cookies.
      await createAgent(server).request('/passwordless/start', {
        json: { client_id: 'spa', connection: 'email', email, send: 'code' },
        headers,
      });
      const { code = '' } = await nextMessageTo(server, email);
      const query = new URLSearchParams({
        client_id: 'spa',
        connection: 'email',
        email,
        verification_code: code,
        response_type: 'token',
        redirect_uri: SPA_CALLBACK,
        state: 's',
      });
      const browser = createAgent(server);
      const link = new URL(`${server.url}/passwordless/verify_redirect?${query}`);
      return visit(browser, link, referer === '' ? {} : { referer });
    };

    it('is followed at once from the IP address of the page that requested it', async () => {
      const back = await typed({ origin }, `${origin}/`);
      expect(responseOf(back)).to.include({ state: 's', token_type: 'Bearer' });
    });

    for (const [what, headers, referer] of [
      ['if no page of the application requested it', {}, `${origin}/`],
      ['if a page of another site leads there', { origin }, 'https://evil.example/'],
      ['without a Referer', { origin }, ''],
    ] as [string, Record<string, string>, string][]) {
      it(`asks for confirmation ${what}`, async () => {
        const page = await typed(headers, referer);
        expect(page.status).to.equal(200);
        expect(page.text).to.contain('verification_code');
      });
    }
  });

  for (const [how, headers] of [
    ['an image', { 'sec-fetch-dest': 'image' }],
    ['a frame', { 'sec-fetch-dest': 'iframe' }],
  ] as [string, Record<string, string>][]) {
    it(`is not used up as ${how} of another page, in the browser that requested it`, async () => {
      const browser = createAgent(server);
      const link = await linkFor(browser, someone());
      expect((await browser.get(pathOf(link), headers)).status).to.equal(200);
      const read = await visit(browser, link, { 'sec-fetch-dest': 'document' });
      expect(responseOf(read).code).to.be.a('string');
    });
  }

  describe("requested by an attacker's page in somebody's browser", () => {
    /** Opens the link of the attacker's mail in the victim's browser. */
    const opened = async (victim: Agent, email: string) => {
      const link = new URL((await nextMessageTo(server, email)).link ?? '');
      return visit(victim, link);
    };
    const form = (email: string) => ({ ...web, email, client_id: 'spa', client_secret: '' });
    const app = new URL(SPA_CALLBACK).origin;

    it('is not sent if the browser says that the page is foreign', async () => {
      for (const site of ['cross-site', 'same-site']) {
        const victim = createAgent(server);
        const answer = await victim.request('/passwordless/start', {
          form: form(someone()),
          headers: { origin: 'https://evil.example', 'sec-fetch-site': site },
        });
        expect(answer.status).to.equal(403);
        expect(answer.json().error).to.equal('access_denied');
        expect(victim.cookies()).to.deep.equal([]);
      }
    });

    for (const [what, how] of [
      ['a form of another origin', { headers: { origin: 'https://evil.example' } }],
      ['a form of a sandboxed frame', { headers: { origin: 'null' } }],
      ['a form without an origin', {}],
      ['a form that the application’s own page was made to send', { headers: { origin: app } }],
    ] as const) {
      it(`asks for confirmation after ${what}`, async () => {
        const victim = createAgent(server);
        const email = someone();
        const { client_secret: _, ...fields } = form(email);
        const answer = await victim.request('/passwordless/start', { form: fields, ...how });
        expect(answer.status, answer.text).to.equal(200);
        expect(answer.headers['set-cookie']).to.equal(undefined);
        const page = await opened(victim, email);
        expect(page.status).to.equal(200);
        expect(page.text).to.contain(email);
      });
    }

    for (const [what, headers] of [
      ['another application of the tenant', { origin: new URL(WEB_CALLBACK).origin }],
      ['a client without an origin, such as a server', {}],
    ] as [string, Record<string, string>][]) {
      it(`asks for confirmation after a JSON request of ${what}`, async () => {
        const victim = createAgent(server);
        const email = someone();
        const answer = await victim.request('/passwordless/start', {
          json: { client_id: 'spa', connection: 'email', email },
          headers,
        });
        expect(answer.status).to.equal(200);
        expect((await opened(victim, email)).status).to.equal(200);
      });
    }

    it('asks for confirmation even if the browser has a cookie of an earlier login', async () => {
      const victim = createAgent(server);
      await linkFor(victim, someone());
      const email = someone();
      const { client_secret: _, ...fields } = form(email);
      await victim.request('/passwordless/start', {
        form: fields,
        headers: { origin: 'https://evil.example' },
      });
      expect((await opened(victim, email)).status).to.equal(200);
    });
  });

  describe('without authParams', () => {
    const ask = async (fields: object) => {
      const email = someone();
      const browser = createAgent(server);
      const answer = await browser.request('/passwordless/start', {
        json: { connection: 'email', email, send: null, ...fields },
        headers: { origin: new URL(SPA_CALLBACK).origin },
      });
      return { email, browser, answer };
    };

    it('redirects the user of a public application to its first callback, with tokens', async () => {
      const { email, browser, answer } = await ask({ client_id: 'spa' });
      expect(answer.status, answer.text).to.equal(200);
      const back = await visit(browser, new URL((await nextMessageTo(server, email)).link ?? ''));
      expect(back.location.split('#')[0]).to.equal(SPA_CALLBACK);
      const { access_token, id_token } = responseOf(back);
      expect(payload(id_token ?? '')).to.include({ email, aud: 'spa' });
      const profile = await createAgent(server).get('/userinfo', { authorization: `Bearer ${access_token}` });
      expect(profile.json()).to.include({ email, email_verified: true });
    });

    it('redirects the user of a confidential application to it, with a code', async () => {
      const { email, browser, answer } = await ask({ client_id: 'web', client_secret: 'web-secret' });
      expect(answer.status, answer.text).to.equal(200);
      const link = new URL((await nextMessageTo(server, email)).link ?? '');
      expect(await userOf(await goOn(browser, await visit(browser, link)))).to.include({ email });
    });
  });

  it('with a code_challenge redirects the user of a public application with a code', async () => {
    const { verifier, challenge } = pkce();
    const browser = createAgent(server);
    const email = someone();
    await browser.request('/passwordless/start', {
      json: {
        client_id: 'spa',
        connection: 'email',
        email,
        authParams: { code_challenge: challenge, code_challenge_method: 'S256', state: 's' },
      },
      headers: { origin: new URL(SPA_CALLBACK).origin },
    });
    const back = await visit(browser, new URL((await nextMessageTo(server, email)).link ?? ''));
    const tokens = await token(createAgent(server), {
      grant_type: 'authorization_code',
      client_id: 'spa',
      code: responseOf(back).code,
      code_verifier: verifier,
      redirect_uri: SPA_CALLBACK,
    });
    expect(payload(tokens.json().id_token)).to.include({ email });
  });

  for (const [what, client, authParams] of [
    [
      'a code without code_challenge for a public application',
      { client_id: 'spa' },
      { response_type: 'code' },
    ],
    [
      'tokens for an application that may not get them',
      { client_id: 'code-link' },
      { response_type: 'token' },
    ],
    ['tokens by default, for such an application', { client_id: 'code-link' }, {}],
  ] as const) {
    it(`is not sent if it could only lead to an error: ${what}`, async () => {
      const email = someone();
      const answer = await createAgent(server).request('/passwordless/start', {
        json: { ...client, connection: 'email', email, send: 'link', authParams },
      });
      expect(answer.status).to.equal(400);
      expect(answer.json().error).to.equal('bad.authParams');
      expect(answer.json().error_description).to.contain('code_challenge');
      expect(await messagesTo(server, email)).to.deep.equal([]);
    });
  }

  it('contains all authParams except those reserved for the link', async () => {
    const browser = createAgent(server);
    const email = someone();
    const link = await linkFor(browser, email, {
      state: 'the-state',
      protocol: 'oauth2',
      access_type: 'offline',
      colour: 'réd & blue',
      tries: 3,
      popup: false,
      client_id: 'spa',
      email: 'eve@example.test',
      connection: 'sms',
      verification_code: '123456',
      login_ticket: 'planted',
      _csrf: 'planted',
    });
    const sent = Object.fromEntries(link.searchParams);
    expect(sent).to.include({
      protocol: 'oauth2',
      access_type: 'offline',
      colour: 'réd & blue',
      tries: '3',
      popup: 'false',
      client_id: 'web',
      email,
      connection: 'email',
    });
    expect(sent).not.to.have.any.keys('login_ticket', '_csrf');
    expect(sent.verification_code).to.match(/^[\w-]{43}$/);
    expect(responseOf(await visit(browser, link))).to.include({ state: 'the-state' });
  });

  it('keeps them on the confirmation page', async () => {
    const other = createAgent(server);
    const link = await linkFor(createAgent(server), someone(), {
      protocol: 'oauth2',
      state: 's',
      colour: 'red',
    });
    expect(readForm(await visit(other, link), 'verification_code').fields).to.include({ colour: 'red' });
    expect(responseOf(await goOn(other, await visit(other, link)))).to.include({ state: 's' });
  });

  for (const [what, authParams] of [
    ['an object', { colour: {} }],
    ['a list', { colour: ['red'] }],
    ['a string that is too long', { colour: 'x'.repeat(2049) }],
    ['more than a mail can carry', Object.fromEntries([1, 2, 3, 4].map((i) => [`p${i}`, 'x'.repeat(2000)]))],
    ['too many parameters', Object.fromEntries(Array.from({ length: 31 }, (_, i) => [`p${i}`, 'x']))],
  ] as [string, object][]) {
    it(`is not sent with ${what} among the parameters`, async () => {
      const answer = await createAgent(server).request('/passwordless/start', {
        json: { ...web, email: someone(), authParams },
      });
      expect(answer.status).to.equal(400);
      expect(answer.json().error).to.equal('bad.authParams');
    });
  }

  it('is accepted once, in any browser', async () => {
    const browser = createAgent(server);
    const link = await linkFor(browser, someone());
    expect(responseOf(await visit(browser, link)).code).to.be.a('string');
    for (const again of [browser, createAgent(server)]) {
      expect(responseOf(await goOn(again, await visit(again, link)))).to.include({
        error: 'unauthorized',
        error_description: 'Wrong email or verification code.',
        state: 'the-state',
      });
    }
  });

  it('is accepted once if it is confirmed twenty times at once', async () => {
    const link = await linkFor(createAgent(server), someone());
    const browsers = await Promise.all(
      Array.from({ length: 20 }, async () => {
        const browser = createAgent(server);
        return { browser, page: await visit(browser, link) };
      }),
    );
    const ends = await Promise.all(browsers.map(({ browser, page }) => goOn(browser, page)));
    expect(ends.filter((end) => responseOf(end).code !== undefined)).to.have.length(1);
  });

  it('is rejected after another link was sent', async () => {
    const browser = createAgent(server);
    const email = someone();
    const [first, second] = [await linkFor(browser, email), await linkFor(browser, email)];
    expect(responseOf(await visit(browser, first))).to.include({ error: 'unauthorized' });
    expect(responseOf(await visit(browser, second)).code).to.be.a('string');
  });

  it('is rejected after its lifetime', async () => {
    const browser = createAgent(server);
    const link = await linkFor(browser, someone());
    server.tick(181_000);
    expect(responseOf(await goOn(browser, await visit(browser, link)))).to.include({ error: 'unauthorized' });
  });

  it('is confirmed only by our form', async () => {
    const link = await linkFor(createAgent(server), someone());
    const fields = Object.fromEntries(link.searchParams);
    const forged = await createAgent(server).request(link.pathname, {
      form: { ...fields, _csrf: 'x'.repeat(43) },
    });
    expect(forged.status).to.equal(403);
  });

  it('returns tokens in the fragment if they were requested there', async () => {
    const browser = createAgent(server);
    const link = await linkFor(browser, someone(), { response_type: 'token', state: 's', scope: 'openid' });
    const back = await visit(browser, link);
    expect(new URL(back.location).hash).to.contain('access_token=');
    expect(responseOf(back)).to.include({ state: 's', token_type: 'Bearer' });
  });

  it('returns an error in the fragment if tokens were requested', async () => {
    const browser = createAgent(server);
    const link = await linkFor(browser, someone(), { response_type: 'token', state: 's' });
    link.searchParams.set('verification_code', 'A'.repeat(43));
    const other = createAgent(server);
    const back = await goOn(other, await visit(other, link));
    expect(new URLSearchParams(new URL(back.location).hash.slice(1)).get('error')).to.equal('unauthorized');
  });

  it('returns an error with the issuer, and signed if that was requested, as every request does', async () => {
    const failed = async (over: Record<string, string>) => {
      const link = await linkFor(createAgent(server), someone(), {
        response_type: 'code',
        state: 's',
        ...over,
      });
      link.searchParams.set('verification_code', 'A'.repeat(43));
      const other = createAgent(server);
      return responseOf(await goOn(other, await visit(other, link)));
    };
    const plain = await failed({});
    expect(plain).to.include({ error: 'unauthorized', state: 's', iss: server.issuer });
    const { response, ...others } = await failed({ response_mode: 'query.jwt' });
    expect(others).to.deep.equal({});
    expect(decodeJwt(String(response))).to.include({ error: 'unauthorized', state: 's', iss: server.issuer });
  });

  for (const [what, change] of [
    ['a redirect_uri that is not registered', { redirect_uri: 'https://evil.example/' }],
    ['an unknown client', { client_id: 'nobody' }],
    ['a connection that is not passwordless', { connection: 'users' }],
    ['no code', { verification_code: '' }],
    ['another application’s callback', { redirect_uri: SPA_CALLBACK }],
  ] as const) {
    it(`shows an error page without a redirect for ${what}`, async () => {
      const browser = createAgent(server);
      const link = await linkFor(browser, someone());
      for (const [name, value] of Object.entries(change)) link.searchParams.set(name, value);
      const answer = await browser.get(pathOf(link));
      expect(answer.status).to.equal(400);
      expect(answer.location).to.equal('');
      expect(answer.headers['content-type']).to.match(/^text\/html/);
    });
  }

  it('is rejected with another address in it', async () => {
    const browser = createAgent(server);
    const [victim, attacker] = [someone(), someone()];
    await linkFor(createAgent(server), victim);
    const link = await linkFor(browser, attacker);
    link.searchParams.set('email', victim);
    expect(responseOf(await goOn(browser, await visit(browser, link)))).to.include({
      error: 'unauthorized',
    });
  });

  describe('and a login ticket', () => {
    const origin = new URL(SPA_CALLBACK).origin;
    const login = (browser: Agent, fields: object = {}, headers: Record<string, string> = { origin }) =>
      browser.request('/co/authenticate', {
        json: {
          client_id: 'spa',
          credential_type: REALM_GRANT,
          realm: 'users',
          username: USER.email,
          password: USER.password,
          ...fields,
        },
        headers,
      });
    const request = (ticket: string, over: Record<string, string> = {}) => ({
      client_id: 'spa',
      response_type: 'token id_token',
      redirect_uri: SPA_CALLBACK,
      scope: 'openid email',
      state: 's',
      nonce: 'n',
      login_ticket: ticket,
      ...over,
    });

    it('for valid credentials logs in at /authorize', async () => {
      const browser = createAgent(server);
      const answer = await login(browser);
      expect(answer.status, answer.text).to.equal(200);
      expect(answer.json()).to.have.all.keys('login_ticket', 'co_verifier', 'co_id');
      expect(answer.headers['access-control-allow-origin']).to.equal(origin);
      expect(answer.headers['access-control-allow-credentials']).to.equal('true');
      const back = await follow(
        browser,
        await authorize(browser, request(answer.json().login_ticket)),
        server.url,
      );
      expect(payload(responseOf(back).id_token ?? '')).to.include({ email: USER.email, nonce: 'n' });
    });

    it('is issued for a passwordless code, too', async () => {
      const browser = createAgent(server);
      const email = someone();
      await browser.request('/passwordless/start', {
        json: { client_id: 'spa', connection: 'email', email, send: 'code' },
      });
      const { code: otp } = await nextMessageTo(server, email);
      const answer = await login(browser, {
        credential_type: OTP_GRANT,
        realm: 'email',
        username: email,
        otp,
      });
      const back = await follow(
        browser,
        await authorize(browser, request(answer.json().login_ticket)),
        server.url,
      );
      expect(payload(responseOf(back).id_token ?? '')).to.include({ email });
    });

    it('is accepted once, in the browser that got it, for its application', async () => {
      const browser = createAgent(server);
      const { login_ticket: ticket } = (await login(browser)).json();
      const showsLogin = async (who: Agent, params: Record<string, string>) => {
        const page = await follow(who, await authorize(who, params), server.url);
        expect(page.status, page.text).to.equal(200);
        expect(page.text).to.contain('name="password"');
      };
      await showsLogin(createAgent(server), request(ticket));
      await showsLogin(browser, request(ticket, { client_id: 'web', redirect_uri: WEB_CALLBACK }));
      const back = await follow(browser, await authorize(browser, request(ticket)), server.url);
      expect(responseOf(back).access_token).to.be.a('string');
      await showsLogin(browser, request(ticket));
    });

    it('is rejected after two minutes', async () => {
      const browser = createAgent(server);
      const { login_ticket: ticket } = (await login(browser)).json();
      server.tick(121_000);
      const page = await follow(browser, await authorize(browser, request(ticket)), server.url);
      expect(page.text).to.contain('name="password"');
    });

    for (const [what, fields, headers, status, error] of [
      ['a wrong password', { password: 'wrong' }, { origin }, 403, 'access_denied'],
      ['an unknown user', { username: 'nobody@example.test' }, { origin }, 403, 'access_denied'],
      [
        'an unknown credential type',
        { credential_type: 'magic' },
        { origin },
        400,
        'unsupported_credential_type',
      ],
      ['no credential type', { credential_type: undefined }, { origin }, 400, 'unsupported_credential_type'],
      ['an unknown client', { client_id: 'nobody' }, { origin }, 400, 'invalid_request'],
      ['an application without the right', { client_id: 'web' }, { origin }, 401, 'unauthorized_client'],
      ['another origin', {}, { origin: 'https://evil.example' }, 403, 'access_denied'],
      ['no origin', {}, {}, 403, 'access_denied'],
      ['the origin null', {}, { origin: 'null' }, 403, 'access_denied'],
      ['an unknown realm', { realm: 'nope' }, { origin }, 400, 'invalid_request'],
    ] as const) {
      it(`is not issued for ${what}`, async () => {
        const answer = await login(createAgent(server), fields, headers);
        expect(answer.status, answer.text).to.equal(status);
        expect(answer.json().error).to.equal(error);
        expect(answer.json()).not.to.have.property('login_ticket');
      });
    }
  });
});
