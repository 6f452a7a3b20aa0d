// The headers of signed JWTs, at every reader: none takes critical extensions (RFC 7515 §4.1.11), nor another kind of JWT
// (RFC 8725 §3.11).
import { createHash, generateKeyPairSync, randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { devicesOf } from '../factors/device.ts';
import { callsOf, tenant as factorTenant } from '../factors/tenant.ts';
import { CIBA_GRANT } from '../grants/tenant.ts';
import { type Answer, createAgent } from '../support/agent.ts';
import {
  API,
  authorize,
  follow,
  logIn,
  responseOf,
  tenant,
  token,
  WEB_CALLBACK,
  webRequest,
} from '../support/flows.ts';
import { type OpenIdProvider, startOpenIdProvider } from '../support/openid-provider.ts';
import { rawJwt } from '../support/raw-jwt.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { tenantWith } from '../support/tenant.ts';

const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const jwk = publicKey.export({ format: 'jwk' });
const credential = { alg: 'ES256', kid: 'k1', jwk };
const now = () => Math.floor(Date.now() / 1000);
const HS256_SECRET = 'hs256-secret-of-thirty-two-bytes!';

/** Headers that no reader takes. */
const REFUSED: [string, object][] = [
  ['b64 as the critical extension', { crit: ['b64'], b64: true }],
  ['b64 false (RFC 7797 §7)', { crit: ['b64'], b64: false }],
  ['an unknown critical extension', { crit: ['urn:x'], 'urn:x': 1 }],
  ['an empty list of critical extensions', { crit: [] }],
  ['critical extensions that are no list', { crit: 'b64', b64: true }],
  ['the type of logout tokens', { typ: 'logout+jwt' }],
  ['a type with its whole name', { typ: 'application/Secevent+JWT' }],
  ['a type that is no text', { typ: ['JWT'] }],
];

describe('the header of a JWT', () => {
  let server: TestServer;
  let provider: OpenIdProvider;
  /** Replaces the header of the provider's ID tokens. */
  let providerHeader: object = {};
  before(async () => {
    provider = await startOpenIdProvider({
      kid: 'k1',
      alg: 'ES256',
      privateKey: privateKey as never,
      jwk: { ...jwk, kid: 'k1', alg: 'ES256', use: 'sig' },
    });
    provider.sign = async (more) =>
      rawJwt(
        privateKey,
        { kid: 'k1', ...providerHeader },
        { iss: provider.url, sub: 'grace', aud: 'gatehouse', iat: now(), exp: now() + 300, ...more },
      );
    const client = (client_id: string, more: object) => ({
      client_id,
      name: client_id,
      app_type: 'regular_web',
      callbacks: [WEB_CALLBACK],
      grant_types: ['authorization_code', 'client_credentials', CIBA_GRANT],
      ...more,
    });
    server = await startServer({
      tenant: tenantWith({
        add: { clientGrants: [{ client_id: 'asserting', audience: API, scope: ['read:things'] }] },
        enable: ['signing', 'hs256'],
        clients: [
          ...tenant.clients.filter(({ client_id }) => client_id !== 'hs256'),
          client('asserting', {
            client_authentication_methods: { private_key_jwt: { credentials: [credential] } },
          }),
          client('signing', {
            client_secret: 'signing-secret',
            signed_request_object: { required: false, credentials: [credential] },
            async_approval_notification_channels: ['email'],
          }),
          client('hs256', { client_secret: HS256_SECRET, jwt_configuration: { alg: 'HS256' } }),
        ],
        connections: [
          {
            name: 'acme',
            strategy: 'oidc',
            enabled_clients: ['web'],
            options: {
              type: 'back_channel',
              discovery_url: `${provider.url}/.well-known/openid-configuration`,
              client_id: 'gatehouse',
              client_secret: 'upstream-secret-of-thirty-two-bytes!',
              id_token_signed_response_algs: ['ES256'],
              global_token_revocation_jwt_iss: provider.url,
              global_token_revocation_jwt_sub: 'the-app',
            },
          },
        ],
      }),
    });
  });
  after(async () => {
    await server?.stop();
    await provider?.stop();
  });

  const agent = () => createAgent(server);
  const succeeded = ({ status, text }: Answer) => (status < 300 ? 'accepted' : `${status} ${text}`);
  const assertionOf = (header: object, over: object = {}) =>
    rawJwt(privateKey, header, {
      iss: 'asserting',
      sub: 'asserting',
      aud: server.issuer,
      jti: randomUUID(),
      iat: now(),
      exp: now() + 60,
      ...over,
    });
  const dpopOf = (header: object, path: string, method = 'POST', accessToken?: string) =>
    rawJwt(
      privateKey,
      { typ: 'dpop+jwt', jwk, ...header },
      {
        jti: randomUUID(),
        htm: method,
        htu: `${server.url}${path}`,
        iat: now(),
        ...(accessToken && { ath: createHash('sha256').update(accessToken).digest('base64url') }),
      },
    );
  const requestOf = (header: object, client_id: string, claims: object) =>
    rawJwt(privateKey, header, {
      iss: client_id,
      aud: server.issuer,
      iat: now(),
      nbf: now(),
      exp: now() + 60,
      jti: randomUUID(),
      ...claims,
    });
  const isAnswered = ({ location, status, text }: Answer) =>
    location !== '' && !location.includes('error=')
      ? 'accepted'
      : `${status} ${location} ${text.slice(0, 200)}`;
  const idToken = async (client_id: string, client_secret: string) => {
    const browser = agent();
    const { code = '' } = responseOf(await logIn(browser, server, webRequest({ client_id })));
    const answer = await token(browser, {
      grant_type: 'authorization_code',
      client_id,
      client_secret,
      code,
      redirect_uri: WEB_CALLBACK,
    });
    return {
      browser,
      claims: JSON.parse(Buffer.from(answer.json().id_token.split('.')[1], 'base64url').toString()),
    };
  };

  /** Each reader: sends a JWT with a header, and tells whether it was accepted. */
  const READERS: [string, (header: object) => Promise<string>][] = [
    [
      'of a client assertion',
      async (header) =>
        succeeded(
          await token(agent(), {
            grant_type: 'client_credentials',
            audience: API,
            client_assertion: assertionOf(header),
            client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
          }),
        ),
    ],
    [
      'of a client assertion at our own endpoints',
      async (header) =>
        succeeded(
          await agent().request('/oauth/revoke', {
            form: {
              token: 'nothing',
              client_assertion: assertionOf(header),
              client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
            },
          }),
        ),
    ],
    [
      'of a request object',
      async (header) => {
        const request = requestOf(header, 'signing', webRequest({ client_id: 'signing' }));
        return isAnswered(await authorize(agent(), { client_id: 'signing', request }));
      },
    ],
    [
      'of a request object that is pushed',
      async (header) => {
        const request = requestOf(header, 'signing', webRequest({ client_id: 'signing' }));
        const form = { client_id: 'signing', client_secret: 'signing-secret', request };
        return succeeded(await agent().request('/oauth/par', { form }));
      },
    ],
    [
      'of a signed authentication request (CIBA)',
      async (header) => {
        const [user] = await server.users.withEmail('ada@example.test');
        const login_hint = JSON.stringify({ format: 'iss_sub', iss: server.issuer, sub: user?.id });
        const request = requestOf(header, 'signing', {
          scope: 'openid',
          login_hint,
          binding_message: 'Payment',
        });
        const form = { client_id: 'signing', client_secret: 'signing-secret', request };
        return succeeded(await agent().request('/bc-authorize', { form }));
      },
    ],
    [
      'of an id_token_hint at /authorize',
      async (header) => {
        const { browser, claims } = await idToken('hs256', HS256_SECRET);
        const id_token_hint = rawJwt(HS256_SECRET, header, claims);
        return isAnswered(
          await authorize(browser, webRequest({ client_id: 'hs256', prompt: 'none', id_token_hint })),
        );
      },
    ],
    [
      'of an id_token_hint at /oidc/logout',
      async (header) => {
        const { browser, claims } = await idToken('hs256', HS256_SECRET);
        const id_token_hint = rawJwt(HS256_SECRET, header, claims);
        const answer = await browser.get(`/oidc/logout?${new URLSearchParams({ id_token_hint })}`);
        // Without a valid hint, the user is asked.
        return answer.text.includes('/oidc/logout/confirm') || answer.status >= 400
          ? String(answer.status)
          : 'accepted';
      },
    ],
    [
      "of a provider's ID token",
      async (header) => {
        providerHeader = header;
        const browser = agent();
        const away = await authorize(browser, webRequest({ connection: 'acme' }));
        const back = (await fetch(away.location, { redirect: 'manual' })).headers.get('location') ?? '';
        return isAnswered(await follow(browser, await browser.get(back), server.url));
      },
    ],
  ];

  for (const [reader, send] of READERS) {
    it(`${reader} is refused with critical extensions, and with the type of another kind`, async () => {
      for (const header of [{}, { typ: 'JWT' }, { typ: 'jwt' }])
        expect(await send(header), JSON.stringify(header)).to.equal('accepted');
      for (const [what, header] of REFUSED) expect(await send(header), what).not.to.equal('accepted');
    });
  }

  it('of a DPoP proof is refused with critical extensions, and with another type', async () => {
    const ask = {
      grant_type: 'client_credentials',
      client_id: 'm2m',
      client_secret: 'm2m-secret',
      audience: API,
    };
    const atToken = async (header: object) =>
      succeeded(
        await agent().request('/oauth/token', {
          json: ask,
          headers: { dpop: dpopOf(header, '/oauth/token') },
        }),
      );
    const browser = agent();
    const { code = '' } = responseOf(await logIn(browser, server, webRequest()));
    const form = {
      grant_type: 'authorization_code',
      client_id: 'web',
      client_secret: 'web-secret',
      code,
      redirect_uri: WEB_CALLBACK,
    };
    const tokens = await browser.request('/oauth/token', {
      form,
      headers: { dpop: dpopOf({}, '/oauth/token') },
    });
    const { access_token } = tokens.json();
    const atUserinfo = async (header: object) =>
      succeeded(
        await agent().get('/userinfo', {
          authorization: `DPoP ${access_token}`,
          dpop: dpopOf(header, '/userinfo', 'GET', access_token),
        }),
      );
    for (const send of [atToken, atUserinfo]) {
      expect(await send({})).to.equal('accepted');
      for (const [what, header] of [...REFUSED, ['no kind', { typ: 'JWT' }] as const])
        expect(await send(header), what).to.match(/invalid_dpop_proof|^401/);
    }
  });

  it('of a revocation by a provider is refused with critical extensions, and with another type', async () => {
    const path = '/oauth/global-token-revocation/connection/acme';
    const send = async (header: object) => {
      const claims = {
        iss: provider.url,
        sub: 'the-app',
        aud: `${server.url}${path}`,
        jti: randomUUID(),
        iat: now(),
        exp: now() + 300,
      };
      const jwt = rawJwt(privateKey, { kid: 'k1', typ: 'global-token-revocation+jwt', ...header }, claims);
      const json = { sub_id: { format: 'iss_sub', iss: provider.url, sub: 'nobody' } };
      return (await agent().request(path, { json, headers: { authorization: `Bearer ${jwt}` } })).status;
    };
    expect(await send({})).to.equal(404);
    for (const [what, header] of REFUSED) expect(await send(header), what).to.equal(401);
  });
});

describe("the header of a device's JWT", () => {
  let server: TestServer;
  before(async () => {
    server = await startServer({ tenant: factorTenant });
  });
  after(() => server.stop());

  it('is refused with critical extensions, and with the type of another kind', async () => {
    const calls = callsOf(server);
    const devices = devicesOf(() => ({ server, calls, someone: () => 'mfa-0@example.test' }));
    const { device } = await devices.enrolled();
    const send = async (header: object) => {
      const jwt = rawJwt(device.key, header, { sub: device.id, aud: server.url, iat: now() });
      return (await devices.requests(device, jwt)).status;
    };
    for (const header of [{}, { typ: 'JWT' }]) expect(await send(header)).to.equal(200);
    for (const [what, header] of REFUSED) expect(await send(header), what).to.equal(401);
  });
});
