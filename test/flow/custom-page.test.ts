// A customized login page (the hosted service's classic login page), and the requests of its script.
import { expect } from 'chai';
import { tenant as base } from '../connections/passwordless/tenant.ts';
import { factors, POLICY } from '../factors/tenant.ts';
import { posted, samlClient, serviceProvider, startSamlServer } from '../saml/support.ts';
import { type Agent, type Answer, createAgent, readForm } from '../support/agent.ts';
import { databaseUser } from '../support/database-user.ts';
import {
  API,
  authorize,
  follow,
  payload,
  pkce,
  responseOf,
  SPA_CALLBACK,
  spaRequest,
  THIRD_CALLBACK,
  token,
  USER,
  webRequest,
} from '../support/flows.ts';
import { nextMessageTo } from '../support/inbox.ts';
import { startServer, type TestServer } from '../support/server.ts';

const HTML = `<!doctype html><title>Ours</title>
<script src="https://cdn.example.test/sdk.js"></script>
<SCRIPT>var config = JSON.parse(decodeURIComponent(escape(atob('@@config@@'))));</SCRIPT>
<script>document.write("<script src='//assets.example.test:8443/more.js'><" + "/script>");</script>`;

const tenant = {
  ...base,
  branding: { colors: { primary: '#112233' } },
  guardianFactors: factors('otp'),
  pages: [
    { name: 'login', html: HTML, enabled: true },
    { name: 'error_page', html: '<p>no</p>', enabled: false },
  ],
  clients: base.clients.map((client) => ({
    ...client,
    ...(client.client_id === 'code-only' && { custom_login_page_on: false }),
    ...(client.client_id === 'third' && {
      name: 'Ban\u202Ek',
      logo_uri: 'https://tracker.example.test/pixel.png',
      external_metadata_type: 'dcr',
      external_metadata_created_by: 'client',
    }),
    ...(client.client_id === 'hs256' && { custom_login_page: '<title>Its own</title> @@config@@' }),
  })),
};

/** The configuration that a page's script reads. */
const configIn = (page: Answer): any => {
  // any: a test reads what it expects
  const encoded = /atob\('([\w+/=]+)'\)/.exec(page.text)?.[1] ?? '';
  return JSON.parse(Buffer.from(encoded, 'base64').toString('utf8'));
};

