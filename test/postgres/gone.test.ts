// What may be used once, where another process removes it in the moment of its use: between its reading and its writing.
import { expect } from 'chai';
import pg from 'pg';
import { callsOf, codeOf, OTP_GRANT, tenant } from '../factors/tenant.ts';
import type { Answer } from '../support/agent.ts';
import { nextMessageTo } from '../support/inbox.ts';
import { type Cluster, startCluster } from '../support/postgres.ts';
import { startServer, type TestServer } from '../support/server.ts';

describe('what another process removes while it is used, over PostgreSQL', () => {
  let cluster: Cluster;
  let server: TestServer;
  let calls: ReturnType<typeof callsOf>;
  before(async () => {
    cluster = await startCluster();
    server = await startServer({ tenant, env: { DATABASE_URL: cluster.url() } });
    calls = callsOf(server);
  });
  after(async () => {
    await server.stop();
    await cluster.stop();
  });

  /** Deletes rows in a transaction that ends when something waits for it: they were read, and are gone. */
  async function whileDeleting(where: string, use: () => Promise<Answer>): Promise<Answer> {
    const other = new pg.Client({ connectionString: cluster.url() });
    await other.connect();
    try {
      await other.query('BEGIN');
      const { rowCount } = await other.query(`DELETE FROM ${where}`);
      expect(rowCount).to.be.above(0);
      const answer = use();
      const waiting = 'SELECT 1 FROM pg_locks WHERE NOT granted';
      for (const end = performance.now() + 4_000; performance.now() < end; ) {
        if (((await cluster.query(waiting)).rowCount ?? 0) > 0) break;
      }
      expect((await cluster.query(waiting)).rowCount, 'nobody came to use it').to.be.above(0);
      await other.query('COMMIT');
      return await answer;
    } finally {
      await other.end();
    }
  }

  it('a code is not taken', async () => {
    const email = 'gone@example.test';
    await calls.agent.request('/passwordless/start', {
      json: { client_id: 'web', client_secret: 'web-secret', connection: 'email', email, send: 'code' },
    });
    const { code } = await nextMessageTo(server, email);
    const used = await whileDeleting('challenges', () =>
      calls.token({ grant_type: OTP_GRANT, username: email, otp: code, realm: 'email' }),
    );
    expect(used.status, used.text).to.equal(403);
    expect(used.json().error).to.equal('invalid_grant');
  });

  it('a recovery code is not taken', async () => {
    const { recoveryCode } = await calls.enrollOtp('mfa-1@example.test');
    const mfa_token = await calls.mfaToken('mfa-1@example.test');
    const used = await whileDeleting(`authenticators WHERE id LIKE 'recovery-code%'`, () =>
      calls.verify('recovery-code', { mfa_token, recovery_code: recoveryCode }),
    );
    expect(used.status, used.text).to.equal(403);
  });

  it('the code of an authenticator app is not taken', async () => {
    const { secret } = await calls.enrollOtp('mfa-2@example.test');
    const mfa_token = await calls.mfaToken('mfa-2@example.test');
    const next = codeOf(secret, Date.now() + 30_000);
    const used = await whileDeleting(`authenticators WHERE data ->> 'kind' = 'otp'`, () =>
      calls.verify('otp', { mfa_token, otp: next }),
    );
    expect(used.status, used.text).to.equal(403);
  });
});
