// The strategy `oauth2`: custom social connections. A script of the operator reads the user's profile with the access token
// (docs/do/connections/oauth2.md).

import type { AuthError } from '../../../http/errors.ts';
import { OutboundError } from '../../../http/outbound/outbound-error.ts';
import type { Connection } from '../../../records/collections.ts';
import { STRATEGIES } from '../../../records/connections/connections.ts';
import {
  isHttpsOrLoopback,
  missingOAuth2Options,
  type OAuth2Options,
  oauth2OptionsSchema,
} from '../../../records/connections/upstream.ts';
import { epochSeconds } from '../../../runtime/clock.ts';
import { isJsonObject, jsonOf } from '../../../runtime/json.ts';
import { sha256 } from '../../../runtime/secrets.ts';
import {
  FAILURES,
  furtherParameters,
  type RedirectStrategy,
  refuseProviderError,
  type UpstreamDependencies,
  type UpstreamIdentity,
  type UpstreamLogout,
  type UpstreamRequest,
  type UpstreamResponse,
  upstreamFault,
  withQuery,
} from '../redirect.ts';

export const oauth2: RedirectStrategy = {
  name: 'oauth2',
  page: 'redirect',
  amr: [],
  record: STRATEGIES.oauth2,
  isSocial: true,
  idsWithin: 'connection',
  redirect: async (_deps, request) => ({ url: authorizationUrl(optionsOf(request.connection), request) }),
  identify: async (deps, response) => {
    const options = optionsOf(response.connection);
    const answer = await exchangeAnswer(deps, options, response);
    return {
      ...(await identityOf(deps, response, options, answer)),
      grant: grantOf(answer, deps.wallClock),
    };
  },
  logout: async (deps, logout) => logoutUrl(deps, optionsOf(logout.connection), logout),
  check: async (_deps, connection) => {
    optionsOf(connection);
  },
  refresh: async (deps, { connection, refreshToken: token }) =>
    grantOf(await refreshToken(deps, optionsOf(connection), token), deps.wallClock),
};

/** @throws AuthError by {@link upstreamFault} if a required one is missing. */
function optionsOf({ options }: Pick<Connection, 'options'>): OAuth2Options {
  const missing = missingOAuth2Options(options);
  if (missing.length > 0)
    throw upstreamFault('invalid_request', `The connection has no ${missing.join(', ')}.`);
  return oauth2OptionsSchema.parse(options);
}

// Logout at an OAuth 2.0 provider. There is no standard for it, so the connection's options have the URL.

/**
 * Returns the logout URL: the option `logoutUrl`, or else the result of the script `getLogoutUrl`.
 * @returns undefined if the connection has neither, and for a result that is not an https (or loopback) URL.
 */
async function logoutUrl(
  { runScript }: Pick<UpstreamDependencies, 'runScript'>,
  { logoutUrl: fixed, scripts }: OAuth2Options,
  { connection, returnTo }: UpstreamLogout,
): Promise<string | undefined> {
  if (fixed !== undefined && fixed !== '') return withQuery(fixed, { returnTo });
  const source = scripts.getLogoutUrl?.trim() ?? '';
  if (source === '') return undefined;
  const result = await runScript({
    connection,
    // A session has logins to several applications.
    clientId: undefined,
    name: 'getLogoutUrl',
    source,
    arguments: [{ returnTo }],
    secrets: [],
  });
  return typeof result === 'string' && isHttpsOrLoopback(result) ? result : undefined;
}

// The user's profile: the connection's script reads it with the access token (docs/do/connections/oauth2.md).

/**
 * Returns the user that the connection's script `fetchUserProfile` names.
 * @param answer the token endpoint's response.
 * @throws AuthError by {@link upstreamFault} when the script fails, or its result has no usable id.
 */