describe('a customized login page', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer({ tenant });
  });
  after(() => server?.stop());

  const implicit = (over: Record<string, string | undefined> = {}) =>
    spaRequest('', {
      response_type: 'token id_token',
      code_challenge: undefined,
      code_challenge_method: undefined,
      ...over,
    });
  const open = async (browser: Agent, params: Record<string, string> = implicit()) =>
    follow(browser, await authorize(browser, params), server.url);
  /** Sends the request of the page's script. */
  const send = (
    browser: Agent,
    config: any,
    over: Record<string, unknown> = {},
    headers: Record<string, string> = { origin: server.url, 'sec-fetch-site': 'same-origin' },
  ) =>
    browser.request('/usernamepassword/login', {
      json: {
        client_id: config.clientID,
        redirect_uri: config.callbackURL,
        tenant: config.auth0Tenant,
        ...config.internalOptions,
        connection: 'users',
        username: USER.email,
        password: USER.password,
        sso: true,
        ...over,
      },
      headers,
    });
  /** Submits the form of an answer, and follows the redirects. */
  const submit = async (browser: Agent, answer: Answer) => {
    const { action, fields } = readForm(answer, 'wresult');
    return follow(browser, await browser.request(action, { form: fields }), server.url);
  };

  describe('is shown', () => {
    it('without the logo of an application that has registered itself, and with its name as it is', async () => {
      const { challenge } = pkce();
      const asked = { client_id: 'third', redirect_uri: THIRD_CALLBACK, scope: 'openid' };
      const config = configIn(await open(createAgent(server), spaRequest(challenge, asked)));
      expect(config).to.deep.include({
        clientID: 'third',
        icon: '',
        dict: { signin: { title: 'Ban[U+202E]k' } },
      });
    });

    it('as the operator wrote it, with the configuration in place of @@config@@', async () => {
      const page = await open(
        createAgent(server),
        implicit({ audience: API, login_hint: 'ünï@example.test', 'ext-more': 'kept', connection: 'users' }),
      );
      expect(page.status).to.equal(200);
      expect(page.text).to.contain('<title>Ours</title>').and.not.to.contain('@@config@@');
      const config = configIn(page);
      const { host } = new URL(server.url);
      expect(config).to.deep.include({
        auth0Domain: host,
        auth0Tenant: 'localhost',
        clientID: 'spa',
        clientConfigurationBaseUrl: `${server.url}/`,
        callbackURL: SPA_CALLBACK,
        callbackOnLocationHash: true,
        connection: 'users',
        dict: { signin: { title: 'Single page' } },
        isThirdPartyClient: false,
        authorizationServer: { url: server.url, issuer: server.issuer },
        colors: { primary: '#112233' },
      });
      expect(config.internalOptions).to.include({
        protocol: 'oauth2',
        audience: API,
        scope: 'openid profile email',
        nonce: 'the-nonce',
        login_hint: 'ünï@example.test',
        _intstate: 'deprecated',
      });
      expect(config.internalOptions.response_type.split(' ')).to.have.members(['id_token', 'token']);
      expect(config.internalOptions.state).to.be.a('string').and.not.to.equal('the-state');
      expect(config.extraParams).to.deep.equal({ ...config.internalOptions, 'ext-more': 'kept' });
    });

    it('with a content security policy for its own scripts and the origins that it names', async () => {
      const browser = createAgent(server);
      const [first, second] = [await open(browser), await open(browser)];
      const policy = String(first.headers['content-security-policy']);
      const nonce = /'nonce-([0-9a-f]{32})'/.exec(policy)?.[1] ?? 'none';
      expect(first.text.match(new RegExp(`<script nonce=${nonce}[ >]`, 'gi'))).to.have.length(4);
      expect(second.text).not.to.contain(nonce);
      const rules = Object.fromEntries(policy.split('; ').map((rule) => rule.split(/ (.*)/)));
      expect(rules['script-src']).to.equal(
        `'nonce-${nonce}' 'self' https://cdn.auth0.com https://cdn.example.test https://assets.example.test:8443`,
      );
      expect(rules['default-src'])
        .to.contain("'self'")
        .and.not.to.match(/(^| )(https:|\*)( |$)/);
      expect(rules).to.include({ 'object-src': "'none'", 'base-uri': "'none'", 'frame-ancestors': "'none'" });
      expect(policy).not.to.match(/unsafe-eval|script-src[^;]*unsafe-inline/);
      expect(first.headers).to.include({ 'cache-control': 'no-store', 'x-frame-options': 'DENY' });
    });

    it('without markup from parameters of the request', async () => {
      const evil = '\'"></script><img src=x onerror=alert(1)>@@config@@';
      const page = await open(createAgent(server), implicit({ login_hint: evil, ui_locales: 'de' }));
      expect(page.text).not.to.contain('onerror').and.not.to.contain('@@config@@');
      expect(configIn(page).extraParams.login_hint).to.equal(evil);
    });

    it('for signing up and passwordless connections as well, but not for a consent or a second factor', async () => {
      for (const over of [{ screen_hint: 'signup' }, { connection: 'email' }]) {
        expect((await open(createAgent(server), implicit(over))).text).to.contain('<title>Ours</title>');
      }
      const browser = createAgent(server);
      const page = await open(browser, { ...webRequest(), client_id: 'third', redirect_uri: THIRD_CALLBACK });
      const consent = await submit(browser, await send(browser, configIn(page)));
      expect(consent.text).to.contain('name="decision"').and.not.to.contain('<title>Ours</title>');
    });

    it('unless the application has it switched off, or has a page of its own', async () => {
      const ours = await open(createAgent(server), { ...webRequest(), client_id: 'code-only' });
      expect(ours.text).to.contain('name="password"').and.not.to.contain('<title>Ours</title>');
      const own = await open(createAgent(server), { ...webRequest(), client_id: 'hs256' });
      expect(own.text).to.contain('<title>Its own</title>');
    });
  });

  describe('logs in', () => {
    it('by a form that its script submits, and returns the application’s own state', async () => {
      const browser = createAgent(server);
      const sent = await send(browser, configIn(await open(browser)));
      expect(sent.status, sent.text).to.equal(200);
      expect(sent.headers['content-type']).to.match(/^text\/html/);
      const { action, fields } = readForm(sent, 'wresult');
      expect(action).to.equal(`${server.url}/login/callback`);
      expect(fields).to.include({ wa: 'wsignin1.0' });
      expect(JSON.parse(fields.wctx ?? '')).to.include({
        strategy: 'auth0',
        connection: 'users',
        client_id: 'spa',
      });
      const { id_token, access_token, state } = responseOf(await submit(browser, sent));
      expect(payload(id_token ?? '')).to.include({ email: USER.email, nonce: 'the-nonce' });
      expect(access_token).to.be.a('string');
      expect(state).to.equal('the-state');
    });

    it('only when the form is submitted', async () => {
      const browser = createAgent(server);
      await send(browser, configIn(await open(browser)));
      expect(responseOf(await authorize(browser, implicit({ prompt: 'none' })))).to.include({
        error: 'login_required',
      });
    });

    it('once, because request and form are used up', async () => {
      const browser = createAgent(server);
      const config = configIn(await open(browser));
      const sent = await send(browser, config);
      const other = configIn(await open(browser));
      await submit(browser, sent);
      expect((await submit(browser, sent)).status).to.equal(400);
      expect((await send(browser, config)).json()).to.include({ code: 'session_missing' });
      // The form's ticket for another request of the same browser.
      const { fields } = readForm(sent, 'wresult');
      const wctx = JSON.stringify({ ...JSON.parse(fields.wctx ?? ''), state: other.internalOptions.state });
      const again = await browser.request('/login/callback', { form: { ...fields, wctx } });
      expect((await follow(browser, again, server.url)).text).to.contain('<title>Ours</title>');
    });

    it('as far as the second factor, when one is needed', async () => {
      const browser = createAgent(server);
      const config = configIn(await open(browser, implicit({ acr_values: POLICY })));
      const page = await submit(browser, await send(browser, config));
      expect(page.text).to.match(/action="\/u\/[\w-]+\/mfa\//);
      expect(responseOf(await authorize(browser, implicit({ prompt: 'none' })))).to.include({
        error: 'login_required',
      });
    });

    it('but refuses a blocked user', async () => {
      const browser = createAgent(server);
      const config = configIn(await open(browser));
      const back = await submit(browser, await send(browser, config, { username: 'blocked@example.test' }));
      expect(responseOf(back)).to.include({ error: 'unauthorized', error_description: 'user is blocked' });
    });

    it('only with the connection that the request names, whatever the script sends', async () => {
      const browser = createAgent(server);
      const config = configIn(await open(browser, webRequest({ connection: 'staff' })));
      const wrong = await send(browser, config, { connection: 'users' });
      expect(wrong.json()).to.include({ code: 'invalid_user_password' });
      const right = await send(browser, config, { username: 'staff1' });
      expect(responseOf(await submit(browser, right)).code).to.be.a('string');
    });
  });

  describe('gets an error', () => {
    const failure = async (over: Record<string, unknown>, headers?: Record<string, string>) => {
      const browser = createAgent(server);
      return send(browser, configIn(await open(browser)), over, headers);
    };

    it('that is the same for a wrong password and an unknown user', async () => {
      const [wrong, nobody] = [
        await failure({ password: 'wrong' }),
        await failure({ username: 'nobody@example.test' }),
      ];
      expect(wrong.status).to.equal(401);
      expect(wrong.json()).to.deep.equal({
        name: 'ValidationError',
        code: 'invalid_user_password',
        description: 'Wrong email or password.',
        statusCode: 401,
      });
      expect(nobody.json()).to.deep.equal(wrong.json());
    });

    for (const [what, over, headers, status, code] of [
      ['no password', { password: undefined }, undefined, 400, 'invalid_request'],
      ['a password that is no string', { password: { $ne: '' } }, undefined, 400, 'invalid_request'],
      ['another application', { client_id: 'web' }, undefined, 400, 'invalid_request'],
      ['a connection that is not enabled', { connection: 'staff' }, undefined, 400, 'invalid_request'],
      ['no state', { state: undefined }, undefined, 400, 'session_missing'],
      ["the application's state", { state: 'the-state' }, undefined, 400, 'session_missing'],
      ['no CSRF token', { _csrf: undefined }, undefined, 403, 'session_missing'],
      ['another CSRF token', { _csrf: 'x'.repeat(43) }, undefined, 403, 'session_missing'],
      ['a request from another origin', {}, { origin: 'https://evil.example' }, 403, 'session_missing'],
      ['a request from a sibling site', {}, { 'sec-fetch-site': 'same-site' }, 403, 'session_missing'],
    ] as const) {
      it(`for ${what}`, async () => {
        const answer = await failure(over, headers);
        expect(answer.status, answer.text).to.equal(status);
        expect(answer.json()).to.include({ code, statusCode: status });
        expect(answer.headers).not.to.have.property('access-control-allow-origin');
      });
    }
  });

  describe('and another browser', () => {
    it('cannot finish its login', async () => {
      const [browser, thief] = [createAgent(server), createAgent(server)];
      const sent = await send(browser, configIn(await open(browser)));
      expect((await submit(thief, sent)).status).to.equal(400);
      expect(responseOf(await submit(browser, sent)).id_token).to.be.a('string');
    });

    it('cannot be made to log in to the account of the one who began', async () => {
      const [attacker, victim] = [createAgent(server), createAgent(server)];
      const sent = await send(attacker, configIn(await open(attacker)));
      const own = configIn(await open(victim));
      const { fields } = readForm(sent, 'wresult');
      const wctx = JSON.stringify({ ...JSON.parse(fields.wctx ?? ''), state: own.internalOptions.state });
      const planted = await victim.request('/login/callback', { form: { ...fields, wctx } });
      expect((await follow(victim, planted, server.url)).text).to.contain('<title>Ours</title>');
      expect(responseOf(await authorize(victim, implicit({ prompt: 'none' })))).to.include({
        error: 'login_required',
      });
    });
  });

  describe('sends a passwordless code', () => {
    const start = (browser: Agent, config: any, over: object = {}, authParams: object = {}) =>
      browser.request('/passwordless/start', {
        json: {
          client_id: config.clientID,
          connection: 'email',
          email: 'classic@example.test',
          send: 'code',
          authParams: { ...config.internalOptions, ...authParams },
          ...over,
        },
        headers: { origin: server.url },
      });

    it('for a confidential application', async () => {
      const browser = createAgent(server);
      const config = configIn(await open(browser, webRequest()));
      const answer = await start(browser, config);
      expect(answer.status, answer.text).to.equal(200);
      const { code } = await nextMessageTo(server, 'classic@example.test');
      const verified = { connection: 'email', email: 'classic@example.test', verification_code: code ?? '' };
      const query = new URLSearchParams({
        ...config.internalOptions,
        client_id: 'web',
        redirect_uri: config.callbackURL,
        ...verified,
      });
      const back = await follow(
        browser,
        await browser.get(`/passwordless/verify_redirect?${query}`, { referer: `${server.url}/u/x` }),
        server.url,
      );
      expect(responseOf(back)).to.include({ state: 'the-state' }).and.to.have.property('code');
    });

    it('as a link that continues the waiting request of a public application with PKCE', async () => {
      const { verifier, challenge } = pkce();
      const email = 'classic-link@example.test';
      const [browser, other] = [createAgent(server), createAgent(server)];
      const config = configIn(await open(browser, spaRequest(challenge)));
      // In the form of the SDK, without parameters that it does not know.
      const { code_challenge: _, code_challenge_method: _method, ...authParams } = config.internalOptions;
      const started = await browser.request('/passwordless/start', {
        json: { client_id: 'spa', connection: 'email', email, send: 'link', authParams },
        headers: { origin: server.url },
      });
      expect(started.status, started.text).to.equal(200);
      const link = new URL((await nextMessageTo(server, email)).link ?? '');
      expect(link.search).not.to.contain(authParams._csrf);
      const asked = await other.get(link.pathname + link.search);
      expect(asked.status).to.equal(200);
      // Elsewhere it would answer a request that another browser began. The link stays good.
      const { action, fields } = readForm(asked, 'verification_code');
      const confirmed = await other.request(action, { form: fields });
      expect(confirmed.status, confirmed.text).to.equal(400);
      const back = await follow(browser, await browser.get(link.pathname + link.search), server.url);
      const { code, state } = responseOf(back);
      expect(state).to.equal('the-state');
      const tokens = await token(browser, {
        grant_type: 'authorization_code',
        client_id: 'spa',
        code,
        code_verifier: verifier,
        redirect_uri: SPA_CALLBACK,
      });
      expect(payload(tokens.json().id_token)).to.include({ email });
    });

    for (const [what, over, authParams, status] of [
      ['without its CSRF token', {}, { _csrf: undefined }, 403],
      ['with another CSRF token', {}, { _csrf: 'x'.repeat(43) }, 403],
      ['for an unknown request', {}, { state: `gatehouse.waiting.${'x'.repeat(43)}` }, 400],
      ["with the application's state", {}, { state: 'the-state' }, 401],
      ['for another application', { client_id: 'leeway' }, {}, 401],
    ] as const) {
      it(`but not ${what}`, async () => {
        const browser = createAgent(server);
        const config = configIn(await open(browser, webRequest()));
        expect((await start(browser, config, over, authParams)).status).to.equal(status);
      });
    }

    it('but not from another browser', async () => {
      const [browser, other] = [createAgent(server), createAgent(server)];
      const config = configIn(await open(browser, webRequest()));
      const own = configIn(await open(other, webRequest()));
      const { _csrf } = own.internalOptions;
      expect((await start(other, config, {}, { _csrf })).status).to.equal(400);
    });
  });

  describe('restarts the request', () => {
    /** The authorization request of its SDK when the user chooses another way to log in. */
    const elsewhere = (browser: Agent, config: any, over: Record<string, string> = {}) =>
      authorize(browser, {
        client_id: config.clientID,
        redirect_uri: config.callbackURL,
        ...config.internalOptions,
        response_type: 'code',
        ...over,
      });

    it('with another connection', async () => {
      const browser = createAgent(server);
      const config = configIn(await open(browser, webRequest({ scope: 'openid' })));
      const again = configIn(
        await follow(browser, await elsewhere(browser, config, { connection: 'staff' }), server.url),
      );
      expect(again.connection).to.equal('staff');
      const back = await submit(browser, await send(browser, again, { username: 'staff1' }));
      expect(responseOf(back)).to.include({ state: 'the-state' });
    });

    it('without a nonce when the application sent none', async () => {
      const browser = createAgent(server);
      const config = configIn(await open(browser, implicit({ response_type: 'token', nonce: undefined })));
      const again = configIn(await follow(browser, await elsewhere(browser, config), server.url));
      const { id_token, state } = responseOf(await submit(browser, await send(browser, again)));
      expect(payload(id_token ?? '')).not.to.have.property('nonce');
      expect(state).to.equal('the-state');
    });

    it('without other changes', async () => {
      const browser = createAgent(server);
      const config = configIn(await open(browser, webRequest()));
      const changed = await elsewhere(browser, config, {
        redirect_uri: 'https://evil.example/',
        scope: 'openid offline_access',
        gatehouse_notes: '{"offline":true}',
      });
      const again = configIn(await follow(browser, changed, server.url));
      expect(again.callbackURL).to.equal(webRequest().redirect_uri);
      expect(again.internalOptions.scope).to.equal('openid profile email');
    });

    it('once, of any number of attempts at the same time, and not any more after it went on', async () => {
      const browser = createAgent(server);
      const config = configIn(await open(browser, webRequest()));
      const all = await Promise.all(Array.from({ length: 12 }, () => elsewhere(browser, config)));
      const statuses = all.map(({ status }) => status);
      expect(statuses.filter((status) => status === 302)).to.have.length(1);
      expect(statuses.filter((status) => status === 400)).to.have.length(11);
      // The request that waited before is not answered beside the new one.
      expect((await send(browser, config)).json()).to.include({ code: 'session_missing' });
      const [restarted] = all.filter(({ status }) => status === 302);
      const again = configIn(await follow(browser, restarted as Answer, server.url));
      expect(responseOf(await submit(browser, await send(browser, again)))).to.include({
        state: 'the-state',
      });
    });

    it('but not from another browser, whose login would be that of the one who began', async () => {
      const [browser, other] = [createAgent(server), createAgent(server)];
      const config = configIn(await open(browser, webRequest()));
      await open(other, webRequest());
      const refused = await elsewhere(other, config);
      expect(refused.status).to.equal(400);
      expect(refused.headers).not.to.have.property('location');
      // It goes on where it began.
      expect(responseOf(await submit(browser, await send(browser, config)))).to.have.property('code');
    });

    it('but not where the application has no login page of its own', async () => {
      const browser = createAgent(server);
      const { location } = await authorize(browser, { ...webRequest(), client_id: 'code-only' });
      const state = `gatehouse.waiting.${location.split('/').pop()}`;
      const restarted = await authorize(browser, { ...webRequest({ state }), client_id: 'code-only' });
      expect(restarted.status).to.equal(400);
      expect((await browser.get(location)).text).to.contain('name="password"');
    });

    it('but not that of another application, or one that has ended', async () => {
      const browser = createAgent(server);
      const config = configIn(await open(browser, webRequest()));
      const over = { client_id: 'spa', redirect_uri: SPA_CALLBACK };
      expect((await elsewhere(browser, config, over)).status).to.equal(400);
      await submit(browser, await send(browser, config));
      expect((await elsewhere(browser, config)).status).to.equal(400);
    });
  });
});

