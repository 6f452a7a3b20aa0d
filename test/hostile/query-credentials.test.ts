// Credentials in the query of a request whose endpoint takes them in the body (RFC 6749 §2.3.1, §3.2): logs, histories and
// Referer headers keep queries.
import { expect } from 'chai';
import { createAgent } from '../support/agent.ts';
import { API, logIn, responseOf, tenant, USER, WEB_CALLBACK, webRequest } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';

const WEB = { client_id: 'web', client_secret: 'web-secret' };
const M2M = { client_id: 'm2m', client_secret: 'm2m-secret' };

describe('a credential in the query', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer({ tenant });
  });
  after(() => server.stop());

  /** A request that succeeds by its form, and the names of its credentials. */
  type Case = {
    path: string;
    form: () => Promise<Record<string, string>>;
    credentials: string[];
    success?: number;
  };
  const code = async () => {
    const { code: issued = '' } = responseOf(await logIn(createAgent(server), server, webRequest()));
    return issued;
  };
  const CASES: Case[] = [
    {
      path: '/oauth/token',
      form: async () => ({ grant_type: 'client_credentials', audience: API, ...M2M }),
      credentials: ['client_secret'],
    },
    {
      path: '/oauth/token',
      form: async () => ({ grant_type: 'password', username: USER.email, password: USER.password, ...WEB }),
      credentials: ['password', 'client_secret'],
    },
    {
      path: '/oauth/token',
      form: async () => ({
        grant_type: 'authorization_code',
        code: await code(),
        redirect_uri: WEB_CALLBACK,
        ...WEB,
      }),
      credentials: ['code', 'client_secret'],
    },
    { path: '/oauth/revoke', form: async () => ({ token: 'x', ...WEB }), credentials: ['client_secret'] },
    {
      path: '/oauth/par',
      form: async () => ({ ...webRequest(), ...WEB }),
      credentials: ['client_secret'],
      success: 201,
    },
    {
      path: '/dbconnections/signup',
      form: async () => ({
        client_id: 'web',
        connection: 'users',
        email: `in-the-query-${Math.random()}@example.test`,
        password: USER.password,
      }),
      credentials: ['password'],
    },
  ];

  for (const { path, form, credentials, success = 200 } of CASES) {
    it(`is not read at ${path}: ${credentials.join(', ')}`, async () => {
      const control = await createAgent(server).request(path, { form: await form() });
      expect(control.status, control.text).to.equal(success);
      for (const name of credentials) {
        const { [name]: value = '', ...rest } = await form();
        const query = new URLSearchParams({ [name]: value });
        const answer = await createAgent(server).request(`${path}?${query}`, { form: rest });
        expect(answer.status, `${name}: ${answer.text}`).to.be.within(400, 403);
        expect(answer.text).not.to.contain('access_token').and.not.to.contain(value);
      }
    });
  }
});
