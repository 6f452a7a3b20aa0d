// Concurrent attempts, at the interface that every login calls.
import { expect } from 'chai';
import { type Attempts, createAttempts } from '../../src/capabilities/protection/attempts.ts';
import { createKnownCallers } from '../../src/capabilities/protection/rate-limit.ts';
import { openConfig } from '../../src/tenant/config.ts';
import { databaseUser } from '../support/database-user.ts';
import { tenant } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';

describe('concurrent attempts', () => {
  let server: TestServer;
  let attempts: Attempts;
  let people = 0;
  const someone = () => ({
    connection: 'users',
    identifier: `racer-${++people}@example.test`,
    ip: '192.0.2.1',
    proof: 'password' as const,
  });

  before(async () => {
    server = await startServer({
      tenant: {
        ...tenant,
        attackProtection: {
          bruteForceProtection: { max_attempts: 2 },
          suspiciousIpThrottling: { enabled: false },
        },
      },
    });
    attempts = createAttempts({
      store: server.store,
      config: await openConfig(server.store),
      callers: createKnownCallers(server.store, Date.now),
      clock: Date.now,
      onLocked: async () => {},
      onThrottled: () => {},
    });
  });
  after(() => server.stop());

  for (const ends of ['failed', 'succeeded', 'abandoned'] as const) {
    it(`do not wait forever after others have ${ends}, at any moment`, async () => {
      for (let turns = 0; turns < 12; turns++) {
        const tried = someone();
        const [first, second] = [await attempts.admit(tried), await attempts.admit(tried)];
        const third = attempts.admit(tried).then(
          () => 'admitted',
          () => 'refused',
        );
        for (let turn = 0; turn < turns; turn++) await Promise.resolve();
        await first[ends]();
        await second[ends]();
        expect(await third).to.equal(ends === 'failed' ? 'refused' : 'admitted');
      }
    });
  }

  it('are not counted when they are abandoned', async () => {
    const tried = someone();
    for (let i = 0; i < 5; i++) {
      const admitted = await attempts.admit(tried);
      admitted.abandoned();
    }
    await attempts.admit(tried);
  });

  it('never exceed the number of attempts left, in any order', async () => {
    const tried = someone();
    let judged = 0;
    const all = Array.from({ length: 60 }, async (_, i) => {
      const admitted = await attempts.admit(tried).catch(() => undefined);
      if (admitted === undefined) return;
      judged++;
      for (let turn = 0; turn < (i * 7) % 11; turn++) await new Promise((resolve) => setImmediate(resolve));
      await admitted.failed();
    });
    await Promise.all(all);
    expect(judged).to.equal(2);
  });

  it('at a second step are not forgiven by repeating the first', async () => {
    const first = someone();
    await server.users.create(
      databaseUser({ connection: 'users', email: first.identifier, password: 'Some-Words-1' }),
    );
    const user = await server.users.findInConnection({ name: 'users' }, first.identifier);
    if (user === undefined) throw new Error('not created');
    const code = { ...first, step: 'mfa' };
    for (let i = 0; i < 2; i++) {
      await (await attempts.admit(first)).succeeded();
      await (await attempts.admit(code)).failed();
    }
    const refused = await attempts.admit(code).catch((thrown) => thrown);
    expect(refused).to.include({ status: 429, error: 'too_many_attempts' });
    await attempts.unlock('users', user, first);
    await attempts.admit(code);
  });

  it('block an account under each of its identifiers, and the owner unblocks them all', async () => {
    const [email, username] = ['many-names@example.test', 'manynames'];
    const created = await server.users.create(
      databaseUser({
        connection: 'staff',
        email,
        username,
        password: 'Some-Words-1',
      }),
    );
    if (!('user' in created)) throw new Error('not created');
    const tries = [email, username].map((identifier) => ({
      connection: 'staff',
      identifier,
      ip: '192.0.2.9',
      proof: 'password' as const,
    }));
    for (const tried of tries) {
      for (let i = 0; i < 2; i++) {
        await (await attempts.admit(tried)).failed();
      }
      expect(await attempts.admit(tried).catch(({ status }) => status)).to.equal(429);
    }
    await attempts.unlock('users', created.user, { ip: '192.0.2.9' });
    for (const tried of tries)
      expect(await attempts.admit(tried).catch(({ status }) => status)).to.equal(429);
    await attempts.unlock('staff', created.user, { ip: '192.0.2.9' });
    for (const tried of tries) expect(await attempts.admit(tried)).to.include({ callerKey: undefined });
  });
});
