// A change in the store takes effect with the next request, without a restart: one test for each kind of record.
import { expect } from 'chai';
import { createLocalJWKSet, type JSONWebKeySet, jwtVerify } from 'jose';
import { rotateSigningKeys } from '../../src/capabilities/signing/signing-key-list.ts';
import type { Frozen } from '../../src/records/base/record.ts';
import type { CollectionName, Records } from '../../src/records/collections.ts';
import { type Answer, createAgent, readForm } from '../support/agent.ts';
import {
  API,
  authorize,
  follow,
  header,
  logIn,
  PASSWORD_REQUEST,
  payload,
  pkce,
  responseOf,
  spaRequest,
  spaTokens,
  tenant,
  token,
  USER,
  WEB_CALLBACK,
  webRequest,
} from '../support/flows.ts';
import { messagesTo, nextMessageTo } from '../support/inbox.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { startMailServer } from '../support/smtp.ts';

const passwordless = {
  ...tenant,
  connections: [{ name: 'email', strategy: 'email', enabled_clients: ['web'] }],
};

describe('the next request sees a change of', () => {
  let server: TestServer;

  beforeEach(async () => {
    server = await startServer({ tenant: passwordless });
  });
  afterEach(() => server.stop());

  const agent = () => createAgent(server);
  const update = async <N extends CollectionName>(
    name: N,
    id: string,
    change: (record: Frozen<Records[N]>) => object,
  ): Promise<void> => {
    const changed = await server.store
      .collection(name)
      .update(id, (record) => ({ ...record, ...change(record) }) as Records[N]);
    expect(changed, `${name} ${id}`).not.to.equal(undefined);
  };
  const settings = (change: (tenant: Frozen<Records['tenant']>) => object) =>
    update('tenant', 'tenant', change);
  const idOf = async (
    name: 'connections' | 'resourceServers' | 'clientGrants',
    at: (record: any) => boolean,
  ) => (await server.store.collection(name).list()).records.find(at)?.id ?? ''; // any: of three kinds
  const machine = (over: Record<string, string> = {}) =>
    token(agent(), {
      grant_type: 'client_credentials',
      client_id: 'm2m',
      client_secret: 'm2m-secret',
      audience: API,
      ...over,
    });
  const password = (over: Record<string, string | undefined> = {}) =>
    token(agent(), {
      ...PASSWORD_REQUEST,
      scope: 'openid',
      ...over,
    });
  const loginPage = async () => {
    const browser = agent();
    return follow(browser, await authorize(browser, webRequest()), server.url);
  };
  const keySet = async () => (await agent().get('/.well-known/jwks.json')).json() as JSONWebKeySet;
  const start = () =>
    agent().request('/passwordless/start', {
      json: {
        client_id: 'web',
        client_secret: 'web-secret',
        connection: 'email',
        email: 'bo@example.test',
        send: 'code',
      },
    });

  it('applications that are added and removed', async () => {
    const asAnother = () => machine({ client_id: 'another' });
    expect((await asAnother()).status).to.equal(401);
    const m2m = await server.store.collection('clients').get('m2m');
    await server.store.collection('clients').insert({ ...m2m!, id: 'another', client_id: 'another' });
    await server.store
      .collection('clientGrants')
      .insert({ id: 'cgr_another', client_id: 'another', audience: API, scope: ['read:things'] });
    expect((await asAnother()).status).to.equal(200);
    await server.store.collection('clients').delete('another');
    expect((await asAnother()).status).to.equal(401);
  });

  it("an application's callbacks", async () => {
    const redirect_uri = 'https://new.example.test/callback';
    const request = () => authorize(agent(), webRequest({ redirect_uri }));
    expect((await request()).status).to.equal(400);
    await update('clients', 'web', () => ({ callbacks: [WEB_CALLBACK, redirect_uri] }));
    expect((await request()).status).to.equal(302);
    await update('clients', 'web', () => ({ callbacks: [WEB_CALLBACK] }));
    expect((await request()).status).to.equal(400);
  });

  it("an application's secret", async () => {
    expect((await machine()).status).to.equal(200);
    await update('clients', 'm2m', () => ({ client_secret: 'another-secret' }));
    expect((await machine()).status).to.equal(401);
    expect((await machine({ client_secret: 'another-secret' })).status).to.equal(200);
  });

  it("an application's grant types", async () => {
    await update('clients', 'web', () => ({ grant_types: ['authorization_code'] }));
    expect((await password()).json().error).to.equal('unauthorized_client');
  });

  it('the origins of applications, at endpoints for browsers', async () => {
    const origin = 'https://pages.example.test';
    const allowed = async () =>
      (await agent().request('/oauth/token', { form: {}, headers: { origin } })).headers[
        'access-control-allow-origin'
      ];
    expect(await allowed()).to.equal(undefined);
    await update('clients', 'spa', () => ({ web_origins: [origin] }));
    expect(await allowed()).to.equal(origin);
    await update('clients', 'spa', () => ({ web_origins: [] }));
    expect(await allowed()).to.equal(undefined);
  });

  it('token lifetimes of an API and of an application', async () => {
    const api = await idOf('resourceServers', ({ identifier }) => identifier === API);
    await update('resourceServers', api, () => ({ token_lifetime: 77 }));
    expect((await machine()).json().expires_in).to.equal(77);
    await update('clients', 'web', () => ({ jwt_configuration: { alg: 'RS256', lifetime_in_seconds: 88 } }));
    const { exp, iat } = payload((await password()).json().id_token);
    expect(exp - iat).to.equal(88);
  });

  it('the scopes of an API, and the scopes granted to an application', async () => {
    const grant = await idOf('clientGrants', ({ client_id }) => client_id === 'm2m');
    await update('clientGrants', grant, () => ({ scope: ['read:things', 'write:things'] }));
    expect((await machine()).json().scope).to.equal('read:things write:things');
    await server.store.collection('clientGrants').delete(grant);
    expect((await machine()).json().error).to.equal('access_denied');
    const api = await idOf('resourceServers', ({ identifier }) => identifier === API);
    await server.store.collection('resourceServers').delete(api);
    expect((await machine()).json().error_description).to.contain(API);
  });

  it('the connections on the login page, and those that log users in', async () => {
    expect((await loginPage()).text).to.contain('name="password"');
    expect((await password()).status).to.equal(200);
    for (const { id } of (await server.store.collection('connections').list()).records)
      await update('connections', id, ({ name }) => (name === 'email' ? {} : { enabled_clients: [] }));
    expect((await loginPage()).text).not.to.contain('name="password"');
    expect((await password()).status).to.be.within(400, 403);
  });

  it('an organization', async () => {
    const parameters = () => authorize(agent(), webRequest({ organization: 'org_new', prompt: 'none' }));
    await update('clients', 'web', () => ({ organization_usage: 'allow' }));
    expect(responseOf(await parameters()).error).to.equal('invalid_request');
    await server.store
      .collection('organizations')
      .insert({ id: 'org_new', name: 'new', display_name: 'New' } as Records['organizations']);
    expect(responseOf(await parameters()).error).to.equal('login_required');
  });

  it('the limits', async () => {
    await settings(() => ({
      attackProtection: { rateLimits: { passwordlessDestination: { capacity: 1, perMinute: 1 } } },
    }));
    expect((await start()).status).to.equal(200);
    expect((await start()).status).to.equal(429);
  });

  it('the second factors, and the policy that requires them', async () => {
    expect((await password()).status).to.equal(200);
    await settings(() => ({
      guardianFactors: [{ name: 'otp', enabled: true }],
      guardianPolicies: ['all-applications'],
    }));
    expect((await password()).json()).to.include({ error: 'mfa_required' });
    await settings(() => ({ guardianPolicies: [] }));
    expect((await password()).status).to.equal(200);
  });

  it('the message templates', async () => {
    const email = await idOf('connections', ({ name }) => name === 'email');
    await update('connections', email, () => ({ options: { email: { subject: 'Now: {{ code }}' } } }));
    await start();
    expect((await nextMessageTo(server, 'bo@example.test')).subject).to.match(/^Now: \d+$/);
    await settings(() => ({
      emailTemplates: [{ template: 'reset_email', enabled: true, subject: 'Anew', from: '', body: 'x' }],
    }));
    await agent().request('/dbconnections/change_password', {
      json: { client_id: 'web', email: USER.email, connection: 'users' },
    });
    expect((await nextMessageTo(server, USER.email)).subject).to.equal('Anew');
  });

  it('the mail server', async () => {
    const smtp = await startMailServer();
    try {
      await settings(() => ({
        emailProvider: {
          name: 'smtp',
          enabled: true,
          default_from_address: 'now@example.test',
          credentials: { smtp_host: '127.0.0.1', smtp_port: smtp.port },
        },
      }));
      expect((await start()).status).to.equal(200);
      expect(smtp.recipients).to.deep.equal(['bo@example.test']);
      expect(smtp.messages[0]?.from?.address).to.equal('now@example.test');
      await settings(() => ({ emailProvider: undefined }));
      expect(await messagesTo(server, 'bo@example.test')).to.deep.equal([]);
      await start();
      expect(smtp.recipients).to.have.length(1);
      expect(await messagesTo(server, 'bo@example.test')).to.have.length(1);
    } finally {
      await smtp.stop();
    }
  });

  it('session lifetimes', async () => {
    const browser = agent();
    await logIn(browser, server, webRequest());
    const silently = async (): Promise<Answer> => authorize(browser, webRequest({ prompt: 'none' }));
    expect(responseOf(await silently())).to.have.property('code');
    await settings(({ tenant: { ...rest } }) => ({ tenant: { ...rest, session_lifetime: 1 } }));
    server.tick(2 * 3_600_000);
    expect(responseOf(await silently()).error).to.equal('login_required');
  });

  it('the name of the tenant and the default API', async () => {
    await settings(({ tenant: { ...rest } }) => ({
      tenant: { ...rest, friendly_name: 'Renamed', default_audience: API },
    }));
    expect((await loginPage()).text).to.contain('Renamed');
    expect(payload((await password()).json().access_token).aud).to.include(API);
  });

  it('the logout metadata in discovery', async () => {
    const discovered = async () => (await agent().get('/.well-known/openid-configuration')).json();
    expect(await discovered()).to.have.property('end_session_endpoint', `${server.url}/oidc/logout`);
    await settings(({ tenant: { ...rest } }) => ({
      tenant: { ...rest, oidc_logout: { rp_logout_end_session_endpoint_discovery: false } },
    }));
    expect(await discovered()).not.to.have.property('end_session_endpoint');
    expect(await discovered()).to.have.property('backchannel_logout_supported', true);
  });

  it('the vendor host in grant types', async () => {
    const { vendor_host: before } = (await server.store.collection('tenant').get('tenant'))!;
    const realm = (host: string) => `http://${host}/oauth/grant-type/password-realm`;
    const inRealm = (host: string) => password({ grant_type: realm(host), realm: 'users' });
    const supported = async () =>
      (await agent().get('/.well-known/openid-configuration')).json().grant_types_supported;
    expect((await inRealm(before)).status).to.equal(200);
    await settings(() => ({ vendor_host: 'login.example.test' }));
    expect((await inRealm('login.example.test')).status).to.equal(200);
    expect((await inRealm(before)).json().error).to.equal('unauthorized_client');
    expect(await supported())
      .to.include(realm('login.example.test'))
      .and.not.include(realm(before));
    await settings(() => ({ vendor_host: before }));
    expect((await inRealm(before)).status).to.equal(200);
    expect((await inRealm('login.example.test')).json().error).to.equal('unauthorized_client');
  });

  describe('the signing keys:', () => {
    const profile = (accessToken: string) =>
      agent().get('/userinfo', { authorization: `Bearer ${accessToken}` });
    const hinted = async (idToken: string) =>
      (
        await agent().get(
          `/oidc/logout?${new URLSearchParams({ id_token_hint: idToken, post_logout_redirect_uri: 'https://no.example.test/' })}`,
        )
      ).text;

    it('they sign and verify after a rotation, and the previous key is valid until the next one', async () => {
      const { keys: published } = await keySet();
      const spa = await spaTokens(agent(), server, { audience: API });
      const first = header(spa.id_token).kid;
      expect(published.map(({ kid }) => kid))
        .to.have.length(2)
        .and.include(first);

      const second = (await rotateSigningKeys(server.store, Date.now))[0]?.kid;
      expect(published[1]?.kid).to.equal(second);
      const rotated = await keySet();
      expect(rotated.keys.map(({ kid }) => kid)).to.have.length(3);
      expect(rotated.keys[0]?.kid).to.equal(second);
      expect(rotated.keys[2]?.kid).to.equal(first);
      const after = await spaTokens(agent(), server, { audience: API });
      for (const jwt of [after.id_token, after.access_token, (await machine()).json().access_token]) {
        expect(header(jwt).kid).to.equal(second);
        await jwtVerify(jwt, createLocalJWKSet(rotated));
      }
      expect((await profile(spa.access_token)).status).to.equal(200);
      expect((await profile(after.access_token)).status).to.equal(200);

      const third = (await rotateSigningKeys(server.store, Date.now))[0]?.kid;
      expect((await keySet()).keys.map(({ kid }) => kid))
        .to.include.members([second, third])
        .and.not.include(first);
      expect((await profile(spa.access_token)).status).to.equal(401);
      expect((await profile(after.access_token)).status).to.equal(200);
      expect(await hinted(spa.id_token)).to.not.equal(await hinted(after.id_token));
    });

    it('there is always one during rotations', async () => {
      let done = false;
      const rotation = rotateSigningKeys(server.store, Date.now).finally(() => {
        done = true;
      });
      const statuses = new Set<number>();
      while (!done) statuses.add((await machine()).status);
      await rotation;
      expect([...statuses]).to.deep.equal([200]);
    });
  });

  it('an application that is removed while an authorization request waits for its user', async () => {
    const submit = async (remove: () => Promise<unknown>): Promise<Answer> => {
      const browser = agent();
      const { challenge } = pkce();
      const page = await follow(browser, await authorize(browser, spaRequest(challenge)), server.url);
      expect(page.status).to.equal(200);
      await remove();
      const { action, fields } = readForm(page, 'password');
      return browser.request(action, { form: { ...fields, username: USER.email, password: USER.password } });
    };
    expect((await submit(async () => {})).status, 'as long as it is there').to.be.within(302, 303);
    const removed = await submit(() => server.store.collection('clients').delete('spa'));
    expect(removed.status).to.be.within(400, 403);
    expect(removed.text).not.to.contain('form_expired');
  });
});
