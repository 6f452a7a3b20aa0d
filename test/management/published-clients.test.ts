// The published management clients of three major versions, which administrators' programs use.
import { ManagementClient as Client7 } from 'auth0';
import { ManagementClient as Client4 } from 'auth0-4';
import { ManagementClient as Client5 } from 'auth0-5';
import { expect } from 'chai';
import type { TestServer } from '../support/server.ts';
import { ADMIN, startManaged } from './support.ts';

const AUDIENCE = 'https://api.example.test/';

describe('the published management clients', () => {
  let server: TestServer;

  before(async () => {
    server = await startManaged();
  });
  after(() => server.stop());

  const options = () => ({
    domain: new URL(server.url).host,
    clientId: ADMIN.client_id,
    clientSecret: ADMIN.client_secret,
  });

  const thrownBy = (promise: PromiseLike<unknown>): Promise<{ statusCode?: number }> =>
    Promise.resolve(promise).then(
      () => ({}),
      (thrown: { statusCode?: number }) => thrown,
    );

  it('create, read, list, change and delete records in version 4', async () => {
    const client = new Client4(options());
    const { data: made } = await client.clients.create({ name: 'Four', app_type: 'non_interactive' });
    const id = made.client_id;
    expect((await client.clients.get({ client_id: id })).data.name).to.equal('Four');
    expect((await client.clients.update({ client_id: id }, { description: 'x' })).data.description).to.equal(
      'x',
    );
    const { data: page } = await client.clients.getAll({ include_totals: true, page: 0, per_page: 2 });
    expect(page).to.include({ start: 0, limit: 2 });
    expect(page.clients).to.have.length(2);
    const { data: beyond } = await client.clients.getAll({ page: 500, per_page: 2 });
    expect(beyond).to.deep.equal([]);
    const { data: grant } = await client.clientGrants.create({
      client_id: id,
      audience: AUDIENCE,
      scope: ['read:things'],
    });
    await client.clientGrants.update({ id: grant.id }, { scope: [] });
    await client.clientGrants.delete({ id: grant.id });
    const { data: taken } = await client.connections.getAll({ take: 1 } as never);
    expect(taken).to.have.property('connections').with.length(1);
    const { data: role } = await client.roles.create({ name: 'Four' });
    const { data: user } = await client.users.create({
      connection: 'Username-Password-Authentication',
      email: 'four@example.test',
      password: 'A-long-Passw0rd!',
    });
    await client.users.assignRoles({ id: user.user_id }, { roles: [role.id] });
    expect((await client.users.getRoles({ id: user.user_id })).data).to.have.length(1);
    expect((await client.usersByEmail.getByEmail({ email: 'four@example.test' })).data).to.have.length(1);
    await client.users.delete({ id: user.user_id });
    expect(await thrownBy(client.users.get({ id: user.user_id }))).to.include({ statusCode: 404 });
    await client.roles.delete({ id: role.id });
    await client.clients.delete({ client_id: id });
    expect(await thrownBy(client.clients.get({ client_id: id }))).to.include({ statusCode: 404 });
  });

  for (const [version, Client] of [
    ['5', Client5 as unknown as typeof Client7],
    ['7', Client7],
  ] as const) {
    it(`create, read, list, change and delete records in version ${version}`, async () => {
      const client = new Client(options());
      const made = await client.clients.create({ name: `C${version}`, app_type: 'non_interactive' });
      const id = made.client_id ?? '';
      expect((await client.clients.get(id)).name).to.equal(`C${version}`);
      expect((await client.clients.update(id, { description: 'x' })).description).to.equal('x');
      const names: string[] = [];
      for await (const one of await client.clients.list({ per_page: 2 })) names.push(one.name ?? '');
      expect(names).to.include(`C${version}`);
      expect(names).to.deep.equal([...new Set(names)]);
      const connections: string[] = [];
      for await (const one of await client.connections.list({ take: 1 })) connections.push(one.name ?? '');
      expect(connections).to.have.members(['Username-Password-Authentication', 'email']);
      const api = await client.resourceServers.create({
        name: 'X',
        identifier: `https://x${version}.example.test/`,
      });
      expect((await client.resourceServers.get(api.id ?? '')).name).to.equal('X');
      await client.resourceServers.update(api.id ?? '', { name: 'Y' });
      const grant = await client.clientGrants.create({
        client_id: id,
        audience: api.identifier ?? '',
        scope: [],
      });
      await client.clientGrants.delete(grant.id ?? '');
      await client.resourceServers.delete(api.id ?? '');
      const role = await client.roles.create({ name: `R${version}` });
      const user = await client.users.create({
        connection: 'Username-Password-Authentication',
        email: `c${version}@example.test`,
        password: 'A-long-Passw0rd!',
      });
      const userId = user.user_id ?? '';
      await client.users.roles.assign(userId, { roles: [role.id ?? ''] });
      const roles: string[] = [];
      for await (const one of await client.users.roles.list(userId)) roles.push(one.name ?? '');
      expect(roles).to.deep.equal([`R${version}`]);
      expect((await client.users.update(userId, { nickname: 'Nick' })).nickname).to.equal('Nick');
      const organization = await client.organizations.create({ name: `o${version}` });
      await client.organizations.members.create(organization.id ?? '', { members: [userId] });
      const members: string[] = [];
      for await (const one of await client.organizations.members.list(organization.id ?? ''))
        members.push(one.email ?? '');
      expect(members).to.deep.equal([`c${version}@example.test`]);
      await client.organizations.delete(organization.id ?? '');
      await client.users.delete(userId);
      await client.roles.delete(role.id ?? '');
      await client.clients.delete(id);
      const missing = await thrownBy(client.clients.get(id));
      expect(missing).to.include({ statusCode: 404 });
      expect(missing).to.have.property('body').that.includes({ errorCode: 'inexistent_client' });
    });
  }

  const settingsBy: [string, () => () => PromiseLike<object>][] = [
    [
      '4',
      () => {
        const client = new Client4(options());
        return async () => (await client.tenants.getSettings()).data;
      },
    ],
    [
      '5',
      () => {
        const client = new Client5(options());
        return () => client.tenants.settings.get();
      },
    ],
    [
      '7',
      () => {
        const client = new Client7(options());
        return () => client.tenants.settings.get();
      },
    ],
  ];
  for (const [version, made] of settingsBy) {
    it(`wait and retry after a 429 in version ${version}`, async () => {
      const read = made();
      await read();
      let status = 0;
      while (status !== 429) ({ status } = await fetch(`${server.url}/api/v2/nothing`));
      const timer = setInterval(() => server.tick(500), 50);
      try {
        expect(await read()).to.have.property('friendly_name');
      } finally {
        clearInterval(timer);
      }
    });
  }
});
