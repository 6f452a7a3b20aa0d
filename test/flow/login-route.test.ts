// The page of a login request that is over.
import { expect } from 'chai';
import { createAgent } from '../support/agent.ts';
import {
  authorize,
  tenant as base,
  follow,
  pkce,
  spaRequest,
  submitLogin,
  USER,
  webRequest,
} from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { tenantWith } from '../support/tenant.ts';

describe('the page of a login request that is over', () => {
  let server: TestServer;
  const start = async (more: object) => {
    server = await startServer({
      tenant: tenantWith({
        change: { spa: { initiate_login_uri: 'https://app.test/login?from=us' } },
        tenant: { ...base.tenant, ...more },
      }),
    });
  };
  afterEach(() => server?.stop());

  const begun = async (request = spaRequest(pkce().challenge)) => {
    const agent = createAgent(server);
    const page = await follow(agent, await authorize(agent, request), server.url);
    const { pathname } = new URL((await authorize(agent, request)).location);
    return { agent, page, pathname };
  };
  const route = (address: string) => `${address}iss=${encodeURIComponent(server.issuer)}`;

  it('leads to where the application begins a login, with iss: used up, idle, or by its form', async () => {
    await start({ default_redirection_uri: 'https://tenant.test/start' });
    const used = createAgent(server);
    const request = spaRequest(pkce().challenge);
    const begin = await authorize(used, request);
    const page = await follow(used, begin, server.url);
    expect((await submitLogin(used, server, page, USER)).location).to.contain('code=');
    const expected = route('https://app.test/login?from=us&');
    const back = await used.get(new URL(begin.location).pathname);
    expect([back.status, back.location]).to.deep.equal([302, expected]);
    const { agent, pathname } = await begun();
    server.tick(25 * 3600 * 1000);
    expect((await agent.get(pathname)).location).to.equal(expected);
    const sent = await agent.request(`${pathname}/login`, { form: { email: 'a@b.test', password: 'x' } });
    expect([sent.status, sent.location]).to.deep.equal([303, expected]);
  });

  it('leads there from the page of a second tab, after a logout in the first', async () => {
    await start({});
    const agent = createAgent(server);
    const request = spaRequest(pkce().challenge);
    const first = await follow(agent, await authorize(agent, request), server.url);
    await submitLogin(agent, server, first, USER);
    const second = await authorize(agent, { ...request, prompt: 'login' });
    const { pathname } = new URL(second.location);
    expect((await agent.get(pathname)).status).to.equal(200);
    await agent.get('/v2/logout');
    expect((await agent.get(pathname)).location).to.equal(route('https://app.test/login?from=us&'));
  });

  it('leads there from a pushed request that was used, to which Back leads', async () => {
    await start({ default_redirection_uri: 'https://tenant.test/start' });
    const agent = createAgent(server);
    const form = { ...webRequest(), client_secret: 'web-secret' };
    const { request_uri } = (await agent.request('/oauth/par', { form })).json();
    const begin = await authorize(agent, { client_id: 'web', request_uri });
    await submitLogin(agent, server, await follow(agent, begin, server.url), USER);
    const back = await authorize(agent, { client_id: 'web', request_uri });
    expect([back.status, back.location]).to.deep.equal([302, route('https://tenant.test/start?')]);
    const other = await authorize(agent, { client_id: 'web', request_uri: 'https://evil.example/request' });
    expect(other.location).not.to.contain('tenant.test');
  });

  it('leads to the address of the tenant for an application without one, and for a request that is forgotten', async () => {
    await start({ default_redirection_uri: 'https://tenant.test/start' });
    const { agent, pathname } = await begun(webRequest());
    server.tick(25 * 3600 * 1000);
    const expected = route('https://tenant.test/start?');
    expect((await agent.get(pathname)).location).to.equal(expected);
    expect((await agent.get(`/u/${'a'.repeat(43)}`)).location).to.equal(expected);
  });

  it('is an error page where there is no address, and in a browser without cookies, which would come back for ever', async () => {
    await start({});
    const { agent, pathname } = await begun(webRequest());
    server.tick(25 * 3600 * 1000);
    expect((await agent.get(pathname)).status).to.equal(400);
    const { pathname: other } = await begun();
    expect((await createAgent(server).get(other)).status).to.equal(400);
  });
});
