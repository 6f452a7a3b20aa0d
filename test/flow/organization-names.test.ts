// Names of organizations are compared without regard to case, wherever one is taken; SDKs compare the claim in small letters.
import { expect } from 'chai';
import { callsWith, managementToken, startManaged } from '../management/support.ts';
import { type Agent, createAgent } from '../support/agent.ts';
import { tenant as base, payload, USER, WEB_CALLBACK } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';

const application = { client_id: 'named', client_secret: 'a-secret-of-the-named-application' };
const tenant = {
  ...base,
  tenant: { ...base.tenant, allow_organization_name_in_authentication_api: true },
  clients: [
    ...base.clients,
    {
      ...application,
      name: 'Named',
      app_type: 'regular_web',
      callbacks: [WEB_CALLBACK],
      grant_types: ['authorization_code', 'password'],
      organization_usage: 'allow',
    },
  ],
  databases: [{ name: 'users', enabled_clients: ['web', 'named'], options: { passwordPolicy: 'low' } }],
  organizations: [
    // As a tenant file may name one; calls accept small letters only.
    { id: 'org_one', name: 'ACME-GmbH', connections: [{ name: 'users', assign_membership_on_login: true }] },
    { id: 'org_two', name: 'other', connections: [{ name: 'users', assign_membership_on_login: true }] },
  ],
  users: [{ ...USER, connection: 'users' }],
};

describe('the name of an organization in other letters', () => {
  let server: TestServer;
  let agent: Agent;
  before(async () => {
    server = await startManaged(tenant);
    agent = createAgent(server);
  });
  after(() => server.stop());

  for (const organization of ['ACME-GmbH', 'acme-gmbh', 'Acme-GMBH'])
    it(`is accepted at the token endpoint, and the claim is in small letters: ${organization}`, async () => {
      const json = {
        ...application,
        grant_type: 'password',
        scope: 'openid',
        username: USER.email,
        password: USER.password,
        organization,
      };
      const answer = await agent.request('/oauth/token', { json });
      expect(answer.status, answer.text).to.equal(200);
      expect(payload(answer.json().id_token)).to.include({ org_id: 'org_one', org_name: 'acme-gmbh' });
    });

  it('is accepted at /authorize and in a pushed request', async () => {
    const request = {
      client_id: application.client_id,
      response_type: 'code',
      redirect_uri: WEB_CALLBACK,
      scope: 'openid',
      state: 's',
      organization: 'Other',
    };
    const page = await agent.get(`/authorize?${new URLSearchParams(request)}`);
    expect(page.headers.location).to.match(/^\/u\//);
    const pushed = await agent.request('/oauth/par', {
      form: { ...request, client_secret: application.client_secret },
    });
    expect(pushed.status, pushed.text).to.equal(201);
    const unknown = await agent.get(
      `/authorize?${new URLSearchParams({ ...request, organization: 'Others' })}`,
    );
    expect(unknown.headers.location ?? unknown.text).to.contain('invalid_request');
  });

  it('is found by the Management API', async () => {
    const call = callsWith(server, await managementToken(server));
    for (const [name, id] of [
      ['acme-GMBH', 'org_one'],
      ['OTHER', 'org_two'],
    ]) {
      const answer = await call('GET', `/organizations/name/${name}`);
      expect(answer.status).to.equal(200);
      expect(answer.json()).to.include({ id });
    }
    expect((await call('GET', '/organizations/name/acme')).status).to.equal(404);
  });
});