async function identityOf(
  { baseUrl, runScript }: Pick<UpstreamDependencies, 'baseUrl' | 'runScript'>,
  { connection, clientId }: Pick<UpstreamResponse, 'connection' | 'clientId'>,
  { client_secret, scripts, fieldsMap }: OAuth2Options,
  answer: TokenAnswer,
): Promise<UpstreamIdentity> {
  const { access_token } = answer;
  const source = scripts.fetchUserProfile?.trim() ?? '';
  const tenant = new URL(baseUrl).hostname;
  const script = {
    connection,
    clientId,
    name: 'fetchUserProfile',
    source,
    // The provider's own members take precedence, because published scripts read them.
    arguments: [access_token, { tenant, tenantId: tenant, connection: connection.name, ...answer }],
    secrets: [client_secret, ...tokensIn(answer)],
  } as const;
  const result = source === '' ? {} : await runScript(script);
  if (!isJsonObject(result)) {
    throw upstreamFault('access_denied', 'The fetchUserProfile script gave no profile.');
  }
  const { user_metadata, app_metadata, ...rest } = result;
  const profile: Record<string, unknown> = { ...rest, ...mapFields(fieldsMap, rest) };
  // Scripts that return a provider's answer unchanged (GitHub's, for example) have `id` in place of `user_id`.
  const id = profile.user_id ?? profile.id;
  // A larger number was rounded when it was parsed, so that several users could have the same.
  if (typeof id === 'number' && !Number.isSafeInteger(id)) {
    throw upstreamFault('access_denied', 'The user_id of the profile is too large for a number.');
  }
  if (typeof id !== 'number' && (typeof id !== 'string' || id === '')) {
    throw upstreamFault('access_denied', 'The profile has no user_id.');
  }
  const metadata = {
    ...(isJsonObject(user_metadata) && { user_metadata }),
    ...(isJsonObject(app_metadata) && { app_metadata }),
  };
  return { id: String(id), profile, metadata };
}

/** Returns the values of a response that are long enough to be tokens. */
function tokensIn(answer: TokenAnswer): string[] {
  return Object.values(answer).filter((one): one is string => typeof one === 'string' && one.length > 15);
}

/** Returns the fields of `fieldsMap`: each has the value of the first of its names that the script's result has. */
function mapFields(
  fieldsMap: OAuth2Options['fieldsMap'],
  members: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fieldsMap).flatMap(([field, names]) => {
      const found = [names].flat().find((name) => members[name] !== undefined && members[name] !== null);
      return found === undefined ? [] : [[field, members[found]]];
    }),
  );
}

// The authorization request to an OAuth 2.0 provider (RFC 6749 §4.1.1), built from a connection's options and the application's
// own request.

export function authorizationUrl(options: OAuth2Options, request: UpstreamRequest): string {
  const url = new URL(options.authorizationURL);
  const scope = scopeOf(options, request);
  const standard = {
    response_type: 'code',
    client_id: options.client_id,
    redirect_uri: request.redirectUri,
    ...(scope !== '' && { scope }),
    state: request.state,
    ...(options.pkce_enabled && {
      code_challenge: sha256(request.codeVerifier),
      code_challenge_method: 'S256',
    }),
  };
  for (const [name, value] of Object.entries({ ...furtherParameters(options, request, url), ...standard })) {
    url.searchParams.set(name, value);
  }
  return url.href;
}

/**
 * Returns the scopes of the connection, and those that the application requests in addition (`connection_scope`), which SDKs
 * join by commas and people by spaces. With additional ones the list is separated as the connection says; without, by spaces
 * (RFC 6749 §3.3).
 */
function scopeOf(
  { scope, useOauthSpecScope }: OAuth2Options,
  { params: { connection_scope: requested = '' }, listsScopes }: UpstreamRequest,
): string {
  const configured = Array.isArray(scope) ? scope : scope.split(' ');
  const additional = requested.split(/[\s,]+/).filter((one) => one !== '');
  const all = [...configured, ...additional].map((one) => one.trim()).filter((one) => one !== '');
  return [...new Set(all)].join(additional.length === 0 || useOauthSpecScope || listsScopes ? ' ' : ',');
}

// The authorization response of an OAuth 2.0 provider (RFC 6749 §4.1.2).

/** Checks an authorization response and exchanges its code. @throws AuthError by {@link upstreamFault}. */
export async function exchangeAnswer(
  deps: Pick<UpstreamDependencies, 'fetch'>,
  options: OAuth2Options,
  response: UpstreamResponse,
): Promise<TokenAnswer> {
  checkIssuer(options, response.parameters);
  refuseProviderError(response.parameters);
  return exchangeCode(deps, options, response);
}

