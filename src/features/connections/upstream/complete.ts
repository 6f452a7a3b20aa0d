// Completes a login at an upstream provider: the strategy verifies the answer, and the result is a user and a login as from
// any other connection.
import type { Context } from 'koa';
import type { Logger } from 'pino';
import { engineEvents } from '../../../engine/base/engine-declaration.ts';
import { AuthError } from '../../../http/errors.ts';
import type { Connection } from '../../../records/collections.ts';
import { type Clock, epochSeconds } from '../../../runtime/clock.ts';
import type { Store } from '../../../store/contract.ts';
import type { Config } from '../../../tenant/config.ts';
import type { Events } from '../../../tenant/events.ts';
import type { Login } from '../../../users/login.ts';
import type { Users } from '../../../users/users.ts';
import { storeConnectedAccount } from '../../../users/users-connected-accounts.ts';
import { sharesLoginTokens } from '../connected/purposes.ts';
import { sealSession, type UpstreamDependencies, type UpstreamIdentity, upstreamFault } from '../redirect.ts';
import { connectionsFor } from '../resolve.ts';
import { strategyOf } from '../strategies.ts';
import type { PendingLogin, UpstreamOutcome } from './begin.ts';
import { CALLBACK, type Upstream } from './begin.ts';
import { userOf } from './upstream-login-user.ts';

export interface CompleteDependencies extends UpstreamDependencies {
  config: Config;
  users: Users;
  events: Events;
  log: Logger;
}

/** A provider's answer, and the login that it belongs to. */
export interface ProviderCallback {
  pending: PendingLogin;
  state: string;
  parameters: Readonly<Record<string, string>>;
  /** Whether the browser posted the parameters. Otherwise they were in the query. */
  isPosted: boolean;
  /** The name of the connection in the callback URL, if that has one (SAML). */
  connection: string | undefined;
}

/** Completes a login with a provider's answer. @returns the login, or the error for the application; an error is recorded. */
export async function complete(
  deps: CompleteDependencies,
  ctx: Context,
  callback: ProviderCallback,
): Promise<UpstreamOutcome> {
  const { pending } = callback;
  let connection: Connection | undefined;
  try {
    const upstream = await upstreamOf(deps.config, pending);
    connection = upstream.connection;
    const identity = await identify(deps, upstream, callback);
    refuseStale(pending, identity);
    return { login: await loginOf(deps, ctx, pending.clientId, upstream, identity) };
  } catch (thrown) {
    const details = { clientId: pending.clientId, connection: connection?.name };
    const { error, error_description: description } = recordFault(deps, ctx, details, thrown);
    return { error, description };
  }
}

/** Allowed difference between the provider's clock and ours, seconds. */
const TOLERANCE = 60;

/**
 * Rejects an authentication that is older than the request accepts. Otherwise somebody at an unattended browser could pass
 * `prompt=login` or `max_age` by the session that the browser still has at the provider.
 * @throws AuthError by {@link upstreamFault}.
 */
function refuseStale({ freshSince }: PendingLogin, { authenticatedAt }: UpstreamIdentity): void {
  if (freshSince === undefined || authenticatedAt === undefined) return;
  if (authenticatedAt >= freshSince - TOLERANCE) return;
  throw upstreamFault('access_denied', 'The identity provider did not have its user log in again.');
}

/** Returns the identity that a provider's answer proves. @throws AuthError by {@link upstreamFault} if it proves none. */
export async function identify(
  deps: UpstreamDependencies,
  { connection, strategy }: Upstream,
  callback: ProviderCallback,
): Promise<UpstreamIdentity> {
  if (callback.connection !== undefined && callback.connection !== connection.name) {
    throw upstreamFault('access_denied', 'The answer came to the address of another connection.');
  }
  const { nonce, codeVerifier, clientId } = callback.pending;
  return strategy.identify(deps, {
    connection,
    clientId,
    redirectUri: `${deps.baseUrl}${CALLBACK}`,
    state: callback.state,
    nonce,
    codeVerifier,
    parameters: callback.parameters,
    isPosted: callback.isPosted,
  });
}

