// `gatehouse move in --from`: what no export has is read from the old tenant's Management API while a move from it is open.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type http from 'node:http';
import { join } from 'node:path';
import { expect } from 'chai';
import { MOVE } from '../../src/records/tenant/move.ts';
import { openStore } from '../../src/store/open.ts';
import { runCommand } from '../support/command.ts';
import { SCRATCH } from '../support/scratch-directory.ts';
import { MOVE_CLIENT, type StandIn, startStandIn } from './stand-in.ts';

const TENANT = `
clients: [{ name: Web, app_type: regular_web }]
databases: [{ name: users, strategy: auth0, enabled_clients: [Web] }]
roles: [{ name: Editor }]
organizations: [{ name: acme, display_name: Acme }]
`;
const ID = 'auth0|5f1d7f3f0aaaaa0000000001';

describe('gatehouse move in --from', () => {
  let old: StandIn;
  let cwd: string;
  before(async () => {
    old = await startStandIn();
    cwd = mkdtempSync(join(SCRATCH, 'gatehouse-move-from-'));
    writeFileSync(join(cwd, 'export.yaml'), TENANT);
    const user = { user_id: ID, email: 'ada@example.test', updated_at: '2026-06-20T09:00:00.000Z' };
    writeFileSync(join(cwd, 'users.ndjson'), `${JSON.stringify(user)}\n`);
  });
  after(async () => {
    rmSync(cwd, { recursive: true, force: true });
    await old.stop();
  });
  afterEach(() => old.reset());

  const run = (data: string, ...args: string[]) =>
    runCommand({ cwd, env: { TENANT_FILE: 'export.yaml', DATA_DIR: data }, args });
  const reply = (response: http.ServerResponse, body: object, status = 200, headers = {}) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(JSON.stringify(body));
  };
  /** Answers as the hosted service does, with two pages of members. */
  const answer = () => {
    const lists: Record<string, (query: Record<string, string>) => object> = {
      clients: () => ({
        clients: [
          {
            client_id: 'global',
            name: 'All Applications',
            client_secret: 'of-all-applications',
            global: true,
          },
          { client_id: 'old-web', name: 'Web', client_secret: 'old-secret-of-web' },
        ],
      }),
      connections: () => ({ connections: [{ id: 'con_Old', name: 'users' }] }),
      organizations: () => ({ organizations: [{ id: 'org_Old', name: 'acme' }] }),
      roles: () => ({ roles: [{ id: 'rol_Old', name: 'Editor' }] }),
      'roles/rol_Old/users': () => ({ users: [{ user_id: ID, email: 'ada@example.test' }] }),
      'organizations/org_Old/members': ({ from }) =>
        from === 'second'
          ? { members: [{ user_id: ID, roles: [{ id: 'rol_Old', name: 'Editor' }] }], next: '' }
          : { members: [{ user_id: 'auth0|nobody' }], next: 'second' },
    };
    for (const [path, list] of Object.entries(lists))
      old.instead[`GET /api/v2/${path}`] = (asked, response) => reply(response, list(asked.query));
  };
  /** Makes a store with an open move. */
  const open = async (data: string, more: object = {}) => {
    const store = await openStore({ dataDir: join(cwd, data), clock: Date.now });
    const [opened_at, until] = [0, 3_600_000].map((ms) => new Date(Date.now() + ms).toISOString());
    await store.collection('moves').put({
      ...{ id: MOVE, origin: old.origin, management: MOVE_CLIENT, passwords: {} },
      ...{ opened_at: String(opened_at), until: String(until), ...more },
    });
    await store.close();
  };
  const domain = () => new URL(old.origin).host;

  it('takes ids, secrets, roles and members from there, as slowly as its rate limit demands', async () => {
    await open('one');
    answer();
    let isLimited = true;
    const { 'GET /api/v2/roles': roles } = old.instead;
    old.instead['GET /api/v2/roles'] = (asked, response, pass) => {
      if (!isLimited) return roles?.(asked, response, pass);
      isLimited = false;
      const headers = { 'x-ratelimit-reset': String(Math.floor(Date.now() / 1000)) };
      reply(response, { errorCode: 'too_many_requests' }, 429, headers);
    };
    const args = ['--users', 'users.ndjson', '--from', domain()];
    const moved = await run('one', 'move', 'in', 'export.yaml', ...args);
    expect(moved.stderr).to.equal('');
    expect(moved.stdout).to.contain('1 users: 1 new');
    expect(moved.stdout).not.to.contain('old-secret-of-web').and.not.to.contain(MOVE_CLIENT.client_secret);
    // The member who is in no export.
    expect(readFileSync(join(cwd, 'refused-memberships.ndjson'), 'utf8')).to.contain('auth0|nobody');
    const { stdout } = await run('one', 'export');
    for (const text of ['old-web', 'old-secret-of-web']) expect(stdout).to.contain(text);
    expect(stdout).not.to.contain('of-all-applications');
    for (const id of ['org_Old', 'rol_Old', 'con_Old']) expect(stdout).to.contain(id);
    // What is here by name keeps its id, as users belong to it.
    writeFileSync(join(cwd, 'ids.json'), JSON.stringify([{ id: 'org_Another', name: 'acme' }]));
    const again = await run('one', 'move', 'in', 'export.yaml', '--identifiers', 'ids.json');
    expect(again.stdout).to.contain('organizations.acme keeps its id org_Old');
    expect((await run('one', 'move', 'out', '-o', 'out')).code).to.equal(0);
    expect(readFileSync(join(cwd, 'out/memberships.ndjson'), 'utf8')).to.equal(
      `${JSON.stringify({ user_id: ID, roles: ['Editor'] })}\n${JSON.stringify({ user_id: ID, organization: 'acme', roles: ['Editor'] })}\n`,
    );
  });

  it('asks nothing without an open move, of another tenant, or after its date', async () => {
    const none = await openStore({ dataDir: join(cwd, 'none'), clock: Date.now });
    await none.close();
    await open('over', { until: new Date(Date.now() - 1000).toISOString() });
    await open('other');
    for (const [data, from, message] of [
      ['none', domain(), 'no move is open'],
      ['over', domain(), 'no move is open'],
      ['other', 'another.example.test', `the open move is from ${domain()}`],
    ] as const) {
      const { code, stdout, stderr } = await run(data, 'move', 'in', 'export.yaml', '--from', from);
      expect([code, stdout]).to.deep.equal([1, '']);
      expect(stderr).to.contain(message);
    }
    expect(old.seen).to.deep.equal([]);
  });

  const wrong: [string, (response: http.ServerResponse) => void, RegExp][] = [
    [
      'a refusal',
      (response) => reply(response, { errorCode: 'insufficient_scope' }, 403),
      /403 \(insufficient_scope\)/,
    ],
    [
      'a redirect',
      (response) => reply(response, {}, 302, { location: 'https://127.0.0.1:1/' }),
      /redirect|302/,
    ],
    [
      'another form',
      (response) => reply(response, { clients: [{ name: 'Web' }] }),
      /not expected, at clients/,
    ],
    [
      'too many at once',
      (response) =>
        reply(response, {
          clients: Array.from({ length: 101 }, (_, n) => ({ client_id: `${n}`, name: 'x' })),
        }),
      /not expected, at clients/,
    ],
    ['too much', (response) => reply(response, { clients: [], x: 'x'.repeat(5 << 20) }), /large|bytes|size/i],
  ];
  for (const [what, respond, message] of wrong)
    it(`changes nothing after ${what}`, async () => {
      await open(`wrong-${wrong.findIndex(([name]) => name === what)}`);
      answer();
      old.instead['GET /api/v2/clients'] = (_asked, response) => respond(response);
      const data = `wrong-${wrong.findIndex(([name]) => name === what)}`;
      const args = ['--users', 'users.ndjson', '--from', domain()];
      const { code, stdout, stderr } = await run(data, 'move', 'in', 'export.yaml', ...args);
      expect([code, stdout]).to.deep.equal([1, '']);
      expect(stderr).to.match(message);
      expect(stderr).not.to.contain(MOVE_CLIENT.client_secret);
    });
});
