// Logins at external identity providers, for every protocol.

import type { Context } from 'koa';
import { z } from 'zod';
import type { LoginTickets } from '../../../capabilities/protection/login-tickets.ts';
import type { RateLimits } from '../../../capabilities/protection/rate-limit.ts';
import type { DirectRedirect } from '../../../engine/authorize/authorize.ts';
import { requestExpired } from '../../../engine/authorize/waiting-requests.ts';
import { engineEvents } from '../../../engine/base/engine-declaration.ts';
import { feature } from '../../../engine/provider/feature.ts';
import type { ExchangeToken } from '../../../engine/token/token-exchange.ts';
import type { GrantDeclaration, GrantRequest } from '../../../engine/token/tokens.ts';
import { AuthError } from '../../../http/errors.ts';
import { optional, required } from '../../../http/parameter-schemas.ts';
import { bodyTexts, requiredField, textsOf } from '../../../http/server/body.ts';
import { PAGE, type RouteDeclarations } from '../../../http/server/router.ts';
import type { Client, Connection } from '../../../records/collections.ts';
import type { StrategyName } from '../../../records/connections/connections.ts';
import { isJsonObject, jsonOf } from '../../../runtime/json.ts';
import type { Config } from '../../../tenant/config.ts';
import { waitsForLogin } from '../../flow/finish.ts';
import { acceptsConnection, openRequestPage } from '../../flow/request-page.ts';
import { type ConnectedGrantDependencies, connectedGrant } from '../connected/connected-grant.ts';
import {
  type ConnectedRouteDependencies,
  connectedRoutes,
  finishAtProvider,
} from '../connected/connected-routes.ts';
import { handleLoginForm, isLoginForm } from '../database/username-password.ts';
import { appleName, appleSecret } from '../oidc/apple.ts';
import { claimsOf, openConnection } from '../oidc/connection.ts';
import { identityOf } from '../oidc/core.ts';
import { providerFault } from '../oidc/faults.ts';
import { apple, google } from '../oidc/strategies.ts';
import { type UpstreamDependencies, type UpstreamIdentity, upstreamFault } from '../redirect.ts';
import { byRedirect, connectionsFor, directProvider, resolveConnection } from '../resolve.ts';
import { socialConnection } from '../social/preset-options.ts';
import { presets } from '../social/presets.ts';
import { strategyOf } from '../strategies.ts';
import { type BeginDependencies, beginUpstream, CALLBACK, type Upstream } from './begin.ts';
import { type CompleteDependencies, complete, loginOf, recordFault } from './complete.ts';
import { type ProviderRedirectDependencies, redirectToProvider } from './redirect-to-provider.ts';
import type { TestLogins } from './test-logins.ts';
import { upstreamEvents, upstreamLimits } from './upstream-declaration.ts';

// The input of a native social login.

export interface NativeToken {
  connection: Connection;
  client: Client;
  /** The code or token of the provider's SDK. */
  token: string;
  /** The user's profile as the app sends it, JSON; unverified. */
  userProfile: string | undefined;
}

// Redirects from the authorization endpoint directly to the provider of a request, without a login page
// (docs/reference/wire/authorize.md).
// docs/understand/decisions/connections.md#authorize-redirects-to-the-provider-itself

/** Returns the function that the authorization endpoint calls for a request that needs a login. */
export function directRedirect(deps: BeginDependencies & { config: Config }): DirectRedirect {
  return async (ctx, request) => {
    const upstream = await directProvider(deps.config, request);
    if (upstream === undefined) return undefined;
    try {
      const redirect = await beginUpstream(deps, ctx, request, upstream);
      return 'url' in redirect ? redirect.url : undefined;
    } catch (thrown) {
      // The login page tries again, and can end the request with an error.
      if (thrown instanceof AuthError) return undefined;
      throw thrown;
    }
  };
}

// Native social login: a token exchange (RFC 8693 §2.1) of what a mobile app got from a provider's own SDK
// (docs/reference/wire/token.md). It is verified with the application's connection to that provider, and is then a
// login like any other.

// Native login with a session info access token of Facebook's SDK. It identifies the user and grants no access, so Facebook is
// asked which user and which app it was issued for.

/** Characters of the profile that the app sends, as JSON. */
const MAX_PROFILE_BYTES = 8_192;
/** Characters of one claim in it. */
const MAX_TEXT_LENGTH = 500;
const CLAIM_NAMES = ['name', 'given_name', 'family_name', 'nickname', 'picture', 'email'];

