// Anonymous sessions: tokens for users who have not logged in, which are refused wherever a user's tokens are
// needed.
import { expect } from 'chai';
import { decodeProtectedHeader } from 'jose';
import { readTenant, TenantFault } from '../../src/tenant/load.ts';
import { createAgent } from '../support/agent.ts';
import { API, PASSWORD_REQUEST, payload, tenant, token } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';

const ORIGIN = 'http://localhost:5173';
const OPEN = 'urn:open';
const RFC9068 = 'urn:open-rfc9068';
const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token';
const ID_TOKEN = 'urn:ietf:params:oauth:token-type:id_token';

const open = {
  name: 'Open',
  identifier: OPEN,
  scopes: [{ value: 'read:cart' }, { value: 'write:cart' }, { value: 'admin' }],
  token_lifetime: 3600,
  token_lifetime_for_web: 600,
  allow_anonymous_access: true,
  subject_type_authorization: { anonymous_user: { policy: 'require_client_grant' } },
};
const active = { anonymous_sessions: { active: true } };
const MANAGING = [
  'update:clients',
  'update:resource_servers',
  'update:tenant_settings',
  'delete:client_grants',
];
const grant = { subject_type: 'anonymous_user', scope: ['read:cart', 'write:cart'] };

const own = {
  ...tenant,
  tenant: { ...tenant.tenant, sessions: { anonymous: { lifetime_in_minutes: 60 } } },
  clients: [
    ...tenant.clients.map((one) =>
      one.client_id === 'spa'
        ? { ...one, ...active }
        : one.client_id === 'web'
          ? { ...one, ...active, grant_types: [...(one.grant_types ?? []), EXCHANGE] }
          : one,
    ),
    {
      client_id: 'open-api',
      name: 'open-api',
      app_type: 'resource_server',
      client_secret: 'open-api-secret',
      resource_server_identifier: OPEN,
    },
  ],
  resourceServers: [
    ...tenant.resourceServers,
    open,
    { ...open, name: 'RFC', identifier: RFC9068, token_dialect: 'rfc9068_profile_authz' },
    { ...open, name: 'No policy', identifier: 'urn:no-policy', subject_type_authorization: {} },
    { ...open, name: 'Not allowed', identifier: 'urn:not-allowed', allow_anonymous_access: false },
    { ...open, name: 'For users', identifier: 'urn:for-users' },
  ],
  clientGrants: [
    ...tenant.clientGrants,
    ...[OPEN, RFC9068, 'urn:no-policy', 'urn:not-allowed'].map((audience) => ({
      client_id: 'spa',
      audience,
      ...grant,
    })),
    { client_id: 'spa', audience: 'urn:for-users', subject_type: 'user', scope: ['read:cart'] },
    { id: 'cgr_web', client_id: 'web', audience: OPEN, ...grant },
    { client_id: 'm2m', audience: OPEN, ...grant },
    { client_id: 'm2m', audience: 'https://tenant.example.test/api/v2/', scope: MANAGING },
  ],
};

