// Users who are created while their connection is deleted: they must not become users of the next connection of that name.
import type { ServerResponse } from 'node:http';
import { expect } from 'chai';
import { OTP_GRANT, tenant } from '../connections/passwordless/tenant.ts';
import { startManaged } from '../management/support.ts';
import { type Provider, startProvider } from '../scripts/support.ts';
import { createAgent } from '../support/agent.ts';
import { token } from '../support/flows.ts';
import { nextMessageTo } from '../support/inbox.ts';
import type { TestServer } from '../support/server.ts';
import { until } from '../support/wait-until.ts';
import { bindActions, managed } from './support.ts';

const PASSWORD = 'Good-Enough-1';

describe('a user who is created while an action runs', () => {
  let server: TestServer;
  let crm: Provider;
  let waiting: ServerResponse[];
  beforeEach(async () => {
    waiting = [];
    crm = await startProvider({ '/crm': (_request, response) => void waiting.push(response) });
    server = await startManaged(tenant);
    await bindActions(server, 'pre-user-registration', {
      code: `exports.onExecutePreUserRegistration = async () => { await fetch('${crm.url}/crm'); };`,
    });
  });
  afterEach(async () => {
    await crm.stop();
    await server.stop();
  });

  /** Creates a connection that the web application uses. @returns its id. */
  const connect = async (name: string, strategy: string, options: object = {}) => {
    const body = { name, strategy, enabled_clients: ['web'], options };
    const made = await managed(server, 'POST', '/connections', body);
    expect(made.status, JSON.stringify(made.body)).to.equal(201);
    return made.body.id as string;
  };
  /** Replaces a connection by another of the same name, in which nobody signs up, while the action of a request runs. */
  const replaceDuring = async <T>(request: Promise<T>, id: string, name: string, strategy: string) => {
    await until(() => waiting.length === 1);
    expect((await managed(server, 'DELETE', `/connections/${id}`)).status).to.equal(202);
    const create = () =>
      managed(server, 'POST', '/connections', { name, strategy, options: { disable_signup: true } });
    await until(async () => (await create()).status === 201);
    waiting[0]?.end();
    return request;
  };
  const identitiesIn = (name: string) => server.store.collection('identities').findBy('connection', name);

  it('by a sign-up is no user of the next connection of the name', async () => {
    const id = await connect('short-lived', 'auth0');
    const json = {
      client_id: 'web',
      connection: 'short-lived',
      email: 'late@example.test',
      password: PASSWORD,
    };
    const signUp = createAgent(server).request('/dbconnections/signup', { json });
    const answer = await replaceDuring(signUp, id, 'short-lived', 'auth0');
    expect(answer.status, answer.text).to.equal(400);
    expect(await identitiesIn('short-lived')).to.deep.equal([]);
    expect(await server.users.withEmail('late@example.test')).to.deep.equal([]);
  });

  it('by POST /users is no user of the next connection of the name', async () => {
    const id = await connect('short-lived', 'auth0');
    const body = { connection: 'short-lived', email: 'late@example.test', password: PASSWORD };
    const answer = await replaceDuring(managed(server, 'POST', '/users', body), id, 'short-lived', 'auth0');
    expect(answer.status).to.equal(400);
    expect(answer.body).to.include({ message: 'The connection does not exist.' });
    expect(await identitiesIn('short-lived')).to.deep.equal([]);
  });

  it('by a first login with a code is no user of the next connection of the name', async () => {
    const id = await connect('short-lived', 'email');
    const email = 'late@example.test';
    const secret = { client_id: 'web', client_secret: 'web-secret' };
    const json = { ...secret, connection: 'short-lived', email, send: 'code' };
    expect((await createAgent(server).request('/passwordless/start', { json })).status).to.equal(200);
    const { code: otp } = await nextMessageTo(server, email, 1, 'code');
    const logIn = token(createAgent(server), {
      grant_type: OTP_GRANT,
      ...secret,
      realm: 'short-lived',
      username: email,
      otp,
      scope: 'openid email',
    });
    const answer = await replaceDuring(logIn, id, 'short-lived', 'email');
    expect(answer.status, answer.text).to.equal(400);
    expect(await identitiesIn('short-lived')).to.deep.equal([]);
  });
});
