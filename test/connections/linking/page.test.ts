// Account linking at login: who is offered it, which login it requires, and what becomes of the two accounts.
import { expect } from 'chai';
import { membershipId } from '../../../src/records/users/organizations.ts';
import { factors } from '../../factors/tenant.ts';
import { type Agent, type Answer, createAgent, readForm } from '../../support/agent.ts';
import { uidOf } from '../../support/browser-logins.ts';
import { databaseUser } from '../../support/database-user.ts';
import { follow, payload, responseOf, tenant, token, USER, WEB_CALLBACK } from '../../support/flows.ts';
import { heldStore } from '../../support/held-store.ts';
import { messagesTo, nextMessageTo } from '../../support/inbox.ts';
import { type OAuth2Provider, optionsFor, startProvider } from '../../support/oauth2-provider.ts';
import { startServer, type TestServer } from '../../support/server.ts';
import { type AtProvider, fromProvider, logInUpstream, toProvider } from '../../support/upstream-login.ts';

describe('account linking at the login with a new identity', () => {
  let provider: OAuth2Provider;
  let server: TestServer;
  let people = 0;
  let email: string;
  const held = heldStore();
  before(async () => {
    provider = await startProvider();
    const social = (name: string, enabled_clients = ['web']) => ({
      name,
      strategy: 'oauth2',
      enabled_clients,
      options: optionsFor(provider),
    });
    server = await startServer({
      open: held.open,
      tenant: {
        ...tenant,
        tenant: { ...tenant.tenant, account_linking: 'suggest' },
        guardianFactors: factors('otp'),
        connections: [
          social('acme'),
          social('other'),
          social('third'),
          social('foreign', ['spa']),
          { name: 'email', strategy: 'email', enabled_clients: ['web'] },
        ],
      },
    });
  });
  after(async () => {
    await server?.stop();
    await provider?.stop();
  });
  beforeEach(() => {
    email = `linked-${++people}@example.test`;
    provider.user = { id: people, email, email_verified: true, name: 'Grace' };
  });

  /** Creates an account with a password. */
  const account = async (profile: object = {}, connection = 'users') => {
    const made = await server.users.create(databaseUser({ connection, email, password: USER.password }));
    if (!('user' in made)) throw new Error('the address is taken');
    await server.users.update(made.user.id, { email_verified: true, ...profile });
    return made.user.id;
  };
  /** Creates an account without a password. */
  const made = async (connection: string, provider: string) => {
    const identity = { connection, provider, addresses: { email }, unique: [] };
    const result = await server.users.create({ identity, profile: { email_verified: true } });
    if (!('user' in result)) throw new Error('the address is taken');
    return result.user.id;
  };
  const newId = (connection = 'acme') => `oauth2|${connection}|${people}`;
  const comeBack = (login: AtProvider) => fromProvider(server, login);
  /** Logs in with the new identity. @returns the page that follows. */
  const offered = async (agent: Agent = createAgent(server), more: Record<string, string> = {}) =>
    comeBack(await toProvider(server, more, agent));
  const isOffer = (page: Answer) => page.status === 200 && page.text.includes('name="decision" value="link"');
  const decide = async (agent: Agent, page: Answer, decision: string) => {
    const { action, fields } = readForm(page, '_csrf');
    return follow(agent, await agent.request(action, { form: { ...fields, decision } }), server.url);
  };
  const typePassword = async (agent: Agent, page: Answer, username = email, password = USER.password) => {
    const { action, fields } = readForm(page, 'password');
    return follow(
      agent,
      await agent.request(action, { form: { ...fields, username, password } }),
      server.url,
    );
  };
  /** Exchanges the code of an answer. @returns the user's id. */
  const subjectOf = async (answer: Answer) => {
    const { code, error_description } = responseOf(answer);
    expect(error_description ?? '').to.equal('');
    const client = { client_id: 'web', client_secret: 'web-secret', redirect_uri: WEB_CALLBACK };
    const tokens = await token(createAgent(server), { grant_type: 'authorization_code', code, ...client });
    return payload(tokens.json().id_token).sub;
  };
  const eventsOf = async (type: string) => {
    await server.tick(0);
    const { records } = await server.store
      .collection('logs')
      .list({ where: { field: 'type', equals: type }, limit: 500 });
    return records;
  };

  it('links the accounts after the user has logged in to the existing one with its password', async () => {
    const existing = await account({ app_metadata: { tier: 2 } });
    const agent = createAgent(server);
    const page = await offered(agent);
    expect(isOffer(page)).to.equal(true);
    expect(page.text).to.contain(email);
    const form = await decide(agent, page, 'link');
    expect(readForm(form, 'password').fields.username).to.equal(email);
    expect(await subjectOf(await typePassword(agent, form))).to.equal(existing);
    expect(await server.users.get(newId())).to.equal(undefined);
    expect((await server.users.get(existing))?.app_metadata).to.deep.equal({ tier: 2 });
    const identities = await server.users.identitiesOf(existing);
    expect(identities.map(({ connection }) => connection).sort()).to.deep.equal(['acme', 'users']);
    // Both identities now log in to the same account, without another offer.
    expect(await subjectOf(await offered())).to.equal(existing);
    expect((await eventsOf('account_linked')).find(({ user_id }) => user_id === existing)).to.deep.include({
      connection: 'acme',
      client_id: 'web',
      description: newId(),
    });
  });

  it('tells the owner by mail, once where both accounts have the address, and is in the log of the new one', async () => {
    const existing = await account();
    const agent = createAgent(server);
    await typePassword(agent, await decide(agent, await offered(agent), 'link'));
    const isLink = ({ text }: { text: string }) => text.includes('another account linked');
    await nextMessageTo(server, email, 1, isLink);
    expect((await messagesTo(server, email)).filter(isLink)).to.have.length(1);
    const absorbed = (await eventsOf('account_absorbed')).find(({ user_id }) => user_id === newId());
    expect(absorbed).to.include({ description: existing, connection: 'acme' });
  });

  it('is not offered for a new account with a second factor, if the existing one has none', async () => {
    await made('acme', 'oauth2');
    await server.users.update(newId(), { logins_count: 0 });
    const put = async (user_id: string) =>
      server.store.collection('authenticators').insert({
        id: `totp|${user_id}`,
        user_id,
        kind: 'otp',
        active: true,
        first: true,
        created_at: new Date().toISOString(),
      } as never);
    const existing = await account();
    await put(newId());
    expect(isOffer(await offered())).to.equal(false);
    await put(existing);
    await server.users.update(newId(), { logins_count: 0 });
    expect(isOffer(await offered()), 'it has one, too').to.equal(true);
  });

  it('links to an account of another provider, after a login there', async () => {
    await logInUpstream(server, { connection: 'other' });
    const agent = createAgent(server);
    const page = await offered(agent);
    const { action, fields } = readForm(page, '_csrf');
    const redirect = await agent.request(action, { form: { ...fields, decision: 'link' } });
    const away = await agent.get(redirect.location);
    expect(away.location).to.contain(`${provider.url}/authorize?`);
    const back = (await fetch(away.location, { redirect: 'manual' })).headers.get('location') ?? '';
    const outcome = await follow(agent, await agent.get(back), server.url);
    expect(await subjectOf(outcome)).to.equal(newId('other'));
    expect(await server.users.get(newId())).to.equal(undefined);
  });

  it('links to an account that logs in with codes by e-mail', async () => {
    const existing = await made('email', 'email');
    const agent = createAgent(server);
    const start = await decide(agent, await offered(agent), 'link');
    const first = readForm(start, 'address');
    const sent = await agent.request(first.action, { form: { ...first.fields, address: email } });
    const { action, fields } = readForm(sent, 'code');
    const { code = '' } = await nextMessageTo(server, email, 1, 'code');
    const outcome = await follow(
      agent,
      await agent.request(action, { form: { ...fields, code } }),
      server.url,
    );
    expect(await subjectOf(outcome)).to.equal(existing);
    expect(await server.users.get(newId())).to.equal(undefined);
  });

  it('keeps the accounts apart when the user declines, and does not ask again', async () => {
    const existing = await account();
    const agent = createAgent(server);
    expect(await subjectOf(await decide(agent, await offered(agent), 'decline'))).to.equal(newId());
    expect(await subjectOf(await offered())).to.equal(newId());
    expect(await server.users.identitiesOf(existing)).to.have.length(1);
    const [identity] = await server.users.identitiesOf(newId());
    expect(identity?.link_declined).to.deep.equal([existing]);
    expect((await eventsOf('account_link_declined')).at(-1)).to.include({ user_id: newId() });
  });

  it('lets the user decline after having accepted', async () => {
    await account();
    const agent = createAgent(server);
    const form = await decide(agent, await offered(agent), 'link');
    const again = await agent.get(`/u/${uidOf(form)}/link`);
    expect(await subjectOf(await decide(agent, again, 'decline'))).to.equal(newId());
  });

  it('is offered at a later login when the other account was created after the first one', async () => {
    expect(await subjectOf(await offered())).to.equal(newId());
    const existing = await account({ app_metadata: { tier: 2 } });
    const agent = createAgent(server);
    const page = await offered(agent);
    expect(isOffer(page)).to.equal(true);
    const form = await decide(agent, page, 'link');
    expect(await subjectOf(await typePassword(agent, form))).to.equal(existing);
    expect(await server.users.get(newId())).to.equal(undefined);
    expect((await server.users.get(existing))?.app_metadata).to.deep.equal({ tier: 2 });
    expect(await subjectOf(await offered())).to.equal(existing);
  });

  it('is not offered again after the user has declined at a later login', async () => {
    expect(await subjectOf(await offered())).to.equal(newId());
    await account();
    const agent = createAgent(server);
    expect(await subjectOf(await decide(agent, await offered(agent), 'decline'))).to.equal(newId());
    expect(await subjectOf(await offered())).to.equal(newId());
  });

  it('is offered again when the user left without deciding', async () => {
    await account();
    expect(isOffer(await offered())).to.equal(true);
    expect(isOffer(await offered())).to.equal(true);
  });

  it('does not link after a wrong password, nor after a login to a different account', async () => {
    const existing = await account();
    const agent = createAgent(server);
    const form = await decide(agent, await offered(agent), 'link');
    const wrong = await typePassword(agent, form, email, 'Wrong-Horse-1');
    expect(wrong.status).to.equal(400);
    const other = await typePassword(agent, wrong, USER.email);
    expect(isOffer(other)).to.equal(true);
    expect(other.text).to.contain('That was not the account');
    expect(await server.users.identitiesOf(existing)).to.have.length(1);
    expect(await server.users.get(newId())).not.to.equal(undefined);
    // A login to the offered account still links.
    expect(await subjectOf(await typePassword(agent, await decide(agent, other, 'link')))).to.equal(existing);
  });

  it('does not link before the second factor of the existing account', async () => {
    const existing = await account({ multifactor: ['guardian'] });
    const agent = createAgent(server);
    const form = await decide(agent, await offered(agent), 'link');
    const factor = await typePassword(agent, form);
    expect(factor.text).to.contain('/mfa');
    expect(await server.users.identitiesOf(existing)).to.have.length(1);
    // Other pages of the request do not link either.
    const uid = uidOf(factor);
    for (const path of [`/u/${uid}`, `/u/${uid}/link`]) await agent.get(path);
    expect(await server.users.get(newId())).not.to.equal(undefined);
  });

  describe('is not offered', () => {
    const notAsked = async (agent?: Agent, more?: Record<string, string>) =>
      expect(await subjectOf(await offered(agent, more))).to.equal(newId());

    it('if the provider has not verified the address', async () => {
      await account();
      provider.user = { ...provider.user, email_verified: false };
      await notAsked();
    });

    it('if the address is not verified in the other account', async () => {
      await account({ email_verified: false });
      await notAsked();
    });

    it('if the other account is blocked', async () => {
      await account({ blocked: true });
      await notAsked();
    });

    it('if the application has no connection that the other account can log in with', async () => {
      await made('foreign', 'oauth2');
      await notAsked();
    });

    const gathered: [string, (id: string) => Promise<unknown>][] = [
      ['app_metadata', (id) => server.users.update(id, { app_metadata: { tier: 2 } })],
      ['user_metadata', (id) => server.users.update(id, { user_metadata: { theme: 'dark' } })],
      ['a required second factor', (id) => server.users.update(id, { multifactor: ['guardian'] })],
      [
        'a role',
        (id) => server.store.collection('users').update(id, (current) => ({ ...current, roles: ['rol_1'] })),
      ],
      [
        'a membership',
        (id) =>
          server.store.collection('memberships').put({
            id: membershipId('org_x', id),
            organization_id: 'org_x',
            user_id: id,
            roles: [],
          }),
      ],
    ];
    for (const [what, gather] of gathered) {
      it(`if the account has logged in before and has ${what}, which linking would delete`, async () => {
        await notAsked();
        await account();
        await gather(newId());
        const page = await offered();
        expect(isOffer(page)).to.equal(false);
      });
    }

    it('if account_linking of the tenant is never', async () => {
      await account();
      const settings = server.store.collection('tenant');
      const change = (account_linking: string) =>
        settings.update(
          'tenant',
          (current) =>
            ({
              ...current,
              tenant: { ...current.tenant, account_linking },
            }) as never,
        );
      await change('never');
      try {
        await notAsked();
      } finally {
        await change('suggest');
      }
    });
  });

  it('rejects the login when the new account is blocked', async () => {
    await account();
    await offered();
    await server.users.update(newId(), { blocked: true });
    expect(responseOf(await offered()).error).to.equal('unauthorized');
  });

  it('fails when either account has been blocked or deleted meanwhile', async () => {
    for (const which of ['new', 'kept'] as const) {
      for (const how of ['blocked', 'gone'] as const) {
        provider.user = { ...provider.user, id: ++people, email: `linked-${people}@example.test` };
        email = String(provider.user.email);
        const existing = await account();
        const agent = createAgent(server);
        const form = await decide(agent, await offered(agent), 'link');
        const id = which === 'new' ? newId() : existing;
        await (how === 'blocked' ? server.users.update(id, { blocked: true }) : server.users.remove(id));
        const outcome = await typePassword(agent, form);
        if (which === 'kept' && how === 'gone') expect(outcome.status).to.equal(400);
        else expect(responseOf(outcome).error).to.be.oneOf(['access_denied', 'unauthorized']);
        expect((await server.users.identitiesOf(existing)).length).to.be.below(2);
      }
    }
  });

  /** What happens between the judgement of a link and its write. */
  const MEANWHILE: Record<string, (existing: string) => Promise<unknown>> = {
    'the existing account got a new password': (existing) =>
      server.users.setPassword(existing, 'Third-Horse-3'),
    'the existing account was blocked': (existing) => server.users.update(existing, { blocked: true }),
    'the new account was blocked': () => server.users.update(newId(), { blocked: true }),
    'the new account got metadata, which linking would delete': () =>
      server.users.update(newId(), { app_metadata: { tier: 2 }, logins_count: 1 }),
  };
  for (const [what, meanwhile] of Object.entries(MEANWHILE))
    it(`links nothing if right before the write ${what}`, async () => {
      const existing = await account();
      const agent = createAgent(server);
      const form = await decide(agent, await offered(agent), 'link');
      held.beforeBatch(
        (write) => write.collection === 'users' && 'delete' in write,
        () => meanwhile(existing),
      );
      const answer = await typePassword(agent, form);
      expect(responseOf(answer).error, answer.text).to.equal('access_denied');
      expect(await server.users.get(newId())).not.to.equal(undefined);
      expect(await server.users.identitiesOf(existing)).to.have.length(1);
    });

  it('links once when several browsers complete it at the same time', async () => {
    const existing = await account();
    const windows = await Promise.all(
      Array.from({ length: 8 }, async () => {
        const agent = createAgent(server);
        return { agent, form: await decide(agent, await offered(agent), 'link') };
      }),
    );
    const outcome = await Promise.all(windows.map(({ agent, form }) => typePassword(agent, form)));
    for (const one of outcome) expect(await subjectOf(one)).to.equal(existing);
    expect(await server.users.identitiesOf(existing)).to.have.length(2);
    const linked = (await eventsOf('account_linked')).filter(({ user_id }) => user_id === existing);
    expect(linked).to.have.length(1);
  });

  it('rejects a decision from another browser, and one without the CSRF token', async () => {
    await account();
    const agent = createAgent(server);
    const page = await offered(agent);
    const { action, fields } = readForm(page, '_csrf');
    for (const decision of ['link', 'decline']) {
      expect((await createAgent(server).request(action, { form: { ...fields, decision } })).status).to.equal(
        400,
      );
      expect((await agent.request(action, { form: { decision } })).status).to.equal(403);
    }
    expect((await createAgent(server).get(action)).status).to.equal(400);
    // The rejected decisions changed nothing.
    expect(isOffer(await agent.get(action))).to.equal(true);
  });

  it('rejects a decision for a request that has no offer', async () => {
    await account();
    const agent = createAgent(server);
    const login = await toProvider(server, {}, agent);
    const page = await comeBack(await toProvider(server, { connection: 'acme' }, createAgent(server)));
    const { fields } = readForm(page, '_csrf');
    const uid = /\/u\/([\w-]+)/.exec(login.at.href)?.[1] ?? 'none';
    const answer = await agent.request(`/u/${uid}/link`, { form: { ...fields, decision: 'link' } });
    expect(answer.status).to.equal(400);
  });

  it('leaves a session that answers later requests for the new connection', async () => {
    const existing = await account();
    const agent = createAgent(server);
    const form = await decide(agent, await offered(agent, { connection: 'acme' }), 'link');
    await typePassword(agent, form);
    const again = await agent.get(
      `/authorize?${new URLSearchParams({ client_id: 'web', response_type: 'code', redirect_uri: WEB_CALLBACK, scope: 'openid', connection: 'acme', prompt: 'none' })}`,
    );
    expect(await subjectOf(again)).to.equal(existing);
  });
});
