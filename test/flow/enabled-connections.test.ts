// A session answers only applications that its connection is enabled for.
import { expect } from 'chai';
import { managed } from '../actions/support.ts';
import { codeOf } from '../factors/tenant.ts';
import { callsOf, DEVICE_GRANT } from '../grants/tenant.ts';
import { startManaged } from '../management/support.ts';
import { type Agent, type Answer, createAgent, readForm } from '../support/agent.ts';
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
  token,
  USER,
  WEB_CALLBACK,
  webRequest,
} from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { until } from '../support/wait-until.ts';

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

/** What both suites do. @param server returns the server of the running test. */
function stepsOf(server: () => TestServer) {
  const createCustomer = async (): Promise<string> => {
    const created = await server().users.create({
      ...databaseUser({ connection: 'customers', email: CUSTOMER.email }),
      password: CUSTOMER.password,
    });
    if (!('user' in created)) throw new Error('the user was not created');
    return created.user.id;
  };
  /** Returns a browser in which the customer is logged in. */
  const customer = async (): Promise<Agent> => {
    const agent = createAgent(server());
    const done = await logIn(agent, server(), webRequest({ connection: 'customers' }), CUSTOMER);
    expect(responseOf(done)).to.have.property('code');
    return agent;
  };
  const connectionId = async (name: string): Promise<string> => {
    const { records } = await server().store.collection('connections').list({ limit: 100 });
    return records.find((one) => one.name === name)?.id ?? '';
  };
  /** Sets the applications that have a connection. */
  const enable = async (name: string, enabled_clients: string[]) =>
    server()
      .store.collection('connections')
      .update(await connectionId(name), (one) => ({ ...one, enabled_clients }));
  return { createCustomer, customer, connectionId, enable };
}

