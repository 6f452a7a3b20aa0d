// Claims that the tenant declares: they are in the tokens, userinfo and assertions that they are declared for, and
// in no other.
import { expect } from 'chai';
import { readTenant, type TenantFault } from '../../src/tenant/load.ts';
import { managementToken, startManaged } from '../management/support.ts';
import { createAgent } from '../support/agent.ts';
import { API, PASSWORD_REQUEST, payload, token, USER } from '../support/flows.ts';
import { PROTOCOL_CLAIMS } from '../support/protocol-claims.ts';
import type { TestServer } from '../support/server.ts';
import { tenantWith } from '../support/tenant.ts';

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

const tenant = tenantWith({
  change: { m2m: { client_metadata: { tier: 'gold' } } },
  users: [
    {
      ...USER,
      email_verified: true,
      app_metadata: { roles: ['keeper'] },
      user_metadata: { 'https://teams.test/name': 'harbour' },
    },
  ],
  customClaims: DECLARED,
});

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
      ...PASSWORD_REQUEST,
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
  /** Set in the store, which allows larger values than a request. */
  const setMetadata = async (app_metadata: Record<string, unknown>): Promise<string> => {
    const { records } = await server.store.collection('users').list({ limit: 10 });
    const { id = '' } = records.find(({ email }) => email === USER.email) ?? {};
    await server.store.collection('users').update(id, (user) => ({ ...user, app_metadata }));
    return id;
  };
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

  it('are in ID token, access token and userinfo, each only where it is declared', async () => {
    const { id_token = '', access_token = '' } = await logIn(API);
    expect(ours(payload(id_token))).to.deep.equal({ roles: ['keeper'], from: 'auth0' });
    expect(ours(payload(access_token))).to.deep.equal({ roles: ['keeper'] });
    expect(ours(await userinfo(access_token))).to.deep.equal({ roles: ['keeper'], team: 'harbour' });
  });

  it('may have the name of a profile claim in an access token', async () => {
    const { access_token = '' } = await logIn(API);
    expect(payload(access_token)).to.include({ email: USER.email });
  });

  it('are limited to the applications and APIs that they name', async () => {
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

  it('can be replaced by the Management API, effective with the next token', async () => {
    expect((await managed('GET', '/custom-claims')).body).to.deep.equal({ custom_claims: DECLARED });
    const custom_claims = [{ claim: `${NS}since`, value: 'user.created_at', to: ['id_token'] }];
    expect((await managed('PUT', '/custom-claims', { custom_claims })).status).to.equal(200);
    const { id_token = '' } = await logIn();
    expect(Object.keys(ours(payload(id_token)))).to.deep.equal(['since']);
  });

  it('are refused by the Management API when invalid, each named, and nothing changes', async () => {
    const custom_claims = PROTOCOL_CLAIMS.map((claim) => ({
      claim,
      value: 'user.email',
      to: ['access_token'],
    }));
    for (const one of custom_claims) {
      const { status, body } = await managed('PUT', '/custom-claims', { custom_claims: [...DECLARED, one] });
      expect({ claim: one.claim, status }).to.deep.equal({ claim: one.claim, status: 400 });
      expect(body.message).to.contain(`custom_claims[${DECLARED.length}].claim`);
    }
    expect((await managed('GET', '/custom-claims')).body).to.deep.equal({ custom_claims: DECLARED });
  });

  it('read only own members of the user, whatever the path names', async () => {
    await setMetadata({ list: ['a', 'b'], text: 'abc', nothing: null, no: false });
    const paths = {
      first: "list['0']",
      length: 'list.length',
      letter: "text['0']",
      size: 'text.length',
      nothing: 'nothing',
      under: 'nothing.more',
      no: 'no',
      prototype: '__proto__',
      inherited: '__proto__.x',
      constructor: 'constructor.name',
      method: 'list.map',
      missing: 'roles.keeper.of',
    };
    const custom_claims = Object.entries(paths).map(([name, path]) => ({
      claim: `${NS}${name}`,
      value: `user.app_metadata.${path}`.replace('.[', '['),
      to: ['id_token'],
    }));
    expect((await managed('PUT', '/custom-claims', { custom_claims })).status).to.equal(200);
    const { id_token = '' } = await logIn();
    expect(ours(payload(id_token))).to.deep.equal({ first: 'a', length: 2, no: false });
  });

  it('are omitted in the order of the list when they are too large together, with a log event', async () => {
    const id = await setMetadata({ half: 'x'.repeat(60_000), whole: 'x'.repeat(100_001), roles: ['keeper'] });
    const custom_claims = ['whole', 'half', 'half', 'roles'].map((member, index) => ({
      claim: `${NS}${member}${index}`,
      value: `user.app_metadata.${member}`,
      to: ['id_token', 'access_token', 'userinfo'],
    }));
    await managed('PUT', '/custom-claims', { custom_claims });
    const { id_token = '', access_token = '' } = await logIn(API);
    const { access_token: short = '' } = await logIn();
    for (const claims of [payload(id_token), payload(access_token), await userinfo(short)])
      expect(Object.keys(ours(claims))).to.deep.equal(['half1', 'roles3']);
    const { records } = await server.store.collection('logs').list({ limit: 1000 });
    const left = records.filter(({ type }) => type === 'custom_claim_left_out');
    expect(
      left.map(({ description, user_id }) => [description?.split(' ')[0], user_id]),
    ).to.deep.include.members([
      [`${NS}whole0`, id],
      [`${NS}half2`, id],
    ]);
  });

  it('are in tokens for an API of the server only when their name is a URL', async () => {
    const custom_claims = ['grant', 'credential_version', `${NS}grant`].map((claim) => ({
      claim,
      value: 'client.client_id',
      to: ['access_token'],
    }));
    expect((await managed('PUT', '/custom-claims', { custom_claims })).status).to.equal(200);
    const said = payload(await managementToken(server));
    expect(said).to.have.property(`${NS}grant`);
    expect(said).not.to.have.any.keys('grant', 'credential_version');
    const { access_token = '' } = await logIn(API);
    expect(payload(access_token)).to.include({ grant: 'web' });
  });
});

