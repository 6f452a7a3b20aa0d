// The whole move in small: a team with a custom domain exports its tenant by the hosted service's own tool, moves in by the
// commands, and points its domain here. Its applications are unmodified SDKs that nobody tells of it.
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { ManagementClient } from 'auth0';
import { expect } from 'chai';
import { createRemoteJWKSet, jwtVerify } from 'jose';
import * as oidc from 'openid-client';
import type { BrowserContext, Page } from 'playwright-core';
import { codeOf } from '../factors/tenant.ts';
import { type Answer, readForm } from '../support/agent.ts';
import { launchBrowser, type TestBrowser } from '../support/browser.ts';
import { runCommand } from '../support/command.ts';
import {
  API,
  authorize,
  payload,
  pkce,
  redeem,
  responseOf,
  SPA_CALLBACK,
  spaRequest,
  submitLogin,
  token,
  webRequest,
} from '../support/flows.ts';
import { SCRATCH } from '../support/scratch-directory.ts';
import { serveFolder, type TestServer } from '../support/server.ts';
import { CNAME_API_KEY, MOVE_CLIENT, OLD, SESSION_CLIENT, type StandIn } from './stand-in.ts';
import { type Browser, browserAt } from './support.ts';
import { exportTeam, FILES, type Name, NEXT, startName, startTeam, unhashed } from './team.ts';

/** Imported without its types: those of Next.js require the DOM, and would change the types of the server. */
const load = (name: string): Promise<any> => import(name);
const { Auth0Client } = await load('@auth0/nextjs-auth0/server');
const { NextRequest, NextResponse } = await load('next/server.js');

const SPA_SDK = readFileSync(
  join(
    dirname(createRequire(import.meta.url).resolve('@auth0/auth0-spa-js/package.json')),
    'dist/auth0-spa-js.production.js',
  ),
);
const SCOPE = 'openid profile email offline_access read:things';
type Person = { id: string; email: string; password: string };

