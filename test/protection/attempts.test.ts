// Failed logins: the account that they block, the address that they throttle, and the link in the mail that
// unblocks.
import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { StoreUnavailable } from '../../src/store/contract.ts';
import { openStore } from '../../src/store/open.ts';
import { tenant as base, OTP_GRANT } from '../connections/passwordless/tenant.ts';
import { createAgent, readForm } from '../support/agent.ts';
import { databaseUser } from '../support/database-user.ts';
import { authorize, follow, USER, webRequest } from '../support/flows.ts';
import { messagesTo, nextMessageTo } from '../support/inbox.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { served } from './proxied.ts';

const LOCKED =
  "Your account has been blocked after multiple consecutive login attempts. We've sent you a notification via your preferred contact method with instructions on how to unblock it.";
const REALM_GRANT = 'http://auth0.com/oauth/grant-type/password-realm';

describe('failed logins', () => {
  const right = { password: USER.password };
  const times = async (count: number, run: () => Promise<{ status: number }>) => {
    const statuses = [];
    for (let i = 0; i < count; i++) statuses.push((await run()).status);
    return statuses;
  };
  const locks = { bruteForceProtection: { max_attempts: 3 } };

  it('block the account for that address after ten, even for the right password', async () => {
    await served({}, async (_server, from) => {
      const login = from('203.0.113.1');
      expect(await times(10, login)).to.deep.equal(Array(10).fill(403));
      const refused = await login(right);
      expect(refused).to.deep.equal({ status: 429, error: 'too_many_attempts', error_description: LOCKED });
      expect((await from('203.0.113.2')(right)).status).to.equal(200);
      expect(
        (await login({ username: 'staff1', realm: 'staff', grant_type: REALM_GRANT, ...right })).status,
      ).to.equal(200);
    });
  });

  it('are forgotten after a successful login', async () => {
    await served(locks, async (_server, from) => {
      const login = from('203.0.113.1');
      for (let round = 0; round < 3; round++) {
        expect(await times(2, login)).to.deep.equal([403, 403]);
        expect((await login(right)).status).to.equal(200);
      }
    });
  });

  it('block an account that does not exist in the same way', async () => {
    await served(locks, async (server, from) => {
      const login = () => from('203.0.113.1')({ username: 'nobody@example.test' });
      expect(await times(4, login)).to.deep.equal([403, 403, 403, 429]);
      await server.tenant.close();
      expect(await messagesTo(server, 'nobody@example.test')).to.deep.equal([]);
    });
  });

  it('are counted together, however the account is written and whichever grant is used', async () => {
    await served(locks, async (_server, from) => {
      const login = from('203.0.113.1');
      const named = [
        { username: USER.email.toUpperCase() },
        { username: ` ${USER.email} ` },
        { grant_type: REALM_GRANT, realm: 'users' },
      ];
      for (const fields of named) expect((await login(fields)).status).to.equal(403);
      expect((await login(right)).status).to.equal(429);
    });
  });

  it('do not reveal that two identifiers belong to one account, or that somebody has signed up', async () => {
    await served(locks, async (server, from) => {
      const login = (fields: object) =>
        from('203.0.113.1')({ grant_type: REALM_GRANT, realm: 'staff', ...fields });
      expect(await times(4, () => login({ username: 'staff@example.test' }))).to.include(429);
      expect((await login({ username: 'staff1' })).status).to.equal(403);
      expect((await login({ username: 'nobody1' })).status).to.equal(403);
      const email = 'newcomer@example.test';
      expect(await times(4, () => login({ username: email }))).to.include(429);
      await server.users.create(databaseUser({ connection: 'staff', email, username: 'newcomer', ...right }));
      expect((await login({ username: email })).status).to.equal(429);
    });
  });

  it('are limited to three of fifty concurrent attempts', async () => {
    await served(locks, async (_server, from) => {
      const login = from('203.0.113.1');
      const answers = await Promise.all(Array.from({ length: 50 }, () => login()));
      expect(answers.filter(({ status }) => status === 403)).to.have.length(3);
      expect(answers.filter(({ status }) => status === 429)).to.have.length(47);
    });
  });

  it('do not reject concurrent attempts with the right password', async () => {
    await served(locks, async (_server, from) => {
      const login = from('203.0.113.1');
      const answers = await Promise.all(Array.from({ length: 30 }, () => login(right)));
      expect(answers.every(({ status }) => status === 200)).to.equal(true);
    });
  });

  it('block across a restart, for thirty days', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'gatehouse-locks-'));
    try {
      await served(locks, async (_server, from) => void (await times(3, from('203.0.113.1'))), dataDir);
      await served(
        locks,
        async (server, from) => {
          expect((await from('203.0.113.1')(right)).status).to.equal(429);
          server.tick(30 * 86_400_000 - 60_000);
          expect((await from('203.0.113.1')(right)).status).to.equal(429);
          server.tick(120_000);
          expect((await from('203.0.113.1')(right)).status).to.equal(200);
        },
        dataDir,
      );
    } finally {
      await rm(dataDir, { recursive: true, force: true });
    }
  });

  it('block a whole /64 of IPv6, and no other', async () => {
    await served(locks, async (_server, from) => {
      for (const host of ['1', '2', 'ffff:1']) await from(`2001:db8:0:1::${host}`)();
      expect((await from('2001:db8:0:1::9')(right)).status).to.equal(429);
      expect((await from('2001:db8:0:2::9')(right)).status).to.equal(200);
    });
  });

  it('are counted by the address that the trusted proxy reports, whatever the client claims', async () => {
    await served(locks, async (_server, from) => {
      for (let i = 0; i < 3; i++) await from(`198.51.100.${i}, 203.0.113.1`)();
      expect((await from('198.51.100.99, 203.0.113.1')(right)).status).to.equal(429);
    });
  });

  for (const [what, protection] of [
    ['it is off', { bruteForceProtection: { enabled: false, max_attempts: 3 } }],
    ['no shield blocks', { bruteForceProtection: { shields: [], max_attempts: 3 } }],
    [
      'the address is on the allow-list',
      { bruteForceProtection: { allowlist: ['203.0.113.0/24'], max_attempts: 3 } },
    ],
  ] as const) {
    it(`block nothing when ${what}`, async () => {
      await served(protection, async (_server, from) => {
        await times(5, from('203.0.113.1'));
        expect((await from('203.0.113.1')(right)).status).to.equal(200);
      });
    });
  }

  it('block nothing on a connection with brute_force_protection off', async () => {
    const server = await startServer({
      tenant: {
        ...base,
        attackProtection: { ...base.attackProtection, ...locks },
        databases: base.databases.map((one) => ({
          ...one,
          options: { ...one.options, brute_force_protection: false },
        })),
      },
    });
    const login = async (password: string) =>
      (
        await createAgent(server).request('/oauth/token', {
          json: {
            grant_type: 'password',
            client_id: 'web',
            client_secret: 'web-secret',
            username: USER.email,
            password,
          },
        })
      ).status;
    await times(5, async () => ({ status: await login('wrong') }));
    expect(await login(USER.password)).to.equal(200);
    await server.stop();
  });

  it('block the account for all addresses in the mode count_per_identifier', async () => {
    await served(
      { bruteForceProtection: { mode: 'count_per_identifier', max_attempts: 3 } },
      async (_server, from) => {
        for (const ip of ['203.0.113.1', '203.0.113.2', '203.0.113.3']) await from(ip)();
        expect((await from('203.0.113.4')(right)).status).to.equal(429);
      },
    );
  });

  it('with passwordless codes block the account, too', async () => {
    await served(locks, async (server, from) => {
      const email = 'codes@example.test';
      const url = `http://127.0.0.1:${server.settings.port}/passwordless/start`;
      const headers = {
        'content-type': 'application/json',
        'x-forwarded-proto': 'https',
        'x-forwarded-for': '203.0.113.1',
      };
      const ask = () =>
        fetch(url, {
          method: 'POST',
          headers,
          body: JSON.stringify({ client_id: 'spa', connection: 'email', email, send: 'code' }),
        });
      const guess = (otp: string) =>
        from('203.0.113.1')({
          grant_type: OTP_GRANT,
          client_id: 'spa',
          client_secret: undefined,
          username: email,
          realm: 'email',
          otp,
        });
      await ask();
      expect((await guess('x')).status).to.equal(403);
      expect((await guess('x')).status).to.equal(403);
      await ask();
      expect((await guess('x')).status).to.equal(403);
      const { code = '' } = await nextMessageTo(server, email, 2);
      expect((await guess(code)).status).to.equal(429);
    });
  });

  describe('that block an account', () => {
    let server: TestServer;
    before(async () => {
      server = await startServer({
        tenant: { ...base, attackProtection: { ...base.attackProtection, ...locks } },
      });
    });
    after(() => server.stop());
    let people = 0;
    const lockedUser = async () => {
      const email = `locked-${++people}@example.test`;
      await server.users.create(databaseUser({ connection: 'users', email, password: USER.password }));
      for (let i = 0; i < 3; i++) await login(email, 'wrong');
      return email;
    };
    const login = async (username: string, password = USER.password) =>
      (
        await createAgent(server).request('/oauth/token', {
          json: { grant_type: 'password', client_id: 'web', client_secret: 'web-secret', username, password },
        })
      ).status;

    it('send its owner a mail, whose link unblocks it after a confirmation', async () => {
      const email = await lockedUser();
      expect(await login(email)).to.equal(429);
      const link = new URL((await nextMessageTo(server, email)).link ?? '');
      expect(link.origin).to.equal(server.url);
      const path = link.pathname + link.search;
      const browser = createAgent(server);
      for (let i = 0; i < 3; i++) await createAgent(server).get(path);
      expect(await login(email), 'after a scanner fetched the link').to.equal(429);
      const { action, fields } = readForm(await browser.get(path), 'ticket');
      const forged = await browser.request(action, { form: { ...fields, _csrf: 'x' } });
      expect(forged.status).to.equal(403);
      const done = await browser.request(action, { form: fields });
      expect(done.text).to.contain('Your account is unlocked');
      expect(await login(email)).to.equal(200);
      expect((await browser.get(path)).status, 'the link again').to.equal(400);
    });

    it('send the mail once, also after the store failed while the link was made', async () => {
      let failures = 0;
      const failing = await startServer({
        tenant: { ...base, attackProtection: { ...base.attackProtection, ...locks } },
        open: async (options) => {
          const store = await openStore(options);
          const batch: typeof store.batch = async (writes) => {
            const isLink = writes.some((one) => one.collection === 'challenges');
            if (isLink && failures++ === 0) throw new StoreUnavailable('the database is away');
            return store.batch(writes);
          };
          return { ...store, batch };
        },
      });
      try {
        const json = { grant_type: 'password', client_id: 'web', client_secret: 'web-secret' };
        for (let i = 0; i < 3; i++)
          await createAgent(failing).request('/oauth/token', {
            json: { ...json, username: USER.email, password: 'wrong' },
          });
        expect((await nextMessageTo(failing, USER.email)).link).to.contain('/u/unblock?ticket=');
        await failing.tenant.close();
        expect(failures).to.be.above(1);
        expect(await messagesTo(failing, USER.email)).to.have.length(1);
        expect(await failing.store.collection('deliveries').count()).to.equal(0);
      } finally {
        await failing.stop();
      }
    });

    it('are forgotten after a new password', async () => {
      const email = await lockedUser();
      await nextMessageTo(server, email);
      await createAgent(server).request('/dbconnections/change_password', {
        json: { connection: 'users', email },
      });
      const { link = '' } = await nextMessageTo(server, email, 2);
      const url = new URL(link);
      const browser = createAgent(server);
      const { action, fields } = readForm(await browser.get(url.pathname + url.search), 'password');
      const password = 'Quite-Another-Word-1';
      await browser.request(action, { form: { ...fields, password, repeat: password } });
      expect(await login(email, password)).to.equal(200);
    });

    it('show the block at the hosted page, also for an account that does not exist', async () => {
      const texts = [];
      for (const username of [await lockedUser(), 'nobody@example.test']) {
        for (let i = 0; i < 3; i++) await login(username, 'wrong');
        const browser = createAgent(server);
        const page = await follow(browser, await authorize(browser, webRequest()), server.url);
        const { action, fields } = readForm(page, 'password');
        const answer = await browser.request(action, {
          form: { ...fields, username, password: USER.password },
        });
        expect(answer.status).to.equal(429);
        texts.push(/<div class="alert"[\s\S]*?<\/div>\s*<\/div>/.exec(answer.text)?.[0]);
      }
      expect(texts[0]).to.contain('This account is locked');
      expect(texts[0]).to.equal(texts[1]);
    });
  });
});
