// The tenant file together with the Management API: what applying a file records, removes and creates again.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { parse } from 'yaml';
import { sendOrder } from '../../src/server/administration/send.ts';
import type { Store } from '../../src/store/contract.ts';
import { openStore } from '../../src/store/open.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { EXAMPLE } from './example.ts';
import { ADMIN, callApi, startManaged } from './support.ts';

type Member = Record<string, unknown>;

/** The tenant of {@link startManaged}, with another connection and a role. */
const TENANT = {
  ...(parse(EXAMPLE) as { databases: Member[]; connections: Member[] }),
  roles: [{ name: 'Editor' }],
} as Member & { databases: Member[] };
const LEGACY = { name: 'legacy', strategy: 'auth0', enabled_clients: ['example-spa'] };
const WITH_LEGACY = { ...TENANT, databases: [...TENANT.databases, LEGACY] };

/** The tenant file to apply, with the client that the tests authenticate as. */
const file = (tenant: Member = TENANT) => ({
  ...tenant,
  clients: [
    ...(tenant.clients as Member[]),
    { ...ADMIN, name: 'Administration', app_type: 'non_interactive' },
  ],
  clientGrants: [
    ...(tenant.clientGrants as Member[]),
    {
      client_id: ADMIN.client_id,
      audience: 'https://tenant.example.test/api/v2/',
      allow_all_scopes: true,
    },
  ],
});

describe('applying a tenant file to a running server', () => {
  let server: TestServer;
  afterEach(() => server.stop());

  const order = async (command: 'apply' | 'plan', tenant: object) =>
    (await sendOrder(server.dataDir, { command, tenant: { ...tenant } }))?.result as string[];
  const json = async (method: string, path: string, body?: unknown) => {
    const response = await callApi(server, method, path, body);
    return (await response.json()) as any; // any: of many kinds
  };
  const eventsOf = async (command: string) => {
    const logs = (await json('GET', '/logs?per_page=100')) as Member[];
    return logs.filter((one) => (one.details as { request?: Member })?.request?.command === command) as any[];
  };

  it('logs who changed what, with the values before and after, without secrets', async () => {
    server = await startManaged(TENANT);
    const secret = 'another-secret-of-the-file';
    const changed = file({
      ...TENANT,
      roles: [{ name: 'Editor', description: 'Writes' }, { name: 'Reader' }],
    });
    changed.clients = changed.clients.map((one) =>
      one.client_id === ADMIN.client_id
        ? one
        : { ...one, ...('client_secret' in one ? { client_secret: secret } : {}), description: 'changed' },
    ) as never;
    await order('apply', changed);
    const events = await eventsOf('gatehouse apply');
    expect(events.map(({ type, user_name }) => [type, user_name])).to.deep.include([
      'sapi',
      'local administrator',
    ]);
    const of = (what: string) => events.find(({ description }) => description.endsWith(what));
    expect(of('+ roles.Reader').details).to.not.have.property('before');
    expect(of('~ roles.Editor').details.before).to.not.have.property('description');
    expect(of('~ roles.Editor').details.after.description).to.equal('Writes');
    expect(of('~ clients.example-web').details.after.description).to.equal('changed');
    expect(JSON.stringify(events)).not.to.contain(secret);
    await order('apply', changed);
    expect(await eventsOf('gatehouse apply')).to.have.length(events.length);

    await sendOrder(server.dataDir, { command: 'rotate' });
    const [rotated] = await eventsOf('gatehouse keys rotate');
    expect(rotated.details.before.kid).to.be.a('string').and.not.equal(rotated.details.after.kid);
    const admin = (await sendOrder(server.dataDir, { command: 'admin', name: 'Another' }))?.result;
    const [made] = await eventsOf('gatehouse admin create');
    expect(made.details.after).to.deep.equal({ client_id: admin?.client_id, name: 'Another' });
    expect(JSON.stringify(made)).not.to.contain(admin?.client_secret);
  });

  it('removes the users of a removed connection, as a call does, and says so', async () => {
    server = await startManaged(WITH_LEGACY);
    const { user_id } = await json('POST', '/users', {
      connection: 'legacy',
      email: 'old@example.test',
      password: 'A-long-Passw0rd!',
    });
    const path = `/users/${encodeURIComponent(user_id)}`;
    expect(await order('plan', file())).to.include('- connections.legacy (with its users)');
    expect((await callApi(server, 'GET', path)).status).to.equal(200);
    expect(await order('apply', file())).to.include('- connections.legacy (with its users)');
    while ((await callApi(server, 'GET', path)).status !== 404);
    // A new connection of that name is refused until all are removed, and does not have them either.
    while ((await server.store.collection('documents').get('connection-removal/legacy')) !== undefined)
      await json('GET', '/roles');
    await order('apply', file(WITH_LEGACY));
    expect(await json('GET', '/users-by-email?email=old@example.test')).to.deep.equal([]);
  });

  it('exports a comment that names what the file cannot contain', async () => {
    server = await startManaged(TENANT);
    const exported = async () =>
      String((await sendOrder(server.dataDir, { command: 'export' }))?.result).split('\n');
    const words = async () => (await exported()).filter((line) => line.startsWith('# Not in it'));
    expect(await words()).to.deep.equal([]);
    await json('POST', '/hooks', { name: 'enrich', script: 'x', triggerId: 'credentials-exchange' });
    expect(await words()).to.deep.equal(['# Not in it, as management tools keep it: hooks (1)']);
  });

  it('completes with a second apply what a failed one left undone', async () => {
    let isFailing = false;
    const open = async (options: Parameters<typeof openStore>[0]) =>
      failing(await openStore(options), () => isFailing);
    server = await startServer({ tenant: file(), open });
    const next = file({ ...WITH_LEGACY, roles: [{ name: 'Reader' }] });
    isFailing = true;
    const failed = await order('apply', next).catch((thrown: Error) => thrown.message);
    expect(failed).to.equal('the disk is full');
    isFailing = false;
    // What was written before the failure is kept; the plan has the rest.
    const rest = await order('plan', next);
    expect(rest).to.include('+ roles.Reader').and.not.include('+ connections.legacy');
    expect(await order('apply', next)).to.deep.equal(rest);
    expect(await order('plan', next)).to.deep.equal([]);
  });
});

