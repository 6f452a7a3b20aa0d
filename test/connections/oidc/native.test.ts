// Native social login: logins at the token endpoint with a code or token of a provider's SDK.
import { expect } from 'chai';
import { decodeJwt, exportPKCS8, generateKeyPair } from 'jose';
import { createAgent } from '../../support/agent.ts';
import { payload, tenant } from '../../support/flows.ts';
import { json } from '../../support/oauth2-provider.ts';
import { type OpenIdProvider, signingKey, startOpenIdProvider } from '../../support/openid-provider.ts';
import { startServer, type TestServer } from '../../support/server.ts';

const TYPES = 'http://auth0.com/oauth/token-type';
const BUNDLE = 'test.example.app';

describe('native social login', () => {
  let provider: OpenIdProvider;
  let server: TestServer;

  const app = (client_id: string, more: object) => ({
    client_id,
    name: client_id,
    app_type: 'native',
    token_endpoint_auth_method: 'none',
    oidc_conformant: true,
    grant_types: ['authorization_code', 'refresh_token'],
    ...more,
  });
  const on = { enabled: true };

  before(async () => {
    provider = await startOpenIdProvider(await signingKey('k1'));
    const { privateKey } = await generateKeyPair('ES256', { extractable: true });
    const discovery_url = `${provider.url}/.well-known/openid-configuration`;
    const mobile = { ios: { team_id: 'TEAM', app_bundle_identifier: BUNDLE } };
    server = await startServer({
      tenant: {
        ...tenant,
        clients: [
          ...tenant.clients,
          app('app', { native_social_login: { apple: on, google: on, facebook: on }, mobile }),
          app('alone', { native_social_login: { apple: on, google: on, facebook: on }, mobile }),
          app('off', { native_social_login: { google: { enabled: false }, apple: on }, mobile }),
          app('none', {}),
        ],
        connections: [
          {
            name: 'google',
            strategy: 'google-oauth2',
            enabled_clients: ['app', 'off', 'none'],
            options: { client_id: 'gatehouse', allowed_audiences: ['google-ios'], discovery_url },
          },
          {
            name: 'apple',
            strategy: 'apple',
            enabled_clients: ['app'],
            options: {
              client_id: 'services-id',
              team_id: 'TEAM',
              kid: 'KEY',
              app_secret: await exportPKCS8(privateKey),
              discovery_url,
            },
          },
          {
            name: 'facebook',
            strategy: 'facebook',
            enabled_clients: ['app'],
            options: {
              client_id: 'fb-app',
              client_secret: 'fb-secret',
              authorizationURL: `${provider.url}/authorize`,
              tokenURL: `${provider.url}/token`,
              userInfoURL: `${provider.url}/userinfo`,
            },
          },
        ],
      },
    });
  });
  after(async () => {
    await server?.stop();
    await provider?.stop();
  });
  beforeEach(() => {
    Object.assign(provider, { claims: {}, instead: {} });
  });

  const exchange = async (kind: string, subject_token: string, more: Record<string, string> = {}) => {
    const answer = await createAgent(server).request('/oauth/token', {
      form: {
        grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
        client_id: 'app',
        subject_token_type: kind.includes(':') ? kind : `${TYPES}/${kind}`,
        subject_token,
        scope: 'openid profile email',
        ...more,
      },
    });
    const tokens: Record<string, string> = answer.json();
    return { ...tokens, status: answer.status } as { status: number; error?: string; id_token?: string };
  };
  const GOOGLE = 'google-id-token';

  it('accepts Google’s ID token for the client id or an allowed audience of the connection', async () => {
    for (const aud of ['gatehouse', 'google-ios']) {
      const token = await provider.sign({
        aud,
        azp: 'google-android',
        sub: '42',
        email: 'g@x.test',
        email_verified: true,
      });
      const tokens = await exchange(GOOGLE, token);
      expect(tokens.status).to.equal(200);
      expect(payload(tokens.id_token ?? '')).to.include({
        sub: 'google-oauth2|42',
        email: 'g@x.test',
        email_verified: true,
      });
    }
    const { records } = await server.store
      .collection('logs')
      .list({ where: { field: 'type', equals: 'sens' }, limit: 10 });
    expect(records.length).to.be.at.least(2);
  });

  const past = Math.floor(Date.now() / 1000) - 7200;
  for (const [what, claims] of [
    ['for another app', { aud: 'someone-else' }],
    ['for several audiences', { aud: ['gatehouse', 'someone-else'] }],
    ['of another issuer', { iss: 'https://evil.example.test' }],
    ['that has expired', { iat: past, exp: past + 3600 }],
  ] as [string, object][]) {
    it(`rejects Google’s ID token ${what}`, async () => {
      const tokens = await exchange(GOOGLE, await provider.sign({ sub: '43', ...claims }));
      expect(tokens).to.include({ status: 403, error: 'invalid_grant' });
      expect(tokens).to.not.have.property('access_token');
    });
  }

  it('rejects an ID token of another key, and a malformed one', async () => {
    provider.signer = await signingKey('k1');
    const token = await provider.sign({});
    provider.signer = undefined;
    expect(await exchange(GOOGLE, token)).to.include({ error: 'invalid_grant' });
    expect(await exchange(GOOGLE, 'a.b.c')).to.include({ error: 'invalid_grant' });
  });

  it('rejects applications without native_social_login or the connection, and unknown token types', async () => {
    const token = await provider.sign({ sub: '44' });
    expect(await exchange(GOOGLE, token, { client_id: 'off' })).to.include({ error: 'unauthorized_client' });
    expect(await exchange(GOOGLE, token, { client_id: 'alone' })).to.include({
      error: 'unauthorized_client',
    });
    expect((await exchange(GOOGLE, token, { client_id: 'none' })).status).to.be.at.least(400);
    for (const type of [
      'urn:ietf:params:oauth:token-type:id_token',
      'http://evil.test/oauth/token-type/google-id-token',
      `${TYPES}/constructor`,
    ]) {
      expect(await exchange(type, token)).to.include({ status: 400, error: 'invalid_request' });
    }
  });

  it('rejects a blocked user', async () => {
    const token = await provider.sign({ sub: '45' });
    expect((await exchange(GOOGLE, token)).status).to.equal(200);
    await server.store.collection('users').update('google-oauth2|45', (user) => ({ ...user, blocked: true }));
    expect(await exchange(GOOGLE, token)).to.include({ error: 'unauthorized' });
  });

  describe('with Apple', () => {
    const answerOnce = (claims: object) => {
      let isUsed = false;
      provider.instead['/token'] = async (response) => {
        if (isUsed) return json(response, { error: 'invalid_grant' }, 400);
        isUsed = true;
        const id_token = await provider.sign({ aud: BUNDLE, sub: '1.apple', ...claims });
        json(response, { access_token: 'a', token_type: 'Bearer', id_token });
      };
    };

    it('exchanges the code with the app’s bundle identifier as the client id, and reads only the name of user_profile', async () => {
      answerOnce({ email: 'a@x.test', email_verified: 'true' });
      const user_profile = JSON.stringify({
        name: { firstName: 'Ada', lastName: 'L' },
        email: 'evil@x.test',
      });
      const all = await Promise.all(
        Array.from({ length: 5 }, () => exchange('apple-authz-code', 'the-code', { user_profile })),
      );
      expect(all.filter(({ status }) => status === 200)).to.have.length(1);
      const good = all.find(({ status }) => status === 200);
      expect(payload(good?.id_token ?? '')).to.include({
        sub: 'apple|1.apple',
        name: 'Ada L',
        email: 'a@x.test',
      });
      const { form } = provider.seen.findLast(({ path }) => path === '/token') ?? {};
      expect(form).to.include({ client_id: BUNDLE, code: 'the-code' }).and.not.have.property('redirect_uri');
      expect(decodeJwt(form?.client_secret ?? '')).to.include({ iss: 'TEAM', sub: BUNDLE });
    });

    it('rejects a code of another app', async () => {
      answerOnce({ aud: 'other.app' });
      expect(await exchange('apple-authz-code', 'c')).to.include({ error: 'invalid_grant' });
    });
  });

  describe('with Facebook', () => {
    const TYPE = 'facebook-info-session-access-token';
    const good = { is_valid: true, app_id: 'fb-app', user_id: '777' };
    const facebook = (data: object) => {
      provider.instead['/debug_token'] = (response) => json(response, { data });
    };

    it('asks Facebook for the user of the token, and treats the address of user_profile as unverified', async () => {
      facebook(good);
      const user_profile = JSON.stringify({ name: 'Ada', email: 'a@x.test', email_verified: true, sub: 'x' });
      const tokens = await exchange(TYPE, 'token', { user_profile });
      expect(payload(tokens.id_token ?? '')).to.include({
        sub: 'facebook|777',
        name: 'Ada',
        email: 'a@x.test',
        email_verified: false,
      });
      const { headers } = provider.seen.findLast(({ path }) => path === '/debug_token') ?? {};
      expect(headers?.authorization).to.equal('Bearer fb-app|fb-secret');
    });

    for (const [what, data] of [
      ['that is not valid', { ...good, is_valid: false }],
      ['of another app', { ...good, app_id: 'other' }],
      ['without a user', { ...good, user_id: undefined }],
    ] as [string, object][]) {
      it(`rejects a token ${what}`, async () => {
        facebook(data);
        expect(await exchange(TYPE, 'token')).to.include({ status: 403, error: 'invalid_grant' });
      });
    }

    it('rejects every token while Facebook does not answer', async () => {
      provider.instead['/debug_token'] = (response) => response.writeHead(500).end('no');
      expect(await exchange(TYPE, 'token')).to.include({ error: 'invalid_grant' });
    });
  });
});
