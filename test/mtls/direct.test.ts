// Client certificates that the server itself asks for (RFC 8705 §2): at a port of their own, or at the port of
// everything.

import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import type http from 'node:http';
import https from 'node:https';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { createAgent } from '../support/agent.ts';
import { clientCertificate, type TestCertificate } from '../support/client-certificate.ts';
import { API, authorize, follow, payload, tenant, webRequest } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';

describe('client certificates without an edge', () => {
  let directory: string;
  let server: TestServer;
  let own: TestCertificate;
  let other: TestCertificate;
  let signed: TestCertificate;
  let foreign: TestCertificate;

  const BOUND = 'urn:bound-api';
  const client = (client_id: string, methods: object) => ({
    client_id,
    name: client_id,
    app_type: 'non_interactive',
    grant_types: ['client_credentials'],
    client_authentication_methods: methods,
  });
  const clients = () => [
    client('own', { self_signed_tls_client_auth: { credentials: [{ pem: own.cert }] } }),
    client('signed', { tls_client_auth: { credentials: [{ subject_dn: 'CN=signed' }] } }),
  ];
  const start = (env: Record<string, string>) =>
    startServer({
      env,
      tenant: {
        ...tenant,
        clients: [...tenant.clients, ...clients()],
        resourceServers: [
          ...tenant.resourceServers,
          { name: 'Bound', identifier: BOUND, proof_of_possession: { mechanism: 'mtls', required: true } },
        ],
        clientGrants: [
          ...tenant.clientGrants,
          ...clients().flatMap(({ client_id }) =>
            [API, BOUND].map((audience) => ({ client_id, audience, scope: [] })),
          ),
        ],
      },
    });

  before(async () => {
    directory = mkdtempSync(join(tmpdir(), 'gatehouse-mtls-'));
    const ca = await clientCertificate({ subject: 'CN=Trusted CA', isAuthority: true });
    const strange = await clientCertificate({ subject: 'CN=Strange CA', isAuthority: true });
    own = await clientCertificate({ subject: 'CN=own' });
    other = await clientCertificate({ subject: 'CN=own' });
    signed = await clientCertificate({ subject: 'CN=signed', issuer: ca.authority });
    foreign = await clientCertificate({ subject: 'CN=signed', issuer: strange.authority });
    const file = join(directory, 'ca.pem');
    await writeFile(file, ca.cert);
    server = await start({ MTLS_PORT: '0', MTLS_CA: file });
  });
  after(async () => {
    await server?.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  const ask = async (
    at: { ca: string },
    origin: string,
    client_id: string,
    { certificate, audience = API }: { certificate?: TestCertificate; audience?: string } = {},
  ) => {
    const request = https.request(`${origin}/oauth/token`, {
      method: 'POST',
      ca: at.ca,
      agent: false,
      ...(certificate && { cert: certificate.cert, key: certificate.key }),
      headers: { 'content-type': 'application/json' },
    });
    request.end(JSON.stringify({ grant_type: 'client_credentials', client_id, audience }));
    const [answer] = (await once(request, 'response')) as [http.IncomingMessage];
    return { status: answer.statusCode, body: JSON.parse(await text(answer)) as Record<string, string> };
  };
  const mutual = () => `https://localhost:${server.settings.mtls?.port}`;
  const statusAt = async (origin: string, client_id: string, certificate?: TestCertificate) =>
    (await ask(server, origin, client_id, certificate && { certificate })).status;

  it('authenticate their client at the port that asks for them, and at no other', async () => {
    expect(server.settings.mtls?.port).not.to.equal(server.settings.port);
    expect(await statusAt(mutual(), 'own', own)).to.equal(200);
    expect(await statusAt(server.url, 'own', own)).to.equal(401);
    expect(await statusAt(mutual(), 'own', other)).to.equal(401);
    expect(await statusAt(mutual(), 'own')).to.equal(401);
  });

  it('authenticate by their subject when a trusted authority has signed them', async () => {
    expect(await statusAt(mutual(), 'signed', signed)).to.equal(200);
    expect(await statusAt(mutual(), 'signed', foreign)).to.equal(401);
    expect(await statusAt(mutual(), 'signed', own)).to.equal(401);
  });

  it('are optional there: other clients authenticate as before', async () => {
    const answer = await createAgent(server).request('/oauth/token', {
      json: {
        grant_type: 'client_credentials',
        client_id: 'm2m',
        client_secret: 'm2m-secret',
        audience: API,
      },
    });
    expect(answer.status).to.equal(200);
  });

  it('bind tokens', async () => {
    const { body } = await ask(server, mutual(), 'own', { certificate: own, audience: BOUND });
    expect(payload(String(body.access_token)).cnf).to.deep.equal({ 'x5t#S256': own.thumbprint });
  });

  it('are asked for at the address in discovery', async () => {
    const metadata = (await createAgent(server).get('/.well-known/openid-configuration')).json() as {
      mtls_endpoint_aliases: Record<string, string>;
    } & Record<string, unknown>;
    expect(metadata.mtls_endpoint_aliases).to.include({
      token_endpoint: `${mutual()}/oauth/token`,
      revocation_endpoint: `${mutual()}/oauth/revoke`,
      introspection_endpoint: `${mutual()}/oauth/introspect`,
      pushed_authorization_request_endpoint: `${mutual()}/oauth/par`,
      userinfo_endpoint: `${mutual()}/userinfo`,
    });
    expect(metadata.mtls_endpoint_aliases).not.to.have.any.keys(
      'authorization_endpoint',
      'end_session_endpoint',
    );
    expect(metadata.tls_client_certificate_bound_access_tokens).to.equal(true);
    expect(metadata.token_endpoint_auth_methods_supported).to.include.members([
      'tls_client_auth',
      'self_signed_tls_client_auth',
    ]);
  });

  it('of any authority are refused where none is trusted', async () => {
    const open = await start({ MTLS_PORT: '0' });
    try {
      const origin = `https://localhost:${open.settings.mtls?.port}`;
      expect((await ask(open, origin, 'own', { certificate: own })).status).to.equal(200);
      expect((await ask(open, origin, 'signed', { certificate: signed })).status).to.equal(401);
    } finally {
      await open.stop();
    }
  });

  describe('at the only port', () => {
    let same: TestServer;
    before(async () => {
      same = await atOnePort((port) =>
        start({ PORT: port, MTLS_PORT: port, MTLS_CA: join(directory, 'ca.pem') }),
      );
    });
    after(() => same?.stop());

    const statusOf = async (client_id: string, certificate?: TestCertificate) =>
      (await ask(same, same.url, client_id, certificate && { certificate })).status;

    it('authenticate their client, and no other', async () => {
      expect(same.settings.mtls?.port).to.equal(same.settings.port);
      expect(await statusOf('own', own)).to.equal(200);
      expect(await statusOf('signed', signed)).to.equal(200);
      for (const [client_id, certificate] of [
        ['own', other],
        ['own', undefined],
        ['signed', foreign],
        ['signed', own],
      ] as const)
        expect(await statusOf(client_id, certificate)).to.equal(401);
      const { body } = await ask(same, same.url, 'own', { certificate: own, audience: BOUND });
      expect(payload(String(body.access_token)).cnf).to.deep.equal({ 'x5t#S256': own.thumbprint });
    });

    it('are optional there: pages and other clients are answered, and discovery names no other address', async () => {
      const agent = createAgent(same);
      const json = {
        grant_type: 'client_credentials',
        client_id: 'm2m',
        client_secret: 'm2m-secret',
        audience: API,
      };
      expect((await agent.request('/oauth/token', { json })).status).to.equal(200);
      expect((await follow(agent, await authorize(agent, webRequest()), same.url)).status).to.equal(200);
      const metadata = (await agent.get('/.well-known/openid-configuration')).json();
      expect(metadata).not.to.have.property('mtls_endpoint_aliases');
      expect(metadata.token_endpoint_auth_methods_supported).to.include('self_signed_tls_client_auth');
    });
  });
});

/** Starts a server that must know its port before; tries another one when it is in use. */
async function atOnePort(start: (port: string) => Promise<TestServer>): Promise<TestServer> {
  for (let left = 10; ; left--) {
    const probe = createServer().listen(0, '127.0.0.1');
    await once(probe, 'listening');
    const { port } = probe.address() as AddressInfo;
    probe.close();
    await once(probe, 'close');
    try {
      return await start(String(port));
    } catch (thrown) {
      if (left === 0 || !/in use|EADDRINUSE/.test(String(thrown))) throw thrown;
    }
  }
}

describe('discovery without a port for client certificates', () => {
  for (const [what, over, env, aliases] of [
    ['no address by default', {}, {}, undefined],
    [
      'an origin of its own',
      {},
      { MTLS_BASE_URL: 'https://mtls.example.test' },
      'https://mtls.example.test/oauth/token',
    ],
    [
      'the edge of a custom domain, where the tenant says so',
      {
        tenant: { ...tenant.tenant, mtls: { enable_endpoint_aliases: true } },
        customDomains: [{ domain: 'login.example.test', api_key: 'the-api-key-of-the-edge-of-login' }],
      },
      {},
      'https://mtls.login.example.test/oauth/token',
    ],
    [
      'no address of an edge that does not exist',
      { tenant: { ...tenant.tenant, mtls: { enable_endpoint_aliases: true } } },
      {},
      undefined,
    ],
  ] as const) {
    it(`names ${what}`, async () => {
      const server = await startServer({ tenant: { ...tenant, ...over }, env });
      try {
        const metadata = (await createAgent(server).get('/.well-known/openid-configuration')).json() as {
          mtls_endpoint_aliases?: Record<string, string>;
        };
        expect(metadata.mtls_endpoint_aliases?.token_endpoint).to.equal(aliases);
      } finally {
        await server.stop();
      }
    });
  }
});
