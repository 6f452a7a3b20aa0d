// The token request to an OAuth 2.0 provider (RFC 6749 §4.1.3) and its response, in the variations that providers have.
import type { OAuth2Options } from '../../../records/oauth2.ts';
import { epochSeconds } from '../../../runtime/clock.ts';
import { isJsonObject, jsonOf } from '../../../runtime/json.ts';
import { type UpstreamDependencies, type UpstreamResponse, upstreamFault } from '../redirect.ts';
import {
  endpointFault,
  type ProviderAnswer,
  refuseError,
  requestEndpoint,
  USER_AGENT,
} from './provider-request.ts';

/** The response of a token endpoint: the members of RFC 6749 §5.1, and any that the provider adds. */
export interface TokenAnswer {
  access_token: string;
  [member: string]: unknown;
}

/**
 * Token types that cannot be used as bearer tokens (RFC 9449; RFC 6749 §7.1). Every other type is taken as `bearer`, because
 * many providers have names of their own for it.
 */
const BOUND_TYPES = new Set(['dpop', 'mac', 'pop', 'n_a']);

/**
 * Exchanges the authorization code of a response.
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
