// Codes for database connections in a login for an organization: only members may log in.
import { expect } from 'chai';
import { membershipId } from '../../../src/records/users/organizations.ts';
import { createAgent } from '../../support/agent.ts';
import { payload, USER } from '../../support/flows.ts';
import { nextMessageTo } from '../../support/inbox.ts';
import { startServer, type TestServer } from '../../support/server.ts';
import { OTP_GRANT, tenant } from './tenant.ts';

const CLIENT = { client_id: 'web', client_secret: 'web-secret' };

describe('a code for a database connection, for an organization', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer({
      tenant: {
        ...tenant,
        organizations: [{ id: 'org_acme', name: 'acme', connections: [{ name: 'users' }] }],
        clients: tenant.clients.map((client) =>
          client.client_id === 'web' ? { ...client, organization_usage: 'allow' } : client,
        ),
        databases: tenant.databases.map((database) => ({
          ...database,
          options: { ...database.options, authentication_methods: { email_otp: { enabled: true } } },
        })),
        users: ['member', 'stranger'].map((name) => ({
          email: `${name}@example.test`,
          password: USER.password,
          connection: 'users',
          email_verified: true,
        })),
      },
    });
    const [member] = await server.users.withEmail('member@example.test');
    const user_id = member?.id ?? '';
    await server.store.collection('memberships').insert({
      id: membershipId('org_acme', user_id),
      organization_id: 'org_acme',
      user_id,
      roles: [],
      created_at: new Date().toISOString(),
    } as never);
  });
  after(() => server.stop());

  const exchange = async (email: string, organization: string, messages = 1) => {
    const agent = createAgent(server);
    const challenge = await agent.request('/otp/challenge', {
      json: { ...CLIENT, connection: 'users', email },
    });
    expect(challenge.status, challenge.text).to.equal(200);
    const { code } = await nextMessageTo(server, email, messages, 'code');
    const { auth_session } = challenge.json();
    const grant = { grant_type: OTP_GRANT, auth_session, otp: code, scope: 'openid', organization };
    return agent.request('/oauth/token', { json: { ...CLIENT, ...grant } });
  };

  it('logs in a member, with the organization in the token', async () => {
    const answer = await exchange('member@example.test', 'org_acme');
    expect(answer.status, answer.text).to.equal(200);
    expect(payload(answer.json().id_token)).to.include({ org_id: 'org_acme' });
  });

  it('rejects a user who is no member, and an unknown organization', async () => {
    for (const [index, organization] of ['org_acme', 'org_none'].entries()) {
      const answer = await exchange('stranger@example.test', organization, index + 1);
      expect(answer.status, organization).to.be.within(400, 403);
      expect(answer.json(), organization).to.not.have.any.keys('access_token', 'id_token');
    }
  });
});
