// A feature declares itself: its requests, its grants, its part of a logout, and what else it adds to the house, as
// one value. What it needs it is given when the server is built.
import { bindRoutes, type Route, type RouteDeclarations } from '../http/routes.ts';
import type { Declaration } from '../records/declaration.ts';
import type { Config } from '../tenant/config.ts';
import type { LogoutChannel } from './logout-channels.ts';
import { type GrantDeclaration, grantTypeOf, type VendorGrant } from './tokens.ts';

/**
 * A feature.
 * @template D what its requests are given: all of it, by name.
 * @template E what is given to that of it which the engine itself asks, and so there is before the engine.
 */
export interface Feature<D, E = never> extends Declaration {
  routes?: RouteDeclarations<D>;
  /** Grants of the token endpoint. */
  grants?: readonly GrantDeclaration<E>[];
  /** Who is told when a session ends. */
  logoutChannels?: (deps: E) => LogoutChannel[];
}

/** What of a feature the engine asks. */
interface EngineParts {
  grants: VendorGrant[];
  logoutChannels: LogoutChannel[];
}

/** Declares a feature: {@link Feature} says of what. */
export function feature<D, E = never>(declared: Feature<D, E>): Feature<D, E> {
  return declared;
}

/** Gives a feature's requests what they need. @throws Error for a route whose key is no method and path. */
export function bind<D>({ routes = {} }: Pick<Feature<D>, 'routes'>, deps: D): Route[] {
  return bindRoutes(routes, deps);
}

/** Gives that of a feature which the engine asks what it needs. */
export function bindEngineParts<E>(
  { grants = [], logoutChannels = () => [] }: Pick<Feature<never, E>, 'grants' | 'logoutChannels'>,
  deps: E & { config: Config },
): EngineParts {
  return {
    grants: grants.map(({ grantType, parameters, gty, events, completes, authenticate }) => ({
      // The tenant's `vendor_host` may change while the server runs.
      get grantType() {
        return grantTypeOf(grantType, deps.config.settings().vendor_host);
      },
      parameters: Object.keys(parameters.shape),
      gty,
      events,
      completes,
      authenticate: (request) => authenticate(deps, request),
    })),
    logoutChannels: logoutChannels(deps),
  };
}
