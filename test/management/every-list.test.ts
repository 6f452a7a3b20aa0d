// Rules that hold for all lists of the Management API: clients page through all of them in the same way.
import { expect } from 'chai';
import { parse } from 'yaml';
import type { CallRules } from '../../src/features/management/call.ts';
import { MANAGEMENT_CALLS } from '../../src/features/management/calls.ts';
import type { TestServer } from '../support/server.ts';
import { EXAMPLE } from './example.ts';
import { managementToken, startManaged } from './support.ts';

type Item = Record<string, unknown>;

/** Lists that are always paged by cursor and wrapped. */
const BY_CURSOR_ALONE =
  /\/(sessions|refresh-tokens|event-streams|user-attribute-profiles|connection-profiles|discovery-domains|token-exchange-profiles|rate-limit-policies|connections-scim-configurations|connected-accounts)$|\/organizations\/:id\/clients$|\/clients\/:id\/connections$|\/connections\/:id\/clients$/;

const LISTS = (MANAGEMENT_CALLS as readonly CallRules[]).filter(
  ({ method, path, query }) =>
    method === 'GET' && query !== undefined && 'per_page' in query.shape && !BY_CURSOR_ALONE.test(path),
);

const LISTS_BY_CURSOR = (MANAGEMENT_CALLS as readonly CallRules[]).filter(
  ({ method, path }) => method === 'GET' && BY_CURSOR_ALONE.test(path),
);

/** All lists that are read in parts. The published library for Go pages through them, as Terraform does. */
const GO_LISTS = (MANAGEMENT_CALLS as readonly CallRules[]).filter(
  ({ method, path, query }) =>
    method === 'GET' &&
    query !== undefined &&
    ('per_page' in query.shape || 'take' in query.shape) &&
    // Needs a connection to a directory.
    !path.endsWith('/synchronized-groups'),
);