/** Returns the user of a token. @throws AuthError by `upstreamFault` for one that is not valid, or was issued for another app. */
async function facebookIdentity(
  deps: UpstreamDependencies,
  { connection, token, userProfile }: NativeToken,
): Promise<UpstreamIdentity> {
  const { clientId, clientSecret, userInfo } = socialConnection(presets.facebook, connection);
  const url = new URL('/debug_token', userInfo);
  url.searchParams.set('input_token', token);
  const answer = await deps
    .fetch(url, { headers: { authorization: `Bearer ${clientId}|${clientSecret}` }, redirect: 'manual' })
    .then(async (response) => (await response.json()) as { data?: Record<string, unknown> } | null)
    .catch(providerFault('debug_token endpoint'));
  const { is_valid, app_id, user_id } = answer?.data ?? {};
  if (is_valid !== true) throw upstreamFault('access_denied', 'The token is not good.');
  if (String(app_id) !== clientId) throw upstreamFault('access_denied', 'The token is of another app.');
  if (typeof user_id !== 'string' || user_id === '')
    throw upstreamFault('access_denied', 'The token names nobody.');
  return { id: user_id, profile: profileOf(userProfile) };
}

/**
 * Reads the profile that the app sends. It is unverified, so the e-mail address counts as unverified, and only name claims,
 * the picture and the address are read.
 */
function profileOf(text: string | undefined): Record<string, unknown> {
  if (text === undefined || text.length > MAX_PROFILE_BYTES) return {};
  const parsed = jsonOf(text);
  const claims = isJsonObject(parsed) ? parsed : {};
  const texts = CLAIM_NAMES.flatMap((name) => {
    const value = Object.hasOwn(claims, name) ? claims[name] : undefined;
    return typeof value === 'string' && value.length <= MAX_TEXT_LENGTH ? [[name, value] as const] : [];
  });
  return { ...Object.fromEntries(texts), email_verified: false };
}

// Native login with an authorization code of Apple's SDK. The code is exchanged with the app's own client id at Apple, which is
// its bundle identifier.

/** Returns the user of an authorization code. @throws AuthError by `upstreamFault` for a code that Apple rejects. */
async function appleIdentity(
  deps: UpstreamDependencies,
  { connection: record, client, token, userProfile }: NativeToken,
): Promise<UpstreamIdentity> {
  const clientId = client.mobile?.ios?.app_bundle_identifier;
  if (!clientId) throw upstreamFault('invalid_request', 'The application has no app_bundle_identifier.');
  const configured = await openConnection(deps, apple, record);
  const connection = { ...configured, clientId };
  const secret = await appleSecret(deps, connection.options, connection.metadata, clientId);
  const { exchangeNativeCode } = await import('../oidc/client.ts');
  const tokens = await exchangeNativeCode(deps.fetch, {
    metadata: connection.metadata,
    clientId,
    credential: { method: 'client_secret_post', secret },
    code: token,
    now: deps.wallClock(),
  }).catch(providerFault('token endpoint'));
  if (tokens.id_token === undefined) throw upstreamFault('invalid_request', 'Apple gave no ID token.');
  const claims = await claimsOf(deps, connection, tokens.id_token, {
    nonce: undefined,
    accessToken: tokens.access_token,
  });
  const identity = identityOf(deps, connection, { claims, userInfo: {}, parameters: {} });
  // The tokens are not kept: they were issued to the app's client id, so the connection could not renew them.
  return { ...identity, profile: { ...identity.profile, ...appleName(userProfile) } };
}

// Native login with an ID token of Google's SDK, issued for one of the client ids that the connection allows.
// docs/understand/decisions/connections.md#an-id-token-from-googles-sdk-can-be-used-until-it-expires

/** Returns the user of an ID token. @throws AuthError by `upstreamFault` for one that is not Google's, or is for another app. */
async function googleIdentity(
  deps: UpstreamDependencies,
  { connection: record, token }: NativeToken,
): Promise<UpstreamIdentity> {
  const connection = await openConnection(deps, google, record);
  const { allowed_audiences: audiences } = connection.options;
  // On Android, `azp` is the app's own client id, and `aud` is the one that the token is for; so any `azp` is accepted.
  const claims = await claimsOf(deps, connection, token, {
    nonce: undefined,
    audiences,
    acceptsAnyAzp: true,
  });
  return identityOf(deps, connection, { claims, userInfo: {}, parameters: {} });
}

