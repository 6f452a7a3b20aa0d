// A value that one part of the server leaves with a request for a later one, where no call joins them: the engine or
// another middleware is between. What a route's own `admit` finds is handed to its handler instead (router.ts).
import type { Context } from 'koa';

/** The context of a request; the engine's has the same `state`. */
type Carrier = Pick<Context, 'state'>;

export interface RequestValue<T> {
  of(ctx: Carrier): T | undefined;
  /** @param value undefined to forget it. */
  set(ctx: Carrier, value: T | undefined): void;
}

/** Makes a value that requests can have. @param name what it is, for a debugger. */
export function requestValue<T>(name: string): RequestValue<T> {
  // Nobody else has the symbol, so that what is found under it is what was set.
  const key = Symbol(name);
  const stateOf = ({ state }: Carrier) => state as { [key]?: T | undefined };
  return {
    of: (ctx) => stateOf(ctx)[key],
    set: (ctx, value) => {
      stateOf(ctx)[key] = value;
    },
  };
}
