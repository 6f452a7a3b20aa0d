// What a strategy is whose users log in at a provider elsewhere: data and three functions. They build the address
// of the login there, verify the answer that the browser brings back, and build the address of the logout there.
// All else (state, the browser, the user, second factor, admission, events) is done for every strategy alike, in
// upstream/.
import { AuthError } from '../http/errors.ts';
import type { Outbound } from '../http/outbound.ts';
import type { OutboundFailure } from '../http/outbound-error.ts';
import type { Connection } from '../records/collections.ts';
import type { StrategyName, StrategyRecord } from '../records/connections.ts';
import type { UpstreamGrant } from '../records/identities.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Random } from '../runtime/random.ts';
import type { Sign } from '../signing/signing.ts';
import type { Store } from '../store/contract.ts';
import type { Config } from '../tenant/config.ts';
import type { OpenIdProviders } from './oidc/providers.ts';

/** A script of a connection, to be run. */
export interface ConnectionScript {
  connection: Connection;
  /** The option that holds it, for messages. */
  name: 'fetchUserProfile' | 'getLogoutUrl';
  source: string;
  /** JSON; the callback is added. */
  arguments: readonly unknown[];
  /** Secrets that are removed from what the script says before the application is told. */
  secrets: readonly string[];
}

/** What all these strategies are given. */
export interface UpstreamDependencies {
  /** Our public origin. */
  baseUrl: string;
  /** Every request to an address that a configuration names. */
  fetch: Outbound['fetch'];
  /** Runs a script. @returns what it gave its callback. @throws AuthError by {@link upstreamFault}. */
  runScript(script: ConnectionScript): Promise<unknown>;
  /** The tenant's. */
  config: Config;
  store: Store;
  /** By a key of the tenant's. */
  sign: Sign;
  /** Reads the discovery documents and keys of OpenID providers. */
  openId: OpenIdProviders;
  random: Random;
  /** Elapsed time. */
  clock: Clock;
  /** The time of day. */
  wallClock: Clock;
}

/** A login that begins. */
export interface UpstreamRequest {
  connection: Connection;
  /** Where the provider sends the browser back to. */
  redirectUri: string;
  /** The `state`, which comes back with the answer and is good once. */
  state: string;
  /** 43 URL-safe characters each, kept with the state and never seen by the browser before they are used. */
  nonce: string;
  codeVerifier: string;
  /** The parameters of the application's authorization request, of standard and vendor names. */
  params: Readonly<Record<string, string | undefined>>;
  /** Its further parameters, which are for the provider. */
  additional: Readonly<Record<string, string>>;
}

/** Where the browser goes: by a redirect, or by a form that it posts. */
export type UpstreamRedirect = { url: string } | { action: string; fields: Readonly<Record<string, string>> };

/** What the browser brought back. The login was begun in the same browser, and this is its only answer. */
export interface UpstreamResponse
  extends Pick<UpstreamRequest, 'connection' | 'redirectUri' | 'state' | 'nonce' | 'codeVerifier'> {
  /** The query's, or the posted form's. */
  parameters: Readonly<Record<string, string>>;
}

/** Somebody as the provider knows them, verified. */
export interface UpstreamIdentity {
  /** The provider's id of the user, which it never gives to another one. */
  id: string;
  /** In the names of OpenID Connect (`email`, `email_verified`, `name`, `picture` …), and any others. */
  profile: Readonly<Record<string, unknown>>;
  /** Metadata for a new user. From the operator's own script only, never from what a provider claims. */
  metadata?: { user_metadata?: Record<string, unknown>; app_metadata?: Record<string, unknown> };
  grant?: UpstreamGrant;
  /** When its user proved there who they are, epoch seconds, where the provider says so. */
  authenticatedAt?: number;
  /** When the session there ends, epoch seconds, where the provider says so and the connection goes by it. */
  sessionEndsAt?: number;
}

/** A session that ends, at the provider that it came from. */
export interface UpstreamLogout {
  connection: Connection;
  /** What the provider gave at the user's last login there; `logout` and `id_token` are of the session's own login. */
  grant: UpstreamGrant;
  /** Where the browser is to come back to; includes `state`. */
  returnTo: string;
  /** The same address without it, for protocols that carry a state themselves. */
  callback: string;
  state: string;
}

/** An access token that has ended, and what it is renewed with. */
export interface UpstreamRefresh {
  connection: Connection;
  refreshToken: string;
  /** The ID token that came with it, where one did. */
  idToken: string | undefined;
}

/** A login that the provider begins (SAML IdP-initiated). */
export interface UnsolicitedLogin {
  /** The application that it is for. */
  clientId: string;
  /** The path of the authorization request that goes on for it, without its required parameters. */
  path: string;
  /** Parameters of that request. */
  query: URLSearchParams;
}

