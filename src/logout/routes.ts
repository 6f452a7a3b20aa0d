// The endpoints that end a session. Nothing is decided here.
import Router from '@koa/router';
import type { Context, Middleware } from 'koa';
import { AuthError } from '../http/errors.ts';
import { type DepartureDependencies, depart, SIGNED_OUT } from './departure.ts';
import { CALLBACK, returnFromProvider } from './federated.ts';
import { askToLogOut, CONSENT, goOn, type PageDependencies, stillLoggedIn } from './pages.ts';
import { formFields, queryFields } from './request.ts';
import { decideRpLogout, RP_PARAMETERS, type RpDependencies, type RpRequest } from './rp-initiated.ts';
import { decideV2, V2_PARAMETERS } from './v2.ts';

export interface LogoutDependencies extends DepartureDependencies, RpDependencies, PageDependencies {}

/** The routes of logging out. */
export function logoutRoutes(deps: LogoutDependencies): Middleware {
  const router = new Router();
  const { directory } = deps;
  router.get(
    '/v2/logout',
    recorded(deps, async (ctx) => {
      const destination = await decideV2(directory, queryFields(ctx, V2_PARAMETERS));
      await goOn(deps, ctx, await depart(deps, ctx, destination));
    }),
  );
  router.get(
    '/oidc/logout',
    recorded(deps, (ctx) => rpLogout(deps, ctx, queryFields(ctx, RP_PARAMETERS), 'GET')),
  );
  router.post(
    '/oidc/logout',
    recorded(deps, (ctx) => rpLogout(deps, ctx, formFields(ctx, RP_PARAMETERS), 'POST')),
  );
  router.post(
    CONSENT,
    recorded(deps, (ctx) => answer(deps, ctx)),
  );
  router.get(CALLBACK, async (ctx) => {
    const { state } = queryFields(ctx, ['state']);
    await goOn(deps, ctx, { to: await returnFromProvider(deps, state), frames: [] });
  });
  router.get(SIGNED_OUT, (ctx) => goOn(deps, ctx, { to: undefined, frames: [] }));
  return router.routes() as Middleware;
}

async function rpLogout(
  deps: LogoutDependencies,
  ctx: Context,
  request: RpRequest,
  method: 'GET' | 'POST',
): Promise<void> {
  const logout = await decideRpLogout(deps, request, method);
  const session = await deps.sessions.current(ctx);
  if (session !== undefined && !logout.names(session)) {
    return askToLogOut(deps, ctx, logout, request, session);
  }
  await goOn(deps, ctx, await depart(deps, ctx, logout), request.ui_locales);
}

/** The answer of the page that asks: the request is checked again, whatever the page made of it. */
async function answer(deps: LogoutDependencies, ctx: Context): Promise<void> {
  deps.csrf.verify(ctx);
  const { decision, session: asked } = formFields(ctx, ['decision', 'session']);
  const request: RpRequest = formFields(ctx, RP_PARAMETERS);
  const logout = await decideRpLogout(deps, request, 'POST');
  const session = await deps.sessions.current(ctx);
  // Somebody else logged in meanwhile: it was not them who were asked.
  if (session !== undefined && session.sid !== asked) {
    return askToLogOut(deps, ctx, logout, request, session);
  }
  if (decision !== 'logout' && session !== undefined) return stillLoggedIn(deps, ctx, request.ui_locales);
  await goOn(deps, ctx, await depart(deps, ctx, logout), request.ui_locales);
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