interface NativeGrantDependencies extends CompleteDependencies {
  rateLimits: Pick<RateLimits, 'takeFrom'>;
  exchangeToken: ExchangeToken;
  /** Exchanges tokens that an action of the tenant verifies (custom token exchange). */
  exchangeCustomToken: ExchangeToken;
}

/** A provider whose SDK apps can log in with. */
interface NativeProvider {
  strategy: StrategyName;
  /** The member of the application's `native_social_login` that enables it. */
  setting: 'apple' | 'google' | 'facebook';
  /** Verifies a code or token. @throws AuthError by `upstreamFault` for one that is not valid, or was issued for another app. */
  identify(deps: UpstreamDependencies, token: NativeToken): Promise<UpstreamIdentity>;
}

/** The providers, by the path of the `subject_token_type`, whose host is the tenant's `vendor_host`. */
const NATIVE_PROVIDERS: Readonly<Record<string, NativeProvider>> = {
  '/oauth/token-type/apple-authz-code': { strategy: 'apple', setting: 'apple', identify: appleIdentity },
  '/oauth/token-type/google-id-token': {
    strategy: 'google-oauth2',
    setting: 'google',
    identify: googleIdentity,
  },
  '/oauth/token-type/facebook-info-session-access-token': {
    strategy: 'facebook',
    setting: 'facebook',
    identify: facebookIdentity,
  },
};

/** The token exchange grant: tokens of this server, of custom token exchange, and of native social login. */
const nativeGrant: GrantDeclaration<NativeGrantDependencies> = {
  grantType: 'urn:ietf:params:oauth:grant-type:token-exchange',
  summary:
    "A token of this server, one that an action verifies, or a code or token of Apple's, Google's or Facebook's native SDK",
  parameters: z.object({
    subject_token: required('The code or token.'),
    subject_token_type: required('The type of the subject token.'),
    actor_token: optional('A token of the actor, who acts for the user.'),
    actor_token_type: optional('The type of the actor token.'),
    requested_token_type: optional('`urn:ietf:params:oauth:token-type:access_token`'),
    user_profile: optional('The profile of the user, as the app received it from the provider, in JSON.'),
  }),
  gty: 'urn:ietf:params:oauth:grant-type:token-exchange',
  events: { success: upstreamEvents.sens, failure: upstreamEvents.fens },
  authenticate: async (deps, request) => {
    const answer = (await deps.exchangeToken(request)) ?? (await deps.exchangeCustomToken(request));
    if (answer !== undefined) return answer;
    const { params, clientId, ctx } = request;
    const token = requiredField(params, 'subject_token');
    const provider = providerOf(deps, requiredField(params, 'subject_token_type'));
    const client = await clientOf(deps, clientId, provider);
    const upstream = await connectionOf(deps, request, provider);
    await deps.rateLimits.takeFrom(ctx, upstreamLimits.nativeSocial);
    const nativeToken = { connection: upstream.connection, client, token, userProfile: params.user_profile };
    try {
      const identity = await provider.identify(deps, nativeToken);
      return { login: await loginOf(deps, ctx, clientId, upstream, identity) };
    } catch (thrown) {
      throw invalidGrant(deps, upstream.connection, thrown);
    }
  },
};

function providerOf({ config }: NativeGrantDependencies, type: string): NativeProvider {
  const prefix = `http://${config.settings().vendor_host}`;
  const path = type.startsWith(prefix) ? type.slice(prefix.length) : '';
  const provider = Object.hasOwn(NATIVE_PROVIDERS, path) ? NATIVE_PROVIDERS[path] : undefined;
  if (provider !== undefined) return provider;
  throw new AuthError(400, 'invalid_request', 'The subject_token_type is not supported.');
}

async function clientOf(
  { config }: NativeGrantDependencies,
  clientId: string,
  { setting }: NativeProvider,
): Promise<Client> {
  const client = await config.client(clientId);
  if (client?.native_social_login?.[setting]?.enabled === true) return client;
  throw new AuthError(403, 'unauthorized_client', 'Native social login is not enabled for this client.');
}

