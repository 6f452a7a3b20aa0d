// Which connection a request's parameters select.
import { expect } from 'chai';
import { createAgent } from '../support/agent.ts';
import { openPage, REALM_GRANT } from '../support/browser-logins.ts';
import { databaseUser } from '../support/database-user.ts';
import { tenant as base, payload, USER, webRequest } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';

const enabled_clients = ['web'];
const tenant = {
  ...base,
  databases: [
    ...base.databases,
    { name: 'archive', enabled_clients, realms: ['archive', 'people'] },
    { name: 'people', enabled_clients },
    { name: 'others', enabled_clients: ['spa'] },
  ],
  connections: [
    { name: 'codes', strategy: 'email', enabled_clients, options: { domain_aliases: ['corp.example'] } },
    { name: 'elsewhere', strategy: 'google-oauth2', enabled_clients },
  ],
};

describe('the connection of a request', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer({ tenant });
    for (const connection of ['people', 'archive']) {
      await server.users.create(
        databaseUser({ connection, email: `${connection}@example.test`, password: USER.password }),
      );
    }
  });
  after(() => server.stop());

  const token = (username: string, realm: string) =>
    createAgent(server).request('/oauth/token', {
      json: {
        grant_type: REALM_GRANT,
        client_id: 'web',
        client_secret: 'web-secret',
        username,
        password: USER.password,
        realm,
        scope: 'openid email',
      },
    });

  it('is the one of that name, even if another has the name as a realm', async () => {
    const answer = await token('people@example.test', 'people');
    expect(payload(answer.json().id_token).email).to.equal('people@example.test');
    expect((await token('archive@example.test', 'people')).status).to.equal(403);
    expect((await token('archive@example.test', 'archive')).status).to.equal(200);
  });

  it('is rejected with one error if it is unknown, not the application’s, or has no passwords', async () => {
    const answers = await Promise.all(
      ['none', 'others', 'codes', 'elsewhere'].map((realm) => token(USER.email, realm)),
    );
    for (const answer of answers) {
      expect(answer.json()).to.deep.equal({
        error: 'invalid_request',
        error_description: 'The connection was not found or is not enabled for this application.',
      });
    }
  });

  it('is the one that declares the domain of login_hint, or else the default one', async () => {
    const page = async (login_hint: string) => {
      const { text } = await openPage(createAgent(server), server, webRequest({ login_hint }));
      return text.includes('name="password"') ? 'password' : 'code';
    };
    expect(await page('ada@CORP.example')).to.equal('code');
    expect(await page('ada@elsewhere.example')).to.equal('password');
    expect(await page('ada@sub.corp.example')).to.equal('password');
    expect(await page('corp.example')).to.equal('password');
  });
});
