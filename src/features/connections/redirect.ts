// The interface of strategies whose users log in at an external identity provider: data and three functions, which build
// the URL of the login there, verify the answer that the browser brings back, and build the URL of the logout there.
// Everything else (state, binding to the browser, the user record, second factor, admission, log events) is common to all
// of them and is in upstream/.

import type { KeyObject } from 'node:crypto';
import type { XmlReader } from '../../capabilities/saml-messages/reader.ts';
import type { ScriptFailure } from '../../capabilities/scripts/limits.ts';
import { type Scripts, textsIn } from '../../capabilities/scripts/scripts.ts';
import type { Sign } from '../../capabilities/signing/signing.ts';
import { AuthError } from '../../http/errors.ts';
import type { Outbound } from '../../http/outbound/outbound.ts';
import type { OutboundFailure } from '../../http/outbound/outbound-error.ts';
import { isCredentialName } from '../../http/server/application.ts';
import type { Connection } from '../../records/collections.ts';
import type { StrategyName, StrategyRecord } from '../../records/connections/connections.ts';
import type { UpstreamGrant } from '../../records/connections/identities.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Random } from '../../runtime/secrets.ts';
import type { Store } from '../../store/contract.ts';
import { isSealed, openValue, SealFault, sealValue } from '../../store/sealing/records.ts';
import { sharedKey } from '../../store/shared-secret.ts';
import type { Config } from '../../tenant/config.ts';
import type { Login } from '../../users/login.ts';
import type { StableId } from '../../users/upstream-user.ts';
import type { OpenIdProviders } from './oidc/providers.ts';
import type { SamlMetadata } from './samlp/metadata-import.ts';

export interface ConnectionScript {
  connection: Connection;
  /** The application that the user logs in to, if there is one. */
  clientId: string | undefined;
  /** The option that holds the script; used in messages. */
  name: 'fetchUserProfile' | 'getLogoutUrl';
  source: string;
  /** JSON values; the callback is appended. */
  arguments: readonly unknown[];
  /** Secrets that are removed from the script's error message before it is sent to the application. */
  secrets: readonly string[];
}

export interface UpstreamDependencies {
  baseUrl: string;
  /** Sends requests to addresses that a configuration names, within the rules for outbound requests. */
  fetch: Outbound['fetch'];
  /** @returns the result that it passed to its callback. @throws AuthError by {@link upstreamFault}. */
  runScript(script: ConnectionScript): Promise<unknown>;
  config: Config;
  store: Store;
  /** Signs with a key of the tenant. */
  sign: Sign;
  /** Reads the discovery documents and keys of OpenID providers. */
  openId: OpenIdProviders;
  /** Reads the metadata of SAML identity providers. */
  samlMetadata: SamlMetadata;
  /** Reads their messages. */
  xml: XmlReader;
  random: Random;
  /** Elapsed time. */
  clock: Clock;
  wallClock: Clock;
}

/** A login that begins at a provider. */
export interface UpstreamRequest {
  connection: Connection;
  redirectUri: string;
  /** Sent to the provider and returned with its answer; accepted once. */
  state: string;
  /** 43 URL-safe characters, stored with the state. */
  nonce: string;
  /** 43 URL-safe characters, stored with the state (RFC 7636 §4.1). */
  codeVerifier: string;
  /** The standard and vendor parameters of the application's authorization request. */
  params: Readonly<Record<string, string | undefined>>;
  /** All other parameters of that request, which are meant for the provider. */
  additional: Readonly<Record<string, string>>;
  /** Set if `connection_scope` is not the application's parameter: the provider gets scopes as in RFC 6749 §3.3. */
  listsScopes?: true;
}

/** How the browser is sent to the provider: by a redirect, or by a form that it posts. */
export type UpstreamRedirect = { url: string } | { action: string; fields: Readonly<Record<string, string>> };

/** The answer that the browser brought back. It is in the browser that began the login, and no other answer was taken. */
export interface UpstreamResponse
  extends Pick<UpstreamRequest, 'connection' | 'redirectUri' | 'state' | 'nonce' | 'codeVerifier'> {
  /** The application that the user logs in to, if there is one. */
  clientId: string | undefined;
  /** The parameters of the query, or of the posted form. */
  parameters: Readonly<Record<string, string>>;
  isPosted: boolean;
}

/** An account by the provider's identifier that is never given to another. */
export interface StableIdentity extends Pick<StableId, 'id' | 'isSame' | 'description'> {
  /** The identifier that users have, or once had, as their `id`. */
  name: string;
}

