// The second factors of a tenant: what they store, and their dependencies by name.
import type { Logger } from 'pino';
import type { Deliveries } from '../capabilities/delivery/deliveries.ts';
import type { RateLimits } from '../capabilities/protection/rate-limit.ts';
import { createAuthenticators, createFactorChanges } from '../features/factors/authenticators.ts';
import { createKnownBrowsers } from '../features/factors/browsers.ts';
import { createElevation } from '../features/factors/elevation.ts';
import type { FactorDependencies } from '../features/factors/factor.ts';
import { FACTORS } from '../features/factors/factors.ts';
import { createStreams } from '../features/factors/push/streams.ts';
import { createWebPush } from '../features/factors/push/web-push.ts';
import { AuthError } from '../http/errors.ts';
import type { Outbound } from '../http/outbound.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Random } from '../runtime/secrets.ts';
import type { Settings } from '../settings/index.ts';
import { isForThisMachine } from '../settings/server.ts';
import type { Store } from '../store/contract.ts';
import type { Config } from '../tenant/config.ts';
import type { Users } from '../users/users.ts';

/** The part of a tenant's dependencies that second factors use. */
interface FactorsInput {
  settings: Settings;
  store: Store;
  users: Users;
  log: Logger;
  clock: Clock;
  wallClock: Clock;
  random: Random;
}

/** Makes what second factors store their state in and send by, once for a tenant. */
export function secondFactors(
  { settings, store, users, log, clock, wallClock, random }: FactorsInput,
  {
    config,
    deliveries,
    rateLimits,
    outbound,
  }: {
    config: Config;
    deliveries: Deliveries;
    rateLimits: RateLimits;
    outbound: Outbound;
  },
) {
  const factorChanges = createFactorChanges({ store, clock, random });
  const authenticators = createAuthenticators({ store, factorChanges, clock, random });
  return {
    factors: FACTORS,
    factorChanges,
    authenticators,
    elevation: createElevation({ users, factorChanges }),
    webPush: createWebPush({
      allowLoopback: isForThisMachine(settings),
      authenticators,
      clock: wallClock,
      config,
      deliveries,
      log,
      outbound,
      store,
    }),
    browsers: createKnownBrowsers({ store, clock, random }),
    streams: createStreams(),
    /** Counts a message to a destination. @throws AuthError 429 when there were too many. */
    limitDestination: async (destination: string): Promise<void> => {
      if (await rateLimits.spend('passwordlessDestination', destination)) return;
      throw new AuthError(429, 'too_many_requests', 'Too many messages to this address. Try again later.');
    },
  };
}

/** Returns the dependencies of every page, grant and API of second factors. */
export function factorDependencies(
  { settings, users, clock, wallClock, random }: FactorsInput,
  capabilities: Pick<
    FactorDependencies,
    'config' | 'events' | 'challenges' | 'rateLimits' | 'attempts' | 'messages'
  > &
    ReturnType<typeof secondFactors>,
) {
  const { config, events, challenges, rateLimits, attempts, messages } = capabilities;
  const { factors, authenticators, factorChanges, elevation, webPush, browsers, limitDestination } =
    capabilities;
  return {
    baseUrl: settings.baseUrl,
    config,
    users,
    events,
    challenges,
    rateLimits,
    attempts,
    messages,
    factors,
    authenticators,
    factorChanges,
    elevation,
    webPush,
    browsers,
    limitDestination,
    clock,
    wallClock,
    random,
  };
}
