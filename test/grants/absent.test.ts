// Logins in which nobody was there. What a handed-over session, an exchanged token or a device got is enough to use
// applications, and for nothing that only the user may do.
import { expect } from 'chai';
import { SCOPES } from '../account/tenant.ts';
import { codeOf } from '../factors/tenant.ts';
import { callsWith, managementToken, startManaged } from '../management/support.ts';
import { type Agent, type Answer, createAgent, readForm } from '../support/agent.ts';
import {
  authorize,
  tenant as base,
  follow,
  payload,
  responseOf,
  submitLogin,
  token,
  USER,
} from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { tenantWith } from '../support/tenant.ts';
import { CIBA_GRANT, DEVICE_GRANT, callsOf as devicesOf } from './tenant.ts';

const CALLBACK = 'https://site.example.test/callback';
const SECRET = { client_secret: 'site-secret' };
const TAKES = { allowed_authentication_methods: ['query', 'cookie'], allow_refresh_token: true };

const web = (client_id: string, more: object = {}) => ({
  client_id,
  name: client_id,
  app_type: 'regular_web',
  token_endpoint_auth_method: 'client_secret_post',
  ...SECRET,
  callbacks: [CALLBACK],
  grant_types: ['authorization_code', 'refresh_token'],
  session_transfer: TAKES,
  ...more,
});
const CLIENTS = [
  {
    client_id: 'app',
    name: 'app',
    app_type: 'native',
    token_endpoint_auth_method: 'none',
    grant_types: ['password', 'refresh_token'],
    session_transfer: { can_create_session_transfer_token: true },
  },
  web('site'),
  web('bank', { grant_types: [CIBA_GRANT] }),
  {
    client_id: 'tv',
    name: 'tv',
    app_type: 'native',
    token_endpoint_auth_method: 'none',
    grant_types: [DEVICE_GRANT],
  },
  web('stranger', { is_first_party: false, third_party_security_mode: 'permissive' }),
];
const tenant = tenantWith({
  add: { clients: [...CLIENTS] },
  enable: [...CLIENTS.map(({ client_id }) => client_id)],
  tenant: { ...base.tenant, account_page: { client_id: 'site' } },
  guardianFactors: [{ name: 'otp', enabled: true }],
  clientGrants: [
    {
      client_id: 'site',
      audience: 'https://elsewhere.example.test/me/',
      subject_type: 'user',
      scope: SCOPES,
    },
  ],
});

