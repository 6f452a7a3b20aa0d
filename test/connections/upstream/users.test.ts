// Users of external providers: how they are created and updated, and that they never get another user's account.
import { expect } from 'chai';
import { createAgent } from '../../support/agent.ts';
import { responseOf, tenant, USER } from '../../support/flows.ts';
import { type OAuth2Provider, optionsFor, startProvider } from '../../support/oauth2-provider.ts';
import { startServer, type TestServer } from '../../support/server.ts';
import { failedLogins, fromProvider, logInUpstream, toProvider } from '../../support/upstream-login.ts';

describe('a user of an external provider', () => {
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
    const outcome = await logInUpstream(server, { connection });
    expect(outcome.error_description ?? '').to.equal('');
    const user = await server.users.get(`oauth2|${connection}|${provider.user.id}`);
    if (user === undefined) throw new Error('there is no such user');
    return user;
  };

  it('is created at the first login with the provider’s profile', async () => {
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

  it('is updated at each login, and keeps claims that the provider leaves out', async () => {
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

  it('is not updated after the first login with set_user_root_attributes on_first_login', async () => {
    const { id } = await logInBy('first');
    await server.users.update(id, { name: 'Named here' });
    provider.user = { ...provider.user, name: 'Renamed', email: 'else@upstream.test' };
    const user = await logInBy('first');
    expect(user).to.include({ name: 'Named here', email: `grace${ids}@upstream.test` });
  });

  it('has no root attributes with never_on_login, and no non_persistent_attrs', async () => {
    provider.user = { ...provider.user, team: 'blue', city: 'Graz' };
    const user = await logInBy('never');
    expect(user).not.to.have.any.keys('name', 'email');
    const [identity] = await server.users.identitiesOf(user.id);
    expect(identity?.attributes).to.deep.equal({ city: 'Graz' });
  });

  it('has the other claims of the last login only, so that a removed group does not stay', async () => {
    provider.user = { ...provider.user, groups: ['admins'] };
    const { id } = await logInBy('acme');
    const attributes = async () => (await server.users.identitiesOf(id))[0]?.attributes ?? {};
    expect(await attributes()).to.deep.equal({ groups: ['admins'] });
    provider.user = { id: provider.user.id, name: 'Grace' };
    await logInBy('acme');
    expect(await attributes()).to.deep.equal({});
  });

  it('has the claims that fieldsMap maps', async () => {
    provider.user = { id: ids, display: 'Shown', login: 'mapped@upstream.test' };
    expect(await logInBy('mapped')).to.include({ name: 'Shown', email: 'mapped@upstream.test' });
  });

  it('cannot set members that belong to this server, such as roles', async () => {
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
    it(`has ${isVerified ? 'a verified' : 'an unverified'} address when the provider’s email_verified is ${JSON.stringify(said)}`, async () => {
      provider.user = { ...provider.user, email_verified: said };
      expect((await logInBy('acme')).email_verified).to.equal(isVerified);
    });
  }

  it("never gets another connection's account by its e-mail address", async () => {
    provider.user = { ...provider.user, email: USER.email, email_verified: true };
    const databaseUser = await server.users.findInConnection({ name: 'users' }, USER.email);
    const user = await logInBy('acme');
    expect(user.id).not.to.equal(databaseUser?.id);
    expect(await server.users.identitiesOf(databaseUser?.id ?? '')).to.have.length(1);
    // The same holds for another provider's account.
    const other = await logInBy('other');
    expect(new Set([user.id, other.id, databaseUser?.id]).size).to.equal(3);
  });

  it('never gets another account by an id in the form of that account’s id', async () => {
    const databaseUser = await server.users.findInConnection({ name: 'users' }, USER.email);
    for (const id of [databaseUser?.id, `other|${ids}`, `acme|${ids}`]) {
      provider.user = { id, email: USER.email };
      const user = await logInBy('acme');
      expect(user.id).to.equal(`oauth2|acme|${id}`);
    }
  });

  it('is created once by several first logins at the same time', async () => {
    const logins = await Promise.all(Array.from({ length: 10 }, () => toProvider(server)));
    const outcome = await Promise.all(logins.map(async (one) => responseOf(await fromProvider(server, one))));
    for (const { code } of outcome) expect(code).to.be.a('string');
    const { records } = await server.store
      .collection('users')
      .list({ where: { field: 'email', equals: String(provider.user.email) } });
    expect(records.map(({ id }) => id)).to.deep.equal([`oauth2|acme|${ids}`]);
    const { records: signUps } = await server.store
      .collection('logs')
      .list({ where: { field: 'type', equals: 'ss' }, limit: 500 });
    expect(signUps.filter(({ user_id }) => user_id === `oauth2|acme|${ids}`)).to.have.length(1);
  });

  it('is rejected when blocked, and the login is recorded', async () => {
    const { id } = await logInBy('acme');
    await server.users.update(id, { blocked: true });
    expect(await logInUpstream(server)).to.include({
      error: 'unauthorized',
      error_description: 'user is blocked',
    });
    expect(await failedLogins(server)).to.include('user is blocked');
  });

  it('gets the metadata of the script at the first login only', async () => {
    provider.user = { ...provider.user, user_metadata: { plan: 'free' }, app_metadata: { tier: 1 } };
    const { id } = await logInBy('acme');
    await server.users.update(id, { app_metadata: { tier: 2 } });
    const user = await logInBy('acme');
    expect(user.user_metadata).to.deep.equal({ plan: 'free' });
    expect(user.app_metadata).to.deep.equal({ tier: 2 });
  });

  it('has a session that answers the next request for the connection', async () => {
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
    it(`is rejected with ${what}`, async () => {
      server.tick(20 * 60_000);
      provider.user = profile;
      const outcome = await logInUpstream(server);
      expect(outcome.error).to.equal('access_denied');
      expect(await failedLogins(server)).to.include(outcome.error_description);
    });
  }
});
