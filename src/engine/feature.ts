// A feature declares itself: its requests, and what else it adds to the house, as one value.
import type { Route, RouteDeclarations } from '../http/routes.ts';
import { bindRoutes } from '../http/routes.ts';
import type { Declaration } from '../records/declaration.ts';

/**
 * A feature.
 * @template D what it is given: all of it, by name.
 */
export interface Feature<D> extends Declaration {
  routes?: RouteDeclarations<D>;
}

/** What a feature is once it was given what it needs. */
export interface BoundFeature {
  routes: Route[];
}

/** Declares a feature: {@link Feature} says of what. */
export function feature<D>(declared: Feature<D>): Feature<D> {
  return declared;
}

/** Gives a feature what it needs. @throws Error for a declaration that says nothing sensible. */
export function bind<D>({ routes = {} }: Feature<D>, deps: D): BoundFeature {
  return { routes: bindRoutes(routes, deps) };
}
