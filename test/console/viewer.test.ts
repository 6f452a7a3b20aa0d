// What the role of viewer may do on any page: it reads what is not masked, and starts and changes nothing.
import { expect } from 'chai';
import { fillPath, placesOf } from '../../src/features/console/resources/declared.ts';
import { operationsOf } from '../../src/features/console/resources/operations.ts';
import { callsWith } from '../../src/features/management/call.ts';
import { createAgent, readForm } from '../support/agent.ts';
import { type ConsoleAgent, openConsole, startConsole } from '../support/console.ts';
import { tenant, USER } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { UNLIMITED } from '../support/unlimited.ts';
import { until } from '../support/wait-until.ts';

const EXPORTS = '/console/create/jobs/users-exports';
const TOKEN = 'tok-4711';

describe('the role of viewer', () => {
  let server: TestServer;
  let viewer: ConsoleAgent;
  let owner: ConsoleAgent;
  before(async () => {
    server = await startConsole({ tenant: { ...tenant, ...UNLIMITED } });
    viewer = await openConsole(server, 'viewer');
    owner = await openConsole(server, 'owner');
    const [user] = await server.users.withEmail(USER.email);
    await server.users.update(user?.id ?? '', {
      app_metadata: { api_token: TOKEN, vault: { private_key: TOKEN }, plan: 'gold' },
    });
  });
  after(() => server.stop());

  const jobs = async () => (await server.store.collection('jobs').list({ limit: 10 })).records.length;

  it('has no form that starts or changes anything, whatever scopes the call has', async () => {
    const { _csrf = '' } = readForm(await viewer.get('/console'), '_csrf').fields;
    const done = [...placesOf().values()].flatMap((place) =>
      operationsOf(place).map(([operation]) => {
        const params = [...place.path.matchAll(/:(\w+)/g)].map(([, name]) => [name, 'unknown1'] as const);
        return `/console/${operation}${fillPath(place.path, Object.fromEntries(params))}`;
      }),
    );
    expect(done).to.include(EXPORTS);
    for (const path of done) {
      expect((await viewer.get(path)).status, path).to.equal(403);
      const form = { _csrf, step: 'save', body: '{}' };
      expect((await viewer.agent.request(path, { form })).status, path).to.equal(403);
    }
    expect(await jobs()).to.equal(0);
  });

  it('cannot be forgotten by a call that does something on a scope to read', () => {
    const declare = (roleScopes?: string[]) =>
      callsWith<object>()({
        method: 'POST',
        path: '/copies',
        scopes: ['read:users'],
        ...(roleScopes && { roleScopes }),
        summary: 'Copy',
        handle: async () => ({ status: 200 }),
      });
    expect(() => declare()).to.throw('POST /copies');
    expect(declare(['create:users'])).to.have.property('path', '/copies');
  });

  it('does not get the file of an export, for which every download asks for session, role and a recent login', async () => {
    const begun = await owner.post('/console/users/transfer/export', { format: 'json' });
    expect(begun.status, begun.text).to.equal(303);
    const { pathname } = new URL(begun.location, server.url);
    let page = await owner.get(pathname);
    await until(async () => {
      page = await owner.get(pathname);
      return !page.text.includes('id="open-job"');
    });
    const link = /href="([^"]*\/file)"/.exec(page.text)?.[1] ?? '';
    expect(page.text).not.to.contain('signature=');
    const { pathname: file } = new URL(link, server.url);
    const id = file.split('/').at(-2);
    const got = await owner.agent.request(file, { method: 'GET' });
    expect(got.status).to.equal(200);
    expect(got.headers).to.include({ 'content-type': 'application/gzip', 'cache-control': 'no-store' });
    expect((await viewer.agent.get(file)).status).to.equal(403);
    expect((await createAgent(server).get(file)).status).to.equal(303);
    const shown = await viewer.get(`/console/resources/jobs/${id}`);
    expect(shown.text).not.to.contain('signature=');
    server.tick(11 * 60_000);
    const late = await owner.agent.get(file);
    expect(late.status).to.equal(303);
    expect(late.location).to.contain('/authorize');
  });

  for (const field of [
    'app_metadata.api_token',
    'app_metadata.vault.private_key',
    'app_metadata.api\\_token',
  ])
    it(`finds nothing by what it sees masked: ${field}`, async () => {
      const found = async (path: string, value: string, extra: Record<string, string> = {}) => {
        const query = new URLSearchParams({ ...extra, q: `${field}:${value}` });
        const { status, text } = await viewer.get(`${path}?${query}`);
        return { status, hasFound: text.includes(USER.email) };
      };
      for (const path of ['/console/users', '/console/users/found', '/console/resources/users'])
        for (const value of ['tok-4*', TOKEN, '[tok TO tol]']) {
          const { status, hasFound } = await found(path, value);
          expect(hasFound, `${path} ${value}`).to.equal(false);
          expect(status).to.equal((await found(path, 'nothing-like-it')).status);
        }
    });

  it('finds users by what it sees', async () => {
    const query = new URLSearchParams({ q: 'app_metadata.plan:gold' });
    expect((await viewer.get(`/console/users?${query}`)).text).to.contain(USER.email);
    expect((await viewer.get('/console/users?q=ada')).text).to.contain(USER.email);
  });
});
