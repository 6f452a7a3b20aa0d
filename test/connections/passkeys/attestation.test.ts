// The attestation statement of a new passkey, which was not requested.
import 'reflect-metadata';
import { webcrypto } from 'node:crypto';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import * as x509 from '@peculiar/x509';
import { SettingsService } from '@simplewebauthn/server';
import { expect } from 'chai';
import { createAgent } from '../../support/agent.ts';
import { tenant, token } from '../../support/flows.ts';
import { startServer, type TestServer } from '../../support/server.ts';
import { newCredential } from '../../support/software-key.ts';

const GRANT = 'urn:okta:params:oauth:grant-type:webauthn';
const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
const PAGE = 'https://app.example.test';

describe('the attestation of a new passkey', () => {
  let server: TestServer;
  let inside: http.Server;
  let requests = 0;
  const trusted = SettingsService.getRootCertificates({ identifier: 'apple' });

  before(async () => {
    server = await startServer({
      tenant: {
        ...tenant,
        clients: [
          ...tenant.clients,
          {
            client_id: 'app',
            name: 'app',
            app_type: 'spa',
            token_endpoint_auth_method: 'none',
            grant_types: [GRANT],
            web_origins: [PAGE],
          },
        ],
        databases: [
          {
            name: 'keys',
            enabled_clients: ['app'],
            options: { authentication_methods: { passkey: { enabled: true } } },
          },
          ...tenant.databases,
        ],
      },
    });
    inside = http.createServer((_request, response) => {
      requests += 1;
      response.end();
    });
    await new Promise<void>((resolve) => inside.listen(0, '127.0.0.1', resolve));
  });
  after(async () => {
    SettingsService.setRootCertificates({ identifier: 'apple', certificates: trusted });
    await server?.stop();
    inside?.close();
  });

  const signUp = async (email: string, statement?: Parameters<typeof newCredential>[2]) => {
    const agent = createAgent(server);
    const json = { client_id: 'app', realm: 'keys', user_profile: { email } };
    const registration = (await agent.request('/passkey/register', { json })).json();
    const answer = newCredential(registration.authn_params_public_key, PAGE, statement);
    return token(agent, {
      grant_type: GRANT,
      client_id: 'app',
      scope: 'openid',
      auth_session: registration.auth_session,
      authn_response: JSON.stringify(answer),
    });
  };

  /** Certificates of a trusted authority; the leaf names the URL of a revocation list. */
  const chain = async (list: string) => {
    const keys = await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
    const more = { signingAlgorithm: ALGORITHM, notBefore: new Date(Date.now() - 60_000) };
    const until = { notAfter: new Date(Date.now() + 3_600_000) };
    const root = await x509.X509CertificateGenerator.createSelfSigned({
      ...more,
      ...until,
      name: 'CN=root',
      keys,
    });
    const leaf = await x509.X509CertificateGenerator.create({
      ...more,
      ...until,
      subject: 'CN=leaf',
      issuer: 'CN=root',
      signingKey: keys.privateKey,
      publicKey: keys.publicKey,
      extensions: [new x509.CRLDistributionPointsExtension([list])],
    });
    return { root, leaf };
  };

  it('makes the server fetch nothing, whatever certificates it contains', async () => {
    const { root, leaf } = await chain(`http://127.0.0.1:${(inside.address() as AddressInfo).port}/secret`);
    SettingsService.setRootCertificates({ identifier: 'apple', certificates: [root.toString('pem')] });
    const x5c = [new Uint8Array(leaf.rawData)];
    await signUp('stranger@example.test', { fmt: 'apple', attStmt: new Map([['x5c', x5c]]) });
    expect(requests).to.equal(0);
  });

  it('is ignored: a sign-up succeeds with it as without', async () => {
    expect((await signUp('none@example.test')).status).to.equal(200);
    const attStmt = new Map<string, unknown>([
      ['alg', -7],
      ['sig', new Uint8Array(70)],
    ]);
    expect((await signUp('packed@example.test', { fmt: 'packed', attStmt })).status).to.equal(200);
    expect((await signUp('unknown@example.test', { fmt: 'of-tomorrow', attStmt })).status).to.equal(200);
  });
});