/** A user as a provider identified them, verified. */
export interface UpstreamIdentity {
  /** The provider's identifier of the user, from which a new user's id here is made. */
  id: string;
  /** What `id` is, in English, if the provider says that it is a name or address. */
  idIs?: string | undefined;
  /**
   * The provider's identifier that it never gives to another account, if `id` is a name that it may, or if users may have a
   * name as their `id`.
   */
  stable?: StableIdentity;
  /** Claims, named as in OpenID Connect where that has a name (`email`, `email_verified`, `name`, `picture` …). */
  profile: Readonly<Record<string, unknown>>;
  /** Metadata for a new user. Only the operator's own script sets it, never the provider's claims. */
  metadata?: { user_metadata?: Record<string, unknown>; app_metadata?: Record<string, unknown> };
  grant?: UpstreamGrant;
  /** When the user last authenticated at the provider, epoch seconds, if the provider says so. */
  authenticatedAt?: number;
  /** When the session at the provider ends, epoch seconds, if the provider says so and the connection uses it. */
  sessionEndsAt?: number;
}

export interface UpstreamLogout {
  connection: Connection;
  /** What the provider gave at the user's last login; `logout` and `id_token` are those of the session's own login, if known. */
  grant: UpstreamGrant;
  /** The URL that the provider sends the browser back to; its query has `state`. */
  returnTo: string;
  /** The same URL without `state`, for protocols that have a parameter for it. */
  callback: string;
  state: string;
}

export interface UpstreamRefresh {
  connection: Connection;
  refreshToken: string;
  /** The ID token that was issued with the refresh token, if any. */
  idToken: string | undefined;
}

/** A login that a provider may begin by itself (SAML: IdP-initiated). */
export interface UnsolicitedLogin {
  /** The application that the user is logged in to. */
  clientId: string;
  /** The path of the authorization request that the browser is sent to. */
  path: string;
  /** The query of that request. */
  query: URLSearchParams;
}

/** How a strategy accepts answers that no request asked for. */
interface UnsolicitedResponses {
  /** Returns the login that a connection's provider may begin; undefined when the connection does not allow it. */
  loginOf(connection: Connection): UnsolicitedLogin | undefined;
  /** Verifies the answer. @throws AuthError by {@link upstreamFault}. */
  identify(
    deps: UpstreamDependencies,
    response: Pick<UpstreamResponse, 'connection' | 'parameters' | 'redirectUri'>,
  ): Promise<UpstreamIdentity>;
}

/** A strategy whose users log in at an external identity provider. */
export interface RedirectStrategy {
  name: StrategyName;
  page: 'redirect';
  /** The authentication methods of a login (RFC 8176 §2). The provider's own claims about its methods are not used. */
  amr: readonly string[];
  record: StrategyRecord;
  isSocial: boolean;
  /** The provider's name, for connections without a `display_name`; without a label, the connection's name is shown. */
  label?: string;
  // docs/understand/decisions/connections.md#user-ids-of-well-known-providers-are-strategyid
  /**
   * The scope within which the provider's user identifiers are unique: one connection, whose name is then part of the
   * user's id here, or all connections of the strategy.
   */
  idsWithin: 'connection' | 'strategy';
  /** Builds the request to the provider. @throws AuthError by {@link upstreamFault}. */
  redirect(deps: UpstreamDependencies, request: UpstreamRequest): Promise<UpstreamRedirect>;
  /** Verifies the answer. @throws AuthError by {@link upstreamFault}. */
  identify(deps: UpstreamDependencies, response: UpstreamResponse): Promise<UpstreamIdentity>;
  /** Present if the protocol has answers that no request asked for. */
  unsolicited?: UnsolicitedResponses;
  /** Returns the URL that ends the session at the provider; undefined when there is none. */
  logout(deps: UpstreamDependencies, logout: UpstreamLogout): Promise<string | undefined>;
  /**
   * Checks that a login could begin: that the options are complete, and that the provider's metadata can be read, if needed.
   * @throws AuthError by {@link upstreamFault}, or 400, when it could not.
   */
  check?(
    deps: Pick<UpstreamDependencies, 'openId' | 'samlMetadata'>,
    connection: Pick<Connection, 'options'>,
  ): Promise<void>;
  /** Renews an access token; absent if the protocol has no refresh tokens. @throws AuthError by {@link upstreamFault}. */
  refresh?(deps: UpstreamDependencies, refresh: UpstreamRefresh): Promise<UpstreamGrant>;
}

/** Error codes that the application receives (docs/reference/wire/authorize.md). */
type UpstreamError = 'access_denied' | 'unauthorized' | 'invalid_request';

