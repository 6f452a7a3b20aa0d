// A call that is refused has written nothing, also where the refusal comes from the last of what it asks for.
import { expect } from 'chai';
import { tenant as base } from '../connections/passwordless/tenant.ts';
import { countedWrites } from '../support/counted-writes.ts';
import { USER } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { callsWith, type ManagementCall, managementToken, startManaged } from './support.ts';

/** Refuses every change, so that an answer of 503 shows that it was asked. */
const refusing = (...names: string[]) =>
  Object.fromEntries(
    names.map((name) => [
      name,
      `function (${name === 'change_email' ? 'a, b, c' : 'a, b'}, callback) { callback(new Error('asked')); }`,
    ]),
  );

const ELSEWHERE = {
  enabledDatabaseCustomization: true,
  import_mode: false,
  customScripts: {
    login: `function (email, password, callback) { callback(null, { user_id: email, email }); }`,
    get_user: `function (email, callback) { callback(null, null); }`,
    create: `function (user, callback) { callback(null); }`,
    verify: `function (email, callback) { callback(null, true); }`,
    delete: `function (id, callback) { callback(null); }`,
    ...refusing('change_email', 'change_password'),
  },
};

describe('a refused call of the Management API', () => {
  let server: TestServer;
  let call: ManagementCall;
  const { open, written } = countedWrites();
  before(async () => {
    const tenant = {
      ...base,
      roles: [],
      databases: [
        ...base.databases,
        { name: 'kept-elsewhere', enabled_clients: ['web'], options: ELSEWHERE },
      ],
      organizations: [{ name: 'acme', display_name: 'Acme' }],
    };
    server = await startManaged(tenant, undefined, {}, { open });
    call = callsWith(server, await managementToken(server));
  });
  after(() => server?.stop());

  let people = 0;
  const someone = async (connection = 'users', more: object = {}) => {
    const email = `refused-${people++}@example.test`;
    const made = await call('POST', '/users', {
      connection,
      email,
      ...(connection === 'email' ? {} : { password: USER.password }),
      ...more,
    });
    expect(made.status, made.text).to.equal(201);
    return `/users/${encodeURIComponent(made.json().user_id)}`;
  };
  /** Fills the metadata of a user, so that the next member is refused. */
  const filled = async (path: string) => {
    for (const name of ['a', 'b', 'c', 'd', 'e'])
      expect((await call('PATCH', path, { user_metadata: { [name]: 'x'.repeat(50_000) } })).status).to.equal(
        200,
      );
    return path;
  };
  const tooMuch = { user_metadata: { f: 'x'.repeat(50_000) } };
  const refused = async (method: 'POST' | 'PATCH', path: string, body: unknown, status: number) => {
    written();
    const answer = await call(method, path, body as object);
    expect(answer.status, answer.text).to.equal(status);
    expect(written()).to.deep.equal([]);
  };

  it('sets no password beside metadata that is too large', async () => {
    const path = await filled(await someone());
    await refused('PATCH', path, { password: 'Another-Password-1', ...tooMuch }, 400);
  });

  it('changes no linked identity beside metadata that is too large', async () => {
    const path = await filled(await someone());
    const other = await call('GET', await someone('email', { email_verified: true }));
    const identity = other.json().identities[0];
    const linked = await call('POST', `${path}/identities`, { provider: 'email', user_id: identity.user_id });
    expect(linked.status, linked.text).to.equal(201);
    await refused('PATCH', path, { connection: 'email', email: 'new@example.test', ...tooMuch }, 400);
  });

  it('asks no custom database beside metadata that is too large', async () => {
    const path = await filled(await someone('kept-elsewhere'));
    for (const change of [{ email: 'new@example.test' }, { password: 'Another-Password-1' }])
      await refused('PATCH', path, { ...change, ...tooMuch }, 400);
    expect((await call('PATCH', path, { email: 'new@example.test' })).status, 'is asked otherwise').to.equal(
      503,
    );
  });

  it('leaves the login page of all applications beside a profile that does not exist', async () => {
    const all = (await call('GET', '/clients?is_global=true')).json();
    await refused(
      'PATCH',
      `/clients/${all[0].client_id}`,
      {
        custom_login_page: '<p>new</p>',
        my_organization_configuration: {
          connection_profile_id: 'cop_none',
          connection_deletion_behavior: 'allow',
          allowed_strategies: [],
        },
      },
      400,
    );
  });

  it('does nothing for the first of several where the second does not exist', async () => {
    const user = (await call('GET', await someone())).json().user_id;
    const organization = (await call('GET', '/organizations')).json()[0];
    const role = (await call('POST', '/roles', { name: 'reader' })).json().id;
    const connection = (await call('GET', '/connections?name=users')).json()[0].id;
    const members = `/organizations/${organization.id}/members`;
    await refused('POST', members, { members: [user, 'auth0|none'] }, 404);
    expect((await call('POST', members, { members: [user] })).status).to.equal(204);
    await refused('POST', `${members}/${encodeURIComponent(user)}/roles`, { roles: [role, 'rol_none'] }, 404);
    await refused('POST', `/roles/${role}/users`, { users: [user, 'auth0|none'] }, 404);
    await refused('POST', `/users/${encodeURIComponent(user)}/roles`, { roles: [role, 'rol_none'] }, 404);
    await refused(
      'PATCH',
      `/connections/${connection}/clients`,
      [
        { client_id: 'm2m', status: true },
        { client_id: 'none', status: true },
      ],
      404,
    );
    await refused(
      'POST',
      '/connections',
      { name: 'new', strategy: 'auth0', enabled_clients: ['web', 'none'] },
      404,
    );
    await refused(
      'POST',
      '/organizations',
      { name: 'new', enabled_connections: [{ connection_id: connection }, { connection_id: 'con_none' }] },
      404,
    );
    await refused(
      'POST',
      `/organizations/${organization.id}/invitations`,
      {
        inviter: { name: 'A' },
        invitee: { email: 'b@example.test' },
        client_id: 'web',
        roles: [role, 'rol_none'],
      },
      400,
    );
    await refused('POST', '/tickets/password-change', { user_id: user, organization_id: 'org_none' }, 404);
  });
});
