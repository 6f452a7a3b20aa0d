// What all requests below /api/v2 have in common.
import { expect } from 'chai';
import { undescribedParameters } from '../support/openapi.ts';
import type { TestServer } from '../support/server.ts';
import { managementToken, startManaged } from './support.ts';

const DAY = 86_400_000;

describe('HTTP below /api/v2', () => {
  let server: TestServer;
  let token: string;

  before(async () => {
    server = await startManaged();
    token = await managementToken(server);
  });
  after(() => server.stop());

  const send = (method: string, path: string, body?: string, type = 'application/json', bearer = token) =>
    fetch(`${server.url}/api/v2${path}`, {
      method,
      headers: {
        ...(bearer === '' ? {} : { authorization: `Bearer ${bearer}` }),
        ...(body === undefined ? {} : { 'content-type': type }),
      },
      ...(body === undefined ? {} : { body }),
    });

  for (const [method, path, status] of [
    ['GET', '/', 404],
    ['GET', '/nothing', 404],
    ['GET', '/clients/', 404],
    ['GET', '/clients/a/b/c', 404],
    ['POST', '/nothing', 404],
    ['GET', '/clients/%ff', 404],
    ['GET', '/users//roles', 404],
    ['PUT', '/clients', 405],
    ['DELETE', '/guardian/factors', 405],
  ] as const) {
    it(`answers ${status} to ${method} ${path} in the API's error format`, async () => {
      for (const accept of ['application/json', 'text/html']) {
        const response = await fetch(`${server.url}/api/v2${path}`, { method, headers: { accept } });
        expect(response.status).to.equal(status);
        expect(response.headers.get('content-type')).to.contain('application/json');
        expect(response.headers.get('x-ratelimit-limit')).to.equal('300');
        const body = (await response.json()) as { statusCode: number; error: string; message: string };
        expect(body.statusCode).to.equal(status);
        expect(body.error).to.equal(status === 404 ? 'Not Found' : 'Method Not Allowed');
        expect(body.message).to.be.a('string').that.is.not.empty;
      }
    });
  }

  it('rejects deeply nested JSON, even from a caller who may write', async () => {
    for (const body of [
      '['.repeat(5_000),
      `${'['.repeat(100)}${']'.repeat(100)}`,
      `{"name":${'[1,'.repeat(5_000)}`,
    ]) {
      const response = await send('POST', '/clients', body);
      expect(response.status).to.equal(400);
      expect(await response.json()).to.include({ statusCode: 400, error: 'Bad Request' });
    }
  });

  it('serves its OpenAPI document, which describes every parameter, in development to this machine alone', async () => {
    const response = await fetch(`${server.url}/api/v2/openapi.json`);
    const api = (await response.json()) as { openapi: string; paths: Record<string, object> };
    expect(api.openapi).to.equal('3.1.0');
    expect(Object.keys(api.paths)).to.include('/clients/{id}');
    expect(undescribedParameters(api)).to.deep.equal([]);
    const foreign = await fetch(`${server.url}/api/v2/openapi.json`, {
      headers: { 'x-forwarded-for': '203.0.113.7' },
    });
    expect(foreign.status).to.equal(404);
  });

  it('does not answer for paths that only begin with the same characters', async () => {
    const response = await fetch(`${server.url}/api/v2x`, { headers: { accept: 'application/json' } });
    expect(await response.json()).to.have.keys('error', 'error_description');
  });

  describe('request bodies', () => {
    const html = (length: number) => '<html>'.padEnd(length, 'x');
    const template = (length: number) =>
      JSON.stringify({
        template: 'verify_email',
        body: html(length),
        from: 'a@example.test',
        subject: 'Hello',
        syntax: 'liquid',
        enabled: true,
      });
    const page = (length: number) =>
      `<html><head>{%- auth0:head -%}</head><body>{%- auth0:widget -%}${'x'.repeat(length)}</body></html>`;

    it('may be as large as the call allows, and are answered 413 beyond', async () => {
      expect((await send('POST', '/email-templates', template(1_000_000))).status).to.equal(200);
      for (const [method, path, body, type] of [
        ['POST', '/email-templates', template(4_200_000), 'application/json'],
        ['POST', '/organizations', JSON.stringify({ name: html(400_000) }), 'application/json'],
        ['PUT', '/branding/templates/universal-login', page(620_000), 'text/html'],
      ] as const) {
        const response = await send(method, path, body, type);
        expect(response.status, path).to.equal(413);
        expect(await response.json()).to.include({ statusCode: 413, error: 'Payload Too Large' });
      }
    });

    const code = `// ${'"x"\n'.repeat(24_999)}`.slice(0, 100_000);
    for (const [path, body] of [
      ['/actions/actions', { name: 'long', code, supported_triggers: [{ id: 'post-login' }] }],
      ['/actions/modules', { name: 'long', code }],
      ['/rules', { name: 'long', script: code }],
      ['/hooks', { name: 'long', script: code, triggerId: 'pre-user-registration' }],
      [
        '/connections',
        {
          name: 'long',
          strategy: 'oauth2',
          options: { scripts: { fetchUserProfile: `function f() {${code}\n}` } },
        },
      ],
    ] as const) {
      it(`may hold code of 100,000 characters: POST ${path}`, async () => {
        const response = await send('POST', path, JSON.stringify(body));
        expect(response.status, await response.text()).to.be.oneOf([200, 201]);
      });
    }

    it('are not read if the caller is not authorized', async () => {
      for (const [bearer, status] of [
        ['', 401],
        [await managementToken(server, 'read:clients'), 403],
      ] as const) {
        const response = await send(
          'POST',
          '/email-templates',
          template(1_300_000),
          'application/json',
          bearer,
        );
        expect(response.status).to.equal(status);
      }
    });

    it('may be HTML for the page template, or an object that contains it', async () => {
      const path = '/branding/templates/universal-login';
      expect((await send('PUT', path, page(10), 'text/html; charset=utf-8')).status).to.equal(201);
      expect(await (await send('GET', path)).json()).to.deep.equal({ body: page(10) });
      expect((await send('PUT', path, JSON.stringify({ template: page(20) }))).status).to.equal(204);
      expect(await (await send('GET', path)).json()).to.deep.equal({ body: page(20) });
      expect((await send('PUT', path, page(102_400), 'text/html')).status).to.equal(400);
      expect((await send('PUT', path, '', 'text/html')).status).to.equal(400);
      expect((await send('DELETE', path)).status).to.equal(204);
    });

    it('may be forms', async () => {
      const form = 'name=Formed&app_type=spa&client_metadata[plan]=gold';
      const made = await send('POST', '/clients', form, 'application/x-www-form-urlencoded');
      expect(made.status).to.equal(201);
      expect(await made.json()).to.deep.include({ name: 'Formed', client_metadata: { plan: 'gold' } });
    });

    for (const [what, body] of [
      ['not JSON', '{'],
      ['a list', '[]'],
      ['a text', '"x"'],
      ['a member called __proto__', '{"name":"x","__proto__":{"global":true}}'],
      ['nested too deeply', `{"name":"x","client_metadata":${'{"a":'.repeat(60)}1${'}'.repeat(60)}}`],
    ] as const) {
      it(`are rejected with 400 if they are ${what}`, async () => {
        const response = await send('POST', '/clients', body);
        expect(response.status).to.equal(400);
        expect(await response.json()).to.include({ statusCode: 400, errorCode: 'invalid_body' });
      });
    }
  });

  it('finds ids with slashes and bars, encoded once or twice', async () => {
    const identifier = 'https://api.example.test/';
    for (const id of [encodeURIComponent(identifier), encodeURIComponent(encodeURIComponent(identifier))]) {
      const response = await send('GET', `/resource-servers/${id}`);
      expect(await response.json(), id).to.include({ identifier });
    }
    const made = await send(
      'POST',
      '/users',
      JSON.stringify({
        connection: 'Username-Password-Authentication',
        email: 'bar@example.test',
        password: 'A-long-Passw0rd!',
      }),
    );
    const { user_id: id } = (await made.json()) as { user_id: string };
    expect(id).to.match(/^auth0\|/);
    const found = await send('GET', `/users/${encodeURIComponent(id)}`);
    expect(await found.json()).to.include({ user_id: id });
  });

  it('returns an API in a form that can be sent back, as published clients do', async () => {
    const asked = { identifier: 'https://whole.example.test/', name: 'Whole' };
    const made = await send('POST', '/resource-servers', JSON.stringify(asked));
    const { id, identifier, ...members } = (await made.json()) as Record<string, unknown>;
    expect(identifier).to.equal(asked.identifier);
    const body = JSON.stringify({ ...members, name: 'Changed' });
    const changed = await send('PATCH', `/resource-servers/${id}`, body);
    expect(await changed.json()).to.deep.equal({ ...members, id, identifier, name: 'Changed' });
    expect((await send('DELETE', `/resource-servers/${id}`)).status).to.equal(204);
  });

  it('rejects an expired token', async () => {
    const old = await managementToken(server);
    server.tick(DAY + 1_000);
    const response = await send('GET', '/tenants/settings', undefined, undefined, old);
    expect(response.status).to.equal(401);
    expect(response.headers.get('www-authenticate')).to.contain('Bearer');
    expect(await response.json()).to.deep.equal({
      statusCode: 401,
      error: 'Unauthorized',
      message: 'Expired token received for JSON Web Token validation',
    });
    token = await managementToken(server);
  });

  // In a suite of its own, which runs after all others: it leaves nothing of the limit.
  describe('the rate limit', () => {
    it('sends rate limit headers, and Retry-After when the limit is exceeded', async () => {
      const first = await send('GET', '/tenants/settings');
      expect(first.status).to.equal(200);
      const limit = Number(first.headers.get('x-ratelimit-limit'));
      expect(Number(first.headers.get('x-ratelimit-remaining'))).to.be.within(0, limit - 1);
      expect(first.headers.get('x-ratelimit-reset')).to.match(/^\d{10}$/);
      let last = first;
      for (let count = 0; count <= 3 * limit && last.status !== 429; count++) {
        last = await send('GET', '/nothing', undefined, undefined, '');
      }
      expect(last.status).to.equal(429);
      // On a slow machine, one request may have become available again.
      let refused = await send('GET', '/tenants/settings');
      for (let count = 0; count <= 3 * limit && refused.status !== 429; count++) {
        refused = await send('GET', '/tenants/settings');
      }
      expect(await refused.json()).to.deep.equal({
        statusCode: 429,
        error: 'Too Many Requests',
        message: 'Global limit has been reached',
        errorCode: 'too_many_requests',
      });
      expect(refused.headers.get('retry-after')).to.match(/^[1-9]\d*$/);
      expect(refused.headers.get('x-ratelimit-reset')).to.match(/^\d{10}$/);
      expect(refused.headers.get('x-ratelimit-remaining')).to.equal('0');
      expect(refused.headers.get('x-ratelimit-limit')).to.equal(String(limit));
    });
  });
});
