// A login at a provider is completed like any other: second factor, organization, a session of another user. Its button is on
// the login pages.
import { expect } from 'chai';
import { factors } from '../../factors/tenant.ts';
import { createAgent } from '../../support/agent.ts';
import { authorize, follow, logIn, responseOf, tenant, webRequest } from '../../support/flows.ts';
import { type OAuth2Provider, optionsFor, startProvider } from '../../support/oauth2-provider.ts';
import { startServer, type TestServer } from '../../support/server.ts';
import { fromProvider, logInUpstream, toProvider } from '../../support/upstream-login.ts';

describe('a login at a provider', () => {
  let provider: OAuth2Provider;
  let server: TestServer;
  before(async () => {
    provider = await startProvider();
    const options = optionsFor(provider);
    const of = (name: string, enabled_clients: string[], more: object = {}) => ({
      name,
      strategy: 'oauth2',
      enabled_clients,
      options: { ...options, ...more },
    });
    server = await startServer({
      tenant: {
        ...tenant,
        clients: [
          ...tenant.clients,
          ...['one-way', 'two-ways'].map((client_id) => ({
            client_id,
            name: client_id,
            app_type: 'regular_web',
            organization_usage: 'allow',
            client_secret: 'their-secret',
            callbacks: ['http://localhost:3001/callback'],
            grant_types: ['authorization_code'],
          })),
        ],
        guardianFactors: factors('otp'),
        organizations: [
          { id: 'org_acme', name: 'acme', connections: [{ name: 'acme' }] },
          { id: 'org_auto', name: 'auto', connections: [{ name: 'acme', assign_membership_on_login: true }] },
        ],
        connections: [
          of('acme', ['web', 'one-way', 'two-ways'], { domain_aliases: ['acme.test'] }),
          of('second', ['two-ways'], { icon_url: 'https://idp.example.test/i.svg' }),
          of('foreign', ['spa']),
        ],
      },
    });
  });
  after(async () => {
    await server?.stop();
    await provider?.stop();
  });
  beforeEach(() => {
    provider.user = { id: 42, email: 'grace@upstream.test', email_verified: true };
  });

  const isAway = (location: string) => location.startsWith(`${provider.url}/authorize?`);

  it('requires the second factor of the user', async () => {
    provider.user = { id: 'careful' };
    await logInUpstream(server);
    await server.users.update('oauth2|acme|careful', { multifactor: ['guardian'] });
    const page = await fromProvider(server, await toProvider(server));
    expect(page.status).to.equal(200);
    expect(page.text).to.contain('/mfa');
  });

  it('joins an organization that assigns membership, and is rejected by any other', async () => {
    expect(await logInUpstream(server, { client_id: 'one-way', organization: 'org_auto' })).to.have.property(
      'code',
    );
    const refused = await logInUpstream(server, { client_id: 'one-way', organization: 'org_acme' });
    expect(refused.error_description).to.contain('is not part of the org_acme organization');
  });

  it('replaces the session of another user', async () => {
    const agent = createAgent(server);
    await logIn(agent, server, webRequest());
    expect(await logInUpstream(server, {}, agent)).to.have.property('code');
    const again = await authorize(agent, webRequest({ connection: 'acme', prompt: 'none' }));
    expect(responseOf(again)).to.have.property('code');
    const other = await authorize(agent, webRequest({ connection: 'users', prompt: 'none' }));
    expect(responseOf(other).error).to.equal('login_required');
  });

  it('fails if the user has been deleted meanwhile', async () => {
    const login = await toProvider(server);
    const on = await login.agent.get(login.back);
    await server.users.remove('oauth2|acme|42');
    const outcome = responseOf(await follow(login.agent, await login.agent.get(on.location), server.url));
    expect(outcome.error).to.equal('access_denied');
  });

  it('fails if the connection has been disabled for the application meanwhile', async () => {
    const login = await toProvider(server, { client_id: 'two-ways', connection: 'second' });
    const connections = server.store.collection('connections');
    const second = (await connections.list()).records.find(({ name }) => name === 'second');
    await connections.update(second?.id ?? '', (current) => ({ ...current, enabled_clients: [] }));
    try {
      const outcome = responseOf(await fromProvider(server, login));
      expect(outcome.error_description).to.equal('the connection is not enabled for this application');
    } finally {
      await connections.update(second?.id ?? '', (current) => ({
        ...current,
        enabled_clients: ['two-ways'],
      }));
    }
  });

  it('cannot begin with a connection of another application', async () => {
    const answer = await authorize(createAgent(server), webRequest({ connection: 'foreign' }));
    expect(responseOf(answer).error_description).to.equal(
      'the connection is not enabled for this application',
    );
    const agent = createAgent(server);
    const page = await follow(agent, await authorize(agent, webRequest()), server.url);
    const uid = /\/u\/([\w-]+)/.exec(page.text)?.[1];
    expect((await agent.get(`/u/${uid}/connection/foreign`)).location).to.equal(`${server.url}/u/${uid}`);
    expect((await createAgent(server).get(`/u/${uid}/connection/acme`)).status).to.equal(400);
    expect(isAway((await agent.get(`/u/${uid}/connection/acme`)).location)).to.equal(true);
  });

  it('begins without a page if the application has no other connection, or login_hint has its domain', async () => {
    const one = await authorize(createAgent(server), webRequest({ client_id: 'one-way' }));
    expect(isAway(one.location)).to.equal(true);
    const hinted = await authorize(createAgent(server), webRequest({ login_hint: 'ada@ACME.test' }));
    expect(isAway(hinted.location)).to.equal(true);
    const other = await authorize(createAgent(server), webRequest({ login_hint: 'ada@other.test' }));
    expect(isAway(other.location)).to.equal(false);
    const silent = await authorize(createAgent(server), webRequest({ client_id: 'one-way', prompt: 'none' }));
    expect(responseOf(silent).error).to.equal('login_required');
  });

  it('begins on a page of buttons if the application has several such connections and no form', async () => {
    const agent = createAgent(server);
    const page = await follow(
      agent,
      await authorize(agent, webRequest({ client_id: 'two-ways' })),
      server.url,
    );
    expect(page.status).to.equal(200);
    const links = [...page.text.matchAll(/href="(\/u\/[\w-]+\/connection\/\w+)"/g)].map(
      ([, href]) => href ?? '',
    );
    expect(links.map((href) => href.split('/').at(-1))).to.deep.equal(['acme', 'second']);
    expect(page.text).to.contain('https://idp.example.test/i.svg');
    expect(isAway((await agent.get(links[1] ?? '')).location)).to.equal(true);
  });

  it('is replaced when the same request begins another', async () => {
    const agent = createAgent(server);
    const page = await follow(
      agent,
      await authorize(agent, webRequest({ client_id: 'two-ways' })),
      server.url,
    );
    const [first = '', second = ''] = [...page.text.matchAll(/href="(\/u\/[\w-]+\/connection\/\w+)"/g)].map(
      ([, href]) => href ?? '',
    );
    const go = async (path: string) => {
      const providerAnswer = await fetch((await agent.get(path)).location, { redirect: 'manual' });
      return providerAnswer.headers.get('location') ?? '';
    };
    const [older, newer] = [await go(first), await go(second)];
    expect((await agent.get(older)).status).to.equal(400);
    expect(responseOf(await follow(agent, await agent.get(newer), server.url))).to.have.property('code');
  });

  it('ends with a ticket that is accepted once, in its own browser and for its own request', async () => {
    const login = await toProvider(server);
    const other = await toProvider(server, {}, login.agent);
    const on = await login.agent.get(login.back);
    const ticket = new URL(on.location).searchParams.get('ticket');
    const elsewhere = await login.agent.get(other.back);
    const uid = new URL(elsewhere.location).pathname.split('/')[2];
    expect((await login.agent.get(`/u/${uid}/callback?ticket=${ticket}`)).status).to.equal(400);
    expect((await createAgent(server).get(on.location)).status).to.equal(400);
    expect((await login.agent.get(on.location)).status).to.equal(302);
    expect((await login.agent.get(on.location)).status).to.equal(400);
  });
});
