// Signed authorization requests (RFC 9101): the parameter `request`, sent to /authorize and pushed.
import { createHmac, createPublicKey, type JsonWebKey, randomUUID } from 'node:crypto';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { SignJWT } from 'jose';
import { createAgent } from '../support/agent.ts';
import { type ClientKeyPair, clientKey } from '../support/client-key.ts';
import {
  API,
  authorize,
  follow,
  logIn,
  payload,
  pkce,
  responseOf,
  SPA_CALLBACK,
  tenant,
  token,
  WEB_CALLBACK,
  webRequest,
} from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';

const keys = Object.fromEntries(
  await Promise.all(
    ['RS256', 'PS256', 'ES256', 'RS384', 'EdDSA'].map(async (alg) => [alg, await clientKey(alg)]),
  ),
) as Record<'RS256' | 'PS256' | 'ES256' | 'RS384' | 'EdDSA', ClientKeyPair>;
const stranger = await clientKey('RS256');
const unknown = await clientKey('RS512');
const expired = await clientKey('RS256');

const common = {
  client_secret: 'jar-secret',
  callbacks: [WEB_CALLBACK],
  grant_types: ['authorization_code'],
};
const clients = [
  ...tenant.clients,
  {
    ...common,
    client_id: 'jar',
    name: 'May sign',
    organization_usage: 'allow',
    signed_request_object: {
      required: false,
      credentials: [
        ...Object.values(keys).map(({ credential }) => credential),
        { ...expired.credential, kid: 'expired-key', expires_at: '2001-01-01T00:00:00Z' },
      ],
    },
  },
  {
    ...common,
    client_id: 'must-sign',
    name: 'Must sign',
    signed_request_object: { required: true, credentials: [keys.RS256.credential] },
  },
  {
    ...common,
    client_id: 'profile',
    name: 'With a profile',
    callbacks: ['https://profile.example.test/callback'],
    compliance_level: 'fapi1_adv_pkj_par',
    id_token_signed_response_alg: 'PS256',
    authorization_signed_response_alg: 'PS256',
    client_authentication_methods: { private_key_jwt: { credentials: [keys.PS256.credential] } },
    signed_request_object: { required: true, credentials: [keys.PS256.credential] },
  },
];
const databases = tenant.databases.map((one) => ({
  ...one,
  enabled_clients: [...one.enabled_clients, ...(one.name === 'users' ? ['jar', 'must-sign', 'profile'] : [])],
}));
const base64 = (value: object | string) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');

