// Linking on the hosted page: who is asked, what they have to prove, and what becomes of the two accounts.
import { expect } from 'chai';
import { membershipId } from '../../../src/records/organizations.ts';
import { factors } from '../../factors/tenant.ts';
import { type Agent, type Answer, createAgent, readForm } from '../../support/agent.ts';
import { uidOf } from '../../support/browser-logins.ts';
import { databaseUser } from '../../support/database-user.ts';
import { follow, payload, responseOf, tenant, token, USER, WEB_CALLBACK } from '../../support/flows.ts';
import { nextMessageTo } from '../../support/inbox.ts';
import { type OAuth2Provider, optionsFor, startProvider } from '../../support/oauth2-provider.ts';
import { startServer, type TestServer } from '../../support/server.ts';
import { type AtProvider, fromProvider, logInUpstream, toProvider } from '../../support/upstream-login.ts';

describe('a new identity with the verified address of another user', () => {
  let provider: OAuth2Provider;
  let server: TestServer;
  let people = 0;
  let email: string;
  before(async () => {
    provider = await startProvider();
    const social = (name: string, enabled_clients = ['web']) => ({
      name,
      strategy: 'oauth2',
      enabled_clients,
      options: optionsFor(provider),
    });
    server = await startServer({
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

  /** An account with a password. */
  const account = async (profile: object = {}, connection = 'users') => {
    const made = await server.users.create(databaseUser({ connection, email, password: USER.password }));
    if (!('user' in made)) throw new Error('the address is taken');
    await server.users.update(made.user.id, { email_verified: true, ...profile });
    return made.user.id;
  };
  /** An account without one. */
  const made = async (connection: string, provider: string) => {
    const identity = { connection, provider, addresses: { email }, unique: [] };
    const result = await server.users.create({ identity, profile: { email_verified: true } });
    if (!('user' in result)) throw new Error('the address is taken');
    return result.user.id;
  };
  const newId = (connection = 'acme') => `oauth2|${connection}|${people}`;
  const comeBack = (login: AtProvider) => fromProvider(server, login);
  /** Logs in by the new identity. @returns the page that follows. */
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
  /** Whose the code is that an application got. */
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

  it('is asked, and linked once the other account is proved by its password', async () => {
    const kept = await account({ app_metadata: { tier: 2 } });
    const agent = createAgent(server);
    const page = await offered(agent);
    expect(isOffer(page)).to.equal(true);
    expect(page.text).to.contain(email);
    const form = await decide(agent, page, 'link');
    expect(readForm(form, 'password').fields.username).to.equal(email);
    expect(await subjectOf(await typePassword(agent, form))).to.equal(kept);
    expect(await server.users.get(newId())).to.equal(undefined);
    expect((await server.users.get(kept))?.app_metadata).to.deep.equal({ tier: 2 });
    const identities = await server.users.identitiesOf(kept);
    expect(identities.map(({ connection }) => connection).sort()).to.deep.equal(['acme', 'users']);
    // Either way in is the same account now, and nobody is asked again.
    expect(await subjectOf(await offered())).to.equal(kept);
    expect((await eventsOf('account_linked')).find(({ user_id }) => user_id === kept)).to.deep.include({
      connection: 'acme',
      client_id: 'web',
      description: newId(),
    });
  });

  it('is asked where the request names no connection, too, and by an account of another provider', async () => {
    await logInUpstream(server, { connection: 'other' });
    const agent = createAgent(server);
    const page = await offered(agent);
    const { action, fields } = readForm(page, '_csrf');
    const gone = await agent.request(action, { form: { ...fields, decision: 'link' } });
    const away = await agent.get(gone.location);
    expect(away.location).to.contain(`${provider.url}/authorize?`);
    const back = (await fetch(away.location, { redirect: 'manual' })).headers.get('location') ?? '';
    const told = await follow(agent, await agent.get(back), server.url);
    expect(await subjectOf(told)).to.equal(newId('other'));
    expect(await server.users.get(newId())).to.equal(undefined);
  });

  it('is linked to an account that has codes by e-mail', async () => {
    const kept = await made('email', 'email');
    const agent = createAgent(server);
    const start = await decide(agent, await offered(agent), 'link');
    const first = readForm(start, 'address');
    const sent = await agent.request(first.action, { form: { ...first.fields, address: email } });
    const { action, fields } = readForm(sent, 'code');
    const { code = '' } = await nextMessageTo(server, email, 1, 'code');
    const told = await follow(agent, await agent.request(action, { form: { ...fields, code } }), server.url);
    expect(await subjectOf(told)).to.equal(kept);
    expect(await server.users.get(newId())).to.equal(undefined);
  });

  it('goes on as an account of its own where its user declines, and is not asked again', async () => {
    const kept = await account();
    const agent = createAgent(server);
    expect(await subjectOf(await decide(agent, await offered(agent), 'decline'))).to.equal(newId());
    expect(await subjectOf(await offered())).to.equal(newId());
    expect(await server.users.identitiesOf(kept)).to.have.length(1);
    const [identity] = await server.users.identitiesOf(newId());
    expect(identity?.link_declined).to.deep.equal([kept]);
    expect((await eventsOf('account_link_declined')).at(-1)).to.include({ user_id: newId() });
  });

  it('may be declined after the other account was asked for', async () => {
    await account();
    const agent = createAgent(server);
    const form = await decide(agent, await offered(agent), 'link');
    const again = await agent.get(`/u/${uidOf(form)}/link`);
    expect(await subjectOf(await decide(agent, again, 'decline'))).to.equal(newId());
  });

  it('is asked at a later login, too, where both accounts were there before the tenant wanted it', async () => {
    expect(await subjectOf(await offered())).to.equal(newId());
    const kept = await account({ app_metadata: { tier: 2 } });
    const agent = createAgent(server);
    const page = await offered(agent);
    expect(isOffer(page)).to.equal(true);
    const form = await decide(agent, page, 'link');
    expect(await subjectOf(await typePassword(agent, form))).to.equal(kept);
    expect(await server.users.get(newId())).to.equal(undefined);
    expect((await server.users.get(kept))?.app_metadata).to.deep.equal({ tier: 2 });
    expect(await subjectOf(await offered())).to.equal(kept);
  });

  it('is asked once more at a later login, and declines for good', async () => {
    expect(await subjectOf(await offered())).to.equal(newId());
    await account();
    const agent = createAgent(server);
    expect(await subjectOf(await decide(agent, await offered(agent), 'decline'))).to.equal(newId());
    expect(await subjectOf(await offered())).to.equal(newId());
  });

  it('is asked again where its user only went away', async () => {
    await account();
    expect(isOffer(await offered())).to.equal(true);
    expect(isOffer(await offered())).to.equal(true);
  });

  it('is not linked by a wrong password, nor to another account', async () => {
    const kept = await account();
    const agent = createAgent(server);
    const form = await decide(agent, await offered(agent), 'link');
    const wrong = await typePassword(agent, form, email, 'Wrong-Horse-1');
    expect(wrong.status).to.equal(400);
    const other = await typePassword(agent, wrong, USER.email);
    expect(isOffer(other)).to.equal(true);
    expect(other.text).to.contain('That was not the account');
    expect(await server.users.identitiesOf(kept)).to.have.length(1);
    expect(await server.users.get(newId())).not.to.equal(undefined);
    // The right one is still good.
    expect(await subjectOf(await typePassword(agent, await decide(agent, other, 'link')))).to.equal(kept);
  });

  it('is not linked before the second factor of the account that is kept', async () => {
    const kept = await account({ multifactor: ['guardian'] });
    const agent = createAgent(server);
    const form = await decide(agent, await offered(agent), 'link');
    const factor = await typePassword(agent, form);
    expect(factor.text).to.contain('/mfa');
    expect(await server.users.identitiesOf(kept)).to.have.length(1);
    // Nor by going round it.
    const uid = uidOf(factor);
    for (const path of [`/u/${uid}`, `/u/${uid}/link`]) await agent.get(path);
    expect(await server.users.get(newId())).not.to.equal(undefined);
  });

  describe('is not asked', () => {
    const notAsked = async (agent?: Agent, more?: Record<string, string>) =>
      expect(await subjectOf(await offered(agent, more))).to.equal(newId());

    it('where its provider has not verified the address', async () => {
      await account();
      provider.user = { ...provider.user, email_verified: false };
      await notAsked();
    });

    it('where the other account has not verified it', async () => {
      await account({ email_verified: false });
      await notAsked();
    });

    it('where the other account is blocked', async () => {
      await account({ blocked: true });
      await notAsked();
    });

    it('where the application has no connection of the other account', async () => {
      await made('foreign', 'oauth2');
      await notAsked();
    });

    const gathered: [string, (id: string) => Promise<unknown>][] = [
      ['metadata', (id) => server.users.update(id, { app_metadata: { tier: 2 } })],
      ['metadata of the user', (id) => server.users.update(id, { user_metadata: { theme: 'dark' } })],
      ['a second factor to give', (id) => server.users.update(id, { multifactor: ['guardian'] })],
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
      it(`where it has logged in before, and has ${what}, which would be lost`, async () => {
        await notAsked();
        await account();
        await gather(newId());
        const page = await offered();
        expect(isOffer(page)).to.equal(false);
      });
    }

    it('where the tenant does not want it', async () => {
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

  it('is refused as any login where its own account is blocked', async () => {
    await account();
    await offered();
    await server.users.update(newId(), { blocked: true });
    expect(responseOf(await offered()).error).to.equal('unauthorized');
  });

  it('ends where either account is blocked or gone meanwhile', async () => {
    for (const which of ['new', 'kept'] as const) {
      for (const how of ['blocked', 'gone'] as const) {
        provider.user = { ...provider.user, id: ++people, email: `linked-${people}@example.test` };
        email = String(provider.user.email);
        const kept = await account();
        const agent = createAgent(server);
        const form = await decide(agent, await offered(agent), 'link');
        const id = which === 'new' ? newId() : kept;
        await (how === 'blocked' ? server.users.update(id, { blocked: true }) : server.users.remove(id));
        const told = await typePassword(agent, form);
        if (which === 'kept' && how === 'gone') expect(told.status).to.equal(400);
        else expect(responseOf(told).error).to.be.oneOf(['access_denied', 'unauthorized']);
        expect((await server.users.identitiesOf(kept)).length).to.be.below(2);
      }
    }
  });

  it('is linked once, however many windows prove it', async () => {
    const kept = await account();
    const windows = await Promise.all(
      Array.from({ length: 8 }, async () => {
        const agent = createAgent(server);
        return { agent, form: await decide(agent, await offered(agent), 'link') };
      }),
    );
    const told = await Promise.all(windows.map(({ agent, form }) => typePassword(agent, form)));
    for (const one of told) expect(await subjectOf(one)).to.equal(kept);
    expect(await server.users.identitiesOf(kept)).to.have.length(2);
    const linked = (await eventsOf('account_linked')).filter(({ user_id }) => user_id === kept);
    expect(linked).to.have.length(1);
  });

  it('is asked in its own browser alone, with the token of its form', async () => {
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
    // Nothing has changed by it.
    expect(isOffer(await agent.get(action))).to.equal(true);
  });

  it('is not linked by a decision that nobody was asked for', async () => {
    await account();
    const agent = createAgent(server);
    const login = await toProvider(server, {}, agent);
    const page = await comeBack(await toProvider(server, { connection: 'acme' }, createAgent(server)));
    const { fields } = readForm(page, '_csrf');
    const uid = /\/u\/([\w-]+)/.exec(login.at.href)?.[1] ?? 'none';
    const answer = await agent.request(`/u/${uid}/link`, { form: { ...fields, decision: 'link' } });
    expect(answer.status).to.equal(400);
  });

  it('does not keep a request for its connection from being one', async () => {
    const kept = await account();
    const agent = createAgent(server);
    const form = await decide(agent, await offered(agent, { connection: 'acme' }), 'link');
    await typePassword(agent, form);
    const again = await agent.get(
      `/authorize?${new URLSearchParams({ client_id: 'web', response_type: 'code', redirect_uri: WEB_CALLBACK, scope: 'openid', connection: 'acme', prompt: 'none' })}`,
    );
    expect(await subjectOf(again)).to.equal(kept);
  });
});
