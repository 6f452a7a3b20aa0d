// @auth0/nextjs-auth0, unmodified, against a running server. The test calls its client as the middleware of an application
// does, with requests and responses of Next.js itself (`next/server`), but without a Next.js server.
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { expect } from 'chai';
import { OTP_GRANT, tenant as passwordlessTenant } from '../connections/passwordless/tenant.ts';
import { createAgent } from '../support/agent.ts';
import { API, follow, payload, submitLogin, USER } from '../support/flows.ts';
import { nextMessageTo } from '../support/inbox.ts';
import { type OAuth2Provider, optionsFor, startProvider } from '../support/oauth2-provider.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { softwareKey } from '../support/software-key.ts';

/** Imported without its types: those of Next.js require the DOM, and would change the types of the server. */
const load = (name: string): Promise<any> => import(name);
const { Auth0Client } = await load('@auth0/nextjs-auth0/server');
const { NextRequest, NextResponse } = await load('next/server.js');

/** The members of a Next.js response that the test reads. */
interface NextAnswer extends Response {
  cookies: { getAll(): { name: string; value: string }[] };
}

const BASE = 'http://localhost:3000';
const VAULT_GRANT = 'urn:auth0:params:oauth:grant-type:token-exchange:federated-connection-access-token';
const PASSKEY_GRANT = 'urn:okta:params:oauth:grant-type:webauthn';
const DESK = 'urn:acme:customer';
const SCOPES = [
  ...['create', 'read', 'delete'].map((verb) => `${verb}:me:connected_accounts`),
  'create:me:authentication_methods',
];

