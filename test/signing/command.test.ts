// SIGNING=command: the keys are kept elsewhere, and a program signs with them.
import { X509Certificate } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { createLocalJWKSet, type JSONWebKeySet, jwtVerify } from 'jose';
import { signQuery, verifyQuery } from '../../src/capabilities/saml-messages/bindings.ts';
import { verifyRoot } from '../../src/capabilities/saml-messages/reader.ts';
import { signRoot } from '../../src/capabilities/saml-messages/signature.ts';
import { openHolder } from '../../src/capabilities/signing/holder.ts';
import { createSigning } from '../../src/capabilities/signing/signing.ts';
import { rotateSigningKeys } from '../../src/capabilities/signing/signing-key-list.ts';
import { identityProvider } from '../../src/features/saml/identity-provider.ts';
import { describedSettings } from '../../src/settings/index.ts';
import { openConfig } from '../../src/tenant/config.ts';
import { type Agent, createAgent } from '../support/agent.ts';
import { API, header, tenant, token, USER } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { openStoreOf } from '../support/store.ts';
import { tenantWith } from '../support/tenant.ts';
import { PATIENCE } from '../support/wait-until.ts';
import { type OutsideKeys, outsideKeys } from './support.ts';

const withES256 = tenantWith({ change: { leeway: { id_token_signed_response_alg: 'ES256' } } });

/** The settings whose names say that they may be secret, except a path and a label. */
const SECRET_SETTINGS = describedSettings()
  .map(({ name }) => name)
  .filter((name) => /SECRET|TOKEN|KEY|PIN|PASSWORD|(DATABASE|SMTP)_URL/.test(name))
  .filter((name) => !['TLS_KEY'].includes(name));

const login = (agent: Agent, client: string, over: Record<string, string> = {}) =>
  token(agent, {
    grant_type: 'password',
    client_id: client,
    client_secret: `${client}-secret`,
    username: USER.email,
    password: USER.password,
    scope: 'openid offline_access',
    audience: API,
    ...over,
  });

const keySet = async (server: TestServer) =>
  (await createAgent(server).get('/.well-known/jwks.json')).json() as JSONWebKeySet & {
    keys: { kid: string; alg: string; x5c: string[] }[];
  };

