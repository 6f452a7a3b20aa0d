// The tabs of a user in the console, and their forms.
import { expect } from 'chai';
import { consentId } from '../../src/records/state/engine.ts';
import { createAgent } from '../support/agent.ts';
import { type ConsoleAgent, openConsole, startConsole } from '../support/console.ts';
import { databaseUser } from '../support/database-user.ts';
import {
  API,
  authorize,
  logIn,
  pkce,
  responseOf,
  SPA_CALLBACK,
  spaRequest,
  tenant,
} from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';

const HOSTILE = `"><img src=x onerror=alert(1)><script>alert(2)</script>{{ csrf }}`;
const PASSWORD = 'Another-Horse-2';
const TABS = [
  '',
  '/identities',
  '/factors',
  '/sessions',
  '/roles',
  '/organizations',
  '/consents',
  '/devices',
  '/events',
];

describe('the tabs of a user in the console', () => {
  let server: TestServer;
  let owner: ConsoleAgent;
  let made = 0;
  before(async () => {
    server = await startConsole({
      tenant: {
        ...tenant,
        roles: [
          { id: 'rol_reader', name: 'Reader', description: HOSTILE, permissions: [] },
          { id: 'rol_writer', name: HOSTILE, permissions: [] },
        ],
      },
    });
    owner = await openConsole(server);
  });
  after(() => server.stop());

  const newUser = async (more: object = {}) => {
    const email = `tabs${++made}@example.test`;
    const outcome = await server.users.create(
      databaseUser({ email, password: PASSWORD, connection: 'users' }),
    );
    if (!('user' in outcome)) throw new Error(JSON.stringify(outcome));
    const { id } = outcome.user as { id: string };
    await server.users.update(id, { email_verified: true, ...more });
    return { id, email, password: PASSWORD, path: `/console/users/${encodeURIComponent(id)}` };
  };
  /** Returns the value of a form field on a page. */
  const fieldOf = async (path: string, name: string) =>
    new RegExp(`name="${name}" value="([^"]*)"`)
      .exec((await owner.get(path)).text)?.[1]
      ?.replaceAll('&#34;', '"') ?? '';

  it('end a session of this user only', async () => {
    const [ada, eve] = [await newUser(), await newUser()];
    const agent = createAgent(server);
    await logIn(agent, server, spaRequest(pkce().challenge), ada);
    const session = await fieldOf(`${ada.path}/sessions`, 'session');
    expect(session).to.not.equal('');
    // The page of another user cannot end it.
    expect((await owner.post(`${eve.path}/sessions`, { session })).status).to.equal(404);
    expect(await fieldOf(`${ada.path}/sessions`, 'session')).to.equal(session);
    const ended = await owner.post(`${ada.path}/sessions`, { session });
    expect(ended.location).to.contain('said=console.users.said.sessionEnded');
    expect((await owner.get(`${ada.path}/sessions`)).text).to.contain('Not logged in anywhere');
    const silent = await authorize(agent, spaRequest(pkce().challenge, { prompt: 'none' }));
    expect(silent.location).to.contain('login_required');
  });

  it('revoke refresh tokens, one or all', async () => {
    const user = await newUser();
    const tokensOf = async () => {
      const agent = createAgent(server);
      const { verifier, challenge } = pkce();
      const request = spaRequest(challenge, { scope: 'openid offline_access', audience: API });
      const { code = '' } = responseOf(await logIn(agent, server, request, user));
      const form = { grant_type: 'authorization_code', client_id: 'spa', code, code_verifier: verifier };
      return (await agent.request('/oauth/token', { form: { ...form, redirect_uri: SPA_CALLBACK } })).json();
    };
    const refreshed = async (refresh_token: string) =>
      (
        await createAgent(server).request('/oauth/token', {
          form: { grant_type: 'refresh_token', client_id: 'spa', refresh_token },
        })
      ).json().error;
    const first = await tokensOf();
    expect(first.refresh_token, JSON.stringify(first)).to.be.a('string');
    const token = await fieldOf(`${user.path}/sessions`, 'token');
    expect((await owner.post(`${user.path}/sessions/token`, { token: 'somebody else’s' })).status).to.equal(
      404,
    );
    await owner.post(`${user.path}/sessions/token`, { token });
    expect(await refreshed(first.refresh_token)).to.equal('invalid_grant');
    const second = await tokensOf();
    expect((await owner.post(`${user.path}/sessions/all`)).location).to.contain('accessEnded');
    expect(await refreshed(second.refresh_token)).to.equal('invalid_grant');
    expect((await owner.get(`${user.path}/sessions`)).text)
      .to.contain('Not logged in anywhere')
      .and.to.contain('No application has one');
  });

  it('withdraw a consent, and remove factors', async () => {
    const [user, other] = [await newUser(), await newUser()];
    await server.store.collection('consents').insert({
      id: consentId(user.id, 'third'),
      user_id: user.id,
      client_id: 'third',
      scopes: { '': ['openid', 'profile'] },
    } as never);
    const grant = await fieldOf(`${user.path}/consents`, 'grant');
    expect((await owner.post(`${other.path}/consents`, { grant })).status).to.equal(404);
    expect((await owner.post(`${user.path}/consents`, { grant: '../x' })).status).to.equal(404);
    expect((await owner.get(`${user.path}/consents`)).text).to.contain('Third party');
    expect((await owner.post(`${user.path}/consents`, { grant })).location).to.contain('withdrawn');
    expect((await owner.get(`${user.path}/consents`)).text).to.not.contain('Third party');
    expect((await owner.post(`${user.path}/factors`, { method: 'none' })).status).to.equal(404);
    expect((await owner.post(`${user.path}/factors/browsers`)).status).to.equal(303);
    await server.store.collection('authenticators').insert({
      id: 'totp|console',
      user_id: user.id,
      kind: 'otp',
      active: true,
      secret: 'JBSWY3DPEHPK3PXP',
      created_at: new Date().toISOString(),
    } as never);
    const factors = await owner.get(`${user.path}/factors`);
    expect(factors.text).to.contain('Authenticator app').and.to.not.contain('JBSWY3DPEHPK3PXP');
    expect((await owner.post(`${other.path}/factors`, { method: 'totp|console' })).status).to.equal(404);
    expect((await owner.post(`${user.path}/factors`, { method: 'totp|console' })).status).to.equal(303);
    expect((await owner.get(`${user.path}/factors`)).text).to.contain('No second factor');
    expect((await owner.post(`${user.path}/factors/all`)).status).to.equal(303);
    expect((await owner.post(`${user.path}/devices`, { device: 'none' })).status).to.equal(404);
  });

  it('assign and remove roles and permissions', async () => {
    const { id, path } = await newUser();
    expect((await owner.post(`${path}/roles`, { role: 'rol_reader' })).location).to.contain('roleGiven');
    expect((await server.users.get(id))?.roles).to.deep.equal(['rol_reader']);
    expect((await owner.get(`${path}/roles`)).text)
      .to.contain('Reader')
      .and.to.not.contain('<img');
    await owner.post(`${path}/roles/remove`, { role: 'rol_reader' });
    expect((await server.users.get(id))?.roles).to.deep.equal([]);
    expect((await owner.post(`${path}/roles`, { role: 'rol_none' })).status).to.equal(404);
    const permission = JSON.stringify(['guarded-api', 'admin']);
    expect((await owner.post(`${path}/roles/permission`, { permission })).location).to.contain(
      'permissionGiven',
    );
    expect((await server.users.get(id))?.permissions).to.have.length(1);
    await owner.post(`${path}/roles/permission/remove`, { permission });
    expect((await server.users.get(id))?.permissions).to.deep.equal([]);
    for (const wrong of ['', '{', '[]', 'null', '["guarded-api"]', '["guarded-api","none"]', '[1,2]'])
      expect(
        (await owner.post(`${path}/roles/permission`, { permission: wrong })).status,
        wrong,
      ).to.be.within(400, 404);
  });

  it('unlink an identity, which becomes a user of its own, except the first', async () => {
    const [user, other] = [await newUser(), await newUser()];
    await server.users.link(user.id, other.id);
    const page = await owner.get(`${user.path}/identities`);
    expect(page.text).to.contain(other.email).and.to.contain('Unlink');
    const [, first = ''] = user.id.split('|');
    const [, second = ''] = other.id.split('|');
    expect(
      (await owner.post(`${user.path}/identities`, { provider: 'auth0', identity_id: first })).status,
    ).to.equal(400);
    await owner.post(`${user.path}/identities`, { provider: 'auth0', identity_id: second });
    expect(await server.users.get(other.id)).to.include({ email: other.email });
  });

  it('link the events of a user to their pages in the log', async () => {
    const user = await newUser();
    await logIn(createAgent(server), server, spaRequest(pkce().challenge), user);
    const [, path = ''] =
      /<a href="(\/console\/log\/[^"]+)"/.exec((await owner.get(`${user.path}/events`)).text) ?? [];
    const page = await owner.get(path);
    expect(page.status).to.equal(200);
    expect(page.text).to.contain(user.email);
  });

  it('show hostile values as text', async () => {
    const { path, ...user } = await newUser({
      ...{ name: HOSTILE, given_name: HOSTILE, family_name: HOSTILE, nickname: HOSTILE },
      picture: `https://example.test/${HOSTILE}`,
      user_metadata: { [HOSTILE]: HOSTILE },
      app_metadata: { [HOSTILE]: [HOSTILE] },
    });
    const agent = createAgent(server);
    const headers = { 'user-agent': HOSTILE };
    const hostile = {
      ...agent,
      get: (to: string) => agent.get(to, headers),
      request: (to: string, asked = {}) => agent.request(to, { ...asked, headers }),
    };
    await logIn(hostile, server, spaRequest(pkce().challenge), user);
    await logIn(hostile, server, spaRequest(pkce().challenge), {
      email: user.email,
      password: HOSTILE,
    }).catch(() => undefined);
    await server.store.collection('artifacts').insert({
      id: 'DeviceCredential:dcr_hostile',
      model: 'DeviceCredential',
      payload: { accountId: user.id, clientId: 'spa', device_name: HOSTILE, device_id: HOSTILE },
    } as never);
    const factors: Record<string, object> = {
      push: { name: HOSTILE },
      sms: { phone_number: HOSTILE },
      email: { email: HOSTILE },
      'webauthn-roaming': { name: HOSTILE },
      [HOSTILE]: {},
    };
    for (const [kind, fields] of Object.entries(factors))
      await server.store.collection('authenticators').insert({
        id: `${kind}|dev_hostile`,
        user_id: user.id,
        kind,
        active: true,
        created_at: new Date(0).toISOString(),
        ...fields,
      });
    await owner.post(`${path}/roles`, { role: 'rol_writer' });
    const pages = [
      ...TABS.map((tab) => path + tab),
      `${path}/delete`,
      '/console/users',
      `/console/users?q=${encodeURIComponent(HOSTILE)}`,
    ];
    for (const page of pages) {
      const { status, text } = await owner.get(page);
      expect(status, page).to.equal(200);
      expect(text, page)
        .to.not.contain('<img src=x')
        .and.to.not.contain('<script>alert')
        .and.to.not.contain('src="https://example.test');
      expect(text.split('&lt;img').length, page).to.be.greaterThan(1);
    }
    expect((await owner.get(`${path}/sessions`)).text).to.contain('onerror=alert(1)&gt;');
    expect((await owner.get(`${path}/factors`)).text.split('onerror=alert(1)&gt;').length).to.be.greaterThan(
      3,
    );
    expect((await owner.get(`${path}/devices`)).text).to.contain('onerror=alert(1)&gt;');
  });
});
