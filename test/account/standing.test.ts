// Whoever is logged in to the account page, or has a token for the My Account API, goes before strangers where work waits.
import { expect } from 'chai';
import { requester } from '../../src/runtime/requester.ts';
import { openStore } from '../../src/store/open.ts';
import { createAgent } from '../support/agent.ts';
import { USER } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { openAccount, send } from './support.ts';
import { callsOf, tenant } from './tenant.ts';

describe('who manages their own account', () => {
  let server: TestServer;
  /** The standing of who has changed a user. */
  let standings: string[] = [];
  before(async () => {
    server = await startServer({
      tenant: { ...tenant, tenant: { ...tenant.tenant, account_page: { client_id: 'web' } } },
      open: async (options) => {
        const store = await openStore(options);
        const collection: typeof store.collection = (name) => {
          const found = store.collection(name);
          if (name !== 'users') return found;
          return {
            ...found,
            update: (...given: Parameters<typeof found.update>) => {
              standings.push(requester().standing);
              return found.update(...given);
            },
          };
        };
        return { ...store, collection };
      },
    });
  });
  after(() => server.stop());
  beforeEach(() => {
    standings = [];
  });

  it('is no stranger at the account page', async () => {
    const agent = createAgent(server);
    const page = await openAccount(agent, server, '/account', { ...USER, email: 'mfa-0@example.test' });
    standings = [];
    standings = [];
    expect((await send(agent, page, '/account', { nickname: 'Countess' })).status).to.equal(303);
    expect(standings).to.include('known').and.not.include('stranger');
  });

  it('is no stranger at the My Account API', async () => {
    const calls = callsOf(server);
    const bearer = await calls.accountToken('mfa-1@example.test');
    const { verify } = await calls.begin(bearer, { type: 'password', connection: 'users' });
    standings = [];
    expect((await verify({ new_password: 'Third-Horse-3' })).status).to.equal(201);
    expect(standings).to.include('known').and.not.include('stranger');
  });
});