describe('@auth0/nextjs-auth0', () => {
  let server: TestServer;
  let provider: OAuth2Provider;
  let trusted: string[];

  before(async () => {
    provider = await startProvider();
    const next = {
      client_id: 'next',
      name: 'next',
      client_secret: 'next-secret',
      app_type: 'regular_web',
      token_endpoint_auth_method: 'client_secret_post',
      callbacks: [`${BASE}/auth/callback`],
      allowed_logout_urls: [BASE],
      web_origins: [BASE],
      grant_types: ['authorization_code', 'refresh_token', OTP_GRANT, VAULT_GRANT, PASSKEY_GRANT],
      token_exchange: { allow_any_profile_of_type: ['custom_authentication'] },
      session_transfer: { can_create_session_transfer_token: true },
    };
    const shown = {
      ...next,
      client_id: 'shown',
      name: 'shown',
      session_transfer: {
        allowed_authentication_methods: ['query'],
        delegation: { allow_delegated_access: true },
      },
    };
    server = await startServer({
      tenant: {
        ...passwordlessTenant,
        clients: [...passwordlessTenant.clients, next, shown],
        actions: [
          {
            name: 'desk',
            code: `exports.onExecuteCustomTokenExchange = async (event, api) => {
              const { subject_token: id, actor_token: actor } = event.transaction;
              const { sub } = JSON.parse(Buffer.from(actor.split('.')[1], 'base64url'));
              api.authentication.setUserById(id);
              if (id !== 'nobody') api.authentication.setActor({ sub, reason: 'ticket 7' });
            };`,
            supported_triggers: [{ id: 'custom-token-exchange', version: 'v1' }],
            deployed: true,
          },
        ],
        tokenExchangeProfiles: [
          { name: 'Desk', subject_token_type: DESK, action: 'desk', type: 'custom_authentication' },
        ],
        clientGrants: [
          {
            client_id: 'next',
            audience: 'https://elsewhere.example.test/me/',
            subject_type: 'user',
            scope: SCOPES,
          },
        ],
        databases: [
          ...passwordlessTenant.databases.map((database) => ({
            ...database,
            enabled_clients: [...(database.enabled_clients ?? []), 'next', 'shown'],
          })),
          {
            name: 'keys',
            enabled_clients: ['next'],
            options: { authentication_methods: { passkey: { enabled: true } } },
          },
          {
            name: 'phones',
            enabled_clients: ['next'],
            options: {
              attributes: { phone_number: { identifier: { active: true } } },
              authentication_methods: { phone_otp: { enabled: true } },
            },
          },
        ],
        connections: [
          ...passwordlessTenant.connections.map((one) =>
            one.name === 'email' ? { ...one, enabled_clients: [...one.enabled_clients, 'next'] } : one,
          ),
          {
            name: 'drive',
            strategy: 'oauth2',
            enabled_clients: ['next'],
            connected_accounts: { active: true },
            authentication: { active: false },
            options: optionsFor(provider),
          },
        ],
      },
    });
    await server.store.collection('clients').update('next', (now) => ({
      ...now,
      refresh_token: {
        ...now.refresh_token,
        policies: [
          { audience: `${server.issuer}me/`, scope: SCOPES },
          { audience: API, scope: ['read:things'] },
        ],
      } as never,
    }));
    trusted = getCACertificates('default');
    setDefaultCACertificates([...trusted, server.ca]);
  });
  after(async () => {
    setDefaultCACertificates(trusted);
    await server.stop();
    await provider.stop();
  });

  /** Returns an application, and the browser of its user. */
  const open = (clientId = 'next') => {
    const auth0 = new Auth0Client({
      // With a port, and on this machine.
      domain: server.url,
      allowInsecureRequests: true,
      clientId,
      clientSecret: 'next-secret',
      appBaseUrl: BASE,
      secret: 'a-secret-of-the-application-of-32-bytes-or-more',
      authorizationParameters: { scope: 'openid profile email offline_access' },
      enableConnectAccountEndpoint: true,
      enableTelemetry: true,
    });
    const jar = new Map<string, string>();
    const browser = createAgent(server);
    const requestTo = (path: string, json?: object) =>
      new NextRequest(new URL(path, BASE), {
        headers: {
          cookie: [...jar].map(([name, value]) => `${name}=${value}`).join('; '),
          ...(json && { 'content-type': 'application/json' }),
        },
        ...(json && { method: 'POST', body: JSON.stringify(json) }),
      });
    const keep = (response: NextAnswer) => {
      for (const { name, value } of response.cookies.getAll())
        if (value === '') jar.delete(name);
        else jar.set(name, value);
      return response;
    };
    const visit = async (path: string, json?: object) => {
      const response = keep(await auth0.middleware(requestTo(path, json)));
      return { status: response.status, location: response.headers.get('location') ?? '', response };
    };
    const login = async (query = '') => {
      const { location } = await visit(`/auth/login${query}`);
      const page = await follow(browser, await browser.get(location), server.url);
      const back = page.text.includes('name="password"')
        ? await submitLogin(browser, server, page, USER)
        : page;
      return visit(back.location);
    };
    return { auth0, browser, requestTo, keep, visit, login };
  };

  it('logs in and out: middleware, getSession, /auth/profile, /auth/logout', async () => {
    const { auth0, browser, requestTo, visit, login } = open();
    const back = await login('?returnTo=/dashboard');
    expect(back.location).to.equal(`${BASE}/dashboard`);
    const session = await auth0.getSession(requestTo('/'));
    expect(session?.user).to.include({ email: USER.email });
    expect(session?.tokenSet.refreshToken).to.be.a('string');
    expect(await (await visit('/auth/profile')).response.json()).to.include({ email: USER.email });
    const out = await visit('/auth/logout');
    expect(out.location).to.include(`${server.url}/oidc/logout?`);
    const left = await follow(browser, await browser.get(out.location), server.url);
    expect(left.location).to.equal(`${BASE}/`);
    expect(await auth0.getSession(requestTo('/'))).to.equal(null);
    expect((await visit('/auth/profile')).status).to.equal(401);
  });

  it('renews tokens, and gets tokens for other APIs with the same refresh token: getAccessToken, /auth/access-token', async () => {
    const { auth0, requestTo, keep, visit, login } = open();
    await login();
    const response = NextResponse.next();
    const { token } = await auth0.getAccessToken(requestTo('/'), response, { audience: API, refresh: true });
    keep(response);
    expect([payload(token).aud].flat()).to.include(API);
    const { response: answered } = await visit('/auth/access-token');
    expect((await answered.json()) as object).to.include.keys('token', 'expires_at');
  });

  it('rejects a callback that it did not request', async () => {
    const { visit } = open();
    const { status } = await visit('/auth/callback?code=x&state=y');
    expect(status).to.be.within(400, 500);
  });

  it('connects an account, lists it, gets its token and removes it: /auth/connect, getConnectedAccounts, getAccessTokenForConnection, disconnectAccount', async () => {
    const { auth0, browser, requestTo, keep, visit, login } = open();
    await login();
    const begun = await visit('/auth/connect?connection=drive&scopes=files.read&returnTo=/files');
    expect(begun.location).to.include(`${server.url}/connected-accounts/connect?ticket=`);
    const away = await browser.get(begun.location);
    const gone = await fetch(away.location, { redirect: 'manual' });
    const back = await browser.get(gone.headers.get('location') ?? '');
    const done = await visit(back.location);
    expect(done.location, await done.response.text()).to.equal(`${BASE}/files`);
    const response = NextResponse.next();
    const [made] = await auth0.getConnectedAccounts(requestTo('/'), response);
    keep(response);
    expect(made).to.include({ connection: 'drive' });
    const upstream = await auth0.getAccessTokenForConnection(
      { connection: 'drive' },
      requestTo('/'),
      NextResponse.next(),
    );
    expect(upstream.token).to.match(/^token-/);
    await auth0.disconnectAccount({ connection: 'drive' }, requestTo('/'), NextResponse.next());
    expect(await auth0.getConnectedAccounts(requestTo('/'), NextResponse.next())).to.deep.equal([]);
    expect((await visit('/auth/connect?connection=nowhere')).status).to.equal(400);
  });

  it('hands a session over to an actor: requestSessionTransferToken, buildSessionTransferRedirect', async () => {
    const { auth0, requestTo, login } = open();
    await login();
    const request = { subjectTokenType: DESK, reason: 'ticket 7' };
    const refused = await auth0
      .requestSessionTransferToken(requestTo('/'), NextResponse.next(), {
        ...request,
        subjectToken: 'nobody',
      })
      .catch((thrown: { code: string }) => thrown.code);
    expect(refused).to.equal('exchange_failed');
    const customer =
      (await server.users.findInConnection({ name: 'users' }, 'staff@example.test')) ??
      (await server.users.findInConnection({ name: 'staff' }, 'staff@example.test'));
    const result = await auth0.requestSessionTransferToken(requestTo('/'), NextResponse.next(), {
      ...request,
      subjectToken: customer?.id ?? '',
    });
    const redirect = auth0.buildSessionTransferRedirect(`${BASE}/auth/login`, result);
    const target = open('shown');
    const { pathname, search } = new URL(redirect.headers.get('location'));
    const { location } = await target.visit(`${pathname}${search}`);
    const back = await follow(target.browser, await target.browser.get(location), server.url);
    await target.visit(back.location);
    const agent = (await auth0.getSession(requestTo('/'))).user.sub;
    const session = await target.auth0.getSession(target.requestTo('/'));
    expect(session?.user).to.deep.include({ sub: customer?.id, act: { sub: agent, reason: 'ticket 7' } });
    expect(session?.tokenSet.refreshToken).to.equal(undefined);
  });

  it('signs up, logs in and adds another passkey: /auth/passkey/register, challenge, get-token, enrollment-challenge, enrollment-verify', async () => {
    const first = open();
    const post = async ({ visit }: typeof first, path: string, json: object, status = 200) => {
      const { response } = await visit(`/auth/passkey/${path}`, json);
      const text = await response.text();
      expect(response.status, text).to.equal(status);
      return JSON.parse(text);
    };
    const key = softwareKey();
    const email = 'next-key@example.test';
    const asked = await post(first, 'register', { email, name: 'Ada', connection: 'keys' });
    const made = {
      authSession: asked.authSession,
      authResponse: key.create(asked.authnParamsPublicKey, BASE),
    };
    await post(first, 'get-token', { ...made, connection: 'keys' });
    expect((await first.auth0.getSession(first.requestTo('/')))?.user).to.include({ email, name: 'Ada' });
    await post(first, 'get-token', { ...made, connection: 'keys' }, 403);

    await post(first, 'enrollment-challenge', { userIdentityId: 'nobody' }, 400);
    const { sub } = (await first.auth0.getSession(first.requestTo('/'))).user;
    const begun = await post(first, 'enrollment-challenge', { userIdentityId: sub.split('|')[1] });
    const another = softwareKey();
    const kept = await post(first, 'enrollment-verify', {
      authenticationMethodId: begun.authenticationMethodId,
      authSession: begun.authSession,
      authResponse: another.create(begun.authnParamsPublicKey, BASE),
    });
    expect(kept).to.include({ type: 'passkey' });

    const second = open();
    const challenge = await post(second, 'challenge', { connection: 'keys' });
    const { authSession } = challenge;
    const answered = another.get(challenge.authnParamsPublicKey, BASE);
    await post(second, 'get-token', { authSession, authResponse: answered, connection: 'keys' });
    expect((await second.auth0.getSession(second.requestTo('/')))?.user).to.include({ email });
  });

  it('logs in by a code by e-mail: /auth/passwordless/start, /auth/passwordless/verify', async () => {
    const { auth0, requestTo, visit } = open();
    const email = 'next-code@example.test';
    const started = await visit('/auth/passwordless/start', { connection: 'email', email, send: 'code' });
    expect(started.status, await started.response.text()).to.equal(204);
    const code = /\b\d{6}\b/.exec((await nextMessageTo(server, email)).text)?.[0];
    const wrong = { connection: 'email', email, verificationCode: '000000' };
    expect((await visit('/auth/passwordless/verify', wrong)).status).to.equal(403);
    const right = await visit('/auth/passwordless/verify', {
      connection: 'email',
      email,
      verificationCode: code,
    });
    expect(right.status).to.equal(200);
    expect((await auth0.getSession(requestTo('/')))?.user).to.include({ email });
  });

  it('logs in by a code to a phone number: /auth/passwordless/otp/challenge, /auth/passwordless/otp/token', async () => {
    const { auth0, requestTo, visit } = open();
    const phoneNumber = '+14155557001';
    const asked = { phoneNumber, connection: 'phones', allowSignup: true, deliveryMethod: 'text' };
    const begun = await visit('/auth/passwordless/otp/challenge', asked);
    const { authSession } = (await begun.response.json()) as { authSession: string };
    const { code: otp = '' } = await nextMessageTo(server, phoneNumber);
    const wrong = { authSession, otp: otp === '123456' ? '654321' : '123456' };
    const refused = await visit('/auth/passwordless/otp/token', wrong);
    expect(refused.status).to.equal(400);
    expect(await refused.response.json()).to.include({ error: 'invalid_grant' });
    expect((await visit('/auth/passwordless/otp/token', { authSession, otp })).status).to.equal(200);
    const session = await auth0.getSession(requestTo('/'));
    expect(session?.tokenSet.accessToken).to.be.a('string');
    expect(await server.users.get(session?.user.sub)).to.include({
      phone_number: phoneNumber,
      phone_verified: true,
    });
  });
});
