import { expect } from 'chai';
import { createAgent } from '../support/agent.ts';
import { databaseUser } from '../support/database-user.ts';
import { startServer, type TestServer } from '../support/server.ts';

const tenant = {
  clients: [
    {
      name: 'Web',
      client_id: 'web',
      client_secret: 'a-secret-of-the-web-application',
      grant_types: ['password', 'http://auth0.com/oauth/grant-type/passwordless/otp'],
    },
  ],
};

describe('identities', () => {
  describe('of a new store', () => {
    let server: TestServer;
    before(async () => {
      server = await startServer({
        tenant: { ...tenant, databases: [{ name: 'users', enabled_clients: ['web'] }] },
      });
    });
    after(() => server.stop());
    const counts = async () =>
      Promise.all(
        (['users', 'identities', 'credentials'] as const).map((name) =>
          server.store.collection(name).count(),
        ),
      );

    it('are created once by 50 concurrent sign-ups with one address, and nothing is left of the others', async () => {
      const agent = createAgent(server);
      const json = {
        client_id: 'web',
        connection: 'users',
        email: 'race@example.test',
        password: 'Race-Words-1',
      };
      const answers = await Promise.all(
        Array.from({ length: 50 }, () => agent.request('/dbconnections/signup', { json })),
      );
      expect(answers.filter(({ status }) => status === 200)).to.have.length(1);
      expect(await counts()).to.deep.equal([1, 1, 1]);
    });

    it('are removed with their user, which frees the address', async () => {
      const user = { connection: 'users', email: 'gone@example.test', password: 'Gone-Words-1' };
      const before = await counts();
      const creation = await server.users.create(databaseUser(user));
      if (!('user' in creation)) throw new Error('the user was not made');
      await server.users.remove(creation.user.id);
      expect(await counts()).to.deep.equal(before);
      expect(await server.users.create(databaseUser(user))).to.have.property('user');
    });

    it("follow a change of their user's address, and reject one of another user", async () => {
      const create = async (email: string) => {
        const creation = await server.users.create(
          databaseUser({ connection: 'users', email, password: 'Move-Words-1' }),
        );
        return 'user' in creation ? creation.user.id : '';
      };
      const find = async (address: string) =>
        (await server.users.findByAddress({ connection: 'users', kind: 'email', address }))?.id;
      const [one] = [await create('one@example.test'), await create('two@example.test')];
      const refused = await server.users.update(one, { email: 'two@example.test' }).catch(({ name }) => name);
      expect(refused).to.equal('UniqueKeyError');
      expect((await server.users.get(one))?.email).to.equal('one@example.test');
      await server.users.update(one, { email: 'moved@example.test' });
      expect(await find('moved@example.test')).to.equal(one);
      expect(await find('one@example.test')).to.equal(undefined);
    });

    it('of a user who was lost do not keep the address', async () => {
      const user = { connection: 'users', email: 'lost@example.test', password: 'Lost-Words-1' };
      const creation = await server.users.create(databaseUser(user));
      await server.store.collection('users').delete('user' in creation ? creation.user.id : '');
      expect(await server.users.create(databaseUser(user))).to.have.property('user');
    });
  });
});
