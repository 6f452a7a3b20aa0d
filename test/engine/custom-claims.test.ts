// Claims that the tenant declares: in the tokens, userinfo and assertions that they are declared for, and in no other.
import { expect } from 'chai';
import { readTenant, type TenantFault } from '../../src/tenant/load.ts';
import { managementToken, startManaged } from '../management/support.ts';
import { createAgent } from '../support/agent.ts';
import { API, tenant as base, payload, token, USER } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';

const NS = 'https://example.test/';

const DECLARED = [
  {
    claim: `${NS}roles`,
    value: 'user.app_metadata.roles',
    to: ['id_token', 'access_token', 'userinfo'],
  },
  { claim: `${NS}team`, value: "user.user_metadata['https://teams.test/name']", to: ['userinfo'] },
  { claim: `${NS}tier`, value: 'client.client_metadata.tier', to: ['access_token'], clients: ['m2m'] },
  { claim: `${NS}api`, value: 'client.name', to: ['access_token'], audiences: ['guarded-api'] },
  { claim: `${NS}from`, value: 'connection.strategy', to: ['id_token'] },
  { claim: `${NS}none`, value: 'user.app_metadata.nothing.deep', to: ['id_token'] },
  { claim: `${NS}own`, value: 'user.app_metadata.toString', to: ['id_token'] },
  { claim: 'email', value: 'user.email', to: ['access_token'] },
];

const tenant = {
  ...base,
  clients: base.clients.map((client) =>
    client.client_id === 'm2m' ? { ...client, client_metadata: { tier: 'gold' } } : client,
  ),
  users: [
    {
      ...USER,
      email_verified: true,
      app_metadata: { roles: ['keeper'] },
      user_metadata: { 'https://teams.test/name': 'harbour' },
    },
  ],
  customClaims: DECLARED,
};

describe('declared claims', () => {
  let server: TestServer;
  beforeEach(async () => {
    server = await startManaged(tenant);
  });
  afterEach(() => server.stop());

  const ask = async (params: Record<string, string>) =>
    (await (await token(createAgent(server), params)).json()) as Record<string, string>;
  const logIn = (audience?: string) =>
    ask({
      grant_type: 'password',
      client_id: 'web',
      client_secret: 'web-secret',
      username: USER.email,
      password: USER.password,
      scope: 'openid email offline_access',
      ...(audience === undefined ? {} : { audience }),
    });
  const ours = (claims: Record<string, unknown>) =>
    Object.fromEntries(
      Object.entries(claims)
        .filter(([name]) => name.startsWith(NS))
        .map(([name, value]) => [name.slice(NS.length), value]),
    );
  const userinfo = async (accessToken: string) =>
    (await (
      await createAgent(server).get('/userinfo', { authorization: `Bearer ${accessToken}` })
    ).json()) as Record<string, unknown>;
  const managed = async (method: string, path: string, body?: object) => {
    const answer = await fetch(`${server.url}/api/v2${path}`, {
      method,
      headers: {
        authorization: `Bearer ${await managementToken(server)}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
  };

  it('are in the ID token, the access token and userinfo, each where it is declared for', async () => {
    const { id_token = '', access_token = '' } = await logIn(API);
    expect(ours(payload(id_token))).to.deep.equal({ roles: ['keeper'], from: 'auth0' });
    expect(ours(payload(access_token))).to.deep.equal({ roles: ['keeper'] });
    expect(ours(await userinfo(access_token))).to.deep.equal({ roles: ['keeper'], team: 'harbour' });
  });

  it('may be of the profile in an access token', async () => {
    const { access_token = '' } = await logIn(API);
    expect(payload(access_token)).to.include({ email: USER.email });
  });

  it('go to the applications and the APIs that they name', async () => {
    const { access_token: guarded = '' } = await logIn('guarded-api');
    expect(ours(payload(guarded))).to.deep.equal({ roles: ['keeper'], api: 'Web app' });
    const machine = await ask({
      grant_type: 'client_credentials',
      client_id: 'm2m',
      client_secret: 'm2m-secret',
      audience: API,
    });
    expect(ours(payload(machine.access_token ?? ''))).to.deep.equal({ tier: 'gold' });
  });

  it('have the latest value: in userinfo at once, and in the tokens of a refresh', async () => {
    const { access_token = '', refresh_token = '' } = await logIn(API);
    const { body } = await managed('GET', `/users-by-email?email=${encodeURIComponent(USER.email)}`);
    const [{ user_id: id }] = body as unknown as [{ user_id: string }];
    await managed('PATCH', `/users/${encodeURIComponent(id)}`, { app_metadata: { roles: ['captain'] } });
    expect(ours(await userinfo(access_token))).to.deep.include({ roles: ['captain'] });
    const renewed = await ask({
      grant_type: 'refresh_token',
      client_id: 'web',
      client_secret: 'web-secret',
      refresh_token,
    });
    expect(ours(payload(renewed.access_token ?? ''))).to.deep.equal({ roles: ['captain'] });
    expect(ours(payload(renewed.id_token ?? ''))).to.deep.include({ roles: ['captain'] });
  });

  it('are replaced by the Management API, in force with the next token', async () => {
    expect((await managed('GET', '/custom-claims')).body).to.deep.equal({ custom_claims: DECLARED });
    const custom_claims = [{ claim: `${NS}since`, value: 'user.created_at', to: ['id_token'] }];
    expect((await managed('PUT', '/custom-claims', { custom_claims })).status).to.equal(200);
    const { id_token = '' } = await logIn();
    expect(Object.keys(ours(payload(id_token)))).to.deep.equal(['since']);
  });

  it('that could not hold are refused by the Management API, and change nothing', async () => {
    const custom_claims = [{ claim: 'sub', value: 'user.email', to: ['id_token'] }];
    const { status } = await managed('PUT', '/custom-claims', { custom_claims });
    expect(status).to.equal(400);
    expect((await managed('GET', '/custom-claims')).body).to.deep.equal({ custom_claims: DECLARED });
  });
});

describe('a declared claim', () => {
  const refused: [string, object, string][] = [
    ...['sub', 'iss', 'aud', 'exp', 'nonce', 'azp', 'cnf', 'permissions', 'org_id', 'amr', '__proto__'].map(
      (claim): [string, object, string] => [`${claim}, which is the protocol's own`, { claim }, '.claim'],
    ),
    ['email of an ID token, which is the profile’s', { claim: 'email' }, '.claim'],
    ['a secret of an application', { value: 'client.client_secret' }, '.value'],
    ['options of a connection', { value: 'connection.options.client_secret' }, '.value'],
    ['a hash of a user', { value: 'user.password_hash' }, '.value'],
    ['the prototype of a source', { value: 'user.__proto__' }, '.value'],
    ['an expression', { value: 'user.email + 1' }, '.value'],
    ['a call', { value: 'user.email.toString()' }, '.value'],
    ['a source that there is not', { value: 'process.env.HOME' }, '.value'],
    ['a whole source', { value: 'user' }, '.value'],
    ['a target that there is not', { to: ['somewhere'] }, '.to.0'],
    ['no target', { to: [] }, '.to'],
  ];
  for (const [what, over, at] of refused) {
    it(`is refused at start for ${what}`, () => {
      const claim = { claim: `${NS}x`, value: 'user.email', to: ['id_token'], ...over };
      let faults: readonly string[] = [];
      try {
        readTenant({ customClaims: [claim] });
      } catch (thrown) {
        faults = (thrown as TenantFault).faults;
      }
      expect(faults.join()).to.contain(`customClaims.0${at}`);
    });
  }
});