describe('a team that moves in', function () {
  // The deploy tool limits its own request rate.
  this.timeout(300_000);
  let cwd: string;
  let name: Name;
  let old: StandIn;
  let server: TestServer;
  let spa: Spa;
  const printed: Record<string, string> = {};
  /** Values that the export lacks, as `move check` asks for them. */
  const values: Record<string, string> = {};

  const run = async (
    args: string[],
    { data = 'data', codes = [0] }: { data?: string; codes?: number[] } = {},
  ) => {
    const env = {
      ...{ TENANT_FILE: 'gatehouse.yaml', DATA_DIR: data, BASE_URL: name.origin },
      MOVE_CLIENT_SECRET: MOVE_CLIENT.client_secret,
      MOVE_SESSIONS_SECRET: SESSION_CLIENT.client_secret,
      MOVE_CNAME_API_KEY: CNAME_API_KEY,
      ...values,
    };
    const { code, stdout, stderr } = await runCommand({ cwd, env, args });
    expect(code, stdout + stderr).to.be.oneOf(codes);
    printed[args.slice(0, 2).join(' ')] = stdout + stderr;
    return stdout;
  };
  const move = (...args: string[]) => run(['move', ...args]);
  const domain = () => ({ url: name.origin, ca: old.ca });
  /** A browser that knows the old tenant by both of its names. */
  const visitor = (): Browser => browserAt(domain(), old);
  /** Begins a login at the domain, up to the page that asks for the password. */
  const loginPage = async (browser: Browser, params: Record<string, string>) =>
    browser.follow(await authorize(browser.here, params));
  const logIn = async (user: Person, params = webRequest(), browser = visitor()): Promise<Answer> =>
    submitLogin(browser.here, domain(), await loginPage(browser, params), user);
  /** Logs in to the web application. @returns the claims of its ID token */
  const claimsOf = async (landed: Answer, browser: Browser): Promise<Record<string, unknown>> => {
    const { id_token } = (await redeem(browser.here, responseOf(landed).code)).json();
    return payload(id_token);
  };
  /** An API that knows no more than the domain. */
  const acceptedByApi = async (accessToken: string) => {
    const keys = createRemoteJWKSet(new URL(`${name.origin}/.well-known/jwks.json`));
    return (await jwtVerify(accessToken, keys, { issuer: `${name.origin}/`, audience: API })).payload;
  };

  // What the applications have from before.
  let native: { refresh_token: string; access_token: string };
  let next: NextApplication;
  let withRefreshTokens: SpaWindow;
  let withoutRefreshTokens: SpaWindow;
  let ofCanonicalName: SpaWindow;

  before(async () => {
    cwd = mkdtempSync(join(SCRATCH, 'gatehouse-whole-move-'));
    name = await startName();
    spa = await startSpa();
    old = await startTeam(name, spa.origin);
    await spa.trust(old.ca);

    withRefreshTokens = await spa.open();
    await withRefreshTokens.logIn(name.origin, OLD.bcrypt, { useRefreshTokens: true });
    withoutRefreshTokens = await spa.open();
    await withoutRefreshTokens.logIn(name.origin, OLD.bcrypt);
    ofCanonicalName = await spa.open();
    await ofCanonicalName.logIn(old.origin, OLD.argon2);
    next = nextApplication(name.origin);
    await next.logIn((params) => logIn(OLD.argon2, params));
    native = await nativeTokens(OLD.linked);
    expect(await acceptedByApi(native.access_token)).to.include({ sub: OLD.linked.id });

    await exportTeam(old, cwd);
    writeFileSync(join(cwd, 'gatehouse.yaml'), 'tenant: { friendly_name: Acme }\n');
    server = await serveFolder(cwd, { TENANT_FILE: 'gatehouse.yaml', BASE_URL: name.origin });
    const check = ['move', 'check', FILES.tenant, '--users', FILES.users, '--hashes', FILES.hashes];
    await run(check, { codes: [2] });
    values.CONNECTIONS_GOOGLE_OAUTH2_SECRET = 'secret-there';
    await run([...check, '--html', 'report.html'], { codes: [0, 2] });

    const until = new Date(Date.now() + 30 * 86_400_000).toISOString().slice(0, 10);
    const tenant = new URL(old.origin).host;
    await move('open', '--tenant', tenant, '--client-id', MOVE_CLIENT.client_id, '--until', until);
    await moveIn();
    await move('trickle', 'users');
    await move('sessions', '--client-id', SESSION_CLIENT.client_id, '--through', old.edge);
    await move('tokens');
    await run(['keys', 'trust', '--jwks', `${old.origin}/.well-known/jwks.json`, '--until', until]);
    name.lead(server.localUrl);
  });
  after(async () => {
    await spa?.stop();
    await server?.stop();
    await old?.stop();
    name?.stop();
    rmSync(cwd, { recursive: true, force: true });
  });

  const moveIn = () =>
    move(
      ...['in', FILES.tenant, '--users', FILES.users, '--hashes', FILES.hashes],
      ...['--from', new URL(old.origin).host],
    );

  async function nativeTokens(user: Person) {
    const browser = visitor();
    const { verifier, challenge } = pkce();
    const params = spaRequest(challenge, { client_id: 'native', scope: SCOPE, audience: API });
    const { code } = responseOf(await logIn(user, params, browser));
    const answer = await token(browser.here, {
      ...{ grant_type: 'authorization_code', client_id: 'native', redirect_uri: SPA_CALLBACK },
      ...{ code, code_verifier: verifier },
    });
    return answer.json() as { refresh_token: string; access_token: string };
  }

  it('is told beforehand what becomes of everything, and everything arrives', () => {
    const { 'move check': check, 'move in': moved, 'keys trust': trusted } = printed;
    expect(check)
      .to.match(/needs a value +application +Back office/)
      .and.match(/in force +application +Shop/)
      .and.match(/134 +have a password hash, and 66 have none/)
      .and.contain(`${name.origin}/login/callback`);
    expect(readFileSync(join(cwd, 'report.html'), 'utf8')).to.contain('Back office');
    expect(moved).to.contain('200 users: 200 new, 0 changed, 0 as they were, 0 refused');
    expect(moved).not.to.match(/web-secret|secret-there|\$2b\$|\$argon2/);
    expect(trusted).to.contain('trusted until');
  });

  it('keeps the user of a single-page application logged in by its refresh token', async () => {
    await withRefreshTokens.reload(name.origin, { useRefreshTokens: true });
    const renewed = await withRefreshTokens.call('getTokenSilently', { cacheMode: 'off' });
    expect(payload(String(renewed))).to.include({ iss: `${name.origin}/`, sub: OLD.bcrypt.id, azp: 'spa' });
    expect(await withRefreshTokens.call('getUser')).to.include({ sub: OLD.bcrypt.id });
  });

  it('keeps the user of one without refresh tokens logged in who logged in at the canonical name', async () => {
    await ofCanonicalName.reload(name.origin);
    const renewed = await ofCanonicalName.call('getTokenSilently', { cacheMode: 'off' });
    expect(payload(String(renewed))).to.include({ iss: `${name.origin}/`, sub: OLD.argon2.id, azp: 'spa' });
  });

  it('keeps the user of one without refresh tokens logged in who logged in at the custom domain', async () => {
    await withoutRefreshTokens.reload(name.origin);
    const renewed = await withoutRefreshTokens.call('getTokenSilently', { cacheMode: 'off' });
    expect(payload(String(renewed))).to.include({ iss: `${name.origin}/`, sub: OLD.bcrypt.id, azp: 'spa' });
  });

  it('keeps the user of a web application logged in, who has the same session of the application', async () => {
    for (const _ of [1, 2])
      expect(payload(await next.accessToken())).to.include({ iss: `${name.origin}/`, sub: OLD.argon2.id });
    expect((await next.session()).user.sub).to.equal(OLD.argon2.id);
  });

  it('keeps the user of a native application logged in', async () => {
    const application = await oidc.discovery(new URL(name.origin), 'native', undefined, oidc.None());
    let { refresh_token: refreshToken } = native;
    for (const _ of [1, 2]) {
      const renewed = await oidc.refreshTokenGrant(application, refreshToken);
      expect(await acceptedByApi(renewed.access_token)).to.include({ sub: OLD.linked.id, azp: 'native' });
      expect(renewed.claims()).to.include({ sub: OLD.linked.id });
      refreshToken = String(renewed.refresh_token);
    }
  });

  it('has APIs that go on accepting the access tokens of before', async () => {
    expect(await acceptedByApi(native.access_token)).to.include({ sub: OLD.linked.id, azp: 'native' });
  });

  it('has users who log in with their old passwords, whether or not the hashes came along', async () => {
    const asked = () => old.asked('/oauth/token').length;
    for (const [user, isAsked] of [
      [OLD.bcrypt, false],
      [OLD.argon2, false],
      [unhashed(0), true],
    ] as const) {
      const [before, browser] = [asked(), visitor()];
      const landed = await logIn(user, webRequest(), browser);
      expect(await claimsOf(landed, browser)).to.include({ sub: user.id, email: user.email });
      expect(asked() > before, user.email).to.equal(isAsked);
    }
    const before = asked();
    expect(responseOf(await logIn(unhashed(0)))).to.have.property('code');
    expect(asked(), 'only once').to.equal(before);
    const wrong = await logIn({ ...unhashed(1), password: 'Another-Horse-1' });
    expect(wrong.text).to.contain('Wrong email or password.');
  });

  it('has users who are asked for the second factor that they have', async () => {
    const browser = visitor();
    const page = await logIn(OLD.otp, webRequest(), browser);
    const { action, fields } = readForm(page, 'code');
    const wrong = await browser.here.request(action, { form: { ...fields, code: '000000' } });
    expect(responseOf({ ...wrong, location: wrong.location || name.origin })).not.to.have.property('code');
    const form = { ...fields, code: codeOf(OLD.otp.secret) };
    const landed = await browser.follow(await browser.here.request(action, { form }));
    expect(await claimsOf(landed, browser)).to.deep.include({ sub: OLD.otp.id });
  });

  it('has users with several accounts under one id, with their metadata and roles', async () => {
    const { client_id: clientId, client_secret: clientSecret } = MOVE_CLIENT;
    const management = new ManagementClient({ domain: new URL(name.origin).host, clientId, clientSecret });
    const { identities = [], ...user } = await management.users.get(OLD.linked.id);
    expect(user).to.deep.include({ user_metadata: { theme: 'linked' }, app_metadata: { plan: 'gold' } });
    expect(identities.map(({ connection }) => connection)).to.deep.equal(['users', 'google-oauth2']);
  });

  it('has organizations whose members log in, and others do not', async () => {
    const [acme] = await server.store.collection('organizations').findBy('name', 'acme');
    const [there] = await old.gatehouse.store.collection('organizations').findBy('name', 'acme');
    expect(acme?.id).to.equal(there?.id);
    const params = webRequest({ organization: String(acme?.id) });
    const browser = visitor();
    expect(await claimsOf(await logIn(OLD.bcrypt, params, browser), browser)).to.include({
      sub: OLD.bcrypt.id,
      org_id: acme?.id,
    });
    expect(responseOf(await logIn(unhashed(5), params))).to.include({ error: 'access_denied' });
  });

  it('sees what has come over the bridges, and ends them', async () => {
    const { bridges } = JSON.parse(await move('status', '--json'));
    const moved = Object.fromEntries(bridges.map((one: any) => [one.kind, one.moved]));
    expect(moved).to.deep.equal({ passwords: 2, sessions: 2, refresh_tokens: 3 });
    expect(await move('status')).to.match(/users at the old tenant +200\n +left, about +64/);
    expect(await move('close')).to.contain('Passwords of users: 2 moved');
    const asked = old.seen.length;
    expect((await logIn(unhashed(3))).text).to.contain('Wrong email or password.');
    expect(old.seen.length, 'the old tenant is not asked').to.equal(asked);
    expect(await acceptedByApi(native.access_token)).to.include({ sub: OLD.linked.id });
    await run(['keys', 'trust', '--end']);
    const refused = await acceptedByApi(native.access_token).catch((thrown: Error) => thrown);
    expect(refused).to.have.property('code', 'ERR_JWKS_NO_MATCHING_KEY');
  });

  it('moves out again, and in elsewhere, and is the same there', async () => {
    /** Returns what the files of a folder have; the order of members says nothing. */
    const read = (folder: string) =>
      readdirSync(join(cwd, folder), { recursive: true, withFileTypes: true })
        .filter((one) => one.isFile())
        .map((one) => {
          const text = readFileSync(join(one.parentPath, one.name), 'utf8');
          if (one.name.endsWith('.json')) return [one.name, JSON.parse(text)];
          if (!one.name.endsWith('.ndjson')) return [one.name, text];
          return [one.name, text.split('\n').map((line) => line && JSON.parse(line))];
        })
        .sort(([a], [b]) => (a < b ? -1 : 1));
    await move('out', '-o', 'back');
    const imports = readdirSync(join(cwd, 'back/import')).map((one) => `back/import/${one}`);
    const files = [
      'back/tenant.yaml',
      '--users',
      'back/users.ndjson',
      '--memberships',
      'back/memberships.ndjson',
    ];
    mkdirSync(join(cwd, 'third'));
    const third = { data: 'third' };
    const moved = await run(['move', 'in', ...files, '--hashes', ...imports], third);
    expect(moved).to.contain('200 new').and.not.match(/^\+ $/m);
    await run(['move', 'out', '-o', 'there'], third);
    expect(read('there')).to.deep.equal(read('back'));
  });
});

