// Refresh tokens that yield tokens for another API, where the application's policies allow it.
import { expect } from 'chai';
import { createAgent } from '../support/agent.ts';
import { API, payload, tenant, token, USER } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';

const OTHER = 'https://other.example.test/';

const policies = [
  { audience: OTHER, scope: ['read:orders', 'no:such'] },
  { audience: 'guarded-api', scope: ['look'] },
  { audience: 'offline-guarded', scope: ['look', 'admin'] },
  { audience: 'https://gone.test/', scope: ['x'] },
];

const ownTenant = {
  ...tenant,
  clients: [
    ...tenant.clients,
    client('several', 'rotating'),
    client('still', 'non-rotating'),
    {
      ...client('third-several', 'rotating'),
      is_first_party: false,
      third_party_security_mode: 'permissive',
    },
  ],
  databases: [
    {
      name: 'users',
      enabled_clients: ['several', 'still', 'web', 'leeway', 'third-several'],
      options: { passwordPolicy: 'good' },
    },
    tenant.databases[1],
  ],
  resourceServers: [
    ...tenant.resourceServers,
    {
      name: 'Other API',
      identifier: OTHER,
      scopes: [{ value: 'read:orders' }, { value: 'write:orders' }],
      allow_offline_access: true,
    },
    {
      name: 'Guarded API with refresh',
      identifier: 'offline-guarded',
      scopes: [{ value: 'admin' }, { value: 'look' }],
      enforce_policies: true,
      allow_offline_access: true,
    },
  ],
  users: tenant.users.map((user) =>
    user.email === USER.email
      ? {
          ...user,
          permissions: [{ resource_server_identifier: 'offline-guarded', permission_name: 'look' }],
        }
      : user,
  ),
};

function client(id: string, rotation_type: string) {
  return {
    client_id: id,
    name: id,
    app_type: 'regular_web',
    client_secret: `${id}-secret`,
    grant_types: ['password', 'refresh_token'],
    refresh_token: { rotation_type, expiration_type: 'expiring', policies },
  };
}

describe('multi-resource refresh tokens', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer({ tenant: ownTenant });
  });
  after(() => server.stop());

  const begin = async (id = 'several', over: Record<string, string | undefined> = {}) =>
    (
      await token(createAgent(server), {
        grant_type: 'password',
        client_id: id,
        client_secret: `${id}-secret`,
        username: USER.email,
        password: USER.password,
        scope: 'openid email offline_access read:things',
        audience: API,
        ...over,
      })
    ).json();
  const refresh = (refresh_token: string, fields: Record<string, string> = {}, id = 'several') =>
    token(createAgent(server), {
      grant_type: 'refresh_token',
      client_id: id,
      client_secret: `${id}-secret`,
      refresh_token,
      ...fields,
    });

  for (const id of ['several', 'still'])
    it(`yield a token for another API, and later one for their own again (${id})`, async () => {
      const first = await begin(id);
      const other = (await refresh(first.refresh_token, { audience: OTHER }, id)).json();
      const claims = payload(other.access_token);
      expect([claims.aud].flat()).to.include(OTHER).and.not.to.include(API);
      expect(claims.scope.split(' ')).to.have.members(['openid', 'email', 'offline_access', 'read:orders']);
      expect(other.id_token).to.be.a('string');
      const back = (await refresh(other.refresh_token ?? first.refresh_token, {}, id)).json();
      expect([payload(back.access_token).aud].flat()).to.include(API);
      expect(payload(back.access_token).scope).to.contain('read:things').and.not.to.contain('orders');
    });

  it('yield only scopes that policy, API and the user’s permissions allow', async () => {
    let { refresh_token } = await begin();
    const scopes = async (fields: Record<string, string>) => {
      const answer = (await refresh(refresh_token, fields)).json();
      refresh_token = answer.refresh_token;
      return payload(answer.access_token).scope ?? '';
    };
    expect(await scopes({ audience: OTHER, scope: 'openid read:orders write:orders' })).to.equal(
      'openid read:orders',
    );
    expect(await scopes({ audience: OTHER, scope: 'write:orders' })).to.equal('');
    expect(await scopes({ resource: OTHER, scope: 'read:things read:orders' })).to.equal('read:orders');
    expect(await scopes({ audience: 'offline-guarded', scope: 'look admin' })).to.equal('look');
  });

  it('are refused, and not used up, for an API without a policy or without offline access', async () => {
    const { refresh_token } = await begin();
    for (const audience of ['hs256-api', 'guarded-api', 'https://gone.test/', 'https://nowhere.test/'])
      expect((await refresh(refresh_token, { audience })).json(), audience).to.include({
        error: 'invalid_target',
      });
    expect((await refresh(refresh_token, { scope: 'openid write:things' })).json()).to.include({
      error: 'invalid_scope',
    });
    expect((await refresh(refresh_token, { audience: API })).status).to.equal(200);
  });

  it('ignore `audience` and refuse `resource` when the application has no policies', async () => {
    const { refresh_token } = await begin('leeway');
    const answer = (await refresh(refresh_token, { audience: OTHER }, 'leeway')).json();
    expect([payload(answer.access_token).aud].flat()).to.include(API);
    const other = await refresh(answer.refresh_token, { resource: OTHER }, 'leeway');
    expect(other.json()).to.include({ error: 'invalid_target' });
  });
});
