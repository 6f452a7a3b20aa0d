// Identities: migrated from a store in which they were part of their users, and created with new users.
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { expect } from 'chai';
import type { Store, Write } from '../../src/store/contract.ts';
import { migrate } from '../../src/store/migrate.ts';
import { openStore } from '../../src/store/open.ts';
import { createAgent } from '../support/agent.ts';
import { databaseUser } from '../support/database-user.ts';
import { payload } from '../support/flows.ts';
import { nextMessageTo } from '../support/inbox.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { describeInFiles } from '../support/store.ts';

/** The store of a release that stored identities in the records of their users. */
const OLD = fileURLToPath(new URL('before-identities', import.meta.url));
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
const application = { client_id: 'web', client_secret: 'a-secret-of-the-web-application', scope: 'openid' };

describe('identities', () => {
  describeInFiles('of a store of an older release', () => {
    let dataDir: string;
    beforeEach(async () => {
      dataDir = await mkdtemp(join(tmpdir(), 'gatehouse-identities-'));
      await mkdir(join(dataDir, 'store'));
      for (const name of await readdir(OLD)) {
        const content = gunzipSync(await readFile(join(OLD, name)));
        await writeFile(join(dataDir, 'store', name.replace('.gz', '')), content);
      }
    });
    afterEach(() => rm(dataDir, { recursive: true }));

    const found = async (store: Store) => {
      const { records } = await store.collection('identities').list();
      return records.map(({ id, user_id, email, username, phone_number, unique }) => {
        const addresses = [email, username, phone_number].filter((one) => one !== undefined);
        expect(addresses).to.have.length(unique.length);
        return [id.replace(/[0-9a-f]{24}/, '…'), user_id.split('|')[0], ...addresses];
      });
    };
    const ALL = [
      ['corporate|employee|7', 'auth0'],
      ['email|…', 'email', 'eve@example.test'],
      ['sms|…', 'sms', '+491701234567'],
      ['users|…', 'auth0', 'ada@example.test', 'ada'],
      ['users|…', 'auth0', 'bob@example.test', 'bob'],
    ];

    it('are migrated to records of their own, and users log in as before', async () => {
      const server = await startServer({ tenant, dataDir });
      try {
        expect(await found(server.store)).to.deep.equal(ALL);
        const { records } = await server.store.collection('users').list();
        for (const user of records) expect(user).to.not.have.property('identities');
        const agent = createAgent(server);
        const token = async (fields: object) =>
          (await agent.request('/oauth/token', { json: { ...application, ...fields } })).json();
        for (const username of ['ada@example.test', 'ADA', 'bob']) {
          const password = username === 'bob' ? 'Battery-staple-1843' : 'Correct-horse-1843';
          const { id_token } = await token({ grant_type: 'password', username, password });
          expect(payload(id_token).sub).to.match(/^auth0\|/);
        }
        const email = 'eve@example.test';
        const client = { client_id: 'web', client_secret: application.client_secret };
        await agent.request('/passwordless/start', {
          json: { ...client, connection: 'email', email, send: 'code' },
        });
        const { code } = await nextMessageTo(server, email);
        const grant_type = 'http://auth0.com/oauth/grant-type/passwordless/otp';
        const { id_token } = await token({ grant_type, realm: 'email', username: email, otp: code });
        expect(payload(id_token).sub).to.equal(records.find((user) => user.email === email)?.id);
        expect(await server.store.collection('users').count()).to.equal(4);
      } finally {
        await server.stop();
      }
    });

    it('are migrated once, also if a start was interrupted during the migration', async () => {
      const clock = () => 1_800_000_000_000;
      const store = await openStore({ dataDir, clock });
      const all = await found(store);
      // The state during the migration: one user in the old form, and the migration not yet recorded as done.
      const [user] = (await store.collection('users').list()).records;
      const identity = (await store.collection('identities').findBy('user', user?.id ?? ''))[0];
      const { provider, connection, upstream_id: user_id } = identity ?? {};
      const old = { ...user, identities: [{ provider, connection, user_id, isSocial: false }] };
      await store.batch([
        { collection: 'users', put: old },
        { collection: 'identities', delete: identity?.id },
        { collection: 'migrations', delete: 'identities' },
      ] as Write[]);
      const cutShort = {
        ...store,
        batch: async () => {
          throw new Error('the power fails');
        },
      };
      const refusal = await migrate(cutShort).catch((error: Error) => error.message);
      expect(refusal).to.equal('the power fails');
      await migrate(store);
      expect(await found(store)).to.deep.equal(all);
      await migrate(cutShort);
      await store.close();
      const again = await openStore({ dataDir, clock });
      expect(await found(again)).to.deep.equal(all);
      await again.close();
    });
  });

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
