// What the routes of the My Account API have in common: limit, other origins, errors, and whose token they take.
import type { Context } from 'koa';
import type { z } from 'zod';
import { type RouteDeclaration, taking } from '../http/routes.ts';
import type { Actor } from './actor.ts';
import type { AccountScope } from './api.ts';
import { actorOf, type CallerDependencies } from './caller.ts';
import { problemShape } from './errors.ts';

export const inMyAccount = { limit: 'myAccount', cors: 'applications', errors: problemShape } as const;

/** A route with the scope that its token must have, asked for before anything of the body is read. */
export function asked<D extends CallerDependencies, B extends z.ZodType>(
  scope: AccountScope,
  body: B,
  handle: (deps: D, ctx: Context, actor: Actor, body: z.output<B>) => Promise<void>,
): Pick<RouteDeclaration<D>, 'admit' | 'body' | 'isBodyChecked' | 'handle' | 'security'> {
  return {
    ...admitted<D>(scope),
    ...taking(body, (deps: D, ctx, given) => handle(deps, ctx, actorIn(ctx), given)),
  };
}

/** The same without a body. */
export function admitted<D extends CallerDependencies>(
  scope: AccountScope,
): Required<Pick<RouteDeclaration<D>, 'admit' | 'security'>> {
  return {
    security: ['accessToken'],
    admit: async (deps, ctx) => {
      ctx.set('Cache-Control', 'no-store');
      ctx.state.actor = await actorOf(deps, ctx, scope);
    },
  };
}

/** Who asks, of a route that was admitted. */
export const actorIn = (ctx: Context): Actor => ctx.state.actor as Actor;
