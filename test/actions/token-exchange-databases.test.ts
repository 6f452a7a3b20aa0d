// Token exchanges whose action names users of custom databases: the database is asked for the owner of the address,
// and creates a new user with the id that the action names.
import bcrypt from 'bcryptjs';
import { expect } from 'chai';
import { tenant as base } from '../factors/tenant.ts';
import { startManaged } from '../management/support.ts';
import { createAgent } from '../support/agent.ts';
import { payload } from '../support/flows.ts';
import {
  elsewhereOptions,
  type LegacyDatabase,
  movingOptions,
  startLegacyDatabase,
} from '../support/legacy-database.ts';
import type { TestServer } from '../support/server.ts';
import { eventsOf, managed } from './support.ts';

const TYPE = 'urn:acme:legacy-token';
/** Creates a user with the id that it is given, and hashes any password. */
const CREATE = `async function create(user, callback) {
  const { password, user_id: id, ...said } = user;
  const hash = require('bcrypt').hashSync(password, 4);
  const response = await fetch(configuration.URL + '/users', {
    method: 'POST',
    headers: { 'x-api-key': configuration.KEY, 'content-type': 'application/json' },
    body: JSON.stringify({ ...said, id, hash }),
  });
  callback(response.ok ? null : new Error('status ' + response.status));
}`;
const { guardianPolicies: _everybody, ...rest } = base;

