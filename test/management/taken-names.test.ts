// A name that somebody takes again: nothing of the connection or API that had it belongs to the new one.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { parse } from 'yaml';
import { createLog } from '../../src/runtime/log.ts';
import { sendOrRunOrder } from '../../src/server/administration/carry-out.ts';
import { sendOrder } from '../../src/server/administration/send.ts';
import type { Store } from '../../src/store/contract.ts';
import { openStore } from '../../src/store/open.ts';
import { readTenant } from '../../src/tenant/load.ts';
import type { TestServer } from '../support/server.ts';
import { EXAMPLE } from './example.ts';
import { ADMIN, callApi, startManaged } from './support.ts';

type Member = Record<string, unknown>;

const AUDIENCE = 'https://old.example.test/';
const BASE = parse(EXAMPLE) as Record<'databases' | 'resourceServers' | 'clients' | 'clientGrants', Member[]>;
const OLD = { name: 'old', strategy: 'auth0', enabled_clients: ['example-spa'] };
const WITH_OLD = {
  ...BASE,
  databases: [...BASE.databases, OLD],
  resourceServers: [
    ...BASE.resourceServers,
    { name: 'Old', identifier: AUDIENCE, scopes: [{ value: 'do:it' }] },
  ],
};

describe('a name that is taken again', () => {
  let server: TestServer;
  let dataDir: string;
  let userId: string;
  let roleId: string;

  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'gatehouse-taken-'));
    server = await startManaged(WITH_OLD, dataDir);
    const user = { connection: 'old', email: 'old@example.test', password: 'A-long-Passw0rd!' };
    userId = (await json('POST', '/users', user)).user_id;
    roleId = (await json('POST', '/roles', { name: 'Doer' })).id;
    const permissions = [{ resource_server_identifier: AUDIENCE, permission_name: 'do:it' }];
    await callApi(server, 'POST', `/roles/${roleId}/permissions`, { permissions });
    await json('POST', '/client-grants', {
      client_id: ADMIN.client_id,
      audience: AUDIENCE,
      scope: ['do:it'],
    });
  });
  afterEach(async () => {
    await server.stop();
    await rm(dataDir, { recursive: true });
  });

  const json = async (method: string, path: string, body?: unknown) =>
    (await (await callApi(server, method, path, body)).json()) as any; // any: of many kinds
  /** The file with what the tests need, as a server that {@link startManaged} starts has it. */
  const whole = (tenant: typeof BASE) => {
    const { client_id } = ADMIN;
    const audience = 'https://tenant.example.test/api/v2/';
    return readTenant({
      ...tenant,
      clients: [...tenant.clients, { ...ADMIN, name: 'Administration', app_type: 'non_interactive' }],
      clientGrants: [...tenant.clientGrants, { client_id, audience, allow_all_scopes: true }],
    }).tenant;
  };
  /** Carries out an order where no server runs. */
  const order = async (tenant: typeof BASE, command: 'apply' | 'plan' = 'apply') =>
    (await sendOrRunOrder(
      server.settings,
      { command, tenant: whole(tenant) },
      createLog('silent'),
    )) as string[];
  const refusalOf = (tenant: typeof BASE, command?: 'plan') =>
    order(tenant, command).then(
      () => undefined,
      (thrown: Error) => thrown.message,
    );
  const start = async (tenant: object) => {
    server = await startManaged(tenant, dataDir);
  };
  const expectNothingOfOld = async () => {
    expect((await json('GET', '/connections?name=old')).length).to.equal(1);
    expect(
      (await callApi(server, 'GET', `/resource-servers/${encodeURIComponent(AUDIENCE)}`)).status,
    ).to.equal(200);
    expect((await callApi(server, 'GET', `/users/${encodeURIComponent(userId)}`)).status).to.equal(404);
    expect(await json('GET', `/roles/${roleId}/permissions`)).to.deep.equal([]);
    expect(await json('GET', `/client-grants?audience=${encodeURIComponent(AUDIENCE)}`)).to.deep.equal([]);
  };

  it('by a second file without a server is refused while the users of the first are left', async () => {
    await server.stop();
    expect(await order(BASE)).to.include('- connections.old (with its users)');
    for (const command of [undefined, 'plan'] as const) {
      expect(await refusalOf({ ...WITH_OLD, resourceServers: BASE.resourceServers }, command)).to.equal(
        'connections.old: the users of the one with this name that was deleted are not removed yet; the server removes them while it runs: apply the file again after that',
      );
      expect(await refusalOf({ ...WITH_OLD, databases: BASE.databases }, command)).to.contain(
        `resourceServers.${AUDIENCE}: the permissions of the one with this identifier`,
      );
    }
    await start(WITH_OLD);
    await expectNothingOfOld();
  });

  it('at a start, after a process was killed while it removed them, waits for the removal', async () => {
    const { id } = (await json('GET', '/connections?name=old'))[0];
    await server.stop();
    // The store as a process leaves it that is killed after it has deleted the connection and the API.
    await withStore(async (store) => {
      const at = new Date().toISOString();
      const dates = { created_at: at, updated_at: at };
      const noted = { 'connection-removal': { name: 'old' }, 'api-removal': { identifier: AUDIENCE } };
      for (const [kind, body] of Object.entries(noted))
        await store
          .collection('documents')
          .put({ id: `${kind}/${Object.values(body)[0]}`, kind, body, ...dates });
      await store.collection('connections').delete(id);
      const [api] = await store.collection('resourceServers').findBy('identifier', AUDIENCE);
      await store.collection('resourceServers').delete(api?.id ?? '');
      // Otherwise the start would leave alone what was deleted on purpose.
      await store.collection('documents').delete('declared');
    });
    await start(WITH_OLD);
    await expectNothingOfOld();
  });

  it('by a file at a server that removes them is refused, as a call is', async () => {
    const documents = () => server.store.collection('documents');
    const at = new Date().toISOString();
    const note = {
      id: 'connection-removal/late',
      kind: 'connection-removal',
      body: { name: 'late' },
      created_at: at,
      updated_at: at,
    };
    await documents().put(note);
    const late = { ...OLD, name: 'late' };
    expect((await callApi(server, 'POST', '/connections', late)).status).to.equal(409);
    const tenant = { ...whole({ ...WITH_OLD, databases: [...WITH_OLD.databases, late] }) };
    const refusal = await sendOrder(dataDir, { command: 'apply', tenant }).catch(
      (thrown: Error) => thrown.message,
    );
    expect(refusal).to.contain('connections.late: the users of the one with this name');
    expect(await json('GET', '/connections?name=late')).to.deep.equal([]);
    await documents().delete(note.id);
    expect((await callApi(server, 'POST', '/connections', late)).status).to.equal(201);
  });

  it('in the same file is the same connection and API with another id, and keeps what it has', async () => {
    await server.stop();
    const other = {
      ...WITH_OLD,
      databases: [...BASE.databases, { ...OLD, id: 'con_other' }],
      resourceServers: [
        ...BASE.resourceServers,
        { id: 'other', name: 'Old', identifier: AUDIENCE, scopes: [{ value: 'do:it' }] },
      ],
    };
    expect(await order(other))
      .to.include('- connections.old')
      .and.include('+ connections.old');
    await start(other);
    expect((await json('GET', '/connections?name=old'))[0].id).to.equal('con_other');
    expect((await callApi(server, 'GET', `/users/${encodeURIComponent(userId)}`)).status).to.equal(200);
    expect(await json('GET', `/roles/${roleId}/permissions`)).to.have.length(1);
  });

  it('is not left by another name for the same id', async () => {
    const { id } = (await json('GET', '/connections?name=old'))[0];
    const [api] = await server.store.collection('resourceServers').findBy('identifier', AUDIENCE);
    await server.stop();
    const renamed = { ...WITH_OLD, databases: [...BASE.databases, { ...OLD, id, name: 'new' }] };
    expect(await refusalOf(renamed)).to.equal(
      'connections.new: its id is that of old, and the name cannot change, because the users of old would be left: without the id, old is removed and new is new',
    );
    const moved = { id: api?.id, name: 'Old', identifier: 'https://new.example.test/' };
    expect(
      await refusalOf({ ...WITH_OLD, resourceServers: [...BASE.resourceServers, moved] }, 'plan'),
    ).to.contain(`its id is that of ${AUDIENCE}, and the identifier cannot change`);
    await start(WITH_OLD);
    expect((await callApi(server, 'GET', `/users/${encodeURIComponent(userId)}`)).status).to.equal(200);
  });

  const withStore = async (work: (store: Store) => Promise<void>) => {
    const { databaseUrl, secretsKey } = server.settings;
    const log = createLog('silent');
    const store = await openStore({
      dataDir,
      databaseUrl,
      secretsKey,
      clock: Date.now,
      log,
      mustBeThere: true,
    });
    try {
      await work(store);
    } finally {
      await store.close();
    }
  };
});