/** Error descriptions for an endpoint that gave no usable answer; the endpoint's name precedes them. */
export const FAILURES: Readonly<Record<OutboundFailure, string>> = {
  refused: 'is at an address that may not be called',
  unreachable: 'cannot be reached',
  timeout: 'did not answer in time',
  'too-large': 'sent an answer that is too large',
  redirects: 'redirects',
  invalid: 'sent no valid answer',
};

/** Largest number of characters of an error description. */
const MAX_DESCRIPTION_LENGTH = 300;

/**
 * Returns the error of a login that failed at a provider. It is sent to the application and recorded in the tenant's log.
 * @param description characters that RFC 6749 §4.1.2.1 does not allow are replaced; it may be the provider's own text.
 * @param cause goes to the server's own log only.
 */
export function upstreamFault(error: UpstreamError, description: string, cause?: unknown): AuthError {
  const printable = description.replaceAll(/[^\x20\x21\x23-\x5b\x5d-\x7e]/g, ' ').trim();
  return new AuthError(403, error, printable.slice(0, MAX_DESCRIPTION_LENGTH), { cause });
}

/** Errors that mean that the user, or the provider's policy, refused the login. All others are configuration faults. */
const DENIALS = new Set([
  'access_denied',
  'login_required',
  'consent_required',
  'interaction_required',
  'account_selection_required',
]);

/** Rejects an authorization response that is an error (RFC 6749 §4.1.2.1). @throws AuthError by {@link upstreamFault}. */
export function refuseProviderError({ error, error_description }: UpstreamResponse['parameters']): void {
  if (error === undefined || error === '') return;
  const description = error_description === undefined || error_description === '' ? error : error_description;
  if (DENIALS.has(error)) throw upstreamFault('access_denied', description);
  throw upstreamFault(error === 'unauthorized' ? 'unauthorized' : 'invalid_request', description);
}

/** Returns a URL with the given parameters set in its query. */
export function withQuery(address: string, parameters: Readonly<Record<string, string>>): string {
  const url = new URL(address);
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  return url.href;
}

/** Whether a `prompt` asks for a new authentication of the user (OpenID Connect Core 1.0 §3.1.2.1). */
export function asksForLogin(prompt: string | undefined): boolean {
  return prompt?.split(' ').includes('login') === true;
}

// Additional parameters of an authorization request to a provider: the connection's options set some of them, and the
// application's own request adds others.

/**
 * Parameters of OAuth 2.0 and OpenID Connect that the strategy itself sets, or that belong to the application's own request;
 * neither an option nor an application may set them.
 */
const RESERVED = new Set([
  'client_id',
  'client_secret',
  'code',
  'code_challenge',
  'code_challenge_method',
  'code_verifier',
  'dpop_jkt',
  'id_token_hint',
  'invitation',
  'iss',
  'nonce',
  'redirect_uri',
  'request',
  'request_uri',
  'response_mode',
  'response_type',
  'scope',
  'state',
]);

/** Standard parameters of the application's request that are forwarded, because they mean the same at the provider. */
const FORWARDED = ['login_hint', 'prompt'] as const;

interface FurtherOptions {
  /** Fixed values, by parameter name. */
  authParams?: Readonly<Record<string, string>>;
  /** Provider's parameter name to the name of the parameter of the application's request that has the value. */
  authParamsMap?: Readonly<Record<string, string>>;
  upstream_params: Readonly<Record<string, { value: string } | { alias: string }>>;
}

// docs/understand/decisions/connections.md#the-operators-parameters-for-a-provider-take-precedence-over-the-applications
/**
 * Returns the additional parameters of an authorization request to a provider. A mapped value takes precedence over a fixed
 * one, and both over what the application adds; the application cannot override the query of the configured address either.
 * @param address the provider's authorization endpoint, as configured.
 */
