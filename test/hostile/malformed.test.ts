// What strangers send that is no request: each is answered with a fault of theirs, and the process lives on.
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { createAgent } from '../support/agent.ts';
import { SPA_CALLBACK, spaRequest, tenant, webRequest } from '../support/flows.ts';
import { createRequester, type Requester } from '../support/many.ts';
import { connect } from '../support/raw.ts';
import { seeded } from '../support/seeded.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { UNLIMITED } from '../support/unlimited.ts';

const NESTED = '['.repeat(20_000) + ']'.repeat(20_000);

describe('malformed input', () => {
  let server: TestServer;
  let requester: Requester;
  before(async () => {
    server = await startServer({ tenant: { ...tenant, ...UNLIMITED } });
    requester = createRequester(server);
  });
  after(async () => {
    requester.close();
    await server.stop();
  });
  const agent = () => createAgent(server);
  const posts = () =>
    server.tenant.routes
      .filter(({ methods }) => methods.includes('POST'))
      .map(({ path }) => path.replaceAll(/:[a-z_]+/g, 'nobody'));
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

  it('is none: a target in absolute form', async () => {
    const connection = await connect(server);
    connection.send(`GET ${server.url}/healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`);
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

  it('in a body that is not encoded as it says is refused at every POST', async () => {
    const json = '{"client_id":"spa"}';
    for (const path of posts()) {
      for (const [encoding, body] of [
        ['gzip', json],
        ['deflate', json],
        ['br', json],
        ['zstd', json],
        ['gzip', gzipSync(json).toString('latin1')],
        ['gzip, gzip', json],
        ['nonsense', json],
      ] as const) {
        const headers = { 'content-type': 'application/json', 'content-encoding': encoding };
        const answer = await requester.ask('POST', path, { body, headers });
        expect(answer.status, `${path} ${encoding}`).to.be.within(400, 499);
      }
    }
  });

  it('in deeply nested JSON is refused at every POST', async () => {
    const headers = { 'content-type': 'application/json' };
    for (const path of posts()) {
      for (const body of [
        NESTED,
        `{"client_id":${NESTED}}`,
        `${'{"state":'.repeat(5_000)}1${'}'.repeat(5_000)}`,
      ]) {
        const answer = await requester.ask('POST', path, { body, headers });
        expect(answer.status, `${path} ${body.slice(0, 20)}`).to.equal(400);
      }
      const odd = '{"resource":[[["x"]]],"state":[{}],"scope":[null]}';
      expect((await requester.ask('POST', path, { body: odd, headers })).status, path).to.be.below(500);
    }
  });

  for (const [what, head] of [
    ['in chunks', 'Transfer-Encoding: chunked'],
    ['of a length that it says', 'Content-Length: 10000000'],
  ] as const) {
    it(`in a body too long, ${what}, is answered and the connection closed at once`, async () => {
      for (const path of posts()) {
        const connection = await connect(server);
        connection.send(
          `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n${head}\r\n\r\n`,
        );
        if (what === 'in chunks') connection.send(`10000\r\n${'x'.repeat(0x10000)}\r\n`);
        const answer = await connection.closed(2_000);
        expect(statusLine(answer), path).to.equal('HTTP/1.1 413 Payload Too Large');
        expect(answer, path).to.match(/\r\nconnection: close\r\n/i);
        connection.end();
      }
    });
  }

  it('in a body too long reaches a client that sends all of it before it listens', async () => {
    for (let i = 0; i < 5; i++) {
      const answer = await agent().request('/oauth/token', { json: { state: 'x'.repeat(1_000_000) } });
      expect(answer.status).to.equal(413);
    }
  });

  it('of any kind, at any request, is answered, by no 5xx and no error of ours', async () => {
    const random = seeded(16);
    const before = server.logged().length;
    const some = <T>(of: readonly T[]): T => of[Math.floor(random() * of.length)] as T;
    for (const { path, methods } of server.tenant.routes.filter(
      (route) => !route.path.startsWith('/assets/'),
    )) {
      for (let round = 0; round < 12; round++) {
        const target = path.replaceAll(/:[a-z_]+/g, () => encodeURIComponent(some(TEXTS)) || 'x');
        const query = encodeAsForm(fieldsOf(some, random));
        const method = some([...methods]);
        const headers = Object.fromEntries(
          HEADERS.filter(() => random() < 0.3).map(([name, values]) => [name, some(values)]),
        );
        const made = fieldsOf(some, random);
        const body =
          method === 'POST'
            ? some([encodeAsForm(made), JSON.stringify(Object.fromEntries(made)), some(BODIES)])
            : '';
        const answer = await requester.ask(method, `${target}?${query}`, { body, headers });
        const shown = `${method} ${target}?${query} ${JSON.stringify(headers)} ${body.slice(0, 300)}`;
        expect(answer.status, shown).to.be.within(200, 499);
      }
    }
    expect(server.logged().slice(before)).not.to.match(/"level":(50|60|"error"|"fatal")/);
    expect((await agent().get('/readyz')).status).to.equal(200);
  }).timeout(60_000);
});

const TEXTS = [
  '',
  ' ',
  'null',
  'undefined',
  'true',
  '0',
  '-1',
  '1e999',
  'NaN',
  '%',
  '%ff',
  '%00',
  '\0',
  '\ufeff',
  '\ufffd',
  '\u202e',
  '{}',
  '[]',
  '{"',
  '"',
  "'",
  '<script>',
  '../../etc/passwd',
  '__proto__',
  'constructor',
  'toString',
  'urn:gatehouse:api:%ff',
  'http://[::1',
  'https://example.test/',
  'javascript:alert(1)',
  'mailto:a@b',
  'https://a:b@c:99999/',
  'a.b.c',
  'eyJhbGciOiJub25lIn0.e30.',
  'eyJhbGciOiJIUzI1NiJ9.bnVsbA.AAAA',
  'Bearer',
  'auth0|x',
  'ada@example.test',
  'ada@@example.test',
  '+49',
  '\u{1f600}'.repeat(50),
  'x'.repeat(5_000),
  'é'.repeat(500),
  'spa',
  'web',
  'users',
  'email',
  'sms',
  'code',
  'none',
  'query',
  'form_post',
  'web_message',
  'openid',
  'openid offline_access',
  'web-secret',
  'authorization_code',
  'refresh_token',
  'client_credentials',
  'password',
  'http://auth0.com/oauth/grant-type/password-realm',
  'http://auth0.com/oauth/grant-type/passwordless/otp',
  'http://auth0.com/oauth/grant-type/mfa-otp',
  'http://localhost:3001/callback',
  SPA_CALLBACK,
  'PHNhbWxwOkF1dGhuUmVxdWVzdC8+',
];

/** Every parameter that anything reads, and some that nothing does. */
const NAMES = [
  ...[
    'client_id',
    'client_secret',
    'client_assertion',
    'client_assertion_type',
    'grant_type',
    'code',
    'code_verifier',
  ],
  ...[
    'redirect_uri',
    'response_type',
    'response_mode',
    'scope',
    'state',
    'nonce',
    'prompt',
    'max_age',
    'ui_locales',
  ],
  ...[
    'id_token_hint',
    'login_hint',
    'acr_values',
    'claims',
    'request',
    'request_uri',
    'registration',
    'display',
  ],
  ...['audience', 'resource', 'connection', 'organization', 'login_ticket', 'screen_hint', 'gatehouse_notes'],
  ...[
    'code_challenge',
    'code_challenge_method',
    'username',
    'password',
    'realm',
    'otp',
    'email',
    'phone_number',
  ],
  ...['verification_code', 'mfa_token', 'oob_code', 'binding_code', 'recovery_code', 'challenge_type'],
  ...['authenticator_types', 'oob_channels', 'authenticator_id', 'token', 'token_type_hint', 'refresh_token'],
  ...[
    'access_token',
    'ticket',
    'decision',
    'session',
    '_csrf',
    'authParams',
    'send',
    'user_metadata',
    'returnTo',
  ],
  ...[
    'SAMLRequest',
    'SAMLResponse',
    'RelayState',
    'SigAlg',
    'Signature',
    'SAMLEncoding',
    'post_logout_redirect_uri',
  ],
  ...[
    'logout_hint',
    'credential_type',
    'address',
    'assertion',
    'to',
    'federated',
    '__proto__',
    'x[y]',
    'x[]',
    '',
  ],
];

const BODIES = [
  '',
  '{',
  '[]',
  '[1,2]',
  'null',
  '"x"',
  '{"__proto__":{"admin":true}}',
  '{"constructor":{"prototype":{}}}',
  '{"a":1e400}',
  '{"\\ud800":1}',
  '{"client_id":"\\u0000"}',
  '\0\0\0',
  '=&=&=',
  '%=%&%ff=%ff',
  'a'.repeat(50_000),
  '&'.repeat(50_000),
  'a=1&'.repeat(10_000),
  '{"authParams":{"scope":{"a":[]}},"client_id":"spa","connection":"email","email":"a@b.test"}',
];

const HEADERS: [string, string[]][] = [
  [
    'content-type',
    [
      'application/json',
      'application/json; charset=utf-16',
      'application/x-www-form-urlencoded',
      'application/x-www-form-urlencoded; charset=nonsense',
      'multipart/form-data; boundary=x',
      'text/plain',
      'nonsense',
      '/',
      ';',
    ],
  ],
  [
    'authorization',
    [
      'Bearer',
      'Bearer x',
      'Bearer a.b.c',
      'Basic',
      'Basic x',
      'Basic Og==',
      'Basic JTo=',
      'Device x',
      'Digest x="',
    ],
  ],
  [
    'cookie',
    [
      '__Host-gatehouse_session=x',
      '__Secure-gatehouse_interaction=%',
      '__Host-gatehouse_csrf=x; __Host-gatehouse_csrf=y',
      '=; ;;=',
      'a="',
    ],
  ],
  ['accept', ['text/html', '*/*', 'nonsense', ';q=2', 'application/json;q=0']],
  ['accept-language', ['de', 'x-klingon', '*;q=', 'a'.repeat(1000)]],
  ['origin', ['null', 'http://localhost:5173', 'http://[::1', 'x']],
  ['referer', ['null', 'x', 'http://[::1']],
  ['x-request-language', ['de', '..', '\u00ff']],
  ['auth0-client', ['e30', 'x', '%']],
  ['auth0-forwarded-for', ['1.2.3.4', 'x', '::1, ::2']],
  ['x-forwarded-for', ['1.2.3.4', 'x']],
  ['if-none-match', ['*', '"x"']],
  ['expect', ['nonsense']],
  ['host', ['x', 'localhost:x', '[', '']],
];

type Fields = [string, unknown][];

function fieldsOf(some: <T>(of: readonly T[]) => T, random: () => number): Fields {
  const value = (): unknown => {
    const kind = random();
    if (kind < 0.75) return some(TEXTS);
    return some<unknown>([null, 1, -0.5, true, [], {}, ['a', 'b'], [null], { a: { b: [] } }, [[1]]]);
  };
  return Array.from({ length: Math.floor(random() * 14) }, () => [some(NAMES), value()]);
}

function encodeAsForm(fields: Fields): string {
  return fields
    .map(([name, value]) => {
      const text = typeof value === 'string' ? value : JSON.stringify(value);
      // Some are left as they are: not every client escapes.
      return /^[%&=\w]+$/.test(text)
        ? `${name}=${text}`
        : `${encodeURIComponent(name)}=${encodeURIComponent(text)}`;
    })
    .join('&');
}
