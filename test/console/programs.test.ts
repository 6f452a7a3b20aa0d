// Programs that act for administrators: a device code for the Management API, approved at the console, and what its token is
// worth at each use.
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { changeRoleAsOperator } from '../../src/features/console/administrators/console-administrator-members.ts';
import { wildcardAudience } from '../../src/features/management/management-audience.ts';
import { clientGrantSchema, resourceServerSchema } from '../../src/records/clients/apis.ts';
import { clientSchema } from '../../src/records/clients/clients.ts';
import type { AdministratorRole } from '../../src/records/users/administrators.ts';
import { type Agent, createAgent, readForm } from '../support/agent.ts';
import { addressOf, type ConsoleAgent, openConsole, startConsole } from '../support/console.ts';
import { API, payload, tenant, token, WEB_CALLBACK } from '../support/flows.ts';
import { freePort } from '../support/free-port.ts';
import { SCRATCH } from '../support/scratch-directory.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { UNLIMITED } from '../support/unlimited.ts';
import { until } from '../support/wait-until.ts';
import { fieldsOf } from './forms.ts';

const DEVICE = 'urn:ietf:params:oauth:grant-type:device_code';
const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token';
const PAGE = '/console/device';
const LIST = '/console/agents/programs';
const SCOPES = [
  'read:clients',
  'read:client_keys',
  'create:clients',
  'update:clients',
  'delete:clients',
  'read:users',
  'update:users',
  'read:current_user',
  'read:logs',
];

const program = (client_id: string, more: object = {}) => ({
  client_id,
  name: `Program ${client_id}`,
  app_type: 'native',
  token_endpoint_auth_method: 'none',
  grant_types: [DEVICE, 'refresh_token'],
  ...more,
});
const grant = (client_id: string, more: object = {}) => ({
  client_id,
  audience: 'https://any/api/v2/',
  subject_type: 'user',
  scope: SCOPES,
  ...more,
});
const own = {
  ...tenant,
  ...UNLIMITED,
  clients: [
    ...tenant.clients,
    program('assistant'),
    program('secret-assistant', {
      client_secret: 'assistant-secret',
      token_endpoint_auth_method: 'client_secret_post',
      app_type: 'regular_web',
      grant_types: [DEVICE, EXCHANGE],
    }),
    program('ungranted'),
    program('for-itself'),
    program('stranger', { is_first_party: false, third_party_security_mode: 'permissive' }),
    program('no-device', { grant_types: ['authorization_code'], callbacks: ['https://x.test/cb'] }),
    program('members', { organization_usage: 'require' }),
    program('all'),
    program('machine', {
      app_type: 'non_interactive',
      client_secret: 'machine-secret',
      token_endpoint_auth_method: 'client_secret_post',
      grant_types: ['client_credentials'],
    }),
    program('temporary'),
    program('api-client', {
      app_type: 'resource_server',
      resource_server_identifier: API,
      client_secret: 'api-secret',
      token_endpoint_auth_method: 'client_secret_post',
      grant_types: [],
    }),
    program('bound', { require_proof_of_possession: true }),
  ],
  clientGrants: [
    ...tenant.clientGrants,
    ...['assistant', 'secret-assistant', 'stranger', 'no-device', 'members', 'temporary', 'bound'].map((id) =>
      grant(id),
    ),
    grant('for-itself', { subject_type: 'client' }),
    grant('machine', { subject_type: 'client' }),
    grant('all', { scope: [], allow_all_scopes: true }),
  ],
};

