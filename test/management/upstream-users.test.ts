// Users of upstream providers in the Management API. Members that come from the provider cannot be changed.
import { expect } from 'chai';
import { parse } from 'yaml';
import { optionsFor } from '../support/oauth2-provider.ts';
import type { TestServer } from '../support/server.ts';
import { EXAMPLE } from './example.ts';
import { authorizeAs, managementToken, startManaged } from './support.ts';

/** Profile claims of OpenID Connect that a provider may send. */
const CLAIMS = {
  middle_name: 'Brewster',
  preferred_username: 'grace',
  profile: 'https://grace.example.test/',
  website: 'https://example.test/',
  gender: 'female',
  birthdate: '1906-12-09',
  zoneinfo: 'America/New_York',
  locale: 'en-US',
  address: { country: 'US' },
};

/** The same with invalid and unknown members. */
const UPSTREAM_PROFILE = {
  ...CLAIMS,
  address: {
    ...CLAIMS.address,
    locality: 1,
    region: 'x'.repeat(2049),
    other: 'x',
    __proto__: { formatted: 'x' },
  },
};

describe('users of upstream providers', () => {
  let server: TestServer;
  let token: string;
  before(async () => {
    const options = optionsFor({ url: 'https://idp.example.test' });
    const tenant = parse(EXAMPLE) as { connections?: object[] };
    const connections = [
      ...(tenant.connections ?? []),
      { name: 'acme', strategy: 'oauth2', options },
      {
        name: 'first',
        strategy: 'oauth2',
        options: { ...options, set_user_root_attributes: 'on_first_login' },
      },
    ];
    server = await startManaged({ ...tenant, connections });
    token = await managementToken(server);
    for (const connection of ['acme', 'first']) {
      await server.users.fromUpstream({
        connection,
        provider: 'oauth2',
        isSocial: true,
        upstreamId: `${connection}|1`,
        profile: {
          email: 'grace@upstream.test',
          name: 'Grace',
          team: 'blue',
          user_id: 'x',
          ...UPSTREAM_PROFILE,
        },
        rootAttributes: 'on_each_login',
        nonPersistent: [],
      });
    }
  });
  after(() => server?.stop());

  const call = async (method: string, path: string, body?: unknown) => {
    const response = await authorizeAs(server, token, method, path, body);
    return { status: response.status, body: (await response.json()) as Record<string, any> }; // any: as a client reads it
  };
  const user = (connection: string) => `/users/${encodeURIComponent(`oauth2|${connection}|1`)}`;

  it("have the provider's further attributes as top-level members", async () => {
    const { body } = await call('GET', user('acme'));
    expect(body).to.include({ user_id: 'oauth2|acme|1', name: 'Grace', email_verified: false, team: 'blue' });
    expect(body).to.deep.include(CLAIMS);
    expect(body.identities).to.deep.equal([
      { connection: 'acme', provider: 'oauth2', user_id: 'acme|1', isSocial: true },
    ]);
  });

  it('are found by their identity', async () => {
    const { body } = await call('GET', `/users?q=${encodeURIComponent('identities.connection:"acme"')}`);
    expect((body as unknown as { user_id: string }[]).map(({ user_id }) => user_id)).to.deep.equal([
      'oauth2|acme|1',
    ]);
  });

  it('can be blocked and have metadata', async () => {
    const { status, body } = await call('PATCH', user('acme'), { user_metadata: { a: 1 }, blocked: true });
    expect(status).to.equal(200);
    expect(body).to.deep.include({ user_metadata: { a: 1 }, blocked: true });
  });

  for (const [connection, change, status] of [
    ['acme', { name: 'Renamed' }, 400],
    ['acme', { email: 'other@upstream.test' }, 400],
    ['acme', { email_verified: true }, 400],
    ['acme', { password: 'Correct-Horse-1' }, 400],
    ['first', { name: 'Renamed' }, 200],
    ['first', { email: 'other@upstream.test' }, 400],
    ['first', { email_verified: true }, 400],
  ] as const) {
    it(`${status === 200 ? 'allow' : 'do not allow'} to change ${Object.keys(change)[0]} in the connection ${connection}`, async () => {
      expect((await call('PATCH', user(connection), change)).status).to.equal(status);
    });
  }

  it('cannot be created by the API', async () => {
    const made = await call('POST', '/users', { connection: 'acme', email: 'new@upstream.test' });
    expect(made.status).to.equal(400);
  });

  const options = optionsFor({ url: 'https://idp.example.test' });
  for (const [what, wrong] of [
    ['an address without TLS', { ...options, tokenURL: 'http://idp.example.test/token' }],
    ['a header that the request has', { ...options, customHeaders: { Host: 'a' } }],
  ] as [string, object][]) {
    it(`cannot use a connection with ${what}`, async () => {
      const made = await call('POST', '/connections', { name: 'wrong', strategy: 'oauth2', options: wrong });
      expect(made.status).to.equal(400);
      const { body } = await call('GET', '/connections?name=acme');
      const [acme] = body as unknown as { id: string }[];
      const changed = await call('PATCH', `/connections/${acme?.id}`, { options: wrong });
      expect(changed.status).to.equal(400);
    });
  }
});