describe('a login in which nobody was there', () => {
  let server: TestServer;
  before(async () => {
    server = await startManaged(tenant);
  });
  after(() => server.stop());

  const devices = devicesOf(() => server);
  const audience = () => `urn:${new URL(server.url).host}:session_transfer`;
  /** A session transfer token, got with the refresh token of a login of this moment. */
  const handed = async (): Promise<string> => {
    const { email: username, password } = USER;
    const login = { grant_type: 'password', client_id: 'app', username, password };
    const { refresh_token } = (
      await token(createAgent(server), { ...login, scope: 'openid offline_access' })
    ).json();
    const exchange = { grant_type: 'refresh_token', client_id: 'app', refresh_token, audience: audience() };
    const answer = await token(createAgent(server), exchange);
    expect(answer.status, answer.text).to.equal(200);
    return answer.json().access_token;
  };
  const open = async (agent: Agent, client_id: string, more: Record<string, string> = {}) => {
    const asked = { client_id, response_type: 'code', redirect_uri: CALLBACK, scope: 'openid', state: 's' };
    return follow(agent, await authorize(agent, { ...asked, ...more }), server.url);
  };
  const tokens = async (answer: Parameters<typeof responseOf>[0]) => {
    const { code } = responseOf(answer);
    const grant = { grant_type: 'authorization_code', client_id: 'site', ...SECRET, redirect_uri: CALLBACK };
    const got = await token(createAgent(server), { ...grant, code });
    expect(got.status, got.text).to.equal(200);
    return got.json() as { access_token: string; refresh_token?: string };
  };
  const me = (bearer: string, path: string, json?: object, method?: string) =>
    createAgent(server).request(`/me/v1/${path}`, {
      ...(json && { json }),
      ...(method && { method }),
      headers: { authorization: `Bearer ${bearer}` },
    });
  const isAsked = ({ text }: { text: string }) => text.includes('name="password"');
  const ACCOUNT_API = () => ({ audience: `${server.issuer}me/`, scope: `openid ${SCOPES.join(' ')}` });

  const changes = async (bearer: string) => {
    const answers = [
      await me(bearer, 'authentication-methods', { type: 'password' }),
      await me(bearer, 'authentication-methods', { type: 'totp' }),
      await me(bearer, 'authentication-methods', { type: 'passkey' }),
      await me(bearer, 'authentication-methods/passkey%7Cnone', { name: 'Mine' }, 'PATCH'),
      await me(bearer, 'authentication-methods/totp%7Cnone', undefined, 'DELETE'),
    ];
    return answers.map((answer) => [answer.status, answer.json().max_age]);
  };
  const REFUSED = Array.from({ length: 5 }, () => [401, 600]);

  it('changes nothing by the My Account API when its session was handed over, also after a refresh', async () => {
    const agent = createAgent(server);
    const scope = `${ACCOUNT_API().scope} offline_access`;
    const page = await open(agent, 'site', {
      ...ACCOUNT_API(),
      scope,
      session_transfer_token: await handed(),
    });
    const { access_token, refresh_token } = await tokens(page);
    expect((await me(access_token, 'authentication-methods')).status).to.equal(200);
    expect(await changes(access_token)).to.deep.equal(REFUSED);
    const refresh = { grant_type: 'refresh_token', client_id: 'site', ...SECRET, refresh_token };
    const refreshed = (await token(createAgent(server), refresh)).json().access_token;
    expect(await changes(refreshed)).to.deep.equal(REFUSED);
    expect(payload(access_token)).to.include({ presence: 'absent' }).and.not.to.have.property('auth_time');
  });

  it('is asked for a login by the max_age of the step-up, and then changes what the user may change', async () => {
    const agent = createAgent(server);
    expect(
      responseOf(await open(agent, 'site', { session_transfer_token: await handed() })),
    ).to.have.property('code');
    const page = await open(agent, 'site', { ...ACCOUNT_API(), max_age: '600' });
    expect(isAsked(page)).to.equal(true);
    const { access_token } = await tokens(await submitLogin(agent, server, page));
    expect(payload(access_token)).to.include({ presence: 'present' });
    const begun = await me(access_token, 'authentication-methods', { type: 'totp' });
    expect(begun.status, begun.text).to.equal(201);
  });

  it('does not open the account page, which asks for a login', async () => {
    const agent = createAgent(server);
    await open(agent, 'site', { session_transfer_token: await handed() });
    const page = await follow(agent, await agent.get('/account/security'), server.url);
    expect(isAsked(page)).to.equal(true);
    const opened = await follow(agent, await submitLogin(agent, server, page), server.url);
    expect([opened.status, isAsked(opened)]).to.deep.equal([200, false]);
  });

  it('consents to nothing for a third party: the user has to log in, by the session and by the request itself', async () => {
    const agent = createAgent(server);
    await open(agent, 'site', { session_transfer_token: await handed() });
    const later = await open(agent, 'stranger');
    expect(isAsked(later)).to.equal(true);
    const first = await open(createAgent(server), 'stranger', { session_transfer_token: await handed() });
    expect(isAsked(first)).to.equal(true);
    const consent = await follow(agent, await submitLogin(agent, server, later), server.url);
    expect(isAsked(consent)).to.equal(false);
    expect(consent.text).to.include('/consent');
  });

  it('gets consent_required or login_required where the user cannot be asked', async () => {
    const agent = createAgent(server);
    await open(agent, 'site', { session_transfer_token: await handed() });
    expect(responseOf(await open(agent, 'stranger', { prompt: 'none' })).error).to.equal('login_required');
  });

  it('allows no device and no approval: their pages ask for a login', async () => {
    const agent = createAgent(server);
    await open(agent, 'site', { session_transfer_token: await handed() });
    const { user_code } = (await devices.begin({ scope: 'openid' })).json();
    expect(isAsked(await devices.decide(agent, await devices.open(agent, user_code)))).to.equal(true);
    const approval = await agent.get('/approval?client_id=bank');
    expect(isAsked(await follow(agent, approval, server.url))).to.equal(true);
  });

  it('says so in what a silent request gets', async () => {
    const agent = createAgent(server);
    await open(agent, 'site', { session_transfer_token: await handed() });
    const answer = await open(agent, 'site', { prompt: 'none', ...ACCOUNT_API() });
    expect(payload((await tokens(answer)).access_token)).to.include({ presence: 'absent' });
  });

  it('enrolls no second factor by the MFA API, by which a login enrolls only for ten minutes', async () => {
    const mfa = { audience: `${server.issuer}mfa/`, scope: 'openid enroll remove:authenticators' };
    const enroll = async (bearer: string) => {
      const headers = { authorization: `Bearer ${bearer}` };
      const json = { authenticator_types: ['otp'] };
      const answer = await createAgent(server).request('/mfa/associate', { json, headers });
      return [answer.status, answer.json().error];
    };
    const REFUSAL = [401, 'insufficient_user_authentication'];
    const agent = createAgent(server);
    const absent = await tokens(
      await open(agent, 'site', { ...mfa, session_transfer_token: await handed() }),
    );
    expect(await enroll(absent.access_token)).to.deep.equal(REFUSAL);
    const page = await open(agent, 'site', { ...mfa, prompt: 'login' });
    const { access_token } = await tokens(await submitLogin(agent, server, page));
    expect(await enroll(access_token)).to.deep.equal([200, undefined]);
    server.tick(601_000);
    const later = await tokens(await open(agent, 'site', mfa));
    expect(await enroll(later.access_token)).to.deep.equal(REFUSAL);
  });

  it('is not made up for by a second factor alone, but by a login with it', async () => {
    const call = callsWith(server, await managementToken(server));
    const id = (await server.users.findInConnection({ name: 'users' }, USER.email))?.id ?? '';
    const path = `/users/${encodeURIComponent(id)}/authentication-methods`;
    const secret = 'JBSWY3DPEHPK3PXP';
    const added = await call('POST', path, { type: 'totp', name: 'app', totp_secret: secret });
    expect(added.status, added.text).to.equal(201);
    /** Gives the second factor on its page, with the code of the next half minute each time. */
    let step = 0;
    const give = async (agent: Agent, page: Answer) => {
      const { action, fields } = readForm(page, 'code');
      const code = codeOf(secret, Date.now() + step++ * 30_000);
      return follow(agent, await agent.request(action, { form: { ...fields, code } }), server.url);
    };
    const agent = createAgent(server);
    await open(agent, 'site', { session_transfer_token: await handed() });
    const absent = await tokens(await give(agent, await open(agent, 'site', ACCOUNT_API())));
    expect(payload(absent.access_token)).to.include({ presence: 'absent' });
    expect(payload(absent.access_token).amr).to.include('mfa');
    expect(await changes(absent.access_token)).to.deep.equal(REFUSED);
    const page = await open(agent, 'site', { ...ACCOUNT_API(), max_age: '600' });
    expect(isAsked(page)).to.equal(true);
    const present = await tokens(await give(agent, await submitLogin(agent, server, page)));
    expect(payload(present.access_token)).to.include({ presence: 'present' });
    await call('DELETE', path);
  });
});