/** The lists that the Go library asks for with `per_page` and `include_totals` unless its user says otherwise. */
const ASKED_WITH_TOTALS = [
  ...['/clients', '/clients/:id/credentials', '/client-grants', '/client-grants/:id/organizations'],
  ...[
    '/connections',
    '/device-credentials',
    '/keys/encryption',
    '/flows',
    '/flows/vault/connections',
    '/forms',
  ],
  ...['/grants', '/hooks', '/organizations', '/organizations/:id/enabled_connections'],
  ...['/organizations/:id/connections', '/organizations/:id/invitations', '/organizations/:id/members'],
  ...['/organizations/:id/members/:user_id/roles', '/organizations/:id/client-grants', '/prompts/rendering'],
  ...[
    '/resource-servers',
    '/roles',
    '/roles/:id/users',
    '/roles/:id/permissions',
    '/rules',
    '/rules-configs',
  ],
  ...['/self-service-profiles', '/users', '/users/:id/roles', '/users/:id/permissions'],
  ...['/users/:id/organizations', '/users/:id/authentication-methods', '/users/:id/refresh-tokens'],
];

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
  const send = async (method: string, path: string, body: object): Promise<Item> => {
    const response = await fetch(`${server.url}/api/v2${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    const text = await response.text();
    expect(response.status, `${path} ${text}`).to.be.within(200, 204);
    return text === '' ? {} : (JSON.parse(text) as Item);
  };

  const post = (path: string, body: object) => send('POST', path, body);

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
    ids.modules = String((await post('/actions/modules', { name: 'x', code: '', publish: true })).id);
    await send('PATCH', `/actions/actions/${ids.actions}`, {
      modules: [{ module_name: 'x', module_version_number: 1 }],
    });
    await post(`/actions/actions/${ids.actions}/deploy`, {});
    await send('PATCH', '/actions/triggers/post-login/bindings', {
      bindings: [{ ref: { type: 'action_id', value: ids.actions } }],
    });
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

  for (const call of LISTS_BY_CURSOR) {
    it(`GET ${call.path} is wrapped, whatever is asked for`, async () => {
      const at = pathOf(call);
      const user = call.path === '/refresh-tokens' ? `user_id=${encodeURIComponent(ids.users ?? '')}&` : '';
      for (const query of ['', 'include_totals=true', 'take=1', 'take=1&include_totals=true']) {
        const answer = await get(`${at}?${user}${query}`);
        expect(answer, query).to.be.an('object').and.not.have.any.keys('start', 'limit', 'total');
        expect(itemsOf(answer, call.path)).to.be.an('array');
      }
    });
  }

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

  for (const call of GO_LISTS) {
    it(`GET ${call.path} ends for the client in Go, which reads on while total > start + limit or next is set`, async () => {
      const accepts = (name: string) => Object.hasOwn(call.query?.shape ?? {}, name);
      const counted = `${accepts('per_page') ? 'per_page=2&' : ''}${accepts('include_totals') ? 'include_totals=true&' : ''}`;
      const given = call.path === '/refresh-tokens' ? `user_id=${encodeURIComponent(ids.users ?? '')}&` : '';
      const starts = [
        ...(accepts('page') ? [`${given}${counted}page=0`] : []),
        ...(accepts('take') ? [`${given}${counted}take=2`] : []),
      ];
      for (const start of starts) {
        let query: string | undefined = start;
        for (let page = 1; query !== undefined; page++) {
          expect(page, query).to.be.below(200);
          const answer = (await get(`${pathOf(call)}?${query}`)) as {
            [member in 'start' | 'limit' | 'total']?: number;
          } & { next?: string };
          const { start: from = 0, limit = 0, total = 0, next = '' } = answer;
          if (next !== '') query = `${start}&from=${encodeURIComponent(next)}`;
          else if (total > from + limit) query = `${given}${counted}page=${page}`;
          else query = undefined;
        }
      }
    });
  }

  it('takes per_page and include_totals for all lists that the client in Go asks for with them', () => {
    for (const path of ASKED_WITH_TOTALS) {
      const call = GO_LISTS.find((one) => one.path === path);
      expect(Object.keys(call?.query?.shape ?? {}), path).to.include.members(['per_page', 'include_totals']);
    }
  });

  it('takes search_engine=v3 beside the query of each search, and no other version', async () => {
    const searches = (MANAGEMENT_CALLS as readonly CallRules[]).filter(
      ({ method, query }) => method === 'GET' && query !== undefined && 'q' in query.shape,
    );
    expect(searches.map(({ path }) => path)).to.include.members(['/users', '/logs', '/clients']);
    for (const call of searches) {
      expect(Object.keys(call.query?.shape ?? {}), call.path).to.include('search_engine');
    }
    for (const path of ['/users', '/logs', '/clients', '/custom-domains']) {
      const parameters = path === '/clients' ? '' : '&q=';
      await get(`${path}?search_engine=v3${parameters}`);
      const url = `${server.url}/api/v2${path}?search_engine=v2`;
      const refused = await fetch(url, { headers: { authorization: `Bearer ${token}` } });
      expect(refused.status, path).to.equal(400);
    }
  });

  it('takes lists in queries in all forms that clients send: repeated, with brackets and with indexes', async () => {
    const audiences = ['https://a1.example.test/', 'https://a3.example.test/'];
    const forms = [
      audiences.map((one) => `identifiers=${one}`),
      audiences.map((one) => `identifiers[]=${one}`),
      audiences.map((one, index) => `identifiers[${index}]=${one}`),
      audiences.map((one, index) => `identifiers%5B${index}%5D=${one}`),
    ];
    for (const form of forms) {
      const found = (await get(`/resource-servers?${form.join('&')}`)) as Item[];
      expect(
        found.map(({ identifier }) => identifier),
        form[0],
      ).to.have.members(audiences);
    }
    const databases = (await get('/connections?strategy[0]=auth0&strategy[1]=email')) as Item[];
    expect(new Set(databases.map(({ strategy }) => strategy))).to.include('auth0');
    expect(await get('/connections?strategy[0]=samlp')).to.deep.equal([]);
    for (const wrong of ['name[0]=a', 'stranger[0]=a', '__proto__[0]=a', 'strategy[x]=auth0']) {
      const url = `${server.url}/api/v2/connections?${wrong}`;
      const refused = await fetch(url, { headers: { authorization: `Bearer ${token}` } });
      expect(refused.status, wrong).to.equal(400);
    }
  });

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
