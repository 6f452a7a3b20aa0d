// Who may change an account: every kind of login, session and token at every entrance. The tables below are what is
// true; a new grant, entrance or act that is in none of them fails here.
import { expect } from 'chai';
import { toResource } from '../../src/engine/audience.ts';
import { FEATURES } from '../../src/features.ts';
import { parseRouteKey } from '../../src/http/routes.ts';
import type { CallRules } from '../../src/management/call.ts';
import { MANAGEMENT_CALLS } from '../../src/management/calls.ts';
import { consentId } from '../../src/records/engine.ts';
import { PRESENCES } from '../../src/users/login.ts';
import { USER_ACTS } from '../../src/users/user-acts.ts';
import { formOf } from '../account/support.ts';
import { factors } from '../factors/tenant.ts';
import { managementToken, startManaged } from '../management/support.ts';
import { type Agent, type Answer, createAgent, readForm } from '../support/agent.ts';
import { databaseUser } from '../support/database-user.ts';
import { authorize, tenant as base, follow, responseOf, submitLogin, token } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { UNLIMITED } from '../support/unlimited.ts';

/**
 * What a login has: `nothing` that is accepted; a `token` that is good for applications, and for reading; the user was
 * there (`attended`); and has just given a proof (`fresh`).
 */
const LEVELS = ['nothing', 'token', 'attended', 'fresh'] as const;
type Level = (typeof LEVELS)[number];

/** The entrances of users, with what they need. */
const ENTRANCES: Record<string, Level> = {
  // My Account API
  'POST /me/v1/authentication-methods': 'fresh',
  'POST /me/v1/authentication-methods/:id/verify': 'attended',
  'PATCH /me/v1/authentication-methods/:id': 'attended',
  'DELETE /me/v1/authentication-methods/:id': 'fresh',
  'POST /me/v1/connected-accounts/connect': 'attended',
  'POST /me/v1/connected-accounts/complete': 'attended',
  'DELETE /me/v1/connected-accounts/accounts/:id': 'attended',
  // MFA API
  'POST /mfa/associate': 'fresh',
  'DELETE /mfa/authenticators/:id': 'fresh',
  // account page
  'POST /account': 'attended',
  'POST /account/profile/email': 'fresh',
  'POST /account/profile/phone': 'fresh',
  'POST /account/profile/phone/code': 'fresh',
  'POST /account/security/password': 'fresh',
  'POST /account/security/rename': 'attended',
  'POST /account/security/remove': 'fresh',
  'POST /account/security/browsers': 'attended',
  'POST /account/security/recovery-code': 'fresh',
  'POST /account/security/passkey': 'fresh',
  'POST /account/security/add/:factor': 'fresh',
  'POST /account/security/add/:factor/resend': 'fresh',
  'POST /account/sessions': 'attended',
  'POST /account/sessions/others': 'attended',
  'POST /account/applications': 'attended',
  'POST /account/applications/unlink': 'fresh',
  'POST /account/applications/connected': 'attended',
  'POST /account/applications/link': 'fresh',
  'POST /account/confirm/send': 'attended',
  'POST /account/confirm': 'attended',
  'POST /account/data/copy': 'fresh',
  'POST /account/data/delete': 'fresh',
};

