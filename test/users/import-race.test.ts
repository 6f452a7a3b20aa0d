// Imports that update existing users, while those users log in, reset their passwords, or are linked.
import bcrypt from 'bcryptjs';
import { expect } from 'chai';
import { systemRandom } from '../../src/runtime/secrets.ts';
import type { Store } from '../../src/store/contract.ts';
import { readEntry } from '../../src/users/transfer/entry.ts';
import { importUsers } from '../../src/users/transfer/import.ts';
import { createAgent } from '../support/agent.ts';
import { databaseUser } from '../support/database-user.ts';
import { startServer, type TestServer } from '../support/server.ts';

const IMPORTED = 'Imported-Horse-1';
const CHOSEN = 'Chosen-Horse-2';
const client = { client_id: 'web', client_secret: 'a-secret-of-the-web-application' };
const tenant = {
  tenant: { default_directory: 'users' },
  clients: [{ name: 'Web', ...client, grant_types: ['password'] }],
  databases: ['users', 'others'].map((name) => ({ name, enabled_clients: ['web'] })),
};

describe('an import that updates existing users', () => {
  let server: TestServer;
  let hash: string;
  let count = 0;

  before(async () => {
    server = await startServer({ tenant });
    hash = await bcrypt.hash(IMPORTED, 4);
  });
  after(() => server.stop());

  const someone = async (connection = 'users') => {
    const email = `import-race-${count++}@example.test`;
    const created = await server.users.create({
      ...databaseUser({ connection, email }),
      password: 'First-Horse-0',
    });
    if (!('user' in created)) throw new Error('not created');
    return { email, id: created.user.id };
  };
  const importing = (store: Store, email: string, more: object = {}) => {
    const custom_password_hash = { algorithm: 'bcrypt', hash: { value: hash } };
    const read = readEntry({ email, custom_password_hash, ...more }, 'auth0');
    if (!('entry' in read)) throw new Error(JSON.stringify(read.errors));
    const deps = { store, clock: Date.now, random: systemRandom, endBlocked: async () => undefined };
    const options = { connection: 'users', upsert: true, unique: ['email'], required: [] } as const;
    return importUsers(deps, { ...options, readsAsAddress: () => false }, [{ entry: read.entry }], () => []);
  };
  /** Returns the server's store, which runs `meanwhile` after the import has read a user. */
  const afterRead = (meanwhile: () => Promise<unknown>): Store => {
    let isDone = false;
    const collection: Store['collection'] = (name) => {
      const all = server.store.collection(name);
      if (String(name) !== 'users') return all;
      const get: typeof all.get = async (id) => {
        const found = await all.get(id);
        if (!isDone) await meanwhile();
        isDone = true;
        return found;
      };
      return new Proxy(all, {
        get: (target, member) => (member === 'get' ? get : Reflect.get(target, member).bind(target)),
      });
    };
    return new Proxy(server.store, {
      get: (target, member) => {
        if (member === 'collection') return collection;
        const value = Reflect.get(target, member);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
  };
  const logIn = async (username: string, password: string) => {
    const json = { ...client, grant_type: 'password', scope: 'openid', username, password };
    return (await createAgent(server).request('/oauth/token', { json })).status;
  };

  it('replaces the password of a user who has never used it', async () => {
    const { email } = await someone();
    expect(await importing(server.store, email)).to.include({ updated: 1 });
    expect(await logIn(email, 'First-Horse-0')).to.equal(403);
    expect(await logIn(email, IMPORTED)).to.equal(200);
  });

  it('keeps the password of a user who resets it while the import runs', async () => {
    const { email, id } = await someone();
    const store = afterRead(() => server.users.setPassword(id, CHOSEN));
    expect(await importing(store, email, { given_name: 'Ada' })).to.include({ updated: 1 });
    expect(await server.users.get(id)).to.include({ given_name: 'Ada' });
    expect(await logIn(email, IMPORTED)).to.equal(403);
    expect(await logIn(email, CHOSEN)).to.equal(200);
  });

  it('keeps the password of a user who logs in while the import runs', async () => {
    const { email } = await someone();
    const store = afterRead(() => logIn(email, 'First-Horse-0'));
    expect(await importing(store, email)).to.include({ updated: 1 });
    expect(await logIn(email, IMPORTED)).to.equal(403);
    expect(await logIn(email, 'First-Horse-0')).to.equal(200);
  });

  it('leaves one of two passwords when a reset and an import are concurrent', async () => {
    for (let n = 0; n < 10; n += 1) {
      const { email, id } = await someone();
      await Promise.all([server.users.setPassword(id, CHOSEN), importing(server.store, email)]);
      expect(await logIn(email, CHOSEN)).to.equal(200);
    }
  });

  it('does not change the user whom the identity with the address was linked to', async () => {
    const [{ email, id }, main] = [await someone(), await someone('others')];
    expect(await server.users.link(main.id, id)).to.equal(true);
    const outcome = await importing(server.store, email, { email_verified: true, given_name: 'Eve' });
    expect(outcome).to.include({ updated: 0 });
    expect(outcome.failed[0]?.errors[0]?.code).to.equal('CONFLICT_EMAIL');
    expect(await server.users.get(main.id))
      .to.include({ email_verified: false })
      .and.not.have.property('given_name');
    expect((await server.store.collection('credentials').get(main.id))?.passwordHash).to.match(/^\$argon2/);
  });

  describe('with a verified address', () => {
    const PRE = 'Hijackers-Horse-3';
    const signUp = async () => {
      const email = `import-race-${count++}@example.test`;
      const json = { client_id: client.client_id, connection: 'users', email, password: PRE };
      const made = await createAgent(server).request('/dbconnections/signup', { json });
      expect(made.status, made.text).to.equal(200);
      return { email, id: `auth0|${made.json()._id}` };
    };
    const stored = (id: string) => server.users.get(id);
    const verified = { email_verified: true, given_name: 'Ada' };
    const noHash = { custom_password_hash: undefined };

    it('does not verify an account that a stranger signed up for and uses', async () => {
      const { email, id } = await signUp();
      expect(await logIn(email, PRE)).to.equal(200);
      expect(await importing(server.store, email, verified)).to.include({ updated: 1 });
      expect(await stored(id)).to.include({ given_name: 'Ada', email_verified: false });
    });

    it('does not verify an account whose password a stranger has set and keeps', async () => {
      const { email, id } = await signUp();
      expect(await importing(server.store, email, { ...verified, ...noHash })).to.include({ updated: 1 });
      expect(await stored(id)).to.include({ given_name: 'Ada', email_verified: false });
    });

    it('does not verify an account that a stranger logs in to while the import runs', async () => {
      const { email, id } = await signUp();
      const store = afterRead(() => logIn(email, PRE));
      expect(await importing(store, email, verified)).to.include({ updated: 1 });
      expect(await stored(id)).to.include({ email_verified: false });
    });

    it('verifies an account whose unused password it replaces, and one without a password', async () => {
      const [replaced, without] = [await signUp(), await signUp()];
      expect(await importing(server.store, replaced.email, verified)).to.include({ updated: 1 });
      expect(await logIn(replaced.email, PRE)).to.equal(403);
      expect(await logIn(replaced.email, IMPORTED)).to.equal(200);
      await server.store.collection('credentials').delete(without.id);
      expect(await importing(server.store, without.email, { ...verified, ...noHash })).to.include({
        updated: 1,
      });
      for (const { id } of [replaced, without]) expect(await stored(id)).to.include({ email_verified: true });
    });

    it('verifies an account that the record names by its user_id', async () => {
      const { email, id } = await signUp();
      const named = { ...verified, ...noHash, user_id: id.slice('auth0|'.length) };
      expect(await importing(server.store, email, named)).to.include({ updated: 1 });
      expect(await stored(id)).to.include({ given_name: 'Ada', email_verified: true });
    });

    it('does not verify the address that the user has got while the import runs', async () => {
      const { email, id } = await signUp();
      await server.users.confirmEmail(id, email);
      const patch = { email: `other-${email}`, email_verified: false };
      const store = afterRead(() => server.users.update(id, patch));
      const outcome = await importing(store, email, verified);
      expect(outcome.failed[0]?.errors[0]?.code).to.equal('CONFLICT_EMAIL');
      expect(await stored(id)).to.include(patch);
    });
  });
});
