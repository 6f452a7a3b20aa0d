// Encrypted tokens: access tokens for an API, and ID tokens and logout tokens for an application.
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { expect } from 'chai';
import {
  compactDecrypt,
  createLocalJWKSet,
  decodeProtectedHeader,
  type JSONWebKeySet,
  jwtVerify,
} from 'jose';
import { readTenant, TenantFault } from '../../src/tenant/load.ts';
import { callApi, startManaged } from '../management/support.ts';
import { type Agent, createAgent } from '../support/agent.ts';
import { API, payload, token, USER } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { tenantWith } from '../support/tenant.ts';

const spki = { type: 'spki', format: 'pem' } as const;
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
const pem = rsa.publicKey.export(spki).toString();
const small = generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey.export(spki).toString();
const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export(spki).toString();
const privatePem = rsa.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();

const encryptedApi = (over: object = {}, key: object = {}) => ({
  name: 'Sealed',
  identifier: 'https://sealed.example.test/',
  scopes: [{ value: 'read' }],
  token_encryption: {
    format: 'compact-nested-jwe',
    encryption_key: { name: 'k', alg: 'RSA-OAEP-256', kid: 'sealed-1', pem, ...key },
  },
  ...over,
});
const client = (over: object = {}) => ({
  client_id: 'sealed',
  name: 'Sealed',
  app_type: 'regular_web',
  client_secret: 'secret-of-the-application-sealed',
  grant_types: ['password', 'refresh_token'],
  id_token_encrypted_response_alg: 'RSA-OAEP-256',
  encryption_key: { pub: pem },
  ...over,
});
const withThem = (clients: object[], apis: object[]) =>
  tenantWith({ add: { clients: [...clients], resourceServers: [...apis] }, enable: ['sealed'] });

const opened = async (jwe: string, key: KeyObject = rsa.privateKey) =>
  new TextDecoder().decode((await compactDecrypt(jwe, key)).plaintext);

