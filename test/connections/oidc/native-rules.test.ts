// Native social logins follow the same rules as other logins: organizations, and the second factor.
import { expect } from 'chai';
import { membershipId } from '../../../src/records/users/organizations.ts';
import { codeOf, MFA_GRANTS } from '../../factors/tenant.ts';
import { createAgent } from '../../support/agent.ts';
import { payload, tenant } from '../../support/flows.ts';
import { type OpenIdProvider, signingKey, startOpenIdProvider } from '../../support/openid-provider.ts';
import { startServer, type TestServer } from '../../support/server.ts';

const on = { enabled: true };
const USER = 'google-oauth2|42';

describe('native social login by the rules of every login', () => {
  let provider: OpenIdProvider;
  let server: TestServer;
  const app = (client_id: string, more: object) => ({
    client_id,
    name: client_id,
    app_type: 'native',
    token_endpoint_auth_method: 'none',
    oidc_conformant: true,
    grant_types: ['authorization_code', 'refresh_token', ...MFA_GRANTS],
    native_social_login: { google: on },
    ...more,
  });
  const clients = [
    app('denying', {}),
    app('allowing', { organization_usage: 'allow' }),
    app('requiring', { organization_usage: 'require' }),
    app('strict', { organization_usage: 'allow', client_metadata: { mfa_policy: 'always' } }),
  ];

  before(async () => {
    provider = await startOpenIdProvider(await signingKey('k1'));
    server = await startServer({
      tenant: {
        ...tenant,
        clients: [...tenant.clients, ...clients],
        guardianFactors: [{ name: 'otp', enabled: true }],
        connections: [
          {
            name: 'google',
            strategy: 'google-oauth2',
            enabled_clients: clients.map(({ client_id }) => client_id),
            options: {
              client_id: 'gatehouse',
              discovery_url: `${provider.url}/.well-known/openid-configuration`,
            },
          },
        ],
        organizations: [
          { id: 'org_acme', name: 'acme', connections: [{ name: 'google' }] },
          {
            id: 'org_open',
            name: 'open',
            connections: [{ name: 'google', assign_membership_on_login: true }],
          },
          { id: 'org_users', name: 'of-users', connections: [{ name: 'users' }] },
        ],
      },
    });
  });
  after(async () => {
    await server?.stop();
    await provider?.stop();
  });

  const join = (organization_id: string) =>
    server.store.collection('memberships').put({
      id: membershipId(organization_id, USER),
      organization_id,
      user_id: USER,
      roles: [],
    });
  const exchange = async (client_id: string, more: Record<string, string> = {}) => {
    const answer = await createAgent(server).request('/oauth/token', {
      form: {
        grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
        client_id,
        subject_token_type: 'http://auth0.com/oauth/token-type/google-id-token',
        subject_token: await provider.sign({ sub: '42', email: 'g@x.test', email_verified: true }),
        scope: 'openid profile offline_access',
        ...more,
      },
    });
    return { status: answer.status, ...answer.json() } as Record<string, string> & { status: number };
  };

  describe('for an organization', () => {
    it('rejects a user who is not a member, and issues org_id to a member', async () => {
      const refused = await exchange('allowing', { organization: 'org_acme' });
      expect(refused).to.include({ error: 'access_denied' }).and.not.have.property('access_token');
      await join('org_acme');
      const tokens = await exchange('allowing', { organization: 'org_acme' });
      expect(payload(tokens.id_token ?? '')).to.include({ sub: USER, org_id: 'org_acme' });
      expect(payload((await exchange('allowing')).id_token ?? '')).not.to.have.property('org_id');
    });

    it('makes the user a member with assign_membership_on_login', async () => {
      const tokens = await exchange('requiring', { organization: 'org_open' });
      expect(payload(tokens.id_token ?? '')).to.include({ org_id: 'org_open' });
    });

    it('rejects a connection that the organization has not enabled, even for a member', async () => {
      await join('org_users');
      const refused = await exchange('allowing', { organization: 'org_users' });
      expect(refused).to.include({ error: 'access_denied' }).and.not.have.property('access_token');
    });

    it('rejects an organization if the application denies or requires one otherwise, or it is unknown', async () => {
      const denied = await exchange('denying', { organization: 'org_acme' });
      expect(denied).to.include({ status: 400, error: 'invalid_request' });
      expect(await exchange('requiring')).to.include({ status: 400, error: 'invalid_request' });
      const nowhere = await exchange('allowing', { organization: 'org_nowhere' });
      expect(nowhere).to.include({ status: 400, error: 'invalid_request' });
    });
  });

  describe('with a second factor', () => {
    it('returns mfa_required instead of tokens, with and without an organization', async () => {
      await join('org_acme');
      for (const more of [{}, { organization: 'org_acme' }] as Record<string, string>[]) {
        const tokens = await exchange('strict', more);
        expect(tokens).to.include({ status: 403, error: 'mfa_required' });
        expect(tokens.mfa_token).to.be.a('string');
        expect(tokens).not.to.have.any.keys('access_token', 'id_token', 'refresh_token');
      }
    });

    it('completes with the mfa_token, for the organization of the first request', async () => {
      await join('org_acme');
      const { mfa_token = '' } = await exchange('strict', { organization: 'org_acme' });
      const agent = createAgent(server);
      const enrolled = await agent.request('/mfa/associate', {
        json: { authenticator_types: ['otp'] },
        headers: { authorization: `Bearer ${mfa_token}` },
      });
      expect(enrolled.status).to.equal(200);
      const verify = async (otp: string) => {
        const grant_type = 'http://auth0.com/oauth/grant-type/mfa-otp';
        const answer = await agent.request('/oauth/token', {
          form: { grant_type, client_id: 'strict', mfa_token, otp },
        });
        return { status: answer.status, ...answer.json() } as Record<string, string> & { status: number };
      };
      expect(await verify('000000'))
        .to.include({ status: 403 })
        .and.not.have.property('access_token');
      const { id_token = '' } = await verify(codeOf(enrolled.json().secret));
      expect(payload(id_token)).to.include({ sub: USER, org_id: 'org_acme' });
      expect(payload(id_token).amr).to.include('mfa');
    });
  });
});
