// Browsers with a session at the old tenant are logged in here, while the bridge is open.
import { expect } from 'chai';
import { readForm } from '../support/agent.ts';
import {
  authorize,
  logIn,
  payload,
  pkce,
  redeem,
  responseOf,
  spaRequest,
  WEB_CALLBACK,
  webRequest,
} from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { tenantWith } from '../support/tenant.ts';
import {
  answering,
  broken,
  changing,
  huge,
  OLD,
  redirecting,
  SESSION_CLIENT,
  type StandIn,
  startStandIn,
} from './stand-in.ts';
import { type Browser, browserAt, DAY, eventsOf, newTenant, openBridges, startNew } from './support.ts';

describe('a session of the old tenant', () => {
  let old: StandIn;
  let server: TestServer;
  before(async () => {
    old = await startStandIn();
    server = await startNew(old, newTenant);
  });
  after(async () => {
    await server?.stop();
    await old?.stop();
  });
  afterEach(async () => {
    old.reset();
    await openBridges(server, old);
  });

  type User = { email: string; password: string };
  /** Returns a browser with a session at the old tenant. */
  const loggedIn = async (user: User = OLD.bcrypt): Promise<Browser> => {
    const browser = browserAt(server, old);
    const answer = await logIn(browser.there, { url: old.origin }, webRequest(), user);
    expect(answer.location, 'there').to.contain(WEB_CALLBACK);
    old.seen = [];
    return browser;
  };
  const begin = async (browser: Browser, over = {}) =>
    browser.follow(await authorize(browser.here, webRequest(over)));
  const silently = async (browser: Browser, over = {}, headers = {}) =>
    browser.follow(
      await browser.here.get(
        `/authorize?${new URLSearchParams(webRequest({ prompt: 'none', ...over }))}`,
        headers,
      ),
    );
  const claimsOf = async (browser: Browser, over = {}) => {
    const { code } = responseOf(await begin(browser, over));
    return payload((await redeem(browser.here, code)).json().id_token);
  };
  const isLoginPage = (answer: { status: number; text: string }) =>
    answer.status === 200 &&
    /name="password"/.test(answer.text) &&
    !/alert|error/i.test(readForm(answer as never, 'password').action);
  const questions = () => old.asked('/authorize');

  it('logs its user in without a page, as the same user and at the time that was proved there', async () => {
    const browser = await loggedIn();
    const answer = await begin(browser, { max_age: '3600' });
    expect(answer.location).to.contain(`${WEB_CALLBACK}?`);
    const { code, state } = responseOf(answer);
    expect(state).to.equal('the-state');
    const claims = payload((await redeem(browser.here, code)).json().id_token);
    expect(claims).to.include({ iss: server.issuer, sub: OLD.bcrypt.id, aud: 'web' });
    expect(claims.auth_time).to.be.closeTo(Math.floor(Date.now() / 1000), 30);
    expect(claims).not.to.have.property('acr');
    const [asked] = questions();
    expect(asked?.query).to.include({
      client_id: SESSION_CLIENT.client_id,
      prompt: 'none',
      max_age: '3600',
      redirect_uri: `${server.url}/move/callback`,
      code_challenge_method: 'S256',
      response_type: 'code',
    });
    expect(asked?.query.state).to.match(/^[\w-]{43}$/);
    expect(asked?.query.nonce).to.match(/^[\w-]{43}$/);
    const [moved] = (await eventsOf(server, 'moved_session')).slice(-1);
    expect(moved).to.include({ client_id: 'web', user_id: OLD.bcrypt.id });
    const [success] = (await eventsOf(server, 's')).slice(-1);
    expect(success).to.include({ user_id: OLD.bcrypt.id, connection: 'users' });
    await begin(browser);
    expect(questions().length, 'our own session answers').to.equal(1);
  });

  it('answers silent requests the same way, in a frame by a message, too', async () => {
    const top = await silently(await loggedIn());
    expect(responseOf(top)).to.have.property('code');
    const browser = await loggedIn();
    const { challenge } = pkce();
    const framed = await browser.follow(
      await browser.here.get(
        `/authorize?${new URLSearchParams(spaRequest(challenge, { prompt: 'none', response_mode: 'web_message' }))}`,
        { 'sec-fetch-dest': 'iframe' },
      ),
    );
    expect(framed.status).to.equal(200);
    expect(framed.text)
      .to.match(/"code":"[\w-]+"/)
      .and.contain('http://localhost:5173');
    expect(framed.headers['content-security-policy']).to.contain('frame-ancestors http://localhost:5173');
    expect(framed.headers).not.to.have.property('x-frame-options');
  });

  it('where there is none, leads to the login page without a trace, once in a while', async () => {
    const browser = browserAt(server, old);
    const page = await begin(browser);
    expect(isLoginPage(page), page.text.slice(0, 300)).to.equal(true);
    expect(questions().length).to.equal(1);
    expect(isLoginPage(await begin(browser))).to.equal(true);
    expect(questions().length, 'not sent again').to.equal(1);
    expect((await eventsOf(server, 'old_session_failed')).length).to.equal(0);
    const silent = await silently(browserAt(server, old));
    expect(responseOf(silent)).to.include({ error: 'login_required', state: 'the-state' });
    // The page works as any other.
    const done = await logIn(browser.here, server, webRequest(), OLD.argon2);
    expect(responseOf(done)).to.have.property('code');
  });

  it('that a frame has not found is looked for again by the next navigation', async () => {
    const browser = await loggedIn();
    old.instead['GET /authorize'] = (asked, response) =>
      response
        .writeHead(302, {
          location: `${asked.query.redirect_uri}?${new URLSearchParams({ error: 'login_required', state: asked.query.state ?? '' })}`,
        })
        .end();
    const framed = await silently(browser, {}, { 'sec-fetch-dest': 'iframe' });
    expect(responseOf(framed).error).to.equal('login_required');
    await silently(browser, {}, { 'sec-fetch-dest': 'iframe' });
    expect(questions().length).to.equal(1);
    delete old.instead['GET /authorize'];
    expect(responseOf(await begin(browser))).to.have.property('code');
  });

  it('does not answer a silent request of a browser that keeps no cookies, which gets its answer all the same', async () => {
    const browser = await loggedIn();
    const away = await authorize(browser.here, webRequest({ prompt: 'none' }));
    const back = await browser.there.get(away.location);
    const other = await loggedIn();
    expect(responseOf(await other.here.get(back.location))).to.include({ error: 'login_required' });
    expect(responseOf(await begin(other)), 'still sent').to.have.property('code');
    expect((await browser.here.get(back.location)).status, 'used up').to.equal(400);
  });

  it('is not handed to another browser: the answer counts in that which was sent, once', async () => {
    const browser = await loggedIn();
    const away = await authorize(browser.here, webRequest());
    const back = await browser.there.get(away.location);
    const stranger = browserAt(server, old);
    expect((await stranger.here.get(back.location)).status).to.equal(400);
    expect(responseOf(await browser.follow(await browser.here.get(back.location)))).to.have.property('code');
    expect((await browser.here.get(back.location)).status).to.equal(400);
    expect((await browser.here.get('/move/callback?state=invented&code=x')).status).to.equal(400);
  });

  it('is not asked for where the request wants a new login, another account, a sign-up, or is of the console', async () => {
    const browser = await loggedIn();
    for (const over of [
      { prompt: 'login' },
      { prompt: 'select_account' },
      { max_age: '0' },
      { screen_hint: 'signup' },
    ]) {
      await begin(browser, over);
      expect(questions().length, JSON.stringify(over)).to.equal(0);
    }
    await browser.follow(await browser.here.get('/console'));
    expect(questions().length, 'console').to.equal(0);
  });

  it('counts as old as it is: max_age and the lifetime of sessions here are kept', async () => {
    const browser = await loggedIn();
    const aged = (seconds: number) =>
      changing(async (body) => ({
        ...body,
        id_token: await old.resign(body.id_token, {
          auth_time: Math.floor(Date.now() / 1000) - seconds,
          at_hash: undefined,
        }),
      }));
    old.instead['POST /oauth/token'] = aged(7_200);
    expect(isLoginPage(await begin(browser, { max_age: '3600' }))).to.equal(true);
    const claims = await claimsOf(await reset(browser), { max_age: '9000' });
    expect(claims.auth_time).to.be.closeTo(Date.now() / 1000 - 7_200, 30);
    old.instead['POST /oauth/token'] = aged(400 * 86_400);
    expect(isLoginPage(await begin(await loggedIn()))).to.equal(true);
    old.instead['POST /oauth/token'] = changing(async (body) => ({
      ...body,
      id_token: await old.resign(body.id_token, { auth_time: undefined, at_hash: undefined }),
    }));
    expect(isLoginPage(await begin(await loggedIn()))).to.equal(true);
  });
  /** Returns the browser with its cookies of the old tenant alone. */
  const reset = async ({ there }: Browser): Promise<Browser> => {
    const browser = browserAt(server, old);
    return { ...browser, there, follow: followWith(browser.here, there) };
  };
  const followWith =
    (here: Browser['here'], there: Browser['there']): Browser['follow'] =>
    async (first) => {
      let answer = first;
      while (answer.status >= 300 && answer.status < 400) {
        const { origin } = new URL(answer.location);
        if (origin !== server.url && origin !== old.origin) return answer;
        answer = await (origin === old.origin ? there : here).get(answer.location);
      }
      return answer;
    };

  it('has the methods that were proved there, and no second factor beyond them', async () => {
    const plain = await begin(await loggedIn(OLD.argon2), {
      acr_values: 'http://schemas.openid.net/pape/policies/2007/06/multi-factor',
    });
    expect(plain.status, 'our second factor is asked for').to.equal(200);
    expect(plain.text).not.to.match(/name="password"/);
    old.instead['POST /oauth/token'] = changing(async (body) => ({
      ...body,
      id_token: await old.resign(body.id_token, { amr: ['mfa'], at_hash: undefined }),
    }));
    const claims = await claimsOf(await loggedIn(OLD.argon2), {
      acr_values: 'http://schemas.openid.net/pape/policies/2007/06/multi-factor',
    });
    expect(claims.amr).to.deep.equal(['mfa']);
  });

  it('begins one session here: after our logout it does not bring its user back, whatever the browser keeps', async () => {
    const browser = await loggedIn();
    await claimsOf(browser);
    const out = await browser.here.get(`/v2/logout?client_id=web`);
    expect(new URL(out.location).origin, 'logged out there, too').to.equal(old.origin);
    expect(new URL(out.location).pathname).to.equal('/v2/logout');
    await browser.follow(out);
    expect(isLoginPage(await begin(browser))).to.equal(true);
    expect(responseOf(await silently(browser)).error).to.equal('login_required');
    expect(questions().filter(({ path }) => path === '/authorize').length).to.equal(1);
    const second = await loggedIn();
    await claimsOf(second);
    // The logout there fails, and our cookies are gone.
    await second.here.get('/v2/logout?client_id=web');
    const without = await reset(second);
    server.tick(120_000);
    expect(isLoginPage(await begin(without))).to.equal(true);
    const [failed] = (await eventsOf(server, 'old_session_failed')).slice(-1);
    expect(failed?.description).to.contain('before');
  });

  it('ends there by a logout without a session here, which any site can bring about, and which turns off nothing else', async () => {
    const stranger = browserAt(server, old);
    const out = await stranger.here.get('/v2/logout?client_id=web', { accept: 'text/html' });
    expect(out.location).to.contain(`${old.origin}/v2/logout?`);
    const done = await stranger.follow(out);
    expect(done.status).to.equal(200);
    await logIn(stranger.there, { url: old.origin }, webRequest(), OLD.bcrypt);
    expect(responseOf(await begin(stranger)), 'still asked').to.have.property('code');

    const browser = await loggedIn();
    await browser.follow(await browser.here.get('/v2/logout?client_id=web', { accept: 'text/html' }));
    expect(isLoginPage(await begin(browser)), 'it has ended').to.equal(true);
    expect(questions().length).to.equal(1);
    const none = await browser.here.get('/v2/logout?client_id=web', { accept: 'text/html' });
    expect(none.location, 'not where it was just asked').not.to.contain(old.origin);
    const script = await browserAt(server, old).here.get('/v2/logout', { accept: 'application/json' });
    expect(script.text).to.equal('OK');
  });

  it('of a user with several accounts answers only applications that have the connections of them all', async () => {
    const connections = server.store.collection('connections');
    const google = (await connections.list({ limit: 100 })).records.find(
      ({ name }) => name === 'google-oauth2',
    );
    const enable = (enabled_clients: string[]) =>
      connections.update(google?.id ?? '', (one) => ({ ...one, enabled_clients }));
    await enable(['spa']);
    expect(isLoginPage(await begin(await loggedIn(OLD.linked))), 'perhaps a session of Google').to.equal(
      true,
    );
    expect(responseOf(await silently(await loggedIn(OLD.linked))).error).to.equal('login_required');
    await enable(['web', 'spa']);
    const browser = await loggedIn(OLD.linked);
    expect(responseOf(await begin(browser))).to.have.property('code');
    await enable(['spa']);
    expect(isLoginPage(await begin(browser)), 'asked again at each request').to.equal(true);
    await enable(['web', 'spa']);
  });

  it('of a user who is not here, blocked, or whose access was ended here leads to the login page', async () => {
    await server.users.update(OLD.linked.id, { blocked: true });
    expect(isLoginPage(await begin(await loggedIn(OLD.linked)))).to.equal(true);
    expect(responseOf(await silently(await loggedIn(OLD.linked))).error).to.equal('login_required');
    await server.users.update(OLD.linked.id, { blocked: false });
    expect(responseOf(await begin(await loggedIn(OLD.linked)))).to.have.property('code');
    const browser = await loggedIn(OLD.linked);
    const at = new Date(Date.now() + 60_000).toISOString();
    await server.store
      .collection('users')
      .update(OLD.linked.id, (user) => ({ ...user, access_ended_at: at }));
    expect(isLoginPage(await begin(browser))).to.equal(true);
    await server.users.remove(OLD.unverified.id);
    expect(isLoginPage(await begin(await loggedIn(OLD.unverified)))).to.equal(true);
  });

  it('answers a request for an organization only for its members here, and one for a connection only where it is the only one', async () => {
    const orgs = { organization: 'org_acme' };
    await server.store
      .collection('clients')
      .update('web', (client) => ({ ...client, organization_usage: 'allow' }));
    const users = (await server.store.collection('connections').list({ limit: 100 })).records.find(
      ({ name }) => name === 'users',
    );
    await server.store.collection('organizations').update('org_acme', (organization) => ({
      ...organization,
      enabled_connections: [{ connection_id: users?.id ?? '', assign_membership_on_login: false }],
    }));
    expect(isLoginPage(await begin(await loggedIn(), orgs)), 'no member').to.equal(true);
    await server.store.collection('memberships').put({
      id: `org_acme\n${OLD.bcrypt.id}`,
      organization_id: 'org_acme',
      user_id: OLD.bcrypt.id,
      roles: [],
    } as never);
    expect(isLoginPage(await begin(await loggedIn(), { connection: 'staff' }))).to.equal(true);
    expect(await claimsOf(await loggedIn(), { connection: 'users' })).to.include({ sub: OLD.bcrypt.id });
  });

  it('is not accepted by an answer that is not of the old tenant, not for this login, or not signed by its keys', async () => {
    const idToken = (claims: object, how?: Parameters<typeof old.resign>[2]) =>
      changing(async (body) => ({
        ...body,
        id_token: await old.resign(body.id_token, { at_hash: undefined, ...claims }, how),
      }));
    const answers = [
      idToken({ iss: server.issuer }),
      idToken({ iss: 'https://other.example/' }),
      idToken({ aud: 'web' }),
      idToken({ nonce: 'another' }),
      idToken({ nonce: undefined }),
      idToken({ exp: 1 }),
      idToken({}, { key: 'none' }),
      idToken({}, { key: 'other' }),
      idToken({ auth_time: Math.floor(Date.now() / 1000) + 3_600 }),
      changing((body) => ({ ...body, id_token: undefined })),
      redirecting(`${server.url}/oauth/token`),
      answering(500, {}),
      huge,
      broken,
    ];
    for (const [index, answer] of answers.entries()) {
      const browser = await loggedIn();
      old.instead['POST /oauth/token'] = answer;
      expect(isLoginPage(await begin(browser)), String(index)).to.equal(true);
      delete old.instead['POST /oauth/token'];
    }
    const browser = await loggedIn();
    old.instead['GET /authorize'] = (asked, response) =>
      response
        .writeHead(302, {
          location: `${asked.query.redirect_uri}?${new URLSearchParams({ code: 'x', iss: 'https://other.example/', state: asked.query.state ?? '' })}`,
        })
        .end();
    expect(isLoginPage(await begin(browser))).to.equal(true);
  });

  it('is not asked for after its date, after the end of the move, or when somebody has ended it', async () => {
    const opened_at = new Date(Date.now() - DAY).toISOString();
    const over = new Date(Date.now() - 1_000).toISOString();
    const later = new Date(Date.now() + DAY).toISOString();
    for (const more of [
      { sessions: { ...SESSION_CLIENT, opened_at, until: over } },
      { sessions: { ...SESSION_CLIENT, opened_at, until: later, ended_at: over } },
      { sessions: undefined },
      { until: over },
    ]) {
      await openBridges(server, old, more);
      expect(isLoginPage(await begin(await loggedIn()))).to.equal(true);
      expect(responseOf(await silently(await loggedIn())).error).to.equal('login_required');
      expect(questions().length).to.equal(0);
    }
    await openBridges(server, old);
    const browser = await loggedIn();
    const away = await authorize(browser.here, webRequest());
    const back = await browser.there.get(away.location);
    await openBridges(server, old, { until: over });
    expect(
      isLoginPage(await browser.follow(await browser.here.get(back.location))),
      'ended on the way',
    ).to.equal(true);
  });
});

