// An application whose only connection is at an external provider: users go there without a login page, and errors go back to
// the application.
import { expect } from 'chai';
import { type Answer, createAgent } from '../../support/agent.ts';
import { openPage } from '../../support/browser-logins.ts';
import {
  authorize,
  follow,
  payload,
  responseOf,
  tenant,
  WEB_CALLBACK,
  webRequest,
} from '../../support/flows.ts';
import { json, type OAuth2Provider, optionsFor, startProvider } from '../../support/oauth2-provider.ts';
import { type SdkProcess, startSdkProcess } from '../../support/sdk.ts';
import { startServer, type TestServer } from '../../support/server.ts';
import { fromProvider, toProvider } from '../../support/upstream-login.ts';

describe('an application whose only connection is at an external provider', () => {
  let provider: OAuth2Provider;
  let server: TestServer;
  let sdk: SdkProcess;
  before(async () => {
    provider = await startProvider();
    server = await startServer({
      tenant: {
        ...tenant,
        databases: tenant.databases.map((one) => ({
          ...one,
          enabled_clients: one.enabled_clients.filter((client) => client !== 'web'),
        })),
        connections: [
          { name: 'acme', strategy: 'oauth2', enabled_clients: ['web'], options: optionsFor(provider) },
        ],
      },
    });
    sdk = await startSdkProcess(server.caFile);
  });
  after(async () => {
    await sdk?.stop();
    await server?.stop();
    await provider?.stop();
  });
  afterEach(() => {
    provider.token = undefined;
  });

  const isAtProvider = ({ location }: Answer) => location.startsWith(`${provider.url}/authorize?`);

  for (const prompt of [undefined, 'login', 'consent']) {
    it(`redirects to the provider without a login page: prompt=${prompt}`, async () => {
      const request = webRequest({ ...(prompt !== undefined && { prompt }), login_hint: 'a@b.example' });
      const answer = await authorize(createAgent(server), request);
      expect(isAtProvider(answer)).to.equal(true);
      const { searchParams } = new URL(answer.location);
      expect(searchParams.get('login_hint')).to.equal('a@b.example');
      expect(searchParams.get('prompt')).to.equal(prompt ?? null);
    });
  }

  it('shows the account of an existing session first: prompt=select_account', async () => {
    const agent = createAgent(server);
    const select = webRequest({ prompt: 'select_account' });
    // Without a session, there is no account to show.
    const first = await authorize(agent, select);
    expect(isAtProvider(isAtProvider(first) ? first : await agent.get(first.location))).to.equal(true);
    await fromProvider(server, await toProvider(server, { connection: 'acme' }, agent));
    const page = await openPage(agent, server, select);
    expect(page.text).to.contain('grace@upstream.test');
    const other = /href="(\/u\/[^"]*\/login)"/.exec(page.text)?.[1] ?? '';
    expect(isAtProvider(await agent.get(other))).to.equal(true);
  });

  it('gets login_required without a session: prompt=none', async () => {
    const answer = await authorize(createAgent(server), webRequest({ prompt: 'none' }));
    expect(responseOf(answer).error).to.equal('login_required');
  });

  it('gets the provider’s error, without another redirect to the provider', async () => {
    const { agent, at } = await toProvider(server);
    const state = at.searchParams.get('state') ?? '';
    const before = provider.seen.length;
    const answer = await follow(
      agent,
      await agent.get(`/login/callback?${new URLSearchParams({ state, error: 'access_denied' })}`),
      server.url,
    );
    expect(answer.location.startsWith(WEB_CALLBACK)).to.equal(true);
    expect(responseOf(answer).error).to.equal('access_denied');
    expect(provider.seen.length).to.equal(before);
    // The request has ended: its URL does not redirect to the provider again.
    const uid = /\/u\/([\w-]+)/.exec(JSON.stringify(agent.cookies()))?.[1];
    if (uid !== undefined) expect((await agent.get(`/u/${uid}`)).status).to.equal(400);
  });

  it('gets an error when the provider’s token endpoint fails', async () => {
    provider.token = (response) => json(response, { error: 'invalid_client' }, 401);
    const answer = await fromProvider(server, await toProvider(server));
    expect(answer.location.startsWith(WEB_CALLBACK)).to.equal(true);
    expect(responseOf(answer).error).to.be.a('string');
  });

  it('shows an error page for an answer that no request waits for', async () => {
    const answer = await createAgent(server).get('/login/callback?code=abc&state=unknown');
    expect(answer.status).to.equal(400);
    expect(answer.text).to.contain('This page has expired').and.contain('Go back to the application');
  });

  it('logs a user in with the library openid-client', async () => {
    const client = { issuer: `${server.url}/`, clientId: 'web', secret: 'web-secret' };
    const { url, verifier } = await sdk.call('oidc-authorization-url', {
      ...client,
      parameters: {
        redirect_uri: WEB_CALLBACK,
        scope: 'openid profile email',
        connection: 'acme',
        state: 's1',
        nonce: 'n1',
      },
    });
    const agent = createAgent(server);
    const away = await agent.get(url);
    const providerAnswer = await fetch(away.location, { redirect: 'manual' });
    const back = await follow(
      agent,
      await agent.get(providerAnswer.headers.get('location') ?? ''),
      server.url,
    );
    const { tokens, profile } = await sdk.call('oidc-code', {
      ...client,
      callback: back.location,
      verifier,
      state: 's1',
      nonce: 'n1',
    });
    expect(payload(tokens.id_token).sub).to.equal('oauth2|acme|42');
    expect(profile).to.include({ sub: 'oauth2|acme|42', email: 'grace@upstream.test' });
  });
});