/** Returns the application's first connection to the provider, by name. */
async function connectionOf(
  { config }: NativeGrantDependencies,
  { clientId }: GrantRequest,
  provider: NativeProvider,
): Promise<Upstream> {
  for (const connection of await connectionsFor(config, clientId, undefined)) {
    const strategy = strategyOf(connection);
    if (strategy?.page === 'redirect' && strategy.name === provider.strategy) return { connection, strategy };
  }
  throw new AuthError(403, 'unauthorized_client', 'The connection is not enabled for this client.');
}

/** Returns the error for the token endpoint (RFC 6749 §5.2), and writes the cause to the server's own log. */
function invalidGrant({ log }: NativeGrantDependencies, { name }: Connection, thrown: unknown): unknown {
  if (!(thrown instanceof AuthError)) return thrown;
  if (thrown.cause !== undefined) {
    log.warn({ err: thrown.cause, connection: name }, 'a native login at an upstream provider failed');
  }
  return new AuthError(403, 'invalid_grant', thrown.error_description);
}

// The routes of logins at upstream providers: to the provider, back from it, and back to the waiting authorization request.

interface UpstreamRouteDependencies
  extends ProviderRedirectDependencies,
    UnsolicitedDependencies,
    ConnectedRouteDependencies {
  testLogins: Pick<TestLogins, 'receive'>;
  /** The URL of the console page that shows the result of a test login; the ticket of the answer is added to its query. */
  testUrl: string;
}

/** Bytes. The largest answers that are posted are signed and encrypted SAML responses. */
const MAX_ANSWER_BYTES = 256 * 1024;

const upstreamRoutes: RouteDeclarations<UpstreamRouteDependencies> = {
  'GET /u/:uid/connection/:connection': { ...PAGE, handle: handleChoice },
  [`GET ${CALLBACK}` as const]: {
    ...PAGE,
    handle: (deps, ctx) => handleCallback(deps, ctx, textsOf(ctx.query)),
  },
  [`POST ${CALLBACK}` as const]: {
    ...PAGE,
    bodies: { maxBytes: MAX_ANSWER_BYTES },
    handle: (deps, ctx) =>
      isLoginForm(ctx) ? handleLoginForm(deps, ctx) : handleCallback(deps, ctx, bodyTexts(ctx)),
  },
  'GET /u/:uid/callback': { ...PAGE, handle: resumeRequest },
  ...connectedRoutes,
};

async function handleChoice(deps: UpstreamRouteDependencies, ctx: Context): Promise<void> {
  const page = await openRequestPage(deps, ctx);
  const { waiting, client, organization } = page;
  const name = String(ctx.params.connection);
  if (!waitsForLogin(waiting) || !acceptsConnection(waiting, { name }))
    return ctx.redirect(`/u/${waiting.uid}`);
  const query = { clientId: client.client_id, connection: name, organization: organization?.id };
  const found = await resolveConnection(deps.config, query, byRedirect);
  if (!('strategy' in found)) return ctx.redirect(`/u/${waiting.uid}`);
  await redirectToProvider(deps, ctx, page, found);
}

async function handleCallback(
  deps: UpstreamRouteDependencies,
  ctx: Context,
  parameters: Record<string, string>,
): Promise<void> {
  ctx.set('Cache-Control', 'no-store');
  // The code and the state in this URL must not reach the next page as its referrer.
  ctx.set('Referrer-Policy', 'no-referrer');
  const state = parameters.state ?? parameters.RelayState ?? '';
  refuseMisplaced(ctx);
  const pending = state === '' ? undefined : await deps.pendingLogins.take(ctx, state);
  const connection = connectionOfAddress(ctx);
  const isPosted = ctx.method === 'POST';
  ctx.status = 303;
  if (pending === undefined) {
    const testTicket = await deps.testLogins.receive(state, { parameters, isPosted, connection });
    if (testTicket !== undefined) return ctx.redirect(`${deps.testUrl}?ticket=${testTicket}`);
    const unsolicitedUrl = await handleUnsolicited(deps, ctx, connection, parameters);
    if (unsolicitedUrl !== undefined) return ctx.redirect(unsolicitedUrl);
    deps.events.record({ type: engineEvents.f, ip: ctx.ip, description: NOT_WAITING });
    throw requestExpired();
  }
  const callback = { pending, state, parameters, isPosted, connection };
  if (pending.connecting !== undefined) return finishAtProvider(deps, ctx, pending.connecting, callback);
  const outcome = await complete(deps, ctx, callback);
  // The cookies of the waiting request are sent below /u/<uid> only, so the result is handed over by a ticket.
  const ticket = await deps.pendingLogins.storeOutcome(ctx, pending.uid, outcome);
  ctx.redirect(`/u/${pending.uid}/callback?ticket=${ticket}`);
}

