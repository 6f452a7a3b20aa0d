// The Management API, the tenant's own code and strangers cannot make or take over an administrator.
import { expect } from 'chai';
import type { CallRules } from '../../src/features/management/call.ts';
import { MANAGEMENT_CALLS } from '../../src/features/management/calls.ts';
import { type CollectionName, collections } from '../../src/records/collections.ts';
import { CONSOLE_CLIENT, CONSOLE_DIRECTORY } from '../../src/records/users/administrators.ts';
import { managementToken, startManaged } from '../management/support.ts';
import { createAgent } from '../support/agent.ts';
import { addAdministrators, addressOf, openConsole, PASSWORD } from '../support/console.ts';
import { tenant, USER } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';

const WIDE = { capacity: 1e6, perMinute: 1e6 };
const CALLS = MANAGEMENT_CALLS as readonly CallRules[];

/** The collections with data of administrators and their authenticators. */
const OF_PEOPLE: CollectionName[] = [
  'administrators',
  'administratorUsers',
  'administratorIdentities',
  'administratorCredentials',
  'authenticators',
  'passkeys',
  'browsers',
];

describe('administrators behind the Management API', () => {
  let server: TestServer;
  let token: string;
  let ownerId: string;

  before(async () => {
    server = await startManaged({
      ...tenant,
      attackProtection: { rateLimits: { management: WIDE, token: WIDE, other: WIDE, login: WIDE } },
      guardianFactors: [{ name: 'otp', enabled: true }],
    });
    await addAdministrators(server);
    token = await managementToken(server);
    const [owner] = await server.administrators.withEmail(addressOf('owner'));
    ownerId = owner?.id ?? '';
    await server.store.collection('authenticators').insert({
      id: 'totp|dev_owner',
      user_id: ownerId,
      kind: 'otp',
      active: true,
      created_at: new Date().toISOString(),
    } as never);
  });
  after(() => server.stop());

  const call = async (method: string, path: string, json?: unknown) => {
    const response = await fetch(`${server.url}/api/v2${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(json !== undefined && { 'content-type': 'application/json' }),
      },
      ...(json !== undefined && { body: JSON.stringify(json) }),
    });
    return { status: response.status, text: await response.text() };
  };
  const kept = async () =>
    JSON.stringify(
      await Promise.all(
        OF_PEOPLE.map(async (name) => (await server.store.collection(name).list({ limit: 1000 })).records),
      ),
    );

  it('are stored in collections of their own', () => {
    expect(Object.keys(collections).filter((name) => name.startsWith('administrator'))).to.have.length(4);
  });

  for (const { method, path } of CALLS.filter((one) => /:(id|user_id|userId)\b/.test(one.path))) {
    it(`cannot be read or changed by ${method} ${path}`, async () => {
      const before = await kept();
      const there = path.replaceAll(/:(\w+)/g, (_all, name: string) =>
        encodeURIComponent(/authentic|enrollment/.test(path) && name !== 'id' ? 'totp|dev_owner' : ownerId),
      );
      for (const body of [{}, { password: 'Taken-Over-1' }, { email: 'mallory@example.test' }]) {
        const { text, status } = await call(method, there, method === 'GET' ? undefined : body);
        expect(status, text).to.be.below(500);
        expect(text).not.to.contain(addressOf('owner'));
      }
      expect(await kept()).to.equal(before);
    });
  }

  it('are not listed, counted or exported', async () => {
    for (const path of [
      '/users?per_page=100',
      `/users-by-email?email=${encodeURIComponent(addressOf('owner'))}`,
      `/users?search_engine=v3&q=${encodeURIComponent(`email:"${addressOf('owner')}"`)}`,
      `/users?search_engine=v3&q=${encodeURIComponent(`identities.connection:"${CONSOLE_DIRECTORY}"`)}`,
      '/connections?per_page=100',
      '/clients?per_page=100',
      `/clients/${CONSOLE_CLIENT}`,
      `/connections/${CONSOLE_CLIENT}`,
    ]) {
      const { text } = await call('GET', path);
      expect(text, path).not.to.contain('console.example.test');
      expect(text, path).not.to.contain(CONSOLE_DIRECTORY);
    }
  });

  it('cannot be created, and their login cannot be changed', async () => {
    const before = await kept();
    const [ada] = await server.users.withEmail(USER.email);
    const adaId = encodeURIComponent(ada?.id ?? '');
    const tries: [string, string, object][] = [
      [
        'POST',
        '/users',
        { connection: CONSOLE_DIRECTORY, email: 'mallory@example.test', password: PASSWORD },
      ],
      ['POST', `/users/${adaId}/identities`, { provider: 'gatehouse', user_id: ownerId.split('|')[1] }],
      [
        'POST',
        `/users/${encodeURIComponent(ownerId)}/identities`,
        { provider: 'auth0', user_id: ada?.id.split('|')[1] },
      ],
      ['POST', '/tickets/password-change', { user_id: ownerId }],
      ['POST', '/tickets/password-change', { email: addressOf('owner'), connection_id: CONSOLE_CLIENT }],
      ['POST', '/tickets/email-verification', { user_id: ownerId }],
      ['POST', '/jobs/verification-email', { user_id: ownerId }],
      ['POST', '/guardian/enrollments/ticket', { user_id: ownerId }],
      ['PATCH', `/clients/${CONSOLE_CLIENT}`, { callbacks: ['https://evil.example'] }],
      ['PATCH', `/connections/${CONSOLE_CLIENT}`, { options: { disable_signup: false } }],
      ['POST', '/connections', { name: CONSOLE_DIRECTORY, strategy: 'auth0' }],
      [
        'POST',
        '/client-grants',
        { client_id: CONSOLE_CLIENT, audience: `${server.issuer}api/v2/`, scope: [] },
      ],
      ['POST', '/organizations/org_acme/members', { members: [ownerId] }],
    ];
    for (const [method, path, body] of tries) {
      const { status, text } = await call(method, path, body);
      expect(status, `${method} ${path}: ${text}`).to.be.within(400, 499);
    }
    expect(await kept()).to.equal(before);
    const { get } = await openConsole(server);
    expect((await get('/console')).status).to.equal(200);
  });

  it('cannot log in by another connection', async () => {
    const [users] = JSON.parse((await call('GET', '/connections?name=users')).text) as { id: string }[];
    await call('PATCH', `/connections/${users?.id}`, { enabled_clients: [CONSOLE_CLIENT, 'web', 'spa'] });
    const agent = createAgent(server);
    const asked = await agent.get('/console');
    const url = new URL(asked.location);
    url.searchParams.set('connection', 'users');
    const answer = await agent.get(`${url.pathname}${url.search}`);
    expect(answer.text + answer.location).not.to.contain('name="password"');
  });

  it('cannot be attacked by endpoints that are open to strangers', async () => {
    const before = await kept();
    const agent = createAgent(server);
    const client = { client_id: CONSOLE_CLIENT };
    const who = { connection: CONSOLE_DIRECTORY, email: addressOf('owner') };
    const refused = [
      await agent.request('/dbconnections/signup', {
        json: { ...client, ...who, email: 'mallory@example.test', password: PASSWORD },
      }),
      await agent.request('/oauth/token', {
        json: { ...client, grant_type: 'password', username: addressOf('owner'), password: PASSWORD },
      }),
      await agent.request('/oauth/token', {
        json: {
          client_id: 'web',
          client_secret: 'web-secret',
          grant_type: 'http://auth0.com/oauth/grant-type/password-realm',
          realm: CONSOLE_DIRECTORY,
          username: addressOf('owner'),
          password: PASSWORD,
        },
      }),
      await agent.request('/oauth/token', {
        json: {
          client_id: 'web',
          client_secret: 'web-secret',
          grant_type: 'password',
          username: addressOf('owner'),
          password: PASSWORD,
        },
      }),
      await agent.get(
        `/authorize?client_id=${CONSOLE_CLIENT}&response_type=code&redirect_uri=${encodeURIComponent(`${server.url}/console/callback`)}`,
      ),
    ];
    for (const { status, text } of refused) expect(status, text).to.be.within(400, 499);
    const asked = await agent.request('/dbconnections/change_password', { json: { ...client, ...who } });
    expect(asked.status).to.be.below(500);
    const challenges = await server.store.collection('challenges').findBy('user', ownerId);
    expect(challenges.filter(({ purpose }) => purpose !== 'console_session')).to.deep.equal([]);
    expect(await kept()).to.equal(before);
  });
});