describe('a program that acts for an administrator', () => {
  let server: TestServer;
  let owner: ConsoleAgent;
  beforeEach(async () => {
    server = await startConsole({ tenant: own });
    owner = await openConsole(server);
  });
  afterEach(() => server.stop());

  const ownAudience = () => `${server.issuer}api/v2/`;
  const ask = (fields: Record<string, string> = {}) =>
    createAgent(server).request('/oauth/device/code', {
      form: { client_id: 'assistant', audience: ownAudience(), scope: SCOPES.join(' '), ...fields },
    });
  const asked = async (fields: Record<string, string> = {}): Promise<Record<string, any>> => {
    const answer = await ask(fields);
    expect(answer.status, answer.text).to.equal(200);
    return answer.json();
  };
  const poll = (device_code: string, fields: Record<string, string> = {}) => {
    server.tick(5_000);
    return token(createAgent(server), { grant_type: DEVICE, client_id: 'assistant', device_code, ...fields });
  };
  const open = (who: ConsoleAgent, user_code: string) =>
    who.get(`${PAGE}?${new URLSearchParams({ user_code })}`);
  const decide = async (who: ConsoleAgent, user_code: string, decision = 'approve') => {
    const page = await open(who, user_code);
    expect(page.status, page.text).to.equal(200);
    return who.post(PAGE, [...fieldsOf(page, PAGE), ['decision', decision]]);
  };
  const approved = async (
    who: ConsoleAgent = owner,
    fields: Record<string, string> = {},
  ): Promise<Record<string, any>> => {
    const { user_code, device_code } = await asked(fields);
    const done = await decide(who, user_code);
    expect(done.status, done.text).to.equal(303);
    const client = fields.client_id === undefined ? {} : { client_id: fields.client_id };
    const answer = await poll(device_code, {
      ...client,
      ...(fields.client_secret !== undefined && { client_secret: fields.client_secret }),
    });
    expect(answer.status, answer.text).to.equal(200);
    return answer.json();
  };
  const call = (access_token: string, path: string, more: Parameters<Agent['request']>[1] = {}) =>
    createAgent(server).request(`/api/v2${path}`, {
      ...more,
      headers: { authorization: `Bearer ${access_token}` },
    });
  const member = async (role: AdministratorRole) =>
    (await server.administrators.withEmail(addressOf(role)))[0]?.id ?? '';
  const events = async (type: string) =>
    (await server.store.collection('logs').list({ where: { field: 'type', equals: type }, limit: 100 }))
      .records;

  it('gets a token for what it asks for, its client grant has, and the role allows', async () => {
    const { user_code, device_code, ...codes } = await asked({
      scope: 'openid read:clients create:clients delete:rules read:current_user',
    });
    expect(codes.verification_uri).to.equal(`${server.url}/activate`);
    expect((await poll(device_code)).json().error).to.equal('authorization_pending');
    const page = await open(owner, user_code);
    expect(page.text)
      .to.contain(user_code)
      .and.to.contain('Program assistant')
      .and.to.contain('create:clients');
    expect(page.text).not.to.contain('delete:rules');
    const done = await decide(owner, user_code);
    expect(done.location).to.match(/\/console\/agents\/programs\?said=console.agents.said.approved$/);
    const { access_token, ...answer } = (await poll(device_code)).json();
    expect(answer).to.deep.equal({
      token_type: 'Bearer',
      expires_in: 28_800,
      scope: 'create:clients read:clients',
    });
    const userId = await member('owner');
    const { jti, iat, exp, ...claims } = payload(access_token);
    expect(claims).to.deep.equal({
      iss: server.issuer,
      sub: userId,
      aud: [ownAudience()],
      azp: 'assistant',
      scope: 'create:clients read:clients',
      gty: DEVICE,
    });
    expect([exp - iat, jti.length]).to.deep.equal([28_800, 43]);
    expect((await call(access_token, '/clients')).status).to.equal(200);
    const made = await call(access_token, '/clients', { json: { name: 'Made by a program' } });
    expect(made.status, made.text).to.equal(201);
    expect(
      (await call(access_token, `/clients/${made.json().client_id}`, { method: 'DELETE' })).status,
    ).to.equal(403);
    expect((await call(access_token, '/rules')).status).to.equal(403);
    const [change] = (await events('sapi')).filter(({ client_id }) => client_id === 'assistant');
    expect(change).to.include({ user_id: userId, user_name: addressOf('owner') });
    const [event] = await events('administrator_program');
    expect(event).to.include({
      user_id: userId,
      user_name: addressOf('owner'),
      client_id: 'assistant',
      description: 'approved',
    });
    expect(event?.details?.program).to.deep.include({ scopes: ['create:clients', 'read:clients'] });
    expect((await events('sede'))[0]).to.include({ user_id: userId, client_id: 'assistant' });
  });

  it('gets all scopes of a client grant for all, and none of the console', async () => {
    const { scope } = await approved(owner, {
      client_id: 'all',
      scope: 'read:rules console:administrators read:current_user',
    });
    expect(scope).to.equal('read:rules');
  });

  for (const client_id of ['ungranted', 'for-itself', 'stranger', 'members'])
    it(`is no application without a grant of its own for users, nor one of others: ${client_id}`, async () => {
      const answer = await ask({ client_id });
      // A code for a user, as before, whose token reaches that user alone.
      const page = await createAgent(server).get(`/activate?user_code=${answer.json().user_code}`);
      expect([page.status, page.text.includes(`Program ${client_id}`)]).to.deep.equal([200, true]);
      expect((await owner.agent.get(`${PAGE}?user_code=${answer.json().user_code}`)).location).to.contain(
        '/activate',
      );
    });

  it('is no application without the device grant', async () => {
    expect((await ask({ client_id: 'no-device' })).json().error).to.equal('unauthorized_client');
  });

  it('asks for a user’s own record as before, with our own audience', async () => {
    const { user_code } = await asked({ scope: 'openid read:current_user' });
    const page = await createAgent(server).get(`/activate?user_code=${user_code}`);
    expect(page.text).to.contain('Program assistant');
    const at = await owner.agent.get(`${PAGE}?user_code=${user_code}`);
    expect(at.location).to.equal(`${server.url}/activate?user_code=${user_code}`);
  });

  it('is shown to nobody at /activate, which leads to the console', async () => {
    const { user_code, device_code } = await asked();
    const stranger = createAgent(server);
    const page = await stranger.get(`/activate?user_code=${user_code}`);
    expect([page.status, page.location]).to.deep.equal([302, `${server.url}${PAGE}?user_code=${user_code}`]);
    expect(page.text).not.to.contain('Program');
    const login = await stranger.get(`${PAGE}?user_code=${user_code}`);
    expect([login.status, login.text.includes('Program')]).to.deep.equal([303, false]);
    // Nor can a user allow it there.
    const other = await asked({ client_id: 'assistant', scope: 'openid read:current_user' });
    const form = await stranger.get(`/activate?user_code=${other.user_code}`);
    const fields = new Map(fieldsOf(form, '/activate/confirm'));
    fields.set('user_code', user_code);
    const { _csrf = '' } = Object.fromEntries(
      [...form.text.matchAll(/name="(_csrf)" value="([^"]*)"/g)].map(([, a, b]) => [a, b]),
    );
    for (const decision of ['accept', 'deny']) {
      const sent = await stranger.request('/activate/confirm', {
        form: [...fields, ['decision', decision], ['_csrf', _csrf]],
      });
      expect(sent.status).to.equal(400);
    }
    expect((await poll(device_code)).json().error).to.equal('authorization_pending');
  });

  it('is refused, and its code works for nobody any more', async () => {
    const { user_code, device_code } = await asked();
    expect((await decide(owner, user_code, 'refuse')).location).to.contain('refused');
    expect((await open(owner, user_code)).status).to.equal(400);
    expect((await poll(device_code)).json().error).to.equal('access_denied');
    expect((await events('administrator_program'))[0]).to.include({ description: 'refused' });
  });

  it('is approved once, of several at one time', async () => {
    const { user_code, device_code } = await asked();
    const page = await open(owner, user_code);
    const fields: [string, string][] = [...fieldsOf(page, PAGE), ['decision', 'approve']];
    const answers = await Promise.all(Array.from({ length: 4 }, () => owner.post(PAGE, fields)));
    expect(answers.filter(({ status }) => status === 303)).to.have.length(1);
    const polls = await Promise.all(Array.from({ length: 4 }, () => poll(device_code)));
    expect(polls.filter(({ status }) => status === 200)).to.have.length(1);
  });

  it('needs a recent login, and shows again what is approved', async () => {
    const { user_code, device_code } = await asked();
    const page = await open(owner, user_code);
    const fields: [string, string][] = [...fieldsOf(page, PAGE), ['decision', 'approve']];
    server.tick(700_000);
    const sent = await owner.agent.request(PAGE, {
      form: [...fields, ['_csrf', /name="_csrf" value="([^"]*)"/.exec(page.text)?.[1] ?? '']],
    });
    expect([sent.status, sent.location?.includes('/authorize')]).to.deep.equal([303, true]);
    expect((await owner.agent.get(`${PAGE}?user_code=${user_code}`)).location).to.contain('/authorize');
    expect((await poll(device_code)).json().error).to.equal('authorization_pending');
    await openConsole(server);
    const again = await open(owner, user_code);
    // What the earlier session has seen counts no more.
    const late = await owner.post(PAGE, fields);
    expect([again.status, late.status]).to.deep.equal([200, 409]);
    expect((await poll(device_code)).json().error).to.equal('authorization_pending');
  });

  it('is not approved by a foreign form, a form of another session, or from a frame', async () => {
    const { user_code, device_code } = await asked();
    const page = await open(owner, user_code);
    const fields: [string, string][] = [...fieldsOf(page, PAGE), ['decision', 'approve']];
    expect((await owner.agent.request(PAGE, { form: fields })).status).to.equal(403);
    const editor = await openConsole(server, 'editor');
    expect((await editor.post(PAGE, fields)).status).to.equal(409);
    const framed = await owner.agent.get(`${PAGE}?user_code=${user_code}`, { 'Sec-Fetch-Dest': 'iframe' });
    expect(framed.status).to.equal(403);
    expect(page.headers['content-security-policy']).to.contain("frame-ancestors 'none'");
    expect((await poll(device_code)).json().error).to.equal('authorization_pending');
  });

  it('expires while its page is open', async () => {
    const { user_code, device_code } = await asked();
    const page = await open(owner, user_code);
    server.tick(899_000);
    server.tick(2_000);
    await owner.get('/console');
    const sent = await owner.post(PAGE, [...fieldsOf(page, PAGE), ['decision', 'approve']]);
    expect(sent.status).to.equal(400);
    expect((await poll(device_code)).json().error).to.equal('expired_token');
  });

  it('has its wrong codes counted at the console as at /activate', async () => {
    await server.stop();
    const { attackProtection: _, ...limited } = own;
    server = await startConsole({ tenant: limited });
    owner = await openConsole(server);
    const wrong = [];
    for (let n = 0; n < 12; n++) wrong.push((await open(owner, 'BBBB-BBBB')).status);
    expect(wrong.slice(-1)).to.deep.equal([429]);
    expect((await createAgent(server).get('/activate?user_code=BBBB-BBBB')).status).to.equal(429);
  });

  it('reads with the role of a viewer, without what is masked, and changes nothing', async () => {
    const viewer = await openConsole(server, 'viewer');
    const { user_code } = await asked();
    const page = await open(viewer, user_code);
    expect(page.text).to.contain('your role').and.to.contain('Viewer');
    const { access_token, scope } = await approved(viewer);
    expect(scope.split(' ').sort()).to.deep.equal(['read:clients', 'read:logs', 'read:users']);
    const client = await call(access_token, '/clients/secret-assistant');
    expect(client.status).to.equal(200);
    expect(client.text).not.to.contain('assistant-secret');
    expect((await call(access_token, '/users?q=app_metadata.api_token:a*&search_engine=v3')).status).to.equal(
      403,
    );
    expect((await call(access_token, '/clients', { json: { name: 'x' } })).status).to.equal(403);
  });

  it('shows secrets of applications to the program of an owner with the scope for it alone', async () => {
    const { access_token } = await approved();
    expect((await call(access_token, '/clients/secret-assistant')).text).to.contain('assistant-secret');
  });

  it('does no more with the role of support than support does at the console', async () => {
    const support = await openConsole(server, 'support');
    const { access_token, scope } = await approved(support);
    expect(scope.split(' ').sort()).to.deep.equal(['read:logs', 'read:users', 'update:users']);
    const user = (await call(access_token, '/users')).json()[0];
    const id = encodeURIComponent(user.user_id);
    expect(
      (await call(access_token, `/users/${id}`, { method: 'PATCH', json: { name: 'Ada' } })).status,
    ).to.equal(200);
    for (const json of [
      { password: 'Taken-Over-1234' },
      { email: 'thief@example.test' },
      { app_metadata: { role: 'admin' } },
      { name: 'Ada', email_verified: true },
    ])
      expect(
        (await call(access_token, `/users/${id}`, { method: 'PATCH', json })).status,
        JSON.stringify(json),
      ).to.equal(403);
    for (const query of [
      'q=app_metadata.x:1',
      'q=app%5C_metadata.x:1',
      'sort=app_metadata.x:1',
      'q[0]=app_metadata.x:1',
      'fields=app_metadata',
    ])
      expect((await call(access_token, `/users?${query}`)).status, query).to.be.within(400, 403);
    expect(user).not.to.have.any.keys('app_metadata', 'user_metadata');
    expect((await call(access_token, `/users/${id}/roles`)).status).to.equal(403);
    // The console shows support the organizations of a user, and no list of them.
    const more = await approved(support, {
      client_id: 'all',
      scope: 'read:organizations read:client_summary read:users',
    });
    for (const path of ['/organizations', '/clients?fields=client_id,name'])
      expect((await call(more.access_token, path)).status, path).to.equal(403);
    expect((await call(more.access_token, `/users/${id}/organizations`)).status).to.equal(200);
  });

  it('asks a role for nothing that it has, and cannot be approved', async () => {
    const support = await openConsole(server, 'support');
    const { user_code, device_code } = await asked({ scope: 'create:clients' });
    const page = await open(support, user_code);
    expect(page.text).not.to.contain('value="approve"');
    expect((await support.post(PAGE, [...fieldsOf(page, PAGE), ['decision', 'approve']])).status).to.equal(
      409,
    );
    expect((await poll(device_code)).json().error).to.equal('authorization_pending');
  });

  it('loses at once what the administrator’s role loses, also between approval and token', async () => {
    const editor = await openConsole(server, 'editor');
    const { access_token } = await approved(editor);
    const { user_code, device_code } = await asked();
    await decide(editor, user_code);
    const make = () => call(access_token, '/clients', { json: { name: 'x' } });
    expect((await make()).status).to.equal(201);
    await changeRoleAsOperator(server, await member('editor'), 'viewer');
    expect((await make()).status).to.equal(403);
    expect((await call(access_token, '/clients')).status).to.equal(200);
    expect((await poll(device_code)).json().scope.split(' ').sort()).to.deep.equal([
      'read:clients',
      'read:logs',
      'read:users',
    ]);
    await changeRoleAsOperator(server, await member('editor'), 'support');
    expect((await call(access_token, '/clients')).status).to.equal(403);
  });

  it('loses what the client grant loses, and all with the grant, the device grant or the party', async () => {
    const { access_token } = await approved();
    const list = () => call(access_token, '/clients');
    const grants = server.store.collection('clientGrants');
    const [stored] = await grants.findBy('client', 'assistant');
    const change = (more: object) => grants.update(stored?.id ?? '', (now) => ({ ...now, ...more }));
    expect((await list()).status).to.equal(200);
    await change({ scope: ['read:users'] });
    expect((await list()).status).to.equal(403);
    await change({ scope: SCOPES, subject_type: 'client' });
    expect((await list()).status).to.equal(401);
    await change({ subject_type: 'user' });
    expect((await list()).status).to.equal(200);
    const clients = server.store.collection('clients');
    const [client] = (await clients.list({ limit: 100 })).records.filter(
      ({ client_id }) => client_id === 'assistant',
    );
    for (const more of [{ is_first_party: false }, { grant_types: ['refresh_token'] }]) {
      await clients.update(client?.id ?? '', (now) => ({ ...now, ...more }));
      expect((await list()).status, JSON.stringify(more)).to.equal(401);
      await clients.update(client?.id ?? '', (now) => ({
        ...now,
        is_first_party: true,
        grant_types: [DEVICE],
      }));
      expect((await list()).status).to.equal(200);
    }
    await grants.delete(stored?.id ?? '');
    expect((await list()).status).to.equal(401);
  });

  it('gets no more by a client grant that it widens itself', async () => {
    const { access_token } = await approved();
    const more = { client_id: 'all', scope: 'read:client_grants update:client_grants' };
    const widener = (await approved(owner, more)).access_token;
    const [found] = (await call(widener, '/client-grants?client_id=assistant')).json() as unknown as {
      id: string;
    }[];
    const json = { allow_all_scopes: true };
    const widened = await call(widener, `/client-grants/${found?.id}`, { method: 'PATCH', json });
    expect(widened.status, widened.text).to.equal(200);
    for (const path of ['/rules', '/actions/actions'])
      expect((await call(access_token, path)).status, path).to.equal(403);
    expect((await call(widener, '/users')).status).to.equal(403);
  });

  it('is judged again at the approval and at the token, when its grant has changed since', async () => {
    const { user_code, device_code } = await asked();
    const page = await open(owner, user_code);
    const grants = server.store.collection('clientGrants');
    const [stored] = await grants.findBy('client', 'assistant');
    await grants.update(stored?.id ?? '', (now) => ({ ...now, scope: ['read:users'] }));
    const sent = await owner.post(PAGE, [...fieldsOf(page, PAGE), ['decision', 'approve']]);
    expect([sent.status, sent.text.includes('Nothing was approved')]).to.deep.equal([409, true]);
    await decide(owner, user_code);
    await grants.delete(stored?.id ?? '');
    expect((await open(owner, (await asked({ client_id: 'temporary' })).user_code)).status).to.equal(200);
    const refused = await poll(device_code);
    expect([refused.status, refused.json().error]).to.deep.equal([403, 'access_denied']);
    expect((await poll(device_code)).json().error).to.equal('invalid_grant');
  });

  it('ends with its application, for good', async () => {
    const { access_token } = await approved(owner, { client_id: 'temporary' });
    const manager = (await approved()).access_token;
    expect((await call(access_token, '/clients')).status).to.equal(200);
    expect((await call(manager, '/clients/temporary', { method: 'DELETE' })).status).to.equal(204);
    expect((await call(access_token, '/clients')).status).to.equal(401);
    // Before that, nothing can take the client_id.
    await until(async () => {
      const documents = await server.store.collection('documents').list({ limit: 100 });
      return documents.records.every(({ kind }) => kind !== 'client-removal');
    });
    const again = clientSchema.parse(program('temporary'));
    await server.store.collection('clients').put({ ...again, id: 'temporary' });
    const granted = clientGrantSchema.parse(grant('temporary', { audience: ownAudience() }));
    await server.store.collection('clientGrants').put({ ...granted, id: 'cgr_again' });
    expect((await ask({ client_id: 'temporary' })).status).to.equal(200);
    expect((await call(access_token, '/clients')).status).to.equal(401);
  });

  it('ends with a new password, a block, the sessions, and the administrator', async () => {
    const editor = await openConsole(server, 'editor');
    const { access_token } = await approved(editor);
    const list = () => call(access_token, '/clients');
    const userId = await member('editor');
    expect((await list()).status).to.equal(200);
    await server.store.collection('administratorUsers').update(userId, (now) => ({ ...now, blocked: true }));
    expect((await list()).status).to.equal(401);
    await server.store.collection('administratorUsers').update(userId, (now) => ({ ...now, blocked: false }));
    expect((await list()).status).to.equal(200);
    await server.administrators.setPassword(userId, 'Another-Horse-22');
    expect((await list()).status).to.equal(401);
    const viewer = await openConsole(server, 'viewer');
    const ofViewer = (await approved(viewer)).access_token;
    const viewerId = await member('viewer');
    const path = `/console/administrators/${viewerId.split('|')[1]}`;
    expect((await call(ofViewer, '/clients')).status).to.equal(200);
    expect((await owner.post(`${path}/sessions`)).status).to.equal(303);
    expect((await call(ofViewer, '/clients')).status).to.equal(401);
    const support = await openConsole(server, 'support');
    const ofSupport = (await approved(support)).access_token;
    expect((await call(ofSupport, '/users')).status).to.equal(200);
    expect(
      (await owner.post(`/console/administrators/${(await member('support')).split('|')[1]}/remove`)).status,
    ).to.equal(303);
    expect((await call(ofSupport, '/users')).status).to.equal(401);
  });

  it('ends with the sessions and the application also when its token has not been fetched yet', async () => {
    const viewer = await openConsole(server, 'viewer');
    const { user_code, device_code } = await asked();
    await decide(viewer, user_code);
    const path = `/console/administrators/${(await member('viewer')).split('|')[1]}`;
    expect((await owner.post(`${path}/sessions`)).status).to.equal(303);
    const refused = await poll(device_code);
    expect([refused.status, refused.json().error]).to.deep.equal([403, 'access_denied']);

    const manager = (await approved()).access_token;
    const ofRemoved = await asked({ client_id: 'temporary' });
    await decide(owner, ofRemoved.user_code);
    expect((await call(manager, '/clients/temporary', { method: 'DELETE' })).status).to.equal(204);
    const challenges = server.store.collection('challenges');
    await until(async () => {
      const { records } = await challenges.list({ limit: 100 });
      return !records.some(({ purpose, spent }) => purpose === 'administrator_approval' && !spent);
    });
    const again = clientSchema.parse(program('temporary'));
    await server.store.collection('clients').put({ ...again, id: 'temporary' });
    const granted = clientGrantSchema.parse(grant('temporary', { audience: ownAudience() }));
    await server.store.collection('clientGrants').put({ ...granted, id: 'cgr_again' });
    expect((await poll(ofRemoved.device_code, { client_id: 'temporary' })).json().error).to.equal(
      'access_denied',
    );
  });

  it('has no token that outlives the end of the sessions at the same moment', async () => {
    const path = `/console/administrators/${(await member('viewer')).split('|')[1]}/sessions`;
    for (let n = 0; n < 4; n++) {
      const viewer = await openConsole(server, 'viewer');
      const { user_code, device_code } = await asked();
      const page = await open(viewer, user_code);
      const { _csrf = '' } = readForm(page, '_csrf').fields;
      const ownerForm = readForm(await owner.get('/console'), '_csrf').fields;
      const form: [string, string][] = [...fieldsOf(page, PAGE), ['decision', 'approve'], ['_csrf', _csrf]];
      const end = () => owner.agent.request(path, { form: { _csrf: ownerForm._csrf ?? '' } });
      // In some rounds with the approval, in the others with the token.
      const approve = () => viewer.agent.request(PAGE, { form });
      if (n % 2 === 0) await Promise.all([approve(), end()]);
      else await approve();
      const [polled] = await Promise.all([poll(device_code), ...(n % 2 === 0 ? [] : [end()])]);
      const { access_token } = polled.json();
      if (access_token !== undefined) expect((await call(access_token, '/clients')).status).to.equal(401);
    }
  });

  it('is shown no more by a higher role than that with which it was approved', async () => {
    const viewer = await openConsole(server, 'viewer');
    const { access_token } = await approved(viewer);
    await changeRoleAsOperator(server, await member('viewer'), 'owner');
    const client = await call(access_token, '/clients/secret-assistant');
    expect([client.status, client.text.includes('assistant-secret')]).to.deep.equal([200, false]);
    const support = await openConsole(server, 'support');
    const ofSupport = (await approved(support)).access_token;
    await changeRoleAsOperator(server, await member('support'), 'editor');
    const id = encodeURIComponent((await call(ofSupport, '/users')).json()[0].user_id);
    const json = { password: 'Taken-Over-1234' };
    expect((await call(ofSupport, `/users/${id}`, { method: 'PATCH', json })).status).to.equal(403);
    expect((await call(ofSupport, '/users?q=app_metadata.x:1')).status).to.equal(403);
  });

  it('ends with a second factor that its administrator has enrolled since', async () => {
    const { access_token } = await approved();
    const userId = await member('owner');
    expect((await call(access_token, '/clients')).status).to.equal(200);
    await server.store.collection('authenticators').put({
      id: 'totp|dev_owner',
      user_id: userId,
      kind: 'otp',
      secret: 'JBSWY3DPEHPK3PXP',
      active: true,
      created_at: new Date().toISOString(),
    });
    expect((await call(access_token, '/clients')).status).to.equal(401);
  });

  it('is listed and ended by its administrator, and all of them by owners', async () => {
    const editor = await openConsole(server, 'editor');
    const { access_token } = await approved(editor);
    const list = await editor.get(LIST);
    expect(list.text).to.contain('Program assistant').and.to.contain('read:clients');
    const viewer = await openConsole(server, 'viewer');
    expect((await viewer.get(LIST)).text).not.to.contain('Program assistant');
    const fields = fieldsOf(list, LIST);
    expect((await viewer.post(LIST, fields)).status).to.equal(404);
    expect((await call(access_token, '/clients')).status).to.equal(200);
    const all = await owner.get(LIST);
    expect(all.text).to.contain(addressOf('editor'));
    expect((await owner.post(LIST, fieldsOf(all, LIST))).location).to.contain('ended');
    expect((await call(access_token, '/clients')).status).to.equal(401);
    expect((await owner.post(LIST, fieldsOf(all, LIST))).status).to.equal(404);
    expect(
      (await events('administrator_program')).filter(({ description }) => description === 'ended'),
    ).to.have.length(1);
  });

  it('has as many tokens as twenty for an administrator, the oldest of which end', async () => {
    const first = (await approved()).access_token;
    for (let n = 0; n < 20; n++) await approved();
    expect((await call(first, '/clients')).status).to.equal(401);
    const { records } = await server.store.collection('challenges').list({ limit: 1000 });
    expect(records.filter(({ purpose }) => purpose === 'administrator_token')).to.have.length(20);
  });

  it('has a token that ends after the lifetime of the API, at most as long as a session of the console', async () => {
    const { access_token } = await approved();
    server.tick(28_790_000);
    expect((await call(access_token, '/clients')).status).to.equal(200);
    server.tick(20_000);
    expect((await call(access_token, '/clients')).status).to.equal(401);
  });

  it('has a token that nothing but the Management API takes', async () => {
    const { access_token } = await approved(owner, {
      client_id: 'secret-assistant',
      client_secret: 'assistant-secret',
    });
    expect((await call(access_token, '/clients')).status).to.equal(200);
    const agent = createAgent(server);
    const headers = { authorization: `Bearer ${access_token}` };
    for (const path of [
      '/userinfo',
      '/me/v1/authentication-methods',
      '/me/v1/connected-accounts/accounts',
      '/mfa/authenticators',
    ])
      expect((await agent.request(path, { headers })).status, path).to.be.within(400, 404);
    const exchanged = await token(agent, {
      ...{ grant_type: EXCHANGE, client_id: 'secret-assistant', client_secret: 'assistant-secret' },
      ...{ subject_token: access_token, subject_token_type: ACCESS_TOKEN },
    });
    expect([exchanged.status, exchanged.text.includes('access_token')]).to.deep.equal([400, false]);
    const onBehalf = await token(agent, {
      ...{ client_id: 'api-client', client_secret: 'api-secret', grant_type: EXCHANGE },
      resource: 'https://api.example.test/',
      ...{ subject_token: access_token, subject_token_type: ACCESS_TOKEN },
    });
    expect([onBehalf.status >= 400, onBehalf.text.includes('"access_token"')]).to.deep.equal([true, false]);
    const registered = await agent.request('/oidc/register', {
      headers,
      json: { redirect_uris: ['https://x.test/cb'] },
    });
    expect(registered.status).to.equal(403);
    const introspected = await agent.request('/oauth/introspect', {
      form: { client_id: 'api-client', client_secret: 'api-secret', token: access_token },
    });
    expect([introspected.status, introspected.json()]).to.deep.equal([200, { active: false }]);
    // Nor where it is the application of the Management API.
    const ofApi = await server.store.collection('clients').update('api-client', (now) => ({
      ...now,
      resource_server_identifier: ownAudience(),
    }));
    expect(ofApi?.resource_server_identifier).to.equal(ownAudience());
    const again = await agent.request('/oauth/introspect', {
      form: { client_id: 'api-client', client_secret: 'api-secret', token: access_token },
    });
    expect([again.status, again.json()]).to.deep.equal([200, { active: false }]);
    // A part of it that is changed, a token of somebody else with its ticket, and its ticket alone.
    const [head, , signature] = access_token.split('.');
    const forged = Buffer.from(JSON.stringify({ ...payload(access_token), azp: 'assistant' })).toString(
      'base64url',
    );
    for (const one of [`${head}.${forged}.${signature}`, payload(access_token).jti])
      expect((await call(one, '/clients')).status).to.equal(401);
  });

  it('gets no ID token and no refresh token, whatever it asks for', async () => {
    const answer = await approved(owner, { scope: 'openid profile offline_access read:clients' });
    expect(answer).to.have.all.keys('access_token', 'token_type', 'expires_in', 'scope');
  });

  it('proves a key where its application must', async () => {
    const { user_code, device_code } = await asked({ client_id: 'bound' });
    await decide(owner, user_code);
    const answer = await poll(device_code, { client_id: 'bound' });
    expect(answer.text).not.to.contain('access_token');
    expect(answer.status).to.equal(400);
  });

  it('is approved at the console’s own host, where it has one', async () => {
    await server.stop();
    const PORT = String(await freePort());
    const consoleUrl = `https://127.0.0.1:${PORT}`;
    server = await startConsole({
      tenant: own,
      env: { PORT, BASE_URL: `https://localhost:${PORT}`, CONSOLE_URL: consoleUrl },
    });
    const { user_code } = await asked();
    const stranger = createAgent(server);
    const at = await stranger.get(`/activate?user_code=${user_code}`);
    expect(at.location).to.equal(`${consoleUrl}${PAGE}?user_code=${user_code}`);
    expect((await stranger.get(PAGE)).status).to.equal(404);
    const form = await stranger.get('/activate');
    expect(form.headers['content-security-policy']).not.to.contain("form-action 'self'");
  });

  it('is not there without the console', async () => {
    await server.stop();
    server = await startConsole({ tenant: own, env: { CONSOLE: 'off' } });
    const { user_code } = (await ask()).json();
    expect((await createAgent(server).get(`/activate?user_code=${user_code}`)).status).to.equal(200);
  });

  it('ends when the console is switched off', async () => {
    await server.stop();
    const dataDir = mkdtempSync(join(SCRATCH, 'gatehouse-programs-'));
    const port = String(await freePort());
    const env = { PORT: port, BASE_URL: `https://localhost:${port}` };
    server = await startConsole({ tenant: own, dataDir, env });
    owner = await openConsole(server);
    const { access_token } = await approved();
    const { user_code, device_code } = await asked();
    await decide(owner, user_code);
    expect((await call(access_token, '/clients')).status).to.equal(200);
    await server.stop();
    server = await startServer({ tenant: own, dataDir, env: { ...env, CONSOLE: 'off' } });
    expect((await call(access_token, '/clients')).status).to.equal(401);
    expect((await poll(device_code)).json().error).to.equal('access_denied');
    await server.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });
});

