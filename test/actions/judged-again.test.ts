// Token requests whose application or user loses its rights while an action runs.
import type { ServerResponse } from 'node:http';
import { expect } from 'chai';
import { startManaged } from '../management/support.ts';
import { type Provider, startProvider } from '../scripts/support.ts';
import { createAgent } from '../support/agent.ts';
import { token } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { until } from '../support/wait-until.ts';
import { bindActions, managed } from './support.ts';

const API = 'https://orders.example.test/';
const PASSWORD = 'Good-Enough-1';
const tenant = {
  tenant: { default_directory: 'users' },
  resourceServers: [
    { identifier: API, name: 'Orders', scopes: [{ value: 'read:orders' }], allow_offline_access: true },
  ],
  databases: [{ name: 'users' }],
};

describe('an application or a user that loses its rights while an action runs', () => {
  let server: TestServer;
  let crm: Provider;
  let waiting: ServerResponse[];
  let credentials: { client_id: string; client_secret: string };
  let organization: string;
  let user: string;
  beforeEach(async () => {
    waiting = [];
    crm = await startProvider({ '/crm': (_request, response) => void waiting.push(response) });
    server = await startManaged(tenant);
    for (const [trigger, entry] of [
      ['post-login', 'onExecutePostLogin'],
      ['credentials-exchange', 'onExecuteCredentialsExchange'],
    ] as const)
      await bindActions(server, trigger, {
        code: `exports.${entry} = async () => { await fetch('${crm.url}/crm'); };`,
      });
    const created = await made('POST', '/clients', {
      name: 'caller',
      app_type: 'regular_web',
      token_endpoint_auth_method: 'client_secret_post',
      grant_types: ['client_credentials', 'password', 'refresh_token'],
      organization_usage: 'allow',
    });
    const { client_id, client_secret } = created;
    credentials = { client_id, client_secret };
    const grant = { client_id, audience: API, scope: ['read:orders'] };
    await made('POST', '/client-grants', grant);
    const [connection] = (await managed(server, 'GET', '/connections?name=users')).body;
    await managed(server, 'PATCH', `/connections/${connection.id}`, { enabled_clients: [client_id] });
    const enabled_connections = [{ connection_id: connection.id }];
    organization = (await made('POST', '/organizations', { name: 'acme', enabled_connections })).id;
    const body = { connection: 'users', email: 'ada@example.test', password: PASSWORD };
    user = (await made('POST', '/users', body)).user_id;
    await managed(server, 'POST', `/organizations/${organization}/members`, { members: [user] });
  });
  afterEach(async () => {
    await crm.stop();
    await server.stop();
  });

  const made = async (method: string, path: string, body: object) => {
    const answer = await managed(server, method, path, body);
    expect(answer.status, JSON.stringify(answer.body)).to.equal(201);
    return answer.body;
  };
  /** Sends a token request, and while its action runs, something else. */
  const during = async (parameters: Record<string, string>, meanwhile: () => Promise<{ status: number }>) => {
    const request = token(createAgent(server), { ...credentials, audience: API, ...parameters });
    await until(() => waiting.length === 1);
    expect((await meanwhile()).status).to.equal(204);
    waiting[0]?.end();
    return request;
  };
  const logIn = () => ({
    grant_type: 'password',
    username: 'ada@example.test',
    password: PASSWORD,
    scope: 'openid offline_access read:orders',
    organization,
  });
  const stored = async (model: string) =>
    (await server.store.collection('artifacts').list({ limit: 1000 })).records.filter(
      (one) => one.model === model && one.payload.clientId === credentials.client_id,
    );

  it('gets tokens if nothing changes', async () => {
    const answer = await during(logIn(), async () => ({ status: 204 }));
    expect(answer.status, answer.text).to.equal(200);
    expect(answer.json()).to.include.keys('refresh_token');
  });

  it('gets no tokens of an organization that the user was removed from', async () => {
    const path = `/organizations/${organization}/members`;
    const answer = await during(logIn(), () => managed(server, 'DELETE', path, { members: [user] }));
    expect(answer.status, answer.text).to.equal(403);
    expect(await stored('RefreshToken')).to.deep.equal([]);
  });

  it('gets no tokens of a deleted application', async () => {
    const path = `/clients/${credentials.client_id}`;
    const answer = await during(logIn(), () => managed(server, 'DELETE', path));
    expect(answer.status, answer.text).to.equal(401);
    expect(await stored('RefreshToken')).to.deep.equal([]);
  });

  it('gets no token by client_credentials for a deleted client grant, nor for a deleted application', async () => {
    const request = { grant_type: 'client_credentials' };
    const { body: grants } = await managed(
      server,
      'GET',
      `/client-grants?client_id=${credentials.client_id}`,
    );
    const ungranted = await during(request, () =>
      managed(server, 'DELETE', `/client-grants/${grants[0].id}`),
    );
    expect(ungranted.status, ungranted.text).to.equal(403);
    waiting = [];
    await made('POST', '/client-grants', {
      client_id: credentials.client_id,
      audience: API,
      scope: ['read:orders'],
    });
    const path = `/clients/${credentials.client_id}`;
    const deleted = await during(request, () => managed(server, 'DELETE', path));
    expect(deleted.status, deleted.text).to.equal(401);
  });
});
