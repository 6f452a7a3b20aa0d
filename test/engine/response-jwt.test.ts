// Authorization responses as JWTs (JARM: JWT Secured Authorization Response Mode for OAuth 2.0).
import { createPrivateKey, generateKeyPairSync } from 'node:crypto';
import { expect } from 'chai';
import { compactDecrypt, createLocalJWKSet, jwtVerify } from 'jose';
import { readTenant, TenantFault } from '../../src/tenant/load.ts';
import { type Agent, type Answer, createAgent } from '../support/agent.ts';
import { authorize, header, logIn, tenant, token, WEB_CALLBACK, webRequest } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';

const pair = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
});
const common = {
  client_secret: 'jarm-secret',
  callbacks: [WEB_CALLBACK],
  grant_types: ['authorization_code', 'implicit'],
};
const clients = [
  ...tenant.clients,
  ...(['PS256', 'ES256'] as const).map((alg) => ({
    ...common,
    client_id: alg,
    name: `Signed with ${alg}`,
    authorization_signed_response_alg: alg,
  })),
  {
    ...common,
    client_id: 'standard',
    name: 'Standard claims',
    standard_claims: true,
    jwt_configuration: { alg: 'ES256' },
  },
  {
    ...common,
    client_id: 'encrypted',
    name: 'Encrypted',
    authorization_encrypted_response_alg: 'RSA-OAEP-256',
    authorization_encrypted_response_enc: 'A256GCM',
    encryption_key: { pub: pair.publicKey },
  },
];
const databases = tenant.databases.map((one) => ({
  ...one,
  enabled_clients: [...one.enabled_clients, 'PS256', 'ES256', 'standard', 'encrypted'],
}));

