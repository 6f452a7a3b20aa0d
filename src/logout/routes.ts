// The endpoints that end a session. Nothing is decided here.
import Router from '@koa/router';
import type { Context, Middleware } from 'koa';
import { AuthError } from '../http/errors.ts';
import type { Views } from '../http/views.ts';
import type { Directory } from '../tenant/directory.ts';
import { type DepartureDependencies, depart, SIGNED_OUT } from './departure.ts';
import { queryFields } from './request.ts';
import { decideV2, V2_PARAMETERS } from './v2.ts';

export interface LogoutDependencies extends DepartureDependencies {
  directory: Directory;
  views: Views;
}

/** The routes of logging out. */
export function logoutRoutes(deps: LogoutDependencies): Middleware {
  const router = new Router();
  router.get(
    '/v2/logout',
    recorded(deps, async (ctx) => {
      const destination = await decideV2(deps.directory, queryFields(ctx, V2_PARAMETERS));
      await goOn(deps, ctx, await depart(deps, ctx, destination));
    }),
  );
  router.get(SIGNED_OUT, (ctx) => signedOut(deps, ctx));
  return router.routes() as Middleware;
}

/** A logout that is refused is an event, too. A HEAD request, which only asks about an address, ends nothing. */
function recorded({ events }: LogoutDependencies, handle: (ctx: Context) => Promise<void>) {
  return async (ctx: Context): Promise<void> => {
    if (ctx.method === 'HEAD') throw new AuthError(405, 'invalid_request', 'The method is not allowed here.');
    try {
      await handle(ctx);
    } catch (thrown) {
      if (thrown instanceof AuthError && thrown.status < 500) {
        events.record({ type: 'flo', ip: ctx.ip, description: thrown.error_description });
      }
      throw thrown;
    }
  };
}

async function goOn(deps: LogoutDependencies, ctx: Context, to: string | undefined): Promise<void> {
  if (to === undefined) return signedOut(deps, ctx);
  ctx.status = 302;
  ctx.set('Cache-Control', 'no-store');
  // As it was sent: koa would write it anew. What is no ASCII a header cannot hold.
  ctx.set('Location', to.replace(/[^!-~]/gu, encodeURIComponent));
  ctx.type = 'text';
  ctx.body = 'Logged out.';
}

/** A page for people; `OK` for who asks for none (wire-details 4.1). */
async function signedOut({ views }: LogoutDependencies, ctx: Context): Promise<void> {
  if (ctx.accepts('text', 'html') === 'html') return views.page(ctx, 'logout/signed-out', {});
  ctx.set('Cache-Control', 'no-store');
  ctx.type = 'text';
  ctx.body = 'OK';
}
