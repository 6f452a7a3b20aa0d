import { expect } from 'chai';
import { type Agent, type Answer, createAgent, readForm } from '../support/agent.ts';
import {
  API,
  authorize,
  follow,
  header,
  logIn,
  payload,
  pkce,
  responseOf,
  SPA_CALLBACK,
  spaRequest,
  submitLogin,
  THIRD_CALLBACK,
  tenant,
  token,
  WEB_CALLBACK,
  webRequest,
} from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';

const members = {
  client_id: 'members',
  name: 'For members of organizations',
  app_type: 'regular_web',
  client_secret: 'members-secret',
  organization_usage: 'require',
  callbacks: [WEB_CALLBACK],
  grant_types: ['authorization_code', 'password'],
};

describe('GET /authorize', () => {
  let server: TestServer;
  const { challenge } = pkce();

  before(async () => {
    server = await startServer({ tenant: { ...tenant, clients: [...tenant.clients, members] } });
  });
  after(() => server.stop());

  const agent = () => createAgent(server);
  const loggedIn = async () => {
    const browser = agent();
    await logIn(browser, server, spaRequest(challenge));
    return browser;
  };

  describe('the response to the application', () => {
    it('returns code, state and issuer in the query', async () => {
      const answer = await logIn(agent(), server, spaRequest(challenge));
      expect(answer.status).to.equal(302);
      expect(answer.location.startsWith(`${SPA_CALLBACK}?`)).to.equal(true);
      expect(responseOf(answer)).to.have.keys('code', 'state', 'iss');
      expect(responseOf(answer)).to.include({ state: 'the-state', iss: server.issuer });
    });

    it('answers with 302 at every step', async () => {
      const browser = agent();
      expect((await authorize(browser, spaRequest(challenge))).status).to.equal(302);
    });

    it('returns access token and ID token in the fragment for response_type=token', async () => {
      const answer = await logIn(
        agent(),
        server,
        spaRequest(challenge, { response_type: 'token', nonce: undefined }),
      );
      const { hash, search } = new URL(answer.location);
      expect(search).to.equal('');
      expect(Object.fromEntries(new URLSearchParams(hash.slice(1)))).to.include.keys(
        'access_token',
        'id_token',
        'token_type',
        'expires_in',
        'scope',
        'state',
      );
      const { id_token, access_token, expires_in, token_type } = responseOf(answer);
      expect({ expires_in, token_type }).to.deep.equal({ expires_in: '7200', token_type: 'Bearer' });
      expect(payload(id_token!)).to.include.keys('at_hash', 'sid', 'sub');
      expect(payload(id_token!), 'no nonce was sent').not.to.have.property('nonce');
      const profile = await agent().get('/userinfo', { authorization: `Bearer ${access_token}` });
      expect(profile.json()).to.have.property('email', 'ada@example.test');
    });

    it('adds openid for response_type=token without it, and keeps the nonce of the request', async () => {
      const answer = await logIn(
        agent(),
        server,
        spaRequest(challenge, { response_type: 'token', scope: 'email' }),
      );
      const { id_token, scope } = responseOf(answer);
      expect(scope).to.equal('openid email');
      expect(payload(id_token!)).to.have.property('nonce', 'the-nonce');
    });

    it('returns for every hybrid and implicit response type exactly what it names', async () => {
      const browser = await loggedIn();
      const expected: Record<string, string[]> = {
        code: ['code'],
        id_token: ['id_token'],
        'token id_token': ['access_token', 'expires_in', 'id_token', 'scope', 'token_type'],
        'code id_token': ['code', 'id_token'],
        'code token': ['access_token', 'code', 'expires_in', 'scope', 'token_type'],
        'code token id_token': ['access_token', 'code', 'expires_in', 'id_token', 'scope', 'token_type'],
      };
      for (const [type, keys] of Object.entries(expected)) {
        const answer = await authorize(browser, spaRequest(challenge, { response_type: type }));
        expect(Object.keys(responseOf(answer)).sort(), type).to.deep.equal([...keys, 'iss', 'state'].sort());
      }
    });

    it('puts c_hash and at_hash into the ID token beside a code and a token', async () => {
      const answer = await logIn(
        agent(),
        server,
        spaRequest(challenge, { response_type: 'code token id_token' }),
      );
      expect(payload(responseOf(answer).id_token!)).to.include.keys('c_hash', 'at_hash', 'nonce');
    });

    it('posts the answer to the application with response_mode=form_post', async () => {
      const browser = await loggedIn();
      const answer = await authorize(
        browser,
        spaRequest(challenge, { response_type: 'id_token', response_mode: 'form_post' }),
      );
      expect(answer.status).to.equal(200);
      expect(answer.text).to.contain(`action="${SPA_CALLBACK}"`).and.to.contain('name="id_token"');
      // The callback may redirect to anywhere, and browsers apply form-action to that, too.
      expect(answer.headers['content-security-policy'])
        .to.contain("default-src 'none'")
        .and.not.to.contain('form-action');
    });

    it('posts the answer to the framing window with response_mode=web_message, and to no other origin', async () => {
      const browser = await loggedIn();
      const answer = await authorize(
        browser,
        spaRequest(challenge, { response_mode: 'web_message', prompt: 'none' }),
      );
      expect(answer.status).to.equal(200);
      expect(answer.text)
        .to.contain('"type":"authorization_response"')
        .and.to.contain(',"http://localhost:5173")');
      expect(answer.headers['content-security-policy']).to.contain('frame-ancestors http://localhost:5173;');
      expect(answer.headers).not.to.have.property('x-frame-options');
    });

    it('posts the answer to the opener of a popup with owp=true, and forbids framing', async () => {
      const agent = createAgent(server);
      const answer = await authorize(agent, { ...spaRequest(challenge, { prompt: 'none' }), owp: 'true' });
      expect(answer.status).to.equal(200);
      expect(answer.text)
        .to.contain('login_required')
        .and.to.contain(`"${new URL(SPA_CALLBACK).origin}"`);
      expect(answer.headers).to.include({ 'x-frame-options': 'DENY' });
      expect(answer.headers['content-security-policy']).to.contain("frame-ancestors 'none'");
      const named = { ...spaRequest(challenge, { prompt: 'none', response_mode: 'query' }), owp: 'true' };
      expect(responseOf(await authorize(agent, named))).to.include({ error: 'login_required' });
    });

    it('escapes the parameters that it repeats in the web_message script', async () => {
      const state = '</script><script>alert(1)</script>';
      const answer = await authorize(
        agent(),
        spaRequest(challenge, { response_mode: 'web_message', prompt: 'none', state }),
      );
      expect(answer.text).not.to.contain('<script>alert');
      expect(answer.text.match(/<script/g)).to.have.length(1);
    });

    it('accepts the same parameters by POST', async () => {
      const browser = agent();
      const sent = await browser.request('/authorize', { form: spaRequest(challenge) });
      const answer = await submitLogin(browser, server, await follow(browser, sent, server.url));
      expect(responseOf(answer)).to.have.property('code');
    });
  });

  describe('refused requests', () => {
    it('shows a page and redirects nowhere for an unknown client', async () => {
      const answer = await authorize(agent(), spaRequest(challenge, { client_id: 'nobody' }));
      expect(answer.status).to.equal(400);
      expect(answer.location).to.equal('');
      expect(answer.headers['content-type']).to.contain('text/html');
    });

    for (const uri of [
      'http://localhost:5173/callback/',
      'http://localhost:5173/callback?x=1',
      'http://localhost:5173/Callback',
      'https://localhost:5173/callback',
      'http://localhost:5174/callback',
      'http://127.0.0.1:5173/callback',
      'http://localhost:5173/callback#fragment',
      'http://localhost:5173/callback/../callback',
      'http://user@localhost:5173/callback',
      'http://localhost:5173/callback%00',
      'https://evil.example',
    ]) {
      it(`shows a page and redirects nowhere for the redirect_uri ${uri}`, async () => {
        const answer = await authorize(agent(), spaRequest(challenge, { redirect_uri: uri }));
        expect(answer.status).to.equal(400);
        expect(answer.location).to.equal('');
      });
    }

    it('refuses a missing redirect_uri', async () => {
      const answer = await authorize(agent(), spaRequest(challenge, { redirect_uri: undefined }));
      expect(answer.status).to.equal(400);
      expect(answer.location).to.equal('');
    });

    it('accepts a callback that is registered with a query, and keeps that query', async () => {
      const uri = 'http://localhost:5173/other?with=query';
      const answer = await logIn(agent(), server, spaRequest(challenge, { redirect_uri: uri }));
      expect(responseOf(answer))
        .to.include({ with: 'query', state: 'the-state' })
        .and.to.have.property('code');
    });

    const errors: [string, Record<string, string | undefined>, string, RegExp][] = [
      [
        'a public client without PKCE',
        { code_challenge: undefined, code_challenge_method: undefined },
        'invalid_request',
        /PKCE/,
      ],
      [
        'PKCE with the plain method',
        { code_challenge_method: 'plain' },
        'invalid_request',
        /code_challenge_method/,
      ],
      ['an unknown response type', { response_type: 'cookie' }, 'unsupported_response_type', /response_type/],
      ['an unknown response mode', { response_mode: 'pigeon' }, 'unsupported_response_mode', /response_mode/],
      [
        'tokens in the query',
        { response_type: 'token', response_mode: 'query' },
        'invalid_request',
        /response_mode/,
      ],
      ['an unknown connection', { connection: 'nowhere' }, 'invalid_request', /connection was not found/],
      ['a connection not enabled for the client', { connection: 'staff' }, 'invalid_request', /not enabled/],
      ['an unknown organization', { organization: 'org_none' }, 'invalid_request', /organization/],
      [
        'an unknown audience',
        { audience: 'https://nowhere.test' },
        'access_denied',
        /^Service not found: https:\/\/nowhere\.test$/,
      ],
      ['an unknown prompt', { prompt: 'dance' }, 'invalid_request', /prompt/],
      ['a max_age that is no number', { max_age: 'old' }, 'invalid_request', /max_age/],
      ['claims that are no JSON', { claims: '{' }, 'invalid_request', /claims/],
      ['a request object', { request: 'eyJ' }, 'request_not_supported', /./],
      [
        'an ID token without a nonce',
        { response_type: 'id_token', nonce: undefined },
        'invalid_request',
        /nonce/,
      ],
    ];
    for (const [what, over, error, description] of errors) {
      it(`sends ${what} back to the redirect_uri as ${error}, with the state`, async () => {
        const answer = await authorize(agent(), spaRequest(challenge, over));
        expect(answer.status).to.equal(302);
        expect(answer.location.startsWith(SPA_CALLBACK)).to.equal(true);
        const response = responseOf(answer);
        expect(response).to.include({ error, state: 'the-state' });
        expect(response.error_description).to.match(description);
      });
    }

    for (const parameter of ['request', 'request_uri', 'registration']) {
      const value = {
        request: 'eyJhbGciOiJub25lIn0.e30.',
        request_uri: 'https://a.test/r',
        registration: '{}',
      };
      const over = { [parameter]: value[parameter as keyof typeof value] };
      const error = `${parameter}_not_supported`;

      it(`answers ${parameter} with ${error} at the redirect_uri, in query or fragment as the response type requires`, async () => {
        for (const [response_type, part] of [
          ['code', 'search'],
          ['id_token', 'hash'],
          ['token', 'hash'],
          ['code id_token', 'hash'],
        ] as const) {
          const answer = await authorize(agent(), spaRequest(challenge, { ...over, response_type }));
          const { [part]: response } = new URL(answer.location);
          expect(answer.location.startsWith(SPA_CALLBACK), response_type).to.equal(true);
          expect(Object.fromEntries(new URLSearchParams(response.slice(1)))).to.include({
            error,
            state: 'the-state',
            iss: server.issuer,
          });
        }
      });

      it(`answers ${parameter} in the requested response mode, with and without a session`, async () => {
        for (const browser of [agent(), await loggedIn()]) {
          for (const response_type of ['code', 'id_token']) {
            const ask = (response_mode: string) =>
              authorize(browser, spaRequest(challenge, { ...over, response_mode, response_type }));
            const posted = await ask('form_post');
            expect(posted.status).to.equal(200);
            expect(posted.text)
              .to.contain(`action="${SPA_CALLBACK}"`)
              .and.contain(`name="error" value="${error}"`)
              .and.contain('value="the-state"');
            const message = await ask('web_message');
            expect(message.status).to.equal(200);
            expect(message.text).to.contain(`"error":"${error}"`).and.contain(',"http://localhost:5173")');
            const fragment = await ask('fragment');
            expect(new URL(fragment.location).hash).to.contain(`error=${error}`);
          }
        }
      });

      it(`shows a page for ${parameter} with a redirect_uri that is not the application's`, async () => {
        const answer = await authorize(
          agent(),
          spaRequest(challenge, { ...over, redirect_uri: 'https://evil.example/' }),
        );
        expect(answer.status).to.equal(400);
        expect(answer.location).to.equal('');
      });
    }

    describe('an unsupported request object that contains redirect_uri and response_mode', () => {
      const objectOf = (claims: object) =>
        ['{"alg":"none"}', JSON.stringify(claims), '']
          .map((part) => Buffer.from(part).toString('base64url'))
          .join('.');
      const least = { client_id: 'spa', response_type: 'code', scope: 'openid' };
      const asked = { redirect_uri: SPA_CALLBACK, state: 'inside' };
      const refused = { error: 'request_not_supported', state: 'inside' };

      it('is refused at its own redirect_uri, in its own response mode', async () => {
        const plain = await authorize(agent(), { ...least, request: objectOf(asked) });
        expect(plain.location.startsWith(`${SPA_CALLBACK}?`)).to.equal(true);
        expect(responseOf(plain)).to.include(refused);
        const hybrid = { ...asked, response_type: 'code id_token' };
        const fragment = await authorize(agent(), { ...least, request: objectOf(hybrid) });
        expect(new URL(fragment.location).hash).to.contain('request_not_supported');
        const form = objectOf({ ...asked, response_mode: 'form_post' });
        const posted = await authorize(agent(), { ...least, response_mode: 'query', request: form });
        expect(posted.text)
          .to.contain(`action="${SPA_CALLBACK}"`)
          .and.contain('value="request_not_supported"')
          .and.contain('value="inside"');
      });

      it("is refused on a page when its redirect_uri is not the application's, or not a string", async () => {
        for (const redirect_uri of ['https://evil.example/', `${SPA_CALLBACK}/`, 5, [SPA_CALLBACK], null]) {
          const answer = await authorize(agent(), { ...least, request: objectOf({ redirect_uri }) });
          expect(answer.status).to.equal(400);
          expect(answer.location).to.equal('');
        }
        for (const request of ['x', '..', 'e30.WzFd.', 'e30.bnVsbA.', 'a.b.c.d.e', '%%%.%%%.%%%']) {
          const answer = await authorize(agent(), spaRequest(challenge, { request }));
          expect(responseOf(answer), request).to.include({ error: 'request_not_supported' });
        }
      });
    });

    it('refuses implicit response types to applications without the implicit grant', async () => {
      const request = { ...webRequest({ response_type: 'token' }), client_id: 'code-only' };
      expect(responseOf(await authorize(agent(), request))).to.include({
        error: 'unauthorized_client',
        error_description: "Grant type 'implicit' not allowed for the client.",
      });
    });

    it('refuses a parameter that is sent twice', async () => {
      const answer = await agent().get(
        `/authorize?${new URLSearchParams(spaRequest(challenge))}&scope=openid`,
      );
      expect(responseOf(answer)).to.include({ error: 'invalid_request' });
    });

    it('ignores internal parameters that a client sends', async () => {
      const forged = JSON.stringify({ offline: true, withoutNonce: true, upstream: { x: 'y' } });
      const answer = await logIn(agent(), server, {
        ...spaRequest(challenge, { response_type: 'code id_token' }),
        gatehouse_notes: forged,
      });
      expect(payload(responseOf(answer).id_token!)).to.have.property('nonce', 'the-nonce');
    });
  });

  describe('prompt=none', () => {
    for (const mode of ['query', 'fragment', 'form_post', 'web_message']) {
      it(`answers login_required in response_mode=${mode}, with the state`, async () => {
        const answer = await authorize(
          agent(),
          spaRequest(challenge, { prompt: 'none', response_mode: mode }),
        );
        const carrier =
          mode === 'query' || mode === 'fragment'
            ? decodeURIComponent(answer.location.replaceAll('+', ' '))
            : answer.text;
        expect(carrier)
          .to.contain('login_required')
          .and.to.contain('Login required')
          .and.to.contain('the-state');
      });
    }

    it('returns a code when the user is logged in', async () => {
      const answer = await authorize(await loggedIn(), spaRequest(challenge, { prompt: 'none' }));
      expect(responseOf(answer)).to.have.property('code');
    });

    it('answers consent_required for a third-party application without consent', async () => {
      const answer = await authorize(await loggedIn(), {
        ...webRequest({ prompt: 'none', redirect_uri: THIRD_CALLBACK }),
        client_id: 'third',
      });
      expect(responseOf(answer)).to.include({
        error: 'consent_required',
        error_description: 'Consent required',
      });
    });

    it('cannot be combined with another prompt', async () => {
      const answer = await authorize(agent(), spaRequest(challenge, { prompt: 'none login' }));
      expect(responseOf(answer)).to.include({ error: 'invalid_request' });
    });
  });

  describe('the session', () => {
    it('is shared by the applications of the tenant', async () => {
      const answer = await authorize(await loggedIn(), webRequest());
      expect(answer.location).to.match(/^http:\/\/localhost:3001\/callback\?code=/);
    });

    it('does not satisfy prompt=login', async () => {
      const answer = await authorize(await loggedIn(), webRequest({ prompt: 'login' }));
      expect(new URL(answer.location).pathname).to.match(/^\/u\//);
    });

    it('does not satisfy a request for another connection', async () => {
      const answer = await authorize(await loggedIn(), webRequest({ connection: 'staff' }));
      expect(new URL(answer.location).pathname).to.match(/^\/u\//);
    });

    it('gets a new cookie when the user logs in, against session fixation', async () => {
      const browser = agent();
      const page = await follow(browser, await authorize(browser, spaRequest(challenge)), server.url);
      const before = browser.cookies().find(({ name }) => name.includes('session'))?.value;
      await submitLogin(browser, server, page);
      const after = browser.cookies().find(({ name }) => name.includes('session'))?.value;
      expect(after).to.be.a('string').and.not.to.equal(before);
    });

    it('is refused at the application when its user was blocked meanwhile', async () => {
      const own = await startServer({ tenant });
      try {
        const browser = createAgent(own);
        const { id_token } = responseOf(
          await logIn(browser, own, spaRequest(challenge, { response_type: 'id_token' })),
        );
        await own.users.update(payload(id_token!).sub, { blocked: true });
        const answer = await authorize(browser, spaRequest(challenge, { prompt: 'none' }));
        expect(responseOf(answer)).to.include({
          error: 'unauthorized',
          error_description: 'user is blocked',
        });
      } finally {
        await own.stop();
      }
    });

    it('is not opened for a blocked user', async () => {
      const answer = await logIn(agent(), server, spaRequest(challenge), {
        email: 'blocked@example.test',
        password: 'Correct-Horse-1',
      });
      expect(responseOf(answer)).to.include({ error: 'unauthorized', error_description: 'user is blocked' });
    });

    it('is replaced when another user logs in, and the tokens are the new user’s', async () => {
      const browser = agent();
      await logIn(browser, server, webRequest());
      const page = await follow(
        browser,
        await authorize(browser, webRequest({ prompt: 'login', connection: 'staff' })),
        server.url,
      );
      const answer = await submitLogin(browser, server, page, {
        email: 'staff1',
        password: 'Correct-Horse-1',
      });
      const tokens = await token(browser, {
        grant_type: 'authorization_code',
        client_id: 'web',
        client_secret: 'web-secret',
        code: responseOf(answer).code,
        redirect_uri: webRequest().redirect_uri,
      });
      expect(payload(tokens.json().id_token)).to.have.property('email', 'staff@example.test');
    });
  });

  describe('consent', () => {
    const thirdRequest = (over: Record<string, string | undefined> = {}) => ({
      ...webRequest({
        redirect_uri: THIRD_CALLBACK,
        scope: 'openid profile read:things',
        audience: API,
        ...over,
      }),
      client_id: 'third',
    });
    const consentPage = async (browser = agent()) => {
      const page = await logIn(browser, server, thirdRequest());
      return { browser, page };
    };

    it('is asked for by a page that names the third-party application and its scopes', async () => {
      const { page } = await consentPage();
      expect(page.status).to.equal(200);
      expect(page.text).to.contain('Third party').and.to.contain('Read things');
    });

    it('is remembered, also in a later session, and asked for again when the scopes are wider', async () => {
      const { browser, page } = await consentPage();
      const { action, fields } = readForm(page, '_csrf');
      const given = await follow(
        browser,
        await browser.request(action, { form: { ...fields, decision: 'accept' } }),
        server.url,
      );
      expect(responseOf(given)).to.have.property('code');
      const later = await logIn(agent(), server, thirdRequest());
      expect(responseOf(later)).to.have.property('code');
      const more = await logIn(
        agent(),
        server,
        thirdRequest({ scope: 'openid profile read:things write:things' }),
      );
      expect(more.text).to.contain('Write things');
    });

    it('is asked for all scopes of a first-party application with prompt=consent', async () => {
      const browser = await loggedIn();
      const request = webRequest({ prompt: 'consent', scope: 'openid email read:things', audience: API });
      const page = await follow(browser, await authorize(browser, request), server.url);
      expect(page.text).to.contain('email address').and.contain('Read things');
      const { action, fields } = readForm(page, '_csrf');
      const given = await browser.request(action, { form: { ...fields, decision: 'accept' } });
      expect(responseOf(await follow(browser, given, server.url))).to.have.property('code');
    });

    it('ends as access_denied at the application when it is denied, which is not remembered', async () => {
      const browser = agent();
      const page = await logIn(browser, server, thirdRequest({ scope: 'openid write:things' }));
      const { action, fields } = readForm(page, '_csrf');
      const denied = await follow(
        browser,
        await browser.request(action, { form: { ...fields, decision: 'deny' } }),
        server.url,
      );
      expect(responseOf(denied)).to.include({ error: 'access_denied', state: 'the-state' });
      const again = await follow(
        browser,
        await authorize(browser, thirdRequest({ scope: 'openid write:things' })),
        server.url,
      );
      expect(again.status).to.equal(200);
    });

    describe('for the claims parameter', () => {
      let own: TestServer;
      beforeEach(async () => {
        own = await startServer({ tenant });
      });
      afterEach(() => own.stop());

      const asking = (claims?: object, over: Record<string, string> = {}) =>
        thirdRequest({
          scope: 'openid',
          audience: undefined,
          ...(claims && { claims: JSON.stringify(claims) }),
          ...over,
        });
      const decide = async (browser: Agent, page: Answer, decision: string) => {
        const { action, fields } = readForm(page, '_csrf');
        const answer = await browser.request(action, { form: { ...fields, decision } });
        return responseOf(await follow(browser, answer, own.url));
      };
      /** A browser whose user has consented to the scope openid only. */
      const allowedOpenid = async () => {
        const browser = createAgent(own);
        expect(await decide(browser, await logIn(browser, own, asking()), 'accept')).to.have.property('code');
        return browser;
      };
      const redeem = async (browser: Agent, code: string | undefined) => {
        const tokens = await token(browser, {
          grant_type: 'authorization_code',
          client_id: 'third',
          client_secret: 'third-secret',
          code,
          redirect_uri: THIRD_CALLBACK,
        });
        const { access_token, id_token } = tokens.json();
        const profile = await browser.get('/userinfo', { authorization: `Bearer ${access_token}` });
        return { idToken: payload(id_token), profile: profile.json() };
      };

      for (const place of ['userinfo', 'id_token']) {
        it(`is asked for again for claims of ${place} beyond the earlier consent, and lists their scopes`, async () => {
          const browser = await allowedOpenid();
          const claims = { [place]: { email: null, name: { essential: true } } };
          const silent = await authorize(browser, asking(claims, { prompt: 'none' }));
          expect(responseOf(silent)).to.include({ error: 'consent_required' });
          const page = await follow(browser, await authorize(browser, asking(claims)), own.url);
          expect(page.text).to.contain('See your email address').and.contain('See your profile');
          expect(page.text).not.to.contain('phone number');
          expect(await decide(browser, page, 'deny')).to.include({ error: 'access_denied' });
          const again = await follow(browser, await authorize(browser, asking(claims)), own.url);
          const given = await redeem(browser, (await decide(browser, again, 'accept')).code);
          expect(place === 'userinfo' ? given.profile : given.idToken).to.include({
            email: 'ada@example.test',
          });
        });
      }

      it('is asked for the claims with prompt=consent even when nothing is missing', async () => {
        const browser = await allowedOpenid();
        const claims = { userinfo: { phone_number: null } };
        const page = await follow(browser, await authorize(browser, asking(claims)), own.url);
        expect(await decide(browser, page, 'accept')).to.have.property('code');
        const request = asking(claims, { prompt: 'consent' });
        const again = await follow(browser, await authorize(browser, request), own.url);
        expect(again.text).to.contain('See your phone number');
      });

      it('cannot be avoided by a malformed member of the claims parameter', async () => {
        const browser = await allowedOpenid();
        for (const value of [true, 1, 'x', [], [null]]) {
          const asked = { email: value };
          for (const claims of [{ userinfo: asked }, { id_token: asked }, { userinfo: value }]) {
            const answer = await authorize(browser, asking(claims));
            expect(responseOf(answer), JSON.stringify(claims)).to.include({ error: 'invalid_request' });
          }
        }
      });

      it('is not needed for a first-party application, which gets the claims', async () => {
        const browser = createAgent(own);
        const claims = JSON.stringify({ id_token: { email: null } });
        const request = spaRequest(challenge, { scope: 'openid', claims, response_type: 'id_token' });
        const { id_token } = responseOf(await logIn(browser, own, request));
        expect(payload(id_token!)).to.include({ email: 'ada@example.test' });
      });
    });

    it('is not given by posting the login form in its place', async () => {
      const browser = agent();
      const page = await logIn(browser, server, thirdRequest({ scope: 'openid phone' }));
      expect(page.text).to.contain('phone number');
      const { action, fields } = readForm(page, '_csrf');
      const answer = await browser.request(action.replace('/consent', '/login'), {
        form: { ...fields, username: 'ada@example.test', password: 'Correct-Horse-1' },
      });
      expect(answer.location).not.to.contain('/authorize/');
    });
  });

  describe('organization', () => {
    for (const organization of ['org_acme', 'acme']) {
      it(`refuses ${organization} for an application that denies organizations, with and without a session`, async () => {
        for (const browser of [agent(), await loggedIn()]) {
          for (const response_type of ['code', 'token', 'code id_token']) {
            const answer = await authorize(browser, spaRequest(challenge, { organization, response_type }));
            expect(responseOf(answer)).to.have.all.keys('error', 'error_description', 'state', 'iss');
            expect(responseOf(answer)).to.include({
              error: 'invalid_request',
              error_description: 'parameter organization is not allowed for this client',
            });
          }
        }
      });
    }

    it('is in no token when only the claims parameter asks for it, or the parameter is empty', async () => {
      const claims = JSON.stringify({ id_token: { org_id: { essential: true }, org_name: null } });
      const request = spaRequest(challenge, { response_type: 'id_token', claims, organization: '' });
      const { id_token } = responseOf(await logIn(agent(), server, request));
      expect(payload(id_token!)).to.include.keys('sub').and.not.to.have.any.keys('org_id', 'org_name');
    });

    it('is required for an application that requires it', async () => {
      const request = { ...webRequest(), client_id: 'members' };
      for (const browser of [agent(), await loggedIn()]) {
        expect(responseOf(await authorize(browser, request))).to.include({
          error: 'invalid_request',
          error_description: 'parameter organization is required for this client',
        });
      }
      const byPassword = await token(agent(), {
        grant_type: 'password',
        client_id: 'members',
        client_secret: 'members-secret',
        username: 'ada@example.test',
        password: 'Correct-Horse-1',
      });
      expect(byPassword.status).to.equal(400);
      expect(byPassword.json()).to.deep.equal({
        error: 'invalid_request',
        error_description: 'parameter organization is required for this client',
      });
    });
  });

  it('signs ID tokens with RS256 and a published key', async () => {
    const { id_token } = responseOf(
      await logIn(agent(), server, spaRequest(challenge, { response_type: 'id_token' })),
    );
    const keys = (await agent().get('/.well-known/jwks.json')).json().keys;
    expect(header(id_token!)).to.include({ alg: 'RS256', kid: keys[0].kid });
    expect(keys[0]).to.include.keys('kty', 'use', 'alg', 'n', 'e', 'x5c', 'x5t');
    expect(keys[0]).not.to.include.any.keys('d', 'p', 'q');
  });

  it('keeps unknown parameters for the upstream provider, except secrets and internal ones', async () => {
    await authorize(
      agent(),
      spaRequest(challenge, {
        state: 'kept',
        hd: 'example.test',
        access_type: 'offline',
        auth0Client: 'e30=',
        client_secret: 'x',
        gatehouse_notes: 'x',
      }),
    );
    const { records } = await server.store.collection('artifacts').list({ limit: 1000 });
    const params = records
      .map((record) => (record.payload as { params?: Record<string, string> }).params)
      .find((found) => found?.state === 'kept');
    expect(JSON.parse(params?.gatehouse_notes ?? '{}').upstream).to.deep.equal({
      hd: 'example.test',
      access_type: 'offline',
    });
  });

  it('leaves nothing of an abandoned request in the session', async () => {
    const browser = agent();
    await follow(browser, await authorize(browser, spaRequest(challenge)), server.url);
    const answer = await authorize(browser, spaRequest(challenge, { prompt: 'none' }));
    expect(responseOf(answer)).to.include({ error: 'login_required' });
  });
});
