// The sign-up with a passkey stores the account and the passkey together.
import { expect } from 'chai';
import { createAgent } from '../../support/agent.ts';
import { tenant, token } from '../../support/flows.ts';
import { startServer, type TestServer } from '../../support/server.ts';
import { softwareKey } from '../../support/software-key.ts';
import { actionsAt } from '../../support/tenant.ts';

const GRANT = 'urn:okta:params:oauth:grant-type:webauthn';
const ORIGIN = 'https://app.example.test';
const CODE = 'exports.onExecutePostUserRegistration = async () => {};';

describe('a sign-up with a passkey', () => {
  let server: TestServer;
  before(async () => {
    const app = {
      client_id: 'app',
      name: 'App',
      app_type: 'spa',
      token_endpoint_auth_method: 'none',
      grant_types: [GRANT],
      web_origins: [ORIGIN],
    };
    const options = { authentication_methods: { passkey: { enabled: true } } };
    server = await startServer({
      tenant: {
        ...tenant,
        clients: [...tenant.clients, app],
        databases: [{ name: 'keys', enabled_clients: ['app'], options }, ...tenant.databases],
        ...actionsAt('post-user-registration', { Welcome: CODE }),
      },
    });
  });
  after(() => server.stop());

  const signUp = async (email: string, key: ReturnType<typeof softwareKey>) => {
    const json = { client_id: 'app', realm: 'keys', user_profile: { email } };
    const begun = await createAgent(server).request('/passkey/register', { json });
    expect(begun.status, begun.text).to.equal(200);
    const { auth_session, authn_params_public_key: options } = begun.json();
    return token(createAgent(server), {
      grant_type: GRANT,
      client_id: 'app',
      auth_session,
      authn_response: JSON.stringify(key.create(options, ORIGIN)),
    });
  };

  it('stores the account and its passkey in one commit, beside an action after registration', async () => {
    const { store } = server;
    const { batch } = store;
    const commits: string[][] = [];
    Object.assign(store, {
      batch: (writes: Parameters<typeof batch>[0]) => {
        commits.push(writes.flatMap((write) => ('insert' in write ? [write.collection] : [])));
        return batch.call(store, writes);
      },
    });
    try {
      expect((await signUp('at-once@example.test', softwareKey())).status).to.equal(200);
    } finally {
      Object.assign(store, { batch });
    }
    expect(commits.filter((inserted) => inserted.includes('users'))).to.have.length(1);
    expect(commits.find((inserted) => inserted.includes('users'))).to.include('passkeys');
  });

  it('creates no account for a credential that is already registered', async () => {
    const key = softwareKey();
    expect((await signUp('first@example.test', key)).status).to.equal(200);
    const second = await signUp('second@example.test', key);
    expect(second.status, second.text).to.equal(400);
    expect(second.json().error).to.equal('invalid_request');
    expect(await server.users.withEmail('second@example.test')).to.deep.equal([]);
  });
});
