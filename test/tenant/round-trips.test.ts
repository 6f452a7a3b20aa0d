// How many sequential queries a login sends to the store. With a remote database each of them costs time.
// docs/understand/decisions/store.md#a-login-makes-at-most-eight-queries-to-the-store-one-after-another
import { expect } from 'chai';
import { type Agent, createAgent, readForm } from '../support/agent.ts';
import { countStore } from '../support/counted-store.ts';
import { authorize, follow, token, USER, webRequest } from '../support/flows.ts';
import { nextMessageTo } from '../support/inbox.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { tenantWith } from '../support/tenant.ts';

const MAX = 8;

describe('round trips to the store', () => {
  const count = countStore();
  let server: TestServer;
  let agent: Agent;
  before(async () => {
    server = await startServer({
      tenant: tenantWith({
        change: {
          web: (client) => ({
            grant_types: [...client.grant_types, 'http://auth0.com/oauth/grant-type/passwordless/otp'],
            // Each refresh also extends the token's expiry.
            refresh_token: { rotation_type: 'non-rotating', expiration_type: 'expiring' },
          }),
        },
        connections: [{ name: 'email', strategy: 'email', enabled_clients: ['web'] }],
      }),
      open: count.open,
    });
    agent = createAgent(server);
  });
  after(() => server.stop());

  const WEB = { client_id: 'web', client_secret: 'web-secret' };
  /** Part of every reading of the configuration after a change, which is not counted for the request that causes it. */
  const ofConfiguration = 'clients.list';
  const trips = () =>
    count
      .trips()
      .filter((names) => !names.includes(ofConfiguration))
      .map((names) => names.join(' + '));
  const expectFew = (most = MAX) => expect(trips(), trips().join('\n')).to.have.length.within(1, most);

  const code = async (email: string) => {
    await agent.request('/passwordless/start', {
      json: { ...WEB, connection: 'email', email, send: 'code' },
    });
    return (await nextMessageTo(server, email)).code;
  };
  const redeem = async (email: string) => {
    const otp = await code(email);
    count.reset();
    const answer = await token(agent, {
      ...WEB,
      grant_type: 'http://auth0.com/oauth/grant-type/passwordless/otp',
      realm: 'email',
      username: email,
      otp,
      scope: 'openid profile',
    });
    expect(answer.status, answer.text).to.equal(200);
  };

  it('are few for a token by an e-mailed code, with three more for a new user', async () => {
    await redeem('new@example.test');
    // The user is written, and the connection is read before and after that: it may have been deleted meanwhile.
    expectFew(MAX + 3);
    await redeem('new@example.test');
    expectFew();
  });

  it('are few for a token by a password', async () => {
    count.reset();
    const answer = await token(agent, {
      ...WEB,
      grant_type: 'password',
      username: USER.email,
      password: USER.password,
      scope: 'openid profile offline_access',
    });
    expect(answer.status, answer.text).to.equal(200);
    expectFew();
  });

  it('are four for a refresh, or two where the store reads the user with the token, and everything is stored at once', async () => {
    const first = await token(agent, {
      ...WEB,
      grant_type: 'password',
      username: USER.email,
      password: USER.password,
      scope: 'openid offline_access',
    });
    const { refresh_token } = JSON.parse(first.text) as { refresh_token: string };
    const refresh = async () => {
      count.reset();
      const answer = await token(agent, { ...WEB, grant_type: 'refresh_token', refresh_token });
      expect(answer.status, answer.text).to.equal(200);
    };
    await refresh();
    // A query that runs at the same time as one for the configuration cannot be told apart.
    while (count.trips().flat().includes(ofConfiguration)) await refresh();
    const reads =
      process.env.TEST_DATABASE_URL === undefined
        ? ['artifacts.get', 'artifacts.get', 'users.get']
        : ['artifacts.getWithNamed'];
    expect(trips()).to.deep.equal([...reads, 'batch(artifacts,artifacts)']);
  });

  it('are few for a password at the hosted page', async () => {
    const page = await follow(agent, await authorize(agent, webRequest()), server.url);
    const { action, fields } = readForm(page, 'password');
    count.reset();
    const answer = await agent.request(action, {
      form: { ...fields, username: USER.email, password: USER.password },
    });
    expect(answer.status, answer.text).to.be.within(302, 303);
    expectFew();
  });
});
