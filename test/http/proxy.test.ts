// Behind a TLS proxy only forwarding headers of trusted proxies are used, and never the Host header.
import { once } from 'node:events';
import http from 'node:http';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { proxyTrust } from '../../src/http/server/proxy.ts';
import { createAgent } from '../support/agent.ts';
import { authorize, PASSWORD_REQUEST, pkce, spaRequest, tenant } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';

const HTTPS = { 'x-forwarded-proto': 'https' };

/** Sends a request as a proxy would. It does not use fetch, which sets the Host header itself. */
async function ask(
  server: TestServer,
  path: string,
  headers: Record<string, string>,
  form?: Record<string, string>,
) {
  const request = http.request(`http://127.0.0.1:${server.settings.port}${path}`, {
    method: form === undefined ? 'GET' : 'POST',
    headers: {
      ...headers,
      ...(form === undefined ? {} : { 'content-type': 'application/x-www-form-urlencoded' }),
    },
  });
  request.end(form === undefined ? undefined : new URLSearchParams(form).toString());
  const [answer] = (await once(request, 'response')) as [http.IncomingMessage];
  return { status: answer.statusCode, headers: answer.headers, text: await text(answer) };
}

describe('behind a TLS proxy', () => {
  const start = (trusted: string) =>
    startServer({
      tenant,
      env: { TLS: 'proxy', TRUSTED_PROXIES: trusted, BASE_URL: 'https://id.example.test' },
    });

  it('answers a request that the proxy received by HTTPS, with the public URL', async () => {
    const server = await start('127.0.0.1');
    try {
      const answer = await ask(server, '/.well-known/openid-configuration', HTTPS);
      expect(answer.status).to.equal(200);
      expect(JSON.parse(answer.text)).to.include({
        issuer: 'https://id.example.test/',
        token_endpoint: 'https://id.example.test/oauth/token',
      });
      const page = await ask(
        server,
        `/authorize?${new URLSearchParams(spaRequest(pkce().challenge))}`,
        HTTPS,
      );
      expect(page.status).to.equal(302);
      expect(page.headers['set-cookie']?.every((cookie) => /; secure/i.test(cookie))).to.equal(true);
    } finally {
      await server.stop();
    }
  });

  for (const [what, trusted, headers] of [
    ['plain HTTP', '127.0.0.1', {}],
    ['a request that the proxy received by HTTP', '127.0.0.1', { 'x-forwarded-proto': 'http' }],
    ['HTTPS claimed by an address that is not a trusted proxy', '10.0.0.1', HTTPS],
  ] as const) {
    it(`rejects ${what}`, async () => {
      const server = await start(trusted);
      try {
        const answer = await ask(server, '/.well-known/openid-configuration', headers);
        expect(answer.status).to.equal(403);
        expect(JSON.parse(answer.text)).to.have.property('error', 'invalid_request');
      } finally {
        await server.stop();
      }
    });
  }

  for (const [protocols, forwardedFor, status, what] of [
    ['https, http', '203.0.113.7', 403, 'a list to which the one proxy added what it saw: HTTP'],
    ['http, https', '203.0.113.7', 200, 'a list to which the one proxy added what it saw: HTTPS'],
    ['https, http', '203.0.113.7, 10.1.2.3', 200, 'the value of the outer of two proxies'],
    [
      'https, http, http',
      '203.0.113.7, 10.1.2.3',
      403,
      'the value of the outer of two proxies, not of the client',
    ],
    ['https, http', '10.9.9.9, 203.0.113.7', 403, 'no more than one proxy where the next hop is not trusted'],
    ['https', '203.0.113.7, 10.1.2.3', 200, 'one value of two proxies'],
    ['HTTPS', '203.0.113.7', 200, 'a scheme in capitals (RFC 3986 §3.1)'],
    ['https,', '203.0.113.7', 403, 'no empty value'],
  ] as const) {
    it(`takes ${what} (X-Forwarded-Proto: ${protocols})`, async () => {
      const server = await start('127.0.0.1,10.0.0.0/8');
      try {
        const headers = { 'x-forwarded-proto': protocols, 'x-forwarded-for': forwardedFor };
        expect((await ask(server, '/.well-known/openid-configuration', headers)).status).to.equal(status);
      } finally {
        await server.stop();
      }
    });
  }

  it('uses no forged Host header in discovery, redirects or pages', async () => {
    const server = await start('127.0.0.1');
    const forged = {
      ...HTTPS,
      host: 'evil.example',
      'x-forwarded-host': 'evil.example',
      'x-forwarded-port': '666',
      'x-forwarded-prefix': '/evil-prefix',
      forwarded: 'host=evil.example;proto=https',
    };
    try {
      const discovery = await ask(server, '/.well-known/openid-configuration', forged);
      const path = `/authorize?${new URLSearchParams(spaRequest(pkce().challenge))}`;
      const redirect = await ask(server, path, forged);
      const login = new URL(redirect.headers.location ?? '', 'https://id.example.test');
      const cookie = (redirect.headers['set-cookie'] ?? []).map((line) => line.split(';')[0]).join('; ');
      const page = await ask(server, login.pathname + login.search, { ...forged, cookie });
      expect([discovery.status, redirect.status, page.status]).to.deep.equal([200, 302, 200]);
      expect(login.origin).to.equal('https://id.example.test');
      for (const { headers, text } of [discovery, redirect, page]) {
        expect(JSON.stringify(headers) + text).not.to.match(/evil[.-]|:666/);
      }
    } finally {
      await server.stop();
    }
  });

  for (const [what, forwardedFor, ip] of [
    ['the last hop that is not a trusted proxy', '1.1.1.1, 203.0.113.7, 10.1.2.3', '203.0.113.7'],
    ['the first hop, where all are trusted', '10.1.1.1, 10.1.2.3', '10.1.1.1'],
    ['the nearest known hop, when one before it is not an address', '1.1.1.1, unknown, 10.1.2.3', '10.1.2.3'],
    ['the nearest known hop, when one before it is empty', '1.1.1.1, , 10.1.2.3', '10.1.2.3'],
    ['the proxy, when the last hop is empty', '1.1.1.1, ', '127.0.0.1'],
    ['the proxy, when the header is empty', '', '127.0.0.1'],
    ['without the port that a gateway adds', '203.0.113.7:51008', '203.0.113.7'],
    ['of IPv6 without brackets and port', '[2001:db8::7]:443', '2001:db8::7'],
    ['of IPv6 without brackets', '[2001:db8::7]', '2001:db8::7'],
    [
      'of the hop before trusted proxies with ports',
      '1.1.1.1, 203.0.113.7:51008, 10.1.2.3:80',
      '203.0.113.7',
    ],
    ['the proxy, when a port follows something else', '1.1.1.1, 1.2.3:51008', '127.0.0.1'],
    ['the proxy, when what is in brackets is no IPv6 address', '[1.2.3.4]:443', '127.0.0.1'],
    ['the proxy, when a hop has no port after its colon', '1.1.1.1, 203.0.113.7:', '127.0.0.1'],
  ] as const) {
    it(`logs as the address of the client ${what}`, async () => {
      expect(await loginAddress({ ...HTTPS, 'x-forwarded-for': forwardedFor })).to.equal(ip);
    });
  }

  /** Returns the client's address in the log event of a login. */
  async function loginAddress(headers: Record<string, string>): Promise<unknown> {
    const server = await start('127.0.0.1,10.0.0.0/8');
    try {
      const form = {
        ...PASSWORD_REQUEST,
      };
      await ask(server, '/oauth/token', headers, form);
      await server.tenant.close();
      const { records } = await server.store.collection('logs').list();
      const logins = records.filter(({ type }) => type === 's');
      expect(logins).to.have.length(1);
      return logins[0]?.ip;
    } finally {
      await server.stop();
    }
  }
});