/** Entrances to the account that ask for no login of the session or token: with what they are opened instead. */
const BY_OTHER_PROOF: Record<string, readonly string[]> = {
  'the waiting request’s own browser (a secret in a cookie), and the proof that the page asks for': [
    ...['organization', 'consent', 'account', 'login', 'signup', 'signup/code', 'signup/code/again'],
    ...['forgot-password', 'identifier', 'link', 'offer', 'passkey', 'mfa/:factor', 'mfa/:factor/resend'],
    ...['mfa/recovery-code-saved', 'passwordless/:connection', 'passwordless/:connection/code'],
    ...['code/:connection/:channel', 'code/:connection/:channel/code'],
  ].map((step) => `POST /u/:uid/${step}`),
  'the same, by the CSRF token of a customized login page': [
    'POST /usernamepassword/login',
    'POST /usernamepassword/challenge',
    'POST /dbconnections/signup/challenge',
    'POST /dbconnections/change_password/challenge',
    'POST /passwordless/challenge',
  ],
  'a state or ticket of the browser that began': [
    'POST /continue',
    'POST /login/callback',
    'POST /account/applications/link/confirm',
    'POST /u/mfa-challenge/recovery-code-saved',
    'POST /u/mfa-challenge/:factor',
    'POST /u/mfa-challenge/:factor/resend',
    'POST /oidc/logout',
    'POST /oidc/logout/consent',
    'POST /logout',
    'POST /approval',
    'POST /activate',
    'POST /activate/confirm',
    'POST /dev/inbox',
  ],
  'a one-time link that was sent to the owner of the address, or that an administrator hands over': [
    'POST /u/reset-password',
    'POST /u/email-verification',
    'POST /u/unblock',
    'POST /u/mfa-enrollment/recovery-code-saved',
    'POST /u/mfa-enrollment/:factor',
    'POST /u/mfa-enrollment/:factor/resend',
    'POST /passwordless/verify_redirect',
    'POST /account/email',
  ],
  'nothing: the page after an enrolment, which changes nothing': [
    'POST /account/security/add/recovery-code-saved',
  ],
  'the credentials of an application, an identity provider or a device': [
    'POST /authorize',
    'POST /oauth/par',
    'POST /oauth/token',
    'POST /oauth/revoke',
    'POST /oauth/introspect',
    'POST /oauth/device/code',
    'POST /oauth/global-token-revocation/connection/:connection',
    'POST /bc-authorize',
    'POST /oauth/bc-authorize',
    'POST /mfa/challenge',
    'POST /passwordless/start',
    'POST /passwordless/verify',
    'POST /otp/challenge',
    'POST /passkey/challenge',
    'POST /passkey/register',
    'POST /authenticator/devices',
    'POST /authenticator/push',
    'POST /authenticator/requests/:id',
    'POST /anonymous/token',
    'POST /anonymous/logout',
    'POST /samlp/:client_id',
    'POST /samlp/:client_id/logout',
    'POST /userinfo',
  ],
  'the credentials of the user, for a new login or account': [
    'POST /co/authenticate',
    'POST /dbconnections/signup',
    'POST /dbconnections/change_password',
  ],
};

/** The calls of the Management API with a user's own token. */
const OWN_CALLS: Record<string, Level> = {
  'GET /users/:id': 'token',
  'GET /users/:id/enrollments': 'token',
  'PATCH /users/:id': 'attended',
  'POST /users/:id/identities': 'fresh',
  'DELETE /users/:id/identities/:provider/:identity_id': 'fresh',
  'POST /device-credentials': 'attended',
  'DELETE /device-credentials/:credential_id': 'attended',
  // Last, because it ends the others.
  'DELETE /users/:id': 'fresh',
};

const CALLBACK = 'https://site.example.test/callback';
const SECRET = { client_secret: 'site-secret' };
const DEVICE = 'urn:ietf:params:oauth:grant-type:device_code';
const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
const OTP = 'http://auth0.com/oauth/grant-type/passwordless/otp';
const REALM = 'http://auth0.com/oauth/grant-type/password-realm';
const ME_SCOPES = [
  ...['create', 'read', 'update', 'delete'].map((verb) => `${verb}:me:authentication_methods`),
  ...['create', 'read', 'delete'].map((verb) => `${verb}:me:connected_accounts`),
];
const APIS = {
  'me/': ME_SCOPES.join(' '),
  'mfa/': 'enroll read:authenticators remove:authenticators',
  'api/v2/': [
    'read:current_user',
    'update:current_user_metadata',
    'update:current_user_identities',
    'create:current_user_device_credentials',
    'delete:current_user_device_credentials',
    'delete:current_user',
  ].join(' '),
} as const;
type Api = keyof typeof APIS;

/** What somebody has got by a login: tokens for the user's own APIs, or a browser with a session. */
interface Held {
  /** The e-mail address of the user. */
  email?: string;
  tokens?: Partial<Record<Api, string>>;
  browser?: Agent;
}

interface Kind {
  has: Level;
  /** The grants by which tokens of this kind are got. */
  grants: readonly string[];
  make(at: World): Promise<Held>;
}

interface World {
  server: TestServer;
  /** Makes a user of the database. @returns the e-mail address. */
  someone(): Promise<string>;
  open(browser: Agent, more?: Record<string, string>): Promise<Answer>;
  /** Logs in at the page, for an API or for no API. */
  logIn(email: string, api?: Api, more?: Record<string, string>): Promise<{ browser: Agent; page: Answer }>;
  /** Redeems a code. */
  redeem(page: Answer): Promise<Record<string, string>>;
  ask(fields: Record<string, string | undefined>): Promise<Answer>;
  admin(method: string, path: string, json?: object): Promise<Answer>;
}

