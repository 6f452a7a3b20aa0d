// What goes with an API, and what must not come back with the next one of its name.
import { expect } from 'chai';
import type { TestServer } from '../support/server.ts';
import { callApi, startManaged } from './support.ts';

const AUDIENCE = 'https://gone.example.test/';

describe('an API that is removed', () => {
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

  it('takes its permissions from users and roles', async () => {
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
    // Until all are gone, none can be made that would give them back.
    let status = 409;
    while (status === 409) {
      const again = { name: 'x', identifier: AUDIENCE, scopes: [{ value: 'do:it' }] };
      ({ status } = await callApi(server, 'POST', '/resource-servers', again));
    }
    expect(status).to.equal(201);
    for (const path of paths) expect(await answer('GET', path)).to.deep.equal([]);
  });
});
