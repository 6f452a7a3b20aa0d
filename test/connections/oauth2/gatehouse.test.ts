// Another Gatehouse as the provider of a custom social connection, with the two tenant files of config/examples.
import tls from 'node:tls';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { loadTenantFile } from '../../../src/tenant/load.ts';
import { type Agent, createAgent, readForm } from '../../support/agent.ts';
import { authorize, follow, payload, pkce, responseOf } from '../../support/flows.ts';
import { startServer, type TestServer } from '../../support/server.ts';

const file = (name: string) => fileURLToPath(new URL(`../../../config/examples/${name}`, import.meta.url));
const SECRET = 'a-secret-of-the-provider';
const USER = { email: 'grace@example.test', password: 'Correct-Horse-1' };
const HOME = 'http://localhost:5173';
const CALLBACK = 'http://localhost:5173/callback';

describe('another Gatehouse as an OAuth 2.0 provider', () => {
  const trusted = tls.getCACertificates('default');
  let upstream: TestServer;
  let server: TestServer;

  before(async () => {
    const example = async (name: string, env: Record<string, string>) =>
      (await loadTenantFile(file(name), { PROVIDER_SECRET: SECRET, ...env })).tenant;
    upstream = await startServer({
      tenant: await example('oauth2-provider.yaml', { GATEHOUSE: 'https://localhost:1' }),
    });
    // For a process, NODE_EXTRA_CA_CERTS does the same.
    tls.setDefaultCACertificates([...trusted, upstream.ca]);
    server = await startServer({ tenant: await example('oauth2.yaml', { PROVIDER: upstream.url }) });
    // The port of the second server is only known now.
    await upstream.store.collection('clients').update('harbour-books', (client) => ({
      ...client,
      callbacks: [`${server.url}/login/callback`],
      allowed_logout_urls: [`${server.url}/logout/callback`],
    }));
  });
  after(async () => {
    await server?.stop();
    await upstream?.stop();
    tls.setDefaultCACertificates(trusted);
  });

  const { verifier, challenge } = pkce();
  const request = {
    client_id: 'books',
    response_type: 'code',
    redirect_uri: CALLBACK,
    scope: 'openid profile email',
    connection: 'harbour-id',
    code_challenge: challenge,
    code_challenge_method: 'S256',
  };

  /** Logs in at the provider and comes back. */
  const logIn = async (agent: Agent, there: Agent) => {
    const away = await authorize(agent, request);
    expect(new URL(away.location).origin).to.equal(upstream.url);
    const page = await follow(there, await there.get(away.location), upstream.url);
    const { action, fields } = readForm(page, 'password');
    const formAnswer = await there.request(action, {
      form: { ...fields, username: USER.email, password: USER.password },
    });
    const back = await follow(there, formAnswer, upstream.url);
    expect(new URL(back.location).searchParams.get('iss')).to.equal(upstream.issuer);
    return follow(agent, await agent.get(back.location), server.url);
  };

  it('logs its users in', async () => {
    const agent = createAgent(server);
    const { code } = responseOf(await logIn(agent, createAgent(upstream)));
    const answer = await agent.request('/oauth/token', {
      form: {
        grant_type: 'authorization_code',
        code: code ?? '',
        redirect_uri: CALLBACK,
        client_id: 'books',
        code_verifier: verifier,
      },
    });
    const there = await upstream.users.findInConnection({ name: 'people' }, USER.email);
    expect(payload(answer.json().id_token)).to.include({
      iss: server.issuer,
      sub: `oauth2|harbour-id|${there?.id}`,
      email: USER.email,
      email_verified: true,
    });
  });

  it('ends its session on a federated logout', async () => {
    const agent = createAgent(server);
    const there = createAgent(upstream);
    await logIn(agent, there);
    const away = new URL(
      (await agent.get(`/v2/logout?federated&client_id=books&returnTo=${encodeURIComponent(HOME)}`)).location,
    );
    expect(`${away.origin}${away.pathname}`).to.equal(`${upstream.url}/v2/logout`);
    const { location: back } = await there.get(away.href);
    expect(back.startsWith(`${server.url}/logout/callback?state=`)).to.equal(true);
    expect((await agent.get(back)).location).to.equal(`${HOME}/`);
    // The provider asks for the password again.
    const again = await authorize(agent, request);
    expect((await follow(there, await there.get(again.location), upstream.url)).text).to.contain(
      'name="password"',
    );
  });

  for (const [what, change] of [
    ['of another issuer', (query: URLSearchParams) => query.set('iss', 'https://evil.example.test/')],
    ['of an issuer that is not a URL', (query: URLSearchParams) => query.set('iss', 'evil')],
  ] as [string, (query: URLSearchParams) => void][]) {
    it(`rejects an authorization response ${what}`, async () => {
      const agent = createAgent(server);
      const away = await authorize(agent, request);
      const query = new URLSearchParams({
        code: 'c',
        state: new URL(away.location).searchParams.get('state') ?? '',
      });
      change(query);
      const outcome = responseOf(
        await follow(agent, await agent.get(`/login/callback?${query}`), server.url),
      );
      expect(outcome).to.include({
        error: 'access_denied',
        error_description: 'The answer is of another identity provider.',
      });
    });
  }
});