describe('codes of no session during a move', () => {
  it('are limited before the old tenant is asked, and those that it accepts take nothing from the limit', async () => {
    const old = await startStandIn();
    const limits = { rateLimits: { oldSessionsOfAddress: { capacity: 3, perMinute: 1 } } };
    const server = await startNew(old, tenantWith({ attackProtection: limits }, newTenant));
    try {
      await openBridges(server, old);
      const silent = webRequest({ prompt: 'none' });
      const begin = async (browser: Browser) =>
        responseOf(await browser.follow(await authorize(browser.here, silent)));
      for (let n = 0; n < 4; n++) {
        const browser = browserAt(server, old);
        await logIn(browser.there, { url: old.origin }, webRequest(), OLD.bcrypt);
        expect(await begin(browser)).to.have.property('code');
      }
      old.reset();
      old.instead['GET /authorize'] = ({ query }, response) => {
        const location = `${query.redirect_uri}?${new URLSearchParams({ code: 'invented', state: query.state ?? '' })}`;
        response.writeHead(302, { location }).end();
      };
      for (let n = 0; n < 5; n++)
        expect(await begin(browserAt(server, old))).to.include({ error: 'login_required' });
      expect(old.asked('/oauth/token').length).to.equal(3);
      server.tick(60_000);
      await begin(browserAt(server, old));
      expect(old.asked('/oauth/token').length).to.equal(4);
    } finally {
      await server.stop();
      await old.stop();
    }
  });
});