describe('records that a call has removed', () => {
  let server: TestServer;
  let dataDir: string;

  before(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'gatehouse-apply-'));
  });
  after(async () => {
    await server.stop();
    await rm(dataDir, { recursive: true });
  });

  const start = async (tenant: object) => {
    server = await startManaged(tenant, dataDir);
  };
  const names = async (path: string) =>
    ((await (await callApi(server, 'GET', path)).json()) as { name: string }[]).map(({ name }) => name);
  const remove = async (path: string, name: string) => {
    const all = (await (await callApi(server, 'GET', path)).json()) as Record<string, string>[];
    const id = all.find((one) => one.name === name);
    const response = await callApi(server, 'DELETE', `${path}/${id?.client_id ?? id?.id}`);
    expect(response.status).to.be.within(200, 204);
  };

  it('are not created again by a start, unless newly declared in the file, but are by apply', async () => {
    await start(WITH_LEGACY);
    await remove('/roles', 'Editor');
    await remove('/connections', 'legacy');
    await remove('/clients', 'Example SPA');
    await server.stop();

    await start({ ...WITH_LEGACY, roles: [{ name: 'Editor' }, { name: 'Reader' }] });
    expect(await names('/roles')).to.deep.equal(['Reader']);
    expect(await names('/connections')).not.to.include('legacy');
    expect(await names('/clients')).not.to.include('Example SPA');

    await sendOrder(dataDir, { command: 'apply', tenant: file(WITH_LEGACY) });
    expect(await names('/roles')).to.deep.equal(['Editor']);
    expect(await names('/connections')).to.include('legacy');
    expect(await names('/clients')).to.include('Example SPA');
  });
});

/** Returns a store in which writing roles fails while `isFailing` returns true. */
function failing(store: Store, isFailing: () => boolean): Store {
  return {
    ...store,
    collection: ((name: 'roles') => {
      const collection = store.collection(name);
      if (name !== 'roles') return collection;
      const put: typeof collection.put = async (record) => {
        if (isFailing()) throw new Error('the disk is full');
        await collection.put(record);
      };
      return { ...collection, put };
    }) as Store['collection'],
  };
}