const PASSWORD = 'Matrix-Horse-1';
const each = async (make: (api: Api) => Promise<string>): Promise<Partial<Record<Api, string>>> => {
  const tokens: Partial<Record<Api, string>> = {};
  for (const api of Object.keys(APIS) as Api[]) tokens[api] = await make(api);
  return tokens;
};
const accessToken = (answer: Answer): string => {
  expect(answer.status, answer.text).to.equal(200);
  return answer.json().access_token;
};
/** Tokens by the session of a browser. */
const bySession = (at: World, browser: Agent) =>
  each(async (api) => {
    const audience = `${at.server.issuer}${api}`;
    const page = await at.open(browser, { audience, scope: `openid ${APIS[api]}` });
    return (await at.redeem(page)).access_token as string;
  });
/** Both by the page: tokens for the APIs, and the browser. */
const byPage = async (at: World, email: string): Promise<Held & { browser: Agent }> => {
  const { browser } = await at.logIn(email);
  return { email, browser, tokens: await bySession(at, browser) };
};
const byGrant = (at: World, fields: Record<string, string>) =>
  each(async (api) =>
    accessToken(
      await at.ask({ ...fields, audience: `${at.server.issuer}${api}`, scope: `openid ${APIS[api]}` }),
    ),
  );
/** A session transfer token of a login of this moment. */
const handed = async ({ server, ask }: World, username: string): Promise<string> => {
  const login = { client_id: 'app', client_secret: undefined, username, password: PASSWORD };
  const scope = 'openid offline_access';
  const { refresh_token } = (await ask({ ...login, grant_type: 'password', scope })).json();
  const audience = `urn:${new URL(server.url).host}:session_transfer`;
  return accessToken(
    await ask({
      client_id: 'app',
      client_secret: undefined,
      grant_type: 'refresh_token',
      refresh_token,
      audience,
    }),
  );
};
const afterwards = (change: (at: World, id: string, held: Held) => Promise<unknown>) => async (at: World) => {
  const email = await at.someone();
  const held = await byPage(at, email);
  const [user] = await at.server.users.withEmail(email);
  await change(at, user?.id ?? '', held);
  return held;
};

