// Hostile and meaningless input for requests.
import { SPA_CALLBACK } from './flows.ts';

/** Values that are known to break parsers, and valid ones. */
export const TEXTS = [
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

/** All parameters that the server reads, and some that it does not. */
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

export const BODIES = [
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

export const HEADERS: [string, string[]][] = [
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

/** Returns random fields with random values. */
export function fieldsOf(some: <T>(of: readonly T[]) => T, random: () => number): Fields {
  const value = (): unknown => {
    const kind = random();
    if (kind < 0.75) return some(TEXTS);
    return some<unknown>([null, 1, -0.5, true, [], {}, ['a', 'b'], [null], { a: { b: [] } }, [[1]]]);
  };
  return Array.from({ length: Math.floor(random() * 14) }, () => [some(NAMES), value()]);
}

/** Encodes fields as a form or a query. */
export function encodeAsForm(fields: Fields): string {
  return fields
    .map(([name, value]) => {
      const text = typeof value === 'string' ? value : JSON.stringify(value);
      // Some values stay unescaped, as some clients send them.
      return /^[%&=\w]+$/.test(text)
        ? `${name}=${text}`
        : `${encodeURIComponent(name)}=${encodeURIComponent(text)}`;
    })
    .join('&');
}
