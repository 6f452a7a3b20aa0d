// A tenant with a custom domain: browsers that logged in at it before the cut-over have its cookies for a name that leads here now.
import { mkdtempSync, rmSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { join } from 'node:path';
import { expect } from 'chai';
import type { OldDomain } from '../../src/records/tenant/move.ts';
import type { Waits } from '../../src/runtime/waits.ts';
import type { Answer } from '../support/agent.ts';
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
import { SCRATCH } from '../support/scratch-directory.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { fillDataDir } from '../support/template.ts';
import { tenantWith } from '../support/tenant.ts';
import { until } from '../support/wait-until.ts';
import {
  addUsers,
  broken,
  CNAME_API_KEY,
  changing,
  type Instead,
  OLD,
  redirecting,
  SESSION_CLIENT,
  type StandIn,
  silent,
  startStandIn,
} from './stand-in.ts';
import { type Browser, browserAt, DAY, eventsOf, newTenant, openBridges } from './support.ts';
import { type Name, startName } from './team.ts';

describe('a session of the old tenant’s custom domain', () => {
  let name: Name;
  let old: StandIn;
  let server: TestServer;
  const dataDirs: string[] = [];
  const domain = () => ({ url: name.origin, ca: old.ca });

  const start = async (
    limits: object = { oldSessionsOfAddress: { capacity: 10_000, perMinute: 10_000 } },
    waits: Waits = {},
  ) => {
    const dataDir = mkdtempSync(join(SCRATCH, 'gatehouse-custom-domain-'));
    // With the certificate of the other servers, though it has another BASE_URL.
    await fillDataDir(dataDir, true);
    dataDirs.push(dataDir);
    server = await startServer({
      dataDir,
      tenant: tenantWith({ attackProtection: { rateLimits: limits } }, newTenant),
      env: { BASE_URL: name.origin },
      waits,
    });
    await addUsers(server);
    await open();
    name.lead(server.localUrl);
  };
  before(async () => {
    name = await startName();
    old = await startStandIn({ customDomain: name.origin });
    await old.gatehouse.store.collection('clients').update(SESSION_CLIENT.client_id, (client) => ({
      ...client,
      callbacks: [`${name.origin}/move/callback`],
      allowed_logout_urls: [`${name.origin}/logout/callback`],
    }));
    await start();
  });
  after(async () => {
    await server?.stop();
    await old?.stop();
    name?.stop();
    for (const one of dataDirs) rmSync(one, { recursive: true, force: true });
  });
  afterEach(async () => {
    old.reset();
    await open();
  });

  const byKey = (): OldDomain => ({ host: old.edge, by_key: true, cname_api_key: CNAME_API_KEY });
  const byName = (): OldDomain => ({ host: new URL(old.origin).host, by_key: false });
  const open = async (through: OldDomain | undefined = byKey(), more: object = {}) => {
    await openBridges(server, old, more);
    await server.store.collection('moves').update('move', (move) => ({
      ...move,
      ...(move.sessions && { sessions: { ...move.sessions, ...(through && { through }) } }),
    }));
  };

  /** Returns a browser that logged in at the custom domain when that still led to the old tenant. */
  const loggedIn = async (user: { email: string; password: string } = OLD.bcrypt): Promise<Browser> => {
    name.lead(old.origin);
    const browser = browserAt(domain(), old);
    const answer = await logIn(browser.here, domain(), webRequest(), user);
    expect(answer.location, 'before').to.contain(WEB_CALLBACK);
    expect(oldCookiesOf(browser)).to.deep.equal(['auth0', 'auth0_compat']);
    name.lead(server.localUrl);
    old.seen = [];
    return browser;
  };
  const oldOnes = ({ here }: Browser) => here.cookies().filter((one) => one.name.startsWith('auth0'));
  const oldCookiesOf = (browser: Browser) => oldOnes(browser).map((one) => one.name);
  /** The header that would send them. */
  const copyOf = (browser: Browser) =>
    oldOnes(browser)
      .map((one) => `${one.name}=${one.value}`)
      .join('; ');
  const begin = async (browser: Browser, over = {}) =>
    browser.follow(await authorize(browser.here, webRequest(over)));
  const silently = (browser: Browser, over = {}) => begin(browser, { prompt: 'none', ...over });
  const withCookie = (browser: Browser, cookie: string, headers = {}, over = {}) =>
    browser.here.get(`/authorize?${new URLSearchParams(webRequest(over))}`, { cookie, ...headers });
  const isLoginPage = ({ status, text }: Answer) => status === 200 && /name="password"/.test(text);
  const questions = () => old.asked('/authorize');
  const failures = async () => (await eventsOf(server, 'old_session_failed')).length;
  /** Answers with a redirect that is made of the question's parameters. */
  const leading =
    (location: (query: Record<string, string>) => string): Instead =>
    ({ query }, response) =>
      response.writeHead(302, { location: location(query) }).end();
  const refusal = ({ redirect_uri, state = '' }: Record<string, string>) =>
    `${redirect_uri}?${new URLSearchParams({ error: 'login_required', state })}`;

  it('goes on here for a web application without refresh tokens, and is asked for in the browser’s place', async () => {
    const browser = await loggedIn();
    const first = await authorize(browser.here, webRequest({ max_age: '3600' }));
    expect(new URL(first.location).origin, 'the browser goes nowhere else').to.equal(name.origin);
    const answer = await browser.follow(first);
    expect(answer.location).to.contain(`${WEB_CALLBACK}?`);
    const claims = payload((await redeem(browser.here, responseOf(answer).code)).json().id_token);
    expect(claims).to.include({ iss: `${name.origin}/`, sub: OLD.bcrypt.id, aud: 'web' });
    expect(claims.auth_time).to.be.closeTo(Math.floor(Date.now() / 1000), 60);
    const [asked, ...others] = questions();
    expect(others).to.deep.equal([]);
    expect(asked?.query).to.include({
      client_id: SESSION_CLIENT.client_id,
      prompt: 'none',
      max_age: '3600',
      redirect_uri: `${name.origin}/move/callback`,
      code_challenge_method: 'S256',
    });
    expect(oldCookiesOf(browser), 'used up').to.deep.equal([]);
    const [moved] = (await eventsOf(server, 'moved_session')).slice(-1);
    expect(moved).to.include({ client_id: 'web', user_id: OLD.bcrypt.id });
    await begin(browser);
    expect(questions().length, 'our own session answers').to.equal(1);
  });

  it('answers silent requests the same way, in a frame by a message, too', async () => {
    expect(responseOf(await silently(await loggedIn()))).to.have.property('code');
    const browser = await loggedIn();
    const params = spaRequest(pkce().challenge, { prompt: 'none', response_mode: 'web_message' });
    const framed = await browser.follow(
      await browser.here.get(`/authorize?${new URLSearchParams(params)}`, { 'sec-fetch-dest': 'iframe' }),
    );
    expect(framed.text).to.match(/"code":"[\w-]+"/);
    expect(oldCookiesOf(browser)).to.deep.equal([]);
  });

  it('is asked for with these cookies, the user’s agent and address and the key, and with nothing else of the browser', async () => {
    const browser = await loggedIn();
    const { here } = browser;
    const session = here.cookies().find((one) => one.name === 'auth0')?.value;
    const cookie = here
      .cookies()
      .map((one) => `${one.name}=${one.value}`)
      .join('; ');
    await browser.follow(
      await withCookie(browser, `theme=dark; ${cookie}; auth0-mf=other; xauth0=other`, {
        'user-agent': 'Browser/1.0',
        referer: 'https://app.example.test/',
        'x-forwarded-for': '203.0.113.9',
        'accept-language': 'de',
        'cname-api-key': 'of-the-browser',
      }),
    );
    const [asked] = questions();
    const sent = asked?.headers ?? {};
    expect(String(sent.cookie).split('; ').sort()).to.deep.equal(
      [`auth0=${session}`, `auth0_compat=${session}`].sort(),
    );
    expect(sent).to.include({
      host: old.edge,
      'cname-api-key': CNAME_API_KEY,
      'user-agent': 'Browser/1.0',
      'x-forwarded-for': '127.0.0.1',
    });
    expect(Object.keys(sent).sort()).to.deep.equal([
      'accept',
      'accept-encoding',
      'cname-api-key',
      'connection',
      'cookie',
      'host',
      'user-agent',
      'x-forwarded-for',
    ]);
    const [redeemed] = old.asked('/oauth/token');
    expect(redeemed?.headers).to.include({ host: old.edge, 'cname-api-key': CNAME_API_KEY });
    expect(redeemed?.headers).not.to.have.property('cookie');
  });

  it('is asked for by the domain’s own name where the hosted service has its certificate', async () => {
    await open(byName());
    expect(responseOf(await begin(await loggedIn()))).to.have.property('code');
    for (const path of ['/authorize', '/oauth/token']) {
      const [asked] = old.asked(path);
      expect(asked?.headers, path).to.include({ host: new URL(name.origin).host });
      expect(asked?.servername, path).to.equal(new URL(name.origin).hostname);
      expect(asked?.headers, path).not.to.have.any.keys('cname-api-key', 'x-forwarded-for');
    }
  });

  it('may be answered for by the canonical issuer, and by no other', async () => {
    const idToken = (claims: object, how?: Parameters<typeof old.resign>[2]) =>
      changing(async (body) => ({
        ...body,
        id_token: await old.resign(body.id_token, { at_hash: undefined, ...claims }, how),
      }));
    old.instead['POST /oauth/token'] = idToken({ iss: old.issuer });
    expect(responseOf(await begin(await loggedIn()))).to.have.property('code');
    for (const answer of [
      idToken({ iss: 'https://other.example/' }),
      idToken({ iss: `https://${old.edge}/` }),
      idToken({ nonce: 'another' }),
      idToken({ aud: 'web' }),
      idToken({}, { key: 'other' }),
      idToken({}, { key: 'none' }),
    ]) {
      const browser = await loggedIn();
      old.instead['POST /oauth/token'] = answer;
      expect(isLoginPage(await begin(browser))).to.equal(true);
      expect(oldCookiesOf(browser), 'kept: it may be asked again').to.have.length(2);
      delete old.instead['POST /oauth/token'];
    }
  });

  it('that is over leads to the login page; its cookies are removed, and the browser is not sent elsewhere for a while', async () => {
    const browser = await loggedIn();
    old.instead['GET /authorize'] = leading(refusal);
    expect(isLoginPage(await begin(browser))).to.equal(true);
    expect(oldCookiesOf(browser)).to.deep.equal([]);
    expect(isLoginPage(await begin(browser))).to.equal(true);
    expect(questions().length).to.equal(1);
    old.reset();
    const silentOne = await loggedIn();
    old.instead['GET /authorize'] = leading(refusal);
    expect(responseOf(await silently(silentOne))).to.include({ error: 'login_required' });
    expect(oldCookiesOf(silentOne)).to.deep.equal([]);
  });

  it('leads nowhere but to our callback with our state, whatever the answer says', async () => {
    const code = 'a-code-of-another';
    const answers: Instead[] = [
      leading(({ state }) => `https://evil.example/move/callback?code=${code}&state=${state}`),
      leading(({ redirect_uri, state }) => `${redirect_uri}/x?code=${code}&state=${state}`),
      leading(({ redirect_uri, state }) => `${redirect_uri}#code=${code}&state=${state}`),
      leading(({ redirect_uri }) => `${redirect_uri}?code=${code}&state=another`),
      leading(({ redirect_uri }) => `${redirect_uri}?code=${code}`),
      leading(({ redirect_uri, state }) => `${redirect_uri}?code=${code}&state=${state}&state=${state}`),
      leading(({ redirect_uri, state }) => `${redirect_uri}?code=${code}&code=2&state=${state}`),
      leading(({ redirect_uri, state }) => `${redirect_uri}?error=server_error&state=${state}`),
      leading(({ state }) => `/move/callback?code=${code}&state=${state}`),
      leading(({ state }) => `/u/login?state=${state}`),
      redirecting(`${name.origin}/authorize`),
      (_asked, response) => response.writeHead(200).end('<form>'),
      (_asked, response) => response.writeHead(403).end('Invalid API key'),
      (_asked, response) => response.writeHead(302, { location: `https://x/${'y'.repeat(40_000)}` }).end(),
      broken,
    ];
    for (const [index, answer] of answers.entries()) {
      const browser = await loggedIn();
      const before = await failures();
      old.instead['GET /authorize'] = answer;
      const first = await authorize(browser.here, webRequest());
      expect(new URL(first.location).pathname, String(index)).to.match(/^\/u\//);
      expect(isLoginPage(await browser.follow(first)), String(index)).to.equal(true);
      expect(await failures(), String(index)).to.equal(before + 1);
      expect(old.asked('/oauth/token').length, String(index)).to.equal(0);
      expect(oldCookiesOf(browser), 'kept').to.have.length(2);
      expect(isLoginPage(await begin(browser)), 'not at once again').to.equal(true);
      expect(questions().length, String(index)).to.equal(1);
      old.reset();
    }
  });

  it('does not leave for cookies that cannot be the hosted service’s', async () => {
    const long = 'a'.repeat(4_100);
    for (const cookie of [
      `auth0=${long}`,
      `auth0=${'a'.repeat(2_050)}; auth0_compat=${'b'.repeat(2_050)}`,
      'auth0=a b',
      'auth0="quoted"',
      'auth0=a,b',
      'auth0=a\\b',
      'auth0=a\tb',
      'auth0=\u00e9',
      'auth0=',
      'auth0=of-the-host; auth0=of-another-host',
      'auth0=x; auth0_compat=a b',
    ]) {
      const browser = browserAt(domain(), old);
      const { location } = await withCookie(browser, cookie);
      // As a browser without cookies of the domain: it is sent to the canonical name.
      expect(new URL(location).origin, cookie.slice(0, 60)).to.equal(old.origin);
      expect(questions().length, cookie.slice(0, 60)).to.equal(0);
    }
    const browser = browserAt(domain(), old);
    await withCookie(browser, `auth0=${'a'.repeat(4_000)}`);
    expect(questions().length, 'a long one that may be').to.equal(1);
  });

  it('does not leave for a request to another host name', async () => {
    const browser = await loggedIn();
    const cookie = browser.here
      .cookies()
      .map((one) => `${one.name}=${one.value}`)
      .join('; ');
    for (const host of ['evil.example', old.edge, new URL(old.origin).host]) {
      const status = await new Promise<string>((resolve, reject) => {
        const { port } = new URL(server.localUrl);
        const path = `/authorize?${new URLSearchParams(webRequest())}`;
        httpsRequest({
          host: '127.0.0.1',
          port,
          path,
          ca: server.ca,
          servername: 'localhost',
          headers: { host, cookie },
        })
          .on('response', (response) => resolve(response.resume().headers.location ?? ''))
          .on('error', reject)
          .end();
      });
      expect(status.startsWith(`${old.origin}/authorize`), `${host}: ${status}`).to.equal(true);
      expect(questions().length, host).to.equal(0);
    }
  });

  it('is asked for at no address that is not public, or opened by the operator', async () => {
    for (const through of [
      { host: '10.0.0.1', by_key: false },
      { host: '169.254.169.254', by_key: true, cname_api_key: CNAME_API_KEY },
    ]) {
      await open(through);
      expect(isLoginPage(await begin(await loggedIn()))).to.equal(true);
      const [failed] = (await eventsOf(server, 'old_session_failed')).slice(-1);
      expect(failed?.description).to.contain(`${through.host} is not a public address`);
    }
  });

  it('is in no log', async () => {
    const browser = await loggedIn();
    const value = browser.here.cookies().find((one) => one.name === 'auth0')?.value ?? '';
    expect(value).to.have.length.above(20);
    old.instead['GET /authorize'] = broken;
    await begin(browser);
    old.reset();
    expect(responseOf(await begin(await loggedIn()))).to.have.property('code');
    const { records } = await server.store.collection('logs').list({ limit: 500 });
    for (const log of [server.logged(), JSON.stringify(records)]) {
      expect(log).not.to.contain(value);
      expect(log).not.to.contain(CNAME_API_KEY);
    }
  });

  it('is not asked for where a new login is wanted, for the console, after its date, or after the end of the move', async () => {
    const browser = await loggedIn();
    for (const over of [{ prompt: 'login' }, { max_age: '0' }, { screen_hint: 'signup' }])
      await begin(browser, over);
    await browser.follow(await browser.here.get('/console'));
    expect(questions().length).to.equal(0);
    const over = new Date(Date.now() - 1_000).toISOString();
    const opened_at = new Date(Date.now() - DAY).toISOString();
    await open(byKey(), { until: over });
    expect(isLoginPage(await begin(browser))).to.equal(true);
    await open(byKey(), { sessions: { ...SESSION_CLIENT, opened_at, until: over } });
    expect(isLoginPage(await begin(browser))).to.equal(true);
    expect(questions().length).to.equal(0);
  });

  it('begins one session here: a copy of the cookies begins no second one, and a logout removes them', async () => {
    const browser = await loggedIn();
    const copy = copyOf(browser);
    expect(responseOf(await begin(browser))).to.have.property('code');
    const out = await browser.here.get('/v2/logout?client_id=web');
    expect(out.location, 'not by the canonical name').not.to.contain(old.origin);
    expect(isLoginPage(await begin(browser))).to.equal(true);
    server.tick(120_000);
    const thief = browserAt(domain(), old);
    expect(isLoginPage(await thief.follow(await withCookie(thief, copy)))).to.equal(true);
    const [failed] = (await eventsOf(server, 'old_session_failed')).slice(-1);
    expect(failed?.description).to.contain('before');
  });

  it('that has begun none here is ended there by a logout here', async () => {
    const browser = await loggedIn();
    const copy = copyOf(browser);
    await browser.here.get('/v2/logout?client_id=web');
    expect(oldCookiesOf(browser)).to.deep.equal([]);
    await until(() => old.asked('/v2/logout').length === 1);
    expect(old.asked('/v2/logout')[0]?.headers).to.include({
      host: old.edge,
      'cname-api-key': CNAME_API_KEY,
    });
    await until(async () => {
      const other = browserAt(domain(), old);
      return isLoginPage(await other.follow(await withCookie(other, copy)));
    });
    expect(isLoginPage(await begin(browser))).to.equal(true);
  });

  it('is not asked for without its key, which a reset of the keys has lost', async () => {
    await open({ host: old.edge, by_key: true });
    const { location } = await authorize((await loggedIn()).here, webRequest());
    expect(new URL(location).origin).to.equal(old.origin);
    expect(questions().length).to.equal(0);
  });

  it('is waited for by its own browser alone: others are served, and of many at once the last are not asked for', async () => {
    const held: ServerResponse[] = [];
    old.instead['GET /authorize'] = (_asked, response) => held.push(response);
    const waiting = Array.from({ length: 55 }, (_, index) =>
      withCookie(browserAt(domain(), old), `auth0=invented-${index}`, {}, { prompt: 'none' }),
    );
    await until(() => held.length === 50);
    const other = browserAt(domain(), old);
    expect(isLoginPage(await begin(other, { prompt: 'login' }))).to.equal(true);
    expect(held.length, 'while the others wait').to.equal(50);
    for (const response of held) expect(response.writableEnded).to.equal(false);
    for (const response of held) response.destroy();
    for (const answer of await Promise.all(waiting))
      expect(responseOf(answer)).to.include({ error: 'login_required' });
    expect(questions().length).to.equal(50);
    old.reset();
    expect(responseOf(await begin(await loggedIn())), 'there is room again').to.have.property('code');
  });

  it('counts before the question leaves, by address and in all, and takes nothing where it begins one here', async () => {
    await server.stop();
    await start({ oldSessionsOfAddress: { capacity: 3, perMinute: 1 } });
    for (let n = 0; n < 4; n++) {
      const browser = await loggedIn([OLD.bcrypt, OLD.argon2, OLD.linked, OLD.unverified][n]);
      expect(responseOf(await begin(browser))).to.have.property('code');
    }
    old.reset();
    for (let n = 0; n < 5; n++)
      expect(
        responseOf(await withCookie(browserAt(domain(), old), `auth0=invented-${n}`, {}, { prompt: 'none' })),
      ).to.include({ error: 'login_required' });
    expect(questions().length).to.equal(3);
    server.tick(60_000);
    await withCookie(browserAt(domain(), old), 'auth0=invented', {}, { prompt: 'none' });
    expect(questions().length).to.equal(4);
  });

  it('that is answered too late is not waited for', async () => {
    const browser = await loggedIn();
    await server.stop();
    await start(undefined, { oldTenant: 1_000 });
    old.instead['GET /authorize'] = silent;
    expect(isLoginPage(await begin(browser))).to.equal(true);
    const [failed] = await eventsOf(server, 'old_session_failed');
    expect(failed?.description).to.contain('did not answer in time');
    expect(oldCookiesOf(browser)).to.have.length(2);
  });
});
