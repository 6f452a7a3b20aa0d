// Members that `gatehouse move check` calls in force: each has an effect at a server that has it from a tenant of the deploy tool.
import { inflateRawSync } from 'node:zlib';
import { expect } from 'chai';
import { membershipId } from '../../src/records/users/organizations.ts';
import { makeCertificate } from '../saml/support.ts';
import { createAgent } from '../support/agent.ts';
import {
  API,
  authorize,
  tenant as base,
  follow,
  header,
  logIn,
  payload,
  responseOf,
  token,
  USER,
  WEB_CALLBACK,
  webRequest,
} from '../support/flows.ts';
import { messagesTo, nextMessageTo } from '../support/inbox.ts';
import { prepareReset, resetForm } from '../support/reset.ts';
import { startServer, type TestServer } from '../support/server.ts';

const SECRET = 'a-secret-of-at-least-32-characters!';
const HOUR = 3_600_000;
const REALM_GRANT = 'http://auth0.com/oauth/grant-type/password-realm';
const OTP_GRANT = 'http://auth0.com/oauth/grant-type/passwordless/otp';
const REFRESH = { rotation_type: 'non-rotating', expiration_type: 'non-expiring', leeway: 0 };
const OPTIONAL_PASSWORD = {
  password: { enabled: true, api_behavior: 'optional' },
  email_otp: { enabled: true },
};
const ORIGIN = 'https://app.example.test';

const client = (client_id: string, over: object = {}) => ({
  client_id,
  name: client_id,
  app_type: 'regular_web',
  client_secret: SECRET,
  callbacks: [WEB_CALLBACK],
  grant_types: ['authorization_code', 'implicit', 'refresh_token', 'password', REALM_GRANT, OTP_GRANT],
  is_token_endpoint_ip_header_trusted: true,
  oidc_conformant: true,
  refresh_token: REFRESH,
  ...over,
});
const CLIENTS = [
  client('plain'),
  client('code-alone', { grant_types: ['authorization_code'] }),
  client('ps256', { jwt_configuration: { alg: 'PS256', lifetime_in_seconds: 120 } }),
  client('hs256', { jwt_configuration: { alg: 'HS256' } }),
  client('rotating', { refresh_token: { ...REFRESH, rotation_type: 'rotating', leeway: 0 } }),
  client('with-leeway', { refresh_token: { ...REFRESH, rotation_type: 'rotating', leeway: 30 } }),
  client('idle', {
    refresh_token: {
      ...REFRESH,
      expiration_type: 'expiring',
      token_lifetime: 7200,
      idle_token_lifetime: 3600,
    },
  }),
  client('unlimited', {
    refresh_token: {
      ...REFRESH,
      expiration_type: 'expiring',
      token_lifetime: 7200,
      idle_token_lifetime: 3600,
      infinite_token_lifetime: true,
      infinite_idle_token_lifetime: true,
    },
  }),
  client('denying', { organization_usage: 'deny' }),
  client('allowing', { organization_usage: 'allow' }),
  client('requiring', { organization_usage: 'require' }),
  client('cross-origin', { cross_origin_authentication: true, allowed_origins: [ORIGIN] }),
  client('same-origin', { cross_origin_authentication: false, allowed_origins: [ORIGIN] }),
  client('older', { oidc_conformant: false }),
  client('alone', { sso_disabled: true }),
  client('pushing', { require_pushed_authorization_requests: true }),
  client('untrusted', { is_token_endpoint_ip_header_trusted: false }),
  client('third', { is_first_party: false, third_party_security_mode: 'permissive' }),
  client('device', {
    app_type: 'native',
    token_endpoint_auth_method: 'none',
    grant_types: ['urn:ietf:params:oauth:grant-type:device_code'],
  }),
  client('machine', { app_type: 'non_interactive', grant_types: ['client_credentials'] }),
];
const database = (name: string, options: object) => ({
  name,
  enabled_clients: CLIENTS.map(({ client_id }) => client_id),
  options: { passwordPolicy: 'none', ...options },
});
const api = (identifier: string, over: object) => ({
  name: identifier,
  identifier,
  scopes: [{ value: 'read' }],
  allow_offline_access: true,
  ...over,
});