/** How a strategy takes answers to no request. */
interface Unsolicited {
  /** The login that a connection's provider may begin; undefined where it may not. */
  of(connection: Connection): UnsolicitedLogin | undefined;
  /** Verifies the answer. @throws AuthError by {@link upstreamFault}. */
  identify(
    deps: UpstreamDependencies,
    response: Pick<UpstreamResponse, 'connection' | 'parameters' | 'redirectUri'>,
  ): Promise<UpstreamIdentity>;
}

/** A strategy whose users log in elsewhere. */
export interface RedirectStrategy {
  /** As connections name it. */
  name: StrategyName;
  page: 'redirect';
  /** What a login proves here (RFC 8176 §2), whatever the provider says of its own methods. */
  amr: readonly string[];
  record: StrategyRecord;
  isSocial: boolean;
  /** What the provider is called, for connections that have no `display_name`; their own name where it is left out. */
  label?: string;
  /**
   * Within what the provider's ids are unique: one connection, whose name is then part of the user's id, or all
   * users of the strategy.
   */
  idsWithin: 'connection' | 'strategy';
  /** Builds the way there. @throws AuthError by {@link upstreamFault}. */
  redirect(deps: UpstreamDependencies, request: UpstreamRequest): Promise<UpstreamRedirect>;
  /** Verifies the answer. @throws AuthError by {@link upstreamFault}. */
  identify(deps: UpstreamDependencies, response: UpstreamResponse): Promise<UpstreamIdentity>;
  /** Answers that nobody asked for, where the protocol knows any. */
  unsolicited?: Unsolicited;
  /** Where the session there is ended; undefined where it cannot be. */
  logout(deps: UpstreamDependencies, logout: UpstreamLogout): Promise<string | undefined>;
  /**
   * Asks the provider for what it publishes of itself, where a login needs that, and says what else a login would lack.
   * @throws AuthError by {@link upstreamFault}, or 400.
   */
  check?(
    deps: Pick<UpstreamDependencies, 'fetch' | 'openId' | 'clock'>,
    connection: Pick<Connection, 'options'>,
  ): Promise<void>;
  /** Renews an access token, where providers give refresh tokens. @throws AuthError by {@link upstreamFault}. */
  refresh?(deps: UpstreamDependencies, refresh: UpstreamRefresh): Promise<UpstreamGrant>;
}

/** What the application is told (docs/wire/authorize.md). */
type UpstreamError = 'access_denied' | 'unauthorized' | 'invalid_request';

/** What the application is told of an endpoint that gave no answer, after its name. */
export const FAILURES: Readonly<Record<OutboundFailure, string>> = {
  refused: 'is at an address that may not be called',
  unreachable: 'cannot be reached',
  timeout: 'did not answer in time',
  'too-large': 'sent an answer that is too large',
  redirects: 'redirects',
  invalid: 'sent no valid answer',
};

/** Characters of a provider's own words that are passed on. */
const LONGEST_DESCRIPTION = 300;

/**
 * Why a login at a provider has failed: an error at the application, and an event.
 * @param description for both; of a provider's words those that RFC 6749 §4.1.2.1 allows are kept.
 * @param cause for the server's own log.
 */
export function upstreamFault(error: UpstreamError, description: string, cause?: unknown): AuthError {
  const plain = description.replaceAll(/[^\x20\x21\x23-\x5b\x5d-\x7e]/g, ' ').trim();
  return new AuthError(403, error, plain.slice(0, LONGEST_DESCRIPTION), { cause });
}

/**
 * Errors by which the user or the provider's policy has refused the login. All others are faults of the
 * configuration.
 */
const DENIALS = new Set([
  'access_denied',
  'login_required',
  'consent_required',
  'interaction_required',
  'account_selection_required',
]);

/**
 * Ends a login whose answer is an error (RFC 6749 §4.1.2.1).
 * @throws AuthError by {@link upstreamFault} for one.
 */
export function refuseProviderError({ error, error_description }: UpstreamResponse['parameters']): void {
  if (error === undefined || error === '') return;
  const description = error_description === undefined || error_description === '' ? error : error_description;
  if (DENIALS.has(error)) throw upstreamFault('access_denied', description);
  throw upstreamFault(error === 'unauthorized' ? 'unauthorized' : 'invalid_request', description);
}

/** An address with parameters set in its query. */
export function withQuery(address: string, parameters: Readonly<Record<string, string>>): string {
  const url = new URL(address);
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  return url.href;
}

/** Whether a request asks that its user proves anew who they are (OpenID Connect Core 1.0 §3.1.2.1). */
export function asksForLogin(prompt: string | undefined): boolean {
  return prompt?.split(' ').includes('login') === true;
}
