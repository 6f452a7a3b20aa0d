// What the role of support may do on any page: its scopes alone would allow taking users over.
import { expect } from 'chai';
import type { CallRules } from '../../src/features/management/call.ts';
import { MANAGEMENT_CALLS } from '../../src/features/management/calls.ts';
import { createAgent } from '../support/agent.ts';
import { type ConsoleAgent, openConsole, startConsole } from '../support/console.ts';
import { logIn, pkce, responseOf, spaRequest, tenant, USER } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { UNLIMITED } from '../support/unlimited.ts';
import { until } from '../support/wait-until.ts';

const CALLS = MANAGEMENT_CALLS as readonly CallRules[];

/** The only changes that support may make. Add one only after considering how an attacker could use it. */
const CHANGES = [
  'DELETE /anomaly/blocks/ips/:id',
  'DELETE /device-credentials/:credential_id',
  'DELETE /grants',
  'DELETE /grants/:id',
  'DELETE /guardian/enrollments/:enrollment_id',
  'DELETE /refresh-tokens/:id',
  'DELETE /sessions/:id',
  'DELETE /user-blocks',
  'DELETE /user-blocks/:id',
  'DELETE /users/:id/authentication-methods',
  'DELETE /users/:id/authentication-methods/:method_id',
  'DELETE /users/:id/authenticators',
  'DELETE /users/:id/multifactor/:provider',
  'DELETE /users/:id/refresh-tokens',
  'DELETE /users/:id/sessions',
  'POST /refresh-tokens/revoke',
  'POST /sessions/:id/revoke',
  'POST /users/:id/multifactor/actions/invalidate-remember-browser',
  'POST /users/:id/revoke-access',
];

describe('the role of support', () => {
  let server: TestServer;
  let support: ConsoleAgent;
  let ada: string;
  before(async () => {
    server = await startConsole({ tenant: { ...tenant, ...UNLIMITED } });
    support = await openConsole(server, 'support');
    const [user] = await server.users.withEmail(USER.email);
    ada = user?.id ?? '';
    await server.users.update(ada, { app_metadata: { note: 'for-the-application' } });
  });
  after(() => server.stop());

  it('may make no changes except those listed here', async () => {
    const params = (path: string) =>
      path.replaceAll(':id', encodeURIComponent(ada)).replaceAll(/:\w+/g, 'none');
    for (const { method, path } of CALLS.filter((call) => call.method !== 'GET')) {
      if (CHANGES.includes(`${method} ${path}`)) continue;
      const operation = { PATCH: 'change', PUT: 'replace', POST: 'create', DELETE: 'remove' }[
        method as 'PUT'
      ];
      const to = `/console/${operation}${params(path)}`;
      expect((await support.get(to)).status, `GET ${to}`).to.be.oneOf([403, 404]);
      const form = {
        email: 'eve@example.test',
        password: 'Eves-Horse-6',
        'password.value': 'x',
        confirm: 'yes',
      };
      expect((await support.post(to, form)).status, `POST ${to}`).to.be.oneOf([403, 404]);
    }
    const user = await server.users.get(ada);
    expect(user).to.include({ email: USER.email });
    expect(user?.app_metadata).to.deep.equal({ note: 'for-the-application' });
    const login = await logIn(createAgent(server), server, spaRequest(pkce().challenge));
    expect(responseOf(login).code).to.be.a('string');
  }).timeout(120_000);

  it('may open the pages about users, and no others', async () => {
    const { text } = await support.get('/console');
    const nav = [...text.matchAll(/<li><a href="(\/console\/?[^"?]*)"/g)].map(([, path]) => path);
    expect(nav).to.deep.equal([
      '/console',
      ...['users', 'log', 'security'].map((name) => `/console/${name}`),
    ]);
    for (const path of [
      'organizations',
      'clients',
      'connections',
      'roles',
      'tenants/settings',
      'actions/actions',
    ])
      expect((await support.agent.get(`/console/resources/${path}`)).status, path).to.equal(403);
    expect((await support.get('/console/resources')).text).to.not.contain(
      '/console/resources/organizations"',
    );
  });

  it('sees no roles and permissions of users', async () => {
    const one = encodeURIComponent(ada);
    const nav = await support.get('/console');
    expect(nav.text).to.not.contain('href="/console/roles"');
    for (const path of [
      `users/${one}/roles`,
      `resources/users/${one}/roles`,
      `resources/users/${one}/permissions`,
      'resources/roles',
      'resources/roles/some-role/users',
      `resources/organizations/some-org/members/${one}/roles`,
    ])
      expect((await support.get(`/console/${path}`)).status, path).to.equal(403);
    expect((await support.get(`/console/resources/users/${one}/organizations`)).status).to.equal(200);
  });

  it('sees in the log that rights were granted, but not which and to whom', async () => {
    const owner = await openConsole(server);
    const newRole = async (name: string) => {
      const { location } = await owner.post('/console/create/roles', { name, description: '' });
      return /\/roles\/(rol_\w+)/.exec(location)?.[1] ?? '';
    };
    const [one, other] = [await newRole('Auditors'), await newRole('Clerks')];
    const given = await owner.post(`/console/create/users/${encodeURIComponent(ada)}/roles`, { roles: one });
    const also = await owner.post(`/console/create/roles/${other}/users`, { users: ada });
    expect([given.status, also.status], given.text + also.text).to.deep.equal([303, 303]);
    const [, key = ''] = ada.split('|');
    const saysBoth = (text: string) => text.includes(key) && (text.includes(one) || text.includes(other));
    const gave = async () => {
      const { records } = await server.store.collection('logs').list({ limit: 100 });
      return records.filter(({ details }) => saysBoth(JSON.stringify(details ?? {})));
    };
    await until(async () => (await gave()).length === 2);
    for (const { id } of await gave()) {
      const { text } = await support.get(`/console/log/${id}`);
      expect(text).to.contain('/api/v2/');
      expect(saysBoth(text), text).to.equal(false);
    }
  });

  it('sees no metadata, and cannot search by it', async () => {
    const id = encodeURIComponent(ada);
    for (const path of [`/console/users/${id}`, `/console/resources/users/${id}`, '/console/resources/users'])
      expect((await support.get(path)).text, path).to.not.contain('for-the-application');
    const found = await support.get('/console/users?q=app_metadata.note:for-the-application');
    expect(found.text).to.not.contain(USER.email);
    expect(found.status).to.equal(200);
    for (const q of ['app_metadata.note:for*', 'app_meta\\data.note:for*', '_exists_:app\\_metadata.note']) {
      const generic = await support.get(`/console/resources/users?${new URLSearchParams({ q })}`);
      expect(generic.status, q).to.equal(403);
    }
    const owner = await openConsole(server);
    const seen = await owner.get('/console/users?q=app_metadata.note:for-the-application');
    expect(seen.text).to.contain(USER.email);
  });
});