const KINDS: Record<string, Kind> = {
  // First, because it makes the clock go on.
  'a login at the page, eleven minutes ago': {
    has: 'attended',
    grants: ['authorization_code'],
    make: async (at) => {
      const email = await at.someone();
      const { browser } = await at.logIn(email);
      // Its session for the account page, too.
      await follow(browser, await browser.get('/account'), at.server.url);
      at.server.tick(11 * 60_000);
      return { email, browser, tokens: await bySession(at, browser) };
    },
  },
  'a login at the page': {
    has: 'fresh',
    grants: ['authorization_code', 'implicit'],
    make: async (at) => byPage(at, await at.someone()),
  },
  'a refresh token of a login at the page': {
    has: 'fresh',
    grants: ['refresh_token'],
    make: async (at) => {
      const email = await at.someone();
      const tokens = await each(async (api) => {
        const { page } = await at.logIn(email, api, { scope: `openid offline_access ${APIS[api]}` });
        const { refresh_token, access_token } = await at.redeem(page);
        // The MFA API gives none.
        if (refresh_token === undefined) return access_token as string;
        return accessToken(await at.ask({ grant_type: 'refresh_token', refresh_token }));
      });
      return { email, tokens };
    },
  },
  'the password at the token endpoint': {
    has: 'fresh',
    grants: ['password', REALM],
    make: async (at) => {
      const email = await at.someone();
      const login = { username: email, password: PASSWORD };
      return { email, tokens: await byGrant(at, { ...login, grant_type: REALM, realm: 'users' }) };
    },
  },
  'a session that was handed over': {
    has: 'token',
    grants: ['refresh_token'],
    make: async (at) => {
      const browser = createAgent(at.server);
      const email = await at.someone();
      expect(
        responseOf(await at.open(browser, { session_transfer_token: await handed(at, email) })),
      ).to.have.property('code');
      return { email, browser, tokens: await bySession(at, browser) };
    },
  },
  'a device code': {
    has: 'token',
    grants: [DEVICE],
    make: async (at) => {
      const email = await at.someone();
      const tokens = await each(async (api) => {
        const asked = {
          client_id: 'site',
          audience: `${at.server.issuer}${api}`,
          scope: `openid ${APIS[api]}`,
        };
        const begun = await createAgent(at.server).request('/oauth/device/code', {
          form: { ...asked, ...SECRET },
        });
        const { user_code, device_code } = begun.json();
        const user = createAgent(at.server);
        const page = await user.get(`/activate?${new URLSearchParams({ user_code })}`);
        const { action, fields } = readForm(page, 'user_code');
        const answer = await user.request(action, { form: { ...fields, decision: 'accept' } });
        await submitLogin(user, at.server, await follow(user, answer, at.server.url), {
          email,
          password: PASSWORD,
        });
        return accessToken(await at.ask({ grant_type: DEVICE, device_code }));
      });
      return { email, tokens };
    },
  },
  'an exchanged token': {
    has: 'token',
    grants: [EXCHANGE],
    make: async (at) => {
      const email = await at.someone();
      const { tokens = {} } = await byPage(at, email);
      return {
        email,
        tokens: await each(async (api) =>
          accessToken(
            await at.ask({
              grant_type: EXCHANGE,
              subject_token: tokens[api],
              subject_token_type: 'urn:ietf:params:oauth:token-type:access_token',
            }),
          ),
        ),
      };
    },
  },
  'a token of the application itself': {
    has: 'nothing',
    grants: ['client_credentials'],
    make: async ({ server }) => {
      const machine = await managementToken(server, 'read:users update:users');
      return { tokens: { 'me/': machine, 'mfa/': machine } };
    },
  },
  'a login whose session has ended': {
    has: 'nothing',
    grants: [],
    make: afterwards(async (_at, _id, { browser }) => browser?.get('/v2/logout')),
  },
  'a login from before a new password': {
    has: 'nothing',
    grants: [],
    make: afterwards(({ admin }, id) =>
      admin('PATCH', `/users/${encodeURIComponent(id)}`, {
        password: 'Another-Horse-2',
        connection: 'users',
      }),
    ),
  },
  'a login of a user who is blocked': {
    has: 'nothing',
    grants: [],
    make: afterwards(({ admin }, id) =>
      admin('PATCH', `/users/${encodeURIComponent(id)}`, { blocked: true }),
    ),
  },
  'a login with the password alone, of a user who has a second factor by now': {
    has: 'nothing',
    grants: [],
    make: afterwards(({ admin }, id) =>
      admin('POST', `/users/${encodeURIComponent(id)}/authentication-methods`, {
        type: 'totp',
        totp_secret: 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ',
        name: 'An app',
      }),
    ),
  },
};

/** Grants that are tested elsewhere, with the kind that their logins are of. */
const LIKE: Record<string, keyof typeof KINDS> = {
  // The same strategies and functions as at the pages: a proof of the user at this moment.
  [OTP]: 'the password at the token endpoint',
  'urn:okta:params:oauth:grant-type:webauthn': 'the password at the token endpoint',
  'http://auth0.com/oauth/grant-type/mfa-otp': 'the password at the token endpoint',
  'http://auth0.com/oauth/grant-type/mfa-oob': 'the password at the token endpoint',
  'http://auth0.com/oauth/grant-type/mfa-recovery-code': 'the password at the token endpoint',
  // What is approved on a device or page elsewhere (test/grants/ciba.test.ts).
  'urn:openid:params:grant-type:ciba': 'a device code',
  // Gives tokens of a provider (test/account/connected-tokens.test.ts).
  'urn:auth0:params:oauth:grant-type:token-exchange:federated-connection-access-token':
    'a token of the application itself',
};

/** A valid body for each call with a token. */
const BODIES: Record<string, object | undefined> = {
  'POST /me/v1/authentication-methods': { type: 'totp' },
  'POST /me/v1/authentication-methods/:id/verify': { auth_session: 'x'.repeat(43), otp_code: '123456' },
  'PATCH /me/v1/authentication-methods/:id': { name: 'Mine' },
  'POST /me/v1/connected-accounts/connect': { connection: 'none', redirect_uri: CALLBACK, state: 's' },
  'POST /me/v1/connected-accounts/complete': { auth_session: 'x', connect_code: 'x', redirect_uri: CALLBACK },
  'POST /mfa/associate': { authenticator_types: ['otp'] },
};