/** Records the failure of a login or connection at a provider. @returns the error for the application. */
export function recordFault(
  { events, log }: Pick<CompleteDependencies, 'events' | 'log'>,
  ctx: Context,
  { clientId, connection, userId }: { clientId: string; connection?: string | undefined; userId?: string },
  thrown: unknown,
): { error: string; error_description: string } {
  const fault = thrown instanceof AuthError ? thrown : unexpectedFault(thrown);
  const { error, error_description, cause } = fault;
  const details = { client_id: clientId, ip: ctx.ip, description: error_description };
  events.record({
    type: engineEvents.f,
    ...details,
    ...(connection && { connection }),
    ...(userId && { user_id: userId }),
  });
  if (cause !== undefined) log.warn({ err: cause, connection }, 'a login at an upstream provider failed');
  return { error, error_description };
}

/** Returns the error for an unexpected exception, whose details the application must not see. */
function unexpectedFault(thrown: unknown): AuthError {
  return upstreamFault('unauthorized', 'The login at the identity provider failed.', thrown);
}

/** @throws AuthError if it is no longer enabled for the application. */
async function upstreamOf(config: Config, { clientId, connectionId }: PendingLogin): Promise<Upstream> {
  const enabled = await connectionsFor(config, clientId, undefined);
  const connection = enabled.find(({ id }) => id === connectionId);
  const strategy = connection && strategyOf(connection);
  if (connection === undefined || strategy?.page !== 'redirect') {
    throw upstreamFault('invalid_request', 'the connection is not enabled for this application');
  }
  return { connection, strategy };
}

/** Creates or updates the user of a verified identity. @returns the user's login. @throws AuthError as {@link userOf}. */
export async function loginOf(
  deps: Pick<CompleteDependencies, 'config' | 'users' | 'events' | 'wallClock' | 'store' | 'random'>,
  ctx: Context,
  clientId: string,
  { connection, strategy }: Upstream,
  identity: UpstreamIdentity,
): Promise<Login> {
  const user = await userOf(deps, { clientId, connection, strategy, ip: ctx.ip }, identity);
  await storeLoginTokens(deps, user.id, { connection, strategy }, identity);
  const providerSession = await sealSession(deps, connection.name, identity.grant);
  return {
    userId: user.id,
    connection: connection.name,
    amr: strategy.amr,
    authTime: authTimeOf(deps, identity),
    presence: identity.authenticatedAt === undefined ? 'unconfirmed' : 'present',
    ip: ctx.ip,
    credentialVersion: await deps.users.credentialVersion(user.id),
    ...(providerSession !== undefined && { providerSession }),
    ...(identity.sessionEndsAt !== undefined && { sessionEndsAt: identity.sessionEndsAt }),
  };
}

/** Seconds. An authentication of this age counts as recent nowhere. */
const NOT_RECENT = 900;

// docs/understand/decisions/connections.md#a-login-through-a-provider-that-does-not-say-when-the-user-authenticated-is-not-fresh
/**
 * Returns the time of the login, epoch seconds: when the user authenticated at the provider. A user who has a session there
 * comes back without authenticating, which must not count as a recent login here. The lifetime of the session here is
 * counted from this time, so an old time is replaced by one that is just old enough not to count as recent.
 */
function authTimeOf(
  { config, wallClock }: Pick<CompleteDependencies, 'config' | 'wallClock'>,
  { authenticatedAt }: UpstreamIdentity,
): number {
  const now = epochSeconds(wallClock);
  if (authenticatedAt === undefined || authenticatedAt >= now - TOLERANCE) return now;
  const age = Math.min(NOT_RECENT, (config.settings().tenant.session_lifetime * 3600) / 2);
  return Math.floor(Math.max(authenticatedAt, now - age));
}

// Connected accounts that result from logins: if a connection is configured so, applications may use the tokens of a login.

/** Stores the tokens of a login as a connected account of the user, if the connection is configured so. */
async function storeLoginTokens(
  deps: { store: Store; wallClock: Clock },
  userId: string,
  { connection, strategy }: Upstream,
  { id: upstreamId, grant }: UpstreamIdentity,
): Promise<void> {
  if (!sharesLoginTokens(connection) || strategy.refresh === undefined) return;
  if (grant?.access_token === undefined) return;
  const { store } = deps;
  const account = await storeConnectedAccount(deps, userId, connection, {
    upstreamId,
    grant,
    requestedScopes: [],
  });
  // If the user or the connection was deleted meanwhile, that deletion did not see the new account.
  const [user, storedConnection] = await Promise.all([
    store.collection('users').get(userId),
    store.collection('connections').get(connection.id),
  ]);
  if (user === undefined || storedConnection === undefined)
    await store.collection('connectedAccounts').delete(account.id);
}
