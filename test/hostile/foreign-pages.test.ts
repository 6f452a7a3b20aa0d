// Requests that a foreign page makes a user's browser send: forms and simple scripts need no preflight.
import { expect } from 'chai';
import { tenant } from '../connections/passwordless/tenant.ts';
import { createAgent } from '../support/agent.ts';
import { SPA_CALLBACK, USER } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';

const FOREIGN = 'https://evil.example';

describe('a foreign page', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer({ tenant });
  });
  after(() => server.stop());

  const forged = (path: string, headers: Record<string, string>, form: Record<string, string> = {}) =>
    createAgent(server).request(path, { form: { client_id: 'spa', ...form }, headers });

  it('cannot send what applications call from their pages', async () => {
    const called = server.tenant.routes.filter(
      ({ cors, methods }) => ['applications', 'clients'].includes(cors) && methods.includes('POST'),
    );
    expect(called.map(({ path }) => path)).to.include.members([
      '/oauth/token',
      '/passwordless/start',
      '/passwordless/verify',
      '/dbconnections/signup',
      '/dbconnections/change_password',
      '/co/authenticate',
      '/mfa/challenge',
    ]);
    for (const { path } of called) {
      for (const site of ['cross-site', 'same-site']) {
        for (const origin of [FOREIGN, 'null']) {
          const answer = await forged(path.replaceAll(/:\w+/g, 'x'), { origin, 'sec-fetch-site': site });
          expect(answer.status, `${path} from ${origin}, ${site}`).to.equal(403);
          expect(answer.headers['set-cookie'], path).to.equal(undefined);
        }
      }
    }
  });

  it("cannot lock the owner out with wrong passwords from the owner's own browser", async () => {
    const fields = {
      grant_type: 'http://auth0.com/oauth/grant-type/password-realm',
      realm: 'users',
      username: USER.email,
      client_id: 'web',
      client_secret: 'web-secret',
    };
    const headers = { origin: FOREIGN, 'sec-fetch-site': 'cross-site' };
    for (let i = 0; i < 120; i++) await forged('/oauth/token', headers, { ...fields, password: 'wrong' });
    const own = await createAgent(server).request('/oauth/token', {
      json: { ...fields, password: USER.password },
    });
    expect(own.status).to.equal(200);
  });

  it("is not assumed where the application's page, the server's own page or a program sends the request", async () => {
    for (const headers of [
      { origin: new URL(SPA_CALLBACK).origin, 'sec-fetch-site': 'cross-site' },
      { origin: server.url, 'sec-fetch-site': 'same-origin' },
      { 'sec-fetch-site': 'none' },
      { origin: FOREIGN },
      {},
    ] as Record<string, string>[]) {
      const answer = await createAgent(server).request('/passwordless/start', {
        json: { client_id: 'spa', connection: 'email', email: 'somebody@example.test', send: 'code' },
        headers,
      });
      expect(answer.status, JSON.stringify(headers)).to.equal(200);
    }
  });
});
