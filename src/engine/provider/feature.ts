// A feature declares its routes, grants, logout channels, limits, log events and pages as one value. Its
// dependencies are bound when the server is built.
import { bindRoutes, type Route, type RouteDeclarations } from '../../http/router.ts';
import type { Declaration } from '../../records/declaration.ts';
import type { Config } from '../../tenant/config.ts';
import type { LogoutChannel } from '../session/logout-channels.ts';
import { type GrantDeclaration, grantTypeOf, type VendorGrant } from '../token/tokens.ts';

/**
 * A feature. @template D the dependencies of its routes. @template E the dependencies of its grants and logout
 * channels, which the engine calls: they exist before the engine does.
 */
export interface Feature<D, E = never> extends Declaration {
  routes?: RouteDeclarations<D>;
  /** Grants of the token endpoint. */
  grants?: readonly GrantDeclaration<E>[];
  /** The channels that learn when a session ends. */
  logoutChannels?: (deps: E) => LogoutChannel[];
}

/** The parts of a feature that the engine calls. */
interface EngineParts {
  grants: VendorGrant[];
  logoutChannels: LogoutChannel[];
}

/** Declares a {@link Feature}; checks its type only. */
export function feature<D, E = never>(declaration: Feature<D, E>): Feature<D, E> {
  return declaration;
}

/** Binds a feature's routes to their dependencies. @throws Error for a route whose key is no method and path. */
export function bind<D>({ routes = {} }: Pick<Feature<D>, 'routes'>, deps: D): Route[] {
  return bindRoutes(routes, deps);
}

/** Binds a feature's grants and logout channels to their dependencies. */
export function bindEngineParts<E>(
  { grants = [], logoutChannels = () => [] }: Pick<Feature<never, E>, 'grants' | 'logoutChannels'>,
  deps: E & { config: Config },
): EngineParts {
  return {
    grants: grants.map((grant) => ({
      // The tenant's `vendor_host` may change while the server runs.
      get grantType() {
        return grantTypeOf(grant.grantType, deps.config.settings().vendor_host);
      },
      parameters: Object.keys(grant.parameters.shape),
      gty: grant.gty,
      events: grant.events,
      isFromPages: grant.isFromPages === true,
      completes: grant.begin !== undefined,
      begin: async (request) =>
        grant.begin === undefined
          ? { authenticate: () => grant.authenticate(deps, request) }
          : grant.begin(deps, request),
    })),
    logoutChannels: logoutChannels(deps),
  };
}