export function furtherParameters(
  { authParams = {}, authParamsMap = {}, upstream_params }: FurtherOptions,
  { params, additional }: Pick<UpstreamRequest, 'params' | 'additional'>,
  address: URL,
): Record<string, string> {
  const requestParameters: Readonly<Record<string, string | undefined>> = { ...params, ...additional };
  const dynamic = Object.entries(upstream_params).flatMap(([name, setting]) =>
    'alias' in setting ? [[name, setting.alias] as const] : [],
  );
  const mapped = [...Object.entries(authParamsMap), ...dynamic];
  const sources = new Set(mapped.map(([, source]) => source));
  const forwarded = FORWARDED.filter((name) => params[name] !== 'none').map((name) => [name, params[name]]);
  const unmapped = [...Object.entries(additional), ...forwarded].filter(
    ([name]) =>
      mayForward(String(name)) && !sources.has(String(name)) && !address.searchParams.has(String(name)),
  );
  const fixed = Object.entries(upstream_params).flatMap(([name, setting]) =>
    'value' in setting ? [[name, setting.value] as const] : [],
  );
  const all = [
    ...unmapped,
    ...Object.entries(authParams),
    ...fixed,
    ...mapped.map(
      ([name, source]) => [name, mayForward(source) ? requestParameters[source] : undefined] as const,
    ),
  ];
  return Object.fromEntries(
    all.filter(
      (entry): entry is [string, string] =>
        typeof entry[0] === 'string' &&
        !RESERVED.has(entry[0]) &&
        typeof entry[1] === 'string' &&
        entry[1] !== '',
    ),
  );
}

/**
 * Whether a parameter of the application's request may be forwarded to a provider. Its `state`, `nonce` and the like,
 * credentials and our own parameters may not, even if the options map them.
 */
export function mayForward(source: string): boolean {
  return !RESERVED.has(source) && !isCredentialName(source) && !source.startsWith('gatehouse_');
}

// The data that a session needs to be ended at its identity provider, too. It is stored in every record that carries the
// login, and is personal: it has the user's identifier at the provider, or an ID token. So it is sealed (encrypted) before it
// is stored.

type ProviderSession = Login['providerSession'];

export type SealingDependencies = Pick<UpstreamDependencies, 'store' | 'random'>;

// docs/understand/decisions/saml.md#what-a-logout-at-the-provider-needs-is-sealed-in-the-session
/** Characters. A longer ID token is not kept: as `id_token_hint` it would make the logout URL too long for servers. */
const MAX_TOKEN_LENGTH = 6144;

/**
 * Seals what a session keeps of the provider's answer to its login.
 * @param connection the name of the connection; the value can be opened for this connection only.
 * @returns undefined when the provider gave nothing that a logout needs.
 */
export async function sealSession(
  deps: SealingDependencies,
  connection: string,
  grant: UpstreamGrant | undefined,
): Promise<ProviderSession> {
  const { logout, id_token: idToken } = grant ?? {};
  const isShort = idToken !== undefined && idToken.length <= MAX_TOKEN_LENGTH;
  const content = logout ?? (isShort ? { id_token: idToken } : undefined);
  if (content === undefined) return undefined;
  return { ...sealValue(await providerKey(deps), placeOf(connection), content) };
}

/**
 * Opens what {@link sealSession} returned.
 * @returns undefined when the session has none, or the key that it was sealed with is lost.
 */
export async function openSession(
  deps: SealingDependencies,
  connection: string,
  session: ProviderSession,
): Promise<ProviderSession> {
  if (session === undefined || !isSealed(session)) return undefined;
  try {
    return openValue(await providerKey(deps), placeOf(connection), session) as Record<string, string>;
  } catch (thrown) {
    // The key was lost and replaced. The logout then uses what is known of the user's last login.
    if (thrown instanceof SealFault) return undefined;
    throw thrown;
  }
}

/** Returns the key that seals what a provider gave, for storage in records that are not sealed as a whole. */
export const providerKey = (deps: SealingDependencies): Promise<KeyObject> =>
  sharedKey(deps, 'provider-sessions');

const placeOf = (id: string) => ({ collection: 'connections', id, member: ['providerSession'] });

// Runs the scripts of connections. A script's error message is sent to the application, as the hosted service does: this is
// how a script explains why a user may not log in.

/** Returns the function that runs a script of a connection ({@link UpstreamDependencies.runScript}). */
export function scriptRunner(scripts: Pick<Scripts, 'run'>): UpstreamDependencies['runScript'] {
  return async (script) => {
    const { connection, name, source } = script;
    const { configuration } = connection.options;
    const { result, failure } = await scripts.run({
      of: connection.name,
      askedBy: script.clientId,
      source,
      entry: name,
      args: script.arguments,
      globals: { configuration: configuration ?? {} },
      // These are removed from the error message, which may repeat the secrets that the script was given.
      hidden: [...script.secrets, ...textsIn(configuration)],
    });
    if (failure !== undefined) throw faultOf(script, failure);
    return result;
  };
}

function faultOf({ name }: ConnectionScript, { kind, name: error, message }: ScriptFailure) {
  if (kind !== 'script') return upstreamFault('access_denied', `The ${name} script failed: ${message}`);
  return upstreamFault(
    error === 'UnauthorizedError' ? 'unauthorized' : 'access_denied',
    message || `The ${name} script failed.`,
  );
}
