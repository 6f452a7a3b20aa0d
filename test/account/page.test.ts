// /account: users manage their own account.
import { expect } from 'chai';
import { toResource } from '../../src/engine/base/request-extensions.ts';
import { rememberConsent } from '../../src/engine/token/token-grants.ts';
import { type Agent, type Answer, createAgent, readForm } from '../support/agent.ts';
import { databaseUser } from '../support/database-user.ts';
import {
  API,
  authorize,
  follow,
  logIn,
  payload,
  pkce,
  responseOf,
  spaRequest,
  THIRD_CALLBACK,
  tenant,
  token,
  USER,
  webRequest,
} from '../support/flows.ts';
import { messagesTo, nextMessageTo } from '../support/inbox.ts';
import { prepareReset } from '../support/reset.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { formOf, openAccount, send } from './support.ts';

const OTHER = { email: 'grace@example.test', password: 'Another-Horse-2' };

describe('the account page', () => {
  let server: TestServer;
  let agent: Agent;
  beforeEach(async () => {
    server = await startServer({
      tenant: {
        ...tenant,
        tenant: {
          ...tenant.tenant,
          account_page: { client_id: 'web', allow_deletion: true },
          flags: { enable_dynamic_client_registration: true },
        },
        users: [...tenant.users, { ...OTHER, connection: 'users', email_verified: true }],
      },
    });
    agent = createAgent(server);
  });
  afterEach(() => server.stop());

  const userOf = async (email: string) => {
    const [user] = await server.users.withEmail(email);
    if (user === undefined) throw new Error(`nobody has ${email}`);
    return user;
  };
  const see = (answer: Answer) => follow(agent, answer, server.url);
  const stale = () => server.tick(11 * 60_000);

  it('is shown after a login, with a policy against framing', async () => {
    const page = await openAccount(agent, server);
    expect(page.status).to.equal(200);
    expect(page.text).to.contain(USER.email);
    expect(page.headers['content-security-policy']).to.contain("frame-ancestors 'none'");
    expect(page.headers['cache-control']).to.equal('no-store');
  });

  it('answers 404 when the tenant has switched it off', async () => {
    await server.stop();
    server = await startServer({
      tenant: { ...tenant, tenant: { ...tenant.tenant, account_page: { enabled: false } } },
    });
    agent = createAgent(server);
    for (const path of ['', '/sessions', '/data', '/email?ticket=x', '/callback/web'])
      expect((await agent.get(`/account${path}`)).status, path).to.equal(404);
  });

  it('uses the session of a login to an application, and ends with it', async () => {
    await logIn(agent, server, spaRequest(pkce().challenge));
    const page = await see(await agent.get('/account'));
    expect(page.text).to.contain(USER.email);
    await agent.get('/v2/logout');
    expect((await agent.get('/account')).status).to.equal(303);
  });

  it('ends with a new password, and with a block', async () => {
    await openAccount(agent, server);
    await server.users.setPassword((await userOf(USER.email)).id, 'Third-Horse-3');
    expect((await agent.get('/account')).status).to.equal(303);
    const other = createAgent(server);
    await openAccount(other, server, '/account', OTHER);
    await server.users.update((await userOf(OTHER.email)).id, { blocked: true });
    expect((await other.get('/account')).status).to.equal(303);
  });

  it('rejects a code or a state of another browser', async () => {
    const started = await agent.get('/account');
    const page = await follow(agent, started, server.url);
    const { state } = Object.fromEntries(new URL(started.location).searchParams);
    expect(page.text).to.contain('name="password"');
    const thief = createAgent(server);
    for (const code of ['', '&code=x']) {
      const answer = await thief.get(`/account/callback/web?state=${state}${code}`);
      expect(answer.status).to.equal(400);
      expect(thief.cookies().map(({ name }) => name)).not.to.include('__Host-gatehouse_account');
    }
  });

  it("rejects its callback as a redirect URI of an application's own request", async () => {
    const params = new URLSearchParams({
      client_id: 'web',
      redirect_uri: `${server.url}/account/callback/web`,
      response_type: 'code',
      scope: 'openid',
      state: 'own',
    });
    expect((await agent.get(`/authorize?${params}`)).status).to.equal(400);
  });

  it('changes the profile, which tokens then contain', async () => {
    const page = await openAccount(agent, server);
    const values = { name: 'Ada <b>King</b>', picture: 'https://example.test/ada.png', locale: 'de' };
    const saved = await see(await send(agent, page, '/account', values));
    expect(saved.text).to.contain('Saved.').and.contain('Ada &lt;b&gt;King&lt;/b&gt;');
    expect(await userOf(USER.email)).to.include(values);
    const emptied = await see(await send(agent, saved, '/account', { name: '', picture: '' }));
    expect(emptied.status).to.equal(200);
    expect(await userOf(USER.email)).not.to.have.any.keys('name', 'picture');
  });

  it('rejects a picture with an unsafe URL, an invalid language, and a name that is too long', async () => {
    const page = await openAccount(agent, server);
    for (const values of [
      { picture: 'javascript:alert(1)' },
      { picture: 'http://example.test/a.png' },
      { locale: '"><script>' },
      { name: 'n'.repeat(301) },
    ]) {
      const answer = await send(agent, page, '/account', values);
      expect(answer.status, JSON.stringify(values)).to.equal(400);
      expect(answer.text).not.to.contain('"><script>');
    }
    expect(await userOf(USER.email)).not.to.have.any.keys('name', 'picture', 'locale');
  });

  it('shows only known messages, whatever the query says', async () => {
    await openAccount(agent, server);
    for (const said of ['phoneSent', 'toString', '<b>', 'saved&said=x']) {
      const page = await agent.get(`/account?said=${said}`);
      expect(page.status, said).to.equal(200);
      expect(page.text, said).not.to.contain('role="status"');
    }
    expect((await agent.get('/account?said=saved')).text).to.contain('Saved.');
  });

  it('changes only the members that its form has', async () => {
    const page = await openAccount(agent, server);
    const more = { email: 'evil@example.test', email_verified: 'true', blocked: 'false', app_metadata: '{}' };
    await send(agent, page, '/account', { name: 'Ada', ...more });
    const user = await userOf(USER.email);
    expect(user).to.include({ name: 'Ada', email: USER.email });
  });

  it('rejects a form of another page, and one that another user opened', async () => {
    const page = await openAccount(agent, server);
    const fields = formOf(page, '/account');
    for (const form of [{ name: 'x' }, { ...fields, _csrf: 'x', name: 'x' }])
      expect((await agent.request('/account', { form })).status).to.equal(403);
    const cross = { 'sec-fetch-site': 'cross-site' };
    expect(
      (await agent.request('/account', { form: { ...fields, name: 'x' }, headers: cross })).status,
    ).to.equal(403);
    const grace = (await userOf(OTHER.email)).id;
    await agent.request('/account', { form: { ...fields, account: grace, name: 'x' } });
    expect((await userOf(USER.email)).name).to.equal(undefined);
  });

  describe('sessions', () => {
    it('are listed with their devices, and can be ended one by one', async () => {
      const phone = createAgent(server);
      const iphone =
        'Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Version/18.0 Mobile Safari/604.1';
      await phone.get('/account', { 'user-agent': iphone });
      await logIn(phone, server, spaRequest(pkce().challenge));
      const page = await openAccount(agent, server, '/account/sessions');
      expect(page.text).to.contain('this browser');
      const all = [...page.text.matchAll(/name="session" value="([^"]+)"/g)].map(([, id = '']) => id);
      expect(all).to.have.length(2);
      const [, others = ''] = all;
      const ended = await see(await send(agent, page, '/account/sessions', { session: others }));
      expect(ended.text).to.contain('The session has ended.');
      expect((await see(await agent.get('/account/sessions'))).text).not.to.contain(others);
      expect((await phone.get('/account')).status).to.equal(303);
    });

    it('cannot be ended by another user', async () => {
      const other = createAgent(server);
      const theirs = await openAccount(other, server, '/account/sessions', OTHER);
      const [, session = ''] = /name="session" value="([^"]+)"/.exec(theirs.text) ?? [];
      const page = await openAccount(agent, server, '/account/sessions');
      await send(agent, page, '/account/sessions', { session });
      expect((await other.get('/account')).status).to.equal(200);
    });

    for (const action of ['/account/sessions', '/account/sessions/others'])
      it(`revoke links for a new password or address when they end: ${action}`, async () => {
        const { id } = await userOf(USER.email);
        await server.users.update(id, { email_verified: false });
        const thief = createAgent(server);
        const opened = await openAccount(thief, server);
        await send(thief, opened, '/account/profile/email', { email: 'thief@example.test' });
        const prove = new URL((await nextMessageTo(server, 'thief@example.test', 1)).link ?? '');
        const security = await openAccount(thief, server, '/account/security');
        const reset = new URL((await send(thief, security, '/account/security/password')).location);
        const links = [prove, reset].map(({ pathname, search }) => pathname + search);
        for (const link of links) expect((await thief.get(link)).status, link).to.equal(200);

        const page = await openAccount(agent, server, '/account/sessions');
        const all = [...page.text.matchAll(/name="session" value="([^"]+)"/g)].map(([, one = '']) => one);
        const done = await see(await send(agent, page, action, { session: all[1] ?? '' }));
        expect(done.text).to.contain('ended.');
        for (const link of links) expect((await thief.get(link)).status, link).to.equal(400);
      });

    it('can all be ended but this one, with their offline refresh tokens', async () => {
      const phone = createAgent(server);
      const login = { client_id: 'web', client_secret: 'web-secret', grant_type: 'password' };
      const response = await token(phone, {
        ...login,
        audience: API,
        scope: 'openid offline_access',
        username: USER.email,
        password: USER.password,
      });
      const { refresh_token } = response.json();
      await openAccount(phone, server);
      const page = await openAccount(agent, server, '/account/sessions');
      const done = await see(await send(agent, page, '/account/sessions/others'));
      expect(done.text).to.contain('All other sessions have ended.');
      expect((await phone.get('/account')).status).to.equal(303);
      const again = await token(phone, { ...login, grant_type: 'refresh_token', refresh_token });
      expect(again.json()).to.include({ error: 'invalid_grant' });
    });
  });

  describe('applications', () => {
    it('lose their tokens when the user withdraws the consent', async () => {
      const login = { client_id: 'web', client_secret: 'web-secret', grant_type: 'password' };
      const response = await token(agent, {
        ...login,
        audience: API,
        scope: 'openid offline_access',
        username: USER.email,
        password: USER.password,
      });
      const { refresh_token } = response.json();
      const page = await openAccount(agent, server, '/account/applications');
      expect(page.text).to.contain('Web app').and.contain('Stays logged in');
      const done = await see(await send(agent, page, '/account/applications', { application: 'web' }));
      expect(done.text).to.contain('There are no applications.');
      const again = await token(agent, { ...login, grant_type: 'refresh_token', refresh_token });
      expect(again.json()).to.include({ error: 'invalid_grant' });
    });
  });

  it('says of agents what they may do in words, where their access goes, and that nobody has verified them', async () => {
    const callback = 'https://agent.example.test/callback';
    const registered = await agent.request('/oidc/register', {
      json: { client_name: 'Helper agent', redirect_uris: [callback, 'http://127.0.0.1/'] },
    });
    expect(registered.status, registered.text).to.equal(201);
    const { client_id } = registered.json();
    const { id: userId } = await userOf(USER.email);
    const consent = { '': ['openid'], [toResource(API)]: ['read:things', 'gone:things'] };
    await rememberConsent(server.store, userId, client_id, consent, 'agent.example.test');
    const page = await openAccount(agent, server, '/account/applications');
    for (const one of [
      'Agents and applications that act for you',
      'not verified',
      'Know who you are',
      'Read things',
    ])
      expect(page.text).to.contain(one);
    expect(page.text).to.match(/Access goes to <strong><bdi dir="ltr">agent\.example\.test</);
    expect(page.text).to.contain('Helper agent').and.not.contain('gone:things').and.not.contain('127.0.0.1');
    const done = await see(await send(agent, page, '/account/applications', { application: client_id }));
    expect(done.text).to.contain('There are no applications.');
    expect(await server.store.collection('consents').findBy('user', userId)).to.deep.equal([]);
  });

  it('makes a third-party application ask for consent again after it was withdrawn', async () => {
    const request = {
      ...webRequest({ scope: 'openid email' }),
      client_id: 'third',
      redirect_uri: THIRD_CALLBACK,
    };
    const consent = await logIn(agent, server, request);
    expect(consent.text).to.contain('name="decision"');
    const { action, fields } = readForm(consent, '_csrf');
    const end = await see(await agent.request(action, { form: { ...fields, decision: 'accept' } }));
    expect(responseOf(end)).to.have.property('code');
    expect(responseOf(await see(await authorize(agent, request)))).to.have.property('code');
    const page = await openAccount(agent, server, '/account/applications');
    expect(page.text).to.contain('Third party').and.contain('See your email address');
    const done = await see(await send(agent, page, '/account/applications', { application: 'third' }));
    expect(done.text).not.to.contain('Third party');
    expect((await see(await authorize(agent, request))).text).to.contain('name="decision"');
  });

  it('unlinks a linked identity, but not the one that the account was created with', async () => {
    const [user, other] = [await userOf(USER.email), await userOf(OTHER.email)];
    expect(await server.users.link(user.id, other.id)).to.equal(true);
    const login = { client_id: 'web', client_secret: 'web-secret' };
    const by = { username: OTHER.email, password: OTHER.password, scope: 'openid offline_access' };
    const response = await token(agent, { ...login, ...by, grant_type: 'password' });
    const refresh = { ...login, grant_type: 'refresh_token', refresh_token: response.json().refresh_token };
    expect(payload(response.json().id_token).sub).to.equal(user.id);
    const identities = await server.users.identitiesOf(user.id);
    const idOf = (email: string) => String(identities.find((one) => one.email === email)?.id);
    const page = await openAccount(agent, server, '/account/applications');
    const unlink = (identity: string) => send(agent, page, '/account/applications/unlink', { identity });
    await unlink(idOf(USER.email));
    await unlink('nobody');
    expect(await server.users.identitiesOf(user.id)).to.have.length(2);
    expect((await unlink(idOf(OTHER.email))).location).to.contain('said=unlinked');
    expect((await server.users.identitiesOf(user.id)).map(({ email }) => email)).to.deep.equal([USER.email]);
    expect((await userOf(OTHER.email)).id).to.equal(other.id);
    for (const to of [USER.email, OTHER.email])
      await nextMessageTo(server, to, 1, ({ text }) => text.includes('account disconnected'));
    expect((await token(agent, refresh)).json(), 'what came by it').to.include({ error: 'invalid_grant' });
    // A login from before may have been by that identity.
    expect((await agent.get('/account')).status).to.equal(303);
  });

  it('revokes authorization codes when the consent is withdrawn', async () => {
    const request = webRequest({ audience: API, scope: 'openid offline_access' });
    const codeIn = (answer: Answer) => responseOf(answer).code;
    const login = { client_id: 'web', client_secret: 'web-secret', redirect_uri: request.redirect_uri };
    const redeem = (code: string | undefined) =>
      token(agent, { ...login, grant_type: 'authorization_code', code });
    expect((await redeem(codeIn(await logIn(agent, server, request)))).status).to.equal(200);
    const waiting = codeIn(await see(await authorize(agent, request)));
    expect(waiting).to.be.a('string');
    const page = await openAccount(agent, server, '/account/applications');
    await send(agent, page, '/account/applications', { application: 'web' });
    expect((await redeem(waiting)).json()).to.include({ error: 'invalid_grant' });
  });

  describe('a new e-mail address', () => {
    const NEW = 'ada.king@example.test';
    const ask = async (email = NEW) => {
      const page = await openAccount(agent, server);
      return see(await send(agent, page, '/account/profile/email', { email }));
    };
    const linkTo = async (address: string, count = 1) =>
      new URL((await nextMessageTo(server, address, count)).link ?? '');
    const press = async (link: URL, by: Agent = agent) => {
      const page = await by.get(link.pathname + link.search);
      return send(by, page, '/account/email');
    };

    it('is allowed at the old one and proved at the new one, and the old one is told', async () => {
      expect((await ask()).text).to.contain('We have sent a link to your present address.');
      expect(await messagesTo(server, NEW)).to.have.length(0);
      const anywhere = createAgent(server);
      const allow = await linkTo(USER.email);
      expect((await press(allow, anywhere)).text).to.contain('Now check your new address');
      expect((await userOf(USER.email)).email).to.equal(USER.email);
      expect((await press(await linkTo(NEW), anywhere)).text).to.contain('Your address is changed');
      expect(await userOf(NEW)).to.include({ email: NEW, email_verified: true });
      const notice = await nextMessageTo(server, USER.email, 2);
      expect(notice.text).to.contain('new email address');
      expect((await anywhere.get(allow.pathname + allow.search)).status).to.equal(400);
    });

    it('uses each link once for concurrent requests', async () => {
      await ask();
      const link = await linkTo(USER.email);
      const page = await agent.get(link.pathname + link.search);
      const racers = await Promise.all(Array.from({ length: 20 }, () => send(agent, page, '/account/email')));
      expect(racers.filter(({ status }) => status === 200)).to.have.length(1);
      expect(await messagesTo(server, NEW)).to.have.length(1);
    });

    it('is rejected when another user has it, but only after it was proved', async () => {
      expect((await ask(OTHER.email)).text).to.contain('We have sent a link to your present address.');
      expect((await press(await linkTo(USER.email))).text).to.contain('Now check your new address');
      expect((await press(await linkTo(OTHER.email))).status).to.equal(409);
      expect((await userOf(USER.email)).email).to.equal(USER.email);
    });

    it('is cancelled by a new password, a block, another change, and after an hour', async () => {
      await ask();
      const first = await linkTo(USER.email);
      await ask('ada.byron@example.test');
      expect((await agent.get(first.pathname + first.search)).status).to.equal(400);
      const second = await linkTo(USER.email, 2);
      expect((await agent.get(second.pathname + second.search)).status).to.equal(200);
      await server.users.setPassword((await userOf(USER.email)).id, USER.password);
      expect((await agent.get(second.pathname + second.search)).status).to.equal(400);
      await ask();
      const third = await linkTo(USER.email, 3);
      server.tick(3_601_000);
      expect((await agent.get(third.pathname + third.search)).status).to.equal(400);
    });

    it('is not set beside a new password by the owner of the old address: only one of the two succeeds', async () => {
      for (let round = 0; round < 8; round++) {
        const email = `unproved-${round}@example.test`;
        await server.users.create(databaseUser({ connection: 'users', email, password: USER.password }));
        const [thief, wanted] = [createAgent(server), `thief-${round}@example.test`];
        const page = await openAccount(thief, server, '/account', { email, password: USER.password });
        await see(await send(thief, page, '/account/profile/email', { email: wanted }));
        const link = await linkTo(wanted);
        const form = await thief.get(link.pathname + link.search);
        const reset = await prepareReset(server, email);
        const both = [() => send(thief, form, '/account/email'), () => reset(`Owner-Horse-${round}`)];
        const [first, second] = round % 2 === 0 ? both : both.toReversed();
        const answers = await Promise.all([first?.(), second?.()]);
        const [change, owner] = round % 2 === 0 ? answers : answers.toReversed();
        if (owner?.status === 200) {
          expect(await userOf(email)).to.include({ email, email_verified: true });
          expect(await server.users.withEmail(wanted)).to.deep.equal([]);
        } else expect(change?.status, `round ${round}: ${owner?.status}`).to.equal(200);
      }
    });

    it('is cancelled by the end of the session that asked for it', async () => {
      await ask();
      const link = await linkTo(USER.email);
      await agent.get('/v2/logout');
      expect((await createAgent(server).get(link.pathname + link.search)).status).to.equal(400);
    });

    it('is cancelled when the owner of the unverified old address verifies it meanwhile', async () => {
      const { id } = await userOf(USER.email);
      await server.users.update(id, { email_verified: false });
      expect((await ask()).text).not.to.contain('We have sent a link to your present address.');
      const link = await linkTo(NEW);
      expect((await agent.get(link.pathname + link.search)).status).to.equal(200);
      await server.users.confirmEmail(id, USER.email);
      expect((await agent.get(link.pathname + link.search)).status).to.equal(400);
      expect((await userOf(USER.email)).id).to.equal(id);
    });

    it('is rejected when it is invalid or unchanged', async () => {
      for (const email of ['ada', USER.email.toUpperCase()]) {
        const page = await openAccount(agent, server);
        const answer = await send(agent, page, '/account/profile/email', { email });
        expect(answer.status, email).to.equal(400);
      }
      expect(await messagesTo(server, USER.email)).to.have.length(0);
    });

    it('can be requested five times, and no more', async () => {
      for (let time = 0; time < 5; time++) await ask(`ada${time}@example.test`);
      expect((await ask()).status).to.equal(429);
    });
  });

  describe('a sensitive change', () => {
    const forms = [
      ['/account', '/account/profile/email', { email: 'new@example.test' }],
      ['/account/data', '/account/data/copy', {}],
      ['/account/data', '/account/data/delete', { confirm: USER.email }],
    ] as const;
    for (const [path, action, values] of forms)
      it(`requires a new login after ten minutes: ${action}`, async () => {
        const page = await openAccount(agent, server, path);
        stale();
        const answer = await send(agent, page, action, values);
        expect(answer.status).to.equal(303);
        expect(new URL(answer.location).searchParams.get('prompt')).to.equal('login');
        expect((await userOf(USER.email)).email).to.equal(USER.email);
        expect(await messagesTo(server, USER.email)).to.have.length(0);
        const back = await openAccount(agent, server, answer.location);
        expect(back.text).to.contain(`action="${action}"`);
        expect((await send(agent, back, action, values)).status).not.to.equal(400);
      });
  });

  describe("the user's data", () => {
    it('is downloaded without secrets, and without what the tenant keeps for itself', async () => {
      await server.users.update((await userOf(USER.email)).id, {
        app_metadata: { note: 'for us alone' },
        user_metadata: { hobby: 'engines' },
      });
      const page = await openAccount(agent, server, '/account/data');
      const copy = await send(agent, page, '/account/data/copy');
      expect(copy.headers['content-disposition']).to.contain('attachment');
      const data = copy.json();
      expect(data.profile).to.deep.include({ email: USER.email, user_metadata: { hobby: 'engines' } });
      expect(data.sessions).to.have.length(1);
      expect(data.identities[0]).to.include({ connection: 'users' });
      expect(copy.text).not.to.contain('for us alone');
      expect(copy.text).not.to.match(/argon2|passwordHash|secret/i);
    });

    it('has no data of others: for administrators, no requests and answers of the Management API', async () => {
      const { id } = await userOf(USER.email);
      const details = { request: { body: { note: 'of somebody else' } } };
      const event = { type: 'sapi', date: new Date().toISOString(), user_id: id, details };
      await server.store.collection('logs').insert({ ...event, id: 'an-event' });
      const page = await openAccount(agent, server, '/account/data');
      const copy = await send(agent, page, '/account/data/copy');
      expect(copy.json().log.map(({ type }: { type: string }) => type)).to.include('sapi');
      expect(copy.text).not.to.contain('of somebody else');
    });

    it('has no metadata that the tenant keeps with a session', async () => {
      const page = await openAccount(agent, server, '/account/data');
      const copy = () => send(agent, page, '/account/data/copy');
      const [{ id: sessionUid }] = (await copy()).json().sessions;
      const payload = { sessionUid, metadata: { note: 'for us alone' } };
      const expiresAt = Math.floor(Date.now() / 1000) + 3600;
      const note = { id: `SessionNote:${sessionUid}`, model: 'SessionNote', payload, expiresAt };
      await server.store.collection('artifacts').put(note);
      const again = await copy();
      expect(again.json().sessions[0]).to.include({ id: sessionUid });
      expect(again.text).not.to.contain('for us alone');
    });

    it('is deleted with the account, after the user has typed their identifier', async () => {
      const { id } = await userOf(USER.email);
      const page = await openAccount(agent, server, '/account/data');
      expect((await send(agent, page, '/account/data/delete', { confirm: 'x' })).status).to.equal(400);
      const done = await send(agent, page, '/account/data/delete', {
        confirm: ` ${USER.email.toUpperCase()} `,
      });
      expect(done.text).to.contain('Your account is deleted');
      expect(await server.users.get(id)).to.equal(undefined);
      expect((await nextMessageTo(server, USER.email, 1)).text).to.contain('account deleted');
      expect((await agent.get('/account')).status).to.equal(303);
    });

    it('cannot be deleted when the tenant does not allow it', async () => {
      const allowed = await openAccount(agent, server, '/account/data');
      const fields = formOf(allowed, '/account/data/delete');
      await server.stop();
      server = await startServer({
        tenant: { ...tenant, tenant: { ...tenant.tenant, account_page: { client_id: 'web' } } },
      });
      agent = createAgent(server);
      const page = await openAccount(agent, server, '/account/data');
      expect(page.text).not.to.contain('/account/data/delete');
      const form = { ...fields, ...formOf(page, '/account/data/copy'), confirm: USER.email };
      await agent.request('/account/data/delete', { form });
      expect((await userOf(USER.email)).email).to.equal(USER.email);
    });
  });
});
