// Logins over the bridges are logins like others: Actions judge them, and they may be those of members of an organization. Nothing
// that is an administrator's goes over a bridge.
import { expect } from 'chai';
import { membershipId } from '../../src/records/users/organizations.ts';
import { codeOf, factors, MFA_GRANTS, REALM_GRANT } from '../factors/tenant.ts';
import { type Agent, type Answer, createAgent, readForm } from '../support/agent.ts';
import { addAdministrators, addressOf, openConsole, PASSWORD } from '../support/console.ts';
import {
  API,
  authorize,
  follow,
  logIn,
  payload,
  redeem,
  responseOf,
  submitLogin,
  token,
  WEB_CALLBACK,
  webRequest,
} from '../support/flows.ts';
import { resetPassword } from '../support/reset.ts';
import type { TestServer } from '../support/server.ts';
import { actionsAt, tenantWith } from '../support/tenant.ts';
import { answering, broken, changing, type StandIn, startStandIn } from './stand-in.ts';
import {
  type Browser,
  browserAt,
  DAY,
  eventsOf,
  newTenant,
  OFFLINE,
  openBridges,
  startNew,
} from './support.ts';

const NS = 'https://example.test/';
const ACME = 'org_acme';
const INVALID = { error: 'invalid_grant', error_description: 'Unknown or invalid refresh token.' };
const generous = { capacity: 10_000, perMinute: 10_000 };

/** What the Action does with a login is said by the user's metadata, which moves with them. */
const ACTION = `exports.onExecutePostLogin = async (event, api) => {
  const { plan } = event.user.app_metadata;
  if (plan === 'denied') api.access.deny('This plan has ended.');
  if (plan === 'factor') api.multifactor.enable('any');
  for (const one of [api.idToken, api.accessToken]) {
    one.setCustomClaim('${NS}plan', plan);
    one.setCustomClaim('${NS}organization', event.organization?.name);
  }
};`;

const tenant = tenantWith(
  {
    ...actionsAt('post-login', { Plans: ACTION }),
    attackProtection: { rateLimits: { login: generous, signup: generous, customDatabase: generous } },
    guardianFactors: factors('otp'),
    change: {
      web: {
        organization_usage: 'allow',
        grant_types: [...['authorization_code', 'refresh_token', 'password', REALM_GRANT], ...MFA_GRANTS],
      },
      spa: { organization_usage: 'allow' },
    },
    organizations: [{ id: ACME, name: 'acme', display_name: 'Acme', connections: [{ name: 'users' }] }],
  },
  newTenant,
);

type Person = { id: string; email: string; password: string };