describe('request objects', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer({ tenant: { ...tenant, clients, databases } });
  });
  after(() => server.stop());

  const agent = () => createAgent(server);
  const now = () => Math.floor(Date.now() / 1000);

  interface Signed {
    claims?: Record<string, unknown>;
    header?: Record<string, unknown>;
    key?: ClientKeyPair;
    client_id?: string;
  }
  const sign = ({ claims = {}, header = {}, key = keys.RS256, client_id = 'jar' }: Signed = {}) =>
    new SignJWT({
      ...webRequest({ client_id, state: 'inside' }),
      iss: client_id,
      aud: server.issuer,
      exp: now() + 60,
      nbf: now(),
      ...claims,
    })
      .setProtectedHeader({ alg: key.alg, ...header })
      .sign(key.privateKey);
  /** Sends an object with only the parameters beside it that OpenID Connect Core §6.1 requires. */
  const ask = async (signed: Signed = {}, beside: Record<string, string> = {}) =>
    authorize(agent(), { client_id: signed.client_id ?? 'jar', request: await sign(signed), ...beside });
  const push = (form: Record<string, string>) =>
    agent().request('/oauth/par', { form: { client_id: 'jar', client_secret: 'jar-secret', ...form } });

  for (const key of Object.values(keys)) {
    it(`are accepted when signed with ${key.alg}, and parameters beside them are ignored`, async () => {
      const browser = agent();
      const claims = { audience: API, scope: 'openid read:things' };
      const beside = {
        scope: 'openid write:things',
        state: 'beside',
        audience: 'guarded-api',
        redirect_uri: SPA_CALLBACK,
      };
      const request = await sign({ key, claims });
      const answer = await logIn(browser, server, { client_id: 'jar', request, ...beside });
      const { code, state } = responseOf(answer);
      expect(state).to.equal('inside');
      const form = { grant_type: 'authorization_code', code: String(code), redirect_uri: WEB_CALLBACK };
      const tokens = (
        await token(browser, { ...form, client_id: 'jar', client_secret: 'jar-secret' })
      ).json();
      expect(payload(tokens.access_token).aud).to.include(API);
      expect(tokens.scope).to.equal('openid read:things');
    });
  }

  it('are accepted in a pushed request, whose other parameters are ignored', async () => {
    const answer = await push({
      request: await sign(),
      state: 'beside',
      scope: 'openid',
      redirect_uri: SPA_CALLBACK,
    });
    expect(answer.status, answer.text).to.equal(201);
    const { request_uri } = answer.json();
    const end = await logIn(agent(), server, { client_id: 'jar', request_uri });
    expect(responseOf(end)).to.include({ state: 'inside' });
    const object = await sign({ claims: { client_id: 'web', iss: 'web' } });
    expect((await push({ request: object })).json().error).to.equal('invalid_request_object');
    const nameless = await sign({ claims: { client_id: undefined } });
    expect((await push({ request: nameless })).json().error).to.equal('invalid_request_object');
  });

  it('may contain numbers, and parameters that are JSON as JSON', async () => {
    const claims = { max_age: 0, claims: { id_token: { email: null } }, prompt: 'login' };
    const browser = agent();
    const answer = await logIn(browser, server, { client_id: 'jar', request: await sign({ claims }) });
    expect(responseOf(answer)).to.have.property('code');
    expect(responseOf(await ask({ claims: { max_age: 'old' } })).error).to.equal('invalid_request');
    expect(responseOf(await ask({ claims: { scope: ['openid', 'email'] } })).error).to.equal(
      'invalid_request',
    );
    expect(responseOf(await ask({ claims: { scope: {} } })).error).to.equal('invalid_request_object');
  });

  describe('are checked like a query', () => {
    const checks: [string, Record<string, unknown>, string, RegExp][] = [
      ['an unknown connection', { connection: 'nowhere' }, 'invalid_request', /connection was not found/],
      ['a connection that is not enabled', { connection: 'staff' }, 'invalid_request', /not enabled/],
      ['an unknown organization', { organization: 'org_none' }, 'invalid_request', /organization/],
      [
        'an unknown invitation',
        { organization: 'org_acme', invitation: 'x' },
        'invalid_request',
        /invitation/,
      ],
      ['an unknown API', { audience: 'https://nowhere.test' }, 'access_denied', /Service not found/],
      ['two APIs', { audience: API, resource: 'guarded-api' }, 'invalid_target', /./],
      ['prompt=none', { prompt: 'none' }, 'login_required', /Login required/],
      ['prompt=none with another prompt', { prompt: 'none login' }, 'invalid_request', /prompt/],
      ['an unknown response mode', { response_mode: 'dance' }, 'unsupported_response_mode', /./],
      [
        'a response type that the client may not use',
        { response_type: 'token' },
        'unauthorized_client',
        /implicit/,
      ],
      ['a registration', { registration: '{}' }, 'registration_not_supported', /./],
    ];
    for (const [what, claims, error, description] of checks) {
      it(what, async () => {
        const response = responseOf(await ask({ claims }));
        expect(response).to.include({ error, state: 'inside' });
        expect(response.error_description).to.match(description);
        const pushed = await push({ request: await sign({ claims }) });
        // Only a request from a browser can tell that nobody is logged in.
        if (error === 'login_required') expect(pushed.status).to.equal(201);
        else expect(pushed.json().error).to.equal(error);
      });
    }

    it("a redirect_uri that is not the application's shows a page", async () => {
      for (const redirect_uri of [
        SPA_CALLBACK,
        'https://evil.example/',
        `${server.url}/samlp/jar/callback`,
      ]) {
        const answer = await ask({ claims: { redirect_uri } }, { redirect_uri: WEB_CALLBACK });
        expect(answer.status, redirect_uri).to.equal(400);
        expect(answer.location).to.equal('');
      }
    });

    it('login_hint and response_mode of the object take precedence over the query', async () => {
      const browser = agent();
      const request = await sign({ claims: { login_hint: 'inside@example.test', screen_hint: 'login' } });
      const page = await follow(
        browser,
        await authorize(browser, { client_id: 'jar', request, login_hint: 'x@y.z' }),
        server.url,
      );
      expect(page.text).to.contain('inside@example.test').and.not.contain('x@y.z');
      const posted = await ask(
        { claims: { prompt: 'none', response_mode: 'form_post' } },
        { response_mode: 'query' },
      );
      expect(posted.text).to.contain(`action="${WEB_CALLBACK}"`).and.contain('value="login_required"');
    });

    it('internal parameters in an object are ignored', async () => {
      const forged = JSON.stringify({
        offline: true,
        withoutNonce: false,
        upstream: {},
        pushed: 'x',
        browser: 'x',
      });
      const request = await sign({ claims: { gatehouse_notes: forged } });
      expect(responseOf(await logIn(agent(), server, { client_id: 'jar', request }))).to.have.property(
        'code',
      );
    });

    it('parameters that are too long are refused', async () => {
      const answer = await ask({ claims: { state: 'x'.repeat(5_000) } });
      expect(answer.status).to.equal(400);
      expect(answer.location).to.equal('');
    });
  });

  describe('with a fault', () => {
    const bad: [string, () => Promise<string> | string][] = [
      [
        'without a signature',
        () => `${base64({ alg: 'none' })}.${base64({ ...webRequest({ client_id: 'jar' }) })}.`,
      ],
      ['signed with an unknown key', () => sign({ key: stranger })],
      ['signed with a key that has expired', () => sign({ key: expired })],
      ['with an algorithm that is not for objects', () => sign({ key: unknown })],
      [
        'with another algorithm than the key is for',
        () => sign({ key: { ...keys.PS256, alg: 'RS256' } }).catch(() => confused('RS256')),
      ],
      ['with the kid of another key', () => sign({ header: { kid: 'PS256-key-1' } })],
      ['with a typ of other tokens', () => sign({ header: { typ: 'at+jwt' } })],
      ['with a critical extension', () => sign({ header: { crit: ['x'], x: 1 } }).catch(() => 'a.b.c')],
      ['changed after it was signed', async () => tampered(await sign())],
      ['by another issuer', () => sign({ claims: { iss: 'web' } })],
      ['without an issuer', () => sign({ claims: { iss: undefined } })],
      ['for another server', () => sign({ claims: { aud: 'https://other.example/' } })],
      ['without an audience', () => sign({ claims: { aud: undefined } })],
      ['of another client', () => sign({ claims: { client_id: 'web' } })],
      ['without a client_id', () => sign({ claims: { client_id: undefined } })],
      ['that has expired', () => sign({ claims: { exp: now() - 60 } })],
      ['that is not valid yet', () => sign({ claims: { nbf: now() + 60 } })],
      ['whose exp is no number', () => sign({ claims: { exp: 'tomorrow' } }).catch(() => 'a.b.c')],
      ['that is an assertion of the client', () => sign({ claims: { sub: 'jar' } })],
      ['with an object inside', () => sign({ claims: { request: 'x' } })],
      ['with a request_uri inside', () => sign({ claims: { request_uri: 'https://x.test/' } })],
      ['that is encrypted', () => 'a.b.c.d.e'],
      ['that is no JWT', () => 'x'],
    ];
    it('are accepted when dated a few seconds ahead (FAPI 2.0 Security Profile §5.3.2.1)', async () => {
      const request = await sign({ claims: { nbf: now() + 8, iat: now() + 8 } });
      const pushed = await push({ request });
      expect(pushed.status, pushed.text).to.equal(201);
    });

    for (const [what, make] of bad) {
      it(`are refused at the redirect URI and when pushed: one ${what}`, async () => {
        const request = await make();
        const beside = webRequest({ client_id: 'jar' });
        const answer = await authorize(agent(), { ...beside, request });
        expect(answer.location.startsWith(WEB_CALLBACK), answer.text).to.equal(true);
        expect(responseOf(answer).error).to.equal('invalid_request_object');
        const pushed = await push({ ...beside, request });
        expect(pushed.status).to.equal(400);
        expect(pushed.json().error).to.equal('invalid_request_object');
      });
    }

    it('are refused with an HMAC by the public key or the secret (algorithm confusion)', async () => {
      const pem = createPublicKey({ key: keys.RS256.credential.jwk as JsonWebKey, format: 'jwk' })
        .export({ type: 'spki', format: 'pem' })
        .toString();
      for (const secret of [pem, pem.trim(), JSON.stringify(keys.RS256.credential.jwk), 'jar-secret']) {
        const claims = { ...webRequest({ client_id: 'jar' }), iss: 'jar', aud: server.issuer };
        const input = `${base64({ alg: 'HS256', kid: keys.RS256.credential.kid })}.${base64(claims)}`;
        const request = `${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`;
        const answer = await authorize(agent(), { ...webRequest({ client_id: 'jar' }), request });
        expect(responseOf(answer).error).to.equal('invalid_request_object');
      }
    });

    it('are refused with a key in their own header', async () => {
      const { jwk } = stranger.credential;
      const answer = await ask({
        key: stranger,
        header: { jwk, jku: 'https://evil.example/jwks', kid: keys.RS256.credential.kid },
      });
      expect(responseOf(answer).error).to.equal('invalid_request_object');
    });

    it('are refused in their own response mode, and never at another application’s URL', async () => {
      const signed = { key: stranger, claims: { response_mode: 'form_post' } };
      expect((await ask(signed)).text).to.contain('value="invalid_request_object"');
      const answer = await ask({ key: stranger, claims: { redirect_uri: 'https://evil.example/' } });
      expect(answer.status).to.equal(400);
      expect(answer.location).to.equal('');
    });
  });

  /** An object with the signature of the right key and the name of another algorithm. */
  async function confused(alg: string): Promise<string> {
    const [, claims, signature] = (await sign({ key: keys.PS256 })).split('.');
    return `${base64({ alg })}.${claims}.${signature}`;
  }

  function tampered(object: string): string {
    const [header, claims = '', signature] = object.split('.');
    const read = JSON.parse(Buffer.from(claims, 'base64url').toString());
    return `${header}.${base64({ ...read, scope: 'openid write:things' })}.${signature}`;
  }

  it('are not fetched from a request_uri', async () => {
    let asked = 0;
    const elsewhere = http.createServer((_request, response) => {
      asked += 1;
      response.end();
    });
    await new Promise<void>((resolve) => elsewhere.listen(0, '127.0.0.1', resolve));
    try {
      const request_uri = `http://127.0.0.1:${(elsewhere.address() as AddressInfo).port}/object`;
      for (const client_id of ['jar', 'web']) {
        const answer = await authorize(agent(), webRequest({ client_id, request_uri }));
        expect(responseOf(answer).error).to.equal('request_uri_not_supported');
      }
      expect((await push({ ...webRequest(), client_id: 'jar', request_uri })).json().error).to.equal(
        'invalid_request',
      );
      expect(asked).to.equal(0);
    } finally {
      elsewhere.close();
    }
  });

  describe('when the application requires them', () => {
    const client_id = 'must-sign';
    it('are accepted, and every other request is refused', async () => {
      for (const over of [{}, { request_uri: 'https://x.test/' }, { prompt: 'none' }]) {
        const answer = await authorize(agent(), webRequest({ client_id, ...over }));
        expect(responseOf(answer).error).to.be.oneOf(['invalid_request', 'request_uri_not_supported']);
      }
      const pushed = await push(webRequest({ client_id }));
      expect(pushed.json().error).to.equal('invalid_request');
      const empty = await authorize(agent(), webRequest({ client_id, request: '' }));
      expect(responseOf(empty).error).to.be.oneOf(['invalid_request', 'invalid_request_object']);
      const answer = await logIn(agent(), server, { client_id, request: await sign({ client_id }) });
      expect(responseOf(answer)).to.have.property('code');
    });

    it('cannot be avoided by a state that looks like that of a waiting request', async () => {
      const state = `gatehouse.waiting.${'x'.repeat(43)}`;
      const answer = await authorize(agent(), webRequest({ client_id, state }));
      expect(answer.status).to.equal(400);
      expect(answer.location).to.equal('');
    });
  });

  describe('of an application with a compliance level', () => {
    const asked = {
      redirect_uri: 'https://profile.example.test/callback',
      response_mode: 'jwt',
      nonce: 'the-nonce',
      code_challenge: pkce().challenge,
      code_challenge_method: 'S256',
    };
    const of = (claims: Record<string, unknown>) =>
      sign({ client_id: 'profile', key: keys.PS256, claims: { ...asked, ...claims } });
    const send = async (request: string): Promise<string | undefined> => {
      const assertion = new SignJWT({
        iss: 'profile',
        sub: 'profile',
        aud: server.issuer,
        jti: randomUUID(),
      });
      const signed = assertion.setProtectedHeader({ alg: 'PS256' }).setIssuedAt().setExpirationTime('1m');
      const answer = await agent().request('/oauth/par', {
        form: {
          client_id: 'profile',
          client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
          client_assertion: await signed.sign(keys.PS256.privateKey),
          request,
        },
      });
      return answer.json().error;
    };
    const tried = async (claims: Record<string, unknown>) => send(await of(claims));

    it('must have exp and nbf, at most an hour apart (FAPI 1.0 Advanced §5.2.2)', async () => {
      expect(await tried({})).to.equal(undefined);
      for (const claims of [
        { exp: undefined },
        { nbf: undefined },
        { exp: now() + 3700 },
        { nbf: now() - 3700, exp: now() + 10 },
      ]) {
        expect(await tried(claims), JSON.stringify(claims)).to.equal('invalid_request_object');
      }
    });

    it('are accepted once by their jti, also when sent twice simultaneously', async () => {
      const request = await of({ jti: 'the-only-one' });
      const answers = await Promise.all([send(request), send(request)]);
      expect(answers.sort()).to.deep.equal(['invalid_request_object', undefined]);
      expect(await send(request)).to.equal('invalid_request_object');
    });
  });

  it('are accepted once by their jti when pushed, and may be loaded again at /authorize', async () => {
    const request = await sign({ claims: { jti: 'pushed-once' } });
    expect((await push({ request })).status).to.equal(201);
    expect((await push({ request })).json().error).to.equal('invalid_request_object');
    // An object whose request was refused for another reason may be sent again.
    const again = await sign({ claims: { jti: 'pushed-again' } });
    expect((await push({ request: again, client_secret: 'wrong-secret' })).status).to.equal(401);
    const both = await Promise.all([push({ request: again }), push({ request: again })]);
    expect(both.map(({ status }) => status).sort()).to.deep.equal([201, 400]);
    const silent = await sign({ claims: { jti: 'shown', prompt: 'none' } });
    for (let times = 0; times < 2; times++) {
      const answer = await authorize(agent(), { client_id: 'jar', request: silent });
      expect(responseOf(answer).error).to.equal('login_required');
    }
  });
});
