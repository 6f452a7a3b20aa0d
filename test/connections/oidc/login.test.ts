// Logins at an OpenID provider: valid ones, and the answers of hostile providers that are rejected.
import { expect } from 'chai';
import { CompactSign, calculateJwkThumbprint, EmbeddedJWK, type JWK, jwtVerify } from 'jose';
import { createAgent } from '../../support/agent.ts';
import {
  authorize,
  follow,
  payload,
  responseOf,
  tenant,
  token,
  WEB_CALLBACK,
  webRequest,
} from '../../support/flows.ts';
import {
  type OpenIdProvider,
  type SigningKey,
  signingKey,
  startOpenIdProvider,
} from '../../support/openid-provider.ts';
import { startServer, type TestServer } from '../../support/server.ts';
import { failedLogins, fromProvider, logInUpstream, toProvider } from '../../support/upstream-login.ts';

const SECRET = 'upstream-secret-of-thirty-two-bytes!';

describe('a login at an OpenID provider', () => {
  let key: SigningKey;
  let other: SigningKey;
  let provider: OpenIdProvider;
  let second: OpenIdProvider;
  let server: TestServer;

  const connection = (name: string, options: object, at = provider) => ({
    name,
    strategy: 'oidc',
    enabled_clients: ['web'],
    options: {
      type: 'back_channel',
      discovery_url: `${at.url}/.well-known/openid-configuration`,
      client_id: 'gatehouse',
      client_secret: SECRET,
      ...options,
    },
  });

  before(async () => {
    [key, other] = await Promise.all([signingKey('k1'), signingKey('k1')]);
    [provider, second] = await Promise.all([startOpenIdProvider(key), startOpenIdProvider(key)]);
    server = await startServer({
      tenant: {
        ...tenant,
        connections: [
          connection('acme', {}),
          connection('other', {}, second),
          connection('front', { type: 'front_channel' }),
          connection('basic', { token_endpoint_auth_method: 'client_secret_basic' }),
          connection('plain', { connection_settings: { pkce: 'plain' } }),
          connection('nopkce', { connection_settings: { pkce: 'disabled' }, send_back_channel_nonce: false }),
          connection('hmac', { id_token_signed_response_algs: ['HS256'] }),
          connection('keyless', { id_token_signed_response_algs: ['HS256'], client_secret: '' }),
          connection('bound', { dpop_signing_alg: 'ES256' }),
          connection('bound384', { dpop_signing_alg: 'ES384' }),
          connection('bound512', { dpop_signing_alg: 'ES512' }),
          connection('ending', { id_token_session_expiry_supported: true, send_back_channel_nonce: false }),
          connection('es', { id_token_signed_response_algs: ['ES256'] }),
          connection('mapped', {
            attribute_map: {
              mapping_mode: 'use_map',
              attributes: {
                name: '${context.tokenset.given} ${context.userinfo.family}',
                email: '${context.userinfo.mail}',
                email_verified: true,
                nickname: '${context.userinfo.nested.nick}',
                picture: '${context.tokenset.none}',
              },
            },
          }),
        ],
      },
    });
  });
  after(async () => {
    await server?.stop();
    await Promise.all([provider?.stop(), second?.stop()]);
  });
  beforeEach(() => {
    for (const one of [provider, second]) {
      Object.assign(one, { document: {}, claims: {}, userInfo: {}, answer: {}, keys: [key] });
      Object.assign(one, { signer: undefined, instead: {} });
    }
  });

  const userOf = async (connectionName: string, sub = 'grace') => {
    const identity = await server.store
      .collection('identities')
      .get(`${connectionName}|${connectionName}|${sub}`);
    return server.store.collection('users').get(identity?.user_id ?? '');
  };
  const logIn = (name: string, more = {}) => logInUpstream(server, { connection: name, ...more });

  describe('that is valid', () => {
    it('creates the user with the claims of the ID token and userinfo; those of the ID token take precedence', async () => {
      Object.assign(provider, {
        claims: { email: 'Grace@Upstream.test', email_verified: true },
        userInfo: { email: 'evil@upstream.test', name: 'Grace', department: 'navy' },
      });
      expect(await logIn('acme')).to.have.property('code');
      const user = await userOf('acme');
      expect(user).to.include({ email: 'grace@upstream.test', email_verified: true, name: 'Grace' });
      expect(user?.id).to.equal('oidc|acme|grace');
    });

    it('creates the profile that attribute_map describes', async () => {
      Object.assign(provider, {
        claims: { given: 'Grace', email: 'unmapped@upstream.test' },
        userInfo: { family: 'Hopper', mail: 'mapped@upstream.test', nested: { nick: 'amazing' } },
      });
      expect(await logIn('mapped')).to.have.property('code');
      const user = await userOf('mapped');
      expect(user).to.include({ name: 'Grace Hopper', email: 'mapped@upstream.test', nickname: 'amazing' });
    });

    it('uses the client authentication method of the connection', async () => {
      await logIn('basic');
      const { headers, form } = provider.seen.findLast(({ path }) => path === '/token') ?? {};
      expect(headers?.authorization).to.match(/^Basic /);
      expect(form).to.not.have.property('client_secret');
    });

    it('uses PKCE and the nonce as the connection says', async () => {
      const plain = await toProvider(server, { connection: 'plain' });
      expect(plain.at.searchParams.get('code_challenge_method')).to.equal('plain');
      expect(responseOf(await fromProvider(server, plain))).to.have.property('code');
      const none = await toProvider(server, { connection: 'nopkce', max_age: '60' });
      expect([...none.at.searchParams.keys()]).to.not.include.members(['code_challenge', 'nonce']);
      expect(none.at.searchParams.get('max_age')).to.equal('60');
      expect(responseOf(await fromProvider(server, none))).to.have.property('code');
    });

    it('accepts an ID token signed by the client secret only if the connection allows it, and never an empty secret', async () => {
      const signer = { kid: 'h', alg: 'HS256', privateKey: Buffer.from(SECRET), jwk: {} };
      provider.signer = signer;
      expect(await logIn('hmac')).to.have.property('code');
      expect(await logIn('acme')).to.include({ error: 'access_denied' });
      // Anybody could sign with an empty secret.
      provider.signer = { ...signer, privateKey: Buffer.from('x') };
      expect(await logIn('keyless')).to.include({ error: 'access_denied' });
    });
  });

  /** Runs a front channel login with an ID token. @returns the response to the application. */
  const front = async (token: (nonce: string) => Promise<string>, agent = createAgent(server)) => {
    const away = new URL((await authorize(agent, webRequest({ connection: 'front' }))).location);
    const { state = '', nonce = '' } = Object.fromEntries(away.searchParams);
    expect(away.searchParams.get('response_mode')).to.equal('form_post');
    const form = { state, id_token: await token(nonce) };
    return responseOf(await follow(agent, await agent.request('/login/callback', { form }), server.url));
  };

  it('accepts an ID token that the browser posts', async () => {
    expect(await front((nonce) => provider.sign({ nonce }))).to.have.property('code');
  });

  it('refuses an ID token in the query, which only a posted form may bring', async () => {
    const agent = createAgent(server);
    const away = new URL((await authorize(agent, webRequest({ connection: 'front' }))).location);
    const { state = '', nonce = '' } = Object.fromEntries(away.searchParams);
    const form = { state, id_token: await provider.sign({ nonce }) };
    const answer = await agent.get(`/login/callback?${new URLSearchParams(form)}`);
    expect(answer.status, answer.location).to.equal(400);
    const posted = await agent.request('/login/callback', { form });
    expect(responseOf(await follow(agent, posted, server.url))).to.have.property('code');
  });

  const past = () => Math.floor(Date.now() / 1000) - 600;
  const hostile: [string, Record<string, unknown>][] = [
    ['of another issuer', { iss: 'https://evil.example.test' }],
    ['for another client', { aud: 'someone-else' }],
    ['for several clients without azp', { aud: ['gatehouse', 'someone-else'] }],
    ['whose azp is another client', { aud: ['gatehouse', 'x'], azp: 'x' }],
    ['of another login', { nonce: 'another' }],
    ['without the nonce', { nonce: undefined }],
    ['that has expired', { iat: past(), exp: past() + 300 }],
    ['without exp', { exp: undefined }],
    ['that is not valid yet', { nbf: Math.floor(Date.now() / 1000) + 600 }],
    ['with an empty sub', { sub: '' }],
    ['with a sub that is not a string', { sub: 7 }],
  ];
  for (const [what, claims] of hostile) {
    it(`rejects an ID token ${what}, from the front and the back channel`, async () => {
      provider.claims = claims;
      expect(await logIn('acme')).to.include({ error: 'access_denied' });
      expect(await front((nonce) => provider.sign({ nonce, ...claims }))).to.include({
        error: 'access_denied',
      });
    });
  }

  it('rejects an ID token whose at_hash is of another access token', async () => {
    provider.claims = { at_hash: Buffer.alloc(16).toString('base64url') };
    expect((await logIn('acme')).error_description).to.contain('of another access token');
  });

  it('rejects an ID token that is unsigned, or signed by another key or algorithm', async () => {
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const unsigned = async (nonce: string) => {
      const [, payload] = (await provider.sign({ nonce })).split('.');
      return `${part({ alg: 'none' })}.${payload}.`;
    };
    expect(await front(unsigned)).to.include({ error: 'access_denied' });
    // Algorithm confusion: the public key must not be accepted as an HMAC secret.
    const confused = async (nonce: string) => {
      provider.signer = { ...key, alg: 'HS256', privateKey: Buffer.from(JSON.stringify(key.jwk)) };
      return provider.sign({ nonce });
    };
    expect(await front(confused)).to.include({ error: 'access_denied' });
    provider.signer = other;
    expect((await logIn('acme')).error_description).to.contain('signature');
    provider.signer = undefined;
    expect((await logIn('es')).error_description).to.contain('algorithm');
  });

  it('rejects an ID token of an earlier login', async () => {
    let old = '';
    await front(async (nonce) => {
      old = await provider.sign({ nonce });
      return old;
    });
    expect(await front(async () => old)).to.include({ error: 'access_denied' });
    expect(await failedLogins(server)).to.include(
      'The ID token of the identity provider is not for this login.',
    );
  });

  it('rejects a userinfo response with another sub', async () => {
    provider.userInfo = { sub: 'ada' };
    expect((await logIn('acme')).error_description).to.contain('userinfo endpoint');
  });

  it('rejects a token response without an ID token, and repeats only the code of an error response', async () => {
    provider.answer = { id_token: undefined };
    expect((await logIn('acme')).error_description).to.contain('gave no ID token');
    provider.answer = {};
    const { agent, at } = await toProvider(server, { connection: 'acme' });
    const back = `/login/callback?code=stolen&state=${at.searchParams.get('state')}`;
    const { error_description } = responseOf(await follow(agent, await agent.get(back), server.url));
    expect(error_description).to.contain('invalid_grant').and.not.contain('detail');
  });

  it('rejects an answer whose iss is another provider, and sends its code nowhere (mix-up attack)', async () => {
    const { agent, at, back } = await toProvider(server, { connection: 'acme' });
    const answer = new URL(back);
    answer.searchParams.set('iss', second.url);
    const tokens = provider.count('/token');
    const end = await follow(agent, await agent.get(answer.href), server.url);
    expect(responseOf(end).error_description).to.contain('another identity provider');
    expect(at.searchParams.get('state')).to.be.a('string');
    // The code is sent to neither provider.
    expect([provider.count('/token'), second.count('/token')]).to.deep.equal([
      tokens,
      second.count('/token'),
    ]);
  });

  it('rejects an answer without iss if the provider’s metadata announces it', async () => {
    second.document = { authorization_response_iss_parameter_supported: true };
    await server.tick(3_600_001);
    expect((await logIn('other')).error_description).to.contain('another identity provider');
    second.document = {};
    await server.tick(3_600_001);
    expect(await logIn('other')).to.have.property('code');
  });

  it('accepts exactly one of fifty answers at once', async () => {
    const { agent, back } = await toProvider(server, { connection: 'acme' });
    const answers = await Promise.all(Array.from({ length: 50 }, () => agent.get(back)));
    expect(answers.filter(({ status }) => status === 303)).to.have.length(1);
  });

  describe('with the provider’s metadata and keys', () => {
    it('reads the keys again for a new key, but at most once a minute for unknown ones', async () => {
      expect(await logIn('acme')).to.have.property('code');
      const rotated = await signingKey('k2');
      provider.keys = [rotated];
      const before = provider.count('/jwks');
      expect(await logIn('acme')).to.have.property('code');
      expect(provider.count('/jwks')).to.equal(before + 1);
      provider.signer = await signingKey('k3');
      for (let login = 0; login < 3; login++) {
        expect(await logIn('acme')).to.include({ error: 'access_denied' });
      }
      expect(provider.count('/jwks')).to.equal(before + 1);
      await server.tick(60_001);
      await logIn('acme');
      expect(provider.count('/jwks')).to.equal(before + 2);
      await server.tick(600_001);
      provider.signer = undefined;
      provider.keys = [key];
      expect(await logIn('acme')).to.have.property('code');
    });

    const documents: [string, () => void, string][] = [
      [
        'has another issuer',
        () => {
          second.document = { issuer: provider.url };
        },
        'is of another issuer',
      ],
      [
        'cannot be read',
        () => {
          second.instead = {
            '/.well-known/openid-configuration': (response) => response.writeHead(500).end(),
          };
        },
        'sent no valid answer',
      ],
      [
        'is too large',
        () => {
          second.document = { padding: 'x'.repeat(300_000) };
        },
        'too large',
      ],
      [
        'has an authorization_endpoint that is not an https URL',
        () => {
          second.document = { authorization_endpoint: 'javascript:alert(1)' };
        },
        'no authorization_endpoint',
      ],
    ];
    for (const [what, set, words] of documents) {
      it(`fails with an error at the application if the discovery document ${what}`, async () => {
        // After this time, a cached document is no longer used when the provider does not answer.
        await server.tick(90_000_000);
        set();
        const agent = createAgent(server);
        const end = await follow(
          agent,
          await authorize(agent, webRequest({ connection: 'other' })),
          server.url,
        );
        expect(responseOf(end)).to.include({ error: 'invalid_request' });
        expect(responseOf(end).error_description).to.contain(words);
      });
    }

    it('stops reading a discovery document that exceeds the limit', async () => {
      await server.tick(90_000_000);
      let sent = 0;
      let left: () => void = () => undefined;
      const gone = new Promise<void>((resolve) => {
        left = resolve;
      });
      second.instead = {
        '/.well-known/openid-configuration': (response) => {
          response.writeHead(200, { 'content-type': 'application/json' });
          response.on('close', left);
          const part = 'x'.repeat(65_536);
          const more = () => {
            while (sent < 10 * 1024 * 1024 && !response.destroyed) {
              sent += part.length;
              if (!response.write(part)) return void response.once('drain', more);
            }
          };
          more();
        },
      };
      const agent = createAgent(server);
      const refused = await authorize(agent, webRequest({ connection: 'other' }));
      expect(responseOf(await follow(agent, refused, server.url)).error_description).to.contain('too large');
      await gone;
      // More was sent than read, because of the buffers at both ends of the connection.
      expect(sent).to.be.below(9 * 1024 * 1024);
    });

    it('uses the cached discovery document when the provider does not answer', async () => {
      await server.tick(90_000_000);
      expect(await logIn('other')).to.have.property('code');
      second.instead = { '/.well-known/openid-configuration': (response) => response.writeHead(500).end() };
      await server.tick(3_600_001);
      expect(await logIn('other')).to.have.property('code');
    });
  });

  it('rejects an old auth_time if the request has prompt=login or max_age, which it forwards', async () => {
    const now = Math.floor(Date.now() / 1000);
    const old = { auth_time: now - 3600 };
    const description = async (more: Record<string, string>, claims: object) => {
      Object.assign(provider, { claims });
      return (await logInUpstream(server, { connection: 'acme', ...more })).error_description;
    };
    const refused = 'The identity provider did not have its user log in again.';
    expect(await description({ prompt: 'login' }, old)).to.equal(refused);
    expect(await description({ max_age: '60' }, old)).to.equal(refused);
    expect(await description({ prompt: 'login' }, { auth_time: now })).to.equal(undefined);
    expect(await description({ max_age: '7200' }, old)).to.equal(undefined);
    // Without auth_time, the age is unknown and the login is accepted.
    expect(await description({ prompt: 'login' }, {})).to.equal(undefined);
    expect(await description({}, old)).to.equal(undefined);
    const { at } = await toProvider(server, { connection: 'acme', prompt: 'login' });
    expect(Object.fromEntries(at.searchParams)).to.include({ prompt: 'login', max_age: '0' });
    const { at: plain } = await toProvider(server, { connection: 'acme' });
    expect(plain.searchParams.has('max_age')).to.equal(false);
  });

  for (const [name, algorithm] of [
    ['bound', 'ES256'],
    ['bound384', 'ES384'],
    ['bound512', 'ES512'],
  ] as const)
    it(`uses one DPoP key (${algorithm}) for the token and userinfo requests, and does not store the bound access token`, async () => {
      provider.answer = { token_type: 'DPoP', refresh_token: 'refresh-bound' };
      provider.userInfo = { city: 'Graz' };
      expect(await logIn(name)).to.have.property('code');
      const thumbprints = await Promise.all(
        ['/token', '/userinfo'].map(async (path) => {
          const headers = provider.seen.findLast((one) => one.path === path)?.headers ?? {};
          const { payload: proof, protectedHeader } = await jwtVerify(String(headers.dpop), EmbeddedJWK);
          expect(proof).to.include({
            htu: `${provider.url}${path}`,
            htm: path === '/token' ? 'POST' : 'GET',
          });
          expect(protectedHeader.alg).to.equal(algorithm);
          expect(proof.ath !== undefined).to.equal(path === '/userinfo');
          if (path === '/userinfo') expect(headers.authorization).to.match(/^DPoP access-/);
          return calculateJwkThumbprint(protectedHeader.jwk as JWK);
        }),
      );
      expect(new Set(thumbprints).size).to.equal(1);
      const identity = await server.store.collection('identities').get(`${name}|${name}|grace`);
      expect(identity?.attributes).to.include({ city: 'Graz' });
      expect(identity?.upstream)
        .to.include({ refresh_token: 'refresh-bound' })
        .and.not.have.property('access_token');
    });

  it('ends the session at the time of session_expiry, if the connection supports that', async () => {
    const now = Math.floor(Date.now() / 1000);
    const endOf = async (name: string, ends: number) => {
      provider.claims = { session_expiry: ends };
      const agent = createAgent(server);
      expect(await logInUpstream(server, { connection: name }, agent)).to.have.property('code');
      const user = await userOf(name);
      const all = await server.store.collection('artifacts').findBy('account', user?.id ?? '');
      return all.find(({ model }) => model === 'Session')?.expiresAt;
    };
    expect(await endOf('ending', now + 600)).to.be.within(now + 590, now + 610);
    expect(await endOf('acme', now + 600)).to.be.greaterThan(now + 3600);
    provider.claims = { session_expiry: now - 1 };
    expect((await logIn('ending')).error_description).to.contain('session that is over');
  });

  it('fails if session_expiry is not a time', async () => {
    const now = Math.floor(Date.now() / 1000);
    const claims = { iss: provider.url, sub: 'grace', aud: 'gatehouse', iat: now, exp: now + 300 };
    // Built as text, because JSON.stringify does not produce these numbers.
    for (const ends of ['1e400', '1e300', '-1', '0', `"${now + 600}"`, 'null', '{}']) {
      const text = JSON.stringify(claims).replace('}', `,"session_expiry":${ends}}`);
      const id_token = await new CompactSign(Buffer.from(text))
        .setProtectedHeader({ alg: key.alg, kid: key.kid })
        .sign(key.privateKey);
      provider.answer = { id_token };
      expect((await logIn('ending')).error_description, ends).to.contain('session_expiry that is no time');
    }
  });

  it('has the auth_time of the provider, made at most 15 minutes old, and a session of full length', async () => {
    const now = Math.floor(Date.now() / 1000);
    const ageBy = async (claims: object) => {
      Object.assign(provider, { claims });
      const agent = createAgent(server);
      const { code } = await logInUpstream(server, { connection: 'acme' }, agent);
      const tokens = await token(agent, {
        ...{ client_id: 'web', client_secret: 'web-secret', redirect_uri: WEB_CALLBACK },
        ...{ grant_type: 'authorization_code', code },
      });
      // The session here is valid nevertheless.
      const again = await authorize(agent, webRequest({ prompt: 'none' }));
      expect(responseOf(again)).to.have.property('code');
      return Number(payload(tokens.json().id_token).iat) - Number(payload(tokens.json().id_token).auth_time);
    };
    expect(await ageBy({ auth_time: now - 30 * 86_400 })).to.be.within(890, 910);
    expect(await ageBy({ auth_time: now - 700 })).to.be.within(690, 800);
    for (const claims of [{ auth_time: now }, { auth_time: now + 86_400 }, { auth_time: 'old' }, {}])
      expect(await ageBy(claims), JSON.stringify(claims)).to.be.below(60);
  });
});