const client = (client_id: string, more: object = {}) => ({
  client_id,
  name: client_id,
  app_type: 'regular_web',
  token_endpoint_auth_method: 'client_secret_post',
  ...SECRET,
  callbacks: [CALLBACK],
  grant_types: ['authorization_code', 'refresh_token', 'password', DEVICE, EXCHANGE, REALM],
  ...more,
});
const CLIENTS = [
  client('site', { session_transfer: { allowed_authentication_methods: ['query'] } }),
  client('app', {
    app_type: 'native',
    token_endpoint_auth_method: 'none',
    client_secret: undefined,
    grant_types: ['password', 'refresh_token'],
    session_transfer: { can_create_session_transfer_token: true },
  }),
];
const tenant = {
  ...base,
  ...UNLIMITED,
  tenant: { ...base.tenant, account_page: { client_id: 'site', allow_deletion: true } },
  guardianFactors: factors('otp'),
  clients: [...base.clients, ...CLIENTS],
  clientGrants: [
    ...base.clientGrants,
    {
      client_id: 'site',
      audience: 'https://elsewhere.example.test/me/',
      subject_type: 'user',
      scope: ME_SCOPES,
    },
  ],
  databases: base.databases.map((one) => ({
    ...one,
    enabled_clients: [...one.enabled_clients, ...CLIENTS.map(({ client_id }) => client_id)],
  })),
};

const KEYS = FEATURES.filter(({ name }) => name !== 'console' && name !== 'management').flatMap(
  ({ routes = {} }) => Object.keys(routes),
);
const WRITING = KEYS.filter((key) =>
  parseRouteKey(key).methods.some((one) => !['GET', 'HEAD'].includes(one)),
);

describe('who may change an account', () => {
  let server: TestServer;
  let world: World;
  before(async () => {
    server = await startManaged(tenant);
    world = worldOf(server);
  });
  after(() => server.stop());

  it('is said for every entrance that is declared', () => {
    const said = [...Object.keys(ENTRANCES), ...Object.values(BY_OTHER_PROOF).flat()];
    expect([...said].sort()).to.deep.equal([...new Set(WRITING)].sort());
    const own = (MANAGEMENT_CALLS as readonly CallRules[]).filter(({ ownScopes }) => ownScopes !== undefined);
    expect(Object.keys(OWN_CALLS).sort()).to.deep.equal(
      own.map(({ method, path }) => `${method} ${path}`).sort(),
    );
  });

  it('is said for every grant that is declared, and every presence', () => {
    const declared = FEATURES.flatMap(({ grants = [] }) => grants).map(({ grantType }) =>
      grantType.startsWith('/') ? `http://auth0.com${grantType}` : grantType,
    );
    const said = [...Object.values(KINDS).flatMap(({ grants }) => grants), ...Object.keys(LIKE)];
    expect(said).to.include.members(declared);
    expect(said).to.include.members([
      'authorization_code',
      'refresh_token',
      'client_credentials',
      'implicit',
    ]);
    expect(PRESENCES).to.deep.equal(['present', 'unconfirmed', 'absent']);
    expect(new Set(Object.values(USER_ACTS))).to.deep.equal(new Set(['fresh', 'attended']));
  });

  for (const [name, { has, make }] of Object.entries(KINDS))
    it(`${name}: ${has}`, async () => {
      const { tokens, browser, email } = await make(world);
      const [user] = email === undefined ? [] : await server.users.withEmail(email);
      const outcomes: Record<string, string> = {};
      const expected: Record<string, string> = {};
      for (const [key, needs] of Object.entries(ENTRANCES)) {
        const answer = await (key.includes(' /account')
          ? browser && sendForm(server, browser, key)
          : tokens && call(server, tokens, key));
        if (answer === undefined) continue;
        const isRefused = key.includes(' /account')
          ? /\/authorize\?/.test(answer.location)
          : [401, 403].includes(answer.status);
        outcomes[key] = isRefused ? 'refused' : 'allowed';
        expected[key] = LEVELS.indexOf(has) >= LEVELS.indexOf(needs) ? 'allowed' : 'refused';
        expect(answer.status, `${key}: ${answer.text.slice(0, 300)}`).to.be.below(500);
      }
      for (const [key, needs] of Object.entries(OWN_CALLS)) {
        if (user === undefined || tokens === undefined) continue;
        const { status, text } = await ownCall(server, tokens['api/v2/'] ?? '', key, user.id);
        outcomes[key] = [401, 403].includes(status) ? 'refused' : 'allowed';
        expected[key] = LEVELS.indexOf(has) >= LEVELS.indexOf(needs) ? 'allowed' : 'refused';
        expect(status, `${key}: ${text.slice(0, 300)}`).to.be.below(500);
      }
      expect(outcomes).to.deep.equal(expected);
    });
});

