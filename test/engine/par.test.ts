// Pushed authorization requests (RFC 9126): POST /oauth/par, and /authorize with a `request_uri`.
import { expect } from 'chai';
import { SignJWT } from 'jose';
import { type Agent, createAgent, readForm } from '../support/agent.ts';
import { clientKey } from '../support/client-key.ts';
import {
  API,
  authorize,
  follow,
  logIn,
  payload,
  responseOf,
  SPA_CALLBACK,
  submitLogin,
  tenant,
  token,
  USER,
  WEB_CALLBACK,
  webRequest,
} from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';

const URN = 'urn:ietf:params:oauth:request_uri:';
const key = await clientKey('RS256');
const secret = { client_id: 'web', client_secret: 'web-secret' };

const clients = [
  ...tenant.clients,
  {
    client_id: 'pushes',
    name: 'Pushes all',
    client_secret: 'pushes-secret',
    callbacks: [WEB_CALLBACK],
    grant_types: ['authorization_code', 'refresh_token'],
    require_pushed_authorization_requests: true,
    par_request_expiry: 300,
  },
  {
    client_id: 'paged',
    name: 'With a login page of its own',
    client_secret: 'paged-secret',
    callbacks: [WEB_CALLBACK],
    grant_types: ['authorization_code'],
    custom_login_page: '<p>@@config@@</p>',
  },
  {
    client_id: 'keyed',
    name: 'With a key',
    callbacks: [WEB_CALLBACK],
    grant_types: ['authorization_code'],
    client_authentication_methods: { private_key_jwt: { credentials: [key.credential] } },
  },
];

const databases = tenant.databases.map((one) => ({
  ...one,
  enabled_clients: [...one.enabled_clients, 'pushes', 'paged', 'keyed'],
}));