const tenant = {
  ...base,
  tenant: {
    ...base.tenant,
    session_lifetime: 2,
    idle_session_lifetime: 1,
    default_audience: 'urn:default',
    device_flow: { charset: 'digits', mask: '***-***-***' },
    flags: {
      enable_public_signup_user_exists_error: true,
      enable_sso: false,
      use_scope_descriptions_for_consent: false,
      enable_idtoken_api2: true,
      change_pwd_flow_v1: true,
    },
  },
  attackProtection: {
    ...base.attackProtection,
    bruteForceProtection: { max_attempts: 3, allowlist: ['203.0.113.0/24'] },
    suspiciousIpThrottling: {
      allowlist: ['203.0.113.0/24'],
      stage: {
        'pre-login': { max_attempts: 4, rate: 3_600_000 },
        'pre-user-registration': { max_attempts: 1_000, rate: 1_000 },
      },
    },
  },
  clients: CLIENTS,
  guardianFactors: [{ name: 'otp', enabled: true }],
  guardianPolicies: { policies: [] },
  connections: ['email', 'sms']
    .map((strategy) => ({
      name: strategy,
      strategy,
      enabled_clients: CLIENTS.map(({ client_id }) => client_id),
      options: { disable_signup: strategy === 'email' },
    }))
    .concat([
      {
        name: 'upstream',
        strategy: 'oidc',
        enabled_clients: ['plain'],
        options: {
          type: 'back_channel',
          client_id: 'gatehouse',
          client_secret: SECRET,
          scope: 'openid email',
          issuer: 'https://idp.example.test',
          authorization_endpoint: 'https://idp.example.test/authorize',
          token_endpoint: 'https://idp.example.test/token',
          jwks_uri: 'https://idp.example.test/keys',
          attribute_map: { mapping_mode: 'basic_profile', userinfo_scope: 'of-userinfo' },
          upstream_params: { ui_locales: { alias: 'ui_locales' }, acr_values: { value: 'high' } },
        },
      } as never,
    ]),
  databases: [
    database('users', {}),
    database('closed', { disable_signup: true }),
    database('named', { requires_username: true, validation: { username: { min: 5, max: 8 } } }),
    database('low', { passwordPolicy: 'low' }),
    database('fair', { passwordPolicy: 'fair' }),
    database('good', { passwordPolicy: 'good' }),
    database('excellent', { passwordPolicy: 'excellent' }),
    database('long', { password_complexity_options: { min_length: 14 } }),
    database('common', { password_dictionary: { enable: true, dictionary: ['Gatehouse-Example'] } }),
    database('personal', { password_no_personal_info: { enable: true } }),
    database('remembering', { password_history: { enable: true, size: 3 } }),
    database('no-password', { authentication_methods: OPTIONAL_PASSWORD }),
    database('no-mfa', { mfa: { active: false } }),
    database('unlocked', { brute_force_protection: false }),
    database('no-reset', { disable_self_service_change_password: true }),
  ],
  resourceServers: [
    api('urn:default', {}),
    api(API, { token_lifetime: 1200, token_lifetime_for_web: 300 }),
    api('urn:ps256', { signing_alg: 'PS256' }),
    api('urn:hs256', { signing_alg: 'HS256', signing_secret: SECRET }),
    api('urn:described', { scopes: [{ value: 'read:posts', description: 'See what you wrote' }] }),
    api('urn:online', { allow_offline_access: false }),
    api('urn:policies', { enforce_policies: true, token_dialect: 'access_token_authz' }),
  ],
  clientGrants: [
    { client_id: 'machine', audience: API, scope: ['read'] },
    { client_id: 'machine', audience: 'urn:ps256', scope: ['read'], organization_usage: 'deny' },
    {
      client_id: 'machine',
      audience: 'urn:hs256',
      scope: ['read'],
      organization_usage: 'allow',
      allow_any_organization: true,
    },
    {
      client_id: 'machine',
      audience: 'urn:online',
      scope: ['read'],
      organization_usage: 'require',
      allow_any_organization: true,
    },
  ],
  organizations: [
    { id: 'org_acme', name: 'acme', connections: [{ name: 'users', assign_membership_on_login: false }] },
  ],
  users: ['users', 'unlocked', 'remembering', 'no-reset', 'no-mfa'].flatMap((connection) => [
    { ...USER, connection, email_verified: true },
    { email: 'locked@example.test', password: USER.password, connection },
  ]),
};

