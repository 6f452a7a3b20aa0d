// The baseline for bench/token.ts and bench/bound.ts: oidc-provider by itself, with its memory adapter, issuing the
// same tokens.
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair } from 'jose';
import Provider from 'oidc-provider';

const API = 'https://api.example.test/';
const SCOPES = 'openid profile email offline_access';

const { privateKey } = await generateKeyPair('RS256', { modulusLength: 2048, extractable: true });
// Silences the engine's warning that its memory adapter is not for production.
console.warn = () => {};
console.info = () => {};

const server = createServer();
server.listen(0, '127.0.0.1');
await once(server, 'listening');
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

const provider = new Provider(`${url}/`, {
  jwks: { keys: [{ ...(await exportJWK(privateKey)), alg: 'RS256', use: 'sig', kid: 'bench' }] },
  clients: [
    {
      client_id: 'bench',
      client_secret: 'bench-secret',
      token_endpoint_auth_method: 'client_secret_post',
      grant_types: ['client_credentials', 'refresh_token', 'authorization_code'],
      response_types: ['code'],
      redirect_uris: ['https://app.example.test/callback'],
    },
    {
      client_id: 'mtls',
      token_endpoint_auth_method: 'tls_client_auth',
      tls_client_auth_subject_dn: 'CN=client',
      tls_client_certificate_bound_access_tokens: true,
      grant_types: ['client_credentials'],
      response_types: [],
      redirect_uris: [],
    },
  ],
  clientAuthMethods: ['client_secret_post', 'tls_client_auth', 'none'],
  scopes: SCOPES.split(' '),
  claims: {
    openid: ['sub'],
    email: ['email', 'email_verified'],
    profile: ['name', 'nickname', 'updated_at'],
  },
  conformIdTokenClaims: false,
  features: {
    clientCredentials: { enabled: true },
    devInteractions: { enabled: false },
    dPoP: { enabled: true },
    mTLS: {
      enabled: true,
      certificateBoundAccessTokens: true,
      tlsClientAuth: true,
      getCertificate: (ctx) => new X509Certificate(decodeURIComponent(ctx.get('client-certificate'))),
      certificateAuthorized: () => true,
      certificateSubjectMatches: (ctx, _property, expected) =>
        new X509Certificate(decodeURIComponent(ctx.get('client-certificate'))).subject === expected,
    },
    resourceIndicators: {
      enabled: true,
      useGrantedResource: () => true,
      getResourceServerInfo: () => ({
        scope: 'read:things',
        audience: API,
        accessTokenFormat: 'jwt',
        accessTokenTTL: 3600,
        jwt: { sign: { alg: 'RS256' } },
      }),
    },
  },
  rotateRefreshToken: false,
  expiresWithSession: () => false,
  ttl: { AccessToken: 3600, RefreshToken: 86400, Grant: 86400, IdToken: 3600, ClientCredentials: 3600 },
  findAccount: (_ctx, sub) => ({
    accountId: sub,
    claims: () => ({
      sub,
      email: 'ada@example.test',
      email_verified: true,
      name: 'Ada',
      nickname: 'ada',
      updated_at: '1700000000',
    }),
  }),
});
server.on('request', provider.callback());

const client = await provider.Client.find('bench');
if (client === undefined) throw new Error('no client');
const grant = new provider.Grant({ accountId: 'user', clientId: 'bench' });
grant.addOIDCScope(SCOPES);
const grantId = await grant.save();
const common = { accountId: 'user', client, grantId, scope: SCOPES, gty: 'authorization_code' };
const refreshToken = await new provider.RefreshToken(common as never).save();
const accessToken = await new provider.AccessToken(common as never).save();
console.log(JSON.stringify({ url, refreshToken, accessToken }));
