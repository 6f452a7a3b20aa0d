// Rules that hold for all lists of the Management API: clients page through all of them in the same way.
import { expect } from 'chai';
import { parse } from 'yaml';
import type { CallRules } from '../../src/management/call.ts';
import { MANAGEMENT_CALLS } from '../../src/management/calls.ts';
import type { TestServer } from '../support/server.ts';
import { EXAMPLE } from './example.ts';
import { managementToken, startManaged } from './support.ts';

type Item = Record<string, unknown>;

/** Lists that are always paged by cursor and wrapped. */
const BY_CURSOR_ALONE =
  /\/(sessions|refresh-tokens|event-streams|user-attribute-profiles|connection-profiles)$/;

const LISTS = (MANAGEMENT_CALLS as readonly CallRules[]).filter(
  ({ method, path, query }) =>
    method === 'GET' && query !== undefined && 'per_page' in query.shape && !BY_CURSOR_ALONE.test(path),
);

/** Lists that always contain all items, as at the hosted service. */
const BARE = new Set(['/log-streams', '/custom-domains', '/rules-configs', '/clients/:id/credentials']);

/** Lists that are always wrapped, in a form of their own. */
const WRAPPED = /^\/(actions|branding\/phone)\//;

/** Number of records that this test creates. */
const MADE = 5;