describe('guessing at a customized login page', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer({
      tenant: {
        ...tenant,
        attackProtection: {
          bruteForceProtection: { max_attempts: 3 },
          rateLimits: { login: { capacity: 6, perMinute: 1 } },
        },
      },
    });
  });
  after(() => server?.stop());

  const guess = async (username: string, password: string, browser = createAgent(server)) => {
    const page = await follow(browser, await authorize(browser, webRequest()), server.url);
    const { internalOptions } = configIn(page);
    const { state, _csrf } = internalOptions;
    return browser.request('/usernamepassword/login', {
      json: { client_id: 'web', state, _csrf, connection: 'users', username, password },
    });
  };

  it('locks an account as at other endpoints, whether or not it exists', async () => {
    for (const username of [USER.email, 'nobody@example.test']) {
      const codes: string[] = [];
      for (let i = 0; i < 4; i++) codes.push((await guess(username, `wrong-${i}`)).json().code);
      expect(codes, username).to.deep.equal([
        'invalid_user_password',
        'invalid_user_password',
        'invalid_user_password',
        'too_many_attempts',
      ]);
      const right = await guess(username, USER.password);
      expect(right.status).to.equal(429);
      expect(right.json()).to.include({
        name: 'AnomalyDetected',
        code: 'too_many_attempts',
        statusCode: 429,
      });
    }
  });

  it('does not lock out a browser in which the user has logged in before, from the same address', async () => {
    const email = 'neighbour@example.test';
    await server.users.create(databaseUser({ connection: 'users', email, password: USER.password }));
    const browser = createAgent(server);
    expect((await guess(email, USER.password, browser)).status).to.equal(200);
    for (let i = 0; i < 3; i++) await guess(email, 'wrong');
    expect((await guess(email, USER.password)).status).to.equal(429);
    expect((await guess(email, USER.password, browser)).status).to.equal(200);
  });

  it('is counted together with attempts at other endpoints', async () => {
    const username = 'limited@example.test';
    const application = createAgent(server);
    for (let i = 0; i < 2; i++) await guess(username, 'wrong');
    const answers = [];
    for (let i = 0; i < 6; i++) {
      answers.push(
        await application.request('/oauth/token', {
          json: {
            grant_type: 'http://auth0.com/oauth/grant-type/password-realm',
            client_id: 'web',
            client_secret: 'web-secret',
            realm: 'users',
            username,
            password: 'wrong',
          },
        }),
      );
    }
    expect(answers.at(-1)?.status).to.equal(429);
    expect((await guess(username, 'wrong')).json()).to.include({
      code: 'too_many_requests',
      statusCode: 429,
    });
  });
});

describe('a customized login page of a SAML application', () => {
  it('logs in to the service provider', async () => {
    const server = await startSamlServer([samlClient('sp')], { pages: tenant.pages });
    try {
      const browser = createAgent(server);
      const sp = await serviceProvider(server, 'sp');
      const address = await sp.getAuthorizeUrlAsync('relayed', undefined, {});
      const { clientID, internalOptions } = configIn(
        await follow(browser, await browser.get(address), server.url),
      );
      const { state, _csrf } = internalOptions;
      const sent = await browser.request('/usernamepassword/login', {
        json: { client_id: clientID, state, _csrf, username: USER.email, password: USER.password },
      });
      const { action, fields } = readForm(sent, 'wresult');
      const back = await follow(browser, await browser.request(action, { form: fields }), server.url);
      const { profile } = await sp.validatePostResponseAsync(posted(back).fields);
      expect(profile?.nameID).to.equal(USER.email);
    } finally {
      await server.stop();
    }
  });
});
