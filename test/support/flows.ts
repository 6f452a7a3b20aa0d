// The common steps of tests: request an authorization, log in on the hosted page, exchange the code.
import { createHash, randomBytes } from 'node:crypto';
import { type Agent, type Answer, readForm } from './agent.ts';

export const SPA_CALLBACK = 'http://localhost:5173/callback';
export const WEB_CALLBACK = 'http://localhost:3001/callback';
export const THIRD_CALLBACK = 'https://third.example.test/callback';
export const API = 'https://api.example.test/';

/** The first user of the test tenant. */
export const USER = { email: 'ada@example.test', password: 'Correct-Horse-1' };

/** The tenant of the tests of engine and login, in the tenant file's vocabulary. */
export const tenant = {
  tenant: { friendly_name: 'Test tenant', default_directory: 'users' },
  // Tests log in the same user many times; the limit itself is tested in test/protection.
  attackProtection: { rateLimits: { login: { capacity: 10_000, perMinute: 10_000 } } },
  clients: [
    {
      client_id: 'spa',
      name: 'Single page',
      app_type: 'spa',
      oidc_conformant: true,
      callbacks: [SPA_CALLBACK, 'http://localhost:5173/other?with=query'],
      web_origins: ['http://localhost:5173'],
      grant_types: ['authorization_code', 'implicit', 'refresh_token'],
      refresh_token: { rotation_type: 'rotating', expiration_type: 'expiring', leeway: 0 },
    },
    {
      client_id: 'web',
      name: 'Web app',
      app_type: 'regular_web',
      client_secret: 'web-secret',
      callbacks: [WEB_CALLBACK],
      grant_types: ['authorization_code', 'implicit', 'refresh_token', 'password', 'client_credentials'],
    },
    {
      client_id: 'code-only',
      name: 'Code only',
      app_type: 'regular_web',
      client_secret: 'code-secret',
      token_endpoint_auth_method: 'client_secret_basic',
      callbacks: [WEB_CALLBACK],
      grant_types: ['authorization_code'],
    },
    {
      client_id: 'leeway',
      name: 'Rotation with leeway',
      app_type: 'regular_web',
      client_secret: 'leeway-secret',
      callbacks: [WEB_CALLBACK],
      grant_types: ['authorization_code', 'refresh_token', 'password'],
      refresh_token: {
        rotation_type: 'rotating',
        expiration_type: 'expiring',
        leeway: 30,
        token_lifetime: 86400,
        idle_token_lifetime: 3600,
      },
    },
    {
      client_id: 'hs256',
      name: 'HS256',
      app_type: 'regular_web',
      client_secret: 'a-secret-of-at-least-32-characters!',
      callbacks: [WEB_CALLBACK],
      grant_types: ['authorization_code', 'password'],
      jwt_configuration: { alg: 'HS256', lifetime_in_seconds: 600 },
    },
    {
      client_id: 'third',
      name: 'Third party',
      app_type: 'regular_web',
      client_secret: 'third-secret',
      is_first_party: false,
      third_party_security_mode: 'permissive',
      callbacks: [THIRD_CALLBACK],
      grant_types: ['authorization_code', 'refresh_token', 'password'],
    },
    {
      client_id: 'm2m',
      name: 'Machine',
      app_type: 'non_interactive',
      client_secret: 'm2m-secret',
      grant_types: ['client_credentials'],
    },
  ],
  databases: [
    {
      name: 'users',
      enabled_clients: ['spa', 'web', 'code-only', 'leeway', 'hs256', 'third'],
      options: { passwordPolicy: 'good' },
    },
    { name: 'staff', enabled_clients: ['web'], options: { requires_username: true, passwordPolicy: 'low' } },
  ],
  resourceServers: [
    {
      name: 'Example API',
      identifier: API,
      scopes: [
        { value: 'read:things', description: 'Read things' },
        { value: 'write:things', description: 'Write things' },
      ],
      token_lifetime: 3600,
      token_lifetime_for_web: 600,
      allow_offline_access: true,
    },
    {
      name: 'Guarded API',
      identifier: 'guarded-api',
      scopes: [{ value: 'admin' }, { value: 'look' }],
      enforce_policies: true,
      token_dialect: 'access_token_authz',
      allow_offline_access: false,
    },
    {
      name: 'RFC 9068 API',
      identifier: 'urn:rfc9068',
      scopes: [{ value: 'read' }],
      token_dialect: 'rfc9068_profile',
    },
    {
      name: 'HS256 API',
      identifier: 'hs256-api',
      signing_alg: 'HS256',
      signing_secret: 'an-api-secret-of-32-characters!!',
      scopes: [{ value: 'read' }],
    },
  ],
  clientGrants: [
    { client_id: 'm2m', audience: API, scope: ['read:things'] },
    { client_id: 'web', audience: API, scope: [] },
  ],
  organizations: [{ id: 'org_acme', name: 'acme', display_name: 'Acme' }],
  users: [
    {
      ...USER,
      connection: 'users',
      email_verified: true,
      permissions: [{ resource_server_identifier: 'guarded-api', permission_name: 'look' }],
    },
    { email: 'blocked@example.test', password: USER.password, connection: 'users', blocked: true },
    { email: 'staff@example.test', username: 'staff1', password: USER.password, connection: 'staff' },
  ],
};

