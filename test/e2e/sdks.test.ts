// Published SDKs, unmodified, against a running server with its own TLS.
import { generateKeyPairSync } from 'node:crypto';
import { expect } from 'chai';
import { createAgent } from '../support/agent.ts';
import { API, follow, header, payload, submitLogin, tenant, USER, WEB_CALLBACK } from '../support/flows.ts';
import { type SdkProcess, startSdkProcess } from '../support/sdk.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { softwareKey } from '../support/software-key.ts';

const keys = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
});

const SCOPE = 'openid profile email';
const SITE = 'https://app.example.test';

const sdkTenant = {
  ...tenant,
  clients: [
    ...tenant.clients.map((client) => ({
      ...client,
      oidc_conformant: true,
      anonymous_sessions: { active: true },
      ...(client.client_id === 'web' && {
        grant_types: [...(client.grant_types ?? []), 'urn:okta:params:oauth:grant-type:webauthn'],
        web_origins: [SITE],
      }),
    })),
    {
      client_id: 'key-client',
      name: 'Private key',
      app_type: 'regular_web',
      oidc_conformant: true,
      anonymous_sessions: { active: true },
      callbacks: [WEB_CALLBACK],
      grant_types: ['authorization_code', 'refresh_token', 'client_credentials', 'password'],
      client_authentication_methods: {
        private_key_jwt: { credentials: [{ name: 'k1', alg: 'RS256', pem: keys.publicKey }] },
      },
    },
  ],
  databases: [
    ...tenant.databases.map((database) => ({
      ...database,
      enabled_clients: [...database.enabled_clients, 'key-client'],
    })),
    {
      name: 'keys',
      enabled_clients: ['web'],
      options: { authentication_methods: { passkey: { enabled: true } } },
    },
  ],
  clientGrants: [...tenant.clientGrants, { client_id: 'key-client', audience: API, scope: ['read:things'] }],
};

