// Another Gatehouse as the OpenID provider of a connection: two servers, one browser.
import tls from 'node:tls';
import { expect } from 'chai';
import { type Agent, createAgent, readForm } from '../../support/agent.ts';
import {
  authorize,
  follow,
  payload,
  responseOf,
  tenant,
  USER,
  WEB_CALLBACK,
  webRequest,
} from '../../support/flows.ts';
import { startServer, type TestServer } from '../../support/server.ts';

describe('another Gatehouse as an OpenID provider', () => {
  const trusted = tls.getCACertificates('default');
  let upstream: TestServer;
  let server: TestServer;

  before(async () => {
    upstream = await startServer({ tenant });
    // For a process, NODE_EXTRA_CA_CERTS does the same.
    tls.setDefaultCACertificates([...trusted, upstream.ca]);
    const options = {
      type: 'back_channel',
      discovery_url: `${upstream.url}/.well-known/openid-configuration`,
      client_id: 'web',
      client_secret: 'web-secret',
      scope: 'openid profile email',
    };
    server = await startServer({
      tenant: {
        ...tenant,
        tenant: { ...tenant.tenant, allowed_logout_urls: ['https://home.example.test/'] },
        users: [],
        connections: [{ name: 'gatehouse', strategy: 'oidc', enabled_clients: ['web'], options }],
      },
    });
    const clients = upstream.store.collection('clients');
    await clients.update('web', (client) => ({
      ...client,
      callbacks: [WEB_CALLBACK, `${server.url}/login/callback`],
      allowed_logout_urls: [`${server.url}/logout/callback`],
    }));
  });
  after(async () => {
    await server?.stop();
    await upstream?.stop();
    tls.setDefaultCACertificates(trusted);
  });

  /** Logs in at the provider and comes back. */
  const logIn = async (agent: Agent, there: Agent) => {
    const away = await authorize(agent, webRequest({ connection: 'gatehouse', login_hint: USER.email }));
    const page = await follow(there, await there.get(away.location), upstream.url);
    const { action, fields } = readForm(page, 'password');
    const formAnswer = await there.request(action, {
      form: { ...fields, username: USER.email, password: USER.password },
    });
    const back = await follow(there, formAnswer, upstream.url);
    const end = await follow(agent, await agent.get(back.location), server.url);
    return { away: new URL(away.location), end };
  };

  it('logs its users in', async () => {
    const agent = createAgent(server);
    const { away, end } = await logIn(agent, createAgent(upstream));
    expect(`${away.origin}${away.pathname}`).to.equal(`${upstream.url}/authorize`);
    const { state, nonce, code_challenge, ...requestParameters } = Object.fromEntries(away.searchParams);
    expect([state, nonce, code_challenge].every((one) => /^[\w-]{43}$/.test(one ?? ''))).to.equal(true);
    expect(requestParameters).to.deep.equal({
      response_type: 'code',
      client_id: 'web',
      redirect_uri: `${server.url}/login/callback`,
      scope: 'openid profile email',
      code_challenge_method: 'S256',
      login_hint: USER.email,
    });
    const answer = await agent.request('/oauth/token', {
      form: {
        grant_type: 'authorization_code',
        code: responseOf(end).code ?? '',
        redirect_uri: WEB_CALLBACK,
        client_id: 'web',
        client_secret: 'web-secret',
      },
    });
    const there = await upstream.users.findInConnection({ name: 'users' }, USER.email);
    expect(payload(answer.json().id_token)).to.include({
      iss: server.issuer,
      sub: `oidc|gatehouse|${there?.id}`,
      email: USER.email,
      email_verified: true,
    });
  });

  it('ends its session on a federated logout', async () => {
    const agent = createAgent(server);
    const there = createAgent(upstream);
    await logIn(agent, there);
    const out = `/v2/logout?federated&returnTo=${encodeURIComponent('https://home.example.test/')}`;
    const away = new URL((await agent.get(out)).location);
    expect(`${away.origin}${away.pathname}`).to.equal(`${upstream.url}/oidc/logout`);
    expect(payload(away.searchParams.get('id_token_hint') ?? '')).to.include({ aud: 'web' });
    const back = await follow(there, await there.get(away.href), upstream.url);
    expect(back.location).to.match(/\/logout\/callback\?state=/);
    expect((await agent.get(back.location)).location).to.equal('https://home.example.test/');
    // The provider asks for the password again.
    const again = await authorize(agent, webRequest({ connection: 'gatehouse' }));
    expect((await follow(there, await there.get(again.location), upstream.url)).text).to.include('password');
  });
});
