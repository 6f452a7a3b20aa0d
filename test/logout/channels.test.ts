// Notification of the other applications of a session, and of its identity provider, that it has ended.
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { createLocalJWKSet, type JSONWebKeySet, jwtVerify } from 'jose';
import { TenantFault } from '../../src/tenant/load.ts';
import { callApi, startManaged } from '../management/support.ts';
import { createAgent } from '../support/agent.ts';
import { payload } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { HTML, isLoggedIn, logInAtTwo, logoutTenant, moreTokens, SPA_HOME, v2, WEB_HOME } from './support.ts';

interface Receiver {
  url: string;
  /** The posted bodies, oldest first. */
  received: { path: string; type: string | undefined; body: URLSearchParams }[];
  /** Sets its answers from now on. */
  answer(handler: http.RequestListener): void;
  stop(): Promise<void>;
}

/** An application's own server. */
async function startReceiver(): Promise<Receiver> {
  let handler: http.RequestListener = (_request, response) => response.end();
  const received: Receiver['received'] = [];
  const server = http.createServer((request, response) => {
    let text = '';
    request.on('data', (chunk: Buffer) => {
      text += chunk;
    });
    request.on('end', () => {
      received.push({
        path: request.url ?? '',
        type: request.headers['content-type'],
        body: new URLSearchParams(text),
      });
      handler(request, response);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://localhost:${(server.address() as AddressInfo).port}`,
    received,
    answer: (next) => {
      handler = next;
    },
    stop: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

const status =
  (code: number, headers: Record<string, string> = {}): http.RequestListener =>
  (_request, response) =>
    response.writeHead(code, headers).end();

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

/** Events of a type, with their descriptions. */
async function eventsOf(server: TestServer, type: string) {
  const { records } = await server.store.collection('logs').list({ limit: 1000 });
  return records.filter((record) => record.type === type);
}

describe('back-channel logout', () => {
  let app: Receiver;
  let server: TestServer;
  let webApp: object;

  beforeEach(async () => {
    app = await startReceiver();
    webApp = { oidc_logout: { backchannel_logout_urls: [`${app.url}/backchannel`] } };
  });
  afterEach(async () => {
    await server.stop();
    await app.stop();
  });

  /** @param outcome the type of an event to wait for, before the server's stop would cut the tries short. */
  const logOut = async (outcome?: string) => {
    const browser = createAgent(server);
    await logInAtTwo(browser, server);
    const { id_token } = await moreTokens(browser);
    await v2(browser, { client_id: 'spa', returnTo: SPA_HOME });
    while (outcome !== undefined && (await eventsOf(server, outcome)).length === 0) await nextTurn();
    // Closing waits for background deliveries.
    await server.tenant.close();
    return payload(id_token);
  };

  it('posts a logout token to the applications of the session', async () => {
    server = await startServer({ tenant: logoutTenant({ web: webApp }) });
    const { sid, sub } = await logOut();
    expect(app.received).to.have.length(1);
    const [{ path, type, body }] = app.received as [Receiver['received'][0]];
    expect(path).to.equal('/backchannel');
    expect(type).to.match(/^application\/x-www-form-urlencoded/);
    expect([...body.keys()]).to.deep.equal(['logout_token']);

    const jwks = (await createAgent(server).get('/.well-known/jwks.json')).json();
    const verified = await jwtVerify(
      body.get('logout_token') ?? '',
      createLocalJWKSet(jwks as JSONWebKeySet),
      {
        issuer: server.issuer,
        audience: 'web',
        typ: 'logout+jwt',
        algorithms: ['RS256'],
      },
    );
    const { iat, exp, jti, ...claims } = verified.payload;
    expect(claims).to.deep.equal({
      iss: server.issuer,
      aud: 'web',
      sub,
      sid,
      events: { 'http://schemas.openid.net/event/backchannel-logout': {} },
    });
    expect(Number(exp) - Number(iat)).to.equal(120);
    expect(jti).to.match(/^[\w-]{22}$/);
    expect(await eventsOf(server, 'oidc_backchannel_logout_succeeded')).to.have.length(1);
  });

  it('includes the session’s metadata only for applications that ask for it', async () => {
    const told = (path: string, include?: boolean) => ({
      oidc_logout: {
        backchannel_logout_urls: [`${app.url}/${path}`],
        backchannel_logout_initiators: { mode: 'all' },
        ...(include !== undefined && { backchannel_logout_session_metadata: { include } }),
      },
    });
    server = await startManaged(logoutTenant({ web: told('web', true), spa: told('spa') }));
    const browser = createAgent(server);
    await logInAtTwo(browser, server);
    const { sid } = payload((await moreTokens(browser)).id_token);
    const session_metadata = { desk: '7' };
    expect((await callApi(server, 'PATCH', `/sessions/${sid}`, { session_metadata })).status).to.equal(200);
    // Revoked, because the application that logs out is not notified.
    expect((await callApi(server, 'POST', `/sessions/${sid}/revoke`)).status).to.equal(202);
    await server.tenant.close();
    const notes = app.received.map(({ path, body }) => [
      path,
      payload(body.get('logout_token') ?? '').session_metadata,
    ]);
    expect(Object.fromEntries(notes)).to.deep.equal({ '/web': session_metadata, '/spa': undefined });
  });

  it("accepts the older setting, uses each URL once, and signs with an HS256 application's secret", async () => {
    const urls = { backchannel_logout_urls: [`${app.url}/a`, `${app.url}/b`] };
    const web = {
      oidc_logout: { backchannel_logout_urls: [`${app.url}/a`] },
      oidc_backchannel_logout: urls,
      client_secret: 'a-secret-of-at-least-32-characters!',
      jwt_configuration: { alg: 'HS256' },
    };
    server = await startServer({ tenant: logoutTenant({ web }) });
    await logOut();
    expect(app.received.map(({ path }) => path).sort()).to.deep.equal(['/a', '/b']);
    const secret = new TextEncoder().encode('a-secret-of-at-least-32-characters!');
    for (const { body } of app.received) {
      await jwtVerify(body.get('logout_token') ?? '', secret, { audience: 'web', typ: 'logout+jwt' });
    }
  });

  it('does not notify an application that had no part in the session', async () => {
    server = await startServer({ tenant: logoutTenant({ third: webApp, leeway: webApp }) });
    await logOut();
    expect(app.received).to.have.length(0);
  });

  it('tries again while the application cannot answer, with a new token each time', async () => {
    server = await startServer({ tenant: logoutTenant({ web: webApp }) });
    app.answer((request, response) => status(app.received.length < 3 ? 503 : 204)(request, response));
    await logOut('oidc_backchannel_logout_succeeded');
    expect(app.received).to.have.length(3);
    const ids = app.received.map(({ body }) => payload(body.get('logout_token') ?? '').jti);
    expect(new Set(ids).size).to.equal(3);
    expect(await eventsOf(server, 'oidc_backchannel_logout_succeeded')).to.have.length(1);
    expect(await eventsOf(server, 'oidc_backchannel_logout_failed')).to.have.length(0);
  });

  it('gives up after four attempts, while the logout succeeds', async () => {
    server = await startServer({ tenant: logoutTenant({ web: webApp }) });
    app.answer(status(500));
    await logOut('oidc_backchannel_logout_failed');
    expect(app.received).to.have.length(4);
    const [failed] = await eventsOf(server, 'oidc_backchannel_logout_failed');
    expect(failed?.description).to.contain('it answered 500');
    expect(await eventsOf(server, 'slo')).to.have.length(1);
  });

  it('does not repeat what the application refuses, and follows no redirect', async () => {
    server = await startServer({ tenant: logoutTenant({ web: webApp }) });
    for (const answer of [status(400), status(302, { location: `${app.url}/inside` })]) {
      app.received.length = 0;
      app.answer(answer);
      await logOut();
      expect(app.received.map(({ path }) => path)).to.deep.equal(['/backchannel']);
    }
    const failed = await eventsOf(server, 'oidc_backchannel_logout_failed');
    expect(failed.map(({ description }) => description?.slice(-3)).sort()).to.deep.equal(['302', '400']);
  });

  it('does not repeat it to an address that was removed from the application, and the log says so', async () => {
    server = await startServer({ tenant: logoutTenant({ web: webApp }) });
    app.answer((_request, response) => {
      const removed = server.store
        .collection('clients')
        .update('web', (client) => ({ ...client, oidc_logout: undefined }));
      void removed.then(() => response.writeHead(500).end());
    });
    await logOut('oidc_backchannel_logout_failed');
    expect(app.received).to.have.length(1);
    const [failed] = await eventsOf(server, 'oidc_backchannel_logout_failed');
    expect(failed?.description).to.contain('the address is no longer registered');
  });

  it('does not wait for an endless answer', async () => {
    server = await startServer({ tenant: logoutTenant({ web: webApp }) });
    app.answer((_request, response) => {
      response.writeHead(200);
      response.write('x'.repeat(65536));
    });
    await logOut();
    expect(await eventsOf(server, 'oidc_backchannel_logout_succeeded')).to.have.length(1);
  });

  it('logs when an application cannot be reached', async () => {
    server = await startServer({ tenant: logoutTenant({ web: webApp }) });
    await app.stop();
    await logOut('oidc_backchannel_logout_failed');
    const [failed] = await eventsOf(server, 'oidc_backchannel_logout_failed');
    expect(failed?.description).to.contain('could not be reached');
    app = await startReceiver();
  });

  it('notifies only for the initiators that an application has selected', async () => {
    const custom = (selected: string[], name = 'oidc_logout') => ({
      [name]: {
        backchannel_logout_urls: [`${app.url}/backchannel`],
        backchannel_logout_initiators: { mode: 'custom', selected_initiators: selected },
      },
    });
    for (const name of ['oidc_logout', 'oidc_backchannel_logout']) {
      server = await startServer({ tenant: logoutTenant({ web: custom(['password-changed'], name) }) });
      await logOut();
      expect(app.received, name).to.have.length(0);
      await server.stop();
    }
    server = await startServer({ tenant: logoutTenant({ web: custom(['rp-logout']) }) });
    await logOut();
    expect(app.received).to.have.length(1);
  });

  it('accepts in the tenant file only https URLs, and http on this machine', async () => {
    const bad = ['http://app.example.test/out', 'ftp://localhost/', 'https://u:p@app.example.test/', '/out'];
    for (const address of bad) {
      const web = { oidc_logout: { backchannel_logout_urls: [address] } };
      const fault = await startServer({ tenant: logoutTenant({ web }) }).catch((thrown: unknown) => thrown);
      expect(fault).to.be.instanceOf(TenantFault);
      expect((fault as TenantFault).faults.join())
        .to.contain('backchannel_logout_urls')
        .and.to.contain('https');
    }
    server = await startServer({ tenant: logoutTenant() });
  });
});

describe('front-channel logout', () => {
  const uri = 'https://front.example.test/logout?app=1';
  let server: TestServer;
  before(async () => {
    server = await startServer({ tenant: logoutTenant({ web: { frontchannel_logout_uri: uri } }) });
  });
  after(() => server.stop());

  it('frames the application with iss and sid, forbids other frames, and continues', async () => {
    const browser = createAgent(server);
    await logInAtTwo(browser, server);
    const { sid } = payload((await moreTokens(browser)).id_token);
    const page = await v2(browser, { client_id: 'spa', returnTo: SPA_HOME }, HTML);
    expect(page.status).to.equal(200);
    const frame = /<iframe src="([^"]*)"/.exec(page.text)?.[1]?.replaceAll('&amp;', '&');
    expect(frame).to.equal(`${uri}&iss=${encodeURIComponent(server.issuer)}&sid=${sid}`);
    expect(page.headers['content-security-policy']).to.contain('frame-src https://front.example.test;');
    expect(page.headers.refresh).to.equal(`5; url=${SPA_HOME}`);
    expect(page.text).to.contain(`href="${SPA_HOME}"`);
    expect(await isLoggedIn(browser)).to.equal(false);
  });

  it('frames only applications of the session, and each once', async () => {
    const answer = await v2(createAgent(server), { client_id: 'spa', returnTo: SPA_HOME }, HTML);
    expect(answer).to.include({ status: 302 });
  });
});

describe('federated logout', () => {
  const upstream = 'https://idp.example.test';
  const connection = (options: object, strategy = 'oidc') => ({
    name: 'users-upstream',
    strategy,
    enabled_clients: ['web'],
    options,
  });
  let server: TestServer;
  afterEach(() => server.stop());

  /** Begins a session whose connection is the upstream one, as a login with it would. */
  const logInUpstream = async (options: object, strategy?: string) => {
    const base = logoutTenant();
    server = await startServer({ tenant: { ...base, connections: [connection(options, strategy)] } });
    const browser = createAgent(server);
    await logInAtTwo(browser, server);
    const { sid } = payload((await moreTokens(browser)).id_token);
    const artifacts = server.store.collection('artifacts');
    const [session] = await artifacts.findBy('uid', sid);
    await artifacts.update(session?.id ?? '', (record) => ({
      ...(structuredClone(record) as typeof record & { payload: Record<string, unknown> }),
      payload: { ...record.payload, connection: 'users-upstream' },
    }));
    return { browser, sid: String(sid) };
  };

  const OIDC = {
    client_id: 'at-upstream',
    issuer: upstream,
    end_session_endpoint: `${upstream}/logout?tenant=1`,
  };

  it("goes to the provider's end_session_endpoint, and returns with a state that is valid once", async () => {
    const { browser } = await logInUpstream(OIDC);
    const away = new URL((await browser.get('/v2/logout?client_id=web&federated')).location);
    expect(`${away.origin}${away.pathname}`).to.equal(`${upstream}/logout`);
    const { state, ...rest } = Object.fromEntries(away.searchParams);
    expect(rest).to.deep.equal({
      tenant: '1',
      client_id: 'at-upstream',
      post_logout_redirect_uri: `${server.url}/logout/callback`,
    });
    expect(await isLoggedIn(browser)).to.equal(false);
    const back = `/logout/callback?state=${state}`;
    expect((await browser.get(back)).location).to.equal(WEB_HOME);
    const again = await browser.request(back, { headers: { accept: HTML } });
    expect(again.status).to.equal(200);
    expect(again.headers.location).to.equal(undefined);
  });

  it('keeps the redirect URI and its state of /oidc/logout', async () => {
    const { browser, sid } = await logInUpstream({ client_id: 'c', oidc_metadata: OIDC });
    const answer = await browser.request('/oidc/logout', {
      form: {
        logout_hint: sid,
        client_id: 'web',
        post_logout_redirect_uri: WEB_HOME,
        state: 'mine',
        federated: 'true',
      },
    });
    const state = new URL(answer.location).searchParams.get('state');
    expect((await browser.get(`/logout/callback?state=${state}`)).location).to.equal(
      `${WEB_HOME}?state=mine`,
    );
  });

  it("goes to a connection's own logoutUrl with our callback as returnTo", async () => {
    const { browser } = await logInUpstream(
      {
        authorizationURL: `${upstream}/authorize`,
        tokenURL: `${upstream}/token`,
        client_id: 'ours',
        logoutUrl: `${upstream}/bye`,
      },
      'oauth2',
    );
    const away = new URL((await browser.get('/v2/logout?client_id=web&federated=')).location);
    expect(`${away.origin}${away.pathname}`).to.equal(`${upstream}/bye`);
    const back = away.searchParams.get('returnTo') ?? '';
    expect(back.startsWith(`${server.url}/logout/callback?state=`)).to.equal(true);
    expect((await browser.get(back)).location).to.equal(WEB_HOME);
  });

  it('ends at our own page without a returnTo', async () => {
    const { browser } = await logInUpstream(OIDC);
    const away = new URL((await browser.get('/v2/logout?client_id=leeway&federated')).location);
    const back = await browser.get(`/logout/callback?state=${away.searchParams.get('state')}`);
    expect(back.location).to.equal(`${server.url}/logout/done`);
    expect((await browser.get(back.location, { accept: HTML })).text).to.contain('You are logged out');
  });

  for (const [what, options, query] of [
    ['is not asked for', OIDC, ''],
    ['is said not to be wanted', OIDC, '&federated=false'],
    ['has no logout', {}, '&federated'],
    ['has a logout that is no https address', { end_session_endpoint: 'javascript:alert(1)' }, '&federated'],
    ['has a logout without TLS elsewhere', { logoutUrl: 'http://idp.example.test/' }, '&federated'],
  ] as [string, object, string][]) {
    it(`is plain logout when the provider ${what}`, async () => {
      // A strategy that is not built in, whose options are not validated.
      const { browser } = await logInUpstream(options, 'office365');
      expect((await browser.get(`/v2/logout?client_id=web${query}`)).headers.location).to.equal(WEB_HOME);
      expect(await isLoggedIn(browser)).to.equal(false);
    });
  }

  it('shows our own page for an unknown state', async () => {
    server = await startServer({ tenant: logoutTenant() });
    for (const query of ['', '?state=', '?state=https://evil.example', '?state=a&state=b']) {
      const answer = await createAgent(server).get(`/logout/callback${query}`);
      expect(answer.headers.location).to.equal(undefined);
    }
  });
});
