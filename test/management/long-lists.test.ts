// Lists with more than a thousand items, and searches that time out.
import { expect } from 'chai';
import { toResource } from '../../src/engine/base/request-extensions.ts';
import { QueryTimeout, type Store } from '../../src/store/contract.ts';
import { openStore } from '../../src/store/open.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { ADMIN, callApi, startManaged } from './support.ts';

describe('long lists', () => {
  let server: TestServer;
  afterEach(() => server.stop());

  const get = async (path: string) => {
    const response = await callApi(server, 'GET', path);
    expect(response.status).to.equal(200);
    return (await response.json()) as any; // any: a page, or a list
  };

  it('returns all grants of all users, page by page, beyond a thousand', async () => {
    server = await startManaged();
    const many = Array.from({ length: 1_203 }, (_, n) => `auth0|${String(n).padStart(5, '0')}`);
    await server.store.batch(
      many.map((user_id) => ({
        collection: 'consents',
        insert: {
          id: `${user_id}\nexample-spa`,
          user_id,
          client_id: 'example-spa',
          scopes: { '': ['openid'], [toResource('urn:api')]: ['read:things'] },
        },
      })),
    );
    const users: string[] = [];
    for (let page = 0; page < 25; page++) {
      const query = `per_page=100&page=${page}&include_totals=true`;
      const { total, start, grants } = await get(`/grants?${query}`);
      expect({ total, start }).to.deep.equal({ total: 2_406, start: page * 100 });
      expect(grants).to.have.length(page < 24 ? 100 : 6);
      users.push(...(grants as { user_id: string }[]).map(({ user_id }) => user_id));
    }
    expect([...new Set(users)]).to.deep.equal(many);
    const of = `audience=${encodeURIComponent('urn:api')}&per_page=100&page=12`;
    expect(await get(`/grants?${of}`)).to.have.length(3);
  });

  it("answers 503 in the API's error format if a search takes too long", async () => {
    let isSlow = false;
    const audience = 'https://tenant.example.test/api/v2/';
    const open = async (options: Parameters<typeof openStore>[0]) =>
      slow(await openStore(options), () => isSlow);
    server = await startServer({
      open,
      tenant: {
        clients: [{ ...ADMIN, name: 'Administration', app_type: 'non_interactive' }],
        clientGrants: [{ client_id: ADMIN.client_id, audience, allow_all_scopes: true }],
      },
    });
    expect(await get('/users?q=name:x*')).to.deep.equal([]);
    isSlow = true;
    for (const path of ['/users?q=name:x*', '/logs?q=type:s']) {
      const response = await callApi(server, 'GET', path);
      expect(response.status, path).to.equal(503);
      expect(await response.json()).to.deep.equal({
        statusCode: 503,
        error: 'Service Unavailable',
        message: 'The query exceeded the timeout. Please try refining your search criteria and try again.',
        errorCode: 'search_unavailable',
      });
    }
    isSlow = false;
    await get('/users?q=name:x*');
  });
});

/** Returns a store whose searches time out while `isSlow` returns true. */
function slow(store: Store, isSlow: () => boolean): Store {
  return {
    ...store,
    collection: ((name: 'users') => {
      const collection = store.collection(name);
      const list: typeof collection.list = async (query) => {
        if (isSlow() && query?.where !== undefined) throw new QueryTimeout();
        return collection.list(query);
      };
      return { ...collection, list };
    }) as Store['collection'],
  };
}