/** Returns the connection that the callback URL of a posted answer names (SAML). */
function connectionOfAddress({ method, query }: Context): string | undefined {
  return method === 'POST' && query.connection !== undefined ? String(query.connection) : undefined;
}

/**
 * The parameters that are a proof of the user themselves, unlike a code. They are posted (OAuth 2.0 Form Post Response Mode;
 * SAML Profiles §4.1.2): in a query they would be in logs and in the browser's history (OAuth 2.0 Multiple Response Types §3).
 */
const POSTED = ['id_token', 'access_token', 'SAMLResponse'];

/** @throws AuthError 400 for an answer with such a parameter in the query; its login still waits. */
function refuseMisplaced({ query }: Context): void {
  const found = POSTED.find((name) => query[name] !== undefined);
  if (found !== undefined) throw new AuthError(400, 'invalid_request', `${found} must be posted.`);
}

const NOT_WAITING = 'an answer of an identity provider that no login of this browser waits for';

/** Continues the waiting authorization request with the result of the login. */
async function resumeRequest(deps: UpstreamRouteDependencies, ctx: Context): Promise<void> {
  const { waiting } = await openRequestPage(deps, ctx);
  const { ticket } = ctx.query;
  const outcome =
    typeof ticket === 'string' ? await deps.pendingLogins.takeOutcome(ctx, waiting.uid, ticket) : undefined;
  if (outcome === undefined || !waitsForLogin(waiting)) throw requestExpired();
  if (!('login' in outcome)) return deps.waitingRequests.answer(ctx, outcome);
  await deps.finish.resume(ctx, waiting, outcome.login);
}

// Logins that a provider begins (SAML: IdP-initiated). No request of this server precedes the answer, so nothing binds it to
// the browser: an attacker can have a victim's browser post an answer that logs the victim in to the attacker's account
// (login CSRF). Therefore a connection accepts such answers only if it is configured to, each assertion is accepted once and
// for a few minutes, and the application gets an answer without a `state` of its own, which it may reject.

interface UnsolicitedDependencies extends CompleteDependencies {
  tickets: LoginTickets;
}

/**
 * Accepts an answer that no request asked for.
 * @param name the connection that the callback URL names, if any.
 * @returns the path and query of an authorization request that has the login as a ticket; undefined when the connection
 *   does not accept such answers.
 * @throws AuthError for an answer that is not valid.
 */
async function handleUnsolicited(
  deps: UnsolicitedDependencies,
  ctx: Context,
  name: string | undefined,
  parameters: Readonly<Record<string, string>>,
): Promise<string | undefined> {
  const record = name === undefined ? undefined : await deps.config.connection(name);
  if (record === undefined) return undefined;
  const resolved = await resolveConnection(
    deps.config,
    { clientId: undefined, connection: name },
    byRedirect,
  );
  const unsolicited = 'strategy' in resolved ? resolved.strategy.unsolicited : undefined;
  const target = unsolicited?.loginOf(record);
  if (unsolicited === undefined || target === undefined) return undefined;
  const { clientId, path, query } = target;
  const found = await resolveConnection(deps.config, { clientId, connection: name }, byRedirect);
  if (!('strategy' in found)) return undefined;
  const { connection, strategy } = found;
  try {
    const redirectUri = `${deps.baseUrl}${CALLBACK}`;
    const identity = await unsolicited.identify(deps, { connection, parameters, redirectUri });
    const login = await loginOf(deps, ctx, clientId, { connection, strategy }, identity);
    query.set('connection', connection.name);
    query.set('login_ticket', await deps.tickets.issue(ctx, login, clientId));
  } catch (thrown) {
    if (thrown instanceof AuthError)
      recordFault(deps, ctx, { clientId, connection: connection.name }, thrown);
    throw thrown;
  }
  const { organization } = ctx.query;
  if (typeof organization === 'string') query.set('organization', organization);
  return `${path}?${query}`;
}

export const upstream = feature<
  UpstreamRouteDependencies,
  NativeGrantDependencies & ConnectedGrantDependencies
>({
  name: 'upstream',
  limits: upstreamLimits,
  events: upstreamEvents,
  grants: [nativeGrant, connectedGrant],
  routes: upstreamRoutes,
});