// docs/understand/decisions/connections.md#an-iss-of-an-oauth-20-provider-must-have-the-origin-of-its-authorizationurl
/**
 * Rejects a response whose `iss` is another provider (mix-up attack, RFC 9207 §2.4). For a connection without an issuer, the
 * origin of its authorization URL is compared.
 * @throws AuthError by {@link upstreamFault}
 */
function checkIssuer(
  { issuer, authorizationURL }: OAuth2Options,
  { iss }: UpstreamResponse['parameters'],
): void {
  if (iss === undefined) return;
  const isSame =
    issuer === undefined ? URL.parse(iss)?.origin === new URL(authorizationURL).origin : iss === issuer;
  if (!isSame) throw upstreamFault('access_denied', 'The answer is of another identity provider.');
}

// The token request to an OAuth 2.0 provider (RFC 6749 §4.1.3) and its response, in the variations that providers have.

/** The response of a token endpoint: the members of RFC 6749 §5.1, and any that the provider adds. */
export interface TokenAnswer {
  access_token: string;
  [member: string]: unknown;
}

// docs/understand/decisions/connections.md#a-token-response-without-a-known-token_type-is-treated-as-bearer
/**
 * Token types that cannot be used as bearer tokens (RFC 9449; RFC 6749 §7.1). Every other type is taken as `bearer`, because
 * many providers have names of their own for it.
 */
const BOUND_TYPES = new Set(['dpop', 'mac', 'pop', 'n_a']);

/**
 * @returns the whole token response.
 * @throws AuthError by {@link upstreamFault}; its description never includes what was sent.
 */
export async function exchangeCode(
  { fetch }: Pick<UpstreamDependencies, 'fetch'>,
  options: OAuth2Options,
  {
    redirectUri,
    codeVerifier,
    parameters,
  }: Pick<UpstreamResponse, 'redirectUri' | 'codeVerifier' | 'parameters'>,
): Promise<TokenAnswer> {
  const { code = '' } = parameters;
  if (code === '')
    throw upstreamFault('invalid_request', 'The identity provider sent no authorization code.');
  return requestTokens({ fetch }, options, {
    grant_type: 'authorization_code',
    code,
    redirect_uri: redirectUri,
    ...(options.pkce_enabled && { code_verifier: codeVerifier }),
  });
}

/**
 * Renews an access token (RFC 6749 §6).
 * @returns the whole token response. @throws AuthError as {@link exchangeCode}.
 */
export function refreshToken(
  deps: Pick<UpstreamDependencies, 'fetch'>,
  options: OAuth2Options,
  refresh_token: string,
): Promise<TokenAnswer> {
  return requestTokens(deps, options, { grant_type: 'refresh_token', refresh_token });
}

async function requestTokens(
  { fetch }: Pick<UpstreamDependencies, 'fetch'>,
  { tokenURL, client_id, client_secret, customHeaders }: OAuth2Options,
  grant: Readonly<Record<string, string>>,
): Promise<TokenAnswer> {
  const form = new URLSearchParams({ ...grant, client_id, ...(client_secret !== '' && { client_secret }) });
  const headers = new Headers({ accept: 'application/json', 'user-agent': USER_AGENT });
  for (const [name, value] of Object.entries(customHeaders)) headers.set(name, value);
  headers.set('content-type', 'application/x-www-form-urlencoded');
  const request = { method: 'POST', headers, body: form.toString() };
  return tokenAnswer(await requestEndpoint({ fetch }, 'token endpoint', tokenURL, request), client_secret);
}

function tokenAnswer({ response, text }: ProviderAnswer, secret: string): TokenAnswer {
  const { status } = response;
  const fault = (what: string) => endpointFault('token endpoint', what);
  const answer = parseAnswer(response.headers.get('content-type') ?? '', text);
  const { error, access_token, token_type } = answer ?? {};
  // Some providers send errors with status 200.
  refuseError('token endpoint', error, [secret]);
  if (status !== 200 && status !== 201) throw fault(`answered with status ${status}`);
  if (answer === undefined) throw fault('sent an answer that is neither JSON nor a form');
  if (typeof access_token !== 'string' || access_token === '') throw fault('gave no access token');
  if (typeof token_type === 'string' && BOUND_TYPES.has(token_type.toLowerCase())) {
    throw fault('gave a token of a type that is not supported');
  }
  return { ...answer, access_token };
}