describe('keys that a program keeps', () => {
  let outside: OutsideKeys;
  let server: TestServer;
  let agent: Agent;
  before(async () => {
    outside = outsideKeys('RS256-1', 'RS256-2', 'ES256-1', 'ES256-2', 'PS256-1');
    server = await startServer({
      tenant: withES256,
      ownKeys: true,
      env: { SIGNING: 'command', SIGNING_COMMAND: outside.command },
    });
    agent = createAgent(server);
  });
  after(async () => {
    await server?.stop();
    outside.remove();
  });
  afterEach(() => outside.be('signs'));

  it('sign tokens of each algorithm, and are published with their own ids', async () => {
    const published = await keySet(server);
    expect(published.keys.map(({ kid }) => kid)).to.deep.equal(['RS256-1', 'RS256-2', 'ES256-1', 'ES256-2']);
    const { id_token, access_token } = (await login(agent, 'leeway')).json();
    expect(header(id_token)).to.include({ alg: 'ES256', kid: 'ES256-1' });
    expect(header(access_token)).to.include({ alg: 'RS256', kid: 'RS256-1' });
    for (const jwt of [id_token, access_token]) await jwtVerify(jwt, createLocalJWKSet(published));
  });

  it('have certificates that they have signed themselves', async () => {
    for (const { x5c } of (await keySet(server)).keys) {
      const certificate = new X509Certificate(Buffer.from(x5c[0] ?? '', 'base64'));
      expect(certificate.verify(certificate.publicKey)).to.equal(true);
    }
  });

  it('leave no private part in the store', async () => {
    const { records } = await server.store.collection('signingKeys').list();
    for (const { jwk } of records) expect(jwk).not.to.include.any.keys('d', 'p', 'q', 'dp', 'dq', 'qi');
  });

  it('are used without a shell and without the secrets of the settings', async () => {
    const before = { ...process.env };
    for (const name of SECRET_SETTINGS) process.env[name] = 'a secret';
    try {
      await login(agent, 'leeway');
    } finally {
      for (const name of SECRET_SETTINGS) delete process.env[name];
      Object.assign(process.env, before);
    }
    const { arguments: given, environment } = outside.seen();
    expect(given.at(-3)).to.equal('sign');
    expect(SECRET_SETTINGS).to.include.members(['SECRETS_KEY_BEFORE', 'DATABASE_URL', 'METRICS_TOKEN']);
    expect(environment).not.to.include.any.keys(...SECRET_SETTINGS);
    expect(environment).to.include.keys('PATH');
  });

  it('may return ECDSA signatures as DER', async () => {
    outside.be('der');
    const answer = await login(agent, 'leeway', { audience: '' });
    await jwtVerify(answer.json().id_token, createLocalJWKSet(await keySet(server)));
  });

  for (const mode of ['fails', 'lies', 'floods'] as const) {
    it(`answer 503 and consume nothing when the program ${mode}`, async () => {
      const { refresh_token } = (await login(agent, 'leeway')).json();
      const refresh = () =>
        token(agent, {
          grant_type: 'refresh_token',
          client_id: 'leeway',
          client_secret: 'leeway-secret',
          refresh_token,
        });
      const before = server.logged().length;
      outside.be(mode);
      // After a recent signature the holder counts as working; after the failure it is asked first.
      server.tick(6_000);
      const refused = await refresh();
      expect(refused.status).to.equal(503);
      expect(refused.json()).to.include({ error: 'temporarily_unavailable' });
      expect(refused.headers['retry-after']).to.equal('1');
      expect((await login(agent, 'leeway')).status).to.equal(503);
      if (mode === 'fails') expect(server.logged()).to.contain('the vault is sealed');
      expect(refused.text).not.to.contain('vault');
      const lines = server.logged().slice(before).split('\n');
      expect(lines.filter((line) => line.includes('did not sign'))).to.have.length(2);
      // One cause, one sentence: the server has no more to do than it can.
      expect(lines.filter((line) => /server is busy|request failed/.test(line))).to.deep.equal([]);
      outside.be('signs');
      expect((await refresh()).status).to.equal(200);
    });
  }

  it('answer temporarily_unavailable at /authorize', async () => {
    const { logIn, responseOf, webRequest } = await import('../support/flows.ts');
    const browser = createAgent(server);
    outside.be('fails');
    server.tick(6_000);
    const answer = await logIn(browser, server, webRequest({ response_type: 'id_token', nonce: 'n' }));
    expect(responseOf(answer)).to.include({ error: 'temporarily_unavailable' });
  });

  it('sign SAML messages, in the element and in the query', async () => {
    const config = await openConfig(server.store);
    const holder = openHolder(server.settings.signing, {
      hidden: [],
      outbound: { fetch },
      log: { error: () => undefined },
      clock: Date.now,
      timeout: PATIENCE,
    });
    const signing = createSigning({
      store: server.store,
      config,
      clock: Date.now,
      commonName: 'localhost',
      holder,
    });
    const idp = identityProvider(server.url, config, signing.sign);
    for (const signatureAlgorithm of ['rsa-sha256', 'rsa-sha512', 'rsa-sha1'] as const) {
      const signer = idp.signer({ signatureAlgorithm, digestAlgorithm: 'sha256' });
      const publicKeys = [new X509Certificate(Buffer.from(signer.certificate, 'base64')).publicKey];
      const verifier = { publicKeys, allowSha1: signatureAlgorithm === 'rsa-sha1' };
      const markup = '<Response xmlns="urn:test" ID="_1"><Issuer>us</Issuer></Response>';
      const signed = await signRoot(markup, '_1', signer);
      expect(verifyRoot(signed, verifier).localName).to.equal('Response');
      const query = new URLSearchParams(await signQuery('SAMLResponse=x', signer));
      const octets = `SAMLResponse=x&SigAlg=${encodeURIComponent(query.get('SigAlg') ?? '')}`;
      const asSent = {
        octets,
        algorithm: query.get('SigAlg') ?? '',
        signature: query.get('Signature') ?? '',
      };
      expect(() => verifyQuery(asSent, verifier)).not.to.throw();
    }
  });

  it('rotate to the next key of the program, and never to one that was taken before', async () => {
    const rotate = async () => {
      const holder = openHolder(server.settings.signing, {
        hidden: [],
        outbound: { fetch },
        log: { error: () => undefined },
        clock: Date.now,
        timeout: PATIENCE,
      });
      return (await rotateSigningKeys(server.store, Date.now, 'localhost', 'ES256', holder))[0]?.kid;
    };
    const states = async () => {
      const { records } = await server.store.collection('signingKeys').list();
      return Object.fromEntries(
        records.filter(({ jwk }) => jwk.alg === 'ES256').map(({ id, state }) => [id, state]),
      );
    };
    expect(await rotate()).to.equal('ES256-2');
    expect(await states()).to.deep.equal({ 'ES256-1': 'previous', 'ES256-2': 'current' });
    // There is no key after it.
    expect(await rotate().catch((thrown: Error) => thrown.message)).to.contain('no further ES256 key');
    outside.add('ES256', 'ES256-3');
    outside.add('ES256', 'ES256-4');
    expect(await rotate()).to.equal('ES256-3');
    expect(await states()).to.deep.equal({ 'ES256-2': 'previous', 'ES256-3': 'current', 'ES256-4': 'next' });
    expect(header((await login(agent, 'leeway')).json().id_token).kid).to.equal('ES256-3');
  });
});

