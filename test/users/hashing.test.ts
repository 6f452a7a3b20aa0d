import bcrypt from 'bcryptjs';
import { expect } from 'chai';
import type { AuthError } from '../../src/http/errors.ts';
import { MAX_PASSWORD_LENGTH } from '../../src/records/database-options.ts';
import { systemRandom } from '../../src/runtime/secrets.ts';
import { createHasher, type Hasher } from '../../src/users/hashing.ts';
import { createUsers } from '../../src/users/users.ts';
import { createAgent } from '../support/agent.ts';
import { databaseUser } from '../support/database-user.ts';
import { tenant, token, USER } from '../support/flows.ts';
import { CHEAP, startServer, type TestServer } from '../support/server.ts';

describe('password hashes', () => {
  const hasher = createHasher();

  it('are argon2id with the documented cost, and salted', async () => {
    const [a, b] = await Promise.all([hasher.hash('same'), hasher.hash('same')]);
    expect(a).to.match(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
    expect(a).not.to.equal(b);
    expect(await hasher.verify(a, 'same')).to.deep.equal({ ok: true, stale: false });
    expect((await hasher.verify(a, 'Same')).ok).to.equal(false);
  });

  it('are the same for composed and decomposed characters', async () => {
    const hash = await hasher.hash('Zürich-Åre-1'.normalize('NFC'));
    expect((await hasher.verify(hash, 'Zürich-Åre-1'.normalize('NFD'))).ok).to.equal(true);
  });

  it('of other systems may be of what the keyboard sent, and the normal form is verified first', async () => {
    const [composed, decomposed] = ['Zürich-Åre-1'.normalize('NFC'), 'Zürich-Åre-1'.normalize('NFD')];
    const ofDecomposed = await bcrypt.hash(decomposed, 4);
    expect(await hasher.verify(ofDecomposed, decomposed)).to.deep.equal({ ok: true, stale: true });
    expect((await hasher.verify(ofDecomposed, composed)).ok).to.equal(false);
    const ofComposed = await bcrypt.hash(composed, 4);
    expect((await hasher.verify(ofComposed, decomposed)).ok).to.equal(true);
    expect((await hasher.verify(ofComposed, `${decomposed}!`)).ok).to.equal(false);
    const tooLong = decomposed.padEnd(MAX_PASSWORD_LENGTH - 1, 'x');
    expect((await hasher.verify(await bcrypt.hash(tooLong, 4), tooLong)).ok).to.equal(false);
  });

  it('take as long for a decomposed password whether the user has one of ours, another, or none', async () => {
    let computed = 0;
    const counted = createHasher();
    counted.measure?.({ hashed: () => void computed++ });
    const decomposed = 'Zürich-Åre-1'.normalize('NFD');
    const costs: number[] = [];
    for (const verify of [
      async () => counted.verifyNothing(decomposed),
      async () => counted.verify(await hasher.hash('other'), decomposed),
      async () => counted.verify(await bcrypt.hash('other', 4), decomposed),
    ]) {
      const ownHash = await hasher.hash('warm');
      await counted.verify(ownHash, 'warm');
      const began = process.cpuUsage();
      for (let n = 0; n < 5; n++) await verify();
      const { user, system } = process.cpuUsage(began);
      costs.push(user + system);
    }
    // Each waits in the queue once, as one verification.
    expect(computed).to.equal(3 + 15);
    expect(Math.min(...costs) * 3).to.be.above(Math.max(...costs));
  });

  it('reject a password that is too long without waiting in the queue', async () => {
    const none = createHasher({ concurrency: 0, maxQueued: 0 });
    const long = 'y'.repeat(MAX_PASSWORD_LENGTH + 1);
    expect((await none.verify(await hasher.hash('x'), long)).ok).to.equal(false);
    await none.verifyNothing(long);
    const refused = await none.verifyNothing('short').catch((error: AuthError) => error);
    expect(refused).to.include({ status: 503 });
  });

  it('verify bcrypt, and call it stale', async () => {
    const imported = await bcrypt.hash('imported', 4);
    expect(await hasher.verify(imported, 'imported')).to.deep.equal({ ok: true, stale: true });
    expect((await hasher.verify(imported, 'wrong')).ok).to.equal(false);
  });

  it('wait in a bounded queue, beyond which the server returns that it is busy', async () => {
    const small = createHasher({ concurrency: 1, maxQueued: 2 });
    const results = await Promise.allSettled(Array.from({ length: 5 }, () => small.hash('x')));
    const refused = results.filter((r) => r.status === 'rejected').map((r) => r.reason as AuthError);
    expect(refused).to.have.length(2);
    for (const error of refused) expect(error).to.include({ status: 503, error: 'temporarily_unavailable' });
    expect(await small.hash('after')).to.be.a('string');
  });
});

describe('verification of a password', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer({ tenant });
  });
  after(() => server.stop());
  const connection = { name: 'users' };

  /** A hasher that counts the computed hashes. */
  const counting = () => {
    const real = createHasher({ cost: CHEAP });
    const counts = { computed: 0 };
    const hasher: Hasher = {
      hash: (password) => {
        counts.computed++;
        return real.hash(password);
      },
      verify: (hash, password) => {
        counts.computed++;
        return real.verify(hash, password);
      },
      verifyNothing: (password) => {
        counts.computed++;
        return real.verifyNothing(password);
      },
    };
    return {
      counts,
      users: createUsers({ store: server.store, hasher, clock: Date.now, random: systemRandom }),
    };
  };

  it('computes one hash for an unknown user, a wrong password and the right one alike', async () => {
    for (const [identifier, password] of [
      ['nobody@example.test', 'x'],
      [USER.email, 'wrong'],
      [USER.email, USER.password],
      ['no address at all', 'x'],
    ] as const) {
      const { counts, users } = counting();
      const user = await users.findInConnection(connection, identifier);
      await users.verifyPassword(user?.id, password);
      expect(counts.computed, identifier).to.equal(1);
    }
  });

  it('computes the hash of a sign-up before it finds that the address is taken, so that the time reveals nothing', async () => {
    const { counts, users } = counting();
    const taken = await users.create(
      databaseUser({ connection: 'users', email: USER.email, password: 'Whatever-1' }),
    );
    expect(taken).to.deep.equal({ taken: 'email' });
    expect(counts.computed).to.equal(1);
  });

  it('replaces a bcrypt hash by argon2id at the first login', async () => {
    const user = await server.users.findInConnection(connection, USER.email);
    const credentials = server.store.collection('credentials');
    const passwordHash = await bcrypt.hash('Imported-Horse-1', 4);
    await credentials.update(user!.id, (current) => ({ ...structuredClone(current), passwordHash }) as never);
    const answer = await token(createAgent(server), {
      grant_type: 'password',
      client_id: 'web',
      client_secret: 'web-secret',
      username: USER.email,
      password: 'Imported-Horse-1',
    });
    expect(answer.status).to.equal(200);
    expect((await credentials.get(user!.id))?.passwordHash).to.match(/^\$argon2id\$/);
    expect(await server.users.verifyPassword(user!.id, 'Imported-Horse-1')).not.to.equal(undefined);
  });

  it('replaces an imported hash of decomposed letters at the first login, and then takes the password of any keyboard', async () => {
    const user = await server.users.findInConnection(connection, USER.email);
    const credentials = server.store.collection('credentials');
    const password = 'Zürich-Åre-1'.normalize('NFD');
    const passwordHash = await bcrypt.hash(password, 4);
    await credentials.update(user!.id, (current) => ({ ...structuredClone(current), passwordHash }) as never);
    const logIn = (typed: string) =>
      token(createAgent(server), {
        grant_type: 'password',
        client_id: 'web',
        client_secret: 'web-secret',
        username: USER.email,
        password: typed,
      });
    expect((await logIn('wrong-Å'.normalize('NFD'))).status).to.equal(403);
    expect((await logIn(password)).status).to.equal(200);
    expect((await credentials.get(user!.id))?.passwordHash).to.match(/^\$argon2id\$/);
    expect((await logIn(password.normalize('NFC'))).status).to.equal(200);
  });

  it('finds users by e-mail address in any case, but not by a part of it or in another connection', async () => {
    expect(await server.users.findInConnection(connection, ' ADA@Example.TEST ')).to.have.property(
      'email',
      USER.email,
    );
    expect(await server.users.findInConnection(connection, 'ada')).to.equal(undefined);
    expect(await server.users.findInConnection({ name: 'staff' }, USER.email)).to.equal(undefined);
  });

  it('keeps earlier passwords', async () => {
    const { user } = (await server.users.create(
      databaseUser({
        connection: 'users',
        email: 'history@example.test',
        password: 'First-Pass-1',
      }),
    )) as any;
    await server.users.setPassword(user.id, 'Second-Pass-2');
    expect(await server.users.isUsedBefore(user.id, 'Second-Pass-2', 5)).to.equal(true);
    expect(await server.users.isUsedBefore(user.id, 'First-Pass-1', 5)).to.equal(true);
    expect(await server.users.isUsedBefore(user.id, 'First-Pass-1', 1)).to.equal(false);
    expect(await server.users.isUsedBefore(user.id, 'Third-Pass-3', 5)).to.equal(false);
    expect(await server.users.verifyPassword(user.id, 'First-Pass-1')).to.equal(undefined);
  });
});
