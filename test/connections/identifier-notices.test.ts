// What the log says once a login shows that the users of a connection are identified by a name.
import { expect } from 'chai';
import { createAgent } from '../support/agent.ts';
import { tenant as base } from '../support/flows.ts';
import { optionsFor, startProvider } from '../support/oauth2-provider.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { logInUpstream } from '../support/upstream-login.ts';
import { REALM, realmLogin } from './database/support.ts';
import { samlWorld } from './samlp/provider.ts';

const noticesOf = async ({ store }: Pick<TestServer, 'store'>, connection: string) => {
  const { records } = await store.collection('logs').list({ limit: 1000 });
  return records
    .filter((one) => one.type === 'identifier_reassignable' && one.connection === connection)
    .map(({ description }) => description);
};
const said = (name: string, is: string) =>
  `the users of ${name} are identified by ${is}, and whoever is given that of an earlier user gets the account: have the permanent id of the account sent, and say so in the options or the script`;

describe('the log of a connection whose users are identified by a name', () => {
  it('says so once where a custom database gives an address or a username as the id, and not where it gives an id', async () => {
    const database = (name: string, id: string, more: object = {}) => ({
      name,
      enabled_clients: ['web'],
      options: {
        enabledDatabaseCustomization: true,
        import_mode: false,
        customScripts: {
          login: `function (name, password, callback) { callback(null, { user_id: ${id}, email: name + '@example.test', username: name }); }`,
          get_user: 'function (name, callback) { callback(null, null); }',
        },
        ...more,
      },
    });
    const server = await startServer({
      tenant: {
        ...base,
        users: [],
        clients: base.clients.map((one) =>
          one.client_id === 'web' ? { ...one, grant_types: [...one.grant_types, REALM] } : one,
        ),
        databases: [
          ...base.databases,
          database('by-address', "name + '@example.test'"),
          database('by-name', 'name', { import_mode: true }),
          database('by-id', "'id-of-' + name"),
        ],
      },
    });
    try {
      for (const realm of ['by-address', 'by-name', 'by-id'])
        for (const username of ['ada', 'grace', 'ada'])
          expect((await realmLogin(server, { realm, username, password: 'x' })).status, realm).to.equal(200);
      expect(await noticesOf(server, 'by-address')).to.deep.equal([said('by-address', 'an e-mail address')]);
      expect(await noticesOf(server, 'by-name')).to.deep.equal([
        said('by-name', 'the username of the profile'),
      ]);
      expect(await noticesOf(server, 'by-id')).to.deep.equal([]);
    } finally {
      await server.stop();
    }
  });

  it('says so once where a SAML provider sends a NameID of a format that is a name, and not for a persistent one', async () => {
    const world = await samlWorld();
    try {
      const logIn = async (format: string, nameId: string) => {
        const agent = createAgent(world.server);
        const away = await world.away({}, agent);
        const answer = world.answer(away, { nameId, format });
        expect(await world.finish(agent, await world.post(away, answer))).to.have.property('code');
      };
      await logIn('urn:oasis:names:tc:SAML:2.0:nameid-format:persistent', 'p-1');
      expect(await noticesOf(world.server, 'acme')).to.deep.equal([]);
      for (const nameId of ['one', 'two'])
        await logIn('urn:oasis:names:tc:SAML:1.1:nameid-format:unspecified', nameId);
      await logIn('urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress', 'three@example.test');
      expect(await noticesOf(world.server, 'acme')).to.deep.equal([
        said('acme', 'a NameID of the format unspecified'),
      ]);
    } finally {
      await world.server.stop();
    }
  });

  it('says so once where the script of an oauth2 connection takes a name of the provider as the id', async () => {
    const provider = await startProvider();
    const connection = (name: string, script: string) => ({
      name,
      strategy: 'oauth2',
      enabled_clients: ['web'],
      options: optionsFor(provider, {
        scripts: { fetchUserProfile: `function (accessToken, context, callback) { ${script} }` },
      }),
    });
    const server = await startServer({
      tenant: {
        ...base,
        connections: [
          connection('named', "callback(null, { user_id: 'ada', nickname: 'Ada' });"),
          connection('numbered', "callback(null, { user_id: '4711', nickname: 'Ada' });"),
        ],
      },
    });
    try {
      for (const name of ['named', 'named', 'numbered'])
        expect(await logInUpstream(server, { connection: name })).to.have.property('code');
      expect(await noticesOf(server, 'named')).to.deep.equal([said('named', 'the nickname of the profile')]);
      expect(await noticesOf(server, 'numbered')).to.deep.equal([]);
    } finally {
      await server.stop();
      await provider.stop();
    }
  });
});