describe('responses as JWTs', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer({ tenant: { ...tenant, clients, databases } });
  });
  after(() => server.stop());

  const agent = () => createAgent(server);
  /** Returns the `response` parameter of an answer, in its query or fragment. */
  const responseIn = (answer: Answer, where: 'search' | 'hash'): string => {
    const parameters = new URLSearchParams(new URL(answer.location)[where].slice(1));
    expect([...parameters.keys()], answer.location).to.deep.equal(['response']);
    return String(parameters.get('response'));
  };
  const posted = (answer: Answer): string => {
    expect(answer.status).to.equal(200);
    expect(answer.text).to.contain(`action="${WEB_CALLBACK}"`);
    const names = [...answer.text.matchAll(/name="(\w+)"/g)].map(([, name]) => name);
    expect(names).to.deep.equal(['response']);
    return /name="response" value="([^"]+)"/.exec(answer.text)?.[1] ?? '';
  };
  const verified = async (jwt: string, client_id = 'web'): Promise<Record<string, unknown>> => {
    const keys = createLocalJWKSet((await agent().get('/.well-known/jwks.json')).json() as never);
    const options = { issuer: server.issuer, audience: client_id, requiredClaims: ['exp'] };
    return (await jwtVerify(jwt, keys, options)).payload;
  };
  const ask = (browser: Agent, over: Record<string, string | undefined>) =>
    authorize(browser, webRequest(over));

  const modes: [string, string, (answer: Answer) => string][] = [
    ['jwt', 'code', (answer) => responseIn(answer, 'search')],
    ['jwt', 'code id_token', (answer) => responseIn(answer, 'hash')],
    ['query.jwt', 'code', (answer) => responseIn(answer, 'search')],
    ['fragment.jwt', 'code', (answer) => responseIn(answer, 'hash')],
    ['fragment.jwt', 'code id_token token', (answer) => responseIn(answer, 'hash')],
    ['form_post.jwt', 'code', posted],
    ['form_post.jwt', 'id_token', posted],
  ];
  for (const [response_mode, response_type, read] of modes) {
    it(`are sent with ${response_mode} for ${response_type}, also for errors`, async () => {
      const over = { response_mode, response_type, nonce: 'n' };
      const browser = agent();
      const failed = await verified(read(await ask(browser, { ...over, prompt: 'none' })));
      expect(failed).to.include({ error: 'login_required', state: 'the-state', iss: server.issuer });
      const payload = await verified(read(await logIn(browser, server, webRequest(over))));
      expect(payload).to.include({ state: 'the-state', iss: server.issuer, aud: 'web' });
      for (const type of response_type.split(' ')) {
        expect(payload).to.have.property(type === 'token' ? 'access_token' : type);
      }
      expect(Number(payload.exp) * 1000).to.be.below(Date.now() + 10 * 60_000);
      expect(payload).not.to.have.any.keys('sub', 'amr', 'acr');
    });
  }

  it('contain a code that can be exchanged', async () => {
    const browser = agent();
    const answer = await logIn(browser, server, webRequest({ response_mode: 'jwt' }));
    const { code } = await verified(responseIn(answer, 'search'));
    const form = { grant_type: 'authorization_code', code: String(code), redirect_uri: WEB_CALLBACK };
    const secret = { client_id: 'web', client_secret: 'web-secret' };
    expect((await token(browser, { ...form, ...secret })).status).to.equal(200);
  });

  it('are signed with the algorithm that the application sets, apart from that of ID tokens', async () => {
    for (const [client_id, alg] of [
      ['web', 'RS256'],
      ['PS256', 'PS256'],
      ['ES256', 'ES256'],
      ['standard', 'RS256'],
    ] as const) {
      const over = { client_id, response_mode: 'jwt', response_type: 'id_token', nonce: 'n' };
      const jwt = responseIn(await logIn(agent(), server, webRequest(over)), 'hash');
      expect(header(jwt).alg, client_id).to.equal(alg);
      const payload = await verified(jwt, client_id);
      expect(payload).not.to.have.any.keys('sub', 'amr', 'acr');
      expect(header(String(payload.id_token)).alg).to.equal(client_id === 'standard' ? 'ES256' : 'RS256');
    }
  });

  it('are encrypted, errors too, when the application sets it, and then may be in the query', async () => {
    const over = {
      client_id: 'encrypted',
      response_mode: 'query.jwt',
      response_type: 'id_token',
      nonce: 'n',
    };
    const opened = async (answer: Answer) => {
      const jwe = responseIn(answer, 'search');
      expect(header(jwe)).to.include({ alg: 'RSA-OAEP-256', enc: 'A256GCM' });
      const { plaintext } = await compactDecrypt(jwe, createPrivateKey(pair.privateKey));
      return verified(Buffer.from(plaintext).toString(), 'encrypted');
    };
    const browser = agent();
    expect(await opened(await ask(browser, { ...over, prompt: 'none' }))).to.include({
      error: 'login_required',
    });
    expect(await opened(await logIn(browser, server, webRequest(over)))).to.have.property('id_token');
  });

  describe('contain errors that are found before the engine', () => {
    const refused: [string, Record<string, string | undefined>, string][] = [
      ['an invalid request object', { request: 'x' }, 'request_not_supported'],
      ['a request_uri to fetch', { request_uri: 'https://x.test/' }, 'request_uri_not_supported'],
      ['an unknown connection', { connection: 'nowhere' }, 'invalid_request'],
      ['an unknown API', { audience: 'https://nowhere.test' }, 'access_denied'],
      ['two APIs', { audience: 'a', resource: 'b' }, 'invalid_target'],
      ['an organization', { organization: 'org_acme' }, 'invalid_request'],
    ];
    for (const [what, over, error] of refused) {
      it(what, async () => {
        const answer = await ask(agent(), { ...over, response_mode: 'query.jwt' });
        expect(await verified(responseIn(answer, 'search'))).to.include({ error, state: 'the-state' });
      });
    }

    it('a blocked user who logs in', async () => {
      const blocked = { email: 'blocked@example.test', password: 'Correct-Horse-1' };
      const answer = await logIn(agent(), server, webRequest({ response_mode: 'jwt' }), blocked);
      expect(await verified(responseIn(answer, 'search'))).to.include({ error: 'unauthorized' });
    });
  });

  it('are not sent in the query when they contain tokens (JARM §2.3.1)', async () => {
    const answer = await ask(agent(), { response_mode: 'query.jwt', response_type: 'id_token', nonce: 'n' });
    expect(answer.location).not.to.contain('id_token=');
    const payload = await verified(
      new URLSearchParams(new URL(answer.location).search).get('response') ?? '',
    );
    expect(payload).to.include({ error: 'invalid_request' });
  });

  it('are not sent to a redirect_uri that is not the application’s', async () => {
    const answer = await ask(agent(), { response_mode: 'jwt', redirect_uri: 'https://evil.example/' });
    expect(answer.status).to.equal(400);
    expect(answer.location).to.equal('');
  });

  it('are announced by discovery', async () => {
    const metadata = (await agent().get('/.well-known/openid-configuration')).json();
    expect(metadata.response_modes_supported).to.include.members([
      'jwt',
      'query.jwt',
      'fragment.jwt',
      'form_post.jwt',
    ]);
    expect(metadata.authorization_signing_alg_values_supported).to.include.members([
      'RS256',
      'PS256',
      'ES256',
    ]);
    expect(metadata.authorization_signing_alg_values_supported).not.to.include('HS256');
    expect(metadata.authorization_encryption_alg_values_supported).to.include('RSA-OAEP-256');
  });

  it('can be encrypted only by an application with a key', async () => {
    const keyless = {
      ...common,
      client_id: 'keyless',
      name: 'No key',
      authorization_encrypted_response_alg: 'RSA-OAEP-256',
    };
    expect(() => readTenant({ clients: [keyless] }))
      .to.throw(TenantFault)
      .with.nested.property('faults[0]')
      .that.contains('encryption_key');
  });
});