describe('a start with keys outside', () => {
  let outside: OutsideKeys;
  let dataDir: string;
  beforeEach(() => {
    outside = outsideKeys('RS256-1', 'RS256-2');
    dataDir = mkdtempSync(join(tmpdir(), 'gatehouse-outside-'));
  });
  afterEach(() => {
    outside.remove();
    rmSync(dataDir, { recursive: true, force: true });
  });

  const start = (env: Record<string, string> = { SIGNING: 'command', SIGNING_COMMAND: outside.command }) =>
    startServer({ tenant, dataDir, env });
  const refusal = (env?: Record<string, string>) =>
    start(env).then(
      async (server) => {
        await server.stop();
        return 'it started';
      },
      (thrown: unknown) => (thrown as Error).message ?? JSON.stringify(thrown),
    );

  it('is refused when there is no key for a required algorithm, or a key does not sign', async () => {
    outside.be('fails');
    expect(await refusal()).to.contain('the vault is sealed');
    outside.be('signs');
    expect(await refusal()).to.equal('it started');
    outside.be('lies');
    expect(await refusal()).to.match(
      /SIGNING: the RS256 key RS256-\d does not sign: .*no signature of the key/,
    );
  });

  it('is refused when the program does not exist', async () => {
    expect(await refusal({ SIGNING: 'command', SIGNING_COMMAND: '/nowhere/signer' })).to.contain(
      '/nowhere/signer',
    );
  });

  it('is refused without the settings that it needs', async () => {
    for (const [SIGNING, name] of [
      ['command', 'SIGNING_COMMAND'],
      ['http', 'SIGNING_SECRET'],
    ] as const)
      expect(await refusal({ SIGNING })).to.contain(`${name}: required with SIGNING=${SIGNING}`);
  });

  it('changes from keys in the store to outside with a rotation, and back', async () => {
    const kids = async (server: TestServer) => (await keySet(server)).keys.map(({ kid }) => kid);
    const inStore = await start({});
    const [first = ''] = await kids(inStore);
    await inStore.stop();
    const outer = await start();
    expect(await kids(outer)).to.deep.equal([first, 'RS256-1']);
    const agent = createAgent(outer);
    expect(header((await login(agent, 'web')).json().id_token).kid).to.equal(first);
    const { sendOrder } = await import('../../src/server/administration/send.ts');
    expect((await sendOrder(dataDir, { command: 'rotate' }))?.result).to.deep.equal([
      { alg: 'RS256', kid: 'RS256-1' },
    ]);
    expect(await kids(outer)).to.deep.equal(['RS256-1', 'RS256-2', first]);
    expect(header((await login(agent, 'web')).json().id_token).kid).to.equal('RS256-1');
    await outer.stop();
    expect(await refusal({})).to.contain('the RS256 key RS256-1 is kept outside');
    const store = await openStoreOf({ dataDir, clock: Date.now });
    await rotateSigningKeys(store, Date.now, 'localhost');
    await store.close();
    const back = await start({});
    const [now] = await kids(back);
    expect(await kids(back))
      .to.include('RS256-1')
      .and.not.include('RS256-2');
    expect(header((await login(createAgent(back), 'web')).json().id_token).kid).to.equal(now);
    await back.stop();
  });
});