describe('encrypted tokens', () => {
  let server: TestServer;
  let agent: Agent;
  let keys: ReturnType<typeof createLocalJWKSet>;
  before(async () => {
    server = await startServer({
      tenant: withThem(
        [client()],
        [
          encryptedApi(),
          encryptedApi(
            { identifier: 'urn:512', token_dialect: 'rfc9068_profile', signing_alg: 'ES256' },
            { alg: 'RSA-OAEP-512' },
          ),
        ],
      ),
    });
    agent = createAgent(server);
    keys = createLocalJWKSet((await agent.get('/.well-known/jwks.json')).json() as JSONWebKeySet);
  });
  after(() => server.stop());

  const tokensFor = async (audience?: string, scope = 'openid profile') =>
    (
      await token(agent, {
        grant_type: 'password',
        client_id: 'sealed',
        client_secret: 'secret-of-the-application-sealed',
        username: USER.email,
        password: USER.password,
        scope,
        audience,
      })
    ).json() as Record<'id_token' | 'access_token', string>;

  it('are access tokens of an API that requests it: a signed JWT inside, the key named outside', async () => {
    const { access_token } = await tokensFor('https://sealed.example.test/');
    expect(decodeProtectedHeader(access_token)).to.include({
      alg: 'RSA-OAEP-256',
      enc: 'A256GCM',
      kid: 'sealed-1',
    });
    const { payload: claims } = await jwtVerify(await opened(access_token), keys, {
      issuer: server.issuer,
      audience: 'https://sealed.example.test/',
    });
    expect(claims.azp).to.equal('sealed');
  });

  it('may use another algorithm, in the RFC 9068 form and signed with ES256', async () => {
    const { access_token } = await tokensFor('urn:512');
    expect(decodeProtectedHeader(access_token)).to.include({ alg: 'RSA-OAEP-512', enc: 'A256GCM' });
    const { protectedHeader } = await jwtVerify(await opened(access_token), keys, { algorithms: ['ES256'] });
    expect(protectedHeader.typ).to.equal('at+jwt');
  });

  it('are ID tokens of an application that requests it, as the metadata say', async () => {
    const { id_token, access_token } = await tokensFor(API);
    expect(decodeProtectedHeader(id_token)).to.include({ alg: 'RSA-OAEP-256', enc: 'A256GCM', cty: 'JWT' });
    const { payload: claims } = await jwtVerify(await opened(id_token), keys, { audience: 'sealed' });
    expect(claims.sub).to.equal(payload(access_token).sub);
    const document = (await agent.get('/.well-known/openid-configuration')).json();
    expect(document.id_token_encryption_alg_values_supported).to.include('RSA-OAEP-256');
    expect(document.id_token_encryption_enc_values_supported).to.include('A256GCM');
  });

  it('are rejected with an explanation by userinfo, which cannot read them', async () => {
    const { access_token } = await tokensFor('https://sealed.example.test/');
    const answer = await agent.request('/userinfo', { headers: { authorization: `Bearer ${access_token}` } });
    expect(answer.status).to.equal(401);
    expect(answer.headers['www-authenticate']).to.match(/invalid_token.*encrypted for its API/);
    // The token inside is valid for the API.
    const inside = await opened(access_token);
    const own = await agent.request('/userinfo', { headers: { authorization: `Bearer ${inside}` } });
    expect(own.status).to.equal(200);
  });

  it('are no id_token_hint, but the ID token inside is one', async () => {
    const { id_token } = await tokensFor();
    const hinted = async (hint: string) =>
      (
        await agent.get(
          `/oidc/logout?${new URLSearchParams({ id_token_hint: hint, post_logout_redirect_uri: 'https://x.test/' })}`,
        )
      ).text;
    expect(await hinted(id_token)).not.to.equal(await hinted(await opened(id_token)));
  });

  for (const [what, file, fault] of [
    ['a private key', withThem([], [encryptedApi({}, { pem: privatePem })]), /private/],
    ['a short key', withThem([], [encryptedApi({}, { pem: small })]), /2048/],
    ['a key of another kind', withThem([], [encryptedApi({}, { pem: ec })]), /RSA/],
    ['no key', withThem([], [encryptedApi({}, { pem: undefined })]), /pem/],
    ['RSA1_5', withThem([], [encryptedApi({}, { alg: 'RSA1_5' })]), /alg/],
    ['another form', withThem([], [encryptedApi({ token_encryption: { format: 'jwe' } })]), /format/],
    ['an application without a key', withThem([client({ encryption_key: undefined })], []), /encryption_key/],
    [
      'an application with a private key',
      withThem([client({ encryption_key: { pub: privatePem } })], []),
      /private/,
    ],
    ['an application with a short key', withThem([client({ encryption_key: { cert: small } })], []), /2048/],
  ] as const) {
    it(`are refused with a tenant file that has ${what}`, () => {
      let refusal: unknown;
      try {
        readTenant(file);
      } catch (thrown) {
        refusal = thrown;
      }
      expect(refusal).to.be.instanceOf(TenantFault);
      expect(JSON.stringify((refusal as TenantFault).faults)).to.match(fault);
    });
  }
});

describe('encrypted access tokens in the Management API', () => {
  it('are switched on and off, and an invalid key is refused', async () => {
    const server = await startManaged();
    try {
      const { name, identifier, token_encryption } = encryptedApi();
      const made = await callApi(server, 'POST', '/resource-servers', { name, identifier, token_encryption });
      expect(made.status).to.equal(201);
      const { id } = (await made.json()) as { id: string };
      const broken = {
        ...token_encryption,
        encryption_key: { ...token_encryption.encryption_key, pem: 'x' },
      };
      const refused = await callApi(server, 'PATCH', `/resource-servers/${id}`, { token_encryption: broken });
      expect(refused.status).to.equal(400);
      const ended = await callApi(server, 'PATCH', `/resource-servers/${id}`, { token_encryption: null });
      expect(ended.status).to.equal(200);
      expect((await ended.json()) as object).not.to.have.property('token_encryption');
    } finally {
      await server.stop();
    }
  });
});
