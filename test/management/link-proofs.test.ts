// What an ID token has to prove before the account that it names becomes an identity of another (`link_with`).
import { expect } from 'chai';
import { toResource } from '../../src/engine/base/request-extensions.ts';
import { rememberConsent } from '../../src/engine/token/token-grants.ts';
import { codeOf, factors, POLICY } from '../factors/tenant.ts';
import { type Agent, createAgent, readForm } from '../support/agent.ts';
import {
  API,
  authorize,
  tenant as base,
  follow,
  payload,
  responseOf,
  submitLogin,
} from '../support/flows.ts';
import { heldStore } from '../support/held-store.ts';
import { messagesTo, nextMessageTo } from '../support/inbox.ts';
import type { TestServer } from '../support/server.ts';
import { callsWith, type ManagementCall, managementToken, startManaged } from './support.ts';

const OWN = 'read:current_user update:current_user_identities';
const TOTP = 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP';
const SITE = 'https://site.example.test/callback';
const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
const MINUTE = 60_000;

const site = (client_id: string, more: object) => ({
  client_id,
  name: client_id,
  app_type: 'regular_web',
  client_secret: `${client_id}-secret`,
  callbacks: [SITE],
  grant_types: ['authorization_code', 'refresh_token', EXCHANGE],
  ...more,
});

const tenant = {
  ...base,
  clients: [
    ...base.clients.map((client) =>
      client.client_id === 'web'
        ? {
            ...client,
            grant_types: [...client.grant_types, EXCHANGE],
            session_transfer: { can_create_session_transfer_token: true },
          }
        : client,
    ),
    site('site', { session_transfer: { allowed_authentication_methods: ['query'] } }),
    // Its identifier is also that of an API.
    site(API, {}),
  ],
  databases: base.databases.map((one) =>
    one.name === 'users' ? { ...one, enabled_clients: [...one.enabled_clients, 'site', API] } : one,
  ),
  guardianFactors: factors('otp'),
};

interface Person {
  id: string;
  bare: string;
  email: string;
  password: string;
}

