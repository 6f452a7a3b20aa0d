// Users in the Management API: creating them in each kind of connection, changing them, and what responses and tokens
// show.
import { expect } from 'chai';
import { toResource } from '../../src/engine/base/request-extensions.ts';
import { rememberConsent } from '../../src/engine/token/token-grants.ts';
import { tenant } from '../connections/passwordless/tenant.ts';
import { createAgent } from '../support/agent.ts';
import { payload, token, USER } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { callsWith, type ManagementCall, managementToken, startManaged } from './support.ts';

const CLIENT = { client_id: 'web', client_secret: 'web-secret' };

describe('/users', () => {
  let server: TestServer;
  let admin: string;
  let call: ManagementCall;
  let people = 0;

  before(async () => {
    server = await startManaged(tenant);
    admin = await managementToken(server);
    call = callsWith(server, admin);
  });
  after(() => server.stop());

  const create = (body: object) =>
    call('POST', '/users', { connection: 'users', password: USER.password, ...body });
  const someone = async (more: object = {}) => {
    const email = `record-${people++}@example.test`;
    const made = await create({ email, ...more });
    expect(made.status, made.text).to.equal(201);
    const id = made.json().user_id as string;
    return { id, email, path: `/users/${encodeURIComponent(id)}` };
  };
  const login = (username: string, more: Record<string, string> = {}) =>
    token(createAgent(server), {
      grant_type: 'password',
      ...CLIENT,
      username,
      password: USER.password,
      scope: 'openid',
      ...more,
    });

  it('creates users in databases and passwordless connections, with a given id if there is one', async () => {
    const custom = await create({ email: 'custom@example.test', user_id: 'my-own-id' });
    expect(custom.json()).to.include({ user_id: 'auth0|my-own-id' });
    const again = await create({ email: 'custom2@example.test', user_id: 'auth0|my-own-id' });
    expect(again.status).to.equal(409);
    expect((await create({ email: 'Custom@example.test' })).json()).to.include({
      message: 'The user already exists.',
    });
    const byEmail = await call('POST', '/users', { connection: 'email', email: 'code@example.test' });
    expect(byEmail.json().identities[0]).to.include({ provider: 'email', connection: 'email' });
    const bySms = await call('POST', '/users', { connection: 'sms', phone_number: '+4915112345670' });
    expect(bySms.json()).to.include({ phone_number: '+4915112345670' });
    const unknown = await create({ connection: 'none', email: 'x@example.test' });
    expect(unknown.json()).to.include({ message: 'The connection does not exist.' });
    for (const body of [
      { email: 'no address' },
      { email: 'a@example.test', password: null },
      { email: 'a@example.test', password: 'weak' },
      { email: 'a@example.test', user_id: 'with space' },
      { email: 'a@example.test', logins_count: 9 },
      { email: 'a@example.test', roles: ['rol_x'] },
      { phone_number: '0151' },
      { connection: 'sms', email: 'a@example.test' },
    ])
      expect((await create(body)).status, JSON.stringify(body)).to.equal(400);
  });

  it('merges metadata at the first level: null removes a key, {} all of them', async () => {
    const { path } = await someone({ user_metadata: { a: 1, b: { c: 2, d: 3 } } });
    const patch = async (user_metadata: object) =>
      (await call('PATCH', path, { user_metadata })).json().user_metadata;
    expect(await patch({ b: { c: 9 }, e: 'x' })).to.deep.equal({ a: 1, b: { c: 9 }, e: 'x' });
    expect(await patch({ a: null })).to.deep.equal({ b: { c: 9 }, e: 'x' });
    expect(await patch({})).to.deep.equal({});
    for (const other of [{ email: 'z@example.test' }, { email_verified: true }])
      expect((await call('PATCH', path, { password: 'New-Password-12', ...other })).status).to.equal(400);
  });

  it('neither writes nor logs a PATCH with the current values', async () => {
    const { path } = await someone({ user_metadata: { a: { b: 1 } }, given_name: 'Ada' });
    const before = (await call('GET', path)).json();
    const logged = async () =>
      (await call('GET', '/logs?per_page=100'))
        .json()
        .filter(
          ({
            type,
            details,
          }: {
            type: string;
            details?: { request?: { path?: string; method?: string } };
          }) => {
            const { path: at, method } = details?.request ?? {};
            return type === 'sapi' && method === 'patch' && at === `/api/v2${path}`;
          },
        ).length;
    server.tick(2000);
    for (const body of [
      {},
      { user_metadata: { a: { b: 1 } } },
      { given_name: 'Ada', email: before.email, email_verified: before.email_verified },
    ]) {
      const same = await call('PATCH', path, body);
      expect([same.status, same.json()]).to.deep.equal([200, before]);
    }
    expect(await logged()).to.equal(0);
    for (const body of [{ user_metadata: { a: { b: 2 } } }, { password: 'Another-Password-3' }])
      expect((await call('PATCH', path, body)).status).to.equal(200);
    expect(await logged()).to.equal(2);
    expect((await call('GET', path)).json().updated_at).to.not.equal(before.updated_at);
  });

  it('ends sessions and refresh tokens when a password is set', async () => {
    const { email, path } = await someone();
    const { refresh_token } = (await login(email, { scope: 'openid offline_access' })).json();
    expect((await call('PATCH', path, { password: 'Another-Password-3' })).status).to.equal(200);
    const refreshed = await token(createAgent(server), {
      grant_type: 'refresh_token',
      ...CLIENT,
      refresh_token,
    });
    expect(refreshed.status).to.be.within(400, 403);
    expect((await login(email)).status).to.equal(403);
    expect((await login(email, { password: 'Another-Password-3' })).status).to.equal(200);
  });

  it('stores claims that ID tokens and userinfo contain by scope', async () => {
    const claims = {
      middle_name: 'King',
      preferred_username: 'ada',
      profile: 'https://ada.example.test/',
      website: 'https://example.test/',
      gender: 'female',
      birthdate: '1815-12-10',
      zoneinfo: 'Europe/London',
      locale: 'en-GB',
    };
    const address = { country: 'GB', locality: 'London' };
    const { email } = await someone({ ...claims, address });
    const tell = async (scope: string) => {
      const { access_token } = (await login(email, { scope })).json();
      const answer = await createAgent(server).get('/userinfo', {
        authorization: `Bearer ${access_token}`,
      });
      return answer.json();
    };
    expect(await tell('openid profile address')).to.deep.include({ ...claims, address });
    expect(await tell('openid')).to.not.have.any.keys('birthdate', 'address', 'locale');
    const { id_token } = (await login(email, { scope: 'openid profile' })).json();
    expect(payload(id_token)).to.include(claims).and.not.to.have.property('address');
  });

  it('lets users read their own record and change their user_metadata, and nothing else', async () => {
    const [mine, theirs] = [await someone(), await someone()];
    const audience = `${server.issuer}api/v2/`;
    const scope = 'read:current_user update:current_user_metadata';
    await rememberConsent(server.store, mine.id, 'web', {
      '': ['openid'],
      [toResource(audience)]: scope.split(' '),
    });
    const own = (await login(mine.email, { audience, scope: `openid ${scope} read:users` })).json();
    const bearer = own.access_token as string;
    expect(payload(bearer).scope.split(' ')).to.have.members(['openid', ...scope.split(' ')]);
    expect((await call('GET', mine.path, undefined, bearer)).json()).to.include({ email: mine.email });
    const changed = await call('PATCH', mine.path, { user_metadata: { a: 1 } }, bearer);
    expect(changed.json().user_metadata).to.deep.equal({ a: 1 });
    for (const body of [{ app_metadata: { admin: true } }, { blocked: false }, { email_verified: true }])
      expect((await call('PATCH', mine.path, body, bearer)).status).to.equal(403);
    const mismatch = 'User to be acted on does not match subject in bearer token.';
    const foreign = await call('GET', theirs.path, undefined, bearer);
    expect([foreign.status, foreign.json().message]).to.deep.equal([403, mismatch]);
    const patched = await call('PATCH', theirs.path, { user_metadata: { a: 1 } }, bearer);
    expect([patched.status, patched.json().message]).to.deep.equal([403, mismatch]);
    for (const at of [mine.path, `${mine.path}/roles`, `${mine.path}/permissions`])
      expect((await call('DELETE', at, undefined, bearer)).status).to.equal(403);
    // What they add call by call is bounded as a whole, and can be made smaller again.
    const add = (name: string, value: unknown) =>
      call('PATCH', mine.path, { user_metadata: { [name]: value } }, bearer);
    const statuses: number[] = [];
    for (let count = 0; count < 8; count++)
      statuses.push((await add(`part${count}`, 'x'.repeat(40_000))).status);
    expect(statuses).to.deep.equal([200, 200, 200, 200, 200, 200, 400, 400]);
    const refused = await add('part7', 'x'.repeat(40_000));
    expect(refused.json()).to.deep.include({
      statusCode: 400,
      message: 'user_metadata would have more than 262144 characters as JSON.',
    });
    expect((await add('part0', null)).status).to.equal(200);
    expect((await add('part7', 'x'.repeat(40_000))).status).to.equal(200);
    await call('PATCH', mine.path, { blocked: true });
    expect((await call('GET', mine.path, undefined, bearer)).status).to.equal(401);
  });
});
