// The tenant of these tests, and the steps by which somebody gets a login there.
import { expect } from 'chai';
import { toResource } from '../../src/engine/base/request-extensions.ts';
import { consentId } from '../../src/records/state/engine.ts';
import { factors } from '../factors/tenant.ts';
import { managementToken, startManaged } from '../management/support.ts';
import { type Agent, type Answer, createAgent } from '../support/agent.ts';
import { databaseUser } from '../support/database-user.ts';
import { authorize, tenant as base, follow, responseOf, submitLogin, token } from '../support/flows.ts';
import { nextMessageTo } from '../support/inbox.ts';
import { type OpenIdProvider, signingKey, startOpenIdProvider } from '../support/openid-provider.ts';
import type { TestServer, TestServerOptions } from '../support/server.ts';
import { UNLIMITED } from '../support/unlimited.ts';

export const CALLBACK = 'https://site.example.test/callback';
export const SECRET = { client_secret: 'site-secret' };
export const DEVICE = 'urn:ietf:params:oauth:grant-type:device_code';
export const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
export const OTP = 'http://auth0.com/oauth/grant-type/passwordless/otp';
export const REALM = 'http://auth0.com/oauth/grant-type/password-realm';
const ME_SCOPES = [
  ...['create', 'read', 'update', 'delete'].map((verb) => `${verb}:me:authentication_methods`),
  ...['create', 'read', 'delete'].map((verb) => `${verb}:me:connected_accounts`),
];
export const PASSKEY = 'urn:okta:params:oauth:grant-type:webauthn';
export const CIBA = 'urn:openid:params:grant-type:ciba';
export const MFA = (kind: string) => `http://auth0.com/oauth/grant-type/mfa-${kind}`;
/** The type of the tokens that an action takes in an exchange. */
export const LEGACY = 'urn:example:legacy-token';
export const OPEN_API = 'urn:open';
export const APIS = {
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
export type Api = keyof typeof APIS;

/** What somebody has got by a login: tokens for the user's own APIs, or a browser with a session. */
export interface Held {
  /** The e-mail address of the user. */
  email?: string;
  tokens?: Partial<Record<Api, string>>;
  browser?: Agent;
}

export interface World {
  server: TestServer;
  /** The identity provider of the connections `acme` and `google`. */
  provider: OpenIdProvider;
  /** A number that was not used yet. */
  next(): number;
  /** The parameters of a request for a token of one of our APIs. */
  wanted(api: Api): { audience: string; scope: string };
  /** Makes a user of the database, with a second factor if one is given. @returns the e-mail address. */
  someone(more?: { factor?: object; needsFactor?: boolean }): Promise<string>;
  /** Begins a CIBA request. @param sent the number of messages with a link that the user has got then. */
  askForApproval(userId: string, wanted: object, sent: number): Promise<{ begun: Answer; link: string }>;
  /** Makes an action that takes the id of a user as a token of another system. */
  takeLegacyTokens(): Promise<void>;
  /** Gives a user the consent that the Management API requires of every application's users. */
  consent(userId: string, clientId?: string): Promise<void>;
  open(browser: Agent, more?: Record<string, string>): Promise<Answer>;
  /** Logs in at the page, for an API or for no API. */
  logIn(email: string, api?: Api, more?: Record<string, string>): Promise<{ browser: Agent; page: Answer }>;
  /** Redeems a code. */
  redeem(page: Answer, clientId?: string): Promise<Record<string, string>>;
  ask(fields: Record<string, string | undefined>): Promise<Answer>;
  admin(method: string, path: string, json?: object): Promise<Answer>;
}

export const PASSWORD = 'Matrix-Horse-1';
export const each = async (make: (api: Api) => Promise<string>): Promise<Partial<Record<Api, string>>> => {
  const tokens: Partial<Record<Api, string>> = {};
  for (const api of Object.keys(APIS) as Api[]) tokens[api] = await make(api);
  return tokens;
};
export const accessToken = (answer: Answer): string => {
  expect(answer.status, answer.text).to.equal(200);
  return answer.json().access_token;
};
/** Tokens by the session of a browser. */
export const bySession = (at: World, browser: Agent, response_type = 'code', client_id = 'site') =>
  each(async (api) => {
    const page = await at.open(browser, { ...at.wanted(api), client_id, response_type, nonce: 'n' });
    const { access_token } = responseOf(page);
    return access_token ?? (await at.redeem(page, client_id)).access_token ?? '';
  });
/** Both by the page: tokens for the APIs, and the browser. */
export const byPage = async (at: World, email: string): Promise<Held & { browser: Agent }> => {
  const { browser } = await at.logIn(email);
  return { email, browser, tokens: await bySession(at, browser) };
};
export const byGrant = (at: World, fields: Record<string, string>) =>
  each(async (api) => accessToken(await at.ask({ ...fields, ...at.wanted(api) })));
/** A session transfer token of a login of this moment. */
export const handed = async ({ server, ask }: World, username: string): Promise<string> => {
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
const client = (client_id: string, more: object = {}) => ({
  client_id,
  name: client_id,
  app_type: 'regular_web',
  token_endpoint_auth_method: 'client_secret_post',
  ...SECRET,
  callbacks: [CALLBACK],
  grant_types: [
    ...['authorization_code', 'implicit', 'refresh_token', 'password', DEVICE, EXCHANGE, REALM, OTP],
    ...[PASSKEY, CIBA, MFA('otp'), MFA('oob'), MFA('recovery-code')],
  ],
  ...more,
});
const on = { enabled: true };
const CLIENTS = [
  client('site', {
    session_transfer: { allowed_authentication_methods: ['query'] },
    async_approval_notification_channels: ['email'],
    token_exchange: { allow_any_profile_of_type: ['custom_authentication'] },
    native_social_login: { google: on, apple: on, facebook: on },
    web_origins: ['https://site.example.test'],
    cross_origin_authentication: true,
    anonymous_sessions: { active: true },
  }),
  client('app', {
    app_type: 'native',
    token_endpoint_auth_method: 'none',
    client_secret: undefined,
    grant_types: ['password', 'refresh_token'],
    session_transfer: { can_create_session_transfer_token: true },
  }),
  client('stranger', {
    is_first_party: false,
    third_party_security_mode: 'permissive',
    grant_types: ['authorization_code', 'refresh_token'],
  }),
];
const CLIENT_IDS = CLIENTS.map(({ client_id }) => client_id);
const upstream = ({ url }: OpenIdProvider, name: string, strategy: string) => ({
  name,
  strategy,
  enabled_clients: CLIENT_IDS,
  options: {
    client_id: 'gatehouse',
    client_secret: 'upstream-secret',
    type: 'back_channel',
    discovery_url: `${url}/.well-known/openid-configuration`,
  },
});
const passkeys = { authentication_methods: { passkey: { enabled: true }, password: { enabled: true } } };
const tenantOf = (provider: OpenIdProvider, account_linking: string) => ({
  ...base,
  ...UNLIMITED,
  tenant: {
    ...base.tenant,
    account_page: { client_id: 'site', allow_deletion: true },
    account_linking,
  },
  guardianFactors: factors('otp', 'sms', 'recovery-code'),
  clients: [...base.clients, ...CLIENTS],
  clientGrants: [
    ...base.clientGrants,
    ...['site', 'stranger'].map((client_id) => ({
      client_id,
      audience: 'https://elsewhere.example.test/me/',
      subject_type: 'user',
      scope: ME_SCOPES,
    })),
    { client_id: 'site', audience: OPEN_API, subject_type: 'anonymous_user', scope: ['read:cart'] },
  ],
  resourceServers: [
    ...base.resourceServers,
    {
      name: 'Open',
      identifier: OPEN_API,
      scopes: [{ value: 'read:cart' }],
      allow_anonymous_access: true,
      subject_type_authorization: { anonymous_user: { policy: 'require_client_grant' } },
    },
  ],
  databases: [
    ...base.databases.map((one) => ({ ...one, enabled_clients: [...one.enabled_clients, ...CLIENT_IDS] })),
    { name: 'keys', enabled_clients: CLIENT_IDS, options: passkeys },
  ],
  connections: [
    { name: 'email', strategy: 'email', enabled_clients: CLIENT_IDS },
    upstream(provider, 'acme', 'oidc'),
    upstream(provider, 'google', 'google-oauth2'),
  ],
});

/** Starts the server of the tests. @param linking `suggest` if users may link accounts. */
export async function startWorld(
  linking = 'never',
  more: Partial<TestServerOptions> = {},
): Promise<World & { stop(): Promise<void> }> {
  const provider = await startOpenIdProvider(await signingKey('k1'));
  const server = await startManaged(tenantOf(provider, linking), undefined, {}, more);
  return {
    ...worldOf(server, provider),
    stop: async () => {
      await server.stop();
      await provider.stop();
    },
  };
}

function worldOf(server: TestServer, provider: OpenIdProvider): World {
  let numbers = 0;
  const next = () => numbers++;
  const wanted: World['wanted'] = (api) => ({
    audience: `${server.issuer}${api}`,
    scope: `openid ${APIS[api]}`,
  });
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
  const admin: World['admin'] = async (method, path, json) => {
    const answer = await createAgent(server).request(`/api/v2${path}`, {
      method,
      ...(json && { json }),
      headers: { authorization: `Bearer ${await managementToken(server)}` },
    });
    expect(answer.status, answer.text).to.be.below(300);
    return answer;
  };
  const consent: World['consent'] = async (user_id, client_id = 'site') => {
    await server.store.collection('consents').insert({
      id: consentId(user_id, client_id),
      user_id,
      client_id,
      scopes: {
        '': ['openid', 'offline_access', 'email'],
        ...Object.fromEntries(
          Object.entries(APIS).map(([api, scope]) => [
            toResource(`${server.issuer}${api}`),
            scope.split(' '),
          ]),
        ),
      },
    });
  };
  return {
    server,
    provider,
    consent,
    ask,
    open,
    next,
    wanted,
    someone: async ({ factor, needsFactor = factor !== undefined } = {}) => {
      const email = `matrix-${next()}@example.test`;
      const made = await server.users.create(
        databaseUser({ connection: 'users', email, password: PASSWORD }),
      );
      if (!('user' in made)) throw new Error(`${email} was not created`);
      await consent(made.user.id);
      const path = `/users/${encodeURIComponent(made.user.id)}/authentication-methods`;
      if (factor !== undefined) await admin('POST', path, factor);
      if (needsFactor) await server.users.update(made.user.id, { multifactor: ['guardian'] });
      return email;
    },
    askForApproval: async (sub, wanted, sent) => {
      const login_hint = JSON.stringify({ format: 'iss_sub', iss: server.issuer, sub });
      const asked = { client_id: 'site', ...SECRET, binding_message: 'Payment 4711', login_hint, ...wanted };
      const begun = await createAgent(server).request('/bc-authorize', { form: asked });
      if (begun.status !== 200) return { begun, link: '' };
      const email = (await server.users.get(sub))?.email ?? '';
      const { link = '' } = await nextMessageTo(server, email, sent, 'link');
      return { begun, link };
    },
    takeLegacyTokens: async () => {
      const code = `exports.onExecuteCustomTokenExchange = async (event, api) => {
        api.authentication.setUserById(event.transaction.subject_token);
      };`;
      const supported_triggers = [{ id: 'custom-token-exchange', version: 'v1' }];
      const action = { name: 'Legacy tokens', code, supported_triggers };
      const { id: action_id } = (await admin('POST', '/actions/actions', action)).json();
      await admin('POST', `/actions/actions/${action_id}/deploy`);
      await admin('POST', '/token-exchange-profiles', {
        name: 'Legacy tokens',
        subject_token_type: LEGACY,
        action_id,
        type: 'custom_authentication',
      });
    },
    logIn: async (email, api, more = {}) => {
      const browser = createAgent(server);
      const asked = api && { audience: `${server.issuer}${api}`, scope: `openid ${APIS[api]}` };
      const page = await open(browser, { ...asked, ...more });
      return { browser, page: await submitLogin(browser, server, page, { email, password: PASSWORD }) };
    },
    redeem: async (page, client_id = 'site') => {
      const { code } = responseOf(page);
      const answer = await ask({
        client_id,
        grant_type: 'authorization_code',
        redirect_uri: CALLBACK,
        code,
      });
      expect(answer.status, answer.text).to.equal(200);
      return answer.json();
    },
    admin,
  };
}
