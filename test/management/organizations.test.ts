// Organizations, their connections, members, member roles and invitations, with the published client.
import type { ManagementClient } from 'auth0';
import { expect } from 'chai';
import { messagesTo, nextMessageTo } from '../support/inbox.ts';
import type { TestServer } from '../support/server.ts';
import { callApi, managementClient, managementToken, startManaged } from './support.ts';

describe('/organizations', () => {
  let server: TestServer;
  let management: ManagementClient;
  let organization: string;
  let client_id: string;
  let made = 0;

  before(async () => {
    server = await startManaged();
    management = managementClient(server);
    const client = await management.clients.create({
      name: 'Team',
      app_type: 'regular_web',
      organization_usage: 'allow',
      initiate_login_uri: 'https://team.example.test/start?from=mail',
    });
    client_id = client.client_id ?? '';
  });
  after(() => server.stop());
  beforeEach(async () => {
    const created = await management.organizations.create({ name: `team-${++made}`, display_name: 'Team' });
    organization = created.id ?? '';
  });

  const failure = (promise: PromiseLike<unknown>) =>
    Promise.resolve(promise).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
  const jsonOf = async (response: Response) => (await response.json()) as Record<string, unknown>;
  const invitation = (over: object = {}) => ({
    inviter: { name: 'Grace' },
    invitee: { email: `Invited-${made}@Example.test` },
    client_id,
    ...over,
  });
  const invitations = () => management.organizations.invitations;
  const request = async (path: string, init: RequestInit = {}, scope?: string) =>
    fetch(`${server.url}/api/v2/organizations/${organization}${path}`, {
      ...init,
      headers: {
        authorization: `Bearer ${await managementToken(server, scope)}`,
        'content-type': 'application/json',
      },
    });

  it('creates, finds by name, changes, lists and deletes organizations', async () => {
    const name = `team-${made}`;
    expect(organization).to.match(/^org_[A-Za-z0-9]{16}$/);
    const byName = await management.organizations.getByName(name);
    expect(byName).to.deep.include({ id: organization, name, display_name: 'Team' });
    const changed = await management.organizations.update(organization, {
      display_name: 'Other',
      metadata: { tier: 'gold' },
    });
    expect(changed).to.deep.include({ name, display_name: 'Other', metadata: { tier: 'gold' } });
    const listed = await management.organizations.list();
    expect(listed.data.map(({ id }) => id)).to.include(organization);
    expect(await failure(management.organizations.create({ name }))).to.include({ statusCode: 409 });
    await management.organizations.delete(organization);
    expect(await failure(management.organizations.get(organization))).to.deep.include({ statusCode: 404 });
  });

  it('enables each connection once', async () => {
    const { data } = await management.connections.list({ name: 'email' });
    const connection_id = data[0]?.id ?? '';
    const { enabledConnections } = management.organizations;
    await enabledConnections.add(organization, { connection_id, assign_membership_on_login: true });
    expect(await failure(enabledConnections.add(organization, { connection_id }))).to.include({
      statusCode: 409,
    });
    expect(await failure(enabledConnections.add(organization, { connection_id: 'con_none' }))).to.include({
      statusCode: 404,
    });
    await enabledConnections.update(organization, connection_id, { assign_membership_on_login: false });
    // Stored for tools: without membership, nobody can sign up.
    await enabledConnections.update(organization, connection_id, { is_signup_enabled: true });
    const listed = await enabledConnections.list(organization);
    expect(listed.data[0]).to.deep.include({
      connection_id,
      assign_membership_on_login: false,
      connection: { name: 'email', strategy: 'email' },
    });
    await enabledConnections.delete(organization, connection_id);
    expect((await enabledConnections.list(organization)).data).to.deep.equal([]);
  });

  it('adds members and their roles', async () => {
    const [user] = (await server.store.collection('users').list({ take: 1 } as never)).records;
    const role = await management.roles.create({ name: `keeper-${made}` });
    const { members } = management.organizations;
    await members.create(organization, { members: [user?.id ?? ''] });
    expect((await members.list(organization)).data.map(({ user_id }) => user_id)).to.deep.equal([user?.id]);
    await members.roles.assign(organization, user?.id ?? '', { roles: [role.id ?? ''] });
    expect((await members.roles.list(organization, user?.id ?? '')).data).to.have.length(1);
    await members.roles.delete(organization, user?.id ?? '', { roles: [role.id ?? ''] });
    expect((await members.roles.list(organization, user?.id ?? '')).data).to.deep.equal([]);
    await members.delete(organization, { members: [user?.id ?? ''] });
    expect((await members.list(organization)).data).to.deep.equal([]);
    expect(await failure(members.create(organization, { members: ['auth0|none'] }))).to.include({
      statusCode: 404,
    });
  });

  it('has roles of its own, which only its members can have, within it', async () => {
    const create = async (path: string, body: object) => jsonOf(await callApi(server, 'POST', path, body));
    const own = await create('/organizations', { name: 'own-roles', display_name: 'Own roles' });
    const other = await create('/organizations', { name: 'other-roles', display_name: 'Other roles' });
    const role = await create('/roles', { name: 'Operator', type: 'organization', owner_id: own.id });
    expect(role).to.deep.include({ type: 'organization', owner_id: own.id, description: '' });
    const owned = await (await callApi(server, 'GET', `/roles?type=organization&owner_id=${own.id}`)).json();
    expect((owned as { id: string }[]).map(({ id }) => id)).to.deep.equal([role.id]);
    const { user_id: user } = await create('/users', {
      connection: 'Username-Password-Authentication',
      email: 'operator@example.test',
      password: 'Correct-Horse-Battery-9',
    });
    for (const { id } of [own, other])
      await callApi(server, 'POST', `/organizations/${id}/members`, { members: [user] });
    const give = async (path: string, body: object) => (await callApi(server, 'POST', path, body)).status;
    const roles = { roles: [role.id] };
    expect(await give(`/users/${user}/roles`, roles)).to.equal(400);
    expect(await give(`/roles/${role.id}/users`, { users: [user] })).to.equal(400);
    expect(await give(`/organizations/${other.id}/members/${user}/roles`, roles)).to.equal(400);
    expect(await give(`/organizations/${own.id}/members/${user}/roles`, roles)).to.equal(204);
    const holders = `/organizations/${own.id}/roles/${role.id}`;
    const members = await jsonOf(await callApi(server, 'GET', `${holders}/members?take=50`));
    expect(members.members).to.have.nested.property('[0].user_id', user);
    expect(await jsonOf(await callApi(server, 'GET', `${holders}/groups`))).to.deep.equal({ groups: [] });
    expect(
      (await callApi(server, 'GET', `/organizations/${other.id}/roles/${role.id}/members`)).status,
    ).to.equal(400);
    await callApi(server, 'DELETE', `/organizations/${own.id}`);
    expect((await callApi(server, 'GET', `/roles/${role.id}`)).status).to.equal(404);
  });

  it('gives no permissions by a role of an organization that was not given within it', async () => {
    const create = async (path: string, body: object) => jsonOf(await callApi(server, 'POST', path, body));
    const identifier = 'https://operated.example.test/';
    await create('/resource-servers', { name: 'Operated', identifier, scopes: [{ value: 'operate' }] });
    const role = await create('/roles', { name: 'Former tenant role' });
    const permissions = [{ resource_server_identifier: identifier, permission_name: 'operate' }];
    await create(`/roles/${role.id}/permissions`, { permissions });
    const { user_id: user } = await create('/users', {
      connection: 'Username-Password-Authentication',
      email: 'former@example.test',
      password: 'Correct-Horse-Battery-9',
    });
    await callApi(server, 'POST', `/users/${user}/roles`, { roles: [role.id] });
    const held = async () =>
      (await callApi(server, 'GET', `/users/${encodeURIComponent(String(user))}/permissions`)).json();
    expect(await held()).to.have.length(1);
    // As a tenant file may change it.
    await server.store
      .collection('roles')
      .update(String(role.id), (current) => ({ ...current, owner_id: organization }));
    expect(await held()).to.deep.equal([]);
  });

  it('needs an owner for a role of an organization, and has none for another', async () => {
    const name = 'Nobody’s';
    for (const body of [
      { type: 'organization' },
      { owner_id: 'org_none' },
      { type: 'tenant', owner_id: 'org_none' },
    ])
      expect((await callApi(server, 'POST', '/roles', { name, ...body })).status).to.equal(400);
    const missing = { name, type: 'organization', owner_id: 'org_none' };
    expect((await callApi(server, 'POST', '/roles', missing)).status).to.equal(404);
  });

  it('pages members by cursor, with an empty last page that has no next', async () => {
    const { records } = await server.store.collection('users').list({ limit: 3 });
    const ids = records.map((user) => user.id);
    await management.organizations.members.create(organization, { members: ids });
    const read = async (query: string) =>
      (await (
        await callApi(server, 'GET', `/organizations/${organization}/members?take=2${query}`)
      ).json()) as { members: { user_id: string }[]; next?: string };
    const found: string[] = [];
    const sizes: number[] = [];
    let page = await read('');
    for (; page.next !== undefined; page = await read(`&from=${page.next}`)) {
      sizes.push(page.members.length);
      found.push(...page.members.map(({ user_id }) => user_id));
    }
    expect(page).to.deep.equal({ members: [] });
    expect(found).to.have.members(ids);
    expect(sizes.at(-1)).to.equal(ids.length % 2 === 0 ? 2 : 1);
    await management.organizations.members.delete(organization, { members: ids });
  });

  it('sorts organizations, and shows how a client is associated with them', async () => {
    const [first, last] = [`aaa-${made}`, `zzz-${made}`];
    const { id = '' } = await management.organizations.create({ name: first, display_name: 'Z' });
    await management.organizations.create({ name: last, display_name: 'A' });
    const read = async (query: string) => {
      const answer = await callApi(server, 'GET', `/organizations?${query}`);
      return { status: answer.status, body: (await answer.json()) as { name: string; client?: object }[] };
    };
    const order = async (sort: string) =>
      (await read(`sort=${sort}`)).body
        .map(({ name }) => name)
        .filter((name) => [first, last].includes(name));
    expect(await order('name:1')).to.deep.equal([first, last]);
    expect(await order('name:-1')).to.deep.equal([last, first]);
    expect(await order('display_name:1')).to.deep.equal([last, first]);
    expect((await read('sort=metadata:1')).status).to.equal(400);
    expect((await read('sort=name')).status).to.equal(400);
    const client_id = 'example-web';
    const clients = [{ client_id, use_for_member_access: true }];
    expect((await callApi(server, 'POST', `/organizations/${id}/clients`, { clients })).status).to.equal(201);
    const { body } = await read(`include_client_association_for=${client_id}`);
    expect(body.find(({ name }) => name === first)?.client).to.deep.equal({ use_for_member_access: true });
    expect(body.find(({ name }) => name === last)).not.to.have.property('client');
  });

  it('sends an invitation by e-mail; returns link and ticket once, and stores a hash', async () => {
    const { id: role = '' } = await management.roles.create({ name: `guest-${made}` });
    const created = await invitations().create(organization, invitation({ roles: [role], ttl_sec: 3600 }));
    expect(created.id).to.match(/^uinv_/);
    const url = new URL(created.invitation_url ?? '');
    expect(url.origin + url.pathname).to.equal('https://team.example.test/start');
    expect(Object.fromEntries(url.searchParams)).to.deep.equal({
      from: 'mail',
      invitation: created.ticket_id,
      organization,
      organization_name: `team-${made}`,
    });
    const email = `invited-${made}@example.test`;
    expect(created.invitee).to.deep.equal({ email });
    expect(Date.parse(created.expires_at ?? '') - Date.parse(created.created_at ?? '')).to.equal(3_600_000);
    const message = await nextMessageTo(server, email);
    expect(message.link).to.equal(url.href);
    expect(message.text).to.contain('Grace').and.contain('Team');
    const kept = await server.store.collection('invitations').get(created.id ?? '');
    expect(JSON.stringify(kept)).not.to.contain(created.ticket_id);
    const read = await invitations().get(organization, created.id ?? '');
    expect(read).to.deep.include({ roles: [role], client_id, inviter: { name: 'Grace' } });
    expect(JSON.stringify(read)).not.to.contain('icket');
    expect(server.logged()).not.to.contain(created.ticket_id);
  });

  it("invites to the host in the organization's metadata, and to no other place", async () => {
    const placed = async (address: string, metadata: Record<string, string>) => {
      const { client_id: id = '' } = await management.clients.create({
        name: 'Placed',
        organization_usage: 'allow',
        initiate_login_uri: address,
      });
      await management.organizations.update(organization, { metadata });
      const body = JSON.stringify(invitation({ client_id: id, send_invitation_email: false }));
      const { invitation_url: url } = await jsonOf(await request('/invitations', { method: 'POST', body }));
      return typeof url === 'string' ? url.split('?')[0] : undefined;
    };
    const HOST = '{organization.metadata.public_host}';
    expect(await placed(`https://${HOST}/login`, { public_host: 'login.acme.test' })).to.equal(
      'https://login.acme.test/login',
    );
    expect(await placed(`https://${HOST}.app.test/login`, { public_host: 'acme' })).to.equal(
      'https://acme.app.test/login',
    );
    for (const [address, metadata] of [
      [`https://${HOST}/login`, {}],
      ['https://{organization.metadata.host}/login', { host: 'login.acme.test' }],
      [`https://app.test/${HOST}`, { public_host: 'acme' }],
      [`https://${HOST}/{organization.metadata.public_path}`, { public_host: 'acme.test', public_path: 'x' }],
      ['https://{custom_domain.metadata.public_host}/login', { public_host: 'acme.test' }],
      ...[
        'evil.test/',
        'evil.test#',
        'a@evil.test',
        'evil.test\\',
        'b\u00fccher.test',
        '',
        'a..b',
        '%65vil.test',
      ].map((public_host) => [`https://${HOST}.app.test/login`, { public_host }]),
    ] as [string, Record<string, string>][])
      expect(await placed(address, metadata), `${address} ${JSON.stringify(metadata)}`).to.equal(undefined);
  });

  it('lists invitations without a total, newest first, and deletes them', async () => {
    const first = await invitations().create(organization, invitation({ send_invitation_email: false }));
    server.tick(1000);
    const second = await invitations().create(organization, invitation({ send_invitation_email: false }));
    const answer = await request('/invitations?include_totals=true&per_page=1');
    const wrapped = (await answer.json()) as { invitations: { id: string }[] };
    expect(wrapped).to.have.all.keys('start', 'limit', 'invitations');
    expect(wrapped.invitations[0]?.id).to.equal(second.id);
    const oldest = await (await request('/invitations?sort=created_at:1&fields=id')).json();
    expect(oldest).to.deep.equal([{ id: first.id }, { id: second.id }]);
    await invitations().delete(organization, first.id ?? '');
    expect(await failure(invitations().get(organization, first.id ?? ''))).to.include({ statusCode: 404 });
    expect(await messagesTo(server, `invited-${made}@example.test`)).to.deep.equal([]);
    // Another organization's path does not reach the invitation.
    const other = await management.organizations.create({ name: `other-${made}` });
    for (const call of ['get', 'delete'] as const) {
      expect(await failure(invitations()[call](other.id ?? '', second.id ?? ''))).to.include({
        statusCode: 404,
      });
    }
    server.tick(8 * 86_400_000);
    expect(await (await request('/invitations')).json()).to.deep.equal([]);
  });

  it('rejects invitations that nobody could accept', async () => {
    const plain = await management.clients.create({ name: 'Plain', organization_usage: 'allow' });
    const denying = await management.clients.create({
      name: 'Denying',
      initiate_login_uri: 'https://denying.example.test/',
    });
    const refused: [object, number][] = [
      [{ client_id: plain.client_id }, 400],
      [{ client_id: denying.client_id }, 400],
      [{ client_id: 'none' }, 404],
      [{ connection_id: 'con_none' }, 404],
      [{ roles: ['rol_none'] }, 404],
      [{ ttl_sec: 2_592_001 }, 400],
      [{ ttl_sec: -1 }, 400],
      [{ invitee: { email: 'nobody' } }, 400],
      [{ inviter: undefined }, 400],
      [{ ticket_id: 'mine' }, 400],
      [{ organization_id: 'org_other' }, 400],
      [{ id: 'uinv_mine' }, 400],
    ];
    for (const [over, status] of refused) {
      const answer = await request('/invitations', {
        method: 'POST',
        body: JSON.stringify(invitation(over)),
      });
      expect(answer.status, JSON.stringify(over)).to.equal(status);
    }
    expect((await invitations().list(organization)).data).to.deep.equal([]);
  });

  it('requires the scope of each call for invitations', async () => {
    const { id = '' } = await invitations().create(
      organization,
      invitation({ send_invitation_email: false }),
    );
    const scope = 'read:organizations update:organizations create:organization_members';
    const body = JSON.stringify(invitation());
    const calls: [string, RequestInit][] = [
      ['/invitations', {}],
      ['/invitations', { method: 'POST', body }],
      [`/invitations/${id}`, {}],
      [`/invitations/${id}`, { method: 'DELETE' }],
    ];
    for (const [path, init] of calls) expect((await request(path, init, scope)).status).to.equal(403);
  });

  it('deletes invitations with their organization', async () => {
    const { id = '' } = await invitations().create(
      organization,
      invitation({ send_invitation_email: false }),
    );
    await management.organizations.delete(organization);
    expect(await server.store.collection('invitations').get(id)).to.equal(undefined);
  });
});