describe('every list of the Management API', () => {
  let server: TestServer;
  let token: string;
  const ids: Record<string, string> = { triggerId: 'post-login' };

  const get = async (path: string): Promise<unknown> => {
    const response = await fetch(`${server.url}/api/v2${path}`, {
      headers: { authorization: `Bearer ${token}` },
    });
    const text = await response.text();
    expect(response.status, `${path} ${text}`).to.equal(200);
    return JSON.parse(text);
  };
  const post = async (path: string, body: object): Promise<Item> => {
    const response = await fetch(`${server.url}/api/v2${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    const text = await response.text();
    expect(response.status, `${path} ${text}`).to.be.within(200, 204);
    return text === '' ? {} : (JSON.parse(text) as Item);
  };

  before(async () => {
    const wide = { capacity: 1e6, perMinute: 1e6 };
    server = await startManaged({
      ...(parse(EXAMPLE) as object),
      attackProtection: { rateLimits: { management: wide } },
    });
    token = await managementToken(server);
    const audience = 'https://many.example.test/';
    const scopes = Array.from({ length: MADE }, (_, index) => ({ value: `do:${index}` }));
    await post('/resource-servers', { name: 'Many', identifier: audience, scopes });
    const permissions = scopes.map(({ value }) => ({
      permission_name: value,
      resource_server_identifier: audience,
    }));
    for (let index = 0; index < MADE; index++) {
      const { client_id } = await post('/clients', { name: `List ${index}`, app_type: 'non_interactive' });
      const grant = await post('/client-grants', { client_id, audience, scope: [] });
      ids['client-grants'] ??= String(grant.id);
      await post('/resource-servers', { name: `A${index}`, identifier: `https://a${index}.example.test/` });
      const connection = await post('/connections', {
        name: `Con-${index}`,
        strategy: 'auth0',
        enabled_clients: [client_id],
      });
      const role = await post('/roles', { name: `Role ${index}` });
      const organization = await post('/organizations', { name: `org-${index}` });
      const user = await post('/users', {
        connection: 'Username-Password-Authentication',
        email: `list${index}@example.test`,
        password: 'A-long-Passw0rd!',
        verify_email: false,
      });
      ids.clients ??= String(client_id);
      ids.connections ??= String(connection.id);
      ids.roles ??= String(role.id);
      ids.organizations ??= String(organization.id);
      ids.users ??= String(user.user_id);
      await post(`/users/${encodeURIComponent(ids.users)}/roles`, { roles: [role.id] });
      await post(`/roles/${ids.roles}/users`, { users: [user.user_id] });
      await post(`/organizations/${ids.organizations}/members`, { members: [user.user_id] });
      if (index > 0) await post(`/organizations/${organization.id}/members`, { members: [ids.users] });
      await post(`/organizations/${ids.organizations}/connections`, { connection_id: connection.id });
    }
    const action = await post('/actions/actions', { name: 'x', supported_triggers: [{ id: 'post-login' }] });
    ids.actions = String(action.id);
    ids.modules = String((await post('/actions/modules', { name: 'x', code: '' })).id);
    await post(`/roles/${ids.roles}/permissions`, { permissions });
    await post(`/users/${encodeURIComponent(ids.users ?? '')}/permissions`, { permissions });
  });
  after(() => server.stop());

  const pathOf = ({ path }: CallRules) =>
    path.replaceAll(/:(\w+)/g, (_all, name: string, at: number) => {
      const owner = path.slice(0, at).split('/').at(-2) ?? '';
      return encodeURIComponent(ids[owner === 'members' ? 'users' : owner] ?? ids[name] ?? 'unknown');
    });

  /** Returns the items of a response, whether it is wrapped or not. */
  const itemsOf = (answer: unknown, path: string): Item[] => {
    if (Array.isArray(answer)) return answer as Item[];
    const lists = Object.values(answer as object).filter((member) => Array.isArray(member));
    expect(lists, `${path}: one list`).to.have.length(1);
    return lists[0] as Item[];
  };

  const keysOf = (items: readonly Item[]) => items.map((item) => JSON.stringify(item));

  for (const call of LISTS) {
    const { path, query } = call;
    const isPaged = !BARE.has(path) && !WRAPPED.test(path);

    it(`GET ${path}`, async () => {
      const at = pathOf(call);
      const plain = await get(at);
      if (!WRAPPED.test(path)) expect(plain).to.be.an('array');
      const all = itemsOf(plain, path);
      if (!isPaged) return;
      const first = (await get(`${at}?include_totals=true&page=0&per_page=2`)) as Item;
      expect(first, 'the page size that was asked for').to.include({ start: 0, limit: 2 });
      const walked: Item[] = [];
      for (let page = 0; ; page++) {
        const one = (await get(`${at}?include_totals=true&page=${page}&per_page=2`)) as Item;
        const items = itemsOf(one, path);
        expect(one).to.include({ start: page * 2, limit: 2 });
        if ('total' in first) expect(one.total).to.equal(first.total);
        expect(keysOf((await get(`${at}?page=${page}&per_page=2`)) as Item[])).to.deep.equal(keysOf(items));
        if (items.length === 0) break;
        walked.push(...items);
      }
      if ('total' in first) expect(walked).to.have.length(first.total as number);
      expect(new Set(keysOf(walked)).size, 'each once').to.equal(walked.length);
      if (walked.length <= 50) expect(keysOf(walked)).to.have.members(keysOf(all));
      expect(itemsOf(await get(`${at}?include_totals=true&page=400&per_page=2`), path)).to.deep.equal([]);
      // The log's cursor is the id of an event.
      if (query === undefined || !('take' in query.shape) || path === '/logs') return;
      const taken: Item[] = [];
      let next: unknown;
      do {
        const from = next === undefined ? '' : `&from=${encodeURIComponent(String(next))}`;
        const one = (await get(`${at}?take=2&include_totals=true${from}`)) as Item;
        expect(one).not.to.have.any.keys('total', 'start', 'limit');
        taken.push(...itemsOf(one, path));
        next = one.next;
        expect(taken.length).to.be.at.most(walked.length);
      } while (next !== undefined);
      expect(keysOf(taken)).to.have.members(keysOf(walked));
    });
  }

  it('has more than one page of items in the important lists', async () => {
    for (const path of [
      '/clients',
      '/connections',
      '/users',
      '/roles',
      '/organizations',
      `/users/${encodeURIComponent(ids.users ?? '')}/permissions`,
      `/roles/${ids.roles}/users`,
      `/organizations/${ids.organizations}/members`,
    ]) {
      expect(await get(path), path).to.have.length.at.least(MADE);
    }
  });
});