/** A PKCE pair (RFC 7636 §4). */
export function pkce(): { verifier: string; challenge: string } {
  const verifier = randomBytes(32).toString('base64url');
  return { verifier, challenge: createHash('sha256').update(verifier).digest('base64url') };
}

/** Returns the SPA's parameters for a code with PKCE; `over` replaces parameters, or removes those that are undefined. */
export function spaRequest(
  challenge: string,
  over: Record<string, string | undefined> = {},
): Record<string, string> {
  return defined({
    client_id: 'spa',
    response_type: 'code',
    redirect_uri: SPA_CALLBACK,
    scope: 'openid profile email',
    state: 'the-state',
    nonce: 'the-nonce',
    code_challenge: challenge,
    code_challenge_method: 'S256',
    ...over,
  });
}

/** Returns the web application's parameters for a code. */
export function webRequest(over: Record<string, string | undefined> = {}): Record<string, string> {
  return defined({
    client_id: 'web',
    response_type: 'code',
    redirect_uri: WEB_CALLBACK,
    scope: 'openid profile email',
    state: 'the-state',
    ...over,
  });
}

function defined(all: Record<string, string | undefined>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
}

export function authorize(agent: Agent, params: Record<string, string>): Promise<Answer> {
  return agent.get(`/authorize?${new URLSearchParams(params)}`);
}

/** Follows redirects within the server; returns the first answer that is a page or redirects elsewhere. */
export async function follow(agent: Agent, answer: Answer, url: string): Promise<Answer> {
  let current = answer;
  for (let hops = 0; current.status >= 300 && current.status < 400 && hops < 10; hops++) {
    if (new URL(current.location).origin !== new URL(url).origin) return current;
    current = await agent.get(current.location);
  }
  return current;
}

/** Requests an authorization, logs in on the hosted page, and follows redirects to the application. */
export async function logIn(
  agent: Agent,
  server: { url: string },
  params: Record<string, string>,
  user: { email: string; password: string } = USER,
): Promise<Answer> {
  const page = await follow(agent, await authorize(agent, params), server.url);
  return submitLogin(agent, server, page, user);
}

/** Submits the login page and follows redirects. */
export async function submitLogin(
  agent: Agent,
  server: { url: string },
  page: Answer,
  user: { email: string; password: string } = USER,
): Promise<Answer> {
  const { action, fields } = readForm(page, 'password');
  const posted = await agent.request(action, {
    form: { ...fields, username: user.email, password: user.password },
  });
  return follow(agent, posted, server.url);
}

/** Returns the response parameters of a redirect, from its query and fragment. */
export function responseOf(answer: Answer): Record<string, string> {
  const { searchParams, hash } = new URL(answer.location);
  return { ...Object.fromEntries(searchParams), ...Object.fromEntries(new URLSearchParams(hash.slice(1))) };
}

export function token(agent: Agent, fields: Record<string, string | undefined>): Promise<Answer> {
  return agent.request('/oauth/token', { json: defined(fields) });
}

/** The web application's request for the tokens of the first user, by password. */
export const PASSWORD_REQUEST = {
  grant_type: 'password',
  client_id: 'web',
  client_secret: 'web-secret',
  username: USER.email,
  password: USER.password,
};

/** Exchanges a code of the web application. */
export function redeem(agent: Agent, code: string | undefined): Promise<Answer> {
  return token(agent, {
    grant_type: 'authorization_code',
    client_id: 'web',
    client_secret: 'web-secret',
    code,
    redirect_uri: WEB_CALLBACK,
  });
}

/** Returns the access token of a web application's login, from the response or in exchange for its code. */
export async function accessTokenOf(
  agent: Agent,
  { access_token, code }: Record<string, string>,
): Promise<string> {
  if (access_token !== undefined) return access_token;
  return (await redeem(agent, code)).json().access_token;
}

/** Logs in to the SPA and exchanges its code. */
export async function spaTokens(
  agent: Agent,
  server: { url: string },
  over: Record<string, string | undefined> = {},
  user = USER,
): Promise<Record<string, any>> {
  // any: a test reads what it expects, and fails on anything else
  const { verifier, challenge } = pkce();
  const { code } = responseOf(await logIn(agent, server, spaRequest(challenge, over), user));
  const answer = await token(agent, {
    grant_type: 'authorization_code',
    client_id: 'spa',
    code,
    code_verifier: verifier,
    redirect_uri: SPA_CALLBACK,
  });
  return answer.json();
}

/** Returns a JWT's payload without verifying it. */
export function payload(jwt: string): Record<string, any> {
  // any: as above
  return JSON.parse(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString('utf8'));
}

/** Returns a JWT's header. */
export function header(jwt: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(jwt.split('.')[0] ?? '', 'base64url').toString('utf8'));
}
