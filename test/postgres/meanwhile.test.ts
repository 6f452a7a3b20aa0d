// Records that another process deletes or changes between a request's read and its write.
import { expect } from 'chai';
import pg from 'pg';
import { membershipId } from '../../src/records/users/organizations.ts';
import { hashSecret } from '../../src/runtime/secrets.ts';
import { callsOf, codeOf, OTP_GRANT, tenant } from '../factors/tenant.ts';
import { type Answer, createAgent, readForm } from '../support/agent.ts';
import { openPage } from '../support/browser-logins.ts';
import { tenant as base, submitLogin, USER, webRequest } from '../support/flows.ts';
import { nextMessageTo } from '../support/inbox.ts';
import { type Cluster, startCluster } from '../support/postgres.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { until } from '../support/wait-until.ts';

describe('a request over PostgreSQL, during which another process writes', () => {
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

  /**
   * Writes rows in a transaction that commits only when the request waits for it; the request has read the rows as they
   * were before.
   */
  async function whileWriting(
    sql: string,
    use: () => Promise<Answer>,
    database = 'postgres',
  ): Promise<Answer> {
    const other = new pg.Client({ connectionString: cluster.url(database) });
    await other.connect();
    try {
      await other.query('BEGIN');
      const { rowCount } = await other.query(sql);
      expect(rowCount).to.be.above(0);
      const answer = use();
      const waiting = 'SELECT 1 FROM pg_locks WHERE NOT granted';
      await until(async () => ((await cluster.query(waiting)).rowCount ?? 0) > 0);
      await other.query('COMMIT');
      return await answer;
    } finally {
      await other.end();
    }
  }

  it('does not accept a code that was deleted', async () => {
    const email = 'gone@example.test';
    await calls.agent.request('/passwordless/start', {
      json: { client_id: 'web', client_secret: 'web-secret', connection: 'email', email, send: 'code' },
    });
    const { code } = await nextMessageTo(server, email);
    const used = await whileWriting('DELETE FROM challenges', () =>
      calls.token({ grant_type: OTP_GRANT, username: email, otp: code, realm: 'email' }),
    );
    expect(used.status, used.text).to.equal(403);
    expect(used.json().error).to.equal('invalid_grant');
  });

  it('does not accept a recovery code that was deleted', async () => {
    const { recoveryCode } = await calls.enrollOtp('mfa-1@example.test');
    const mfa_token = await calls.mfaToken('mfa-1@example.test');
    const used = await whileWriting(`DELETE FROM authenticators WHERE id LIKE 'recovery-code%'`, () =>
      calls.verify('recovery-code', { mfa_token, recovery_code: recoveryCode }),
    );
    expect(used.status, used.text).to.equal(403);
  });

  it('does not accept the code of an authenticator app that was deleted', async () => {
    const { secret } = await calls.enrollOtp('mfa-2@example.test');
    const mfa_token = await calls.mfaToken('mfa-2@example.test');
    const next = codeOf(secret, Date.now() + 30_000);
    const used = await whileWriting(`DELETE FROM authenticators WHERE data ->> 'kind' = 'otp'`, () =>
      calls.verify('otp', { mfa_token, otp: next }),
    );
    expect(used.status, used.text).to.equal(403);
  });

  it('keeps metadata that an administrator has set, instead of those of an invitation', async () => {
    await cluster.query('CREATE DATABASE members');
    const members = await startServer({
      tenant: {
        ...base,
        organizations: [{ id: 'org_acme', name: 'acme', connections: [{ name: 'users' }] }],
        clients: base.clients.map((one) => ({ ...one, organization_usage: 'allow' })),
      },
      env: { DATABASE_URL: cluster.url('members') },
    });
    try {
      const { id } = (await members.users.findInConnection({ name: 'users' }, USER.email)) ?? { id: '' };
      const ticket = 'an-invitation';
      await members.store.collection('invitations').insert({
        id: 'uinv_1',
        organization_id: 'org_acme',
        ticketHash: hashSecret(ticket),
        inviter: { name: 'Grace' },
        invitee: { email: USER.email },
        client_id: 'web',
        app_metadata: { plan: 'gold' },
        user_metadata: {},
        roles: [],
        created_at: new Date().toISOString(),
        expires_at: new Date().toISOString(),
      });
      const suspended = `jsonb_set(data::jsonb, '{app_metadata}', '{"plan":"none"}')::json`;
      const params = { ...webRequest(), organization: 'org_acme', invitation: ticket };
      const browser = createAgent(members);
      const page = await openPage(browser, members, params);
      const login = await browser.get(readForm(page, 'email').action.replace('signup', 'login'));
      await whileWriting(
        `UPDATE users SET data = ${suspended} WHERE id = '${id}'`,
        () => submitLogin(browser, members, login),
        'members',
      );
      const membership = await members.store.collection('memberships').get(membershipId('org_acme', id));
      expect(membership?.user_id).to.equal(id);
      expect((await members.users.get(id))?.app_metadata).to.deep.equal({ plan: 'none' });
    } finally {
      await members.stop();
    }
  });
});
