// Clients that authenticate by assertions (private_key_jwt, RFC 7523), at every endpoint that accepts them.
import { createHmac, randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { exportJWK, exportSPKI, importJWK, SignJWT } from 'jose';
import { readTenant, TenantFault } from '../../src/tenant/load.ts';
import { type Answer, createAgent } from '../support/agent.ts';
import { type ClientKeyPair, clientKey } from '../support/client-key.ts';
import { API, tenant, USER } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';

const TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';
const DAY = 86_400_000;
const CALLBACK = 'https://app.example.test/callback';
const ALGORITHMS = ['RS256', 'PS256', 'ES256', 'EdDSA'];

describe('client assertions', () => {
  let server: TestServer;
  const keys = new Map<string, ClientKeyPair>();
  let next: ClientKeyPair;
  let ending: ClientKeyPair;

  const client = (client_id: string, credentials: object[], over: object = {}) => ({
    client_id,
    name: client_id,
    app_type: 'regular_web',
    grant_types: ['authorization_code', 'client_credentials', 'password', 'refresh_token'],
    client_authentication_methods: { private_key_jwt: { credentials } },
    ...over,
  });

  const nameless = ({ credential: { kid: _, ...rest } }: ClientKeyPair) => rest;

  before(async () => {
    for (const alg of ALGORITHMS) keys.set(alg, await clientKey(alg));
    next = await clientKey('ES256');
    ending = await clientKey('ES256');
    const one = key('ES256').credential;
    const clients = [
      ...ALGORITHMS.map((alg) => client(alg, [key(alg).credential], { callbacks: [CALLBACK] })),
      client('rotating', [
        { ...next.credential, kid: 'next' },
        { ...ending.credential, kid: 'ending', expires_at: new Date(Date.now() + DAY).toISOString() },
        { ...one, kid: 'past', expires_at: new Date(Date.now() - DAY).toISOString() },
      ]),
      client('nameless', [nameless(next), nameless(ending)]),
      client('half-named', [nameless(next), { ...ending.credential, kid: 'ending' }]),
      {
        client_id: 'with-secret',
        name: 'with-secret',
        app_type: 'regular_web',
        client_secret: 'its-own-secret',
        token_endpoint_auth_method: 'client_secret_post',
        callbacks: [CALLBACK],
        grant_types: ['authorization_code'],
      },
      client('fapi2', [one], {
        compliance_level: 'fapi2_sp_pkj_mtls',
        grant_types: ['client_credentials'],
        jwt_configuration: { alg: 'PS256' },
      }),
    ];
    server = await startServer({
      tenant: {
        ...tenant,
        attackProtection: { rateLimits: { login: { capacity: 1, perMinute: 1 } } },
        clients: [...tenant.clients, ...clients],
        databases: [{ name: 'users', enabled_clients: ['ES256'] }],
        users: [],
        clientGrants: [
          ...tenant.clientGrants,
          ...clients.map(({ client_id }) => ({ client_id, audience: API, scope: ['read:things'] })),
        ],
      },
    });
  });
  after(() => server?.stop());

  const key = (alg: string): ClientKeyPair => keys.get(alg) as ClientKeyPair;
  const now = () => Math.floor(Date.now() / 1000);
  const sign = (
    client_id: string,
    { alg, privateKey }: ClientKeyPair,
    claims: object = {},
    header: object = {},
  ) =>
    new SignJWT({
      iss: client_id,
      sub: client_id,
      aud: server.issuer,
      jti: randomUUID(),
      iat: now(),
      exp: now() + 60,
      ...claims,
    })
      .setProtectedHeader({ alg, ...header })
      .sign(privateKey);
  const send = (path: string, assertion: string, fields: object): Promise<Answer> =>
    createAgent(server).request(path, {
      json: { client_assertion: assertion, client_assertion_type: TYPE, ...fields },
    });
  const token = (assertion: string) =>
    send('/oauth/token', assertion, { grant_type: 'client_credentials', audience: API });
  const statusOf = async (client_id: string, pair: ClientKeyPair, claims?: object, header?: object) =>
    (await token(await sign(client_id, pair, claims, header))).status;

  for (const alg of ALGORITHMS) {
    it(`are accepted with ${alg}`, async () => {
      expect(await statusOf(alg, key(alg))).to.equal(200);
    });
  }

  for (const [path, fields, status] of [
    ['/oauth/token', { grant_type: 'client_credentials', audience: API }, 200],
    ['/oauth/revoke', { token: 'nothing' }, 200],
    ['/oauth/introspect', { token: 'nothing' }, 403],
    ['/oauth/par', { response_type: 'code', client_id: 'ES256' }, 400],
    [
      '/passwordless/start',
      { client_id: 'ES256', connection: 'email', email: USER.email, send: 'code' },
      400,
    ],
    ['/mfa/challenge', { client_id: 'ES256', mfa_token: 'nothing', challenge_type: 'otp' }, 403],
  ] as const) {
    it(`are accepted once at ${path}, where assertions by another key or of too long a lifetime are refused`, async () => {
      const assertion = await sign('ES256', key('ES256'));
      const first = await send(path, assertion, fields);
      expect(first.status, first.text).to.equal(status);
      if (status !== 200) expect(first.json().error).not.to.equal('invalid_client');
      for (const other of [
        assertion,
        await sign('ES256', next),
        await sign('ES256', key('ES256'), { exp: now() + 3600 }),
      ]) {
        const { status: refused, text } = await send(path, other, fields);
        expect({ refused, error: (JSON.parse(text) as { error: string }).error }, path).to.deep.equal({
          refused: 401,
          error: 'invalid_client',
        });
      }
    });
  }

  it('are accepted once when the same one arrives in simultaneous requests', async () => {
    const assertion = await sign('ES256', key('ES256'));
    const all = await Promise.all(Array.from({ length: 8 }, () => token(assertion)));
    expect(all.filter(({ status }) => status === 200)).to.have.length(1);
  });

  it('authenticate a pushed request that also has a client_secret (auth0-python sends None)', async () => {
    const push = async (assertion: string) =>
      (
        await createAgent(server).request('/oauth/par', {
          form: {
            client_id: 'ES256',
            client_secret: 'None',
            client_assertion: assertion,
            client_assertion_type: TYPE,
            response_type: 'code',
            redirect_uri: CALLBACK,
          },
        })
      ).status;
    expect(await push(await sign('ES256', key('ES256')))).to.equal(201);
    expect(await push(await sign('ES256', next))).to.equal(401);
  });

  it('are ignored when empty, and the client_secret authenticates the request (RFC 6749 §3.1)', async () => {
    const form = {
      client_id: 'with-secret',
      client_secret: 'its-own-secret',
      client_assertion: '',
      client_assertion_type: '',
      response_type: 'code',
      redirect_uri: CALLBACK,
    };
    expect((await createAgent(server).request('/oauth/par', { form })).status).to.equal(201);
    const wrong = { ...form, client_secret: 'another-secret' };
    expect((await createAgent(server).request('/oauth/par', { form: wrong })).status).to.equal(401);
  });

  it('are accepted when dated a few seconds ahead (FAPI 2.0 Security Profile §5.3.2.1)', async () => {
    const ahead = { nbf: now() + 8, iat: now() + 8 };
    expect(await statusOf('ES256', key('ES256'), ahead)).to.equal(200);
  });

  for (const [what, claims] of [
    ['with a lifetime of more than five minutes', () => ({ exp: now() + 330 })],
    ['that has expired', () => ({ exp: now() - 60 })],
    ['without exp', () => ({ exp: undefined })],
    ['whose exp is no number', () => ({ exp: `${now() + 60}` })],
    ['issued in the future', () => ({ iat: now() + 60 })],
    ['whose iat is no number', () => ({ iat: 'now' })],
    ['that is not valid yet', () => ({ nbf: now() + 60 })],
    ['without a jti', () => ({ jti: undefined })],
    ['of another issuer', () => ({ iss: 'web' })],
    ['of another subject', () => ({ sub: 'web' })],
    ['for another server', () => ({ aud: 'https://elsewhere.example.test/' })],
    ['without an audience', () => ({ aud: undefined })],
  ] as const) {
    it(`are refused: one ${what}`, async () => {
      expect(await statusOf('ES256', key('ES256'), claims())).to.equal(401);
    });
  }

  it('are accepted with a lifetime of five minutes, from a clock that is seconds ahead', async () => {
    expect(await statusOf('ES256', key('ES256'), { exp: now() + 300, iat: now() + 5 })).to.equal(200);
  });

  it('accept as audience the issuer, with or without its slash, or the token endpoint', async () => {
    for (const aud of [server.issuer, server.url, `${server.url}/oauth/token`, [server.issuer]])
      expect(await statusOf('ES256', key('ES256'), { aud }), String(aud)).to.equal(200);
  });

  it('accept as audience the requested endpoint, and no other endpoint', async () => {
    const errorOf = async (path: string, aud: string) => {
      const assertion = await sign('ES256', key('ES256'), { aud });
      return (await send(path, assertion, { token: 'nothing', login_hint: '{}', scope: 'openid' })).json()
        .error;
    };
    expect(await errorOf('/bc-authorize', `${server.url}/bc-authorize`)).to.equal('unauthorized_client');
    expect(await errorOf('/oauth/introspect', `${server.url}/oauth/introspect`)).to.not.equal(
      'invalid_client',
    );
    for (const other of ['/oauth/introspect', '/bc-authorize/', '/'])
      expect(await errorOf('/bc-authorize', `${server.url}${other}x`), other).to.equal('invalid_client');
    expect(await errorOf('/bc-authorize', `${server.url}/oauth/introspect`)).to.equal('invalid_client');
    expect(await errorOf('/bc-authorize', 'https://elsewhere.example.test/bc-authorize')).to.equal(
      'invalid_client',
    );
  });

  it('accept only the issuer as audience at a FAPI 2 compliance level', async () => {
    expect(await statusOf('fapi2', key('ES256'))).to.not.equal(401);
    for (const aud of [server.url, `${server.url}/oauth/token`, [server.issuer], [server.issuer, server.url]])
      expect(await statusOf('fapi2', key('ES256'), { aud }), String(aud)).to.equal(401);
  });

  it('are refused when signed with another algorithm than that of the key', async () => {
    const rsa = key('RS256');
    const jwk = { ...(await exportJWK(rsa.privateKey)), alg: 'PS256' };
    const asPss = { ...rsa, alg: 'PS256', privateKey: (await importJWK(jwk, 'PS256')) as never };
    expect(await statusOf('RS256', asPss)).to.equal(401);
  });

  it('are refused with alg none, and with an HMAC by the public key', async () => {
    const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const claims = { iss: 'RS256', sub: 'RS256', aud: server.issuer, iat: now(), exp: now() + 60 };
    const publicKey = await importJWK({ ...key('RS256').credential.jwk, alg: 'RS256' }, 'RS256', {
      extractable: true,
    });
    const pem = await exportSPKI(publicKey as never);
    const body = `${encoded({ alg: 'HS256' })}.${encoded({ ...claims, jti: randomUUID() })}`;
    const signature = createHmac('sha256', pem).update(body).digest('base64url');
    expect((await token(`${body}.${signature}`)).status).to.equal(401);
    expect(
      (await token(`${encoded({ alg: 'none' })}.${encoded({ ...claims, jti: randomUUID() })}.`)).status,
    ).to.equal(401);
  });

  it('are accepted from both live keys during a rotation, and from no other key', async () => {
    const past = { ...key('ES256') };
    expect(await statusOf('rotating', next)).to.equal(200);
    expect(await statusOf('rotating', ending, {}, { kid: 'ending' })).to.equal(200);
    expect(await statusOf('rotating', past)).to.equal(401);
    expect(await statusOf('rotating', past, {}, { kid: 'past' })).to.equal(401);
    expect(await statusOf('rotating', next, {}, { kid: 'ending' })).to.equal(401);
    server.tick(DAY + 1000);
    expect(await statusOf('rotating', ending, {}, { kid: 'ending' })).to.equal(401);
    expect(await statusOf('rotating', next)).to.equal(200);
  });

  it('are accepted with any kid, or none, for a key that was registered without one', async () => {
    for (const kid of [undefined, 'whatever', ''])
      for (const pair of [next, ending])
        expect(await statusOf('nameless', pair, {}, { kid }), kid).to.equal(200);
    expect(await statusOf('nameless', key('ES256'), {}, { kid: 'whatever' })).to.equal(401);
    expect(await statusOf('nameless', key('RS256'), {}, { kid: 'whatever' })).to.equal(401);
    // A key with a kid is found only by that.
    expect(await statusOf('half-named', next, {}, { kid: 'whatever' })).to.equal(200);
    expect(await statusOf('half-named', ending, {}, { kid: 'ending' })).to.equal(200);
    expect(await statusOf('half-named', ending, {}, { kid: 'whatever' })).to.equal(401);
    expect(await statusOf('half-named', next, {}, { kid: 'ending' })).to.equal(401);
  });

  it('are limited to two live keys in the tenant file', () => {
    const three = ALGORITHMS.slice(0, 3).map((alg) => key(alg).credential);
    try {
      readTenant({ clients: [client('three', three)] });
      expect.fail('it was taken');
    } catch (thrown) {
      expect(thrown).to.deep.equal(
        new TenantFault([
          'clients.0.client_authentication_methods.private_key_jwt.credentials: at most 2 credentials can be in use at once',
        ]),
      );
    }
  });

  // Last: it moves the server's clock.
  it('are accepted again after a 429, because SDKs repeat the request, and then once', async () => {
    const statuses = async (assertion: string, times: number) => {
      const all: number[] = [];
      for (let i = 0; i < times; i++) {
        const fields = { grant_type: 'password', username: 'nobody@example.test', password: 'Wrong-Guess-1' };
        all.push((await send('/oauth/token', assertion, fields)).status);
      }
      return all;
    };
    expect(await statuses(await sign('ES256', key('ES256')), 1)).to.deep.equal([403]);
    const raced = await sign('ES256', key('ES256'));
    const racers = Array.from({ length: 12 }, async (_, n) =>
      n % 2 === 0 ? statuses(raced, 1) : [(await token(raced)).status],
    );
    const all = [...(await Promise.all(racers)).flat(), (await token(raced)).status];
    expect(
      all.filter((status) => status === 200),
      `of racers beside a limit: ${all}`,
    ).to.have.length(1);
    const assertion = await sign('ES256', key('ES256'), { exp: now() + 280 });
    expect(await statuses(assertion, 2)).to.deep.equal([429, 429]);
    server.tick(61_000);
    expect(await statuses(assertion, 2)).to.deep.equal([403, 401]);
    const used = await sign('ES256', key('ES256'), { exp: now() + 280 });
    expect((await token(used)).status).to.equal(200);
    expect(await statuses(used, 1), 'a use that came to something').to.deep.equal([401]);
  });
});