describe('an audience with an asterisk', () => {
  let server: TestServer;
  let port: number;
  before(async () => {
    port = await freePort();
    const BASE_URL = `https://login.example.test:${port}`;
    server = await startConsole({ tenant: own, env: { PORT: String(port), BASE_URL } });
  });
  after(() => server.stop());

  const ask = (fields: Record<string, string>) =>
    createAgent(server).request('/oauth/device/code', {
      form: { client_id: 'assistant', scope: SCOPES.join(' '), ...fields },
    });
  const any = () => `https://*.example.test:${port}/api/v2/`;

  it('asks for the Management API of the server one label below it, whose token has our own audience', async () => {
    const { user_code, device_code } = (await ask({ audience: any() })).json();
    const owner = await openConsole(server);
    const page = await owner.get(`${PAGE}?user_code=${user_code}`);
    const done = await owner.post(PAGE, [...fieldsOf(page, PAGE), ['decision', 'approve']]);
    expect(done.status).to.equal(303);
    const polled = await token(createAgent(server), {
      ...{ grant_type: DEVICE, client_id: 'assistant', device_code },
    });
    expect(payload(polled.json().access_token).aud).to.deep.equal([`${server.issuer}api/v2/`]);
  });

  for (const client_id of ['ungranted', 'for-itself', 'stranger', 'members'])
    it(`is nothing to an application without a grant of its own for users, nor to one of others: ${client_id}`, async () => {
      const answer = await ask({ client_id, audience: any() });
      expect([answer.status, answer.json().error, answer.json().error_description]).to.deep.equal([
        403,
        'access_denied',
        `Service not found: ${any()}`,
      ]);
    });

  for (const [audience, why] of [
    ['https://*.test/api/v2/', 'two labels'],
    ['https://*.example.test/api/v2/', 'another port'],
    ['https://*.login.example.test:PORT/api/v2/', 'no label'],
    ['https://*/api/v2/', 'all'],
    ['https://**.example.test:PORT/api/v2/', 'two asterisks'],
    ['https://*.example.test:PORT/api/v2', 'no slash'],
    ['https://*.example.test:PORT/api/v2/?', 'a query'],
    ['https://*.EXAMPLE.test:PORT/api/v2/', 'other letters'],
    ['http://*.example.test:PORT/api/v2/', 'not https'],
    ['https://x.example.test:PORT/api/v2/', 'another server'],
    ['https://*.example.test:PORT/api/v2/ ', 'a space'],
    ['https://*.example.test:PORT/me/', 'another API'],
    ['https://*.evilexample.test:PORT/api/v2/', 'another host'],
    ['https://log*.example.test:PORT/api/v2/', 'a part of the label'],
  ] as const)
    it(`is compared as a text: ${why}`, async () => {
      const sent = audience.replace('PORT', String(port));
      const answer = await ask({ audience: sent });
      expect([answer.status, answer.json().error], answer.text).to.deep.equal([403, 'access_denied']);
    });

  it('is asked for by a command line with more than a hundred scopes, of which it gets those of its grant', async () => {
    // As the vendor's asks: `openid`, and what it could ever need, whatever its tenant knows of it.
    const nouns = Array.from({ length: 40 }, (_, n) => `some_long_noun_of_the_vendor_${n}`);
    const more = nouns.flatMap((noun) =>
      ['create', 'read', 'update', 'delete'].map((verb) => `${verb}:${noun}`),
    );
    const scope = ['openid', ...more, ...SCOPES].join(' ');
    expect(scope.length).to.be.above(6_000);
    const answer = await ask({ scope, audience: any() });
    expect(answer.status, answer.text).to.equal(200);
    const kept = (await server.store.collection('challenges').list({ limit: 1000 })).records;
    expect(JSON.stringify(kept)).not.to.contain('some_long_noun');
  });

  it('is one in the device flow alone', async () => {
    const agent = createAgent(server);
    const request = {
      ...{ client_id: 'web', response_type: 'code', redirect_uri: WEB_CALLBACK },
      ...{ scope: 'openid', audience: any() },
    };
    const at = await agent.get(`/authorize?${new URLSearchParams(request)}`);
    expect(`${at.location} ${at.text}`).to.match(/access_denied|Service not found/);
    const machine = await token(agent, {
      ...{ grant_type: 'client_credentials', client_id: 'machine', client_secret: 'machine-secret' },
      audience: any(),
    });
    expect([machine.status, machine.text.includes('access_token')]).to.deep.equal([403, false]);
  });

  it('is refused at once when it asks for nothing that the application could have', async () => {
    for (const scope of ['', 'openid', 'delete:rules', 'read:current_user', 'console:administrators']) {
      const answer = await ask({ scope, audience: any() });
      expect([answer.status, answer.json().error], scope).to.deep.equal([400, 'invalid_scope']);
    }
  });

  it('is no longer one where an API of the tenant has it as identifier', async () => {
    const identifier = any();
    await server.store
      .collection('resourceServers')
      .put({ ...resourceServerSchema.parse({ name: 'Own', identifier }), id: 'own' });
    const { user_code } = (await ask({ audience: identifier })).json();
    expect((await createAgent(server).get(`/activate?user_code=${user_code}`)).text).to.contain(
      'Program assistant',
    );
    await server.store.collection('resourceServers').delete('own');
  });

  it('names nothing where too little of the host is left', () => {
    for (const issuer of [
      'https://127.0.0.1:3000/',
      'https://example.test/',
      'https://localhost/',
      'https://[::1]/',
      'http://a.example.test/',
    ])
      expect(wildcardAudience(issuer), issuer).to.equal(undefined);
  });
});