describe('a member in force', () => {
  let server: TestServer;
  before(async () => {
    const saml = {
      name: 'saml',
      strategy: 'samlp',
      enabled_clients: ['plain'],
      options: {
        signingCert: (await makeCertificate()).certificate,
        signInEndpoint: 'https://saml.example.test/sign-in',
        destinationUrl: 'https://saml.example.test/destination',
        recipientUrl: 'https://proxy.example.test/login/callback',
        protocolBinding: 'urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect',
        signSAMLRequest: false,
      },
    };
    server = await startServer({ tenant: { ...tenant, connections: [...tenant.connections, saml] } });
    const [ada] = await server.store.collection('users').findBy('email', USER.email);
    for (const { id } of await server.store.collection('users').findBy('email', USER.email))
      await server.store
        .collection('memberships')
        .put({ id: membershipId('org_acme', id), organization_id: 'org_acme', user_id: id, roles: [] });
    expect(ada).to.be.an('object');
  });
  after(() => server?.stop());

  const of = (client_id: string) => ({ client_id, client_secret: SECRET });
  const byPassword = async (client_id: string, over: Record<string, string> = {}) => {
    const { from = '203.0.113.1', ...fields } = over;
    const grant = fields.realm === undefined ? 'password' : REALM_GRANT;
    const json = {
      grant_type: grant,
      ...of(client_id),
      username: USER.email,
      password: USER.password,
      ...fields,
    };
    const answer = await createAgent(server).request('/oauth/token', {
      json,
      headers: { 'auth0-forwarded-for': from },
    });
    return { status: answer.status, ...answer.json() } as Record<string, any>; // any: a test reads what it expects, and fails on anything else
  };
  const refresh = async (client_id: string, refresh_token: string) => {
    const answer = await token(createAgent(server), {
      grant_type: 'refresh_token',
      ...of(client_id),
      refresh_token,
    });
    return { status: answer.status, ...answer.json() } as Record<string, any>; // any: as above
  };
  const offline = async (client_id: string) =>
    String((await byPassword(client_id, { audience: API, scope: 'openid offline_access' })).refresh_token);
  const request = (client_id: string, over: Record<string, string> = {}) =>
    webRequest({ client_id, nonce: 'the-nonce', ...over });
  const answerTo = async (
    client_id: string,
    over: Record<string, string> = {},
    agent = createAgent(server),
  ) => responseOf(await authorize(agent, request(client_id, over)));
  let people = 0;
  const signUp = async (connection: string, password: string | undefined, over: object = {}) => {
    const json = {
      client_id: 'plain',
      connection,
      email: `person-${++people}@example.test`,
      password,
      ...over,
    };
    const answer = await createAgent(server).request('/dbconnections/signup', { json });
    return answer.status === 200 ? 'made' : String(answer.json().code ?? answer.json().name);
  };
  const machine = async (audience: string, over: Record<string, string> = {}) => {
    const answer = await token(createAgent(server), {
      grant_type: 'client_credentials',
      ...of('machine'),
      audience,
      ...over,
    });
    return { status: answer.status, ...answer.json() } as Record<string, any>; // any: as above
  };

  /** Each member with what it does, and how that is seen. */
  const EFFECTS: readonly [member: string, does: string, see: () => Promise<void>][] = [
    [
      'tenant.idle_session_lifetime',
      'ends a session that is not used, in hours',
      async () => {
        const agent = createAgent(server);
        await logIn(agent, server, request('plain'));
        server.tick(0.9 * HOUR);
        expect(await answerTo('plain', { prompt: 'none' }, agent)).to.have.property('code');
        server.tick(1.1 * HOUR);
        expect((await answerTo('plain', { prompt: 'none' }, agent)).error).to.equal('login_required');
      },
    ],
    [
      'tenant.session_lifetime',
      'ends a session however often it is used, in hours',
      async () => {
        const agent = createAgent(server);
        await logIn(agent, server, request('plain'));
        for (const _half of [1, 2, 3]) {
          server.tick(0.6 * HOUR);
          expect(await answerTo('plain', { prompt: 'none' }, agent)).to.have.property('code');
        }
        server.tick(0.6 * HOUR);
        expect((await answerTo('plain', { prompt: 'none' }, agent)).error).to.equal('login_required');
      },
    ],
    [
      'attackProtection.bruteForceProtection',
      'blocks after max_attempts, except for the allowlist and where brute_force_protection is off',
      async () => {
        const locked = { username: 'locked@example.test' };
        const tries = async (over: Record<string, string>) => {
          for (const _try of [1, 2, 3])
            expect((await byPassword('plain', { ...locked, ...over, password: 'Wrong' })).status).to.equal(
              403,
            );
          return (await byPassword('plain', { ...locked, ...over })).status;
        };
        expect(await tries({ realm: 'users', from: '198.51.100.1' })).to.equal(429);
        expect(await tries({ realm: 'users', from: '203.0.113.2' })).to.equal(200);
        expect(await tries({ realm: 'unlocked', from: '198.51.100.2' })).to.equal(200);
      },
    ],
    [
      'attackProtection.suspiciousIpThrottling',
      'slows down an address that fails with many accounts, except for the allowlist',
      async () => {
        const fails = async (from: string) => {
          const statuses = [];
          for (const one of [1, 2, 3, 4, 5])
            statuses.push(
              (await byPassword('plain', { username: `nobody-${from}-${one}@example.test`, from })).status,
            );
          return statuses;
        };
        expect(await fails('198.51.100.77')).to.deep.equal([403, 403, 403, 403, 429]);
        expect(await fails('203.0.113.77')).to.deep.equal([403, 403, 403, 403, 403]);
      },
    ],
    [
      'databases.options.passwordPolicy',
      'is the strength that a new password needs',
      async () => {
        const strengths = [
          ['users', 'a', 'made'],
          ['low', 'abcde', 'invalid_password'],
          ['low', 'abcdef', 'made'],
          ['fair', 'abcdefgh', 'invalid_password'],
          ['fair', 'Abcdefg1', 'made'],
          ['good', 'abcdefg1', 'invalid_password'],
          ['good', 'Abcdefg1', 'made'],
          ['excellent', 'Abbbcdefg1!', 'invalid_password'],
          ['excellent', 'Abcdefghi1', 'made'],
        ] as const;
        for (const [connection, password, outcome] of strengths)
          expect(await signUp(connection, password), `${connection} ${password}`).to.equal(outcome);
      },
    ],
    [
      'databases.options.password_complexity_options',
      'is the least length',
      async () => {
        expect(await signUp('long', 'Thirteen-of-i')).to.equal('invalid_password');
        expect(await signUp('long', 'Fourteen-of-it')).to.equal('made');
      },
    ],
    [
      'databases.options.password_dictionary',
      'refuses common words, and those of the tenant',
      async () => {
        for (const word of ['password', 'gatehouse-example'])
          expect(await signUp('common', word)).to.equal('invalid_password');
        expect(await signUp('common', 'nothing-of-the-sort')).to.equal('made');
      },
    ],
    [
      'databases.options.password_no_personal_info',
      'refuses a password with the name in it',
      async () => {
        const email = 'grace.hopper@example.test';
        expect(await signUp('personal', 'my-grace.hopper-1', { email })).to.equal('invalid_password');
        expect(await signUp('personal', 'my-unlike-words-1', { email })).to.equal('made');
      },
    ],
    [
      'databases.options.password_history',
      'refuses a password that was used, when it is reset',
      async () => {
        const reset = async (password: string) => {
          const send = await prepareReset(server, USER.email, 'remembering');
          return (await send(password)).status;
        };
        expect(await reset('Another-Horse-2')).to.equal(200);
        expect(await reset(USER.password)).to.equal(400);
        expect(await reset('Yet-Another-3')).to.equal(200);
      },
    ],
    [
      'databases.options.disable_self_service_change_password',
      'sends no link',
      async () => {
        const email = 'locked@example.test';
        const ask = (connection: string) =>
          createAgent(server).request('/dbconnections/change_password', {
            json: { client_id: 'plain', connection, email },
          });
        await ask('no-reset');
        await ask('unlocked');
        const isReset = ({ link }: { link?: string }) => link?.includes('/u/reset-password?') === true;
        await nextMessageTo(server, email, 1, isReset);
        expect((await messagesTo(server, email)).filter(isReset)).to.have.length(1);
      },
    ],
    [
      'databases.options.disable_signup',
      'refuses sign-ups',
      async () => {
        expect(await signUp('closed', USER.password)).to.not.equal('made');
        expect(await signUp('users', USER.password)).to.equal('made');
      },
    ],
    [
      'connections.options.disable_signup',
      'makes no new user of a passwordless code',
      async () => {
        const by = async (connection: string, name: 'email' | 'phone_number', to: string) => {
          const agent = createAgent(server);
          const start = { ...of('plain'), connection, send: 'code', [name]: to };
          await agent.request('/passwordless/start', { json: start });
          if (connection === 'email') return (await messagesTo(server, to)).length;
          const { code: otp } = await nextMessageTo(server, to, 1, 'code');
          const fields = { grant_type: OTP_GRANT, ...of('plain'), username: to, otp, realm: connection };
          return (await token(agent, fields)).status;
        };
        expect(await by('sms', 'phone_number', '+12025550123')).to.equal(200);
        expect(await by('email', 'email', 'unheard-of@example.test')).to.equal(0);
        expect(
          await server.store.collection('users').findBy('email', 'unheard-of@example.test'),
        ).to.deep.equal([]);
      },
    ],
    [
      'databases.options.authentication_methods.password.api_behavior',
      'is whether users may sign up without a password',
      async () => {
        expect(await signUp('users', undefined)).to.not.equal('made');
        expect(await signUp('no-password', undefined)).to.equal('made');
      },
    ],
    [
      'databases.options.requires_username',
      'demands a user name at sign-up, of the length in validation',
      async () => {
        expect(await signUp('named', USER.password)).to.not.equal('made');
        expect(await signUp('named', USER.password, { username: 'four' })).to.not.equal('made');
        expect(await signUp('named', USER.password, { username: 'ninechars' })).to.not.equal('made');
        expect(await signUp('named', USER.password, { username: 'eightch8' })).to.equal('made');
      },
    ],
    [
      'resourceServers.token_lifetime',
      'is that of access tokens, and token_lifetime_for_web that of those from /authorize',
      async () => {
        const { access_token, expires_in } = await byPassword('plain', {
          audience: API,
          scope: 'openid read',
        });
        expect(expires_in).to.equal(1200);
        const { exp, iat } = payload(access_token);
        expect(exp - iat).to.equal(1200);
        const over = { response_type: 'token', audience: API };
        const answer = responseOf(await logIn(createAgent(server), server, request('plain', over)));
        expect(Number(answer.expires_in)).to.equal(300);
      },
    ],
    [
      'resourceServers.signing_alg',
      'is that of access tokens',
      async () => {
        for (const [audience, alg] of [
          [API, 'RS256'],
          ['urn:ps256', 'PS256'],
          ['urn:hs256', 'HS256'],
        ] as const)
          expect(header((await byPassword('plain', { audience })).access_token).alg).to.equal(alg);
      },
    ],
    [
      'resourceServers.allow_offline_access',
      'is whether there are refresh tokens',
      async () => {
        const scope = 'openid offline_access';
        expect(await byPassword('plain', { audience: API, scope })).to.have.property('refresh_token');
        expect(await byPassword('plain', { audience: 'urn:online', scope })).to.not.have.property(
          'refresh_token',
        );
      },
    ],
    [
      'resourceServers.enforce_policies',
      'grants only the permissions that a user has',
      async () => {
        const scopeAt = async (audience: string) =>
          payload((await byPassword('plain', { audience, scope: 'openid read' })).access_token);
        expect((await scopeAt(API)).scope).to.equal('openid read');
        const { scope, permissions } = await scopeAt('urn:policies');
        expect(scope ?? '').to.not.contain('read');
        expect(permissions).to.deep.equal([]);
      },
    ],
    [
      'tenant.default_audience',
      'is the API of a request that names none',
      async () => {
        const { access_token } = await byPassword('plain');
        expect(payload(access_token).aud).to.include('urn:default');
      },
    ],
    [
      'clients.jwt_configuration',
      'is the algorithm and lifetime of ID tokens',
      async () => {
        const idToken = async (id: string) => String((await byPassword(id, { scope: 'openid' })).id_token);
        expect(header(await idToken('plain')).alg).to.equal('RS256');
        expect(header(await idToken('hs256')).alg).to.equal('HS256');
        const short = await idToken('ps256');
        expect(header(short).alg).to.equal('PS256');
        expect(payload(short).exp - payload(short).iat).to.equal(120);
      },
    ],
    [
      'clients.grant_types',
      'are the grants that are not refused',
      async () => {
        expect(await byPassword('code-alone')).to.include({ status: 403, error: 'unauthorized_client' });
        expect((await answerTo('code-alone', { response_type: 'token' })).error).to.equal(
          'unauthorized_client',
        );
        expect((await byPassword('plain')).status).to.equal(200);
      },
    ],
    [
      'clients.refresh_token.rotation_type',
      'ends a refresh token with its use, after the leeway',
      async () => {
        const twice = async (id: string, ms = 0) => {
          const first = await offline(id);
          expect((await refresh(id, first)).status, id).to.equal(200);
          server.tick(ms);
          return (await refresh(id, first)).status;
        };
        expect(await twice('plain')).to.equal(200);
        expect(await twice('rotating')).to.equal(400);
        expect(await twice('with-leeway', 20_000)).to.equal(200);
        expect(await twice('with-leeway', 40_000)).to.equal(400);
      },
    ],
    [
      'clients.refresh_token.expiration_type',
      'ends refresh tokens by idle_token_lifetime and token_lifetime, unless these are infinite',
      async () => {
        const [unused, used, unlimited] = [
          await offline('idle'),
          await offline('idle'),
          await offline('unlimited'),
        ];
        server.tick(0.9 * HOUR);
        expect((await refresh('idle', used)).status).to.equal(200);
        server.tick(0.9 * HOUR);
        expect((await refresh('idle', unused)).status).to.equal(400);
        expect((await refresh('idle', used)).status).to.equal(200);
        server.tick(0.9 * HOUR);
        expect((await refresh('idle', used)).status).to.equal(400);
        expect((await refresh('unlimited', unlimited)).status).to.equal(200);
      },
    ],
    [
      'clients.organization_usage',
      'denies, allows or requires an organization',
      async () => {
        const page = async (id: string, over = {}) => {
          const agent = createAgent(server);
          const answer = await follow(agent, await authorize(agent, request(id, over)), server.url);
          return answer.status === 200 ? 'page' : responseOf(answer).error;
        };
        const organization = 'org_acme';
        expect(await page('denying', { organization })).to.equal('invalid_request');
        expect(await page('denying')).to.equal('page');
        expect(await page('allowing', { organization })).to.equal('page');
        expect(await page('allowing')).to.equal('page');
        expect(await page('requiring', { organization })).to.equal('page');
        expect(await page('requiring')).to.equal('invalid_request');
      },
    ],
    [
      'clientGrants.organization_usage',
      'denies, allows or requires an organization',
      async () => {
        const organization = 'org_acme';
        expect((await machine('urn:ps256')).status).to.equal(200);
        expect((await machine('urn:ps256', { organization })).status).to.equal(403);
        const { access_token } = await machine('urn:hs256', { organization });
        expect(payload(access_token).org_id).to.equal(organization);
        expect((await machine('urn:hs256')).status).to.equal(200);
        expect((await machine('urn:online', { organization })).status).to.equal(200);
        expect((await machine('urn:online')).status).to.be.oneOf([400, 403]);
        expect((await machine('urn:default')).status).to.equal(403);
      },
    ],
    [
      'clients.cross_origin_authentication',
      'is whether /co/authenticate answers',
      async () => {
        const at = async (client_id: string) => {
          const json = {
            client_id,
            credential_type: REALM_GRANT,
            realm: 'users',
            ...USER,
            username: USER.email,
          };
          const headers = { origin: ORIGIN };
          return (await createAgent(server).request('/co/authenticate', { json, headers })).status;
        };
        expect(await at('cross-origin')).to.equal(200);
        expect(await at('same-origin')).to.equal(401);
      },
    ],
    [
      'clients.require_pushed_authorization_requests',
      'refuses requests that were not pushed',
      async () => {
        expect((await answerTo('pushing')).error).to.equal('invalid_request');
      },
    ],
    [
      'tenant.flags.enable_public_signup_user_exists_error',
      'tells who has an account',
      async () => {
        expect(await signUp('users', USER.password, { email: USER.email })).to.equal('user_exists');
      },
    ],
    [
      'clients.oidc_conformant',
      'is the form of updated_at',
      async () => {
        const at = async (id: string) =>
          payload((await byPassword(id, { scope: 'openid profile' })).id_token).updated_at;
        expect(await at('plain')).to.match(/^\d{4}-\d{2}-\d{2}T/);
        expect(await at('older')).to.match(/^\d+$/);
      },
    ],
    [
      'guardianPolicies.policies',
      'ask for a second factor, also where mfa.active of the database is false',
      async () => {
        const set = (guardianPolicies: 'all-applications'[]) =>
          server.store.collection('tenant').update('tenant', (record) => ({
            ...record,
            guardianPolicies,
          }));
        expect((await byPassword('plain')).status).to.equal(200);
        await set(['all-applications']);
        expect(await byPassword('plain')).to.include({ status: 403, error: 'mfa_required' });
        expect(await byPassword('plain', { realm: 'no-mfa' })).to.include({
          status: 403,
          error: 'mfa_required',
        });
        await set([]);
        expect((await byPassword('plain', { realm: 'no-mfa' })).status).to.equal(200);
      },
    ],
    [
      'tenant.device_flow',
      'is the form of user codes',
      async () => {
        const form = { client_id: 'device', scope: 'openid' };
        const answer = await createAgent(server).request('/oauth/device/code', { form });
        expect(answer.json().user_code).to.match(/^\d{3}-\d{3}-\d{3}$/);
      },
    ],
    [
      'connections.options',
      'of OpenID Connect: scope, attribute_map.userinfo_scope and upstream_params are in the request to the provider',
      async () => {
        const over = { connection: 'upstream', ui_locales: 'fr' };
        const { location } = await authorize(createAgent(server), request('plain', over));
        const { searchParams } = new URL(location);
        expect(searchParams.get('scope')?.split(' ')).to.have.members(['openid', 'email', 'of-userinfo']);
        expect(Object.fromEntries(searchParams)).to.include({ ui_locales: 'fr', acr_values: 'high' });
      },
    ],
    [
      'connections.options',
      'of SAML: signInEndpoint is where the browser goes, destinationUrl and recipientUrl are in the request',
      async () => {
        const over = { connection: 'saml' };
        const { location } = await authorize(createAgent(server), request('plain', over));
        expect(location).to.match(/^https:\/\/saml\.example\.test\/sign-in\?/);
        const message = Buffer.from(new URL(location).searchParams.get('SAMLRequest') ?? '', 'base64');
        const xml = inflateRawSync(message).toString();
        expect(xml).to.contain('Destination="https://saml.example.test/destination"');
        expect(xml).to.contain('AssertionConsumerServiceURL="https://proxy.example.test/login/callback"');
      },
    ],
    // Last, because it uses up the attempts of the address that the tests have.
    [
      'clients.is_token_endpoint_ip_header_trusted',
      'is whether auth0-forwarded-for is believed',
      async () => {
        const fail = (one: string, from: string) =>
          byPassword('untrusted', { username: `never-${one}@example.test`, from });
        const statuses = [];
        for (const one of ['1', '2', '3', '4', '5'])
          statuses.push((await fail(one, `203.0.113.${one}`)).status);
        expect(statuses).to.deep.equal([403, 403, 403, 403, 429]);
      },
    ],
  ];
  it('is unlike clients.sso_disabled and a flag enable_sso that is off, which move check says to be without effect', async () => {
    const agent = createAgent(server);
    await logIn(agent, server, request('plain'));
    expect(await answerTo('alone', { prompt: 'none' }, agent)).to.have.property('code');
  });

  it('is unlike the flag use_scope_descriptions_for_consent that is off: descriptions are shown', async () => {
    const agent = createAgent(server);
    const over = { audience: 'urn:described', scope: 'openid read:posts' };
    const { text } = await logIn(agent, server, request('third', over));
    expect(text).to.contain('See what you wrote').and.not.to.contain('read:posts');
  });

  it('is unlike the flag enable_idtoken_api2: the Management API takes no ID token', async () => {
    const { id_token } = await byPassword('plain', { scope: 'openid' });
    const answer = await createAgent(server).request(`/api/v2/users/${payload(id_token).sub}`, {
      headers: { authorization: `Bearer ${id_token}` },
    });
    expect(answer.status).to.equal(401);
  });

  it('is unlike the flag change_pwd_flow_v1: a password that is sent with the request for a mail is not taken', async () => {
    const json = { client_id: 'plain', connection: 'users', email: USER.email, password: 'Sent-Before-1' };
    await createAgent(server).request('/dbconnections/change_password', { json });
    const send = await resetForm(server, (await nextMessageTo(server, USER.email, 1, 'link')).link ?? '');
    expect((await byPassword('plain', { password: 'Sent-Before-1' })).status).to.equal(403);
    expect((await send('')).status).to.equal(400);
    expect((await byPassword('plain')).status).to.equal(200);
  });

  for (const [member, does, see] of EFFECTS) it(`${member} ${does}`, see);
});
