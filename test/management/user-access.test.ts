// Roles, permissions and organizations of users with the published client, and their effect on tokens.
import type { ManagementClient } from 'auth0';
import { expect } from 'chai';
import { type Agent, createAgent } from '../support/agent.ts';
import { payload, tenant, token, USER } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import {
  callsWith,
  type ManagementCall,
  managementClient,
  managementToken,
  startManaged,
} from './support.ts';

const GUARDED = 'guarded-api';

describe('roles and permissions of a user', () => {
  let server: TestServer;
  let management: ManagementClient;
  let agent: Agent;
  let admin: string;
  let call: ManagementCall;
  let people = 0;

  before(async () => {
    const guarded = tenant.resourceServers.map((api) =>
      api.identifier === GUARDED ? { ...api, allow_offline_access: true } : api,
    );
    server = await startManaged({ ...tenant, resourceServers: guarded });
    management = managementClient(server);
    agent = createAgent(server);
    admin = await managementToken(server);
    call = callsWith(server, admin);
  });
  after(() => server.stop());

  const someone = async () => {
    const email = `member-${people++}@example.test`;
    const { user_id = '' } = await management.users.create({
      connection: 'users',
      email,
      password: USER.password,
    });
    return { id: user_id, email };
  };
  const role = async (...permissions: string[]) => {
    const { id = '' } = await management.roles.create({ name: `role-${people++}` });
    await call('POST', `/roles/${id}/permissions`, {
      permissions: permissions.map((permission_name) => ({
        resource_server_identifier: GUARDED,
        permission_name,
      })),
    });
    return id;
  };
  const tokens = async (email: string, scope = 'openid admin look') =>
    (
      await token(agent, {
        grant_type: 'password',
        client_id: 'web',
        client_secret: 'web-secret',
        username: email,
        password: USER.password,
        audience: GUARDED,
        scope,
      })
    ).json();
  const admits = async (email: string) => payload((await tokens(email)).access_token);

  it('are in the next token after they are assigned, and not in the next one after they are removed', async () => {
    const { id, email } = await someone();
    expect(await admits(email)).to.deep.include({ permissions: [], scope: 'openid' });
    const admins = await role('admin');
    await management.users.roles.assign(id, { roles: [admins] });
    expect(await admits(email)).to.deep.include({ permissions: ['admin'], scope: 'openid admin' });
    await management.users.permissions.create(id, {
      permissions: [{ resource_server_identifier: GUARDED, permission_name: 'look' }],
    });
    const both = await admits(email);
    expect(both.permissions).to.have.members(['admin', 'look']);
    expect(both.scope.split(' ')).to.have.members(['openid', 'admin', 'look']);
    await management.users.roles.delete(id, { roles: [admins] });
    expect(await admits(email)).to.deep.include({ permissions: ['look'], scope: 'openid look' });
    await management.users.permissions.delete(id, {
      permissions: [{ resource_server_identifier: GUARDED, permission_name: 'look' }],
    });
    expect(await admits(email)).to.deep.include({ permissions: [], scope: 'openid' });
  });

  it('are evaluated again when a token is refreshed, and after a role is changed or deleted', async () => {
    const { id, email } = await someone();
    const admins = await role('admin', 'look');
    await management.users.roles.assign(id, { roles: [admins] });
    const { refresh_token } = await tokens(email, 'openid admin look offline_access');
    const refreshed = async () => {
      const answer = await token(agent, {
        grant_type: 'refresh_token',
        client_id: 'web',
        client_secret: 'web-secret',
        refresh_token,
      });
      const { access_token, scope } = answer.json();
      const { permissions, scope: inToken } = payload(access_token);
      expect(scope).to.equal(inToken);
      return { permissions, scope };
    };
    expect(await refreshed()).to.deep.equal({
      permissions: ['admin', 'look'],
      scope: 'openid admin look offline_access',
    });
    await call('DELETE', `/roles/${admins}/permissions`, {
      permissions: [{ resource_server_identifier: GUARDED, permission_name: 'admin' }],
    });
    expect(await refreshed()).to.deep.equal({
      permissions: ['look'],
      scope: 'openid look offline_access',
    });
    await management.roles.delete(admins);
    expect(await refreshed()).to.deep.equal({ permissions: [], scope: 'openid offline_access' });
  });

  it('are listed: roles by page, permissions with their sources', async () => {
    const { id } = await someone();
    const first = await role('look');
    const second = await role('look', 'admin');
    await management.users.roles.assign(id, { roles: [first, second, first] });
    await management.users.permissions.create(id, {
      permissions: [{ resource_server_identifier: GUARDED, permission_name: 'look' }],
    });
    const path = `/users/${encodeURIComponent(id)}`;
    const roles = (await call('GET', `${path}/roles?include_totals=true&per_page=1&page=1`)).json();
    expect(roles).to.deep.include({ start: 1, limit: 1, total: 2 });
    expect(roles.roles).to.have.length(1);
    expect((await call('GET', `${path}/roles?page=9`)).json()).to.deep.equal([]);
    const permissions = (await call('GET', `${path}/permissions`)).json() as Record<string, any>[];
    const look = permissions.find((one) => one.permission_name === 'look');
    expect(look).to.include({ resource_server_identifier: GUARDED, resource_server_name: 'Guarded API' });
    expect(look?.sources).to.deep.include({ source_type: 'DIRECT', source_id: '', source_name: '' });
    expect(look?.sources.map((one: { source_id: string }) => one.source_id)).to.have.members([
      '',
      first,
      second,
    ]);
    const listed: string[] = [];
    for await (const one of await management.users.permissions.list(id))
      listed.push(one.permission_name ?? '');
    expect(listed).to.have.members(['look', 'admin']);
  });

  it('are all assigned by concurrent calls', async () => {
    const { id } = await someone();
    const ids = await Promise.all([role('look'), role('admin'), role('look', 'admin')]);
    await Promise.all(ids.map((one) => management.users.roles.assign(id, { roles: [one] })));
    const roles = (await call('GET', `/users/${encodeURIComponent(id)}/roles`)).json() as { id: string }[];
    expect(roles.map((one) => one.id)).to.have.members(ids);
  });

  it('require all scopes of a call, and must exist', async () => {
    const { id } = await someone();
    const path = `/users/${encodeURIComponent(id)}`;
    const one = await role('look');
    for (const [method, scope] of [
      ['GET', 'read:users read:role_members'],
      ['GET', 'read:roles read:role_members'],
      ['POST', 'update:users'],
      ['POST', 'create:role_members'],
      ['DELETE', 'update:users'],
      ['DELETE', 'delete:role_members'],
    ] as const) {
      const bearer = await managementToken(server, scope);
      const body = method === 'GET' ? undefined : { roles: [one] };
      const answer = await call(method, `${path}/roles`, body, bearer);
      expect(answer.status, `${method} with ${scope}`).to.equal(403);
      expect(answer.json()).to.include({ errorCode: 'insufficient_scope' });
    }
    const unknown = { resource_server_identifier: GUARDED, permission_name: 'no-such' };
    for (const [method, where, body, status] of [
      ['POST', `${path}/roles`, { roles: ['rol_none'] }, 404],
      ['POST', `${path}/roles`, { roles: [] }, 400],
      ['POST', `${path}/permissions`, { permissions: [unknown] }, 404],
      ['POST', `${path}/permissions`, { permissions: [{ ...unknown, source: 'x' }] }, 400],
      ['POST', '/users/auth0%7Cnone/roles', { roles: [one] }, 404],
      ['DELETE', '/users/auth0%7Cnone/roles', { roles: [one] }, 404],
      ['GET', '/users/auth0%7Cnone/roles', undefined, 404],
      ['GET', '/users/auth0%7Cnone/permissions', undefined, 404],
      ['GET', '/users/auth0%7Cnone/organizations', undefined, 404],
      // What is no user ID at all: tools take a 404 for a user who was removed.
      ...['', '/roles', '/permissions', '/organizations', '/sessions', '/refresh-tokens'].map(
        (what) => ['GET', `/users/someone%40example.test${what}`, undefined, 400] as const,
      ),
      ['POST', '/users/none/roles', { roles: [one] }, 400],
      ['DELETE', '/users/none/permissions', { permissions: [unknown] }, 400],
    ] as const) {
      expect((await call(method, where, body)).status, `${method} ${where}`).to.equal(status);
    }
    expect((await call('GET', `${path}/roles`)).json()).to.deep.equal([]);
  });

  it('are listed beside the organizations that the user is a member of', async () => {
    const { id } = await someone();
    const { id: organization = '' } = await management.organizations.create({ name: `org-${people++}` });
    await management.organizations.members.create(organization, { members: [id] });
    const listed = (await call('GET', `/users/${encodeURIComponent(id)}/organizations`)).json();
    expect(listed).to.have.length(1);
    expect(listed[0]).to.include({ id: organization });
    const wrapped = (
      await call('GET', `/users/${encodeURIComponent(id)}/organizations?include_totals=true`)
    ).json();
    expect(wrapped).to.deep.include({ start: 0, limit: 50, total: 1 });
  });
});
