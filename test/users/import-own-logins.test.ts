// Imports that update an account whose creator can log in without its password.
import bcrypt from 'bcryptjs';
import { expect } from 'chai';
import { systemRandom } from '../../src/runtime/secrets.ts';
import { readEntry } from '../../src/users/transfer/entry.ts';
import { importUsers } from '../../src/users/transfer/import.ts';
import { createAgent } from '../support/agent.ts';
import { databaseUser } from '../support/database-user.ts';
import { tenant, token } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { softwareKey } from '../support/software-key.ts';
import { actionsAt } from '../support/tenant.ts';

const GRANT = 'urn:okta:params:oauth:grant-type:webauthn';
const ORIGIN = 'https://app.example.test';
const CODE = `exports.onExecutePostLogin = async (event, api) => {
  if (!event.user.email_verified) api.access.deny('Verify your address first.');
};`;

describe('an import that would verify an account', () => {
  let server: TestServer;
  let hash: string;
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
        ...actionsAt('post-login', { Verified: CODE }),
      },
    });
    hash = await bcrypt.hash('Imported-Horse-1', 4);
  });
  after(() => server.stop());

  const importing = async (user: object) => {
    const read = readEntry({ ...user, email_verified: true }, 'auth0');
    if (!('entry' in read)) throw new Error(JSON.stringify(read.errors));
    const { store } = server;
    const deps = { store, clock: Date.now, random: systemRandom, endBlocked: async () => undefined };
    const options = { connection: 'keys', upsert: true, unique: ['email'], required: [] } as const;
    const rules = { ...options, readsAsAddress: () => false };
    expect(await importUsers(deps, rules, [{ entry: read.entry }], () => [])).to.include({ updated: 1 });
  };
  const begin = async (path: string, more: object) => {
    const begun = await createAgent(server).request(path, {
      json: { client_id: 'app', realm: 'keys', ...more },
    });
    expect(begun.status, begun.text).to.equal(200);
    return begun.json() as { auth_session: string; authn_params_public_key: never };
  };
  const redeem = (auth_session: string, response: object) =>
    token(createAgent(server), {
      grant_type: GRANT,
      client_id: 'app',
      auth_session,
      authn_response: JSON.stringify(response),
    });
  const withHash = () => ({ custom_password_hash: { algorithm: 'bcrypt', hash: { value: hash } } });

  for (const [name, proofs] of Object.entries({ 'a password': withHash, 'no password': () => ({}) }))
    it(`leaves it unverified if a stranger has a passkey there; the record has ${name}`, async () => {
      const email = `owner-${name.replace(' ', '-')}@example.test`;
      const key = softwareKey();
      const signUp = await begin('/passkey/register', { user_profile: { email } });
      const denied = await redeem(signUp.auth_session, key.create(signUp.authn_params_public_key, ORIGIN));
      expect(denied.status, denied.text).to.equal(403);
      await importing({ email, ...proofs() });
      const [user] = await server.users.withEmail(email);
      expect(user).to.include({ email_verified: false, logins_count: 0 });
      const login = await begin('/passkey/challenge', {});
      const again = await redeem(login.auth_session, key.get(login.authn_params_public_key, ORIGIN));
      expect(again.status, again.text).to.equal(403);
    });

  it('leaves it unverified if a stranger has verified a phone number there, unless the record has a number', async () => {
    const phones = { stays: '+15005550101', replaced: '+15005550102' };
    for (const [name, phone_number] of Object.entries(phones)) {
      const email = `phone-${name}@example.test`;
      const identity = { connection: 'keys', email, phone_number };
      const made = await server.users.create(
        databaseUser({ ...identity, profile: { phone_verified: true } }),
      );
      if (!('user' in made)) throw new Error('not created');
      await importing({ email, ...withHash(), ...(name === 'replaced' && { phone_number: '+15005550103' }) });
      expect(await server.users.get(made.user.id)).to.include({ email_verified: name === 'replaced' });
    }
  });
});