describe('the list of trusted proxies', () => {
  const isTrusted = proxyTrust(['192.0.2.1', '10.0.0.0/8', '2001:db8::/32']);
  for (const [address, trusted] of [
    ['192.0.2.1', true],
    ['::ffff:192.0.2.1', true],
    ['10.255.0.1', true],
    ['2001:db8::1', true],
    ['192.0.2.2', false],
    ['11.0.0.1', false],
    ['2001:db9::1', false],
    ['', false],
    ['not an address', false],
  ] as const) {
    it(`${trusted ? 'contains' : 'does not contain'} ${address || 'an empty text'}`, () => {
      expect(isTrusted(address)).to.equal(trusted);
    });
  }
});

describe('a forged Host header', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer({ tenant });
  });
  after(() => server.stop());
  const forged = {
    host: 'evil.example',
    'x-forwarded-host': 'evil.example',
    'x-forwarded-proto': 'http',
    forwarded: 'host=evil.example',
  };

  it('does not appear in discovery', async () => {
    const answer = await createAgent(server).get('/.well-known/openid-configuration', forged);
    expect(answer.text).not.to.contain('evil.example');
    expect(answer.json().issuer).to.equal(server.issuer);
  });

  it('does not appear in redirects, pages or stored requests', async () => {
    const agent = createAgent(server);
    const answer = await agent.request(`/authorize?${new URLSearchParams(spaRequest(pkce().challenge))}`, {
      headers: forged,
    });
    expect(answer.headers.location).not.to.contain('evil.example');
    const page = await agent.get(String(answer.headers.location), forged);
    expect(page.text).not.to.contain('evil.example');
    const { records } = await server.store.collection('artifacts').list();
    expect(JSON.stringify(records)).not.to.contain('evil.example');
    await authorize(agent, spaRequest(pkce().challenge));
  });

  it('and forged forwarding headers do not change the logged address when there is no proxy', async () => {
    await createAgent(server).request('/oauth/token', {
      headers: { 'x-forwarded-for': '203.0.113.7', forwarded: 'for=203.0.113.7' },
      json: {
        ...PASSWORD_REQUEST,
      },
    });
    await server.tenant.close();
    const { records } = await server.store.collection('logs').list();
    expect(records.map(({ type }) => type)).to.include('s');
    expect(new Set(records.map(({ ip }) => ip))).to.deep.equal(new Set(['127.0.0.1']));
  });
});
