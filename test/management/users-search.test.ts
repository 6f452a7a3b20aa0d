// Searching users through HTTP, and with the published client.
import { expect } from 'chai';
import type { TestServer } from '../support/server.ts';
import { managementClient, managementToken, startManaged } from './support.ts';

const TENANT = {
  attackProtection: { rateLimits: { management: { capacity: 100_000, perMinute: 100_000 } } },
  databases: [
    { name: 'Username-Password-Authentication', options: { passwordPolicy: 'none' } },
    { name: 'Staff' },
  ],
  connections: [{ name: 'email', strategy: 'email' }],
};

/** Users by a short name, which is also their nickname. */
const PEOPLE: Record<string, object> = {
  ada: {
    email: 'Ada@Example.test',
    name: 'Ada Lovelace',
    given_name: 'Ada',
    user_metadata: { hobby: 'analysis', ada: 'yes', secret: 'engine' },
    app_metadata: { plan: 'gold', level: 3, roles: ['admin', 'author'], address: { city: 'London' } },
  },
  bob: {
    email: 'bob@other.test',
    name: 'José Bob',
    blocked: true,
    app_metadata: { plan: 'golden', level: '3' },
  },
  cleo: { email: 'cleo@example.test', name: 'ÇLEO', email_verified: true, app_metadata: { level: 20 } },
  dan: {
    email: 'dan@sub.example.test',
    connection: 'Staff',
    password: 'a-Password-of-2026',
    family_name: 'a b',
  },
};

