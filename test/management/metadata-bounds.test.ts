// Metadata of records other than users: texts, and how many, whatever the way in.
import { expect } from 'chai';
import type { TestServer } from '../support/server.ts';
import { callApi, startManaged } from './support.ts';

const texts = (count: number, prefix = 'k') =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`${prefix}${at}`, 'v'.repeat(255)]));

const KINDS = [
  { path: '/clients', member: 'client_metadata', most: 10, body: { name: 'bounded' } },
  { path: '/organizations', member: 'metadata', most: 25, body: { name: 'bounded' } },
  {
    path: '/connections',
    member: 'metadata',
    most: 10,
    body: { name: 'bounded', strategy: 'auth0' },
  },
  {
    path: '/custom-domains',
    member: 'domain_metadata',
    most: 10,
    body: { domain: 'bounded.example.test', type: 'self_managed_certs' },
    id: 'custom_domain_id',
  },
] as const;

describe('metadata of configuration', () => {
  let server: TestServer;
  before(async () => {
    server = await startManaged();
  });
  after(() => server.stop());

  for (const { path, member, most, body, ...kind } of KINDS) {
    it(`has at most ${most} texts of 255 characters: ${path}`, async () => {
      const idMember = 'id' in kind ? kind.id : path === '/clients' ? 'client_id' : 'id';
      const create = (metadata: object) => callApi(server, 'POST', path, { ...body, [member]: metadata });
      expect((await create(texts(most + 1))).status).to.equal(400);
      expect((await create({ k: 'v'.repeat(256) })).status).to.equal(400);
      const created = await create(texts(most));
      expect(created.status, await created.clone().text()).to.equal(201);
      const at = `${path}/${((await created.json()) as Record<string, string>)[idMember]}`;
      // What is merged counts with what is there.
      await callApi(server, 'PATCH', at, { [member]: texts(most, 'other') });
      const shown = (await (await callApi(server, 'GET', at)).json()) as Record<string, object>;
      expect(Object.keys(shown[member] ?? {}).length).to.be.at.most(most);
    });
  }
});