describe('anonymous sessions', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer({
      tenant: {
        ...own,
        attackProtection: {
          rateLimits: {
            ...own.attackProtection.rateLimits,
            anonymous: { capacity: 10_000, perMinute: 10_000 },
          },
        },
      },
    });
  });
  after(() => server.stop());

  const ask = (json: object, headers: Record<string, string> = {}) =>
    createAgent(server).request('/anonymous/token', { json: { client_id: 'spa', ...json }, headers });
  const tokens = async (json: object = { audience: OPEN }): Promise<any> => {
    const answer = await ask(json);
    expect(answer.status).to.equal(200);
    return answer.json();
  };
  const refusal = async (json: object) => {
    const answer = await ask(json);
    const { error } = (await answer.json()) as { error: string };
    return `${answer.status} ${error}`;
  };

  it('begin with an access token and a session token, which yields further tokens with the same sub and metadata', async () => {
    const begun = await tokens({ audience: OPEN, scope: 'read:cart', metadata: { cart: 'c-1' } });
    expect(begun).to.include({ token_type: 'Bearer', expires_in: 600, scope: 'read:cart' });
    expect(begun.session_expires_in).to.be.within(3400, 3600);
    const claims = payload(begun.access_token);
    expect(claims.sub).to.match(/^anon@[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    expect(claims).to.include({
      iss: server.issuer,
      aud: OPEN,
      azp: 'spa',
      scope: 'read:cart',
      gty: 'anonymous',
    });
    expect(claims).not.to.have.property('metadata');
    expect(payload(begun.session_token)).to.deep.include({ sub: claims.sub, metadata: { cart: 'c-1' } });

    const { session_token } = begun;
    const renewed = await tokens({ audience: RFC9068, session_token });
    expect(renewed).not.to.have.property('session_token');
    expect(decodeProtectedHeader(renewed.access_token).typ).to.equal('at+jwt');
    expect(payload(renewed.access_token)).to.deep.include({
      sub: claims.sub,
      client_id: 'spa',
      permissions: ['read:cart', 'write:cart'],
    });
    expect(payload((await tokens()).access_token).sub).not.to.equal(claims.sub);
  });

  it('yield a token for no API when none is named, and only scopes of the client grant', async () => {
    const { access_token, scope } = await tokens({});
    expect(scope).to.equal(undefined);
    expect(payload(access_token).aud).to.equal(`${server.issuer}anonymous`);
    expect((await tokens()).scope).to.equal('read:cart write:cart');
    for (const refused of ['admin', 'openid', 'offline_access', 'read:cart admin'])
      expect(await refusal({ audience: OPEN, scope: refused })).to.equal('400 invalid_scope');
    expect(await refusal({ scope: 'read:cart' })).to.equal('400 invalid_scope');
  });

  it('need an application and an API that allow them, and a client grant between the two', async () => {
    expect(await refusal({ client_id: 'leeway', client_secret: 'leeway-secret' })).to.equal(
      '403 unauthorized_client',
    );
    expect(await refusal({ client_id: 'nobody' })).to.equal('401 invalid_client');
    expect(await refusal({ client_id: 'web', client_secret: 'wrong' })).to.equal('401 invalid_client');
    expect(await refusal({ client_id: 'web' })).to.equal('401 invalid_client');
    const closed = [
      'urn:no-policy',
      'urn:not-allowed',
      'urn:for-users',
      'urn:none',
      API,
      'urn:auth0:anon_transfer',
    ];
    const ours = [
      `${server.issuer}api/v2/`,
      `${server.issuer}me/`,
      `${server.issuer}mfa/`,
      `${server.issuer}userinfo`,
    ];
    for (const audience of [...closed, ...ours])
      expect(await refusal({ audience }), audience).to.equal('400 invalid_target');
    await tokens({ client_id: 'web', client_secret: 'web-secret', audience: OPEN });
  });

  it('do not allow the application client_credentials', async () => {
    const answer = await token(createAgent(server), {
      grant_type: 'client_credentials',
      client_id: 'm2m',
      client_secret: 'm2m-secret',
      audience: OPEN,
    });
    expect(answer.status).to.equal(403);
  });

  it('are refused for an invalid session token, and for metadata that is too large', async () => {
    const { session_token, access_token } = await tokens();
    expect(await refusal({ session_token, metadata: {} })).to.equal('400 invalid_request');
    for (const metadata of [{ long: 'x'.repeat(1024) }, 'text', ['list']])
      expect(await refusal({ metadata })).to.equal('400 invalid_request');
    const forged = `${session_token.slice(0, -6)}AAAAAA`;
    const others = (await (await ask({ client_id: 'web', client_secret: 'web-secret' })).json())
      .session_token;
    for (const bad of [access_token, forged, others, 'x', 'a.b.c', 'a.b.c.d.e'])
      expect(await refusal({ session_token: bad })).to.equal('400 invalid_session_token');
    const user = await userTokens();
    for (const bad of [user.access_token, user.id_token])
      expect(await refusal({ session_token: bad })).to.equal('400 invalid_session_token');
  });

  const userTokens = async (): Promise<any> =>
    (
      await token(createAgent(server), {
        ...PASSWORD_REQUEST,
        scope: 'openid',
        audience: API,
      })
    ).json();

  it('are refused at /userinfo, the My Account API, the MFA API and the Management API', async () => {
    const { access_token, session_token } = await tokens();
    const forNothing = (await tokens({})).access_token;
    const places = [
      '/userinfo',
      '/me/v1/authentication-methods',
      '/mfa/authenticators',
      '/api/v2/users/anon',
    ];
    for (const given of [access_token, session_token, forNothing])
      for (const path of places) {
        const headers = { authorization: `Bearer ${given}` };
        const answer = await createAgent(server).request(path, { headers });
        expect(answer.status, path).to.equal(401);
      }
  });

  it('have tokens that cannot be exchanged, or used as a ticket for a login', async () => {
    const begun = await (await ask({ client_id: 'web', client_secret: 'web-secret', audience: OPEN })).json();
    const exchange = (type: string, subject: string) =>
      token(createAgent(server), {
        grant_type: EXCHANGE,
        client_id: 'web',
        client_secret: 'web-secret',
        subject_token: subject,
        subject_token_type: type,
      });
    for (const given of [begun.access_token, begun.session_token])
      for (const type of [ACCESS_TOKEN, ID_TOKEN]) {
        const answer = await exchange(type, given);
        expect(answer.status).to.equal(400);
        expect((await answer.json()).error).to.equal('invalid_request');
      }
    const silent = new URLSearchParams({
      client_id: 'spa',
      response_type: 'code',
      redirect_uri: `${ORIGIN}/callback`,
      scope: 'openid',
      prompt: 'none',
      code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
      code_challenge_method: 'S256',
      anon_transfer_token: begun.session_token,
    });
    const answer = await createAgent(server).request(`/authorize?${silent}`);
    expect(new URL(answer.headers.location ?? '').searchParams.get('error')).to.equal('login_required');
  });

  const introspect = async (given: string) =>
    (
      await createAgent(server).request('/oauth/introspect', {
        form: { client_id: 'open-api', client_secret: 'open-api-secret', token: given },
      })
    ).json();

  it('are recognizable in the introspection response by their gty', async () => {
    const { access_token, session_token } = await tokens();
    const { sub } = payload(access_token);
    expect(await introspect(access_token)).to.include({
      active: true,
      sub,
      gty: 'anonymous',
      client_id: 'spa',
    });
    expect(await introspect(session_token)).to.deep.equal({ active: false });
    expect(await introspect((await tokens({ audience: RFC9068 })).access_token)).to.deep.equal({
      active: false,
    });
  });

  const manage = async (method: string, path: string, json?: object) => {
    const machine = await token(createAgent(server), {
      grant_type: 'client_credentials',
      client_id: 'm2m',
      client_secret: 'm2m-secret',
      audience: `${server.issuer}api/v2/`,
    });
    const headers = { authorization: `Bearer ${(await machine.json()).access_token}` };
    const answer = await createAgent(server).request(`/api/v2/${path}`, { method, headers, json });
    expect(answer.status, answer.text).to.be.within(200, 204);
    return answer;
  };
  const managed = async (path: string, json: object) => (await manage('PATCH', path, json)).json();

  it('end with their tokens when the application no longer allows them', async () => {
    const switchTo = async (on: boolean) => {
      const anonymous_sessions = { active: on };
      expect((await managed('clients/web', { anonymous_sessions })).anonymous_sessions).to.deep.equal(
        anonymous_sessions,
      );
    };
    const web = { client_id: 'web', client_secret: 'web-secret', audience: OPEN };
    const { session_token, access_token } = await tokens(web);
    expect(await introspect(access_token)).to.include({ active: true });
    await switchTo(false);
    expect(await refusal({ ...web, session_token })).to.equal('403 unauthorized_client');
    expect(await introspect(access_token)).to.deep.equal({ active: false });
    await switchTo(true);
    expect(await introspect(access_token)).to.include({ active: true });
  });

  it('have inactive tokens when the API no longer allows them', async () => {
    const { session_token, access_token } = await tokens();
    const api = `resource-servers/${encodeURIComponent(OPEN)}`;
    const require = { anonymous_user: { policy: 'require_client_grant' } };
    for (const [closed, open] of [
      [{ allow_anonymous_access: false }, { allow_anonymous_access: true }],
      [
        { subject_type_authorization: { anonymous_user: { policy: 'deny_all' } } },
        { subject_type_authorization: require },
      ],
    ] as const) {
      await managed(api, closed);
      expect(await introspect(access_token)).to.deep.equal({ active: false });
      expect(await refusal({ audience: OPEN, session_token })).to.equal('400 invalid_target');
      await managed(api, open);
      expect(await introspect(access_token)).to.include({ active: true });
    }
  });

  it('have inactive tokens when the client grant is deleted', async () => {
    const web = { client_id: 'web', client_secret: 'web-secret', audience: OPEN };
    const { session_token, access_token } = await tokens(web);
    expect(await introspect(access_token)).to.include({ active: true });
    await manage('DELETE', 'client-grants/cgr_web');
    expect(await introspect(access_token)).to.deep.equal({ active: false });
    expect(await refusal({ ...web, session_token })).to.equal('400 invalid_target');
  });

  it('end at the tenant’s lifetime, also when it was shortened afterwards', async () => {
    const lifetime = (minutes: number) =>
      managed('tenants/settings', { sessions: { anonymous: { lifetime_in_minutes: minutes } } });
    const { session_token } = await tokens();
    server.tick(120_000);
    await lifetime(1);
    expect(await refusal({ session_token })).to.equal('400 session_expired');
    await lifetime(4);
    expect((await tokens({ session_token })).session_expires_in).to.be.within(1, 120);
    await lifetime(60);
  });

  it('have a session token whose audience is no API', async () => {
    const { session_token } = await tokens();
    expect(payload(session_token).aud).to.equal(`${server.issuer}anonymous/token`);
  });

  it('end after their lifetime, which further tokens neither extend nor exceed', async () => {
    const { session_token } = await tokens();
    server.tick(3_500_000);
    const late = await tokens({ audience: OPEN, session_token });
    expect(late.expires_in).to.be.within(1, 100);
    expect(late.session_expires_in).to.be.within(0, 100);
    server.tick(101_000);
    expect(await refusal({ audience: OPEN, session_token })).to.equal('400 session_expired');
  });

  it('can be ended by /anonymous/logout with a known client_id', async () => {
    const logout = (json: object) => createAgent(server).request('/anonymous/logout', { json });
    expect((await logout({ client_id: 'spa' })).status).to.equal(204);
    expect((await logout({ client_id: 'nobody' })).status).to.equal(401);
    expect((await logout({})).status).to.equal(400);
  });

  it('allow requests only from origins of the application', async () => {
    const asked = await ask({ audience: OPEN }, { origin: ORIGIN });
    expect(asked.headers['access-control-allow-origin']).to.equal(ORIGIN);
    expect(asked.headers['access-control-allow-credentials']).to.equal('true');
    expect(asked.headers['cache-control']).to.equal('no-store');
    expect(asked.headers['set-cookie']).to.equal(undefined);
    const foreign = await ask({ audience: OPEN }, { origin: 'https://evil.test' });
    expect(foreign.headers['access-control-allow-origin']).to.equal(undefined);
  });
});

