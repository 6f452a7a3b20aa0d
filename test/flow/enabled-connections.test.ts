// A session answers only applications that its connection is enabled for.
import { expect } from 'chai';
import { callsOf, DEVICE_GRANT } from '../grants/tenant.ts';
import { type Agent, type Answer, createAgent } from '../support/agent.ts';
import { databaseUser } from '../support/database-user.ts';
import {
  authorize,
  follow,
  logIn,
  payload,
  pkce,
  responseOf,
  spaRequest,
  submitLogin,
  tenant,
  USER,
  WEB_CALLBACK,
  webRequest,
} from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';

const CUSTOMER = { email: 'customer@example.test', password: 'Correct-Horse-1' };

/** `web` and `shop` have customers, and `spa` and `tv` have employees alone. */
const apart = {
  ...tenant,
  clients: [
    ...tenant.clients,
    {
      client_id: 'shop',
      name: 'Shop',
      app_type: 'regular_web',
      client_secret: 'shop-secret',
      callbacks: [WEB_CALLBACK],
      grant_types: ['authorization_code', 'refresh_token'],
    },
    {
      client_id: 'tv',
      name: 'Screen in the office',
      app_type: 'native',
      token_endpoint_auth_method: 'none',
      grant_types: [DEVICE_GRANT],
    },
  ],
  databases: [
    { ...tenant.databases[0], enabled_clients: ['web', 'spa', 'tv'] },
    { ...tenant.databases[1] },
    { name: 'customers', enabled_clients: ['web', 'shop'], options: { passwordPolicy: 'low' } },
  ],
};

describe('a session of a connection', () => {
  let server: TestServer;
  let userId: string;
  const { challenge } = pkce();
  beforeEach(async () => {
    server = await startServer({ tenant: apart });
    const created = await server.users.create({
      ...databaseUser({ connection: 'customers', email: CUSTOMER.email }),
      password: CUSTOMER.password,
    });
    if (!('user' in created)) throw new Error('the user was not created');
    userId = created.user.id;
  });
  afterEach(() => server.stop());

  const customer = async (): Promise<Agent> => {
    const agent = createAgent(server);
    const done = await logIn(agent, server, webRequest({ connection: 'customers' }), CUSTOMER);
    expect(responseOf(done)).to.have.property('code');
    return agent;
  };
  const isLoginPage = (answer: Answer) =>
    expect(answer.status === 302 && new URL(answer.location, server.url).pathname).to.match(/^\/u\//);
  const silently = async (agent: Agent) =>
    responseOf(await authorize(agent, spaRequest(challenge, { prompt: 'none' }))).error;
  /** Takes a connection away from an application. */
  const close = (name: string, clientId: string) => async () => {
    const { records } = await server.store.collection('connections').list({ limit: 100 });
    const id = records.find((one) => one.name === name)?.id ?? '';
    await server.store.collection('connections').update(id, (one) => ({
      ...one,
      enabled_clients: one.enabled_clients.filter((client) => client !== clientId),
    }));
  };

  it('answers every application that has the connection', async () => {
    const agent = await customer();
    expect(responseOf(await authorize(agent, webRequest({ client_id: 'shop' })))).to.have.property('code');
  });

  it('does not answer an application that has not, which asks for a login', async () => {
    const agent = await customer();
    const page = await authorize(agent, spaRequest(challenge));
    isLoginPage(page);
    const done = await submitLogin(agent, server, await follow(agent, page, server.url), USER);
    expect(responseOf(done)).to.have.property('code');
    const silent = await authorize(
      agent,
      spaRequest(challenge, { prompt: 'none', response_type: 'id_token' }),
    );
    expect(payload(responseOf(silent).id_token ?? '').email).to.equal(USER.email);
  });

  it('connects no device of such an application, before somebody else has logged in', async () => {
    const agent = await customer();
    const { begin, open, decide } = callsOf(() => server);
    const page = await decide(agent, await open(agent, (await begin()).json().user_code));
    expect(page.text).to.contain('name="password"');
    expect((await submitLogin(agent, server, page, USER)).text).to.contain('Your device is connected');
  });

  it('answers such an application’s silent request with login_required, pushed or not', async () => {
    const agent = await customer();
    expect(await silently(agent)).to.equal('login_required');
    const pushed = await createAgent(server).request('/oauth/par', {
      form: { ...webRequest({ prompt: 'none' }), client_secret: 'web-secret' },
    });
    expect(pushed.status, pushed.text).to.equal(201);
    const { request_uri } = pushed.json();
    await close('customers', 'web')();
    expect(responseOf(await authorize(agent, { client_id: 'web', request_uri })).error).to.equal(
      'login_required',
    );
  });

  it('does not answer an application that it began with, once the connection was taken from that', async () => {
    const agent = await customer();
    await close('customers', 'web')();
    isLoginPage(await authorize(agent, webRequest()));
    expect(responseOf(await authorize(agent, webRequest({ prompt: 'none' }))).error).to.equal(
      'login_required',
    );
  });

  it('that was taken away while the user was at the login page makes no session', async () => {
    const agent = createAgent(server);
    const request = webRequest({ connection: 'customers' });
    const page = await follow(agent, await authorize(agent, request), server.url);
    await close('customers', 'web')();
    const done = await submitLogin(agent, server, page, CUSTOMER);
    expect(done.location).not.to.contain('code=');
    expect(
      responseOf(await authorize(agent, webRequest({ client_id: 'shop', prompt: 'none' }))).error,
    ).to.equal('login_required');
  });

  it('of one of the user’s accounts does not stand for the others that are linked to it', async () => {
    const employee = await server.users.findInConnection({ name: 'users' }, USER.email);
    expect(await server.users.link(userId, employee?.id ?? '')).not.to.equal(undefined);
    const agent = await customer();
    expect(await silently(agent)).to.equal('login_required');
    const page = await follow(agent, await authorize(agent, spaRequest(challenge)), server.url);
    await submitLogin(agent, server, page, USER);
    const silent = await authorize(
      agent,
      spaRequest(challenge, { prompt: 'none', response_type: 'id_token' }),
    );
    expect(payload(responseOf(silent).id_token ?? '').sub).to.equal(userId);
  });
});
