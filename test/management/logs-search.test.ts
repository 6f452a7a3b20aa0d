// Searching, sorting and following the tenant's log.
import { expect } from 'chai';
import type { LogEventRecord } from '../../src/records/base/log-events.ts';
import type { TestServer } from '../support/server.ts';
import { managementToken, startManaged } from './support.ts';

type Event = Record<string, unknown>;

const events: Partial<LogEventRecord>[] = [
  { type: 's', client_id: 'shop', connection: 'email', user_id: 'email|1', user_name: 'ada@example.test' },
  { type: 'fp', client_id: 'shop', connection: 'users', description: 'Wrong email or password.' },
  {
    type: 'f',
    client_id: 'gone',
    connection: 'removed',
    ip: '203.0.113.7',
    transaction: 'a-login',
    details: { error: 'denied' },
  },
];

describe('searching log events', () => {
  let server: TestServer;
  let token: string;
  const idOf = (n: number) => `2026010100000000${n}x`;

  before(async () => {
    server = await startManaged({
      clients: [{ client_id: 'shop', client_secret: 'a-secret-of-the-shop', name: 'The Shop' }],
      databases: [{ name: 'users' }],
      connections: [{ name: 'email', strategy: 'email' }],
    });
    token = await managementToken(server);
    for (const [n, event] of events.entries()) {
      const date = `2026-01-0${n + 1}T00:00:00.000Z`;
      await server.store.collection('logs').insert({ id: idOf(n), date, ...event } as LogEventRecord);
    }
  });
  after(() => server.stop());

  const get = async (query: Record<string, string>, path = 'logs') => {
    const response = await fetch(`${server.url}/api/v2/${path}?${new URLSearchParams(query)}`, {
      headers: { authorization: `Bearer ${token}` },
    });
    return { status: response.status, body: (await response.json()) as never };
  };
  /** Returns the types of the events above that a query finds; the tests themselves cause further events. */
  const found = async (q: string) => {
    const { status, body } = await get({ q: `date:2026-01 AND (${q})`, sort: 'date:1' });
    expect(status, JSON.stringify(body)).to.equal(200);
    return (body as Event[]).map(({ type }) => type);
  };

  const cases: [string, string[]][] = [
    ['type:s', ['s']],
    ['type:(s OR f)', ['s', 'f']],
    ['client_id:shop', ['s', 'fp']],
    ['user_id:"email|1"', ['s']],
    ['NOT user_id:"email|1"', ['fp', 'f']],
    ['transaction:a-login', ['f']],
    ['transaction:a*', ['f']],
    ['client_name:"The Shop"', ['s', 'fp']],
    ['client_name:The*', ['s', 'fp']],
    ['NOT client_name:"The Shop"', ['f']],
    ['strategy:email', ['s']],
    ['strategy_type:database', ['fp']],
    ['strategy_type:passwordless', ['s']],
    ['description:*password*', ['fp']],
    ['description:wrong*', []],
    ['user_name:*@example.test', ['s']],
    ['ip:203.0.113.*', ['f']],
    ['date:2026-01-02', ['fp']],
    ['date:[2026-01-02 TO 2026-01-03]', ['fp', 'f']],
    ['date:[2026-01-02 TO 2026-01-03}', ['fp']],
    ['203.0.113.7', ['f']],
    ['"The Shop"', ['s', 'fp']],
    ['_exists_:user_id', ['s']],
    ['none:x', []],
  ];
  for (const [q, types] of cases) {
    it(`finds with ${q}: ${types.join(', ') || 'none'}`, async () => {
      expect(await found(q)).to.deep.equal(types);
    });
  }

  it('returns events with the names that tools read', async () => {
    const { body } = await get({ search: 'type:s AND client_id:shop' });
    const connection = await server.store.collection('connections').findBy('name', 'email');
    expect((body as Event[])[0]).to.deep.equal({
      log_id: idOf(0),
      _id: idOf(0),
      type: 's',
      date: '2026-01-01T00:00:00.000Z',
      client_id: 'shop',
      client_name: 'The Shop',
      connection: 'email',
      connection_id: connection[0]?.id,
      strategy: 'email',
      strategy_type: 'passwordless',
      user_id: 'email|1',
      user_name: 'ada@example.test',
      isMobile: false,
    });
    const one = (await get({}, `logs/${idOf(2)}`)).body as Event;
    expect(one).to.deep.include({ client_id: 'gone', details: { error: 'denied' } });
    expect(one).not.to.have.any.keys('client_name', 'connection_id', 'expiresAt');
    const of = await get({ include_totals: 'true' }, 'users/email%7C1/logs');
    expect(of.body).to.include({ start: 0, total: 1, length: 1 });
  });

  it('returns the events after a given one, oldest first', async () => {
    const next = await get({ from: idOf(0), take: '1' });
    expect((next.body as Event[]).map(({ log_id }) => log_id)).to.deep.equal([idOf(1)]);
    const all = (await get({ from: idOf(0), take: '2', fields: 'log_id' })).body;
    expect(all).to.deep.equal([{ log_id: idOf(1) }, { log_id: idOf(2) }]);
    const since = (await get({ q: `log_id:[${idOf(1)} TO *] AND date:2026-01`, sort: 'date:-1' }))
      .body as Event[];
    expect(since.map(({ type }) => type)).to.deep.equal(['f', 'fp']);
  });

  for (const query of [
    { q: 'type:(' },
    { q: 'date:soon' },
    { q: 'description:*ab' },
    { sort: 'details:1' },
    { sort: 'date' },
    { take: '0' },
    { take: '101' },
    { page: '10', per_page: '100' },
    { q: 'x '.repeat(30) },
  ] as Record<string, string>[]) {
    it(`rejects ${JSON.stringify(query).slice(0, 50)}`, async () => {
      const { status, body } = await get(query);
      expect(status).to.equal(400);
      expect(body).to.include({ statusCode: 400, error: 'Bad Request' });
    });
  }
});