describe('POST /oauth/par', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer({ tenant: { ...tenant, clients, databases } });
  });
  after(() => server.stop());

  const agent = () => createAgent(server);
  const push = (over: Record<string, string | undefined> = {}, who: Record<string, string> = secret) =>
    agent().request('/oauth/par', { form: { ...webRequest(over), ...who } });
  const pushed = async (over: Record<string, string | undefined> = {}, who = secret): Promise<string> => {
    const answer = await push(over, who);
    expect(answer.status, answer.text).to.equal(201);
    return answer.json().request_uri;
  };
  const go = (browser: Agent, request_uri: string, client_id = 'web') =>
    authorize(browser, { client_id, request_uri });

  it('answers 201 with a request_uri that is valid for 30 seconds, and forbids caching', async () => {
    const answer = await push();
    expect(answer.status).to.equal(201);
    expect(answer.json()).to.have.all.keys('request_uri', 'expires_in');
    expect(answer.json().request_uri).to.match(/^urn:ietf:params:oauth:request_uri:[\w-]{43}$/);
    expect(answer.json().expires_in).to.equal(30);
    expect(answer.headers['cache-control']).to.contain('no-store');
  });

  it('is announced in the metadata, unless the tenant switches it off', async () => {
    const metadata = (await agent().get('/.well-known/openid-configuration')).json();
    expect(metadata).to.include({
      pushed_authorization_request_endpoint: `${server.url}/oauth/par`,
      request_parameter_supported: true,
      request_uri_parameter_supported: false,
    });
    const settings = { ...tenant.tenant, pushed_authorization_requests_supported: false };
    const without = await startServer({ tenant: { ...tenant, tenant: settings } });
    try {
      const other = createAgent(without);
      const answer = await other.request('/oauth/par', { form: { ...webRequest(), ...secret } });
      expect(answer.status).to.equal(404);
      expect(answer.json().error).to.equal('endpoint_disabled');
      const known = (await other.get('/.well-known/openid-configuration')).json();
      expect(known).not.to.have.property('pushed_authorization_request_endpoint');
    } finally {
      await without.stop();
    }
  });

  it('leads to a code for the pushed parameters, whatever parameters are beside the request_uri', async () => {
    const browser = agent();
    const request_uri = await pushed({ audience: API, scope: 'openid read:things', state: 'pushed' });
    const beside = {
      scope: 'openid write:things',
      redirect_uri: SPA_CALLBACK,
      state: 'beside',
      audience: 'guarded-api',
    };
    const answer = await logIn(browser, server, { client_id: 'web', request_uri, ...beside });
    expect(answer.location.startsWith(WEB_CALLBACK)).to.equal(true);
    const { code, state, iss } = responseOf(answer);
    expect({ state, iss }).to.deep.equal({ state: 'pushed', iss: server.issuer });
    const tokens = (
      await token(browser, {
        grant_type: 'authorization_code',
        code: String(code),
        redirect_uri: WEB_CALLBACK,
        ...secret,
      })
    ).json();
    expect(payload(tokens.access_token)).to.deep.include({ scope: 'openid read:things' });
    expect(payload(tokens.access_token).aud).to.include(API);
  });

  describe('the client', () => {
    it('authenticates by its secret, in the body or by Basic, in a form or JSON', async () => {
      const basic = Buffer.from('web:web-secret').toString('base64');
      for (const options of [
        { form: { ...webRequest(), ...secret } },
        { json: { ...webRequest(), ...secret } },
      ]) {
        expect((await agent().request('/oauth/par', options)).status).to.equal(201);
      }
      const code = Buffer.from('code-only:code-secret').toString('base64');
      const { client_id: _, ...request } = webRequest();
      const headers = { authorization: `Basic ${code}` };
      const answer = await agent().request('/oauth/par', { form: request, headers });
      expect(answer.status, answer.text).to.equal(201);
      const browser = agent();
      const end = await logIn(browser, server, {
        client_id: 'code-only',
        request_uri: answer.json().request_uri,
      });
      expect(responseOf(end)).to.have.property('code');
      const other = { authorization: `Basic ${basic}` };
      const mixed = await agent().request('/oauth/par', {
        form: { ...webRequest({ client_id: 'code-only' }) },
        headers: other,
      });
      expect(mixed.status).to.be.oneOf([400, 401]);
    });

    it('authenticates by an assertion, once with each', async () => {
      const assertion = await new SignJWT({})
        .setProtectedHeader({ alg: 'RS256' })
        .setIssuer('keyed')
        .setSubject('keyed')
        .setAudience(server.issuer)
        .setJti(crypto.randomUUID())
        .setIssuedAt()
        .setExpirationTime('1m')
        .sign(key.privateKey);
      const form = {
        ...webRequest(),
        client_assertion: assertion,
        client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
      };
      const { client_id: _, ...nameless } = form as Record<string, string>;
      const answer = await agent().request('/oauth/par', { form: nameless });
      expect(answer.status, answer.text).to.equal(201);
      expect((await agent().request('/oauth/par', { form: nameless })).status).to.equal(401);
      expect((await agent().request('/oauth/par', { form })).status).to.be.oneOf([400, 401]);
    });

    const nobody: [string, Record<string, string>][] = [
      ['no client', { client_id: 'nobody', client_secret: 'web-secret' }],
      ['a client with a wrong secret', { client_id: 'web', client_secret: 'wrong-secret' }],
      ['a client without its secret', { client_id: 'web' }],
      ['a public client', { client_id: 'spa' }],
      ['a public client with a secret', { client_id: 'spa', client_secret: 'web-secret' }],
    ];
    for (const [who, credentials] of nobody) {
      it(`is refused: ${who}`, async () => {
        const answer = await push({}, credentials);
        expect(answer.status).to.equal(401);
        expect(answer.json()).to.deep.equal({ error: 'invalid_client', error_description: 'Unauthorized' });
      });
    }
  });

  describe('refuses at once, as /authorize would', () => {
    const refused: [string, Record<string, string | undefined>, string][] = [
      ["a redirect_uri that is not the application's", { redirect_uri: SPA_CALLBACK }, 'invalid_request'],
      ['no redirect_uri', { redirect_uri: undefined }, 'invalid_request'],
      ['an unknown response type', { response_type: 'dance' }, 'unsupported_response_type'],
      ['an unknown connection', { connection: 'nowhere' }, 'invalid_request'],
      ['an organization that is not allowed', { organization: 'org_acme' }, 'invalid_request'],
      ['an unknown API', { audience: 'https://nowhere.test' }, 'access_denied'],
      ['two APIs', { audience: API, resource: 'guarded-api' }, 'invalid_target'],
      ['a request_uri (RFC 9126 §2.1)', { request_uri: `${URN}x` }, 'invalid_request'],
      ['a request object without keys', { request: 'e30.e30.e30' }, 'request_not_supported'],
    ];
    for (const [what, over, error] of refused) {
      it(what, async () => {
        const answer = await push(over);
        expect(answer.status).to.be.oneOf([400, 403]);
        expect(answer.headers['content-type']).to.contain('application/json');
        expect(answer.json().error).to.equal(error);
      });
    }

    it('parameters that are sent twice, and bodies that are too long', async () => {
      const twice: [string, string][] = [
        ...Object.entries({ ...webRequest(), ...secret }),
        ['scope', 'openid'],
      ];
      expect((await agent().request('/oauth/par', { form: twice })).status).to.equal(400);
      expect((await push({ state: 'x'.repeat(5_000) })).status).to.equal(400);
      expect((await push({ state: 'x'.repeat(11_000) })).status).to.equal(413);
    });
  });

  describe('a request_uri', () => {
    it('yields one code, and is refused the second time', async () => {
      const browser = agent();
      await logIn(browser, server, webRequest());
      const request_uri = await pushed();
      expect(responseOf(await go(browser, request_uri))).to.have.property('code');
      const again = await go(browser, request_uri);
      expect(again.status).to.equal(400);
      expect(again.location).to.equal('');
    });

    it('is accepted from exactly one of many simultaneous browsers', async () => {
      const browsers = Array.from({ length: 6 }, agent);
      await Promise.all(browsers.map((browser) => logIn(browser, server, webRequest())));
      const request_uri = await pushed();
      const answers = await Promise.all(browsers.map((browser) => go(browser, request_uri)));
      expect(answers.filter(({ status }) => status === 302)).to.have.length(1);
      const strangers = Array.from({ length: 6 }, agent);
      const next = await pushed();
      const others = await Promise.all(strangers.map((browser) => go(browser, next)));
      expect(others.filter(({ status }) => status === 302)).to.have.length(1);
    });

    it('stays valid during a login that takes longer than its lifetime', async () => {
      const browser = agent();
      const page = await follow(browser, await go(browser, await pushed()), server.url);
      server.tick(20 * 60_000);
      const answer = await submitLogin(browser, server, page);
      expect(responseOf(answer)).to.have.property('code');
    });

    it('can be loaded again in its browser until it is answered, and only the last page can answer it', async () => {
      const browser = agent();
      const request_uri = await pushed();
      const first = await follow(browser, await go(browser, request_uri), server.url);
      const second = await follow(browser, await go(browser, request_uri), server.url);
      expect(second.status).to.equal(200);
      expect((await go(agent(), request_uri)).status).to.equal(400);
      expect(responseOf(await submitLogin(browser, server, second))).to.have.property('code');
      const late = await submitLogin(browser, server, first);
      expect(responseOf(late)).to.include({ error: 'invalid_request_uri' });
      expect((await go(browser, request_uri)).status).to.equal(400);
    });

    it('expires after 30 seconds, or the time that the application sets', async () => {
      const request_uri = await pushed();
      const answer = await push(
        { client_id: 'pushes' },
        { client_id: 'pushes', client_secret: 'pushes-secret' },
      );
      expect(answer.json().expires_in).to.equal(300);
      server.tick(31_000);
      expect((await go(agent(), request_uri)).status).to.equal(400);
      const longer = answer.json().request_uri;
      expect((await go(agent(), longer, 'pushes')).status).to.equal(302);
    });

    it('is refused to another client', async () => {
      const request_uri = await pushed();
      for (const client_id of ['code-only', 'spa', 'nobody', 'pushes']) {
        expect((await go(agent(), request_uri, client_id)).status, client_id).to.be.oneOf([400, 401]);
      }
      expect((await authorize(agent(), { request_uri })).status).to.equal(400);
      expect((await go(agent(), request_uri)).status).to.equal(302);
    });

    it('is refused when it is a URL to fetch, or was not issued', async () => {
      for (const request_uri of ['https://client.example.test/r', 'urn:example:x', 'x']) {
        const answer = await authorize(agent(), webRequest({ request_uri }));
        expect(responseOf(answer)).to.include({ error: 'request_uri_not_supported' });
      }
      for (const request_uri of [URN, `${URN}x`, `${URN}${'x'.repeat(43)}`, `${URN}../x`]) {
        const answer = await authorize(agent(), webRequest({ request_uri }));
        expect(answer.status).to.equal(400);
        expect(answer.location).to.equal('');
      }
      const both = await authorize(agent(), webRequest({ request_uri: await pushed(), request: 'x' }));
      expect(responseOf(both)).to.include({ error: 'invalid_request' });
    });
  });

  it('accepts the hosted service’s parameters: login_hint, screen_hint, connection', async () => {
    const seen = async (over: Record<string, string>) => {
      const browser = agent();
      return follow(browser, await go(browser, await pushed(over)), server.url);
    };
    expect((await seen({ login_hint: 'hint@example.test' })).text).to.contain('hint@example.test');
    expect((await seen({ screen_hint: 'signup' })).text).to.contain('/signup');
    const staff = await seen({ connection: 'staff' });
    expect(staff.status).to.equal(200);
    const silent = await go(agent(), await pushed({ prompt: 'none', response_mode: 'form_post' }));
    expect(silent.text).to.contain('value="login_required"');
  });

  it('can be restarted by a customized page, which cannot change pushed parameters', async () => {
    const browser = agent();
    const paged = { client_id: 'paged', client_secret: 'paged-secret' };
    const fixed = { ...paged, connection: 'users', login_hint: 'pushed@example.test' };
    const waiting = await go(browser, await pushed(fixed, paged), 'paged');
    const uid = waiting.location.split('/').pop();
    const state = `gatehouse.waiting.${uid}`;
    const changed = { client_id: 'paged', state, connection: 'staff', login_hint: 'changed@example.test' };
    const anew = await authorize(browser, changed);
    const page = await follow(browser, anew, server.url);
    const config = JSON.parse(Buffer.from(/<p>(.*)<\/p>/.exec(page.text)?.[1] ?? '', 'base64').toString());
    expect(config.internalOptions.login_hint).to.equal('pushed@example.test');
    expect(config.connection).to.equal('users');
    const { email: username, password } = USER;
    const sent = await browser.request('/usernamepassword/login', {
      json: { ...config.internalOptions, client_id: 'paged', connection: 'users', username, password },
      headers: { origin: server.url },
    });
    const { action, fields } = readForm(sent, 'wresult');
    const answer = await follow(browser, await browser.request(action, { form: fields }), server.url);
    expect(responseOf(answer)).to.include({ state: 'the-state' }).and.to.have.property('code');
  });

  it('keeps offline_access, and omits a missing nonce, as /authorize does', async () => {
    const browser = agent();
    const request_uri = await pushed({ scope: 'openid offline_access' });
    const { code } = responseOf(await logIn(browser, server, { client_id: 'web', request_uri }));
    const form = {
      grant_type: 'authorization_code',
      code: String(code),
      redirect_uri: WEB_CALLBACK,
      ...secret,
    };
    expect((await token(browser, form)).json()).to.have.property('refresh_token');
    const implicit = await pushed({ response_type: 'token' });
    const answer = await go(browser, implicit);
    const fragment = new URLSearchParams(new URL(answer.location).hash.slice(1));
    expect(payload(String(fragment.get('id_token')))).not.to.have.property('nonce');
  });

  describe('when it is required', () => {
    it('by the application, refuses every other request of it', async () => {
      const answer = await authorize(agent(), webRequest({ client_id: 'pushes' }));
      expect(responseOf(answer)).to.include({ error: 'invalid_request', state: 'the-state' });
      const answered = await push({}, { client_id: 'pushes', client_secret: 'pushes-secret' });
      const end = await logIn(agent(), server, {
        client_id: 'pushes',
        request_uri: answered.json().request_uri,
      });
      expect(responseOf(end)).to.have.property('code');
    });

    it('by the tenant, refuses every other request', async () => {
      const flags = { require_pushed_authorization_requests: true };
      const strict = await startServer({ tenant: { ...tenant, tenant: { ...tenant.tenant, flags } } });
      try {
        const browser = createAgent(strict);
        const answer = await authorize(browser, webRequest());
        expect(responseOf(answer)).to.include({ error: 'invalid_request' });
        const push = await browser.request('/oauth/par', { form: { ...webRequest(), ...secret } });
        const end = await logIn(browser, strict, { client_id: 'web', request_uri: push.json().request_uri });
        expect(responseOf(end)).to.have.property('code');
      } finally {
        await strict.stop();
      }
    });
  });
});
