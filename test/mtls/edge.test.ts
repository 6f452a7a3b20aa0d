// A TLS edge in front of a server with TLS=proxy, published SDKs with client certificates, and forged headers.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { AuthClient } from '@auth0/auth0-auth-js';
import { expect } from 'chai';
import * as openid from 'openid-client';
import { localCertificate } from '../../src/capabilities/tls/authority.ts';
import { createAgent } from '../support/agent.ts';
import { clientCertificate, type TestCertificate } from '../support/client-certificate.ts';
import { type Edge, fetchWith, startEdge } from '../support/edge.ts';
import { API, payload, tenant } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';

const KEY = 'the-api-key-of-the-edge-of-login';
const BOUND = 'urn:bound-api';

describe('an edge that asks for client certificates', () => {
  let directory: string;
  let edge: Edge;
  let server: TestServer;
  let trust: string;
  let own: TestCertificate;
  let other: TestCertificate;
  let signed: TestCertificate;

  before(async () => {
    directory = mkdtempSync(`${tmpdir()}/gatehouse-edge-`);
    const { cert, key, caFile } = await localCertificate(directory, ['localhost'], Date.now);
    trust = readFileSync(caFile, 'utf8');
    const ca = await clientCertificate({ subject: 'CN=Client CA', isAuthority: true });
    own = await clientCertificate({ subject: 'CN=own' });
    other = await clientCertificate({ subject: 'CN=own' });
    signed = await clientCertificate({ subject: 'O=Bank,CN=signed', issuer: ca.authority });
    edge = await startEdge({ cert, key, clientCa: ca.cert, apiKey: KEY });
    const client = (client_id: string, methods: object) => ({
      client_id,
      name: client_id,
      app_type: 'non_interactive',
      oidc_conformant: true,
      grant_types: ['client_credentials'],
      client_authentication_methods: methods,
    });
    const clients = [
      client('own', { self_signed_tls_client_auth: { credentials: [{ pem: own.cert }] } }),
      client('signed', { tls_client_auth: { credentials: [{ subject_dn: 'CN=signed,O=Bank' }] } }),
    ];
    server = await startServer({
      env: { TLS: 'proxy', TRUSTED_PROXIES: '127.0.0.1', BASE_URL: edge.url, MTLS_BASE_URL: edge.url },
      tenant: {
        ...tenant,
        clients: [...tenant.clients, ...clients],
        resourceServers: [
          ...tenant.resourceServers,
          { name: 'Bound', identifier: BOUND, proof_of_possession: { mechanism: 'mtls', required: true } },
        ],
        clientGrants: [
          ...tenant.clientGrants,
          ...clients.flatMap(({ client_id }) =>
            [API, BOUND].map((audience) => ({ client_id, audience, scope: [] })),
          ),
        ],
        customDomains: [{ domain: 'localhost', type: 'self_managed_certs', api_key: KEY }],
      },
    });
    edge.target = server.settings.port;
  });
  beforeEach(() => {
    edge.isCareless = false;
  });
  after(async () => {
    edge?.stop();
    await server?.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  const ask = async (
    client_id: string,
    certificate?: TestCertificate,
    headers: Record<string, string> = {},
  ) => {
    const answer = await fetchWith(trust, certificate)(`${edge.url}/oauth/token`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ grant_type: 'client_credentials', client_id, audience: BOUND }),
    });
    return { status: answer.status, body: (await answer.json()) as Record<string, string> };
  };

  it('authenticates clients by the certificates that they show it', async () => {
    const { status, body } = await ask('own', own);
    expect(status).to.equal(200);
    expect(payload(String(body.access_token)).cnf).to.deep.equal({ 'x5t#S256': own.thumbprint });
    expect((await ask('signed', signed)).status).to.equal(200);
    expect((await ask('own', other)).status).to.equal(401);
    expect((await ask('own')).status).to.equal(401);
    expect((await ask('signed', own)).status).to.equal(401);
  });

  const forged = (certificate: TestCertificate, over: Record<string, string> = {}) => ({
    'client-certificate': encodeURIComponent(certificate.cert),
    'client-certificate-ca-verified': 'SUCCESS',
    ...over,
  });

  it('authenticates nobody by headers that a client wrote', async () => {
    for (const [client, certificate] of [
      ['own', own],
      ['signed', signed],
    ] as const)
      expect((await ask(client, other, forged(certificate))).status).to.equal(401);
  });

  it('authenticates nobody by such headers even if it passes them on', async () => {
    edge.isCareless = true;
    for (const headers of [
      forged(own),
      { client_certificate: encodeURIComponent(own.cert) },
      { Client_Certificate_Ca_Verified: 'SUCCESS' },
      { CNAME_API_KEY: KEY },
    ]) {
      for (const shown of [undefined, other]) {
        const { status, body } = await ask('own', shown, headers as Record<string, string>);
        expect({ status, error: body.error }).to.deep.equal({ status: 400, error: 'invalid_request' });
      }
    }
    expect((await ask('own', own)).status).to.equal(200);
  });

  it('is required: the server, requested directly, trusts no headers without its key', async () => {
    const past = createAgent({ url: `http://127.0.0.1:${server.settings.port}`, ca: '' });
    const send = (headers: Record<string, string>) =>
      past.request('/oauth/token', {
        headers: { 'x-forwarded-proto': 'https', ...headers },
        json: { grant_type: 'client_credentials', client_id: 'own', audience: BOUND },
      });
    expect((await send(forged(own))).status).to.equal(401);
    expect((await send(forged(own, { 'cname-api-key': 'a-key-of-nobody-whatever-it-is' }))).status).to.equal(
      401,
    );
    expect((await send(forged(own, { 'cname-api-key': KEY }))).status).to.equal(200);
  });

  it('is trusted only at a trusted address, whoever has its key', async () => {
    const elsewhere = await startServer({
      env: { TLS: 'proxy', TRUSTED_PROXIES: '10.0.0.1', BASE_URL: edge.url },
      tenant: { ...tenant, customDomains: [{ domain: 'localhost', api_key: KEY }] },
    });
    try {
      const agent = createAgent({ url: `http://127.0.0.1:${elsewhere.settings.port}`, ca: '' });
      const answer = await agent.request('/oauth/token', {
        headers: { 'x-forwarded-proto': 'https', ...forged(own, { 'cname-api-key': KEY }) },
        json: { grant_type: 'client_credentials', client_id: 'own' },
      });
      expect(answer.status).to.equal(403);
    } finally {
      await elsewhere.stop();
    }
  });

  for (const [client, certificate] of [
    ['own', () => own],
    ['signed', () => signed],
  ] as const) {
    it(`authenticates openid-client, unmodified: ${client}`, async () => {
      const config = await openid.discovery(
        new URL(`${edge.url}/`),
        client,
        { use_mtls_endpoint_aliases: true },
        openid.TlsClientAuth(),
        { [openid.customFetch]: fetchWith(trust, certificate()) as openid.CustomFetch },
      );
      const tokens = await openid.clientCredentialsGrant(config, { audience: BOUND });
      expect(payload(tokens.access_token).cnf).to.deep.equal({ 'x5t#S256': certificate().thumbprint });
    });

    it(`authenticates @auth0/auth0-auth-js, unmodified: ${client}`, async () => {
      const auth = new AuthClient({
        domain: new URL(edge.url).host,
        clientId: client,
        useMtls: true,
        customFetch: fetchWith(trust, certificate()),
      });
      const tokens = await auth.getTokenByClientCredentials({ audience: BOUND });
      expect(payload(tokens.accessToken).cnf).to.deep.equal({ 'x5t#S256': certificate().thumbprint });
    });
  }
});
