// What is deleted with an API, and must not come back with a new API that has the same identifier.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import type { TestServer } from '../support/server.ts';
import { callApi, startManaged } from './support.ts';

const AUDIENCE = 'https://gone.example.test/';

describe('deleting an API', () => {
  let server: TestServer;

  before(async () => {
    server = await startManaged();
  });
  after(() => server.stop());

  const answer = async (method: string, path: string, body?: unknown) => {
    const response = await callApi(server, method, path, body);
    const text = await response.text();
    expect(response.status, text).to.be.within(200, 204);
    return (text === '' ? {} : JSON.parse(text)) as Record<string, string>;
  };
  const make = () =>
    answer('POST', '/resource-servers', { name: 'x', identifier: AUDIENCE, scopes: [{ value: 'do:it' }] });

  it('removes its permissions from users and roles', async () => {
    const { id } = await make();
    const permissions = [{ resource_server_identifier: AUDIENCE, permission_name: 'do:it' }];
    const role = await answer('POST', '/roles', { name: 'Doer' });
    const user = await answer('POST', '/users', {
      connection: 'Username-Password-Authentication',
      email: 'doer@example.test',
      password: 'A-long-Passw0rd!',
    });
    const paths = [
      `/roles/${role.id}/permissions`,
      `/users/${encodeURIComponent(user.user_id ?? '')}/permissions`,
    ];
    for (const path of paths) {
      await answer('POST', path, { permissions });
      expect(await answer('GET', path)).to.have.length(1);
    }
    await answer('DELETE', `/resource-servers/${id}`);
    // A new API is refused until all permissions are removed, because it would give them back.
    let status = 409;
    while (status === 409) {
      const again = { name: 'x', identifier: AUDIENCE, scopes: [{ value: 'do:it' }] };
      ({ status } = await callApi(server, 'POST', '/resource-servers', again));
    }
    expect(status).to.equal(201);
    for (const path of paths) expect(await answer('GET', path)).to.deep.equal([]);
  });

  it('deletes all of its client grants, beyond a thousand', async () => {
    const audience = 'https://granted.example.test/';
    const { id } = await answer('POST', '/resource-servers', { name: 'x', identifier: audience });
    const grants = server.store.collection('clientGrants');
    const all = Array.from({ length: 1_005 }, (_, n) => ({ id: `cgr_${n}`, client_id: `client-${n}` }));
    await Promise.all(all.map((one) => grants.insert({ ...one, audience, scope: [] } as never)));
    const read = () => answer('GET', `/client-grants?audience=${encodeURIComponent(audience)}&per_page=100`);
    expect(await read()).to.have.length(100);
    await answer('DELETE', `/resource-servers/${id}`);
    expect(await read()).to.deep.equal([]);
  });

  it('continues an interrupted removal at the next start, and ignores one whose API was never deleted', async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'gatehouse-removed-'));
    const apis = () => server.store.collection('resourceServers');
    const note = (identifier: string) => {
      const at = new Date().toISOString();
      const kind = 'api-removal';
      const record = {
        id: `${kind}/${identifier}`,
        kind,
        body: { identifier },
        created_at: at,
        updated_at: at,
      };
      return server.store.collection('documents').put(record);
    };
    await server.stop();
    server = await startManaged(undefined, dataDir);
    const { id = '' } = await make();
    const role = await answer('POST', '/roles', { name: 'Doer' });
    const path = `/roles/${role.id}/permissions`;
    const permissions = [{ resource_server_identifier: AUDIENCE, permission_name: 'do:it' }];
    await answer('POST', path, { permissions });
    const grant = { id: 'cgr_left', client_id: 'somebody', audience: AUDIENCE, scope: ['do:it'] };
    await server.store.collection('clientGrants').insert(grant as never);
    // The state of the store if the process ends between deleting the API and removing its permissions.
    await note(AUDIENCE);
    await answer('POST', '/resource-servers', { name: 'y', identifier: 'https://stays.example.test/' });
    await note('https://stays.example.test/');
    await apis().delete(id);
    await server.stop();

    server = await startManaged(undefined, dataDir);
    const notes = async () => {
      await answer('GET', '/roles');
      return (await server.store.collection('documents').list({ limit: 1000 })).records.filter(
        ({ kind }) => kind === 'api-removal',
      );
    };
    while ((await notes()).length > 0);
    expect(await server.store.collection('clientGrants').get('cgr_left')).to.equal(undefined);
    expect(await answer('GET', path)).to.deep.equal([]);
    expect(await apis().findBy('identifier', 'https://stays.example.test/')).to.have.length(1);
    expect((await make()).identifier).to.equal(AUDIENCE);
    await server.stop();
    await rm(dataDir, { recursive: true });
    server = await startManaged();
  });
});
