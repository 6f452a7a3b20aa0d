// What the routes of the My Account API share: limit, CORS, error format, and the access token.
import type { Context } from 'koa';
import type { z } from 'zod';
import { type RouteDeclaration, withBody } from '../../http/router.ts';
import type { Actor } from './actor.ts';
import type { AccountScope } from './api.ts';
import { actorOf, type CallerDependencies } from './caller.ts';
import { problemShape } from './errors.ts';

export const myAccountRoute = { limit: 'myAccount', cors: 'applications', errors: problemShape } as const;

/**
 * Returns the members of a route with a body. The access token is checked before the body is read.
 * @param scope the scope of the token.
 */
export function withTokenAndBody<D extends CallerDependencies, B extends z.ZodType>(
  scope: AccountScope,
  body: B,
  handle: (deps: D, ctx: Context, actor: Actor, body: z.output<B>) => Promise<void>,
): Pick<RouteDeclaration<D>, 'admit' | 'body' | 'isBodyChecked' | 'handle' | 'security'> {
  return {
    ...withToken<D>(scope),
    ...withBody(body, (deps: D, ctx, body) => handle(deps, ctx, actorIn(ctx), body)),
  };
}

/** Returns the members of a route without a body. @param scope the scope that the access token must have. */
export function withToken<D extends CallerDependencies>(
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

/** Returns the actor of a request whose access token was checked. */
export const actorIn = (ctx: Context): Actor => ctx.state.actor as Actor;