describe('a role whose deletion was interrupted', () => {
  it('is not given back to its users by a new role of the same id', async () => {
    let isKilled = false;
    const open = async (options: Parameters<typeof openStore>[0]) => {
      const store = await openStore(options);
      const collection = (name: 'roles') => {
        const own = store.collection(name);
        const remove: typeof own.delete = async (id) => {
          const isDone = await own.delete(id);
          if (isKilled) throw new Error('the process was killed');
          return isDone;
        };
        return name === 'roles' ? { ...own, delete: remove } : own;
      };
      return { ...store, collection: collection as Store['collection'] };
    };
    const server = await startManaged({ ...BASE, roles: [{ name: 'Editor' }] }, undefined, {}, { open });
    const json = async (method: string, path: string, body?: unknown) =>
      (await (await callApi(server, method, path, body)).json()) as any; // any: of many kinds
    const connection = 'Username-Password-Authentication';
    const user = { connection, email: 'editor@example.test', password: 'A-long-Passw0rd!' };
    const path = `/users/${encodeURIComponent((await json('POST', '/users', user)).user_id)}/roles`;
    const [role] = await json('GET', '/roles');
    await callApi(server, 'POST', path, { roles: [role.id] });
    expect(await json('GET', path)).to.have.length(1);
    isKilled = true;
    expect((await callApi(server, 'DELETE', `/roles/${role.id}`)).status).to.equal(500);
    // As a tenant file does, which makes the id from the name.
    await server.store.collection('roles').insert({ ...role, permissions: [] });
    expect(await json('GET', path)).to.deep.equal([]);
    await server.stop();
  });
});
