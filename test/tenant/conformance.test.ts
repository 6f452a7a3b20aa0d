// The tenant for the conformance suite. Its development user has every claim of the standard.
import { generateKeyPairSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { parseTenant } from '../../src/tenant/load.ts';
import { createAgent } from '../support/agent.ts';
import { clientCertificate } from '../support/client-certificate.ts';
import { logIn, responseOf, token } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';

const SUITE = 'https://suite.example.test';
const CALLBACK = `${SUITE}/test/a/gatehouse/callback`;
const SECRET = 'a-secret-of-at-least-32-characters';

const KEY = generateKeyPairSync('rsa', { modulusLength: 2048 })
  .publicKey.export({ type: 'spki', format: 'pem' })
  .toString();

/** The tenant file, with values for its variables. */
async function tenant(): Promise<object> {
  const file = fileURLToPath(new URL('../../config/examples/conformance.yaml', import.meta.url));
  const certificate = (await clientCertificate()).cert;
  const values = {
    SUITE,
    CLIENT_SECRET: SECRET,
    SECOND_SECRET: SECRET,
    KEY_ONE: KEY,
    KEY_TWO: KEY,
    CERTIFICATE_ONE: certificate,
    CERTIFICATE_TWO: certificate,
  };
  return parseTenant(readFileSync(file, 'utf8'), values).tenant;
}

describe('config/examples/conformance.yaml', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer({ tenant: await tenant() });
  });
  after(() => server.stop());

  const claims = async (scope: string): Promise<Record<string, unknown>> => {
    const end = await logIn(
      createAgent(server),
      server,
      { client_id: 'suite', response_type: 'code', redirect_uri: CALLBACK, scope, state: 's' },
      { email: 'ada@example.test', password: 'Correct-Horse-1' },
    );
    const issued = await token(createAgent(server), {
      grant_type: 'authorization_code',
      client_id: 'suite',
      client_secret: SECRET,
      code: responseOf(end).code,
      redirect_uri: CALLBACK,
    });
    const { access_token } = (await issued.json()) as { access_token: string };
    return (await createAgent(server).get('/userinfo', { authorization: `Bearer ${access_token}` })).json();
  };

  it('has a user whose profile contains each claim of each scope', async () => {
    const response = await claims('openid profile email address phone');
    expect(response).to.include({ given_name: 'Ada', gender: 'female', phone_number_verified: true });
    expect(response.address).to.include({ locality: 'London' });
    expect(response.updated_at).to.be.a('number');
    expect(Object.keys(response)).to.have.lengthOf(20);
  });

  it("omits the hosted service's own metadata: the global token revocation endpoint, which is not a URL, and the MFA endpoint", async () => {
    const metadata = (await createAgent(server).get('/.well-known/openid-configuration')).json();
    expect(metadata)
      .to.include.keys('issuer')
      .and.not.have.any.keys('global_token_revocation_endpoint', 'mfa_challenge_endpoint');
  });

  it('returns only the requested claims', async () => {
    expect(Object.keys(await claims('openid email'))).to.have.members(['sub', 'email', 'email_verified']);
  });
});
