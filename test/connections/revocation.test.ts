// Global token revocation: identity providers end the sessions of their own users.
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { type JWTPayload, SignJWT } from 'jose';
import { createAgent } from '../support/agent.ts';
import { authorize, responseOf, tenant, token, WEB_CALLBACK, webRequest } from '../support/flows.ts';
import { type OpenIdProvider, signingKey, startOpenIdProvider } from '../support/openid-provider.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { logInUpstream } from '../support/upstream-login.ts';

describe('global token revocation', () => {
  let provider: OpenIdProvider;
  let server: TestServer;
  before(async () => {
    provider = await startOpenIdProvider(await signingKey('k1'));
    const connection = (name: string, options: object) => ({
      name,
      strategy: 'oidc',
      enabled_clients: ['web'],
      options: {
        type: 'back_channel',
        discovery_url: `${provider.url}/.well-known/openid-configuration`,
        client_id: 'gatehouse',
        client_secret: 'upstream-secret-of-thirty-two-bytes!',
        ...options,
      },
    });
    const expected = {
      global_token_revocation_jwt_iss: provider.url,
      global_token_revocation_jwt_sub: 'the-app',
    };
    server = await startServer({
      tenant: {
        ...tenant,
        connections: [
          connection('acme', expected),
          connection('other', expected),
          connection('off', {}),
          connection('half', { global_token_revocation_jwt_iss: provider.url }),
        ],
      },
    });
  });
  after(async () => {
    await server?.stop();
    await provider?.stop();
  });

  const path = (name: string) => `/oauth/global-token-revocation/connection/${name}`;
  const sign = async (claims: JWTPayload = {}, typ = 'global-token-revocation+jwt') => {
    const [key] = provider.keys;
    if (key === undefined) throw new Error('the provider has no key');
    const now = Math.floor(Date.now() / 1000);
    const usual = {
      iss: provider.url,
      sub: 'the-app',
      aud: `${server.url}${path('acme')}`,
      jti: randomUUID(),
    };
    return new SignJWT({ ...usual, iat: now, exp: now + 300, ...claims })
      .setProtectedHeader({ alg: key.alg, kid: key.kid, typ })
      .sign(key.privateKey);
  };
  const grace = () => ({ format: 'iss_sub', iss: provider.url, sub: 'grace' });
  const revoke = async (sub_id: object, jwt?: string, name = 'acme') =>
    createAgent(server).request(path(name), {
      json: { sub_id },
      headers: { authorization: `Bearer ${jwt ?? (await sign())}` },
    });
  /** Logs a user in. @returns functions that tell whether the session and the refresh token are still valid. */
  const loggedIn = async (connection = 'acme', sub = 'grace') => {
    const agent = createAgent(server);
    Object.assign(provider, {
      claims: { sub, email: 'grace@upstream.test', email_verified: true },
      userInfo: { sub },
    });
    const scope = 'openid offline_access';
    const { code } = await logInUpstream(server, { connection, scope }, agent);
    const credentials = { client_id: 'web', client_secret: 'web-secret' };
    const { refresh_token } = (
      await token(agent, {
        grant_type: 'authorization_code',
        ...credentials,
        code,
        redirect_uri: WEB_CALLBACK,
      })
    ).json();
    return {
      hasSession: async () => 'code' in responseOf(await authorize(agent, webRequest({ prompt: 'none' }))),
      refreshes: async () =>
        (await token(agent, { grant_type: 'refresh_token', ...credentials, refresh_token })).status === 200,
    };
  };

  for (const format of ['iss_sub', 'email', 'opaque'])
    it(`ends the sessions and refresh tokens of the user that a subject identifier names: ${format}`, async () => {
      const user = await loggedIn();
      expect([await user.hasSession(), await user.refreshes()]).to.deep.equal([true, true]);
      const subject = {
        iss_sub: grace(),
        email: { format, email: 'grace@upstream.test' },
        opaque: { format, id: 'grace' },
      };
      const answer = await revoke(subject[format as keyof typeof subject]);
      expect(answer.status, answer.text).to.equal(204);
      expect([await user.hasSession(), await user.refreshes()]).to.deep.equal([false, false]);
    });

  it('ends those of every user of the connection with an e-mail address, in any case of letters', async () => {
    const both = [await loggedIn(), await loggedIn('acme', 'grace-before')];
    expect((await revoke({ format: 'email', email: 'Grace@Upstream.test' })).status).to.equal(204);
    for (const user of both)
      expect([await user.hasSession(), await user.refreshes()]).to.deep.equal([false, false]);
  });

  it('rejects a JWT that is forged, expired, or for another purpose or connection, and a connection without it', async () => {
    const user = await loggedIn();
    const now = Math.floor(Date.now() / 1000);
    const [key] = provider.keys;
    const forger = await signingKey(key?.kid ?? '');
    const forged = await new SignJWT({
      iss: provider.url,
      sub: 'the-app',
      aud: `${server.url}${path('acme')}`,
    })
      .setProtectedHeader({ alg: forger.alg, kid: forger.kid, typ: 'global-token-revocation+jwt' })
      .setIssuedAt()
      .setExpirationTime('5m')
      .sign(forger.privateKey);
    const wrong = [
      await sign({ iss: 'https://elsewhere.test' }),
      await sign({ sub: 'another-app' }),
      await sign({ aud: `${server.url}${path('other')}` }),
      await sign({ aud: 'gatehouse' }),
      await sign({ iat: now - 3_600 }),
      await sign({ iat: now - 600, exp: now - 500 }),
      await sign({}, 'JWT'),
      await provider.sign({}),
      forged,
      'nonsense',
    ];
    for (const jwt of wrong) expect((await revoke(grace(), jwt)).status).to.equal(401);
    const none = await createAgent(server).request(path('acme'), { json: { sub_id: grace() } });
    expect(none.status).to.equal(401);
    for (const name of ['off', 'half', 'users', 'nowhere'])
      expect(
        (await revoke(grace(), await sign({ aud: `${server.url}${path(name)}` }), name)).status,
      ).to.equal(401);
    expect(await user.hasSession()).to.equal(true);
  });

  it('accepts a JWT once, for whichever subject, even when sent several times at once', async () => {
    const user = await loggedIn();
    const jwt = await sign();
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => revoke({ ...grace(), sub: 'nobody' }, jwt)),
    );
    expect(answers.map(({ status }) => status).sort()).to.deep.equal([...Array(9).fill(401), 404]);
    expect((await revoke(grace(), jwt)).status).to.equal(401);
    expect(await user.hasSession()).to.equal(true);
  });

  it('returns 404 for an unknown subject, and never ends sessions of another connection’s users', async () => {
    const user = await loggedIn('other');
    expect((await revoke({ ...grace(), sub: 'nobody' })).status).to.equal(404);
    expect((await revoke({ ...grace(), iss: 'https://elsewhere.test' })).status).to.equal(404);
    expect((await revoke({ format: 'email', email: 'ada@example.test' })).status).to.equal(404);
    expect((await revoke({ format: 'phone_number', phone_number: '+1' })).status).to.equal(400);
    await revoke(grace());
    expect(await user.hasSession()).to.equal(true);
  });
});