describe('anonymous sessions in a tenant file', () => {
  const refused = (change: object, fault: RegExp) => {
    try {
      readTenant({ ...own, ...change });
    } catch (thrown) {
      expect(thrown).to.be.instanceOf(TenantFault);
      return expect((thrown as TenantFault).faults.join()).to.match(fault);
    }
    return expect.fail(`not refused: ${fault}`);
  };
  const withClient = (more: object) => ({
    clients: own.clients.map((one) => (one.client_id === 'web' ? { ...one, ...more } : one)),
  });
  const withApi = (more: object) => ({ resourceServers: [...own.resourceServers, { ...open, ...more }] });

  it('are refused with settings that their tokens could not comply with', () => {
    refused(withClient({ require_proof_of_possession: true }), /anonymous_sessions\.active/);
    refused(
      withApi({ identifier: 'urn:hs', signing_alg: 'HS256', signing_secret: 'x'.repeat(32) }),
      /allow_anonymous_access.*HS256/,
    );
    refused(
      withApi({ identifier: 'urn:bound', proof_of_possession: { mechanism: 'dpop', required: true } }),
      /allow_anonymous_access.*proof of possession/,
    );
    refused(withApi({ identifier: 'https://any.test/me/' }), /allow_anonymous_access/);
    refused(withClient({ compliance_level: 'fapi2_sp_pkj_dpop' }), /anonymous_sessions\.active/);
    refused({ tenant: { sessions: { anonymous: { lifetime_in_minutes: 0 } } } }, /lifetime_in_minutes/);
    refused(
      { clientGrants: [{ client_id: 'spa', audience: 'https://any.test/api/v2/', ...grant }] },
      /subject_type.*anonymous_user/,
    );
  });

  it('are limited by address', async () => {
    const server = await startServer({
      tenant: { ...own, attackProtection: { rateLimits: { anonymous: { capacity: 1, perMinute: 1 } } } },
    });
    try {
      const ask = (client_id: string, client_secret?: string) =>
        createAgent(server).request('/anonymous/token', { json: { client_id, client_secret } });
      expect((await ask('spa')).status).to.equal(200);
      expect((await ask('spa')).status).to.equal(429);
    } finally {
      await server.stop();
    }
  });
});
