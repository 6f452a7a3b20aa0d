// On-behalf-of token exchange (RFC 8693): an API calls another API for the user whose token it has received.
import { expect } from 'chai';
import type { Write } from '../../src/store/contract.ts';
import { openAccount, send } from '../account/support.ts';
import { eventsOf, managed } from '../actions/support.ts';
import { callsOf, codeOf } from '../factors/tenant.ts';
import { startManaged } from '../management/support.ts';
import { createAgent } from '../support/agent.ts';
import { createProver, type Prover } from '../support/dpop.ts';
import {
  API,
  logIn,
  PASSWORD_REQUEST,
  payload,
  redeem,
  responseOf,
  tenant,
  token,
  USER,
  WEB_CALLBACK,
  webRequest,
} from '../support/flows.ts';
import { heldStore } from '../support/held-store.ts';
import type { TestServer } from '../support/server.ts';
import { told } from './tenant.ts';

const GRANT = 'urn:ietf:params:oauth:grant-type:token-exchange';
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token';
const ON_BEHALF = { token_exchange: { allow_any_profile_of_type: ['on_behalf_of_token_exchange'] } };

/** The n-th of a row of APIs that call each other. */
const api = (n: number) => `https://api-${n}.example.test/`;
const ROW = [1, 2, 3, 4, 5];

const application = (name: string, resource_server_identifier: string, more: object = ON_BEHALF) => ({
  client_id: name,
  name,
  app_type: 'resource_server',
  client_secret: `${name}-secret`,
  resource_server_identifier,
  grant_types: [],
  ...more,
});

const grantFor = (client_id: string, audience: string, scope: string[], subject_type = 'user') => ({
  client_id,
  audience,
  scope,
  subject_type,
});

const ownTenant = {
  ...tenant,
  tenant: { ...tenant.tenant, account_page: { client_id: 'web' } },
  databases: tenant.databases.map((one) => ({
    ...one,
    enabled_clients: [...one.enabled_clients, 'leaving'],
  })),
  clients: [
    ...tenant.clients.map((client) =>
      client.client_id === 'web'
        ? { ...client, grant_types: [...client.grant_types, 'http://auth0.com/oauth/grant-type/mfa-otp'] }
        : client,
    ),
    {
      client_id: 'leaving',
      name: 'Leaving',
      app_type: 'regular_web',
      client_secret: 'leaving-secret',
      callbacks: [WEB_CALLBACK],
      grant_types: ['authorization_code', 'refresh_token', 'password'],
    },
    application('mcp', API),
    application('unmarked', API, { grant_types: [GRANT] }),
    application('open', API, { ...ON_BEHALF, token_endpoint_auth_method: 'none' }),
    application('foreign', API, { ...ON_BEHALF, is_first_party: false }),
    ...ROW.map((n) => application(`row-${n}`, api(n))),
  ],
  resourceServers: [
    ...tenant.resourceServers,
    ...ROW.map((n) => ({
      name: `Row ${n}`,
      identifier: api(n),
      scopes: [{ value: 'read' }, { value: 'write' }],
    })),
    {
      name: 'Bound',
      identifier: 'bound',
      scopes: [{ value: 'read' }],
      proof_of_possession: { mechanism: 'dpop', required: true },
    },
    {
      name: 'Asking',
      identifier: 'asking',
      scopes: [{ value: 'read' }],
      skip_consent_for_verifiable_first_party_clients: false,
    },
    { name: 'Ungranted', identifier: 'ungranted', scopes: [{ value: 'read' }] },
    { name: 'Machines', identifier: 'machines', scopes: [{ value: 'read' }] },
  ],
  clientGrants: [
    ...tenant.clientGrants,
    grantFor('mcp', api(1), ['read']),
    grantFor('mcp', 'guarded-api', ['admin', 'look']),
    grantFor('mcp', 'bound', ['read']),
    grantFor('mcp', 'asking', ['read']),
    grantFor('mcp', 'machines', ['read'], 'client'),
    ...['unmarked', 'open', 'foreign'].map((one) => grantFor(one, api(1), ['read'])),
    ...ROW.map((n) => ({ ...grantFor(`row-${n}`, n === 5 ? API : api(n + 1), []), allow_all_scopes: true })),
    ...[api(1), API].map((audience) => grantFor('row-2', audience, ['write'])),
  ],
};

