// Malformed input of strangers: each gets a 4xx answer, and the process lives on.
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import type { Route } from '../../src/http/server/router.ts';
import { createAgent } from '../support/agent.ts';
import { SPA_CALLBACK, spaRequest, webRequest } from '../support/flows.ts';
import { connect } from '../support/raw.ts';
import { type Requester, unlimitedServer } from '../support/requester.ts';
import type { TestServer } from '../support/server.ts';

const NESTED = '['.repeat(20_000) + ']'.repeat(20_000);

describe('malformed input', () => {
  const started = unlimitedServer();
  let server: TestServer;
  let requester: Requester;
  before(() => {
    ({ server, requester } = started());
  });
  const agent = () => createAgent(server);
  const postRoutes = () => server.tenant.routes.filter(({ methods }) => methods.includes('POST'));
  const pathOf = ({ path }: { path: string }) => path.replaceAll(/:[a-z_]+/g, 'nobody');
  const posts = () => postRoutes().map(pathOf);
  /**
   * One path for each way in which bodies are read and errors are shown. What depends on the body alone is tried there
   * with every body, and at all other paths with one of each kind.
   */
  const ways = () => {
    const wayOf = (route: Route) =>
      JSON.stringify([
        route.path.split('/')[1],
        route.bodies,
        route.body !== undefined,
        String(route.errors),
      ]);
    return new Set(new Map(postRoutes().map((route) => [wayOf(route), pathOf(route)])).values());
  };
  /** Larger than any body that a POST accepts, bytes. Answers of identity providers may be larger than others. */
  const longerThanTaken = (path: string) => (path === '/login/callback' ? 0x50000 : 0x10000);
  /** Console forms that may be larger, because they are read for administrators only. */
  const isLarge = (path: string) =>
    path.startsWith('/console/') &&
    postRoutes().some((one) => pathOf(one) === path && one.bodies !== undefined);
  /** Routes that do not read a stranger's body. */
  const isManaged = (path: string) =>
    path.startsWith('/api/v2/') || path.startsWith('/me/v1/') || isLarge(path);
  const statusLine = (answer: string) => answer.slice(0, answer.indexOf('\r\n'));

  for (const target of [
    'http://[::1',
    'http://[::1/',
    'http://',
    '*',
    '/#x',
    '/authorize#x',
    'authorize',
    '?x',
    '\\x',
  ]) {
    it(`in the request target is refused: ${target}`, async () => {
      const connection = await connect(server);
      connection.send(`GET ${target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`);
      expect(statusLine(await connection.closed(2_000))).to.equal('HTTP/1.1 400 Bad Request');
    });
  }

  it('does not include a target in absolute form, which is answered', async () => {
    const connection = await connect(server);
    const { host } = new URL(server.url);
    connection.send(`GET ${server.url}/healthz HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
    expect(statusLine(await connection.closed(2_000))).to.equal('HTTP/1.1 200 OK');
  });

  for (const [what, fields] of [
    ['a lone surrogate', { audience: '\ud800' }],
    ['a lone surrogate at the end', { resource: 'https://api.example.test/\udfff' }],
  ] as const) {
    it(`in the audience is refused: ${what}`, async () => {
      const json = {
        grant_type: 'client_credentials',
        client_id: 'm2m',
        client_secret: 'm2m-secret',
        ...fields,
      };
      expect((await agent().request('/oauth/token', { json })).status).to.equal(400);
      const bytes = Buffer.from(new URLSearchParams(spaRequest('x'.repeat(43))).toString());
      const form = `${bytes}&audience=%ED%A0%80`;
      const headers = { 'content-type': 'application/x-www-form-urlencoded' };
      const asked = await agent().request('/authorize', { method: 'POST', body: form, headers });
      expect(asked.status).to.equal(302);
      expect(new URL(asked.location).origin).to.equal(new URL(SPA_CALLBACK).origin);
    });
  }

  for (const resource of ['urn:gatehouse:api:%ff', 'urn:gatehouse:api:%', '%', '%ff', 'urn:', '#', ' ']) {
    it(`in the resource is refused: ${resource}`, async () => {
      for (const path of ['/authorize', '/authorize?prompt=none']) {
        const query = new URLSearchParams(webRequest({ resource }));
        const answer = await agent().get(`${path}${path.includes('?') ? '&' : '?'}${query}`);
        expect(answer.status).to.equal(302);
        expect(new URL(answer.location).searchParams.get('error')).to.be.oneOf([
          'access_denied',
          'invalid_target',
        ]);
      }
    });
  }

  it('in a body with another encoding than declared is refused at every POST', async () => {
    const json = '{"client_id":"spa"}';
    const each = ways();
    for (const path of posts()) {
      const every = [
        ['gzip', json],
        ['nonsense', json],
        ['deflate', json],
        ['br', json],
        ['zstd', json],
        ['gzip', gzipSync(json).toString('latin1')],
        ['gzip, gzip', json],
      ] as const;
      for (const [encoding, body] of each.has(path) ? every : every.slice(0, 1)) {
        const headers = { 'content-type': 'application/json', 'content-encoding': encoding };
        const answer = await requester.ask('POST', path, { body, headers });
        expect(answer.status, `${path} ${encoding}`).to.be.within(400, 499);
      }
    }
  });

  it('in deeply nested JSON is refused at every POST', async () => {
    const headers = { 'content-type': 'application/json' };
    const each = ways();
    for (const path of posts()) {
      const every = [`{"client_id":${NESTED}}`, NESTED, `${'{"state":'.repeat(5_000)}1${'}'.repeat(5_000)}`];
      for (const body of each.has(path) ? every : every.slice(0, 1)) {
        const answer = await requester.ask('POST', path, { body, headers });
        // The Management API reads nothing of a stranger's (test/management/http.test.ts has the caller's).
        // Pushed requests and registrations are shorter than these: they are not read at all.
        const isShort = path === '/oauth/par' || path === '/oidc/register';
        const expected = isShort ? 413 : isManaged(path) ? 401 : 400;
        expect(answer.status, `${path} ${body.slice(0, 20)}`).to.equal(expected);
      }
      const odd = '{"resource":[[["x"]]],"state":[{}],"scope":[null]}';
      expect((await requester.ask('POST', path, { body: odd, headers })).status, path).to.be.below(500);
    }
  });

  for (const [what, head] of [
    ['in chunks', 'Transfer-Encoding: chunked'],
    ['with a Content-Length', 'Content-Length: 10000000'],
  ] as const) {
    it(`in a body too long, ${what}, is answered and the connection closed at once`, async () => {
      for (const path of ways()) {
        const connection = await connect(server);
        connection.send(
          `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n${head}\r\n\r\n`,
        );
        if (what === 'in chunks') {
          const length = longerThanTaken(path);
          connection.send(`${length.toString(16)}\r\n${'x'.repeat(length)}\r\n`);
        }
        const answer = await connection.closed(2_000);
        const refusal = isManaged(path) ? '401 Unauthorized' : '413 Payload Too Large';
        expect(statusLine(answer), path).to.equal(`HTTP/1.1 ${refusal}`);
        expect(answer, path).to.match(/\r\nconnection: close\r\n/i);
        connection.end();
      }
    });
  }

  it('in a body too long gets an answer even if the client sends all of it before it reads', async () => {
    for (let i = 0; i < 5; i++) {
      const answer = await agent().request('/oauth/token', { json: { state: 'x'.repeat(1_000_000) } });
      expect(answer.status).to.equal(413);
    }
  });
});
