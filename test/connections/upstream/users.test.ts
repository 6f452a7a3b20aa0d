// Users who come from providers elsewhere: who they become, what is refreshed, and whose account they never get.
import { expect } from 'chai';
import { createAgent } from '../../support/agent.ts';
import { responseOf, tenant, USER } from '../../support/flows.ts';
import { type OAuth2Provider, optionsFor, startProvider } from '../../support/oauth2-provider.ts';
import { startServer, type TestServer } from '../../support/server.ts';
import { failedLogins, fromProvider, logInUpstream, toProvider } from '../../support/upstream-login.ts';

describe('a user of a provider', () => {
  let provider: OAuth2Provider;
  let server: TestServer;
  let ids = 0;
  before(async () => {
    provider = await startProvider();
    const connection = (name: string, more = {}) => ({
      name,
      strategy: 'oauth2',
      enabled_clients: ['web'],
      options: optionsFor(provider, more),
    });
    server = await startServer({
      tenant: {
        ...tenant,
        connections: [
          connection('acme'),
          connection('other'),
          connection('first', { set_user_root_attributes: 'on_first_login' }),
          connection('never', { set_user_root_attributes: 'never_on_login', non_persistent_attrs: ['team'] }),
          connection('mapped', { fieldsMap: { name: 'display', email: ['mail', 'login'] } }),
        ],
      },
    });
  });
  after(async () => {
    await server?.stop();
    await provider?.stop();
  });
  beforeEach(() => {
    provider.user = { id: ++ids, email: `grace${ids}@upstream.test`, email_verified: true, name: 'Grace' };
  });

  const logInBy = async (connection: string) => {
    const told = await logInUpstream(server, { connection });
    expect(told.error_description ?? '').to.equal('');
    const user = await server.users.get(`oauth2|${connection}|${provider.user.id}`);
    if (user === undefined) throw new Error('there is no such user');
    return user;
  };

  it('is made at the first login, with what the provider says', async () => {
    const user = await logInBy('acme');
    expect(user).to.deep.include({
      email: provider.user.email,
      email_verified: true,
      name: 'Grace',
      logins_count: 1,
    });
    const [identity] = await server.users.identitiesOf(user.id);
    expect(identity).to.deep.include({
      provider: 'oauth2',
      connection: 'acme',
      upstream_id: `acme|${provider.user.id}`,
      isSocial: true,
      unique: [],
    });
  });

  it('is refreshed at each login; what the provider leaves out stays', async () => {
    await logInBy('acme');
    const { id } = provider.user;
    provider.user = { id, email: `new${ids}@upstream.test`, nickname: 'amazing', locale: 'de' };
    const user = await logInBy('acme');
    expect(user).to.deep.include({
      email: `new${ids}@upstream.test`,
      email_verified: false,
      name: 'Grace',
      nickname: 'amazing',
      locale: 'de',
      logins_count: 2,
    });
    expect(
      await server.users.findByAddress({
        connection: 'acme',
        kind: 'email',
        address: `new${ids}@upstream.test`,
      }),
    ).to.deep.equal(user);
  });

  it('is refreshed at the first login alone, where the connection says so', async () => {
    const { id } = await logInBy('first');
    await server.users.update(id, { name: 'Named here' });
    provider.user = { ...provider.user, name: 'Renamed', email: 'else@upstream.test' };
    const user = await logInBy('first');
    expect(user).to.include({ name: 'Named here', email: `grace${ids}@upstream.test` });
  });

  it('has nothing of the profile at the root, where the connection says so', async () => {
    provider.user = { ...provider.user, team: 'blue', city: 'Graz' };
    const user = await logInBy('never');
    expect(user).not.to.have.any.keys('name', 'email');
    const [identity] = await server.users.identitiesOf(user.id);
    expect(identity?.attributes).to.deep.equal({ city: 'Graz' });
  });

  it('has at a login what the provider says then beyond the profile, and no group that it says no more', async () => {
    provider.user = { ...provider.user, groups: ['admins'] };
    const { id } = await logInBy('acme');
    const attributes = async () => (await server.users.identitiesOf(id))[0]?.attributes ?? {};
    expect(await attributes()).to.deep.equal({ groups: ['admins'] });
    provider.user = { id: provider.user.id, name: 'Grace' };
    await logInBy('acme');
    expect(await attributes()).to.deep.equal({});
  });

  it('has fields by other names, as the connection maps them', async () => {
    provider.user = { id: ids, display: 'Shown', login: 'mapped@upstream.test' };
    expect(await logInBy('mapped')).to.include({ name: 'Shown', email: 'mapped@upstream.test' });
  });

  it('cannot set what is ours to say', async () => {
    provider.user = {
      ...provider.user,
      blocked: false,
      roles: ['rol_admin'],
      permissions: [{ resource_server_identifier: 'guarded-api', permission_name: 'admin' }],
      logins_count: 1000,
      created_at: '1970-01-01T00:00:00.000Z',
      email_history: [],
      multifactor: ['x'],
      __proto__: { polluted: true },
      identities: [],
    };
    const user = await logInBy('acme');
    expect(user).not.to.have.any.keys(
      'blocked',
      'roles',
      'permissions',
      'email_history',
      'multifactor',
      'identities',
    );
    expect(user.logins_count).to.equal(1);
    expect(user.created_at).not.to.equal('1970-01-01T00:00:00.000Z');
    const [identity] = await server.users.identitiesOf(user.id);
    expect(identity?.attributes ?? {}).to.deep.equal({});
  });

  for (const [said, isVerified] of [
    [true, true],
    ['true', true],
    [1, false],
    ['yes', false],
    [undefined, false],
  ] as [unknown, boolean][]) {
    it(`has an address that is ${isVerified ? '' : 'not '}verified where the provider says ${JSON.stringify(said)}`, async () => {
      provider.user = { ...provider.user, email_verified: said };
      expect((await logInBy('acme')).email_verified).to.equal(isVerified);
    });
  }

  it("never gets another connection's account, whatever address the provider claims", async () => {
    provider.user = { ...provider.user, email: USER.email, email_verified: true };
    const taken = await server.users.findInConnection({ name: 'users' }, USER.email);
    const user = await logInBy('acme');
    expect(user.id).not.to.equal(taken?.id);
    expect(await server.users.identitiesOf(taken?.id ?? '')).to.have.length(1);
    // Nor that of another provider.
    const other = await logInBy('other');
    expect(new Set([user.id, other.id, taken?.id]).size).to.equal(3);
  });

  it('never gets another account by an id that looks like one', async () => {
    const taken = await server.users.findInConnection({ name: 'users' }, USER.email);
    for (const id of [taken?.id, `other|${ids}`, `acme|${ids}`]) {
      provider.user = { id, email: USER.email };
      const user = await logInBy('acme');
      expect(user.id).to.equal(`oauth2|acme|${id}`);
    }
  });

  it('is one, of any number of first logins at once', async () => {
    const logins = await Promise.all(Array.from({ length: 10 }, () => toProvider(server)));
    const told = await Promise.all(logins.map(async (one) => responseOf(await fromProvider(server, one))));
    for (const { code } of told) expect(code).to.be.a('string');
    const { records } = await server.store
      .collection('users')
      .list({ where: { field: 'email', equals: String(provider.user.email) } });
    expect(records.map(({ id }) => id)).to.deep.equal([`oauth2|acme|${ids}`]);
    const { records: signUps } = await server.store
      .collection('logs')
      .list({ where: { field: 'type', equals: 'ss' }, limit: 500 });
    expect(signUps.filter(({ user_id }) => user_id === `oauth2|acme|${ids}`)).to.have.length(1);
  });

  it('who is blocked is refused, and their login recorded', async () => {
    const { id } = await logInBy('acme');
    await server.users.update(id, { blocked: true });
    expect(await logInUpstream(server)).to.include({
      error: 'unauthorized',
      error_description: 'user is blocked',
    });
    expect(await failedLogins(server)).to.include('user is blocked');
  });

  it('has metadata of the script at the first login alone', async () => {
    provider.user = { ...provider.user, user_metadata: { plan: 'free' }, app_metadata: { tier: 1 } };
    const { id } = await logInBy('acme');
    await server.users.update(id, { app_metadata: { tier: 2 } });
    const user = await logInBy('acme');
    expect(user.user_metadata).to.deep.equal({ plan: 'free' });
    expect(user.app_metadata).to.deep.equal({ tier: 2 });
  });

  it('keeps the session for the next request of the connection', async () => {
    const agent = createAgent(server);
    await logInUpstream(server, {}, agent);
    const again = await agent.get(
      `/authorize?${new URLSearchParams({ client_id: 'web', response_type: 'code', redirect_uri: 'http://localhost:3001/callback', connection: 'acme', prompt: 'none', scope: 'openid' })}`,
    );
    expect(responseOf(again).code).to.be.a('string');
  });

  for (const [what, profile] of [
    ['no id', { email: 'a@upstream.test' }],
    ['an empty id', { id: '' }],
    ['an id that is too large for a number', { id: 1e19 }],
    ['an id that is a fraction', { id: 1.5 }],
    ['an id that is an object', { id: { a: 1 } }],
    ['an id that is far too long', { id: 'x'.repeat(600) }],
    ['an id with a line break', { id: 'a\nb' }],
  ] as [string, Record<string, unknown>][]) {
    it(`is nobody with ${what}`, async () => {
      server.tick(20 * 60_000);
      provider.user = profile;
      const told = await logInUpstream(server);
      expect(told.error).to.equal('access_denied');
      expect(await failedLogins(server)).to.include(told.error_description);
    });
  }
});