// The applications.

type NextApplication = ReturnType<typeof nextApplication>;

/** @param origin that of the domain; the SDK is not told of the move. */
function nextApplication(origin: string) {
  const auth0 = new Auth0Client({
    domain: origin,
    allowInsecureRequests: true,
    clientId: 'web',
    clientSecret: 'web-secret',
    appBaseUrl: NEXT,
    secret: 'a-secret-of-the-application-of-32-bytes-or-more',
    authorizationParameters: { scope: SCOPE, audience: API },
  });
  const jar = new Map<string, string>();
  const request = (path: string) =>
    new NextRequest(new URL(path, NEXT), {
      headers: { cookie: [...jar].map(([cookie, value]) => `${cookie}=${value}`).join('; ') },
    });
  const keep = (answer: { cookies: { getAll(): { name: string; value: string }[] } }) => {
    for (const { name, value } of answer.cookies.getAll()) jar.set(name, value);
  };
  return {
    logIn: async (visit: (params: Record<string, string>) => Promise<Answer>) => {
      const begun = await auth0.middleware(request('/auth/login'));
      keep(begun);
      const landed = await visit(Object.fromEntries(new URL(begun.headers.get('location')).searchParams));
      keep(await auth0.middleware(request(landed.location)));
      expect(await auth0.getSession(request('/'))).not.to.equal(null);
    },
    accessToken: async (): Promise<string> => {
      const response = NextResponse.next();
      const { token: renewed } = await auth0.getAccessToken(request('/'), response, { refresh: true });
      keep(response);
      return renewed;
    },
    session: () => auth0.getSession(request('/')),
  };
}

