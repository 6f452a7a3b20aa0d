// Another Gatehouse as the provider of a custom social connection: two servers, one browser.
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

/** As published for providers of OpenID Connect. */
const script = (url: string) => `function(accessToken, ctx, cb) {
  request.get('${url}/userinfo', { headers: { Authorization: 'Bearer ' + accessToken } }, function(err, resp, body) {
    if (err) { return cb(err); }
    if (resp.statusCode !== 200) { return cb(new Error(body)); }
    var bodyParsed;
    try { bodyParsed = JSON.parse(body); } catch (jsonError) { return cb(new Error(body)); }
    cb(null, {
      user_id: bodyParsed.sub,
      email: bodyParsed.email,
      email_verified: bodyParsed.email_verified,
      name: bodyParsed.name,
    });
  });
}`;

describe('another Gatehouse as the provider', () => {
  const trusted = tls.getCACertificates('default');
  let upstream: TestServer;
  let server: TestServer;

  before(async () => {
    upstream = await startServer({ tenant });
    // As NODE_EXTRA_CA_CERTS does for a process.
    tls.setDefaultCACertificates([...trusted, upstream.ca]);
    const options = {
      authorizationURL: `${upstream.url}/authorize`,
      tokenURL: `${upstream.url}/oauth/token`,
      client_id: 'web',
      client_secret: 'web-secret',
      scope: 'openid profile email',
      pkce_enabled: true,
      logoutUrl: `${upstream.url}/v2/logout`,
      scripts: { fetchUserProfile: script(upstream.url) },
    };
    server = await startServer({
      tenant: {
        ...tenant,
        tenant: { ...tenant.tenant, allowed_logout_urls: ['https://home.example.test/'] },
        users: [],
        connections: [{ name: 'gatehouse', strategy: 'oauth2', enabled_clients: ['web'], options }],
      },
    });
    // The application there is our callback.
    const clients = upstream.store.collection('clients');
    await clients.update('web', (client) => ({
      ...client,
      callbacks: [WEB_CALLBACK, `${server.url}/login/callback`],
    }));
  });
  after(async () => {
    await server?.stop();
    await upstream?.stop();
    tls.setDefaultCACertificates(trusted);
  });

  /** Logs in there, and comes back here. */
  const logIn = async (agent: Agent, there: Agent) => {
    const away = await authorize(agent, webRequest({ connection: 'gatehouse' }));
    expect(new URL(away.location).origin).to.equal(upstream.url);
    const page = await follow(there, await there.get(away.location), upstream.url);
    const { action, fields } = readForm(page, 'password');
    const posted = await there.request(action, {
      form: { ...fields, username: USER.email, password: USER.password },
    });
    const back = await follow(there, posted, upstream.url);
    expect(new URL(back.location).searchParams.get('iss')).to.equal(upstream.issuer);
    return follow(agent, await agent.get(back.location), server.url);
  };

  it('logs its users in here', async () => {
    const agent = createAgent(server);
    const { code } = responseOf(await logIn(agent, createAgent(upstream)));
    const answer = await agent.request('/oauth/token', {
      form: {
        grant_type: 'authorization_code',
        code: code ?? '',
        redirect_uri: WEB_CALLBACK,
        client_id: 'web',
        client_secret: 'web-secret',
      },
    });
    const there = await upstream.users.findInConnection({ name: 'users' }, USER.email);
    expect(payload(answer.json().id_token)).to.include({
      iss: server.issuer,
      sub: `oauth2|gatehouse|${there?.id}`,
      email: USER.email,
      email_verified: true,
    });
  });

  it('is logged out of, too, where the application asks for that', async () => {
    const agent = createAgent(server);
    await logIn(agent, createAgent(upstream));
    const away = new URL(
      (await agent.get(`/v2/logout?federated&returnTo=${encodeURIComponent('https://home.example.test/')}`))
        .location,
    );
    expect(`${away.origin}${away.pathname}`).to.equal(`${upstream.url}/v2/logout`);
    const back = away.searchParams.get('returnTo') ?? '';
    expect(back.startsWith(`${server.url}/logout/callback?state=`)).to.equal(true);
    expect((await agent.get(back)).location).to.equal('https://home.example.test/');
  });

  for (const [what, change] of [
    ['of another issuer', (query: URLSearchParams) => query.set('iss', 'https://evil.example.test/')],
    ['of an issuer that is no address', (query: URLSearchParams) => query.set('iss', 'evil')],
  ] as [string, (query: URLSearchParams) => void][]) {
    it(`gives no login by an answer ${what}`, async () => {
      const agent = createAgent(server);
      const away = await authorize(agent, webRequest({ connection: 'gatehouse' }));
      const query = new URLSearchParams({
        code: 'c',
        state: new URL(away.location).searchParams.get('state') ?? '',
      });
      change(query);
      const told = responseOf(await follow(agent, await agent.get(`/login/callback?${query}`), server.url));
      expect(told).to.include({
        error: 'access_denied',
        error_description: 'The answer is of another identity provider.',
      });
    });
  }
});