const filled = (path: string) => path.replace(':factor', 'otp').replaceAll(/:\w+/g, 'totp%7Cnone');

function call(server: TestServer, tokens: NonNullable<Held['tokens']>, key: string): Promise<Answer> {
  const [method = '', path = ''] = key.split(' ');
  const bearer = tokens[path.startsWith('/mfa/') ? 'mfa/' : 'me/'] ?? '';
  const json = BODIES[key];
  return createAgent(server).request(filled(path), {
    method,
    ...(json && { json }),
    headers: { authorization: `Bearer ${bearer}` },
  });
}

/** Calls the Management API with a user's token, for that user. */
function ownCall(server: TestServer, bearer: string, key: string, id: string): Promise<Answer> {
  const [method = '', path = ''] = key.split(' ');
  const bodies: Record<string, object> = {
    'PATCH /users/:id': { user_metadata: { seen: true } },
    'POST /users/:id/identities': { link_with: 'x.y.z' },
  };
  const json = bodies[key] ?? (method === 'POST' ? {} : undefined);
  return createAgent(server).request(`/api/v2${filled(path.replace(':id', encodeURIComponent(id)))}`, {
    method,
    ...(json && { json }),
    headers: { authorization: `Bearer ${bearer}` },
  });
}

/** Sends a form of the account page, as its own page would. */
async function sendForm(server: TestServer, browser: Agent, key: string): Promise<Answer> {
  const page = await follow(browser, await browser.get('/account'), server.url);
  const isOpen = page.text.includes('name="account"');
  const form = isOpen ? formOf(page, '/account') : readForm(page, '_csrf').fields;
  const { _csrf = '', account = '' } = form;
  return browser.request(filled(key.split(' ')[1] ?? ''), { form: { _csrf, account } });
}

function worldOf(server: TestServer): World {
  let people = 0;
  const ask: World['ask'] = (fields) =>
    token(createAgent(server), { client_id: 'site', ...SECRET, ...fields });
  const open: World['open'] = async (browser, more = {}) => {
    const asked = {
      client_id: 'site',
      response_type: 'code',
      redirect_uri: CALLBACK,
      scope: 'openid',
      state: 's',
    };
    return follow(browser, await authorize(browser, { ...asked, ...more }), server.url);
  };
  return {
    server,
    ask,
    open,
    someone: async () => {
      const email = `matrix-${people++}@example.test`;
      const made = await server.users.create(
        databaseUser({ connection: 'users', email, password: PASSWORD }),
      );
      if (!('user' in made)) throw new Error(`${email} was not created`);
      // The consent that the Management API requires of every application's users.
      const user_id = made.user.id;
      await server.store.collection('consents').insert({
        id: consentId(user_id, 'site'),
        user_id,
        client_id: 'site',
        scopes: {
          '': ['openid', 'offline_access'],
          [toResource(`${server.issuer}api/v2/`)]: APIS['api/v2/'].split(' '),
        },
      });
      return email;
    },
    logIn: async (email, api, more = {}) => {
      const browser = createAgent(server);
      const asked = api && { audience: `${server.issuer}${api}`, scope: `openid ${APIS[api]}` };
      const page = await open(browser, { ...asked, ...more });
      return { browser, page: await submitLogin(browser, server, page, { email, password: PASSWORD }) };
    },
    redeem: async (page) => {
      const { code } = responseOf(page);
      const answer = await ask({ grant_type: 'authorization_code', redirect_uri: CALLBACK, code });
      expect(answer.status, answer.text).to.equal(200);
      return answer.json();
    },
    admin: async (method, path, json) => {
      const answer = await createAgent(server).request(`/api/v2${path}`, {
        method,
        ...(json && { json }),
        headers: { authorization: `Bearer ${await managementToken(server)}` },
      });
      expect(answer.status, answer.text).to.be.below(300);
      return answer;
    },
  };
}