describe('on-behalf-of token exchange', () => {
  const held = heldStore();
  let server: TestServer;
  before(async () => {
    server = await startManaged(ownTenant, undefined, {}, { open: held.open });
  });
  after(() => server.stop());

  const post = (json: Record<string, string | undefined>, headers: Record<string, string>) =>
    createAgent(server).request('/oauth/token', { json, headers });
  const tokens = async (
    over: Record<string, string | undefined> = {},
    headers: Record<string, string> = {},
  ) => {
    const scope = 'openid email offline_access read:things';
    const answer = await post({ ...PASSWORD_REQUEST, scope, audience: API, ...over }, headers);
    if (answer.status !== 200) throw new Error(answer.text);
    return answer.json();
  };
  const exchange = (
    subject_token: string,
    over: Record<string, string | undefined> = {},
    client_id = 'mcp',
    headers: Record<string, string> = {},
  ) =>
    post(
      {
        grant_type: GRANT,
        client_id,
        client_secret: client_id === 'open' ? undefined : `${client_id}-secret`,
        subject_token,
        subject_token_type: ACCESS_TOKEN,
        requested_token_type: ACCESS_TOKEN,
        audience: api(1),
        ...over,
      },
      headers,
    );
  const dpop = async (prover: Prover) => ({ DPoP: await prover.proof('POST', `${server.url}/oauth/token`) });

  it('gives an API a token of another one, which names the API and its caller as actors and does not outlive the first', async () => {
    const { access_token } = await tokens();
    server.tick(600_000);
    const answer = await exchange(access_token);
    expect(answer.status, answer.text).to.equal(200);
    const body = answer.json();
    expect(body).to.include({ issued_token_type: ACCESS_TOKEN, token_type: 'Bearer', scope: 'read' });
    expect(body).not.to.have.any.keys('refresh_token', 'id_token');
    const [before, after] = [payload(access_token), payload(body.access_token)];
    expect(after).to.deep.include({
      sub: before.sub,
      aud: api(1),
      azp: 'mcp',
      scope: 'read',
      act: { sub: 'mcp', act: { sub: 'web' } },
    });
    expect(after.exp).to.be.at.most(before.exp);
  });

  it('gives only the scopes of the client grant that the user has a permission for, and claims that the first token was for', async () => {
    const { access_token } = await tokens();
    const all = 'read write openid email profile offline_access unknown';
    expect((await exchange(access_token, { scope: all })).json().scope).to.equal('read openid email');
    expect((await exchange(access_token, { scope: 'write' })).json().scope).to.equal('');
    const guarded = (await exchange(access_token, { audience: 'guarded-api' })).json();
    expect(guarded.scope).to.equal('look');
    expect(payload(guarded.access_token).permissions).to.deep.equal(['look']);
  });

  it('is refused to clients that are not the application of the token’s API, or not allowed to act', async () => {
    const { access_token } = await tokens();
    const refusals: [string, string][] = [
      ['row-1', 'invalid_request'],
      ['web', 'unauthorized_client'],
      ['unmarked', 'unauthorized_client'],
      ['open', 'unauthorized_client'],
      ['foreign', 'unauthorized_client'],
    ];
    for (const [client, error] of refusals) {
      const over = client === 'row-1' ? { audience: api(2) } : {};
      expect(told(await exchange(access_token, over, client))[1], client).to.equal(error);
    }
  });

  it('is refused for APIs without a client grant for users, for those of this server, and where users are asked for consent', async () => {
    const { access_token } = await tokens();
    const refusals: [string, number, string][] = [
      ['ungranted', 403, 'access_denied'],
      ['machines', 403, 'access_denied'],
      ['nowhere', 403, 'access_denied'],
      [`${server.issuer}me/`, 400, 'invalid_target'],
      [`${server.issuer}api/v2/`, 400, 'invalid_target'],
      [`${server.issuer}mfa/`, 400, 'invalid_target'],
      ['asking', 403, 'consent_required'],
    ];
    for (const [audience, status, error] of refusals)
      expect(told(await exchange(access_token, { audience })).slice(0, 2), audience).to.deep.equal([
        status,
        error,
      ]);
  });

  it('is refused for other tokens than a user’s access token for the API, and with an actor token', async () => {
    const { access_token, id_token, refresh_token } = await tokens();
    const other = await tokens({ audience: api(1), scope: 'read' });
    const machine = await token(createAgent(server), {
      grant_type: 'client_credentials',
      client_id: 'web',
      client_secret: 'web-secret',
      audience: API,
    });
    for (const one of [id_token, refresh_token, other.access_token, machine.json().access_token, 'nonsense'])
      expect(told(await exchange(one))[1]).to.equal('invalid_request');
    const own = (await exchange(access_token)).json().access_token;
    expect(told(await exchange(own, { audience: 'guarded-api' }))[1]).to.equal('invalid_request');
    const actor = { actor_token: access_token, actor_token_type: ACCESS_TOKEN };
    expect(told(await exchange(access_token, actor))[1]).to.equal('invalid_request');
  });

  it('makes chains of five actors and no longer ones', async () => {
    let { access_token } = await tokens();
    access_token = (await exchange(access_token)).json().access_token;
    for (const n of [1, 2, 3])
      access_token = (await exchange(access_token, { audience: api(n + 1) }, `row-${n}`)).json().access_token;
    const chain = {
      sub: 'row-3',
      act: { sub: 'row-2', act: { sub: 'row-1', act: { sub: 'mcp', act: { sub: 'web' } } } },
    };
    expect(payload(access_token).act).to.deep.equal(chain);
    const refused = told(await exchange(access_token, { audience: api(5) }, 'row-4'));
    expect(refused.slice(0, 2)).to.deep.equal([400, 'invalid_request']);
    expect(refused[2]).to.contain('maximum allowed limit of 4');
  });

  it('does not lead a chain back to an API that it has passed, whose scopes could grow thereby', async () => {
    const { access_token } = await tokens();
    const first = (await exchange(access_token)).json().access_token;
    const second = (await exchange(first, { audience: api(2) }, 'row-1')).json().access_token;
    expect(payload(second).aud).to.equal(api(2));
    for (const target of [api(1), API]) {
      const refused = told(await exchange(second, { audience: target }, 'row-2'));
      expect(refused.slice(0, 2), target).to.deep.equal([400, 'invalid_target']);
    }
  });

  it('ends for a chain with what the user ends at the account page, with the refresh token, and with the session', async () => {
    const refused = async (one: string, client = 'mcp', audience = api(1)) =>
      expect(told(await exchange(one, { audience }, client))[1]).to.equal('invalid_request');
    const { access_token, refresh_token } = await tokens();
    const second = (await exchange(access_token)).json().access_token;
    expect((await exchange(second, { audience: api(2) }, 'row-1')).status).to.equal(200);
    const other = await tokens();
    const revoked = await createAgent(server).request('/oauth/revoke', {
      form: { client_id: 'web', client_secret: 'web-secret', token: refresh_token },
    });
    expect(revoked.status).to.equal(200);
    await refused(access_token);
    await refused(second, 'row-1', api(2));
    expect((await exchange(other.access_token)).status).to.equal(200);
    const browser = createAgent(server);
    const page = await openAccount(browser, server, '/account/applications');
    await send(browser, page, '/account/applications', { application: 'web' });
    await refused(other.access_token);

    const agent = createAgent(server);
    const { code } = responseOf(await logIn(agent, server, webRequest({ audience: API, scope: 'openid' })));
    const ofSession = (await redeem(agent, code)).json().access_token;
    expect((await exchange(ofSession)).status).to.equal(200);
    await agent.get('/v2/logout');
    await refused(ofSession);
  });

  it('ends for a chain with the application that it began with, which only the grant still names', async () => {
    const leaving = { client_id: 'leaving', client_secret: 'leaving-secret' };
    const { access_token } = await tokens(leaving);
    const second = (await exchange(access_token)).json().access_token;
    const third = await exchange(second, { audience: api(2) }, 'row-1');
    expect(third.status, third.text).to.equal(200);
    const isActive = async (one: string, client_id: string) => {
      const form = { client_id, client_secret: `${client_id}-secret`, token: one };
      return (await createAgent(server).request('/oauth/introspect', { form })).json().active;
    };
    expect(await isActive(third.json().access_token, 'row-2')).to.equal(true);
    expect((await managed(server, 'DELETE', '/clients/leaving')).status).to.equal(204);
    expect(told(await exchange(second, { audience: api(2) }, 'row-1'))[1]).to.equal('invalid_request');
    for (const [one, client] of [[second, 'row-1'] as const, [third.json().access_token, 'row-2'] as const])
      expect(await isActive(one, client), client).to.equal(false);
  });

  it('gives nothing if the grant of the token is revoked while the new one is made', async () => {
    const { access_token, refresh_token } = await tokens();
    const isGrant = (write: Write) =>
      write.collection === 'artifacts' && 'put' in write && write.put?.model === 'Grant';
    held.beforeBatch(isGrant, () =>
      createAgent(server).request('/oauth/revoke', {
        form: { client_id: 'web', client_secret: 'web-secret', token: refresh_token },
      }),
    );
    expect(told(await exchange(access_token))[1]).to.equal('invalid_request');
  });

  it('ends with a block and a new password of the user', async () => {
    const { access_token } = await tokens();
    const { sub } = payload(access_token);
    await server.users.update(sub, { blocked: true });
    expect(told(await exchange(access_token))[1]).to.equal('unauthorized');
    await server.users.update(sub, { blocked: false });
    server.tick(2_000);
    await server.users.setPassword(sub, USER.password);
    expect(told(await exchange(access_token))[1]).to.equal('invalid_request');
  });

  it('of a token that is bound to a key gives only one that is bound to a key of the API', async () => {
    const [caller, own] = await Promise.all([createProver(), createProver()]);
    const { access_token, token_type } = await tokens({}, await dpop(caller));
    expect(token_type).to.equal('DPoP');
    expect(told(await exchange(access_token))[1]).to.equal('invalid_dpop_proof');
    const bound = await exchange(access_token, {}, 'mcp', await dpop(own));
    expect(bound.status, bound.text).to.equal(200);
    expect(payload(bound.json().access_token).cnf).to.deep.equal({ jkt: own.thumbprint });
    const free = (await tokens()).access_token;
    expect(told(await exchange(free, { audience: 'bound' }))[1]).to.equal('invalid_dpop_proof');
    expect((await exchange(free, { audience: 'bound' }, 'mcp', await dpop(own))).json().token_type).to.equal(
      'DPoP',
    );
  });

  it('keeps the organization of the token while the user is a member', async () => {
    const [organization] = await server.store.collection('organizations').findBy('name', 'acme');
    const id = organization?.id ?? '';
    const { sub } = payload((await tokens()).access_token);
    const connections = await server.store.collection('connections').findBy('name', 'users');
    const enabled = { connection_id: connections[0]?.id, assign_membership_on_login: true };
    expect(
      (await managed(server, 'POST', `/organizations/${id}/enabled_connections`, enabled)).status,
    ).to.equal(201);
    for (const client of ['web', 'mcp'])
      await managed(server, 'PATCH', `/clients/${client}`, { organization_usage: 'allow' });
    const { access_token } = await tokens({ organization: id });
    expect(payload(access_token).org_id).to.equal(id);
    expect(payload((await exchange(access_token)).json().access_token).org_id).to.equal(id);
    expect(told(await exchange(access_token, { organization: 'org_other' }))[0]).to.equal(400);
    await managed(server, 'DELETE', `/organizations/${id}/members`, { members: [sub] });
    expect(told(await exchange(access_token))[1]).to.equal('invalid_request');
    expect(await server.store.collection('memberships').findBy('user', sub)).to.deep.equal([]);
  });

  it('is in the log with its actors, by each of whom it is found, and counts as no login', async () => {
    const { access_token } = await tokens();
    const { sub } = payload(access_token);
    const logins = async () => (await server.users.get(sub))?.logins_count;
    const before = await logins();
    const second = (await exchange(access_token)).json().access_token;
    await exchange(second, { audience: api(2) }, 'row-1');
    await exchange(access_token, { audience: 'ungranted' });
    expect(await logins()).to.equal(before);
    const found = async (q: string) =>
      (await managed(server, 'GET', `/logs?${new URLSearchParams({ q, sort: 'date:-1' })}`)).body;
    const [latest] = await found('actor:mcp AND client_id:"row-1"');
    expect(latest).to.deep.include({
      type: 'success_on_behalf_of_token_exchange',
      user_id: sub,
      details: { act: { sub: 'row-1', act: { sub: 'mcp', act: { sub: 'web' } } }, audience: api(2) },
    });
    expect(await found('actor:"row-9"')).to.deep.equal([]);
    const [failed] = (await eventsOf(server, 'failed_on_behalf_of_token_exchange')).slice(-1);
    expect(failed).to.deep.include({ client_id: 'mcp' });
    expect(failed?.description).to.contain('client-grant');
  });

  it('counts the second factor that was given for the token, and asks for one that was not', async () => {
    const { access_token: early } = await tokens();
    expect((await managed(server, 'PUT', '/guardian/factors/otp', { enabled: true })).status).to.equal(200);
    const policy = async (...names: string[]) =>
      expect((await managed(server, 'PUT', '/guardian/policies', names)).status).to.equal(200);
    await policy('all-applications');
    expect(told(await exchange(early))).to.deep.equal([403, 'invalid_grant', 'The user has to log in.']);
    const calls = callsOf(server);
    const asked = { scope: 'openid read:things', audience: API };
    const mfa_token = await calls.mfaToken(USER.email, asked);
    const { secret } = (await calls.associate(mfa_token, { authenticator_types: ['otp'] })).json();
    const done = await calls.verify('otp', { mfa_token, otp: codeOf(secret) });
    expect(done.status, done.text).to.equal(200);
    expect((await exchange(done.json().access_token)).status).to.equal(200);
    await policy();
  });
});
