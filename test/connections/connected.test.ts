// The tokens of accounts that users have connected at an OpenID provider.
import { expect } from 'chai';
import { storeConnectedAccount } from '../../src/users/users-connected-accounts.ts';
import { createAgent } from '../support/agent.ts';
import { tenant, token, USER } from '../support/flows.ts';
import { type OpenIdProvider, signingKey, startOpenIdProvider } from '../support/openid-provider.ts';
import { startServer, type TestServer } from '../support/server.ts';

const GRANT = 'urn:auth0:params:oauth:grant-type:token-exchange:federated-connection-access-token';

describe('the token of a connected account at an OpenID provider', () => {
  let provider: OpenIdProvider;
  let server: TestServer;
  before(async () => {
    provider = await startOpenIdProvider(await signingKey('k1'));
    const drive = {
      name: 'drive',
      strategy: 'oidc',
      enabled_clients: ['web'],
      connected_accounts: { active: true },
      options: {
        type: 'back_channel',
        client_id: 'gatehouse',
        client_secret: 'upstream-secret',
        discovery_url: `${provider.url}/.well-known/openid-configuration`,
        dpop_signing_alg: 'ES256',
      },
    };
    const clients = tenant.clients.map((client) =>
      client.client_id === 'web' ? { ...client, grant_types: [...client.grant_types, GRANT] } : client,
    );
    server = await startServer({ tenant: { ...tenant, clients, connections: [drive] } });
  });
  after(async () => {
    await server?.stop();
    await provider?.stop();
  });

  it('is not given out after it has expired if its renewal returns a DPoP-bound token', async () => {
    const web = { client_id: 'web', client_secret: 'web-secret' };
    const own = await token(createAgent(server), {
      ...web,
      ...{ grant_type: 'password', username: USER.email, password: USER.password },
      scope: 'openid offline_access',
    });
    const [connection] = await server.store.collection('connections').findBy('name', 'drive');
    const user = await server.users.findInConnection({ name: 'users' }, USER.email);
    await storeConnectedAccount(
      { store: server.store, wallClock: Date.now },
      user?.id ?? '',
      connection as never,
      {
        upstreamId: 'ada',
        requestedScopes: [],
        grant: { access_token: 'the-expired-one', refresh_token: 'refresh-r', expires_at: 1 },
      },
    );
    provider.answer = { token_type: 'DPoP', id_token: undefined };
    for (let request = 0; request < 2; request++) {
      const answer = await token(createAgent(server), {
        ...web,
        grant_type: GRANT,
        connection: 'drive',
        subject_token: own.json().refresh_token,
        subject_token_type: 'urn:ietf:params:oauth:token-type:refresh_token',
      });
      expect(answer.status, answer.text).to.equal(401);
      expect(answer.json().error).to.equal('federated_connection_refresh_token_not_found');
    }
    expect(provider.seen.filter(({ form }) => form.grant_type === 'refresh_token')).to.have.length(2);
  });
});
