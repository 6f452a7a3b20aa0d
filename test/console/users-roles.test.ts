// Which roles may use each route of the user pages, and that forms must come from the console's own pages.
import { expect } from 'chai';
import { usersRoutes } from '../../src/features/console/users/console-users-routes.ts';
import { createAgent } from '../support/agent.ts';
import { type ConsoleAgent, openConsole, startConsole } from '../support/console.ts';
import { databaseUser } from '../support/database-user.ts';
import { tenant } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { UNLIMITED } from '../support/unlimited.ts';

const ROUTES = Object.keys(usersRoutes).map((key) => {
  const [method = '', path = ''] = key.split(' ');
  return { method, path };
});
const ONE = '/console/users/:id';

/** Routes that are forbidden to support. */
const NOT_SUPPORT = {
  GET: [
    '/console/users/new',
    '/console/users/transfer',
    '/console/users/transfer/:job',
    '/console/users/transfer/:job/file',
    `${ONE}/roles`,
    `${ONE}/delete`,
  ],
  POST: [
    ...['/console/users/new', '/console/users/transfer/import', '/console/users/transfer/export'],
    ...['login', 'password', 'metadata', 'link', 'delete', 'identities'].map((form) => `${ONE}/${form}`),
    ...['roles', 'roles/remove', 'roles/permission', 'roles/permission/remove'].map(
      (form) => `${ONE}/${form}`,
    ),
  ],
};
/** Pages that are forbidden to a viewer, who may not change anything. */
const NOT_VIEWER = [
  '/console/users/new',
  '/console/users/transfer',
  '/console/users/transfer/:job',
  '/console/users/transfer/:job/file',
  `${ONE}/delete`,
];

describe('the rights to users in the console', () => {
  let server: TestServer;
  let made = 0;
  before(async () => {
    server = await startConsole({ tenant: { ...tenant, ...UNLIMITED } });
  });
  after(() => server.stop());

  const newUser = async () => {
    const email = `role${++made}@example.test`;
    const outcome = await server.users.create(
      databaseUser({ email, password: 'Another-Horse-2', connection: 'users' }),
    );
    if (!('user' in outcome)) throw new Error(JSON.stringify(outcome));
    return (outcome.user as { id: string }).id;
  };
  const pathOf = (path: string, id: string) =>
    path.replace(':id', encodeURIComponent(id)).replace(':job', 'job_none');
  const ask = (at: ConsoleAgent, method: string, path: string) =>
    method === 'GET' ? at.get(path) : at.post(path);

  for (const role of ['owner', 'editor', 'viewer', 'support'] as const) {
    it(`are checked on every route: ${role}`, async () => {
      const at = await openConsole(server, role);
      for (const { method, path } of ROUTES) {
        const id = await newUser();
        const { status } = await ask(at, method, pathOf(path, id));
        const isRefused =
          (role === 'support' && NOT_SUPPORT[method as 'GET' | 'POST'].includes(path)) ||
          (role === 'viewer' && (method === 'POST' || NOT_VIEWER.includes(path)));
        // The form with a file may be refused before its sender's rights are checked.
        const isForm = path.endsWith('/import');
        if (isRefused) expect(status, `${method} ${path}`).to.be.oneOf(isForm ? [403, 400] : [403]);
        else expect(status, `${method} ${path}`).to.be.oneOf([200, 303, 400, 404]);
        const before = await server.users.get(id);
        if (isRefused) expect(before, path).to.include({ id });
      }
    });

    it(`decide which links and forms are offered: ${role}`, async () => {
      const at = await openConsole(server, role);
      const id = await newUser();
      const refused =
        role === 'support' ? NOT_SUPPORT.POST : role === 'viewer' ? ROUTES.map(({ path }) => path) : [];
      for (const { path } of ROUTES.filter(({ method }) => method === 'GET')) {
        const { status, text } = await at.get(pathOf(path, id));
        if (status !== 200) continue;
        const forms = [...text.matchAll(/method="post" action="([^"]+)"/g)].map(([, action = '']) => action);
        for (const one of refused) expect(forms, `${path}: ${one}`).to.not.include(pathOf(one, id));
        for (const [, to = ''] of text.matchAll(/href="(\/console\/users[^"?]*)"/g))
          expect((await at.get(to)).status, `${path}: ${to}`).to.equal(200);
      }
    });
  }

  it('hide metadata from support', async () => {
    const id = await newUser();
    await server.users.update(id, { app_metadata: { note: 'for-the-application' } });
    const page = `/console/users/${encodeURIComponent(id)}`;
    expect((await (await openConsole(server, 'support')).get(page)).text).to.not.contain(
      'for-the-application',
    );
    expect((await (await openConsole(server, 'viewer')).get(page)).text).to.contain('for-the-application');
  });

  it('let support change names, but not addresses or passwords', async () => {
    const id = await newUser();
    const support = await openConsole(server, 'support');
    const path = `/console/users/${encodeURIComponent(id)}`;
    const form = {
      name: 'Helped',
      email: 'eve@example.test',
      password: 'Eves-Horse-6',
      email_verified: 'true',
    };
    expect((await support.post(`${path}/profile`, form)).status).to.equal(303);
    const user = await server.users.get(id);
    expect(user).to.include({ name: 'Helped' });
    expect(user?.email).to.not.equal('eve@example.test');
    expect(user?.email_verified).to.equal(false);
  });

  it("require the token of the session and the console's origin", async () => {
    const owner = await openConsole(server);
    const other = await openConsole(server, 'editor');
    const token =
      /name="console-token" content="([^"]+)"/.exec((await other.get('/console')).text)?.[1] ?? '';
    for (const { method, path } of ROUTES.filter((one) => one.method === 'POST')) {
      const id = await newUser();
      for (const _csrf of ['', 'guessed', token]) {
        const { status } = await owner.agent.request(pathOf(path, id), { form: { _csrf } });
        expect(status, `${method} ${path}`).to.be.oneOf(path.endsWith('/import') ? [400, 403] : [403]);
      }
      expect(await server.users.get(id), path).to.include({ id });
    }
    const own = /name="console-token" content="([^"]+)"/.exec((await owner.get('/console')).text)?.[1] ?? '';
    const id = await newUser();
    const foreign = await owner.agent.request(pathOf(`${ONE}/block`, id), {
      form: { _csrf: own },
      headers: { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' },
    });
    expect(foreign.status).to.equal(403);
    expect((await server.users.get(id))?.blocked).to.not.equal(true);
  });

  it('require a session', async () => {
    for (const { method, path } of ROUTES) {
      const id = await newUser();
      const stranger = createAgent(server);
      const to = pathOf(path, id);
      const answer = method === 'GET' ? await stranger.get(to) : await stranger.request(to, { form: {} });
      expect(answer.status, `${method} ${path}`).to.equal(303);
      expect(answer.location).to.contain('/authorize?');
      expect(await server.users.get(id)).to.include({ id });
    }
  });
});
