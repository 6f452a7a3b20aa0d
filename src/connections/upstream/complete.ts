// The end of a login at an upstream provider: what the strategy has verified becomes a user, and a login as every other.
import type { Context } from 'koa';
import type { Logger } from 'pino';
import { AuthError } from '../../http/errors.ts';
import type { Connection } from '../../records/collections.ts';
import { epochSeconds } from '../../runtime/clock.ts';
import type { Config } from '../../tenant/config.ts';
import type { Events } from '../../tenant/events.ts';
import type { Login } from '../../users/login.ts';
import type { Users } from '../../users/users.ts';
import { keepLoginTokens } from '../connected/login-tokens.ts';
import { sealedSession } from '../provider-session.ts';
import { type UpstreamDependencies, type UpstreamIdentity, upstreamFault } from '../redirect.ts';
import { connectionsFor } from '../resolve.ts';
import { strategyOf } from '../strategies.ts';
import { CALLBACK, type Upstream } from './begin.ts';
import type { PendingLogin, UpstreamOutcome } from './pending.ts';
import { userOf } from './user.ts';

export interface CompleteDependencies extends UpstreamDependencies {
  config: Config;
  users: Users;
  events: Events;
  log: Logger;
}

/** What the browser brought back. */
export interface ProviderCallback {
  pending: PendingLogin;
  state: string;
  parameters: Readonly<Record<string, string>>;
  /** The name of the connection whose callback it is, where the address says so. */
  connection: string | undefined;
}

/** Has the strategy verify the answer. @returns how the login ended; what went wrong is recorded. */
export async function complete(
  deps: CompleteDependencies,
  ctx: Context,
  brought: ProviderCallback,
): Promise<UpstreamOutcome> {
  const { pending } = brought;
  let connection: Connection | undefined;
  try {
    const upstream = await upstreamOf(deps.config, pending);
    connection = upstream.connection;
    const identity = await identify(deps, upstream, brought);
    refuseStale(pending, identity);
    return { login: await loginOf(deps, ctx, pending.clientId, upstream, identity) };
  } catch (thrown) {
    const about = { clientId: pending.clientId, connection: connection?.name };
    const { error, error_description: description } = recordFault(deps, ctx, about, thrown);
    return { error, description };
  }
}

/** Clocks may be apart by that, seconds. */
const TOLERANCE = 60;

/**
 * Whoever finds an open browser is logged in at the provider, too: where the request asked for a new login, one that the
 * provider says is older is none.
 * @throws AuthError by {@link upstreamFault}.
 */
function refuseStale({ freshSince }: PendingLogin, { authenticatedAt }: UpstreamIdentity): void {
  if (freshSince === undefined || authenticatedAt === undefined) return;
  if (authenticatedAt >= freshSince - TOLERANCE) return;
  throw upstreamFault('access_denied', 'The identity provider did not have its user log in again.');
}

/** Has the strategy verify who came back. @throws AuthError by {@link upstreamFault}. */
export async function identify(
  deps: UpstreamDependencies,
  { connection, strategy }: Upstream,
  brought: ProviderCallback,
): Promise<UpstreamIdentity> {
  if (brought.connection !== undefined && brought.connection !== connection.name) {
    throw upstreamFault('access_denied', 'The answer came to the address of another connection.');
  }
  const { nonce, codeVerifier } = brought.pending;
  return strategy.identify(deps, {
    connection,
    redirectUri: `${deps.baseUrl}${CALLBACK}`,
    state: brought.state,
    nonce,
    codeVerifier,
    parameters: brought.parameters,
  });
}

/** Records why nothing came of a way to a provider. @returns what the application is told. */
export function recordFault(
  { events, log }: Pick<CompleteDependencies, 'events' | 'log'>,
  ctx: Context,
  { clientId, connection, userId }: { clientId: string; connection?: string | undefined; userId?: string },
  thrown: unknown,
): { error: string; error_description: string } {
  const fault = thrown instanceof AuthError ? thrown : failed(thrown);
  const { error, error_description, cause } = fault;
  const about = { client_id: clientId, ip: ctx.ip, description: error_description };
  events.record({
    type: 'f',
    ...about,
    ...(connection && { connection }),
    ...(userId && { user_id: userId }),
  });
  if (cause !== undefined) log.warn({ err: cause, connection }, 'a login at an upstream provider failed');
  return { error, error_description };
}

/** An unforeseen fault is told to the application in general words only. */
function failed(thrown: unknown): AuthError {
  return upstreamFault('unauthorized', 'The login at the identity provider failed.', thrown);
}

/** The connection that a login began with, while it is the application's. @throws AuthError when it is no more. */
async function upstreamOf(config: Config, { clientId, connectionId }: PendingLogin): Promise<Upstream> {
  const enabled = await connectionsFor(config, clientId, undefined);
  const connection = enabled.find(({ id }) => id === connectionId);
  const strategy = connection && strategyOf(connection);
  if (connection === undefined || strategy?.page !== 'redirect') {
    throw upstreamFault('invalid_request', 'the connection is not enabled for this application');
  }
  return { connection, strategy };
}

/** The login of somebody whom a strategy has verified. @throws AuthError as {@link userOf}. */
export async function loginOf(
  deps: Pick<CompleteDependencies, 'config' | 'users' | 'events' | 'wallClock' | 'store' | 'random'>,
  ctx: Context,
  clientId: string,
  { connection, strategy }: Upstream,
  identity: UpstreamIdentity,
): Promise<Login> {
  const user = await userOf(deps, { clientId, connection, strategy, ip: ctx.ip }, identity);
  await keepLoginTokens(deps, user.id, { connection, strategy }, identity);
  const providerSession = await sealedSession(deps, connection.name, identity.grant);
  return {
    userId: user.id,
    connection: connection.name,
    amr: strategy.amr,
    authTime: authTimeOf(deps, identity),
    isTimeUnproved: identity.authenticatedAt === undefined,
    ip: ctx.ip,
    credentialVersion: await deps.users.credentialVersion(user.id),
    ...(providerSession !== undefined && { providerSession }),
    ...(identity.sessionEndsAt !== undefined && { sessionEndsAt: identity.sessionEndsAt }),
  };
}

/** What is older than that is no fresh login anywhere, seconds. */
const OLD = 900;

/**
 * When the user was there, epoch seconds: whoever finds an open browser comes back by the provider's session without a
 * proof, and that must not count as one. The session here lives from that time on, so it is told as old, not as older.
 */
function authTimeOf(
  { config, wallClock }: Pick<CompleteDependencies, 'config' | 'wallClock'>,
  { authenticatedAt }: UpstreamIdentity,
): number {
  const now = epochSeconds(wallClock);
  if (authenticatedAt === undefined || authenticatedAt >= now - TOLERANCE) return now;
  const most = Math.min(OLD, (config.settings().tenant.session_lifetime * 3600) / 2);
  return Math.floor(Math.max(authenticatedAt, now - most));
}
