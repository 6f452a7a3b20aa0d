// Sensitive changes after a login by a provider that does not report when its user authenticated: its old session
// proves nothing.
import { expect } from 'chai';
import { type Agent, type Answer, createAgent } from '../support/agent.ts';
import { databaseUser } from '../support/database-user.ts';
import { follow, payload, tenant, token, WEB_CALLBACK } from '../support/flows.ts';
import { nextMessageTo } from '../support/inbox.ts';
import { type OAuth2Provider, optionsFor, startProvider } from '../support/oauth2-provider.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { logInUpstream } from '../support/upstream-login.ts';
import { formOf, openAccount, send } from './support.ts';

const METHODS = 'create:me:authentication_methods read:me:authentication_methods';

describe('a login by a provider that does not report when its user authenticated', () => {
  let server: TestServer;
  let provider: OAuth2Provider;
  let agent: Agent;
  let people = 0;
  let email: string;
  before(async () => {
    provider = await startProvider();
    server = await startServer({
      tenant: {
        ...tenant,
        tenant: {
          ...tenant.tenant,
          account_linking: 'suggest',
          account_page: { client_id: 'web', allow_deletion: true },
        },
        clientGrants: [
          {
            client_id: 'web',
            audience: 'https://elsewhere.example.test/me/',
            subject_type: 'user',
            scope: METHODS.split(' '),
          },
        ],
        connections: [
          { name: 'acme', strategy: 'oauth2', enabled_clients: ['web'], options: optionsFor(provider) },
        ],
      },
    });
  });
  after(async () => {
    await server.stop();
    await provider.stop();
  });
  beforeEach(() => {
    agent = createAgent(server);
    email = `unproved-${++people}@example.test`;
    provider.user = { id: `u-${people}`, email, email_verified: true, name: 'Grace' };
  });

  /** Follows redirects to the provider and back. */
  const go = async (answer: Answer): Promise<Answer> => {
    const page = await follow(agent, answer, server.url);
    if (page.status !== 302 && page.status !== 303) return page;
    const back = (await fetch(page.location, { redirect: 'manual' })).headers.get('location') ?? '';
    return go(await agent.get(back));
  };
  /** Presses the button of the provider on a login page. */
  const byProvider = async (page: Answer): Promise<Answer> => {
    const [, href = ''] = /href="([^"]*\/connection\/acme)"/.exec(page.text) ?? [];
    return go(await agent.get(href));
  };
  const open = async (path = '/account/data') => {
    await logInUpstream(server, { connection: 'acme' }, agent);
    return go(await agent.get(path));
  };
  const copy = (page: Answer) => send(agent, page, '/account/data/copy');
  const login = async (answer: Answer) => {
    const page = await go(answer);
    return page.text.includes('Is it you?') ? page : byProvider(page);
  };
  const code = async () => String((await nextMessageTo(server, email)).code);

  it('requires a code sent to the verified address before a sensitive change, which then continues', async () => {
    const page = await open();
    const confirmPage = await login(await copy(page));
    expect(confirmPage.text).to.contain('acme does not say when').and.contain(email);
    const sent = await send(agent, confirmPage, '/account/confirm/send');
    expect(sent.text).to.contain('name="code"');
    const wrong = await send(agent, sent, '/account/confirm', { code: '000000' });
    expect(wrong.status).to.equal(400);
    const done = await go(await send(agent, sent, '/account/confirm', { code: await code() }));
    expect(done.text).to.contain('/account/data/copy');
    const file = await copy(done);
    expect(file.headers['content-disposition'], file.text).to.contain('attachment');
    server.tick(11 * 60_000);
    expect((await copy(done)).status, 'not for ever').to.equal(303);
  });

  it("does not allow the change after another visit to the provider, nor by another user's code", async () => {
    const page = await open();
    const first = await login(await copy(page));
    expect(first.text).to.contain('does not say when');
    const again = await go(await copy(page));
    expect(again.text).to.contain('does not say when');
    const sent = await send(agent, again, '/account/confirm/send');
    const thief = createAgent(server);
    const stolen = await thief.request('/account/confirm', { form: { code: await code() } });
    expect(stolen.status).to.equal(403);
    await server.users.update(`oauth2|acme|u-${people}`, { email: `moved-${email}`, email_verified: true });
    expect((await send(agent, sent, '/account/confirm', { code: await code() })).status).to.equal(400);
  });

  it('accepts a code only in the session that asked for it', async () => {
    await send(agent, await login(await copy(await open())), '/account/confirm/send');
    const confirmCode = await code();
    agent = createAgent(server);
    const confirmPage = await login(await copy(await open()));
    const form = { ...formOf(confirmPage, '/account/confirm/send'), code: confirmCode };
    const taken = await agent.request('/account/confirm', { form });
    expect(taken.status).to.equal(400);
    expect(taken.text).to.contain('name="code"');
  });

  it('is rejected with an explanation when the account has no verified address', async () => {
    provider.user = { ...provider.user, email_verified: false };
    const confirmPage = await login(await copy(await open()));
    expect(confirmPage.status).to.equal(403);
    expect(confirmPage.text).to.contain('This cannot be done here');
    expect(confirmPage.text).not.to.contain('<form');
  });

  it('does not prove an account to be linked before its own code', async () => {
    const stays = { email: `stays-${people}@example.test`, password: 'Another-Horse-2' };
    const created = await server.users.create(databaseUser({ connection: 'users', ...stays }));
    if (!('user' in created)) throw new Error('the address is taken');
    await server.users.update(created.user.id, { email_verified: true });
    const page = await openAccount(agent, server, '/account/applications', stays);
    const choice = await follow(agent, await send(agent, page, '/account/applications/link'), server.url);
    const confirmPage = await byProvider(choice);
    expect(confirmPage.text).to.contain('Is it you?').and.contain(email);
    const sent = await send(agent, confirmPage, '/account/confirm/send');
    const pair = await send(agent, sent, '/account/confirm', { code: await code() });
    expect(pair.text).to.contain('Make one account of two').and.contain(stays.email);
    const done = await send(agent, pair, '/account/applications/link/confirm');
    expect(done.text).to.contain('Your accounts are one');
    expect(await server.users.get(`oauth2|acme|u-${people}`)).to.equal(undefined);
  });

  it('issues an access token for the account that allows reading and no changes', async () => {
    const parameters = { connection: 'acme', audience: `${server.issuer}me/`, scope: `openid ${METHODS}` };
    const { code: given } = await logInUpstream(server, parameters, agent);
    const client = { client_id: 'web', client_secret: 'web-secret', redirect_uri: WEB_CALLBACK };
    const answer = await token(agent, { ...client, grant_type: 'authorization_code', code: given });
    const bearer = answer.json().access_token;
    expect(payload(bearer)).not.to.have.property('auth_time');
    const me = (json?: object) =>
      agent.request('/me/v1/authentication-methods', {
        ...(json && { json }),
        headers: { authorization: `Bearer ${bearer}` },
      });
    expect((await me()).status).to.equal(200);
    expect((await me({ type: 'totp' })).status).to.equal(401);
    expect(payload(answer.json().id_token), 'applications are told all the same').to.have.property(
      'auth_time',
    );
  });
});
