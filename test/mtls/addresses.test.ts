// Where clients are asked for certificates the endpoints have another address, which assertions and proofs may be for.
import { randomUUID } from 'node:crypto';
import tls from 'node:tls';
import { expect } from 'chai';
import { SignJWT } from 'jose';
import { createAgent } from '../support/agent.ts';
import { clientCertificate, type TestCertificate } from '../support/client-certificate.ts';
import { type ClientKeyPair, clientKey } from '../support/client-key.ts';
import { createProver } from '../support/dpop.ts';
import { API, PASSWORD_REQUEST, tenant, token } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';

describe('the address of mutual TLS', () => {
  let server: TestServer;
  let key: ClientKeyPair;
  let certificate: TestCertificate;
  before(async () => {
    key = await clientKey('ES256');
    certificate = await clientCertificate();
    const client = {
      client_id: 'signing',
      name: 'signing',
      app_type: 'non_interactive',
      grant_types: ['client_credentials'],
      client_authentication_methods: { private_key_jwt: { credentials: [key.credential] } },
    };
    server = await startServer({
      env: { MTLS_PORT: '0' },
      tenant: {
        ...tenant,
        clients: [...tenant.clients, client],
        clientGrants: [...tenant.clientGrants, { client_id: 'signing', audience: API, scope: [] }],
      },
    });
  });
  after(() => server.stop());

  const alias = () => `https://localhost:${server.settings.mtls?.port}`;
  const asserted = async (audience: string) =>
    (
      await token(createAgent(server), {
        grant_type: 'client_credentials',
        audience: API,
        client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
        client_assertion: await new SignJWT({})
          .setProtectedHeader({ alg: key.alg, kid: key.credential.kid })
          .setIssuer('signing')
          .setSubject('signing')
          .setAudience(audience)
          .setIssuedAt()
          .setExpirationTime('1m')
          .setJti(randomUUID())
          .sign(key.privateKey),
      })
    ).status;

  it('is an audience of assertions with the path of the endpoint, and of no other', async () => {
    expect(await asserted(`${alias()}/oauth/token`)).to.equal(200);
    expect(await asserted(`${server.url}/oauth/token`)).to.equal(200);
    expect(await asserted(`${alias()}/`)).to.equal(401);
    expect(await asserted(`${alias()}/userinfo`)).to.equal(401);
    expect(await asserted('https://localhost:1/oauth/token')).to.equal(401);
  });

  it('may be that of a DPoP proof, at the token endpoint and at /userinfo', async () => {
    const { proof } = await createProver();
    const ask = async (htu: string) =>
      createAgent(server).request('/oauth/token', {
        headers: { dpop: await proof('POST', htu) },
        json: {
          ...PASSWORD_REQUEST,
          scope: 'openid',
        },
      });
    expect((await ask('https://localhost:1/oauth/token')).status).to.equal(400);
    const issued = (await ask(`${alias()}/oauth/token`)).json() as Record<string, string>;
    expect(issued.token_type).to.equal('DPoP');
    const accessToken = issued.access_token ?? '';
    const userinfo = async (htu: string) =>
      (
        await createAgent(server).get('/userinfo', {
          authorization: `DPoP ${accessToken}`,
          dpop: await proof('GET', htu, { accessToken }),
        })
      ).status;
    expect(await userinfo(`${alias()}/userinfo`)).to.equal(200);
    expect(await userinfo(`${alias()}/oauth/token`)).to.equal(401);
    expect(await userinfo('https://localhost:1/userinfo')).to.equal(401);
  });

  it('accepts TLS 1.2 only with forward secrecy and authenticated encryption, as every address', async () => {
    const shake = (port: number, options: tls.ConnectionOptions) =>
      new Promise<string>((resolve) => {
        const socket = tls.connect(
          {
            host: 'localhost',
            port,
            ca: server.ca,
            cert: certificate.cert,
            key: certificate.key,
            ...options,
          },
          () => {
            resolve(socket.getCipher().standardName);
            socket.destroy();
          },
        );
        socket.on('error', () => resolve('refused'));
      });
    const twelve = { maxVersion: 'TLSv1.2' } as const;
    for (const port of [server.settings.port, Number(server.settings.mtls?.port)]) {
      expect(await shake(port, {})).to.match(/^TLS_(AES|CHACHA20)/);
      expect(await shake(port, twelve)).to.match(/^TLS_ECDHE_.*_GCM_/);
      for (const ciphers of [
        'ECDHE-RSA-AES128-SHA256:ECDHE-ECDSA-AES128-SHA256',
        'AES128-GCM-SHA256',
        'AES256-SHA',
      ])
        expect(await shake(port, { ...twelve, ciphers }), ciphers).to.equal('refused');
    }
  });
});