describe('published SDKs', () => {
  let server: TestServer;
  let sdk: SdkProcess;

  before(async () => {
    server = await startServer({ tenant: sdkTenant });
    sdk = await startSdkProcess(server.caFile);
  });
  after(async () => {
    await sdk.stop();
    await server.stop();
  });

  /** Follows an authorization URL as the user's browser does. @returns the callback URL. */
  const browse = async (url: string): Promise<string> => {
    const browser = createAgent(server);
    const page = await follow(browser, await browser.get(url), server.url);
    return (await submitLogin(browser, server, page)).location;
  };

  const kinds: [string, () => Record<string, unknown>][] = [
    ['a secret', () => ({ domain: new URL(server.url).host, clientId: 'web', clientSecret: 'web-secret' })],
    [
      'a private key',
      () => ({
        domain: new URL(server.url).host,
        clientId: 'key-client',
        clientAssertionSigningKey: keys.privateKey,
      }),
    ],
  ];
  it('auth0-auth-js signs up a user and logs them in with a passkey: passkey.register, challenge, getTokenByPasskey', async () => {
    const options = { domain: new URL(server.url).host, clientId: 'web', clientSecret: 'web-secret' };
    const call = (method: string, ...args: unknown[]) =>
      sdk.call('auth-js', { options, method: `passkey.${method}`, args });
    const key = softwareKey();
    const email = 'auth-js-key@example.test';
    const asked = await call('register', { email, name: 'Ada', realm: 'keys' });
    const { authSession } = asked;
    const credential = key.create(asked.authnParamsPublicKey, SITE);
    const made = await call('getTokenByPasskey', { authSession, credential, realm: 'keys', scope: SCOPE });
    expect(made.claims).to.deep.include({ email, name: 'Ada' });
    const again = await call('challenge', { realm: 'keys' });
    const tokens = await call('getTokenByPasskey', {
      authSession: again.authSession,
      credential: key.get(again.authnParamsPublicKey, SITE),
      realm: 'keys',
      scope: SCOPE,
      audience: API,
    });
    expect(tokens.claims).to.deep.include({ sub: made.claims.sub, amr: ['mfa'] });
    const used = await call('getTokenByPasskey', { authSession, credential, realm: 'keys' }).catch(
      (error) => error,
    );
    expect(used).to.include({ name: 'PasskeyGetTokenError' });
  });

  for (const [kind, options] of kinds) {
    describe(`@auth0/auth0-auth-js AuthClient with ${kind}`, () => {
      const call = (method: string, ...args: unknown[]) =>
        sdk.call('auth-js', { options: options(), method, args });

      it('logs a user in: buildAuthorizationUrl, getTokenByCode, getUserInfo, getTokenByRefreshToken, revokeToken', async () => {
        const { authorizationUrl, codeVerifier } = await call('buildAuthorizationUrl', {
          authorizationParams: {
            redirect_uri: WEB_CALLBACK,
            scope: 'openid profile email offline_access',
            audience: API,
          },
        });
        const callback = await browse(authorizationUrl);
        const tokens = await sdk.call('auth-js-code', { options: options(), callback, codeVerifier });
        expect(tokens.claims).to.include({ email: USER.email, iss: server.issuer, aud: options().clientId });
        expect(header(tokens.accessToken)).to.include({ alg: 'RS256' });
        const profile = await call('getUserInfo', { accessToken: tokens.accessToken });
        expect(profile).to.include({ email: USER.email, sub: tokens.claims.sub });
        const refreshed = await call('getTokenByRefreshToken', { refreshToken: tokens.refreshToken });
        expect(payload(refreshed.accessToken)).to.include({ gty: 'refresh_token', sub: tokens.claims.sub });
        const newest = refreshed.refreshToken ?? tokens.refreshToken;
        await call('revokeToken', { token: newest });
        const failure = await call('getTokenByRefreshToken', { refreshToken: newest }).catch(
          (error) => error,
        );
        expect(failure.cause).to.include({
          error: 'invalid_grant',
          error_description: 'Unknown or invalid refresh token.',
        });
      });

      it('keeps anonymous sessions, and gets a ticket for a login: anonymous.createSession, getAccessToken, logout; mintTransferToken', async () => {
        const begun = await call('anonymous.createSession', { metadata: { cart: 'c-1' } });
        const { sessionToken } = begun;
        const next = await call('anonymous.getAccessToken', { sessionToken });
        expect(next).to.include({ sessionToken, sessionReplaced: false });
        expect(payload(next.accessToken).sub).to.equal(payload(begun.accessToken).sub);
        const replaced = await call('anonymous.getAccessToken', { sessionToken: 'x' });
        expect(replaced.sessionReplaced).to.equal(true);
        expect(await call('anonymous.mintTransferToken', sessionToken)).to.match(/^[\w-]{43}$/);
        expect(await call('anonymous.mintTransferToken', 'x')).to.equal(null);
        await call('anonymous.logout');
      });

      it('gets tokens by password, in the default directory and a realm, and the error of a wrong password', async () => {
        const tokens = await call('getTokenByPassword', {
          username: USER.email,
          password: USER.password,
          audience: API,
          scope: 'openid profile email',
        });
        expect(tokens.claims).to.include({ email: USER.email });
        const inRealm = await call('getTokenByPassword', {
          username: USER.email,
          password: USER.password,
          realm: 'users',
        });
        expect(inRealm.accessToken).to.be.a('string');
        const failure = await call('getTokenByPassword', {
          username: USER.email,
          password: 'Wrong-1-password',
        }).catch((e) => e);
        expect(failure.cause).to.include({
          error: 'invalid_grant',
          error_description: 'Wrong email or password.',
        });
      });

      it('gets tokens for itself by client credentials', async () => {
        const tokens = await call('getTokenByClientCredentials', { audience: API });
        expect(payload(tokens.accessToken)).to.include({ sub: `${options().clientId}@clients`, aud: API });
      });

      it('signs up a user with its database client, and the user can log in', async () => {
        const user = {
          email: `new-${String(options().clientId)}@example.test`,
          password: 'Another-Horse-2',
          connection: 'users',
          givenName: 'Grace',
          userMetadata: { plan: 'gold' },
        };
        const created = await sdk.call('auth-js-signup', { options: options(), user });
        expect(created).to.deep.include({ email: user.email, emailVerified: false, givenName: 'Grace' });
        expect(created.id).to.match(/^[0-9a-f]{24}$/);
        const tokens = await call('getTokenByPassword', {
          username: user.email,
          password: user.password,
          scope: 'openid profile',
        });
        expect(tokens.claims).to.include({ sub: `auth0|${created.id}`, given_name: 'Grace' });
        const weak = await sdk
          .call('auth-js-signup', {
            options: options(),
            user: { ...user, email: 'x@example.test', password: 'weak' },
          })
          .catch((error) => error);
        expect(weak.message).to.be.a('string').and.not.equal('');
      });
    });
  }

  describe('openid-client', () => {
    const web = () => ({ issuer: server.issuer, clientId: 'web', secret: 'web-secret' });
    const key = () => ({ issuer: server.issuer, clientId: 'key-client', privateKey: keys.privateKey });

    it('discovers the server', async () => {
      const metadata = await sdk.call('oidc-discovery', web());
      expect(metadata).to.include({
        issuer: server.issuer,
        authorization_endpoint: `${server.issuer}authorize`,
        token_endpoint: `${server.issuer}oauth/token`,
        userinfo_endpoint: `${server.issuer}userinfo`,
        jwks_uri: `${server.issuer}.well-known/jwks.json`,
        revocation_endpoint: `${server.issuer}oauth/revoke`,
      });
    });

    for (const [kind, credentials] of [
      ['a secret', web],
      ['a private key', key],
    ] as const) {
      it(`logs a user in with code and PKCE, reads the profile and refreshes, with ${kind}`, async () => {
        const { url, verifier } = await sdk.call('oidc-authorization-url', {
          ...credentials(),
          parameters: {
            redirect_uri: WEB_CALLBACK,
            scope: 'openid email offline_access',
            state: 's1',
            nonce: 'n1',
          },
        });
        const { tokens, claims, profile } = await sdk.call('oidc-code', {
          ...credentials(),
          callback: await browse(url),
          verifier,
          state: 's1',
          nonce: 'n1',
        });
        expect(claims).to.include({ email: USER.email, nonce: 'n1' });
        expect(profile).to.include({ sub: claims.sub, email: USER.email });
        const refreshed = await sdk.call('oidc-refresh', {
          ...credentials(),
          refreshToken: tokens.refresh_token,
        });
        expect(refreshed.claims.sub).to.equal(claims.sub);
      });

      it(`gets client credentials with ${kind}`, async () => {
        const tokens = await sdk.call('oidc-client-credentials', {
          ...credentials(),
          parameters: { audience: API },
        });
        expect(payload(tokens.access_token)).to.include({ gty: 'client-credentials' });
      });
    }

    it('gets a refusal as an OAuth error', async () => {
      const failure = await sdk
        .call('oidc-client-credentials', { ...web(), secret: 'wrong', parameters: { audience: API } })
        .catch((error) => error);
      expect(failure.cause).to.include({ error: 'invalid_client' });
    });
  });

  it('fail without trusting the CA', async () => {
    const distrusting = await startSdkProcess('');
    try {
      const failure = await distrusting
        .call('oidc-discovery', { issuer: server.issuer, clientId: 'web', secret: 'x' })
        .catch((e) => e);
      expect(failure).to.be.instanceOf(Error);
    } finally {
      await distrusting.stop();
    }
  });
});