describe('link_with', () => {
  let server: TestServer;
  let call: ManagementCall;
  let people = 0;
  const held = heldStore();
  before(async () => {
    server = await startManaged(tenant, undefined, {}, { open: held.open });
    call = callsWith(server, await managementToken(server));
  });
  after(() => server.stop());

  const pathOf = (id: string) => `/users/${encodeURIComponent(id)}`;
  const someone = async (): Promise<Person> => {
    const email = `proof-${people++}@example.test`;
    const password = `Own-Password-${people}`;
    const made = await call('POST', '/users', { connection: 'users', email, password, email_verified: true });
    expect(made.status, made.text).to.equal(201);
    const { user_id: id, identities } = made.json();
    return { id, bare: identities[0].user_id, email, password };
  };
  const enroll = async ({ id }: Person) => {
    const factor = { type: 'totp', name: 'app', totp_secret: TOTP };
    const added = await call('POST', `${pathOf(id)}/authentication-methods`, factor);
    expect(added.status, added.text).to.equal(201);
  };
  const callbackOf = (client_id: string) => {
    if (client_id === 'third') return 'https://third.example.test/callback';
    return client_id === 'web' ? 'http://localhost:3001/callback' : SITE;
  };
  const secretOf = (client_id: string) => ({ client_id, client_secret: `${client_id}-secret` });
  const redeem = async (agent: Agent, client_id: string, code: string | undefined) => {
    const answer = await agent.request('/oauth/token', {
      json: {
        grant_type: 'authorization_code',
        ...secretOf(client_id),
        code,
        redirect_uri: callbackOf(client_id),
      },
    });
    expect(answer.status, answer.text).to.equal(200);
    return answer.json() as { access_token: string; id_token: string; refresh_token: string };
  };
  /** Logs in with a browser, with a code of the app if a page asks for one. */
  const loginOf = async (
    one: Person,
    { client_id = 'web', agent = createAgent(server), step = 0, ...more }: Record<string, any> = {}, // any: parameters
  ) => {
    const params = { client_id, response_type: 'code', redirect_uri: callbackOf(client_id), scope: 'openid' };
    let page = await follow(agent, await authorize(agent, { ...params, ...more }), server.url);
    if (page.text.includes('name="password"')) page = await submitLogin(agent, server, page, one);
    if (page.text.includes('name="code"')) {
      const { action, fields } = readForm(page, 'code');
      const code = codeOf(TOTP, Date.now() + step * 30_000);
      page = await follow(agent, await agent.request(action, { form: { ...fields, code } }), server.url);
    }
    expect(page.status, page.text).to.be.within(300, 399);
    const tokens = await redeem(agent, client_id, responseOf(page).code);
    return { agent, ...tokens };
  };
  /** Returns an access token by which a user links accounts to their own. */
  const ownToken = async (one: Person, more: Record<string, unknown> = {}) => {
    await rememberConsent(server.store, one.id, String(more.client_id ?? 'web'), {
      '': ['openid'],
      [toResource(`${server.issuer}api/v2/`)]: OWN.split(' '),
    });
    const wanted = { audience: `${server.issuer}api/v2/`, scope: `openid ${OWN}` };
    return (await loginOf(one, { ...wanted, ...more })).access_token;
  };
  const link = (one: Person, link_with: string, bearer?: string) =>
    call('POST', `${pathOf(one.id)}/identities`, { link_with }, bearer);
  const isThere = async ({ id }: Person) => (await call('GET', pathOf(id))).status === 200;
  /** Expects that neither a user's token nor a machine's links with an ID token. */
  const refused = async (first: Person, second: Person, idToken: string, mine?: string) => {
    for (const bearer of [mine ?? (await ownToken(first)), undefined]) {
      const answer = await link(first, idToken, bearer);
      expect(answer.status).to.equal(400);
      expect(answer.json().message).to.match(/^Invalid id token on link_with property: .*prompt=login/);
    }
    expect(await isThere(second)).to.equal(true);
  };

  it('links with the ID token of a fresh login, tells both owners by mail, and is in the log of both', async () => {
    const [first, second] = [await someone(), await someone()];
    const { id_token } = await loginOf(second);
    const linked = await link(first, id_token, await ownToken(first));
    expect(linked.status, linked.text).to.equal(201);
    expect(await isThere(second)).to.equal(false);
    for (const { email } of [first, second])
      expect((await nextMessageTo(server, email)).text, email).to.contain('another account linked');
    const logged = async ({ id }: Person) =>
      (await server.store.collection('logs').list({ where: { field: 'user_id', equals: id } })).records;
    expect((await logged(first)).find(({ type }) => type === 'account_linked')).to.include({
      description: second.id,
      client_id: 'web',
      connection: 'users',
    });
    expect((await logged(second)).find(({ type }) => type === 'account_absorbed')).to.include({
      description: first.id,
    });
  });

  it('refuses what a logout URL had: the ID token of a session that has ended', async () => {
    const [first, second] = [await someone(), await someone()];
    const { agent, id_token } = await loginOf(second);
    await agent.get('/v2/logout');
    await refused(first, second, id_token);
  });

  it('refuses an ID token without a session, which nothing ends', async () => {
    const [first, second] = [await someone(), await someone()];
    const answer = await createAgent(server).request('/oauth/token', {
      json: {
        grant_type: 'password',
        ...secretOf('web'),
        username: second.email,
        password: second.password,
        scope: 'openid',
      },
    });
    await refused(first, second, answer.json().id_token);
  });

  it('refuses an ID token that a third-party application got by a consent to less', async () => {
    const [first, second] = [await someone(), await someone()];
    await rememberConsent(server.store, second.id, 'third', { '': ['openid'] });
    const { id_token } = await loginOf(second, { client_id: 'third' });
    await refused(first, second, id_token);
    const theirs = await ownToken(first, { client_id: 'third' });
    const answer = await link(first, id_token, theirs);
    expect(answer.status, answer.text).to.be.within(400, 403);
    expect(await isThere(second)).to.equal(true);
  });

  it('refuses the password alone if the account has a second factor, and takes both', async () => {
    const [first, second] = [await someone(), await someone()];
    await enroll(first);
    const { id_token: before } = await loginOf(second);
    await enroll(second);
    const mine = await ownToken(first, { acr_values: POLICY });
    await refused(first, second, before, mine);
    const { agent, id_token: alone } = await loginOf(second);
    await refused(first, second, alone, mine);
    const { id_token: both } = await loginOf(second, { acr_values: POLICY, agent });
    await refused(first, second, alone, mine);
    expect((await link(first, both, mine)).status).to.equal(201);
  });

  it('does not take a second factor away: the account that stays must have one, too', async () => {
    const [first, second] = [await someone(), await someone()];
    await enroll(second);
    const mine = await ownToken(first);
    const { id_token } = await loginOf(second, { acr_values: POLICY });
    const answer = await link(first, id_token, mine);
    expect([answer.status, answer.json().errorCode]).to.deep.equal([403, 'insufficient_factors']);
    expect(await isThere(second)).to.equal(true);
  });

  it('keeps that a user always needs a second factor', async () => {
    const [first, second] = [await someone(), await someone()];
    await enroll(first);
    await enroll(second);
    await server.users.update(second.id, { multifactor: ['guardian'] });
    const mine = await ownToken(first, { acr_values: POLICY });
    const { id_token } = await loginOf(second, { acr_values: POLICY });
    expect((await link(first, id_token, mine)).status).to.equal(201);
    expect((await call('GET', pathOf(first.id))).json().multifactor).to.deep.equal(['guardian']);
  });

  it('refuses an old login, also with a new token of its session or refresh token', async () => {
    const [first, second] = [await someone(), await someone()];
    const { agent, id_token, refresh_token } = await loginOf(second, { scope: 'openid offline_access' });
    server.tick(11 * MINUTE);
    const { id_token: ofSession } = await loginOf(second, { agent, prompt: 'none' });
    const refreshed = await agent.request('/oauth/token', {
      json: { grant_type: 'refresh_token', ...secretOf('web'), refresh_token },
    });
    const mine = await ownToken(first);
    for (const one of [id_token, ofSession, refreshed.json().id_token as string])
      await refused(first, second, one, mine);
    // A new login of the session makes it fresh, but not what it got before.
    const { id_token: fresh } = await loginOf(second, { agent, prompt: 'login' });
    await refused(first, second, ofSession, mine);
    expect((await link(first, fresh, mine)).status).to.equal(201);
  });

  it('refuses an ID token of a session that was handed over, at which nobody was', async () => {
    const [first, second] = [await someone(), await someone()];
    const { refresh_token } = await loginOf(second, { scope: 'openid offline_access' });
    const handed = await createAgent(server).request('/oauth/token', {
      json: {
        grant_type: 'refresh_token',
        ...secretOf('web'),
        refresh_token,
        audience: `urn:${new URL(server.issuer).host}:session_transfer`,
      },
    });
    expect(handed.status, handed.text).to.equal(200);
    const session_transfer_token = handed.json().access_token;
    const { id_token } = await loginOf(second, { client_id: 'site', session_transfer_token });
    expect(payload(id_token)).to.include({ sub: second.id, aud: 'site' });
    await refused(first, second, id_token);
  });

  it('refuses an access token, also of an API with the identifier of an application', async () => {
    const [first, second] = [await someone(), await someone()];
    const { access_token } = await loginOf(second, { client_id: API, audience: API, scope: 'read:things' });
    expect(payload(access_token)).to.include({ sub: second.id, aud: API });
    await refused(first, second, access_token);
    const logout = await createAgent(server).get(
      `/oidc/logout?${new URLSearchParams({ id_token_hint: access_token })}`,
    );
    expect(logout.status, 'nor is it a hint').to.equal(400);
  });

  it('refuses an account whose factors changed after its login', async () => {
    const [first, second] = [await someone(), await someone()];
    await enroll(first);
    await enroll(second);
    const { id_token } = await loginOf(second, { acr_values: POLICY });
    await call('DELETE', `${pathOf(second.id)}/authenticators`);
    await enroll(second);
    await refused(first, second, id_token, await ownToken(first, { acr_values: POLICY }));
  });

  /** What happens between the judgement of a link and its write, and the answer. */
  const MEANWHILE: Record<string, [(pair: { stays: Person; goes: Person }) => unknown, number]> = {
    'the account that goes enrolled a factor': [({ goes }) => enroll(goes), 400],
    'the account that goes was blocked': [({ goes }) => change(goes, { blocked: true }), 400],
    'the account that goes got a new password': [
      ({ goes }) => change(goes, { password: 'Third-Horse-3' }),
      400,
    ],
    'all sessions of the account that goes were ended': [({ goes }) => revoke(goes), 400],
    'the login of the account that goes is no longer fresh': [() => server.tick(6 * MINUTE), 400],
    'the account that stays was deleted': [({ stays }) => call('DELETE', pathOf(stays.id)), 409],
    'the account that stays was blocked': [({ stays }) => change(stays, { blocked: true }), 401],
    'the account that stays got a new password': [
      ({ stays }) => change(stays, { password: 'Third-Horse-3' }),
      401,
    ],
    'all sessions of the account that stays were ended': [({ stays }) => revoke(stays), 401],
  };
  const change = async ({ id }: Person, body: object) =>
    expect((await call('PATCH', pathOf(id), body)).status).to.equal(200);
  const revoke = async ({ id }: Person) =>
    expect((await call('POST', `${pathOf(id)}/revoke-access`, {})).status).to.equal(202);
  for (const [what, [meanwhile, status]] of Object.entries(MEANWHILE))
    it(`links nothing if right before the write ${what}`, async () => {
      const [stays, goes] = [await someone(), await someone()];
      const { id_token } = await loginOf(goes);
      server.tick(5 * MINUTE);
      const mine = await ownToken(stays);
      held.beforeBatch(
        (write) => write.collection === 'users' && 'delete' in write,
        async () => meanwhile({ stays, goes }),
      );
      const answer = await link(stays, id_token, mine);
      expect(answer.status, answer.text).to.equal(status);
      expect(await isThere(goes)).to.equal(true);
    });

  /** A login that does not suffice to link or unlink by a user's token, and how it is made. */
  const INSUFFICIENT: Record<string, (one: Person) => Promise<string>> = {
    'that is old': async (one) => {
      const mine = await ownToken(one);
      server.tick(11 * MINUTE);
      return mine;
    },
    'of the password alone, of a user with a second factor': async (one) => {
      const mine = await ownToken(one);
      await enroll(one);
      return mine;
    },
    'of a session that has ended': async (one) => {
      const agent = createAgent(server);
      const mine = await ownToken(one, { agent });
      await agent.get('/v2/logout');
      return mine;
    },
    'at a third-party application': (one) => ownToken(one, { client_id: 'third' }),
  };
  for (const [what, tokenOf] of Object.entries(INSUFFICIENT))
    it(`is refused with a user's token of a login ${what}, as is unlinking`, async () => {
      const [first, second, linked] = [await someone(), await someone(), await someone()];
      await call('POST', `${pathOf(first.id)}/identities`, { provider: 'auth0', user_id: linked.bare });
      const mine = await tokenOf(first);
      await rememberConsent(server.store, second.id, 'third', { '': ['openid'] });
      const { id_token } = await loginOf(second, what.includes('third') ? { client_id: 'third' } : {});
      expect((await link(first, id_token, mine)).status).to.be.within(400, 403);
      expect(await isThere(second)).to.equal(true);
      const path = `${pathOf(first.id)}/identities/auth0/${linked.bare}`;
      expect((await call('DELETE', path, undefined, mine)).status).to.be.within(401, 403);
      expect(await isThere(linked), 'unlinked').to.equal(false);
    });

  it('is undone by a fresh login, of which the owners of both addresses are told', async () => {
    const [first, linked] = [await someone(), await someone()];
    await call('POST', `${pathOf(first.id)}/identities`, { provider: 'auth0', user_id: linked.bare });
    const mine = await ownToken(first);
    const path = `${pathOf(first.id)}/identities/auth0/${linked.bare}`;
    expect((await call('DELETE', path, undefined, mine)).status).to.equal(200);
    expect(await isThere(linked)).to.equal(true);
    for (const { email } of [first, linked])
      expect((await nextMessageTo(server, email)).text, email).to.contain('account disconnected');
  });

  it('tells nobody of a link that was refused', async () => {
    const [first, second] = [await someone(), await someone()];
    const { agent, id_token } = await loginOf(second);
    await agent.get('/v2/logout');
    await link(first, id_token, await ownToken(first));
    expect(await messagesTo(server, second.email)).to.have.length(0);
  });
});
