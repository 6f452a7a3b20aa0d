// Tokens signed with each algorithm of the application or the API. No key is accepted for another algorithm.
import {
  createHmac,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type JsonWebKey,
  sign as signBytes,
} from 'node:crypto';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { expect } from 'chai';
import { compactVerify, createLocalJWKSet, type JSONWebKeySet, jwtVerify } from 'jose';
import * as oidc from 'openid-client';
import { signLocally } from '../../src/capabilities/signing/local.ts';
import { SIGNING_ALGS, type SigningAlg } from '../../src/records/base/signing-algs.ts';
import type { SigningKeyRecord } from '../../src/records/state/engine.ts';
import { type Agent, createAgent } from '../support/agent.ts';
import {
  authorize,
  follow,
  header,
  logIn,
  tenant,
  token,
  USER,
  WEB_CALLBACK,
  webRequest,
} from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { tenantWith } from '../support/tenant.ts';

const OTHERS = SIGNING_ALGS.filter((alg) => alg !== 'RS256');
const apiOf = (alg: string) => `https://${alg.toLowerCase()}.example.test/`;
const secretOf = (alg: string) => `secret-of-the-application-${alg}`;

const clientOf = (alg: string) => ({
  client_id: `app-${alg}`,
  name: alg,
  app_type: 'regular_web',
  client_secret: secretOf(alg),
  callbacks: [WEB_CALLBACK],
  grant_types: ['authorization_code', 'password', 'refresh_token'],
  // By the vendor's member, and by the standard one.
  ...(alg === 'ES256' ? { id_token_signed_response_alg: alg } : { jwt_configuration: { alg } }),
});

const algorithms = tenantWith({
  add: {
    clients: [...OTHERS.map(clientOf)],
    resourceServers: [
      ...OTHERS.map((alg) => ({
        name: alg,
        identifier: apiOf(alg),
        signing_alg: alg,
        scopes: [{ value: 'read' }],
      })),
    ],
  },
  enable: [...OTHERS.map((alg) => `app-${alg}`)],
});

const encoded = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url');

const tokensOf = async (agent: Agent, alg: string, audience = apiOf(alg)) =>
  (
    await token(agent, {
      grant_type: 'password',
      client_id: `app-${alg}`,
      client_secret: secretOf(alg),
      username: USER.email,
      password: USER.password,
      scope: 'openid profile',
      audience,
    })
  ).json() as Record<'id_token' | 'access_token', string>;

const keysOf = async (agent: Agent) =>
  (await agent.get('/.well-known/jwks.json')).json() as JSONWebKeySet & {
    keys: { alg: string; kid: string }[];
  };

