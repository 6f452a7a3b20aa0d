// A feature declares its routes, grants, logout channels, limits and log events as one value, and the types of what it
// needs: the compiler compares them with the capabilities of a tenant where the features are listed (src/server/features.ts).
import { type Area, bindRoutes, type Route, type RouteDeclarations } from '../../http/server/router.ts';
import type { Declaration } from '../../records/declaration.ts';
import type { BuiltInNeeds, BuiltIns, Config } from '../../tenant/config.ts';
import type { LogoutChannel } from '../session/logout-channels.ts';
import { type GrantDeclaration, grantTypeOf, type VendorGrant } from '../token/tokens.ts';

interface EngineParts {
  grants: VendorGrant[];
  logoutChannels: LogoutChannel[];
}

/** What a feature may say of itself. */
interface Traits {
  /** Returns the APIs and applications that the tenant has by it; undefined for none. */
  readonly builtIns?: (needs: BuiltInNeeds) => BuiltIns | undefined;
  /** The part of the tree of paths that is its own. */
  readonly area?: Area;
  /** Whether the bodies of its calls are resources, whose members are no parameters of a protocol. */
  readonly hasResources?: true;
}

/**
 * A feature, ready to be served. What takes needs are properties: the parameters of methods are compared in both directions,
 * and a need that is not met would compile.
 * @template N the capabilities that its routes need.
 * @template E the same for its grants and logout channels, which exist before the engine does.
 */
export interface Feature<N = never, E = never> extends Declaration, Traits {
  /** Its routes and grants as data, for the documents and what is checked at the start. */
  readonly routes: RouteDeclarations<never>;
  readonly grants: readonly GrantDeclaration<never>[];
  /** Returns its routes, bound to what they need. @throws Error for a key that is no method and path. */
  readonly serve: (needs: N) => readonly Route[];
  /** Returns what the engine calls, bound to what it needs. */
  readonly engine: (needs: E & { config: Pick<Config, 'settings'> }) => EngineParts;
}

/** A feature as its folder declares it. @template D what its handlers are given. */
interface FeatureDeclaration<D, E> extends Declaration, Traits {
  routes?: RouteDeclarations<D>;
  grants?: readonly GrantDeclaration<E>[];
  /** The channels that learn when a session ends. */
  logoutChannels?: (needs: E) => LogoutChannel[];
}

/** How a feature whose handlers call something by another name, or that is not always served, makes theirs of the capabilities. */
interface Given<N, D> {
  /** @returns undefined where the feature is not served. */
  given: (needs: N) => D | undefined;
}

export function feature<N = unknown, E = unknown>(declaration: FeatureDeclaration<N, E>): Feature<N, E>;
export function feature<N, E, D>(declaration: FeatureDeclaration<D, E> & Given<N, D>): Feature<N, E>;
export function feature<N, E, D>({
  routes = {},
  grants = [],
  logoutChannels = () => [],
  given,
  ...declaration
}: FeatureDeclaration<D, E> & Partial<Given<N, D>>): Feature<N, E> {
  return {
    ...declaration,
    routes,
    grants,
    serve: (needs) => {
      // Without `given`, the first signature has it that both are one type.
      const handed = given === undefined ? (needs as unknown as D) : given(needs);
      return handed === undefined ? [] : bindRoutes(routes, handed);
    },
    engine: (needs) => ({
      grants: grants.map((grant) => bindGrant(grant, needs)),
      logoutChannels: logoutChannels(needs),
    }),
  };
}

function bindGrant<E>(
  grant: GrantDeclaration<E>,
  needs: E & { config: Pick<Config, 'settings'> },
): VendorGrant {
  return {
    // The tenant's `vendor_host` may change while the server runs.
    get grantType() {
      return grantTypeOf(grant.grantType, needs.config.settings().vendor_host);
    },
    parameters: Object.keys(grant.parameters.shape),
    gty: grant.gty,
    events: grant.events,
    isFromPages: grant.isFromPages === true,
    givesTicket: grant.givesTicket === true,
    completes: grant.begin !== undefined,
    begin: async (request) =>
      grant.begin === undefined
        ? { authenticate: () => grant.authenticate(needs, request) }
        : grant.begin(needs, request),
  };
}