describe('searching users', () => {
  let server: TestServer;
  let token: string;
  const ids: Record<string, string> = {};

  const get = async (query: Record<string, string>, path = 'users') => {
    const url = `${server.url}/api/v2/${path}?${new URLSearchParams(query)}`;
    const response = await fetch(url, { headers: { authorization: `Bearer ${token}` } });
    return { status: response.status, body: (await response.json()) as never };
  };
  const found = async (q: string, more: Record<string, string> = {}) => {
    const { status, body } = await get({ q, ...more });
    expect(status, `${q}: ${JSON.stringify(body)}`).to.equal(200);
    return (body as { nickname: string }[]).map(({ nickname }) => nickname).sort();
  };

  before(async () => {
    server = await startManaged(TENANT);
    token = await managementToken(server);
    for (const [nickname, user] of Object.entries(PEOPLE)) {
      const response = await fetch(`${server.url}/api/v2/users`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ connection: 'email', nickname, verify_email: false, ...user }),
      });
      const made = (await response.json()) as { user_id: string };
      expect(response.status, JSON.stringify(made)).to.equal(201);
      ids[nickname] = made.user_id;
      server.tick(86_400_000);
      // The clock has moved by a day, so the last token has expired.
      token = await managementToken(server);
    }
  });
  after(() => server.stop());

  const cases: [string, string[]][] = [
    ['email:"ADA@example.test"', ['ada']],
    ['name:"ada lovelace"', ['ada']],
    ['name:ada', []],
    ['name:ADA*', ['ada']],
    ['name:"josé bob"', ['bob']],
    ['name:"JOSÉ BOB"', ['bob']],
    ['name:çleo', ['cleo']],
    ['name:*lace', ['ada']],
    ['name:*VELA*', ['ada']],
    ['name:a*e', ['ada']],
    ['name:("josé bob" OR çleo)', ['bob', 'cleo']],
    ['nickname:dan', ['dan']],
    ['family_name:a\\ b', ['dan']],
    ['email.domain:"example.test"', ['ada', 'cleo']],
    ['email:*@example.test', ['ada', 'cleo']],
    ['email:*example.test AND NOT name:çleo', ['ada', 'dan']],
    ['blocked:true', ['bob']],
    ['email_verified:true', ['cleo']],
    ['_exists_:given_name', ['ada']],
    ['NOT _exists_:given_name', ['bob', 'cleo', 'dan']],
    ['_exists_:last_login', []],
    ['logins_count:0', ['ada', 'bob', 'cleo', 'dan']],
    ['logins_count:[1 TO *]', []],
    ['identities.connection:"Staff"', ['dan']],
    ['identities.connection:email', ['ada', 'bob', 'cleo']],
    ['identities.provider:auth0', ['dan']],
    ['NOT identities.provider:auth0', ['ada', 'bob', 'cleo']],
    ['identities.connection:staff', []],
    ['app_metadata.plan:gold', ['ada']],
    ['app_metadata.plan:GOLD', []],
    ['app_metadata.plan:gold*', ['ada', 'bob']],
    ['app_metadata.plan:*lden', ['bob']],
    ['app_metadata.level:3', ['ada', 'bob']],
    ['app_metadata.level:[4 TO 20]', ['cleo']],
    ['app_metadata.level:[3 TO 20}', ['ada']],
    ['app_metadata.roles:author', ['ada']],
    ['app_metadata.address.city:London', ['ada']],
    ['_exists_:app_metadata.address', ['ada']],
    ['user_metadata.hobby:analysis', ['ada']],
    ['_exists_:user_metadata.hobby', ['ada']],
    ['engine', []],
    ['bob', ['bob']],
    ['bob@other.test', ['bob']],
    ['no_such_field:x', []],
    ['email:"x\' OR 1=1 --"', []],
    ['organization_id:org_none', []],
    ['_exists_:organization_id', []],
    ['email:cleo@example.test -blocked:true', ['cleo']],
  ];
  for (const [q, names] of cases) {
    it(`finds with ${q}: ${names.join(', ') || 'nobody'}`, async () => {
      expect(await found(q)).to.deep.equal(names);
    });
  }

  it('finds users by their ids, and by days and times of creation', async () => {
    const { ada = '', dan = '' } = ids;
    expect(await found(`user_id:"${ada}"`)).to.deep.equal(['ada']);
    expect(await found(`user_id:${dan.replace('|', '\\|')}`)).to.deep.equal(['dan']);
    expect(await found(`identities.user_id:${dan.split('|')[1]}`)).to.deep.equal(['dan']);
    const user = (await get({ q: 'nickname:bob' })).body as { created_at: string }[];
    const day = user[0]?.created_at.slice(0, 10) ?? '';
    expect(await found(`created_at:${day}`)).to.deep.equal(['bob']);
    expect(await found(`created_at:[${day} TO ${day}]`)).to.deep.equal(['bob']);
    expect(await found(`created_at:{${day} TO *]`)).to.deep.equal(['cleo', 'dan']);
    expect(await found(`created_at:[* TO ${day}}`)).to.deep.equal(['ada']);
    expect(await found(`created_at:["${day}T00:00:00.000Z" TO "${day}T23:59:59+00:00"]`)).to.deep.equal([
      'bob',
    ]);
  });

  it('finds changed values with the next request, even those that the index does not hold', async () => {
    const patch = (body: object) =>
      fetch(`${server.url}/api/v2/users/${encodeURIComponent(ids.cleo ?? '')}`, {
        method: 'PATCH',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
    const many = Array.from({ length: 150 }, (_, n) => `tag ${n}`);
    expect((await patch({ app_metadata: { tags: many, long: 'x'.repeat(3000) } })).status).to.equal(200);
    expect(await found('app_metadata.tags:"tag 149"')).to.deep.equal(['cleo']);
    expect(await found('app_metadata.tags:"tag 1"')).to.deep.equal(['cleo']);
    expect(await found(`app_metadata.long:${'x'.repeat(3000)}`)).to.deep.equal(['cleo']);
    expect(await found('app_metadata.tags:tag\\ 14*')).to.deep.equal(['cleo']);
    await patch({ app_metadata: { tags: null, long: null } });
    expect(await found('app_metadata.tags:"tag 1"')).to.deep.equal([]);
  });

  const refused: Record<string, string>[] = [
    { q: 'name:(a' },
    { q: 'name:*ab' },
    { q: '*a*' },
    { q: 'name:a*b*c' },
    { q: 'logins_count:many' },
    { q: 'logins_count:1*' },
    { q: 'blocked:maybe' },
    { q: 'created_at:yesterday' },
    { q: 'created_at:[* TO 2026-13-45T00:00:00+99:99]' },
    { q: 'user_metadata.hobby:ana*' },
    { q: 'user_metadata.hobby:[a TO b]' },
    { q: 'identities.connection:Sta*' },
    { q: 'x '.repeat(200) },
    { q: Array.from({ length: 60 }, (_, n) => `name:*abc${n}`).join(' OR ') },
    { q: 'a'.repeat(4001) },
    { sort: 'name' },
    { sort: 'name:2' },
    { sort: 'user_metadata.hobby:1' },
    { sort: 'password:1' },
    { sort: 'name:1', take: '10' },
    { search_engine: 'v1', q: 'name:ada' },
    { search_engine: 'v2', q: 'name:ada' },
    { per_page: '101' },
    { per_page: '-1' },
    { page: '10', per_page: '100' },
    { page: '999999999', per_page: '100' },
    { take: '0' },
    { take: '101' },
    { from: '!' },
    { unknown: 'x' },
  ];
  for (const query of refused) {
    it(`rejects ${JSON.stringify(query).slice(0, 60)}`, async () => {
      const { status, body } = await get(query);
      expect(status, JSON.stringify(body)).to.equal(400);
      expect(body).to.include({ statusCode: 400, error: 'Bad Request' });
    });
  }

  it('answers 200 or 400 to any query, never an error', async () => {
    const pieces = [
      'app_metadata.',
      'user_metadata.a',
      '_exists_:',
      'name:',
      'date:',
      'logins_count:',
      'identities.user_id:',
    ]
      .concat([
        'organization_id:',
        'email',
        '*',
        '"',
        '\\\\',
        '(',
        ')',
        '[',
        ']',
        '{',
        '}',
        ' TO ',
        ' AND ',
        ' OR ',
        ' NOT ',
      ])
      .concat([
        '-',
        '+',
        '!',
        ':',
        ' ',
        'abc',
        '1e999',
        'true',
        '2026-01-01',
        '\u0000',
        '\ud800',
        "'",
        ';',
        '%',
        '日本',
        '?',
        '~2',
      ]);
    let seed = 11;
    const next = (below: number) => {
      seed = (seed * 48_271) % 2_147_483_647;
      return seed % below;
    };
    for (let n = 0; n < 300; n++) {
      const q = Array.from({ length: 1 + next(9) }, () => pieces[next(pieces.length)]).join('');
      for (const path of ['users', 'logs']) {
        const { status } = await get({ q }, path);
        expect(status, `${path} ${JSON.stringify(q)}`).to.be.oneOf([200, 400]);
      }
    }
    for (const q of [
      `_exists_:"user_metadata.a\\"b"`,
      `_exists_:"app_metadata.a\\\\b"`,
      `app_metadata${'.a'.repeat(900)}:[1 TO 2]`,
      `app_metadata${'.a'.repeat(12)}:[1 TO 2]`,
      `_exists_:"__proto__"`,
      'constructor:x',
      `${'('.repeat(19)}a${')'.repeat(19)}`,
      `${'NOT '.repeat(19)}blocked:true`,
      Array.from({ length: 100 }, (_, n) => `bob${n}`).join(' '),
      Array.from({ length: 9 }, (_, n) => `app_metadata.a.b.c.d.e.f.g:[${n} TO 9]`).join(' '),
    ]) {
      expect((await get({ q })).status, q.slice(0, 80)).to.be.oneOf([200, 400]);
    }
  });

  it('returns totals if asked, and nothing beyond the end', async () => {
    const page = await get({ include_totals: 'true', per_page: '3', page: '1', sort: 'nickname:1' });
    expect(page.body).to.include({ start: 3, limit: 3, length: 1, total: 4 });
    expect((page.body as { users: { nickname: string }[] }).users.map((one) => one.nickname)).to.deep.equal([
      'dan',
    ]);
    const beyond = await get({ include_totals: 'true', per_page: '3', page: '5' });
    expect(beyond.body).to.deep.equal({ start: 15, limit: 3, length: 0, total: 4, users: [] });
    const count = await get({ include_totals: 'true', per_page: '0', q: 'email.domain:example.test' });
    expect(count.body).to.include({ total: 2, length: 0 });
    const last = await get({ page: '9', per_page: '100' });
    expect(last).to.deep.equal({ status: 200, body: [] });
  });

  it('sorts in both directions, and filters by connection', async () => {
    const names = async (query: Record<string, string>) =>
      ((await get(query)).body as { nickname: string }[]).map(({ nickname }) => nickname);
    expect(await names({ sort: 'created_at:-1' })).to.deep.equal(['dan', 'cleo', 'bob', 'ada']);
    expect(await names({ sort: 'email:1', connection: 'email' })).to.deep.equal(['ada', 'bob', 'cleo']);
    expect(await names({ connection: 'Staff', q: 'blocked:true', search_engine: 'v3' })).to.deep.equal([]);
    expect(await names({ connection: 'none' })).to.deep.equal([]);
  });

  it('continues after a cursor until the end', async () => {
    const seen: string[] = [];
    for (let from: string | undefined, pages = 0; ; pages++) {
      const { body } = await get({
        take: '2',
        include_totals: 'true',
        ...(from === undefined ? {} : { from }),
      });
      const page = body as { users: { user_id: string }[]; next?: string };
      expect(page).not.to.have.property('total');
      seen.push(...page.users.map(({ user_id }) => user_id));
      if (page.next === undefined) {
        expect(pages).to.equal(1);
        break;
      }
      from = page.next;
    }
    expect(seen).to.have.members(Object.values(ids));
  });

  it('returns the members that are asked for', async () => {
    const some = await get({ q: 'nickname:ada', fields: 'user_id,email' });
    expect(some.body).to.deep.equal([{ user_id: ids.ada, email: 'ada@example.test' }]);
    const [rest] = (await get({ q: 'nickname:ada', fields: 'email', include_fields: 'false' }))
      .body as object[];
    expect(rest).to.have.property('identities').with.length(1);
    expect(rest).not.to.have.property('email');
    const by = await get({ email: 'ADA@EXAMPLE.test', fields: 'user_id,identities' }, 'users-by-email');
    expect(by.body).to.deep.equal([
      {
        user_id: ids.ada,
        identities: [
          { connection: 'email', user_id: ids.ada?.split('|')[1], provider: 'email', isSocial: false },
        ],
      },
    ]);
    expect((await get({ email: 'none@example.test' }, 'users-by-email')).body).to.deep.equal([]);
    expect((await get({}, 'users-by-email')).status).to.equal(400);
  });

  it('requires a scope', async () => {
    const other = await managementToken(server, 'read:clients');
    for (const path of ['users', 'users-by-email?email=ada@example.test', 'logs']) {
      const response = await fetch(`${server.url}/api/v2/${path}`, {
        headers: { authorization: `Bearer ${other}` },
      });
      expect(response.status, path).to.equal(403);
    }
  });

  it('works with the published client', async () => {
    const page = await managementClient(server).users.list({ q: 'email.domain:example.test', per_page: 1 });
    const names: string[] = [];
    for await (const user of page) names.push(user.nickname ?? '');
    expect(names.sort()).to.deep.equal(['ada', 'cleo']);
    const by = await managementClient(server).users.listUsersByEmail({ email: 'bob@other.test' });
    expect(by.map(({ nickname }) => nickname)).to.deep.equal(['bob']);
  });
});