describe('signing algorithms', () => {
  let server: TestServer;
  let agent: Agent;
  before(async () => {
    server = await startServer({ tenant: algorithms });
    agent = createAgent(server);
  });
  after(() => server.stop());

  const userinfo = (access: string) =>
    agent.request('/userinfo', { headers: { authorization: `Bearer ${access}` } });
  const currentKey = async (alg: SigningAlg): Promise<SigningKeyRecord> => {
    const keys = await server.store.collection('signingKeys').findBy('state', 'current');
    return structuredClone(keys.find(({ jwk }) => jwk.alg === alg)) as SigningKeyRecord;
  };

  for (const alg of OTHERS) {
    it(`sign with ${alg}: ID token, access token, userinfo and id_token_hint`, async () => {
      const { id_token, access_token } = await tokensOf(agent, alg);
      const published = await keysOf(agent);
      for (const jwt of [id_token, access_token]) {
        const { alg: used, kid } = header(jwt);
        expect(used).to.equal(alg);
        expect(published.keys.find((key) => key.kid === kid)?.alg).to.equal(alg);
        await jwtVerify(jwt, createLocalJWKSet(published), { issuer: server.issuer, algorithms: [alg] });
      }
      expect((await userinfo(access_token)).status).to.equal(200);
      const hinted = await agent.get(
        `/oidc/logout?${new URLSearchParams({ id_token_hint: id_token, post_logout_redirect_uri: 'https://x.test/' })}`,
      );
      // The hint names the application, so its list applies.
      expect(hinted.text).to.contain('post_logout_redirect_uri');
    });
  }

  it('are verified by openid-client with the key set, signature included', async () => {
    setDefaultCACertificates([...getCACertificates('default'), server.ca]);
    for (const alg of OTHERS) {
      const clientId = `app-${alg}`;
      const metadata = { client_secret: secretOf(alg), id_token_signed_response_alg: alg };
      const config = await oidc.discovery(new URL(server.url), clientId, metadata);
      oidc.enableNonRepudiationChecks(config);
      const browser = createAgent(server);
      const answer = await logIn(browser, server, webRequest({ client_id: clientId, nonce: 'n-1' }));
      const tokens = await oidc.authorizationCodeGrant(config, new URL(answer.location), {
        expectedState: 'the-state',
        expectedNonce: 'n-1',
      });
      expect(tokens.claims()?.aud).to.equal(clientId);
      // A client that expects another algorithm refuses it.
      const other = await oidc.discovery(new URL(server.url), clientId, {
        ...metadata,
        id_token_signed_response_alg: 'RS256',
      });
      const again = await follow(
        browser,
        await authorize(browser, webRequest({ client_id: clientId })),
        server.url,
      );
      const refused = await oidc
        .authorizationCodeGrant(other, new URL(again.location), { expectedState: 'the-state' })
        .catch((thrown: Error) => thrown);
      expect(refused).to.be.instanceOf(Error);
    }
  });

  it('are all in discovery', async () => {
    const document = (await agent.get('/.well-known/openid-configuration')).json();
    expect(document.id_token_signing_alg_values_supported).to.have.members([...SIGNING_ALGS, 'HS256']);
  });

  it('have no private member in the key set, and each key its own alg and kid', async () => {
    const { keys } = await keysOf(agent);
    expect(keys).to.have.length(2 * SIGNING_ALGS.length);
    for (const key of keys)
      expect(Object.keys(key)).to.not.include.oneOf(['d', 'p', 'q', 'dp', 'dq', 'qi', 'k']);
    expect(new Set(keys.map(({ kid }) => kid)).size).to.equal(keys.length);
    expect(keys[0]?.alg).to.equal('RS256');
  });

  describe('are not confused:', () => {
    /** The claims of a valid access token with another header, signed by a function. */
    const forged = async (head: object, signature: (input: Buffer) => Buffer | Promise<Buffer>) => {
      const { access_token } = await tokensOf(agent, 'PS256');
      const input = `${encoded({ typ: 'JWT', ...head })}.${access_token.split('.')[1]}`;
      return `${input}.${(await signature(Buffer.from(input))).toString('base64url')}`;
    };
    const refused = async (jwt: string) => expect((await userinfo(jwt)).status).to.equal(401);

    for (const [of, as] of [
      ['RS256', 'PS256'],
      ['PS256', 'RS256'],
      ['RS256', 'RS512'],
      ['RS512', 'RS256'],
    ] as const) {
      it(`a key for ${of} verifies no ${as}`, async () => {
        const key = await currentKey(of);
        const privateKey = createPrivateKey({ key: key.jwk as JsonWebKey, format: 'jwk' });
        await refused(await forged({ alg: as, kid: key.id }, (input) => signLocally(as, privateKey, input)));
        // Nor where the header names no key.
        await refused(await forged({ alg: as }, (input) => signLocally(as, privateKey, input)));
      });
    }

    it('the public key is not accepted as a secret of HS256', async () => {
      const { id, jwk } = await currentKey('RS256');
      const publicKey = createPublicKey({ key: jwk as JsonWebKey, format: 'jwk' });
      for (const secret of [
        publicKey.export({ type: 'spki', format: 'pem' }),
        publicKey.export({ type: 'spki', format: 'der' }),
        JSON.stringify(publicKey.export({ format: 'jwk' })),
      ]) {
        await refused(
          await forged({ alg: 'HS256', kid: id }, (input) =>
            createHmac('sha256', secret).update(input).digest(),
          ),
        );
      }
    });

    it('rejects none, an unknown algorithm, another curve, and DER signatures', async () => {
      const ec = await currentKey('ES256');
      const key = createPrivateKey({ key: ec.jwk as JsonWebKey, format: 'jwk' });
      for (const alg of ['none', 'ES384', 'ES256K', 'Ed25519', 'es256'])
        await refused(await forged({ alg, kid: ec.id }, (input) => signLocally('ES256', key, input)));
      await refused(await forged({ alg: 'none' }, () => Buffer.alloc(0)));
      await refused(await forged({ alg: 'ES256', kid: ec.id }, (input) => signBytes('sha256', input, key)));
    });

    it("rejects a key in the token's own header", async () => {
      const { jwk } = await currentKey('RS256');
      const other = (await import('node:crypto')).generateKeyPairSync('ec', { namedCurve: 'P-256' });
      const own = other.publicKey.export({ format: 'jwk' });
      for (const head of [{ jwk: own }, { jwk: own, kid: jwk.kid }])
        await refused(
          await forged({ alg: 'ES256', ...head }, (input) => signLocally('ES256', other.privateKey, input)),
        );
    });
  });

  it('rotate together, or one alone, and earlier tokens stay valid until the next rotation', async () => {
    const { rotateSigningKeys } = await import('../../src/capabilities/signing/signing-key-list.ts');
    const before = await tokensOf(agent, 'ES256');
    const rsa = await currentKey('RS256');
    const [rotated] = await rotateSigningKeys(server.store, Date.now, 'localhost', 'ES256');
    const after = await tokensOf(agent, 'ES256');
    expect(header(after.id_token).kid).to.equal(rotated?.kid);
    expect((await currentKey('RS256')).id).to.equal(rsa.id);
    expect((await userinfo(before.access_token)).status).to.equal(200);
    const all = await rotateSigningKeys(server.store, Date.now, 'localhost');
    expect(all.map(({ alg }) => alg)).to.include.members(['RS256', 'ES256']);
    for (const { alg, kid } of all) expect((await currentKey(alg)).id).to.equal(kid);
    expect((await currentKey('RS256')).id).to.not.equal(rsa.id);
    expect((await userinfo(before.access_token)).status).to.equal(401);
    expect((await userinfo(after.access_token)).status).to.equal(200);
  });

  for (const alg of ['ES256', 'EdDSA'] as const)
    it(`sign tokens of an API with the current ${alg} key, and after a rotation with the one that was published as the next`, async () => {
      const { rotateSigningKeys } = await import('../../src/capabilities/signing/signing-key-list.ts');
      const published = async () =>
        (await keysOf(agent)).keys.filter((key) => key.alg === alg).map(({ kid }) => kid);
      const signed = async () => (await tokensOf(agent, alg)).access_token;
      const rotate = () => rotateSigningKeys(server.store, Date.now, 'localhost', alg);
      const isGood = async (token: string) => {
        const keys = createLocalJWKSet(await keysOf(agent));
        return jwtVerify(token, keys, { issuer: server.issuer, algorithms: [alg] }).then(
          () => true,
          () => false,
        );
      };
      const first = await signed();
      const before = await published();
      await rotate();
      const second = await signed();
      expect(header(second).kid).to.not.equal(header(first).kid);
      // APIs knew the key already, so none has to fetch the key set at the moment of the rotation.
      expect(before).to.include.members([header(first).kid, header(second).kid]);
      expect([await isGood(first), await isGood(second)]).to.deep.equal([true, true]);
      await rotate();
      expect(await published()).to.not.include(header(first).kid);
      expect([await isGood(first), await isGood(second)]).to.deep.equal([false, true]);
    });

  it('refuse one of two concurrent rotations, and each has one current key and one next', async () => {
    const { rotateSigningKeys } = await import('../../src/capabilities/signing/signing-key-list.ts');
    const done = await Promise.allSettled([1, 2, 3].map(() => rotateSigningKeys(server.store, Date.now)));
    expect(done.filter(({ status }) => status === 'fulfilled')).to.have.length.of.at.least(1);
    const { records } = await server.store.collection('signingKeys').list({ limit: 100 });
    for (const alg of SIGNING_ALGS)
      for (const state of ['current', 'next'])
        expect(records.filter((key) => key.state === state && key.jwk.alg === alg)).to.have.length(1);
  });
});