describe('a session of a connection', () => {
  let server: TestServer;
  let userId: string;
  const { challenge } = pkce();
  beforeEach(async () => {
    server = await startServer({ tenant: apart });
    userId = await createCustomer();
  });
  afterEach(() => server.stop());

  const { createCustomer, customer, enable } = stepsOf(() => server);
  const isLoginPage = (answer: Answer) =>
    expect(answer.status === 302 && new URL(answer.location, server.url).pathname).to.match(/^\/u\//);
  const silently = async (agent: Agent) =>
    responseOf(await authorize(agent, spaRequest(challenge, { prompt: 'none' }))).error;
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
    await enable('customers', ['shop']);
    expect(responseOf(await authorize(agent, { client_id: 'web', request_uri })).error).to.equal(
      'login_required',
    );
  });

  it('does not answer an application that it began with, once the connection was taken from that', async () => {
    const agent = await customer();
    await enable('customers', ['shop']);
    isLoginPage(await authorize(agent, webRequest()));
    expect(responseOf(await authorize(agent, webRequest({ prompt: 'none' }))).error).to.equal(
      'login_required',
    );
  });

  it('that was taken away while the user was at the login page makes no session', async () => {
    const agent = createAgent(server);
    const request = webRequest({ connection: 'customers' });
    const page = await follow(agent, await authorize(agent, request), server.url);
    await enable('customers', ['shop']);
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

const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
const REALM = 'http://auth0.com/oauth/grant-type/password-realm';
const SUBJECT = 'urn:acme:ticket';

/** As {@link apart}, with applications that hand logins over: `app` has customers, and `desk` acts for users. */
const handing = {
  ...apart,
  guardianFactors: [{ name: 'otp', enabled: true }],
  clients: [
    ...apart.clients.map((one) => ({
      ...one,
      organization_usage: 'allow',
      session_transfer: {
        allowed_authentication_methods: ['query'],
        delegation: { allow_delegated_access: true },
      },
    })),
    ...['app', 'desk'].map((client_id) => ({
      client_id,
      name: client_id,
      app_type: 'regular_web',
      client_secret: `${client_id}-secret`,
      callbacks: [WEB_CALLBACK],
      organization_usage: 'allow',
      grant_types: [EXCHANGE, REALM, 'refresh_token'],
      session_transfer: { can_create_session_transfer_token: true },
      token_exchange: { allow_any_profile_of_type: ['custom_authentication'] },
    })),
  ],
  databases: [
    ...apart.databases.slice(0, 2),
    { ...apart.databases[2], enabled_clients: ['web', 'shop', 'app'] },
  ],
};

describe('a login by a connection, or by none', () => {
  let server: TestServer;
  let customerId: string;
  let employeeId: string;
  const { challenge } = pkce();
  before(async () => {
    server = await startManaged(handing);
    employeeId = (await server.users.findInConnection({ name: 'users' }, USER.email))?.id ?? '';
  });
  after(() => server.stop());
  beforeEach(async () => {
    const found = await server.users.findInConnection({ name: 'customers' }, CUSTOMER.email);
    if (found !== undefined) return;
    customerId = await createCustomer();
  });

  const { createCustomer, customer, connectionId, enable } = stepsOf(() => server);
  const silently = async (agent: Agent, over: Record<string, string> = {}) =>
    responseOf(await authorize(agent, spaRequest(challenge, { prompt: 'none', ...over })));
  const ask = async (fields: Record<string, string>) => {
    const answer = await token(createAgent(server), {
      client_secret: `${fields.client_id}-secret`,
      ...fields,
    });
    expect(answer.status, answer.text).to.equal(200);
    return answer.json();
  };
  const audienceOfTransfer = () => `urn:${new URL(server.url).host}:session_transfer`;
  const transfer = async (client_id: string, refresh_token: string) => {
    const fields = { grant_type: 'refresh_token', client_id, refresh_token };
    return (await ask({ ...fields, audience: audienceOfTransfer() })).access_token;
  };
  /** Opens an application with a login that was handed over. */
  const open = async (params: Record<string, string>, session_transfer_token: string) => {
    const agent = createAgent(server);
    return follow(agent, await authorize(agent, { ...params, session_transfer_token }), server.url);
  };

  it('does not go on once the connection is for logins no more', async () => {
    const agent = await customer();
    const path = `/connections/${await connectionId('customers')}`;
    const active = (on: boolean) => managed(server, 'PATCH', path, { authentication: { active: on } });
    expect((await active(false)).status).to.equal(200);
    expect((await silently(agent, webRequest({ prompt: 'none' }))).error).to.equal('login_required');
    await active(true);
    expect(await silently(agent, webRequest({ prompt: 'none' }))).to.have.property('code');
  });

  it('that was closed while the user was at the second factor is refused at the application', async () => {
    const agent = createAgent(server);
    const request = webRequest({
      connection: 'customers',
      acr_values: 'http://schemas.openid.net/pape/policies/2007/06/multi-factor',
    });
    const page = await logIn(agent, server, request, CUSTOMER);
    const secret = /(?:[A-Z2-7]{4} ?){8}/.exec(page.text)?.[0].replaceAll(' ', '') ?? '';
    await enable('customers', ['shop', 'app']);
    const { action, fields } = readForm(page, 'code');
    const posted = await agent.request(action, { form: { ...fields, code: codeOf(secret) } });
    const done = await follow(agent, posted, server.url);
    expect(responseOf(done)).to.include({ error: 'access_denied', state: 'the-state' });
    await enable('customers', ['web', 'shop', 'app']);
    await server.store.collection('authenticators').deleteBy('user', customerId);
  });

  it('opens the account page by an application that has the connection', async () => {
    const agent = createAgent(server);
    await enable('customers', ['web', 'spa', 'shop', 'app']);
    const request = spaRequest(challenge, { connection: 'customers' });
    expect(responseOf(await logIn(agent, server, request, CUSTOMER))).to.have.property('code');
    expect(responseOf(await authorize(agent, webRequest()))).to.have.property('code');
    await enable('customers', ['web', 'shop', 'app']);
    const account = async () => (await follow(agent, await agent.get('/account'), server.url)).text;
    expect(await account()).to.contain(CUSTOMER.email);
    const prefer = (id: string | null) =>
      managed(server, 'PATCH', '/tenants/settings', { account_page: { client_id: id } });
    expect((await prefer('spa')).status).to.equal(200);
    const other = await customer();
    expect((await follow(other, await other.get('/account'), server.url)).text).to.contain(CUSTOMER.email);
    expect((await prefer(null)).status).to.equal(200);
  });

  it('of which the connection is not known is for an organization that has all of the user’s', async () => {
    const organization = 'org_acme';
    const connection_id = await connectionId('customers');
    const on = { connection_id, assign_membership_on_login: false };
    await managed(server, 'POST', `/organizations/${organization}/enabled_connections`, on);
    await managed(server, 'POST', `/organizations/${organization}/members`, { members: [customerId] });
    const { refresh_token } = await ask({
      grant_type: REALM,
      realm: 'customers',
      client_id: 'app',
      username: CUSTOMER.email,
      password: CUSTOMER.password,
      scope: 'openid offline_access',
      organization,
    });
    // As one that was moved from another tenant.
    const artifacts = server.store.collection('artifacts');
    for (const { id, model } of (await artifacts.list({ limit: 1000 })).records)
      if (model === 'Grant')
        await artifacts.update(id, (one) => ({ ...one, payload: { ...one.payload, connection: undefined } }));
    const opened = async () => open(webRequest({ organization }), await transfer('app', refresh_token));
    expect(responseOf(await opened())).to.have.property('code');
    await managed(server, 'DELETE', `/organizations/${organization}/enabled_connections/${connection_id}`);
    expect(responseOf(await opened())).to.include({ error: 'access_denied' });
  });

  it('of a removed connection is not one of another connection that has its name later', async () => {
    expect(await server.users.link(employeeId, customerId)).not.to.equal(undefined);
    const agent = await customer();
    const removed = await managed(server, 'DELETE', `/connections/${await connectionId('customers')}`);
    expect(removed.status).to.equal(202);
    await until(async () => {
      const left = await server.store.collection('identities').findBy('connection', 'customers');
      const { records } = await server.store.collection('documents').list({ limit: 100 });
      return left.length === 0 && records.every(({ kind }) => kind !== 'connection-removal');
    });
    const again = { name: 'customers', strategy: 'auth0', enabled_clients: ['spa', 'app', 'web'] };
    expect((await managed(server, 'POST', '/connections', again)).status).to.equal(201);
    expect((await silently(agent)).error).to.equal('login_required');
    await enable('customers', ['web', 'shop', 'app']);
  });

  describe('of a user whom an Action has named by their id', () => {
    before(async () => {
      const code = `exports.onExecuteCustomTokenExchange = async (event, api) => {
        if (event.client.client_id === 'desk') api.authentication.setActor({ sub: 'agent-7' });
        api.authentication.setUserById(event.transaction.subject_token);
      };`;
      const supported_triggers = [{ id: 'custom-token-exchange', version: 'v1' }];
      const made = await managed(server, 'POST', '/actions/actions', {
        name: 'desk',
        supported_triggers,
        code,
      });
      const action_id = made.body.id;
      await managed(server, 'POST', `/actions/actions/${action_id}/deploy`);
      const profile = { name: 'desk', subject_token_type: SUBJECT, action_id, type: 'custom_authentication' };
      expect((await managed(server, 'POST', '/token-exchange-profiles', profile)).status).to.equal(201);
    });
    beforeEach(async () => {
      if ((await server.users.identitiesOf(employeeId)).length === 1)
        await server.users.link(employeeId, customerId);
    });
    const exchange = (client_id: string, over: object) =>
      ask({
        grant_type: EXCHANGE,
        client_id,
        subject_token: employeeId,
        subject_token_type: SUBJECT,
        ...over,
      });

    it('opens only applications that have all of the user’s connections', async () => {
      const { refresh_token } = await exchange('app', { scope: 'openid offline_access' });
      const opened = async (params: Record<string, string>) =>
        open(params, await transfer('app', refresh_token));
      expect((await opened(spaRequest(challenge))).text, 'no customers').to.contain('name="password"');
      expect(responseOf(await opened(webRequest()))).to.have.property('code');
    });

    it('and for whom somebody acts, opens applications that the user could log in to', async () => {
      const audience = audienceOfTransfer();
      const opened = async (params: Record<string, string>) =>
        open(params, (await exchange('desk', { audience })).access_token);
      expect(responseOf(await opened(spaRequest(challenge)))).to.have.property('code');
      expect(responseOf(await opened(webRequest({ client_id: 'shop' })))).to.have.property('code');
      const elsewhere = await opened(webRequest({ client_id: 'code-only' }));
      expect(responseOf(elsewhere)).not.to.have.property('code');
    });
  });
});