describe('a declared claim', () => {
  const faultsOf = (customClaims: object[]): string => {
    try {
      readTenant({ customClaims });
      return '';
    } catch (thrown) {
      return (thrown as TenantFault).faults.join('\n');
    }
  };

  it('is refused at start when its name is the protocol’s, or may be mistaken for one', () => {
    for (const claim of PROTOCOL_CLAIMS)
      expect(faultsOf([{ claim, value: 'user.email', to: ['saml'] }]), claim).to.contain(
        'customClaims.0.claim',
      );
  });

  it('may contain the name of a protocol claim in a URL, or in a distinguishable name', () => {
    const names = [
      `${NS}sub`,
      'https://example.test/claims#aud',
      'urn:example:scope',
      'subject',
      's\u0443b',
      'roles',
    ];
    expect(faultsOf(names.map((claim) => ({ claim, value: 'user.email', to: ['id_token'] })))).to.equal('');
  });

  const refused: [string, object, string][] = [
    ['spaces in place of a name', { claim: ' \u200b' }, '.claim'],
    [
      'email_verified of userinfo, but for a capital',
      { claim: 'Email_verified', to: ['userinfo'] },
      '.claim',
    ],
    ['a member of a list', { value: 'user.app_metadata.list[0]' }, '.value'],
    ['an empty member', { value: "user.app_metadata['']" }, '.value'],
    ['a path with an end', { value: 'user.app_metadata.' }, '.value'],
    ['a path that is too long', { value: `user.app_metadata${'.a'.repeat(512)}` }, '.value'],
    ['the constructor of all sources', { value: 'constructor.name' }, '.value'],
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
      expect(faultsOf([claim])).to.contain(`customClaims.0${at}`);
    });
  }
});
