// DPoP proofs and client assertions are accepted once by all processes of a tenant together (RFC 9449 §11.1).
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { SignJWT } from 'jose';
import { openStore } from '../../src/store/open.ts';
import { createAgent } from '../support/agent.ts';
import { clientKey } from '../support/client-key.ts';
import { createProver } from '../support/dpop.ts';
import { API, tenant } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';

describe('several processes with one store', () => {
  let servers: TestServer[];
  let key: Awaited<ReturnType<typeof clientKey>>;
  before(async () => {
    key = await clientKey('ES256');
    const asserting = {
      client_id: 'asserting',
      name: 'Asserting',
      app_type: 'non_interactive',
      grant_types: ['client_credentials'],
      client_authentication_methods: { private_key_jwt: { credentials: [key.credential] } },
    };
    const all = {
      ...tenant,
      clients: [...tenant.clients, asserting],
      clientGrants: [...tenant.clientGrants, { client_id: 'asserting', audience: API, scope: [] }],
    };
    // Opened as a store that other processes use, too.
    const first = await startServer({
      tenant: all,
      open: async (options) => {
        const { exclusive: _alone, ...store } = await openStore(options);
        return store;
      },
    });
    // Closed with the first server.
    const shared = { ...first.store, close: async () => {} };
    const second = await startServer({
      tenant: all,
      dataDir: first.dataDir,
      env: { BASE_URL: first.url },
      open: (async () => shared) as never,
    });
    servers = [first, second];
  });
  after(async () => {
    for (const server of [...(servers ?? [])].reverse()) await server.stop();
  });

  const [M2M] = [{ client_id: 'm2m', client_secret: 'm2m-secret' }];
  const ask = async (at: number, fields: object, headers: Record<string, string> = {}) => {
    const server = servers[at] as TestServer;
    const answer = await createAgent({ url: server.localUrl, ca: server.ca }).request('/oauth/token', {
      headers,
      json: { grant_type: 'client_credentials', audience: API, ...fields },
    });
    return { status: answer.status, error: answer.json().error as string | undefined };
  };

  it('accept a DPoP proof once, also when it arrives at both simultaneously', async () => {
    const prover = await createProver();
    const proof = () => prover.proof('POST', `${servers[0]?.url}/oauth/token`);
    const DPoP = await proof();
    expect((await ask(0, M2M, { DPoP })).status).to.equal(200);
    expect(await ask(1, M2M, { DPoP })).to.deep.equal({ status: 400, error: 'invalid_dpop_proof' });
    const another = await proof();
    const all = await Promise.all([0, 1, 0, 1].map((at) => ask(at, M2M, { DPoP: another })));
    expect(all.filter(({ status }) => status === 200)).to.have.length(1);
  });

  it('accept a client assertion once', async () => {
    const now = Math.floor(Date.now() / 1000);
    const claims = { iss: 'asserting', sub: 'asserting', aud: String(servers[0]?.issuer), jti: randomUUID() };
    const client_assertion = await new SignJWT({ ...claims, iat: now, exp: now + 60 })
      .setProtectedHeader({ alg: key.alg, kid: key.credential.kid })
      .sign(key.privateKey);
    const client_assertion_type = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';
    const fields = { client_assertion, client_assertion_type };
    expect((await ask(1, fields)).status).to.equal(200);
    expect((await ask(0, fields)).status).to.equal(401);
  });
});
