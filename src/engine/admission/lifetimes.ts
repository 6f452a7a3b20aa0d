// Lifetimes of tokens and sessions, in seconds, from the settings of tenant, API and application.
import type { Client, Configuration, KoaContextWithOIDC, RefreshToken, Session } from 'oidc-provider';
import { type Clock, epochSeconds } from '../../runtime/clock.ts';
import type { Config } from '../../tenant/config.ts';
import { applicationSettings } from '../client/applications.ts';
import { limitedLifetime, transferOf } from './exchange-context.ts';

const HOUR = 3600;
const DAY = 24 * HOUR;
/** "Does not expire": the engine needs a number. */
const NEVER = 10 * 365 * DAY;

/** Opaque access tokens from the token endpoint and from /authorize (docs/reference/wire/token.md). */
const OPAQUE_SECONDS = DAY;
const OPAQUE_FRONT_CHANNEL_SECONDS = 2 * HOUR;

/** How long a login page may stay open, seconds. */
export const INTERACTION_SECONDS = HOUR;

/**
 * Returns the engine's `ttl` configuration.
 * @param clock the wall clock, which dates sessions and token families. One that began in the future, because the
 *   clock was set back since, has its whole lifetime left.
 */
export function lifetimes(config: Config, clock: Clock): NonNullable<Configuration['ttl']> {
  return {
    AccessToken: (ctx, token) => {
      const opaqueSeconds = token.gty === 'implicit' ? OPAQUE_FRONT_CHANNEL_SECONDS : OPAQUE_SECONDS;
      return limitedLifetime(ctx, clock, token.resourceServer?.accessTokenTTL ?? opaqueSeconds);
    },
    ClientCredentials: (_ctx, token) => token.resourceServer?.accessTokenTTL ?? OPAQUE_SECONDS,
    AuthorizationCode: () => 60,
    IdToken: (ctx, _token, client) =>
      limitedLifetime(ctx, clock, applicationSettings(client).idTokenLifetime),
    Interaction: () => INTERACTION_SECONDS,
    Session: (_ctx, session) => sessionLifetime(config, clock, session),
    // That of an exchange is needed no longer than its token, and there may be one for each call of an API.
    Grant: (ctx, grant) =>
      grant.getOIDCScope().split(' ').includes('offline_access') && ctx.oidc.client !== undefined
        ? absoluteLifetime(ctx.oidc.client)
        : limitedLifetime(ctx, clock, 31 * DAY),
    RefreshToken: (ctx, token, client) => refreshTokenLifetime(clock, token, client, replacedBounds(ctx)),
  };
}

/** Whether an application's refresh tokens have an idle lifetime. */
export function expiresByIdleness(client: Client): boolean {
  const { refreshToken } = applicationSettings(client);
  return refreshToken.expiration_type === 'expiring' && refreshToken.infinite_idle_token_lifetime !== true;
}

/**
 * Returns the seconds left of a refresh token: its idle lifetime from now, within the absolute one.
 * @param bounds the bounds to apply when they are not the token's own.
 */
export function refreshTokenLifetime(
  clock: Clock,
  token: RefreshToken,
  client: Client,
  bounds: Bounds = boundsOf(token),
): number {
  const now = epochSeconds(clock);
  const left = Math.min(token.iiat ?? now, now) + absoluteLifetime(client) - now;
  const idle = expiresByIdleness(client)
    ? applicationSettings(client).refreshToken.idle_token_lifetime
    : NEVER;
  return Math.max(1, remainingSeconds(bounds, left, idle, now));
}

/** Returns the bounds of the refresh token that a request rotates. */
function replacedBounds({ oidc }: KoaContextWithOIDC): Bounds | undefined {
  const { RotatedRefreshToken: replaced } = oidc.entities as { RotatedRefreshToken?: object };
  return replaced && boundsOf(replaced);
}

/**
 * Returns the absolute lifetime of a family, seconds. It counts from the first token; rotations do not extend it.
 */
function absoluteLifetime(client: Client): number {
  const { refreshToken } = applicationSettings(client);
  const expires =
    refreshToken.expiration_type === 'expiring' && refreshToken.infinite_token_lifetime !== true;
  return expires ? refreshToken.token_lifetime : NEVER;
}

/** Returns the seconds left of a session: the idle lifetime from now, within the absolute one from the login. */
export function sessionLifetime(config: Config, clock: Clock, session: Session): number {
  const idle = config.settings().tenant.idle_session_lifetime * HOUR;
  const now = epochSeconds(clock);
  return Math.max(
    1,
    Math.floor(remainingSeconds(boundsOf(session), lifetimeLeft(config, now, session), idle, now)),
  );
}

/** Whether a session is older than the tenant's present settings, or the bounds set by actions, allow. */
export function isSessionExpired(config: Config, clock: Clock, session: { loginTs?: unknown }): boolean {
  const { loginTs } = session;
  if (typeof loginTs !== 'number') return false;
  const sessionStart = { loginTs, transfer: transferOf(session) };
  const now = epochSeconds(clock);
  return (
    remainingSeconds(
      boundsOf(session),
      lifetimeLeft(config, now, sessionStart),
      Number.POSITIVE_INFINITY,
      now,
    ) <= 0
  );
}

/** A transferred session counts from the transfer, because its login may be long ago. */
function lifetimeLeft(config: Config, now: number, session: { loginTs?: number | undefined }): number {
  const startedAt = transferOf(session)?.at ?? session.loginTs ?? now;
  return Math.min(startedAt, now) + config.settings().tenant.session_lifetime * HOUR - now;
}

// Bounds of a session or refresh token: ends that actions or the user's provider set. They can only shorten the
// lifetimes of tenant and application.

/** Epoch seconds. */
interface Bounds {
  /** The absolute end. */
  expiresAt?: number;
  /** When the session at the user's provider ends. The earlier of the two ends counts. */
  providerExpiresAt?: number;
  /** The end unless it is used before. It replaces the idle lifetime until actions set another one. */
  idleExpiresAt?: number;
}

/** Returns the bounds of a session or refresh token. */
export function boundsOf(artifact: object | undefined): Bounds {
  return (artifact as { bounds?: Bounds } | undefined)?.bounds ?? {};
}

/** Returns the end that bounds set, epoch seconds; infinite when they set none. */
export function absoluteEnd({ expiresAt = Infinity, providerExpiresAt = Infinity }: Bounds): number {
  return Math.min(expiresAt, providerExpiresAt);
}

/**
 * Returns the bounds after a login whose actions asked for others. Bounds that they do not set stay, except the
 * idle end. An end that they set replaces that of the provider.
 */
export function updatedBounds(current: Bounds, changes: Bounds): Bounds {
  const { idleExpiresAt } = changes;
  const { expiresAt, providerExpiresAt } = changes.expiresAt === undefined ? current : changes;
  return {
    ...(expiresAt !== undefined && { expiresAt }),
    ...(providerExpiresAt !== undefined && { providerExpiresAt }),
    ...(idleExpiresAt !== undefined && { idleExpiresAt }),
  };
}

/**
 * Returns the seconds left within bounds.
 * @param left seconds left of the absolute lifetime.
 * @param idle the idle lifetime, seconds.
 * @param now epoch seconds.
 */
function remainingSeconds(bounds: Bounds, left: number, idle: number, now: number): number {
  const { idleExpiresAt } = bounds;
  const absolute = Math.min(left, absoluteEnd(bounds) - now);
  return Math.min(absolute, idleExpiresAt === undefined ? idle : idleExpiresAt - now);
}