describe('over the bridges of a move', () => {
  let old: StandIn;
  let server: TestServer;
  before(async () => {
    old = await startStandIn();
    server = await startNew(old, tenant);
    await addAdministrators(server);
    await openAll();
  });
  after(async () => {
    await server?.stop();
    await old?.stop();
  });
  afterEach(() => old.reset());

  /** Opens all three. */
  const openAll = async () => {
    const [users] = await server.store.collection('connections').findBy('name', 'users');
    const bridge = {
      opened_at: new Date().toISOString(),
      until: new Date(Date.now() + DAY).toISOString(),
      here_before: 0,
    };
    await openBridges(server, old, { passwords: { [users?.id ?? '']: bridge } });
  };
  /** Returns a user of the old tenant alone, with metadata there. */
  const somebody = async (plan = 'gold'): Promise<Person> => {
    const person = await old.add();
    await old.gatehouse.users.update(person.id, { app_metadata: { plan } });
    old.reset();
    return person;
  };
  /** Returns a browser with a session at the old tenant. */
  const loggedInThere = async (person: Person): Promise<Browser> => {
    const browser = browserAt(server, old);
    const answer = await logIn(browser.there, { url: old.origin }, webRequest(), person);
    expect(answer.location, 'there').to.contain(WEB_CALLBACK);
    old.reset();
    return browser;
  };
  /** Returns a refresh token of the old tenant's web application. */
  const tokenThere = async (person: Person, more: object = {}): Promise<string> => {
    const there = createAgent({ url: old.origin, ca: old.ca });
    const answer = await token(there, {
      ...{ grant_type: 'password', client_id: 'web', client_secret: 'web-secret' },
      ...{ username: person.email, password: person.password, scope: OFFLINE.scope, audience: API },
      ...more,
    });
    expect(answer.status, answer.text).to.equal(200);
    old.reset();
    return answer.json().refresh_token;
  };
  const refresh = (refresh_token: string, more: object = {}) =>
    token(createAgent(server), {
      ...{ grant_type: 'refresh_token', client_id: 'web', client_secret: 'web-secret', refresh_token },
      ...more,
    });
  const login = ({ email, password }: Omit<Person, 'id'>) =>
    token(createAgent(server), {
      ...{ grant_type: REALM_GRANT, realm: 'users', client_id: 'web', client_secret: 'web-secret' },
      ...{ username: email, password, scope: 'openid', audience: API },
    });
  const begin = async (browser: Browser, over = {}) =>
    browser.follow(await authorize(browser.here, webRequest({ audience: API, ...over })));
  const isLoginPage = ({ status, text }: Answer) => status === 200 && /name="password"/.test(text);
  /** Returns the tokens of a code. */
  const tokensOf = async (agent: Agent, answer: Answer) => {
    const { code } = responseOf(answer);
    expect(code, answer.location).to.be.a('string');
    return (await redeem(agent, code)).json();
  };
  const claimsOf = ({ id_token, access_token }: Record<string, string>) =>
    [id_token, access_token].map((one) => payload(one ?? ''));
  const join = (at: TestServer, user: string) =>
    at.store.collection('memberships').put({
      id: membershipId(ACME, user),
      organization_id: ACME,
      user_id: user,
      roles: [],
    } as never);

  describe('Actions of post-login', () => {
    it('set claims of the tokens of a moved password, session and refresh token', async () => {
      const person = await somebody();
      const moved = await login(person);
      expect(moved.status, moved.text).to.equal(200);
      const browser = await loggedInThere(await somebody());
      const seen = await tokensOf(browser.here, await begin(browser));
      expect(await eventsOf(server, 'moved_session')).not.to.equal([]);
      const refreshed = await refresh(await tokenThere(await somebody()));
      expect(refreshed.status, refreshed.text).to.equal(200);
      for (const tokens of [moved.json(), seen, refreshed.json()])
        for (const claims of claimsOf(tokens)) expect(claims).to.include({ [`${NS}plan`]: 'gold' });
    });

    it('deny', async () => {
      const person = await somebody('denied');
      const denied = await login(person);
      expect(denied.status, denied.text).to.equal(403);
      expect(denied.json()).to.deep.equal({
        error: 'access_denied',
        error_description: 'This plan has ended.',
      });
      const browser = await loggedInThere(person);
      const answer = await begin(browser);
      expect(responseOf(answer)).to.include({
        error: 'access_denied',
        error_description: 'This plan has ended.',
        state: 'the-state',
      });
      const silent = await begin(await loggedInThere(person), { prompt: 'none' });
      expect(responseOf(silent)).not.to.have.property('code');
      expect(responseOf(silent).error).to.be.oneOf(['access_denied', 'login_required']);
      const refused = await refresh(await tokenThere(person));
      expect(refused.status).to.be.oneOf([400, 403]);
      expect(refused.json()).not.to.have.property('access_token');
    });

    it('ask for a second factor', async () => {
      const person = await somebody('factor');
      const asked = await login(person);
      expect(asked.json(), asked.text).to.include({ error: 'mfa_required' });
      const agent = createAgent(server);
      const { mfa_token } = asked.json();
      const associated = await agent.request('/mfa/associate', {
        json: { authenticator_types: ['otp'] },
        headers: { authorization: `Bearer ${mfa_token}` },
      });
      expect(associated.status, associated.text).to.equal(200);
      const { secret } = associated.json();
      const given = await token(agent, {
        ...{ grant_type: MFA_GRANTS[0], client_id: 'web', client_secret: 'web-secret' },
        ...{ mfa_token, otp: codeOf(secret) },
      });
      expect(given.status, given.text).to.equal(200);
      const browser = await loggedInThere(person);
      const page = await begin(browser);
      expect(page.status, 'the page of the factor').to.equal(200);
      const { action, fields } = readForm(page, 'code');
      const entered = await browser.here.request(action, {
        form: { ...fields, code: codeOf(secret, Date.now() + 30_000) },
      });
      const tokens = await tokensOf(browser.here, await follow(browser.here, entered, server.url));
      expect(payload(tokens.id_token).sub).to.equal(person.id);
      expect(payload(tokens.id_token).amr).to.include('mfa');
      const silent = await begin(await loggedInThere(person), { prompt: 'none' });
      expect(responseOf(silent)).not.to.have.property('code');
      const refused = await refresh(await tokenThere(person));
      expect(refused.json(), 'without a page').not.to.have.property('access_token');
    });
  });

  describe('a login for an organization', () => {
    it('is that of its members here', async () => {
      const person = await somebody();
      const outsider = await somebody();
      await join(server, person.id);
      const page = await begin(await loggedInThere(outsider), { organization: ACME });
      expect(isLoginPage(page), page.location).to.equal(true);
      const silent = await begin(await loggedInThere(outsider), { organization: ACME, prompt: 'none' });
      expect(responseOf(silent)).to.include({ error: 'login_required' });
      const browser = await loggedInThere(person);
      const [id, access] = claimsOf(
        await tokensOf(browser.here, await begin(browser, { organization: ACME })),
      );
      for (const claims of [id, access])
        expect(claims).to.include({ sub: person.id, org_id: ACME, [`${NS}organization`]: 'acme' });
      const quiet = await loggedInThere(person);
      const answered = await tokensOf(quiet.here, await begin(quiet, { organization: ACME, prompt: 'none' }));
      expect(payload(answered.id_token)).to.include({ sub: person.id, org_id: ACME });
    });

    it('with a password of the old tenant is that of its members here, others are refused', async () => {
      const person = await somebody();
      const outsider = await somebody();
      await join(server, person.id);
      const enter = async (one: Person) => {
        const browser = browserAt(server, old);
        const page = await begin(browser, { organization: ACME });
        return { browser, answer: await submitLogin(browser.here, server, page, one) };
      };
      const { browser, answer } = await enter(person);
      for (const claims of claimsOf(await tokensOf(browser.here, answer)))
        expect(claims).to.include({ sub: person.id, org_id: ACME });
      const { answer: refused } = await enter(outsider);
      expect(responseOf(refused)).to.include({ error: 'access_denied' }).and.not.have.property('code');
    });

    it('is continued by its refresh token, while the user is a member here', async () => {
      const person = await somebody();
      await join(old.gatehouse, person.id);
      await old.gatehouse.store
        .collection('clients')
        .update('web', (client) => ({ ...client, organization_usage: 'allow' }));
      const [users] = await old.gatehouse.store.collection('connections').findBy('name', 'users');
      await old.gatehouse.store.collection('organizations').update(ACME, (one) => ({
        ...one,
        enabled_connections: [{ connection_id: users?.id ?? '', assign_membership_on_login: false }],
      }));
      const there = async () => tokenThere(person, { organization: ACME });
      const theirs = await there();
      expect((await refresh(theirs)).json(), 'no member').to.deep.equal(INVALID);
      await join(server, person.id);
      const tokens = await refresh(await there());
      expect(tokens.status, tokens.text).to.equal(200);
      for (const claims of claimsOf(tokens.json()))
        expect(claims).to.include({ sub: person.id, org_id: ACME, [`${NS}organization`]: 'acme' });
      const again = await refresh(tokens.json().refresh_token);
      expect(payload(again.json().access_token)).to.include({ org_id: ACME });
      await server.store.collection('memberships').delete(membershipId(ACME, person.id));
      expect((await refresh(tokens.json().refresh_token)).status, 'no member any more').not.to.equal(200);
    });
  });

  it('a pushed request is answered by a session of the old tenant as a plain one is', async () => {
    const push = async (browser: Browser, over = {}) => {
      const pushed = await browser.here.request('/oauth/par', {
        form: { ...webRequest(over), client_secret: 'web-secret' },
      });
      expect(pushed.status, pushed.text).to.equal(201);
      const { request_uri } = pushed.json();
      return browser.follow(await authorize(browser.here, { client_id: 'web', request_uri }));
    };
    const person = await somebody();
    const browser = await loggedInThere(person);
    const tokens = await tokensOf(browser.here, await push(browser, { max_age: '3600' }));
    expect(payload(tokens.id_token)).to.include({ sub: person.id });
    expect(old.asked('/authorize')[0]?.query).to.include({ prompt: 'none', max_age: '3600' });
    const silent = await loggedInThere(person);
    const answered = await push(silent, { prompt: 'none' });
    expect(responseOf(answered)).to.include({ state: 'the-state' }).and.have.property('code');
    const none = await push(browserAt(server, old), { prompt: 'none' });
    expect(responseOf(none)).to.include({ error: 'login_required', state: 'the-state' });
    old.reset();
    expect(isLoginPage(await push(await loggedInThere(person), { prompt: 'login' }))).to.equal(true);
    expect(old.asked('/authorize')).to.deep.equal([]);
  });

  it('a pushed silent request is used up by its answer, and not by the way to the old tenant and back', async () => {
    const browser = await loggedInThere(await somebody());
    const pushed = await browser.here.request('/oauth/par', {
      form: { ...webRequest({ prompt: 'none' }), client_secret: 'web-secret' },
    });
    const { request_uri } = pushed.json();
    const away = await authorize(browser.here, { client_id: 'web', request_uri });
    expect(new URL(away.location).origin).to.equal(old.origin);
    const stranger = await authorize(createAgent(server), { client_id: 'web', request_uri });
    expect(stranger.status, 'of another browser').to.equal(400);
    expect(responseOf(await browser.follow(away))).to.have.property('code');
    for (const agent of [browser.here, createAgent(server)]) {
      const again = await authorize(agent, { client_id: 'web', request_uri });
      expect(again.status, again.text).to.equal(400);
      expect(again.text).not.to.contain(WEB_CALLBACK);
    }
  });

  describe('nothing goes of an administrator:', () => {
    const WRONG = { error: 'invalid_grant', error_description: 'Wrong email or password.' };
    const owner = { email: addressOf('owner'), password: PASSWORD };
    /** The id of the owner here, which no user of the tenant has. */
    const ownerId = async () =>
      (await server.store.collection('administratorUsers').list({ limit: 10 })).records.find(
        ({ email }) => email === owner.email,
      )?.id ?? '';
    /** Makes a user of the old tenant with the administrator's address. */
    const namesake = async (password: string) => {
      const { id } = await old.add();
      await old.gatehouse.users.update(id, { email: owner.email, email_verified: true });
      await old.gatehouse.users.setPassword(id, password);
      old.reset();
      return { id, email: owner.email, password };
    };

    it('a login to the console asks the old tenant for nothing, with a right password or a wrong one', async () => {
      await openConsole(server);
      const agent = createAgent(server);
      const page = await follow(agent, await agent.get('/console'), server.url);
      await submitLogin(agent, server, page, { ...owner, password: 'Wrong-Horse-1' });
      const unknown = { email: 'nobody@console.example.test', password: PASSWORD };
      const next = createAgent(server);
      await submitLogin(next, server, await follow(next, await next.get('/console'), server.url), unknown);
      expect(old.seen).to.deep.equal([]);
    });

    /** Returns what the old tenant was asked since, with the password of each request apart. */
    const asked = () => {
      const requests = old.seen.map(({ method, path, body }) => {
        const { password, username, ...rest } = JSON.parse(body);
        return { password: String(password), shape: { method, path, username, rest } };
      });
      old.reset();
      return requests;
    };

    it('their password at an application is refused: the old tenant is asked for a random one, as for a wrong one of anybody else', async () => {
      const nobody = 'nobody-at-all@example.test';
      await login({ email: nobody, password: 'Wrong-Horse-1' });
      const [ofNobody] = asked();
      const sent = new Set<string>();
      for (const one of [
        owner,
        owner,
        { ...owner, password: 'Wrong-Horse-1' },
        { ...owner, email: ` ${owner.email.toUpperCase()} ` },
      ]) {
        const answer = await login(one);
        expect(answer.status).to.equal(403);
        expect(answer.json()).to.deep.equal(WRONG);
        const requests = asked();
        expect(requests.map(({ shape }) => shape)).to.deep.equal([
          { ...ofNobody?.shape, username: one.email.trim() },
        ]);
        sent.add(requests[0]?.password ?? '');
      }
      expect([...sent].map(({ length }) => length)).to.deep.equal([16, 16, 16, 16]);
      const browser = browserAt(server, old);
      const page = await begin(browser);
      old.reset();
      const refused = await submitLogin(browser.here, server, page, owner);
      expect(refused.text, refused.location).to.contain('name="password"');
      expect(old.seen.some(({ body }) => body.includes(PASSWORD))).to.equal(false);
      expect(old.asked('/oauth/token').length).to.equal(1);
    });

    it('nor is one accepted that the old tenant would let in, and its faults are those of anybody else', async () => {
      const failed = async () => (await eventsOf(server, 'old_password_failed')).length;
      old.instead['POST /oauth/token'] = answering(403, { error: 'mfa_required' });
      expect((await login(owner)).json()).to.deep.equal(WRONG);
      expect(old.asked('/oauth/token').length).to.equal(1);
      expect(old.seen.length, 'its user is not looked up').to.equal(1);
      for (const fault of [answering(500, {}), broken]) {
        const before = await failed();
        for (const email of [owner.email, 'nobody-at-all@example.test']) {
          old.instead['POST /oauth/token'] = fault;
          expect((await login({ ...owner, email })).json()).to.deep.equal(WRONG);
        }
        expect(await failed()).to.equal(before + 2);
      }
    });

    it('who is a user of the old tenant, too, moves by a reset, and nobody else signs up with the address', async () => {
      const person = await namesake('Old-Horse-Battery-2');
      expect((await login(person)).json()).to.deep.equal(WRONG);
      const signUp = await createAgent(server).request('/dbconnections/signup', {
        json: { client_id: 'web', connection: 'users', email: owner.email, password: 'Stranger-Horse-1' },
      });
      expect(signUp.status, signUp.text).to.equal(400);
      await resetPassword(server, owner.email, 'New-Horse-Battery-1');
      expect(old.seen.filter(({ body }) => body.includes('Horse'))).to.deep.equal([]);
      old.reset();
      const answer = await login({ ...person, password: 'New-Horse-Battery-1' });
      expect(payload(answer.json().id_token).sub).to.equal(person.id);
      expect(old.seen).to.deep.equal([]);
      await server.users.remove(person.id);
    });

    it('no session or token of the old tenant is an administrator’s, whatever it says', async () => {
      const sub = await ownerId();
      expect(sub).to.match(/^gatehouse\|/);
      const browser = await loggedInThere(await somebody());
      const asOwner = changing(async (body) => ({
        ...body,
        ...(body.id_token && { id_token: await old.resign(body.id_token, { sub, at_hash: undefined }) }),
        access_token: 'opaque',
      }));
      old.instead['POST /oauth/token'] = asOwner;
      expect(isLoginPage(await begin(browser))).to.equal(true);
      old.reset();
      const theirs = await tokenThere(await somebody());
      old.instead['POST /oauth/token'] = asOwner;
      expect((await refresh(theirs)).json()).to.deep.equal(INVALID);
      const person = await somebody();
      old.instead['POST /oauth/token'] = asOwner;
      expect((await login(person)).json()).to.deep.equal(WRONG);
    });

    it('the console’s own requests are not sent there, nor are refresh tokens for it', async () => {
      const browser = await loggedInThere(await somebody());
      await browser.follow(await browser.here.get('/console'));
      const theirs = await tokenThere(await somebody());
      const answer = await token(createAgent(server), {
        ...{ grant_type: 'refresh_token', client_id: 'gatehouse-console', refresh_token: theirs },
      });
      expect(answer.status).to.be.oneOf([400, 401]);
      expect(old.seen).to.deep.equal([]);
    });
  });
});
