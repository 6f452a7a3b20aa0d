// Guesses at one account by every way in that takes a password: they are one count.
import { expect } from 'chai';
import { callsOf, REALM_GRANT, tenant } from '../factors/tenant.ts';
import { createAgent, readForm } from '../support/agent.ts';
import { authorize, follow, SPA_CALLBACK, USER, webRequest } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';

const WRONG = 'wrong-Password-1';
const username = 'mfa-0@example.test';

describe('the guesses at an account', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer({
      tenant: {
        ...tenant,
        attackProtection: { ...tenant.attackProtection, bruteForceProtection: { max_attempts: 3 } },
        clients: tenant.clients.map((client) =>
          client.client_id === 'spa'
            ? {
                ...client,
                cross_origin_authentication: true,
                grant_types: [...client.grant_types, 'password'],
              }
            : client,
        ),
      },
    });
  });
  after(() => server.stop());

  const token = (grant_type: string) => (password: string) =>
    callsOf(server).agent.request('/oauth/token', {
      json: { client_id: 'spa', grant_type, realm: 'users', username, password },
    });
  const waiting = async (browser: ReturnType<typeof createAgent>) =>
    follow(browser, await authorize(browser, webRequest()), server.url);
  const entrances: Record<string, (password: string) => Promise<{ status: number }>> = {
    'the password grant': token('password'),
    'the password grant of a realm': token(REALM_GRANT),
    'cross-origin login': (password) =>
      callsOf(server).agent.request('/co/authenticate', {
        json: { client_id: 'spa', credential_type: REALM_GRANT, realm: 'users', username, password },
        headers: { origin: new URL(SPA_CALLBACK).origin },
      }),
    'the hosted page': async (password) => {
      const browser = createAgent(server);
      const { action, fields } = readForm(await waiting(browser), 'password');
      return browser.request(action, { form: { ...fields, username, password } });
    },
    "the widget's call": async (password) => {
      const browser = createAgent(server);
      const { action, fields } = readForm(await waiting(browser), 'password');
      const state = `gatehouse.waiting.${action.split('/')[2]}`;
      return browser.request('/usernamepassword/login', {
        json: { ...fields, client_id: 'web', connection: 'users', username, password, state },
        headers: { origin: server.url, 'sec-fetch-site': 'same-origin' },
      });
    },
  };

  it('are counted at each way in, and lock all the others', async () => {
    const all = Object.entries(entrances);
    for (const [guessed, guess] of all) {
      const failures = server.store.collection('failures');
      for (const { id } of (await failures.list({ limit: 100 })).records) await failures.delete(id);
      for (let tries = 0; tries < 3; tries++)
        expect((await guess(WRONG)).status, `${guessed} ${tries}`).to.be.within(400, 428);
      for (const [name, enter] of all)
        expect((await enter(USER.password)).status, `${name} after guesses at ${guessed}`).to.equal(429);
    }
  });
});
