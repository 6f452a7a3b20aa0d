// The redirect to an external provider and its answer, which is accepted once and only in the same browser.
import { expect } from 'chai';
import { createAgent } from '../../support/agent.ts';
import { authorize, tenant, WEB_CALLBACK, webRequest } from '../../support/flows.ts';
import { json, type OAuth2Provider, optionsFor, startProvider } from '../../support/oauth2-provider.ts';
import { startServer, type TestServer } from '../../support/server.ts';

describe('the answer of an identity provider', () => {
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
  afterEach(() => {
    provider.token = undefined;
  });

  /** Begins a login. @returns the URL that the provider sends the browser back to. */
  const away = async (agent = createAgent(server), more = {}) => {
    const answer = await authorize(agent, webRequest({ connection: 'acme', ...more }));
    const providerAnswer = await fetch(answer.location, { redirect: 'manual' });
    return { agent, at: new URL(answer.location), back: providerAnswer.headers.get('location') ?? '' };
  };
  const failures = async () =>
    (
      await server.store.collection('logs').list({ where: { field: 'type', equals: 'f' }, limit: 500 })
    ).records.map(({ description }) => description);

  it('is requested by a redirect from the authorization endpoint to the provider', async () => {
    const { at } = await away();
    expect(`${at.origin}${at.pathname}`).to.equal(`${provider.url}/authorize`);
    const { state, ...rest } = Object.fromEntries(at.searchParams);
    expect(state).to.match(/^[\w-]{43}$/);
    expect(rest).to.deep.equal({
      response_type: 'code',
      client_id: 'gatehouse',
      redirect_uri: `${server.url}/login/callback`,
      scope: 'profile email',
    });
  });

  it('is refused where it has a token in its query, which logs and the history keep; the login still waits', async () => {
    const { agent, back } = await away();
    for (const name of ['id_token', 'access_token', 'SAMLResponse']) {
      const url = new URL(back);
      url.searchParams.set(name, 'x.y.z');
      expect((await agent.get(url.href)).status, name).to.equal(400);
      const form = Object.fromEntries(new URL(back).searchParams);
      const posted = await agent.request(`/login/callback?${name}=x.y.z`, { form });
      expect(posted.status, `${name} at a post`).to.equal(400);
    }
    expect((await agent.get(back)).status).to.equal(303);
  });

  it('reaches the application as an error when the provider refuses, and is recorded', async () => {
    const { agent, at } = await away();
    const state = at.searchParams.get('state');
    provider.token = (response) => json(response, { error: 'invalid_client' }, 401);
    const query = new URLSearchParams({
      state: state ?? '',
      error: 'access_denied',
      error_description: 'No "way"',
    });
    const on = await agent.get(`/login/callback?${query}`);
    expect(on.status).to.equal(303);
    const resumed = await agent.get((await agent.get(on.location)).location);
    const back = new URL(resumed.location);
    expect(`${back.origin}${back.pathname}`).to.equal(WEB_CALLBACK);
    expect(back.searchParams.get('error')).to.equal('access_denied');
    expect(back.searchParams.get('error_description')).to.equal('No  way');
    expect(await failures()).to.include('No  way');
  });

  const refused: [string, (back: URL) => string | undefined][] = [
    ['has no state', () => '/login/callback?code=abc'],
    ['has a state that was never given', () => `/login/callback?code=abc&state=${'a'.repeat(43)}`],
    ['has two states', (back) => `/login/callback${back.search}&state=b`],
  ];
  for (const [what, path] of refused) {
    it(`is rejected and recorded when it ${what}`, async () => {
      const { agent, back } = await away();
      const before = (await failures()).length;
      const answer = await agent.get(path(new URL(back)) ?? '');
      expect(answer.status).to.equal(400);
      await server.tick(0);
      expect((await failures()).length).to.equal(before + 1);
    });
  }

  it('is rejected in another browser, and still accepted in its own', async () => {
    const { agent, back } = await away();
    const victim = createAgent(server);
    await away(victim);
    expect((await victim.get(back)).status).to.equal(400);
    expect((await createAgent(server).get(back)).status).to.equal(400);
    expect((await agent.get(back)).status).to.equal(303);
  });

  it('is accepted exactly once when it is sent fifty times at once', async () => {
    const { agent, back } = await away();
    const answers = await Promise.all(Array.from({ length: 50 }, () => agent.get(back)));
    expect(answers.filter(({ status }) => status === 303)).to.have.length(1);
    expect(answers.filter(({ status }) => status === 400)).to.have.length(49);
    expect(
      provider.seen.filter(({ path, form }) => path === '/token' && back.includes(`code=${form.code}&`)),
    ).to.have.length(1);
  });
});