function parseAnswer(type: string, text: string): Record<string, unknown> | undefined {
  const json = parseJson(text);
  if (json !== undefined) return json;
  if (/json|html|xml/i.test(type) || !text.includes('=')) return undefined;
  return Object.fromEntries(new URLSearchParams(text.trim()));
}

function parseJson(text: string): Record<string, unknown> | undefined {
  const value = jsonOf(text);
  return isJsonObject(value) ? value : undefined;
}

/** Characters of the scope that is stored. */
const MAX_SCOPE_LENGTH = 10_000;

/** Returns the part of a token response that is stored, sealed, with the identity or connected account. */
export function grantOf(answer: TokenAnswer, wallClock: UpstreamDependencies['wallClock']) {
  const { access_token, refresh_token, id_token, expires_in, scope } = answer;
  const seconds = Number(expires_in);
  return {
    access_token,
    ...(typeof refresh_token === 'string' && refresh_token !== '' && { refresh_token }),
    ...(typeof id_token === 'string' && { id_token }),
    ...(typeof scope === 'string' && scope !== '' && { scope: scope.slice(0, MAX_SCOPE_LENGTH) }),
    ...(expires_in !== undefined &&
      Number.isFinite(seconds) &&
      seconds > 0 && { expires_at: epochSeconds(wallClock) + Math.floor(seconds) }),
  };
}

// Requests to the endpoints of an OAuth 2.0 provider, and their errors. An error never includes what was sent, nor free text
// of an answer, because both may have secrets.

/** The name of an endpoint in error descriptions. */
type Endpoint = 'token endpoint' | 'profile endpoint';

interface ProviderAnswer {
  response: Response;
  text: string;
}

/** Timeout of one request, milliseconds. */
const TIMEOUT = 10_000;
/** Bytes of a response body. */
const MAX_ANSWER_BYTES = 256 * 1024;
/** Some providers reject requests without a User-Agent. */
export const USER_AGENT = 'Gatehouse';

/** @throws AuthError by {@link endpointFault} if there is no response, and for a redirect. */
export async function requestEndpoint(
  { fetch }: Pick<UpstreamDependencies, 'fetch'>,
  endpoint: Endpoint,
  url: string,
  request: Pick<RequestInit, 'method' | 'headers' | 'body'>,
): Promise<ProviderAnswer> {
  const unreachable = (thrown: unknown): never => {
    const failure = thrown instanceof OutboundError ? thrown.failure : 'unreachable';
    throw endpointFault(endpoint, FAILURES[failure], thrown);
  };
  const rules = { redirect: 'manual', timeout: TIMEOUT, maxBytes: MAX_ANSWER_BYTES } as const;
  const response = await fetch(url, { ...request, ...rules }).catch(unreachable);
  const text = await response.text().catch(unreachable);
  if (response.status >= 300 && response.status < 400) throw endpointFault(endpoint, 'redirects');
  return { response, text };
}

/** @param what follows the endpoint's name. @param cause goes to the server's own log only. */
export function endpointFault(endpoint: Endpoint, what: string, cause?: unknown): AuthError {
  return upstreamFault('invalid_request', `The identity provider's ${endpoint} ${what}.`, cause);
}

/**
 * @param error the member `error` of the response.
 * @param secrets those of the request, which the response may repeat.
 * @throws AuthError by {@link endpointFault}.
 */
export function refuseError(endpoint: Endpoint, error: unknown, secrets: readonly string[]): void {
  if (error === undefined || error === null || error === '' || error === false) return;
  throw endpointFault(endpoint, `answered with the error ${codeOf(error, secrets)}`);
}

/**
 * Returns the error code (RFC 6749 §5.2) of a response, which some providers put into an object. Anything that is not a code,
 * or that repeats a secret of the request, becomes `unknown`.
 */
function codeOf(error: unknown, secrets: readonly string[]): string {
  const code = isJsonObject(error) ? error.code : error;
  return typeof code === 'string' && /^[a-z][a-z_]{1,40}$/.test(code) && !secrets.includes(code)
    ? code
    : 'unknown';
}
