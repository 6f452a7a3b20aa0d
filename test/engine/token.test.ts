import { createPrivateKey, createPublicKey, generateKeyPairSync, randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { CompactSign, SignJWT } from 'jose';
import { type Agent, createAgent } from '../support/agent.ts';
import {
  API,
  header,
  logIn,
  PASSWORD_REQUEST,
  payload,
  pkce,
  responseOf,
  SPA_CALLBACK,
  spaRequest,
  tenant,
  token,
  USER,
  WEB_CALLBACK,
  webRequest,
} from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';

const keyPair = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
});

const withKeyClient = {
  ...tenant,
  clients: [
    ...tenant.clients,
    {
      client_id: 'key-client',
      name: 'Private key',
      app_type: 'regular_web',
      callbacks: [WEB_CALLBACK],
      grant_types: ['client_credentials', 'password', 'authorization_code'],
      client_authentication_methods: {
        private_key_jwt: { credentials: [{ name: 'k1', alg: 'RS256', pem: keyPair.publicKey }] },
      },
    },
  ],
  clientGrants: [...tenant.clientGrants, { client_id: 'key-client', audience: API, scope: ['read:things'] }],
};

describe('POST /oauth/token', () => {
  let server: TestServer;
  const { verifier, challenge } = pkce();

  before(async () => {
    server = await startServer({ tenant: withKeyClient });
  });
  after(() => server.stop());

  const agent = () => createAgent(server);
  const code = async (over: Record<string, string | undefined> = {}) =>
    responseOf(await logIn(agent(), server, spaRequest(challenge, over))).code;
  const exchange = (over: Record<string, string | undefined>, using: Agent = agent()) =>
    token(using, {
      grant_type: 'authorization_code',
      client_id: 'spa',
      code_verifier: verifier,
      redirect_uri: SPA_CALLBACK,
      ...over,
    });
  const password = (over: Record<string, string | undefined> = {}) =>
    token(agent(), {
      ...PASSWORD_REQUEST,
      scope: 'openid profile email',
      ...over,
    });
  const machine = (over: Record<string, string | undefined> = {}) =>
    token(agent(), {
      grant_type: 'client_credentials',
      client_id: 'm2m',
      client_secret: 'm2m-secret',
      audience: API,
      ...over,
    });

  describe('authorization_code', () => {
    it('returns an opaque access token and an ID token', async () => {
      const answer = await exchange({ code: await code() });
      expect(answer.status).to.equal(200);
      expect(answer.json()).to.include({
        token_type: 'Bearer',
        expires_in: 86400,
        scope: 'openid profile email',
      });
      expect(answer.json().access_token).to.match(/^[\w-]{32,}$/);
      expect(answer.json()).not.to.have.property('refresh_token');
      expect(answer.headers['cache-control']).to.contain('no-store');
      const claims = payload(answer.json().id_token);
      expect(claims).to.include({
        iss: server.issuer,
        aud: 'spa',
        nonce: 'the-nonce',
        email: USER.email,
        email_verified: true,
      });
      expect(claims).to.include.keys('sid', 'auth_time', 'iat', 'exp', 'nickname');
      expect(claims.exp - claims.iat).to.equal(36000);
      expect(claims.sub).to.match(/^auth0\|[0-9a-f]{24}$/);
    });

    it('returns an RS256 JWT with exactly the documented claims for an API', async () => {
      const answer = await exchange({
        code: await code({ audience: API, scope: 'openid read:things made:up' }),
      });
      const jwt = answer.json().access_token;
      expect(header(jwt)).to.include({ alg: 'RS256', typ: 'JWT' });
      const claims = payload(jwt);
      expect(claims).to.have.all.keys('iss', 'sub', 'aud', 'iat', 'exp', 'azp', 'scope');
      expect(claims.aud).to.deep.equal([API, `${server.issuer}userinfo`]);
      expect(claims).to.include({ iss: server.issuer, azp: 'spa', scope: 'openid read:things' });
      expect(server.issuer.endsWith('/')).to.equal(true);
      expect(claims.exp - claims.iat).to.equal(3600);
      expect(answer.json().expires_in).to.equal(3600);
    });

    it('names only the API as audience without openid', async () => {
      const answer = await exchange({
        code: await code({ audience: API, scope: 'read:things', nonce: undefined }),
      });
      expect(payload(answer.json().access_token).aud).to.equal(API);
      expect(answer.json()).not.to.have.property('id_token');
    });

    it('accepts a form as well as JSON, without a warning on the console', async () => {
      const written: unknown[] = [];
      const { warn } = console;
      console.warn = (...args) => written.push(args);
      try {
        const answer = await agent().request('/oauth/token', {
          form: {
            grant_type: 'authorization_code',
            client_id: 'spa',
            code: (await code())!,
            code_verifier: verifier,
            redirect_uri: SPA_CALLBACK,
          },
        });
        expect(answer.status).to.equal(200);
        expect((await exchange({ code: await code() })).status).to.equal(200);
      } finally {
        console.warn = warn;
      }
      expect(written).to.deep.equal([]);
    });

    it('returns a refresh token for offline_access when the API allows it', async () => {
      const allowed = await exchange({ code: await code({ scope: 'openid offline_access', audience: API }) });
      expect(allowed.json()).to.have.property('refresh_token').that.is.a('string');
      expect(allowed.json().scope).to.equal('openid offline_access');
      const refused = await exchange({
        code: await code({ scope: 'openid offline_access', audience: 'guarded-api' }),
      });
      expect(refused.json()).not.to.have.property('refresh_token');
    });

    it('refuses a verifier, redirect_uri, client or code that is wrong, missing or another’s', async () => {
      const wrong: [Record<string, string | undefined>, number, string, string][] = [
        [{ code_verifier: pkce().verifier }, 400, 'invalid_grant', 'Failed to verify code verifier'],
        [{ code_verifier: undefined }, 400, 'invalid_grant', 'Failed to verify code verifier'],
        [
          { redirect_uri: 'http://localhost:5173/other?with=query' },
          400,
          'invalid_grant',
          'Invalid authorization code',
        ],
        [{ redirect_uri: undefined }, 400, 'invalid_request', 'Missing required parameter: redirect_uri'],
        [{ code: 'made-up' }, 400, 'invalid_grant', 'Invalid authorization code'],
        [{ code: undefined }, 400, 'invalid_request', 'Missing required parameter: code'],
        [
          { client_id: 'web', client_secret: 'web-secret' },
          400,
          'invalid_grant',
          'Invalid authorization code',
        ],
      ];
      for (const [over, status, error, error_description] of wrong) {
        const answer = await exchange({ code: await code(), ...over });
        expect(answer.status, JSON.stringify(over)).to.equal(status);
        expect(answer.json()).to.deep.equal({ error, error_description });
      }
    });

    it('revokes the tokens of a code when the code is sent again', async () => {
      const value = await code({ scope: 'openid offline_access' });
      const first = await exchange({ code: value });
      const again = await exchange({ code: value });
      expect(again.status).to.equal(400);
      expect(again.json()).to.deep.equal({
        error: 'invalid_grant',
        error_description: 'Invalid authorization code',
      });
      const profile = await agent().get('/userinfo', {
        authorization: `Bearer ${first.json().access_token}`,
      });
      expect(profile.status).to.equal(401);
      const refreshed = await token(agent(), {
        grant_type: 'refresh_token',
        client_id: 'spa',
        refresh_token: first.json().refresh_token,
      });
      expect(refreshed.json()).to.have.property('error', 'invalid_grant');
    });

    it('succeeds exactly once in twenty simultaneous uses', async () => {
      const value = await code();
      const answers = await Promise.all(Array.from({ length: 20 }, () => exchange({ code: value })));
      expect(answers.filter(({ status }) => status === 200)).to.have.length(1);
      expect(answers.filter(({ status }) => status === 400)).to.have.length(19);
    });

    it('refuses a code after a minute', async () => {
      const own = await startServer({ tenant });
      try {
        const value = responseOf(await logIn(createAgent(own), own, spaRequest(challenge))).code;
        own.tick(61_000);
        const answer = await exchange({ code: value }, createAgent(own));
        expect(answer.json()).to.have.property('error', 'invalid_grant');
      } finally {
        await own.stop();
      }
    });
  });

  describe('client_credentials', () => {
    it('returns a JWT for the client, with all scopes of its client grant', async () => {
      const answer = await machine();
      expect(answer.status).to.equal(200);
      expect(answer.json()).to.have.all.keys('access_token', 'expires_in', 'token_type', 'scope');
      const claims = payload(answer.json().access_token);
      expect(claims).to.have.all.keys('iss', 'sub', 'aud', 'iat', 'exp', 'azp', 'scope', 'gty');
      expect(claims).to.include({
        sub: 'm2m@clients',
        aud: API,
        azp: 'm2m',
        gty: 'client-credentials',
        scope: 'read:things',
      });
    });

    it('returns the requested scopes when the client grant has them', async () => {
      expect((await machine({ scope: 'read:things' })).json()).to.include({ scope: 'read:things' });
    });

    const refused: [string, Record<string, string | undefined>, number, string, RegExp][] = [
      [
        'a scope beyond the client grant',
        { scope: 'write:things' },
        403,
        'access_denied',
        /not been granted scopes: write:things/,
      ],
      [
        'an API without a client grant',
        { audience: 'guarded-api' },
        403,
        'access_denied',
        /^Client is not authorized to access "guarded-api"/,
      ],
      ['an unknown API', { audience: 'nope' }, 403, 'access_denied', /^Service not found: nope$/],
      ['no audience', { audience: undefined }, 403, 'access_denied', /No audience parameter/],
      ['a wrong secret', { client_secret: 'wrong' }, 401, 'invalid_client', /^Unauthorized$/],
      ['no secret', { client_secret: undefined }, 401, 'invalid_client', /^Unauthorized$/],
      ['an empty secret', { client_secret: '' }, 401, 'invalid_client', /^Unauthorized$/],
      ['an unknown client', { client_id: 'nobody' }, 401, 'invalid_client', /^Unauthorized$/],
      [
        'no client',
        { client_id: undefined, client_secret: undefined },
        400,
        'invalid_request',
        /^Missing required parameter: client_id$/,
      ],
      [
        'another client whose grant types do not have it',
        { client_id: 'leeway', client_secret: 'leeway-secret' },
        403,
        'unauthorized_client',
        /^Grant type 'client_credentials' not allowed for the client\.$/,
      ],
    ];
    for (const [what, over, status, error, description] of refused) {
      it(`refuses ${what}`, async () => {
        const answer = await machine(over);
        expect(answer.status).to.equal(status);
        expect(answer.json().error).to.equal(error);
        expect(answer.json().error_description).to.match(description);
        expect(answer.headers).not.to.have.property('www-authenticate');
      });
    }

    it('is refused to a public client', async () => {
      expect((await machine({ client_id: 'spa', client_secret: undefined })).json()).to.include({
        error: 'unauthorized_client',
      });
    });
  });

  describe('password and password-realm', () => {
    it('returns tokens for the default directory', async () => {
      const answer = await password({ scope: 'openid profile email offline_access', audience: API });
      expect(answer.status).to.equal(200);
      expect(answer.json()).to.include.keys('access_token', 'id_token', 'refresh_token', 'scope');
      expect(payload(answer.json().access_token)).to.include({ gty: 'password', azp: 'web' });
      expect(payload(answer.json().id_token)).to.include({ email: USER.email, aud: 'web' });
    });

    it('returns tokens for the named realm, by e-mail address or username', async () => {
      for (const username of ['staff1', 'staff@example.test']) {
        const answer = await password({
          grant_type: 'http://auth0.com/oauth/grant-type/password-realm',
          realm: 'staff',
          username,
        });
        expect(answer.status, username).to.equal(200);
        expect(payload(answer.json().id_token)).to.include({ email: 'staff@example.test' });
      }
    });

    it('answers the same for a wrong password and for a user who does not exist', async () => {
      const wrong = await password({ password: 'Wrong-Password-1' });
      const unknown = await password({ username: 'nobody@example.test' });
      expect(wrong.status).to.equal(403);
      expect(wrong.json()).to.deep.equal({
        error: 'invalid_grant',
        error_description: 'Wrong email or password.',
      });
      expect(unknown.status).to.equal(wrong.status);
      expect(unknown.text).to.equal(wrong.text);
    });

    const refused: [string, Record<string, string | undefined>, number, string, RegExp][] = [
      [
        'a user of another realm',
        { grant_type: 'http://auth0.com/oauth/grant-type/password-realm', realm: 'staff' },
        403,
        'invalid_grant',
        /Wrong email/,
      ],
      [
        'an unknown realm',
        { grant_type: 'http://auth0.com/oauth/grant-type/password-realm', realm: 'x' },
        400,
        'invalid_request',
        /connection/,
      ],
      [
        'a realm not enabled for the client',
        {
          grant_type: 'http://auth0.com/oauth/grant-type/password-realm',
          realm: 'staff',
          client_id: 'leeway',
          client_secret: 'leeway-secret',
        },
        400,
        'invalid_request',
        /connection/,
      ],
      [
        'no realm',
        { grant_type: 'http://auth0.com/oauth/grant-type/password-realm' },
        400,
        'invalid_request',
        /^Missing required parameter: realm$/,
      ],
      [
        'no username',
        { username: undefined },
        400,
        'invalid_request',
        /^Missing required parameter: username$/,
      ],
      [
        'no password',
        { password: undefined },
        400,
        'invalid_request',
        /^Missing required parameter: password$/,
      ],
      ['a blocked user', { username: 'blocked@example.test' }, 403, 'unauthorized', /^user is blocked$/],
      ['an unknown API', { audience: 'nope' }, 403, 'access_denied', /^Service not found: nope$/],
      [
        'a client without the grant type',
        { client_id: 'code-only', client_secret: 'code-secret' },
        403,
        'unauthorized_client',
        /^Grant type 'password'/,
      ],
      [
        'a third-party application',
        { client_id: 'third', client_secret: 'third-secret' },
        403,
        'unauthorized_client',
        /Third-party/,
      ],
    ];
    for (const [what, over, status, error, description] of refused) {
      it(`refuses ${what}`, async () => {
        const answer = await password(over);
        expect(answer.status).to.equal(status);
        expect(answer.json().error).to.equal(error);
        expect(answer.json().error_description).to.match(description);
      });
    }

    it('reveals that a user is blocked only when the password is right', async () => {
      const answer = await password({ username: 'blocked@example.test', password: 'Wrong-Password-1' });
      expect(answer.json()).to.deep.equal({
        error: 'invalid_grant',
        error_description: 'Wrong email or password.',
      });
    });
  });

  describe('settings of an API', () => {
    it('add permissions, and limit scopes to them, with enforce_policies and an _authz dialect', async () => {
      const answer = await password({ audience: 'guarded-api', scope: 'openid admin look' });
      expect(payload(answer.json().access_token)).to.deep.include({
        permissions: ['look'],
        scope: 'openid look',
      });
      const byCode = await exchange({
        code: await code({ audience: 'guarded-api', scope: 'openid admin look' }),
      });
      expect(payload(byCode.json().access_token)).to.deep.include({
        permissions: ['look'],
        scope: 'openid look',
      });
    });

    it('produce the RFC 9068 form', async () => {
      const { access_token } = (await password({ audience: 'urn:rfc9068', scope: 'read' })).json();
      expect(header(access_token)).to.include({ typ: 'at+jwt' });
      expect(payload(access_token)).to.include.keys('client_id', 'jti').and.not.to.have.property('azp');
    });

    it("sign with HS256 and the API's own secret", async () => {
      const { access_token } = (await password({ audience: 'hs256-api', scope: 'read' })).json();
      expect(header(access_token)).to.include({ alg: 'HS256' });
      const { jwtVerify } = await import('jose');
      await jwtVerify(access_token, Buffer.from('an-api-secret-of-32-characters!!'), {
        audience: 'hs256-api',
      });
    });
  });

  it('signs ID tokens with HS256, and with the lifetime that the application sets', async () => {
    const { id_token } = (
      await password({ client_id: 'hs256', client_secret: 'a-secret-of-at-least-32-characters!' })
    ).json();
    const { jwtVerify } = await import('jose');
    const { payload: claims } = await jwtVerify(id_token, Buffer.from('a-secret-of-at-least-32-characters!'));
    expect(Number(claims.exp) - Number(claims.iat)).to.equal(600);
  });

  describe('client authentication', () => {
    const basic = (id: string, secret: string) =>
      `Basic ${Buffer.from(`${encodeURIComponent(id)}:${encodeURIComponent(secret)}`).toString('base64')}`;
    const assertion = (claims: Record<string, unknown> = {}, key = keyPair.privateKey, alg = 'RS256') =>
      new SignJWT({
        iss: 'key-client',
        sub: 'key-client',
        aud: server.issuer,
        jti: randomUUID(),
        exp: Math.floor(Date.now() / 1000) + 120,
        ...claims,
      })
        .setProtectedHeader({ alg })
        .sign(createPrivateKey(key));
    const withAssertion = (client_assertion: string, over: Record<string, string | undefined> = {}) =>
      token(agent(), {
        grant_type: 'client_credentials',
        audience: API,
        client_id: 'key-client',
        client_assertion,
        client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
        ...over,
      });

    it('accepts client_secret_basic, and answers its failure with WWW-Authenticate', async () => {
      const request = (secret: string) =>
        agent().request('/oauth/token', {
          form: { grant_type: 'client_credentials', audience: API },
          headers: { authorization: basic('m2m', secret) },
        });
      expect((await request('m2m-secret')).status).to.equal(200);
      const wrong = await request('wrong');
      expect(wrong.status).to.equal(401);
      expect(wrong.headers['www-authenticate']).to.match(/^Basic/);
    });

    it('accepts client_secret_post in a form', async () => {
      const answer = await agent().request('/oauth/token', {
        form: {
          grant_type: 'client_credentials',
          audience: API,
          client_id: 'm2m',
          client_secret: 'm2m-secret',
        },
      });
      expect(answer.status).to.equal(200);
    });

    it('refuses two methods at once', async () => {
      const answer = await agent().request('/oauth/token', {
        form: {
          grant_type: 'client_credentials',
          audience: API,
          client_id: 'm2m',
          client_secret: 'm2m-secret',
        },
        headers: { authorization: basic('m2m', 'm2m-secret') },
      });
      expect(answer.status).to.equal(400);
      expect(answer.json()).to.have.property('error', 'invalid_request');
    });

    it('accepts private_key_jwt for the issuer, the issuer without its slash, and the token endpoint', async () => {
      for (const aud of [server.issuer, server.issuer.slice(0, -1), `${server.issuer}oauth/token`]) {
        expect((await withAssertion(await assertion({ aud }))).status, aud).to.equal(200);
      }
    });

    it('accepts an assertion once, also in ten simultaneous requests', async () => {
      const once = await assertion();
      const answers = await Promise.all(Array.from({ length: 10 }, () => withAssertion(once)));
      expect(answers.filter(({ status }) => status === 200)).to.have.length(1);
      expect(answers.filter(({ status }) => status === 401)).to.have.length(9);
    });

    it('refuses an assertion whose exp is too large to be a time', async () => {
      const claims = (exp: string) =>
        `{"iss":"key-client","sub":"key-client","aud":"${server.issuer}","jti":"${randomUUID()}","exp":${exp}}`;
      for (const exp of ['1e999', '"never"', 'true', 'null', '[]']) {
        const signed = await new CompactSign(Buffer.from(claims(exp)))
          .setProtectedHeader({ alg: 'RS256' })
          .sign(createPrivateKey(keyPair.privateKey));
        const answer = await withAssertion(signed);
        expect(answer.status, exp).to.equal(401);
        expect(answer.json(), exp).to.deep.equal({
          error: 'invalid_client',
          error_description: 'Unauthorized',
        });
      }
    });

    it('refuses an assertion of another client, for another audience, expired, unsigned or without jti', async () => {
      const other = generateKeyPairSync('rsa', {
        modulusLength: 2048,
        publicKeyEncoding: { type: 'spki', format: 'pem' },
        privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
      });
      const unsigned = `${Buffer.from('{"alg":"none"}').toString('base64url')}.${(await assertion()).split('.')[1]}.`;
      const hmac = await new SignJWT({
        iss: 'key-client',
        sub: 'key-client',
        aud: server.issuer,
        jti: 'x',
        exp: 4e9,
      })
        .setProtectedHeader({ alg: 'HS256' })
        .sign(Buffer.from(createPublicKey(keyPair.publicKey).export({ type: 'spki', format: 'pem' })));
      const wrong = {
        'another key': await assertion({}, other.privateKey),
        'another audience': await assertion({ aud: 'https://elsewhere.test/' }),
        'another issuer': await assertion({ iss: 'web' }),
        expired: await assertion({ exp: 1000 }),
        'no jti': await assertion({ jti: undefined }),
        unsigned,
        'HMAC with the public key': hmac,
      };
      for (const [what, value] of Object.entries(wrong)) {
        expect((await withAssertion(value)).status, what).to.equal(401);
      }
    });

    it('refuses a client with a key that sends a secret or only its client_id', async () => {
      for (const over of [{ client_secret: 'x' }, {}]) {
        const answer = await token(agent(), {
          grant_type: 'client_credentials',
          client_id: 'key-client',
          audience: API,
          ...over,
        });
        expect(answer.status).to.equal(401);
      }
    });
  });

  describe('bad input', () => {
    const post = (body: string, type = 'application/json') =>
      agent().request('/oauth/token', {
        method: 'POST',
        body,
        headers: { 'content-type': type, 'content-length': String(Buffer.byteLength(body)) },
      });

    const bad: [string, string, string?][] = [
      ['JSON that is none', '{"grant_type":'],
      ['an array', '[]'],
      ['a nested value', '{"grant_type":{"a":1},"client_id":"web"}'],
      [
        'a form with a parameter twice',
        'grant_type=password&grant_type=password&client_id=web',
        'application/x-www-form-urlencoded',
      ],
      ['XML', '<a/>', 'application/xml'],
      ['nothing', '{}'],
      ['a body that is too large', JSON.stringify({ grant_type: 'x'.repeat(200_000) })],
    ];
    for (const [what, body, type] of bad) {
      it(`is answered 4xx in the error shape: ${what}`, async () => {
        const answer = await post(body, type);
        expect(answer.status).to.be.within(400, 499);
        expect(answer.json()).to.have.property('error').that.is.a('string');
        expect(answer.json()).to.have.property('error_description').that.is.a('string');
        expect(answer.text).not.to.contain('node_modules');
      });
    }

    it('is answered 4xx for an unknown grant type', async () => {
      const answer = await token(agent(), { grant_type: 'telepathy', client_id: 'spa' });
      expect(answer.status).to.equal(400);
      expect(answer.json()).to.deep.equal({
        error: 'unsupported_grant_type',
        error_description: 'Unsupported grant type: telepathy',
      });
    });
  });

  it('accepts numbers in JSON as the strings they stand for', async () => {
    const answer = await agent().request('/oauth/token', {
      json: {
        grant_type: 'password',
        client_id: 'web',
        client_secret: 'web-secret',
        username: USER.email,
        password: 12345678,
      },
    });
    expect(answer.json()).to.include({ error: 'invalid_grant' });
  });

  it('returns the same sub to different applications', async () => {
    const direct = payload((await password()).json().id_token).sub;
    const browser = agent();
    const answer = await logIn(browser, server, webRequest({ response_type: 'id_token', nonce: 'n' }));
    expect(payload(responseOf(answer).id_token!).sub).to.equal(direct);
  });
});
