// Cross-origin login: the credentials that yield a login ticket.
import { expect } from 'chai';
import { callsOf, codeOf, MFA_GRANTS, OTP_GRANT, REALM_GRANT, tenant } from '../factors/tenant.ts';
import { SPA_CALLBACK, USER } from '../support/flows.ts';
import { nextMessageTo } from '../support/inbox.ts';
import { startServer, type TestServer } from '../support/server.ts';

describe('cross-origin login', () => {
  let server: TestServer;
  let calls: ReturnType<typeof callsOf>;
  before(async () => {
    server = await startServer({
      tenant: {
        ...tenant,
        clients: tenant.clients.map((client) =>
          client.client_id === 'spa'
            ? { ...client, grant_types: [...client.grant_types, 'password', ...MFA_GRANTS] }
            : client,
        ),
      },
    });
    calls = callsOf(server);
  });
  after(() => server.stop());

  const authenticate = (fields: Record<string, unknown>) =>
    calls.agent.request('/co/authenticate', {
      json: { client_id: 'spa', ...fields },
      headers: { origin: new URL(SPA_CALLBACK).origin },
    });
  const user = 'mfa-0@example.test';

  it('accepts a password', async () => {
    for (const fields of [
      { credential_type: 'password' },
      { credential_type: REALM_GRANT, realm: 'users' },
    ]) {
      const answer = await authenticate({ ...fields, username: user, password: USER.password });
      expect(answer.status, answer.text).to.equal(200);
      expect(answer.json().login_ticket).to.be.a('string');
    }
  });

  it('accepts a passwordless code', async () => {
    const email = 'sent@example.test';
    await calls.agent.request('/passwordless/start', {
      json: { client_id: 'spa', connection: 'email', email, send: 'code' },
    });
    const { code: otp } = await nextMessageTo(server, email);
    const answer = await authenticate({ credential_type: OTP_GRANT, realm: 'email', username: email, otp });
    expect(answer.status, answer.text).to.equal(200);
  });

  it('refuses a second factor, which would complete a login that was begun elsewhere', async () => {
    const mfa_token = await calls.mfaToken(user, {}, 'spa');
    const { secret, recovery_codes } = (
      await calls.associate(mfa_token, { authenticator_types: ['otp'] })
    ).json();
    const proofs: Record<string, Record<string, string>> = {
      otp: { otp: codeOf(secret) },
      oob: { oob_code: 'x', binding_code: '000000' },
      'recovery-code': { recovery_code: recovery_codes[0] },
    };
    for (const grant of MFA_GRANTS) {
      const proof = proofs[grant.split('mfa-')[1] ?? ''];
      const answer = await authenticate({ credential_type: grant, mfa_token, ...proof });
      expect(answer.status, answer.text).to.equal(400);
      expect(answer.json().error).to.equal('unsupported_credential_type');
    }
    const done = await calls.verify('otp', { mfa_token, otp: codeOf(secret) }, 'spa');
    expect(done.status, 'neither token nor code was used up').to.equal(200);
  });

  for (const type of [
    'refresh_token',
    'client_credentials',
    'authorization_code',
    '',
    undefined,
    'toString',
  ]) {
    it(`refuses the credential type ${JSON.stringify(type)}`, async () => {
      const answer = await authenticate({ credential_type: type, username: user, password: USER.password });
      expect(answer.status).to.equal(400);
      expect(answer.json().error).to.equal('unsupported_credential_type');
    });
  }
});