describe('signatures', () => {
  it('are made outside of the event loop, which answers others meanwhile', async () => {
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    let isMade = false;
    const made = signLocally('RS256', privateKey, Buffer.from('what is signed')).then((signature) => {
      isMade = true;
      return signature;
    });
    // Work that does not leave the thread would be done within the same turn.
    for (let i = 0; i < 1_000; i++) await undefined;
    expect(isMade).to.equal(false);
    expect(await made).to.have.length(256);
  });
});

describe('signing keys that nobody has requested', () => {
  it('are not made before the next token of an application that requests them, once for many requests', async () => {
    const server = await startServer({
      tenant: { ...tenant, clients: [...tenant.clients, { ...clientOf('PS256'), jwt_configuration: {} }] },
    });
    try {
      const agent = createAgent(server);
      await server.store.collection('clients').update('app-PS256', (client) => client);
      expect((await keysOf(agent)).keys.map(({ alg }) => alg)).to.deep.equal(['RS256', 'RS256']);
      await server.store.collection('clients').update('m2m', (client) => ({
        ...client,
        id_token_signed_response_alg: 'EdDSA',
      }));
      const sets = await Promise.all(Array.from({ length: 5 }, () => keysOf(createAgent(server))));
      for (const { keys } of sets)
        expect(keys.map(({ alg }) => alg)).to.deep.equal(['RS256', 'RS256', 'EdDSA', 'EdDSA']);
      const [set] = sets;
      const { keys } = set ?? { keys: [] };
      const record = (await server.store
        .collection('signingKeys')
        .get(keys[2]?.kid ?? '')) as SigningKeyRecord;
      expect(record.state).to.equal('current');
      const key = createPrivateKey({ key: record.jwk as JsonWebKey, format: 'jwk' });
      const input = `${encoded({ alg: 'EdDSA', kid: record.id })}.${encoded({ a: 1 })}`;
      const signature = await signLocally('EdDSA', key, Buffer.from(input));
      await compactVerify(
        `${input}.${signature.toString('base64url')}`,
        createLocalJWKSet(set as JSONWebKeySet),
      );
    } finally {
      await server.stop();
    }
  });
});
