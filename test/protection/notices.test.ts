// Mails that are sent because of an attack, and how many.
import { expect } from 'chai';
import { createAgent, readForm } from '../support/agent.ts';
import { tenant as base, USER } from '../support/flows.ts';
import { messagesTo, nextMessageTo } from '../support/inbox.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { type LoginFrom, served } from './proxied.ts';

const locks = { bruteForceProtection: { max_attempts: 3 } };

async function lock(from: LoginFrom, ip: string): Promise<void> {
  for (let i = 0; i < 3; i++) await from(ip)();
}

/** Waits until all messages are sent, and counts those to the user. */
async function mails(server: TestServer): Promise<number> {
  await server.tenant.close();
  return (await messagesTo(server, USER.email)).length;
}

describe('the mail about a blocked account', () => {
  it('is sent once an hour for an address, however often the account is unblocked and blocked again', async () => {
    const server = await startServer({
      tenant: { ...base, attackProtection: { ...base.attackProtection, ...locks } },
    });
    const guess = () =>
      createAgent(server).request('/oauth/token', {
        json: {
          grant_type: 'password',
          client_id: 'web',
          client_secret: 'web-secret',
          username: USER.email,
          password: 'wrong',
        },
      });
    const lockAgain = async () => {
      for (let i = 0; i < 3; i++) expect((await guess()).status).to.equal(403);
      expect((await guess()).status).to.equal(429);
    };
    const unlock = async (count: number) => {
      const url = new URL((await nextMessageTo(server, USER.email, count)).link ?? '');
      const browser = createAgent(server);
      const { action, fields } = readForm(await browser.get(url.pathname + url.search), 'ticket');
      expect((await browser.request(action, { form: fields })).status).to.equal(200);
    };
    try {
      await lockAgain();
      await unlock(1);
      await lockAgain();
      expect(await mails(server)).to.equal(1);
      server.tick(3_601_000);
      const { records } = await server.store.collection('failures').list();
      for (const { id, account } of records)
        if (account) await server.store.collection('failures').delete(id);
      await lockAgain();
      await unlock(2);
    } finally {
      await server.stop();
    }
  });

  it('is sent at most five times at once, however many addresses attack the account', async () => {
    await served(locks, async (server, from) => {
      for (let i = 1; i <= 8; i++) await lock(from, `203.0.113.${i}`);
      expect((await from('203.0.113.8')({ password: USER.password })).status).to.equal(429);
      expect(await mails(server)).to.equal(5);
    });
  });

  it('is sent when accounts are not blocked but owners are notified', async () => {
    const protection = { bruteForceProtection: { max_attempts: 3, shields: ['user_notification'] } };
    await served(protection, async (server, from) => {
      await lock(from, '203.0.113.1');
      expect((await from('203.0.113.1')({ password: USER.password })).status).to.equal(200);
      expect(await mails(server)).to.equal(1);
    });
  });

  it('is not sent when the tenant does not want it', async () => {
    const silent = { bruteForceProtection: { max_attempts: 3, shields: ['block'] } };
    await served(silent, async (server, from) => {
      await lock(from, '203.0.113.1');
      expect((await from('203.0.113.1')({ password: USER.password })).status).to.equal(429);
      expect(await mails(server)).to.equal(0);
    });
  });

  it("is not sent for attempts with a user's id, which do not block the account", async () => {
    await served(locks, async (server, from) => {
      const user = await server.users.findInConnection({ name: 'users' }, USER.email);
      for (let i = 0; i < 3; i++) await from('203.0.113.1')({ username: user?.id });
      expect((await from('203.0.113.1')({ username: user?.id })).status).to.equal(429);
      // They are guesses at the account all the same: from there, the right password counts as wrong.
      expect((await from('203.0.113.1')({ password: USER.password })).status).to.equal(403);
      expect((await from('203.0.114.1')({ password: USER.password })).status).to.equal(200);
      expect(await mails(server)).to.equal(0);
    });
  });
});

describe('the mail with a reset link', () => {
  it('is sent at most ten times at once, however many addresses ask for it, with the same answer', async () => {
    await served({}, async (server, _from, post) => {
      const ask = (i: number) =>
        post(`203.0.113.${i}`, '/dbconnections/change_password', { connection: 'users', email: USER.email });
      for (let i = 1; i <= 14; i++) expect(await ask(i)).to.deep.equal({ status: 200 });
      expect(await mails(server)).to.equal(10);
    });
  });
});
