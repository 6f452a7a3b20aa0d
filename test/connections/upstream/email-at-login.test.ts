// `email` at /userinfo of users of external providers, whose record a later login changes.
import { expect } from 'chai';
import { createAgent } from '../../support/agent.ts';
import { API, responseOf, tenant, token, WEB_CALLBACK } from '../../support/flows.ts';
import { type OAuth2Provider, optionsFor, startProvider } from '../../support/oauth2-provider.ts';
import { startServer, type TestServer } from '../../support/server.ts';
import { fromProvider, toProvider } from '../../support/upstream-login.ts';

describe('the e-mail address at /userinfo of a user of an external provider', () => {
  let provider: OAuth2Provider;
  let server: TestServer;
  before(async () => {
    provider = await startProvider();
    server = await startServer({
      tenant: {
        ...tenant,
        connections: [
          { name: 'acme', strategy: 'oauth2', enabled_clients: ['web'], options: optionsFor(provider) },
        ],
      },
    });
  });
  after(async () => {
    await server?.stop();
    await provider?.stop();
  });

  const tokenOf = async (email: string, audience = '') => {
    provider.user = { id: 7, email, email_verified: true, name: 'Grace' };
    const agent = createAgent(server);
    const request = { scope: 'openid profile email', ...(audience !== '' && { audience }) };
    const { code } = responseOf(await fromProvider(server, await toProvider(server, request, agent)));
    const answer = await token(agent, {
      grant_type: 'authorization_code',
      client_id: 'web',
      client_secret: 'web-secret',
      redirect_uri: WEB_CALLBACK,
      code,
    });
    return String(answer.json().access_token);
  };
  const emailOf = async (accessToken: string) =>
    (await createAgent(server).get('/userinfo', { authorization: `Bearer ${accessToken}` })).json().email;

  for (const [when, milliseconds] of [
    ['later', 5000],
    ['in the same second', 0],
  ] as const) {
    it(`is that of the login that the token is from, when another login ${when} has changed it`, async () => {
      for (const audience of ['', API]) {
        const first = await tokenOf('first@upstream.test', audience);
        server.tick(milliseconds);
        const second = await tokenOf('second@upstream.test', audience);
        expect([await emailOf(first), await emailOf(second)]).to.deep.equal([
          'first@upstream.test',
          'second@upstream.test',
        ]);
      }
    });
  }
});