describe('token exchanges for users of a custom database', () => {
  let legacy: LegacyDatabase;
  let server: TestServer;
  before(async () => {
    legacy = await startLegacyDatabase();
    const database = (name: string, options: object) => ({ name, enabled_clients: ['web'], options });
    server = await startManaged({
      ...rest,
      clients: rest.clients.map((client) =>
        client.client_id === 'web'
          ? { ...client, token_exchange: { allow_any_profile_of_type: ['custom_authentication'] } }
          : client,
      ),
      databases: [
        ...rest.databases,
        database('kept', elsewhereOptions(legacy, { create: CREATE })),
        database('renaming', elsewhereOptions(legacy)),
        database('blind', elsewhereOptions(legacy, { create: CREATE, get_user: null })),
        database('moving', movingOptions(legacy)),
      ],
      actions: [
        {
          name: 'judge',
          code: `exports.onExecuteCustomTokenExchange = async (event, api) => {
            const { connection, user, creationBehavior } = JSON.parse(event.transaction.subject_token);
            api.authentication.setUserByConnection(connection, user, { creationBehavior, updateBehavior: 'none' });
          };`,
          supported_triggers: [{ id: 'custom-token-exchange', version: 'v1' }],
          deployed: true,
        },
      ],
      tokenExchangeProfiles: [
        { name: 'Legacy', subject_token_type: TYPE, action: 'judge', type: 'custom_authentication' },
      ],
    });
  });
  after(async () => {
    await server?.stop();
    await legacy?.stop();
  });

  let people = 0;
  const address = () => `exchanged-${++people}@example.test`;
  const exchange = async (connection: string, user: object, creationBehavior = 'create_if_not_exists') => {
    const answer = await createAgent(server).request('/oauth/token', {
      json: {
        grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
        client_id: 'web',
        client_secret: 'web-secret',
        subject_token: JSON.stringify({ connection, user, creationBehavior }),
        subject_token_type: TYPE,
        scope: 'openid profile email',
      },
    });
    return { status: answer.status, body: answer.json() };
  };
  const REFUSED = { error: 'invalid_request', error_description: 'The user does not exist.' };
  const failures = async () =>
    (await eventsOf(server, 'f')).map(({ description = '' }) => description).join('\n');

  for (const connection of ['kept', 'moving'])
    it(`log in a user whom the database ${connection} has, even where users may not be created`, async () => {
      const { id, email, name } = legacy.add(address(), 'old');
      const { status, body } = await exchange(
        connection,
        { user_id: String(id), email, name: 'Else' },
        'none',
      );
      expect(status, JSON.stringify(body)).to.equal(200);
      // From the database, not from the token.
      expect(payload(body.id_token)).to.include({ sub: `auth0|${id}`, email, name, email_verified: true });
      expect((await exchange(connection, { user_id: String(id), email })).status).to.equal(200);
    });

  for (const connection of ['kept', 'renaming', 'moving'])
    it(`log in nobody with an address that belongs to another user of ${connection}`, async () => {
      const victim = legacy.add(address(), 'old');
      const asked = await exchange(connection, { user_id: 'thief', email: victim.email });
      expect(asked.body).to.deep.equal(REFUSED);
      expect(await failures()).to.contain(`the id ${victim.id} or its address is another user's`);
      expect(await server.users.get(`auth0|${victim.id}`)).to.equal(undefined);
      expect(await server.users.get('auth0|thief')).to.equal(undefined);
    });

  it('create a new user there, with a password that nobody knows', async () => {
    const email = address();
    const user = { user_id: 'made-1', email, name: 'Made' };
    expect((await exchange('kept', user, 'none')).body).to.deep.equal(REFUSED);
    expect(legacy.users.has(email)).to.equal(false);
    const { status, body } = await exchange('kept', user);
    expect(status, JSON.stringify(body)).to.equal(200);
    expect(payload(body.id_token)).to.include({ sub: 'auth0|made-1', email });
    expect(legacy.users.get(email)).to.include({ id: 'made-1' });
    const { hash = '' } = legacy.users.get(email) ?? {};
    for (const password of ['', 'undefined', 'null'])
      expect(bcrypt.compareSync(password, hash), password).to.equal(false);
    // The user is stored here by now, so the database need not be asked.
    expect((await exchange('kept', user)).status).to.equal(200);
    expect(legacy.writes.filter(([what]) => what === 'POST /users')).to.have.length(1);
  });

  it('create a new user here, where users are migrated from the database', async () => {
    const email = address();
    const { status, body } = await exchange('moving', { user_id: 'here-1', email });
    expect(status, JSON.stringify(body)).to.equal(200);
    expect(payload(body.id_token)).to.include({ sub: 'auth0|here-1', email, email_verified: false });
    expect(legacy.users.has(email)).to.equal(false);
  });

  it('log in nobody whom the script created with another id', async () => {
    const email = address();
    expect((await exchange('renaming', { user_id: 'wanted', email })).body).to.deep.equal(REFUSED);
    expect(await failures()).to.contain('it made wanted under the id');
    expect(await server.users.get('auth0|wanted')).to.equal(undefined);
  });

  it('are refused where the database cannot be asked for existing users', async () => {
    const blind = await exchange('blind', { user_id: 'b-1', email: address() });
    expect([blind.status, blind.body.error]).to.deep.equal([400, 'invalid_request']);
    const nameless = await exchange('kept', { user_id: 'b-2' });
    expect([nameless.status, nameless.body.error]).to.deep.equal([400, 'invalid_request']);
    legacy.misbehave = (response) => response.writeHead(500).end();
    try {
      const down = await exchange('kept', { user_id: 'b-3', email: address() });
      expect([down.status, down.body.error]).to.deep.equal([503, 'temporarily_unavailable']);
    } finally {
      legacy.misbehave = undefined;
    }
  });

  it('are refused by an action of pre-user-registration', async () => {
    const action = await managed(server, 'POST', '/actions/actions', {
      name: 'gate',
      code: `exports.onExecutePreUserRegistration = async (event, api) => api.access.deny('no', 'Not here.');`,
      supported_triggers: [{ id: 'pre-user-registration', version: 'v2' }],
    });
    await managed(server, 'POST', `/actions/actions/${action.body.id}/deploy`);
    const path = '/actions/triggers/pre-user-registration/bindings';
    await managed(server, 'PATCH', path, {
      bindings: [{ ref: { type: 'action_id', value: action.body.id } }],
    });
    const email = address();
    const { status } = await exchange('kept', { user_id: 'gated', email });
    await managed(server, 'PATCH', path, { bindings: [] });
    expect(status).to.equal(403);
    expect(legacy.users.has(email)).to.equal(false);
  });
});
