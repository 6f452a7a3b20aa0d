import { expect } from 'chai';
import { createAgent } from './support/agent.ts';
import {
  authorize,
  follow,
  logIn,
  pkce,
  spaRequest,
  spaTokens,
  tenant,
  token,
  USER,
  webRequest,
} from './support/flows.ts';
import { startServer, type TestServer } from './support/server.ts';

describe('the server', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer({ tenant });
  });
  after(() => server.stop());
  const agent = () => createAgent(server);

  describe('discovery', () => {
    for (const path of ['openid-configuration', 'oauth-authorization-server']) {
      it(`serves /.well-known/${path} to any origin`, async () => {
        const answer = await agent().get(`/.well-known/${path}`, { origin: 'https://anywhere.example' });
        expect(answer.status).to.equal(200);
        expect(answer.headers['content-type']).to.contain('application/json');
        expect(answer.headers['access-control-allow-origin']).to.equal('*');
        expect(answer.json()).to.deep.include({
          issuer: server.issuer,
          authorization_endpoint: `${server.issuer}authorize`,
          token_endpoint: `${server.issuer}oauth/token`,
          userinfo_endpoint: `${server.issuer}userinfo`,
          revocation_endpoint: `${server.issuer}oauth/revoke`,
          jwks_uri: `${server.issuer}.well-known/jwks.json`,
          mfa_challenge_endpoint: `${server.issuer}mfa/challenge`,
          code_challenge_methods_supported: ['S256'],
          subject_types_supported: ['public'],
        });
        expect(answer.json().id_token_signing_alg_values_supported).to.include('RS256');
        expect(answer.json().token_endpoint_auth_methods_supported).to.include.members([
          'none',
          'client_secret_post',
          'client_secret_basic',
          'private_key_jwt',
        ]);
        expect(answer.json().scopes_supported).to.include.members([
          'openid',
          'profile',
          'email',
          'phone',
          'address',
          'offline_access',
        ]);
      });
    }

    it('names only endpoints that exist', async () => {
      const document = (await agent().get('/.well-known/openid-configuration')).json();
      for (const [name, url] of Object.entries(document).filter(([key]) => key.endsWith('_endpoint'))) {
        const { status } = await agent().request(new URL(String(url)).pathname, { form: {} });
        expect(status, name).not.to.equal(404);
      }
    });

    it('publishes the current and the next signing key', async () => {
      const { keys } = (await agent().get('/.well-known/jwks.json')).json();
      expect(keys).to.have.length(2);
      expect(new Set(keys.map((key: { kid: string }) => key.kid)).size).to.equal(2);
    });
  });

  describe('other origins', () => {
    const preflight = (path: string, origin: string) =>
      agent().request(path, {
        method: 'OPTIONS',
        headers: {
          origin,
          'access-control-request-method': 'POST',
          'access-control-request-headers': 'content-type,auth0-client',
        },
      });

    for (const path of ['/oauth/token', '/oauth/revoke', '/userinfo', '/dbconnections/signup']) {
      it(`may call ${path} if they belong to an application`, async () => {
        const answer = await preflight(path, 'http://localhost:5173');
        expect(answer.status).to.equal(204);
        expect(answer.headers).to.include({
          'access-control-allow-origin': 'http://localhost:5173',
          'access-control-allow-credentials': 'true',
        });
        expect(answer.headers['access-control-allow-headers']).to.contain('auth0-client');
        // Of tracing libraries, which add them to every request of a page.
        for (const name of ['traceparent', 'tracestate', 'baggage', 'sentry-trace'])
          expect(String(answer.headers['access-control-allow-headers']).split(',')).to.include(name);
      });

      it(`may not call ${path} if they belong to no application`, async () => {
        for (const origin of [
          'https://evil.example',
          'null',
          'http://localhost:5173.evil.example',
          'https://localhost:5173',
        ]) {
          const answer = await preflight(path, origin);
          expect(answer.headers, origin).not.to.have.property('access-control-allow-origin');
        }
      });
    }

    it('cannot read the answer to a request without preflight', async () => {
      const answer = await agent().request('/oauth/token', {
        form: {
          grant_type: 'client_credentials',
          client_id: 'm2m',
          client_secret: 'm2m-secret',
          audience: 'x',
        },
        headers: { origin: 'https://evil.example' },
      });
      expect(answer.headers).not.to.have.property('access-control-allow-origin');
    });
  });

  describe('security headers', () => {
    it('of pages forbid framing and foreign scripts', async () => {
      const page = await follow(agent(), await authorize(agent(), spaRequest(pkce().challenge)), server.url);
      const any = await agent().get('/');
      for (const answer of [page, any]) {
        expect(answer.headers['content-security-policy'])
          .to.contain("frame-ancestors 'none'")
          .and.contain("default-src 'none'");
        expect(answer.headers['content-security-policy']).not.to.contain('unsafe');
        expect(answer.headers).to.include({ 'x-frame-options': 'DENY', 'x-content-type-options': 'nosniff' });
      }
    });

    it('are set on answers other than pages', async () => {
      const answer = await agent().get('/.well-known/jwks.json');
      expect(answer.headers).to.include({ 'x-content-type-options': 'nosniff' });
      expect(answer.headers['content-security-policy']).to.contain("default-src 'none'");
    });

    it('do not set HSTS for localhost, which would affect its other ports', async () => {
      expect((await agent().get('/healthz')).headers).not.to.have.property('strict-transport-security');
    });

    it('let the login form redirect to the application, and that to anywhere', async () => {
      const browser = agent();
      const page = await follow(browser, await authorize(browser, webRequest()), server.url);
      expect(page.headers['content-security-policy'])
        .to.contain("default-src 'none'")
        .and.not.to.contain('form-action');
    });
  });

  describe('forms', () => {
    const loginPage = async () => {
      const browser = agent();
      const page = await follow(browser, await authorize(browser, spaRequest(pkce().challenge)), server.url);
      const path = new URL(page.text.match(/action="([^"]+)"/)?.[1] ?? '', server.url).pathname;
      const csrf = /name="_csrf" value="([^"]+)"/.exec(page.text)?.[1] ?? '';
      return { browser, path, form: { _csrf: csrf, username: USER.email, password: USER.password } };
    };

    it('are accepted with their token', async () => {
      const { browser, path, form } = await loginPage();
      expect((await browser.request(path, { form })).status).to.equal(302);
    });

    for (const [what, change, headers] of [
      ['without a token', { _csrf: '' }, {}],
      ['with another token', { _csrf: 'A'.repeat(43) }, {}],
      ['from another origin', {}, { origin: 'https://evil.example' }],
      ['from another site, as the browser says', {}, { 'sec-fetch-site': 'cross-site' }],
    ] as const) {
      it(`are refused ${what}`, async () => {
        const { browser, path, form } = await loginPage();
        const answer = await browser.request(path, { form: { ...form, ...change }, headers });
        expect(answer.status).to.equal(403);
        expect(answer.location).to.equal('');
      });
    }

    it('are refused in a browser that did not request the page', async () => {
      const { path, form } = await loginPage();
      const answer = await agent().request(path, { form });
      expect(answer.status).to.equal(400);
      expect(answer.location).to.equal('');
    });
  });

  it('answers health and readiness probes', async () => {
    expect((await agent().get('/healthz')).json()).to.deep.equal({ status: 'ok' });
    expect((await agent().get('/readyz')).json()).to.deep.equal({ status: 'ok' });
  });

  it('answers 404 for unknown paths', async () => {
    expect((await agent().get('/nowhere')).status).to.equal(404);
    expect((await agent().get('/u/nobody')).status).to.equal(400);
    expect((await agent().get('/assets/../package.json')).status).to.equal(404);
  });

  it('records events of logins and failures, without secrets in events or log', async () => {
    const browser = agent();
    const tokens = await spaTokens(browser, server, { scope: 'openid offline_access' });
    await token(agent(), {
      grant_type: 'password',
      client_id: 'web',
      client_secret: 'web-secret',
      username: USER.email,
      password: 'Wrong-Guess-1',
    });
    await token(agent(), {
      grant_type: 'password',
      client_id: 'web',
      client_secret: 'web-secret',
      username: 'nobody@example.test',
      password: 'Wrong-Guess-2',
    });
    await logIn(agent(), server, webRequest(), { email: USER.email, password: 'Wrong-Guess-3' });
    await server.tenant.close();
    const { records } = await server.store.collection('logs').list({ limit: 500 });
    const types = records.map(({ type }) => type);
    expect(types).to.include.members(['s', 'fp', 'fu']);
    const kept = JSON.stringify(records) + server.logged();
    for (const secret of [
      USER.password,
      'Wrong-Guess-1',
      'Wrong-Guess-2',
      'Wrong-Guess-3',
      'web-secret',
      tokens.access_token,
      tokens.refresh_token,
      tokens.id_token,
    ]) {
      expect(kept.includes(secret), `${secret.slice(0, 12)}… is not in the log`).to.equal(false);
    }
  });

  it('shares nothing with another tenant in the same process', async () => {
    const other = await startServer({
      tenant: { ...tenant, tenant: { ...tenant.tenant, friendly_name: 'Other' } },
    });
    try {
      const tokens = await spaTokens(agent(), server);
      const answer = await createAgent(other).get('/userinfo', {
        authorization: `Bearer ${tokens.access_token}`,
      });
      expect(answer.status).to.equal(401);
      expect(other.issuer).not.to.equal(server.issuer);
    } finally {
      await other.stop();
    }
  });
});