type Spa = Awaited<ReturnType<typeof startSpa>>;
type SpaWindow = Awaited<ReturnType<Spa['open']>>;

async function startSpa() {
  const application = http.createServer((request, response) => {
    const isScript = request.url === '/sdk.js';
    response.setHeader('content-type', isScript ? 'text/javascript' : 'text/html');
    response.end(isScript ? SPA_SDK : '<!doctype html><title>App</title><script src="/sdk.js"></script>');
  });
  await new Promise<void>((resolve) => application.listen(0, 'localhost', resolve));
  const origin = `http://localhost:${(application.address() as AddressInfo).port}`;
  let browser: TestBrowser;
  return {
    origin,
    trust: async (ca: string) => {
      browser = await launchBrowser(ca);
    },
    open: async () => spaWindow(await browser.newContext(), origin),
    stop: async () => {
      await browser?.close();
      application.closeAllConnections();
      application.close();
    },
  };
}

/** A window of a browser of its own in which the application runs. */
async function spaWindow(context: BrowserContext, origin: string) {
  const page: Page = await context.newPage();
  const call = (method: string, ...given: unknown[]): Promise<any> =>
    page.evaluate(
      async ([called, args]) => {
        try {
          return await (globalThis as any).client[called](...(args as unknown[]));
        } catch (error) {
          return { thrown: (error as any).error ?? String(error) };
        }
      },
      [method, given] as const,
    );
  const reload = async (domain: string, more: object = {}) => {
    await page.goto(origin);
    await createClient(domain, more);
  };
  const createClient = (domain: string, more: object) =>
    page.evaluate(
      async ([host, redirect_uri, { audience, ...rest }]) => {
        const authorizationParams = { redirect_uri, audience, scope: 'openid profile email read:things' };
        const options = { domain: host, clientId: 'spa', cacheLocation: 'localstorage', authorizationParams };
        (globalThis as any).client = await (globalThis as any).auth0.createAuth0Client({
          ...options,
          ...rest,
        });
      },
      [new URL(domain).host, origin, { audience: API, ...more } as any] as const,
    );
  return {
    call,
    reload,
    logIn: async (domain: string, user: Person, more: object = {}) => {
      await reload(domain, more);
      await Promise.all([page.waitForURL(/\/u\//), call('loginWithRedirect')]);
      await page.getByLabel('Email address').fill(user.email);
      await page.getByLabel('Password', { exact: true }).fill(user.password);
      await page.getByRole('button', { name: 'Continue' }).click();
      await page.waitForURL((url) => url.origin === origin);
      await createClient(domain, more);
      expect(await call('handleRedirectCallback')).not.to.have.property('thrown');
    },
  };
}
