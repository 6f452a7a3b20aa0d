// The routes of logging out.
import type { Context } from 'koa';
import { AuthError } from '../http/errors.ts';
import type { Route } from '../http/routes.ts';
import { type EndSessionDependencies, endSession, SIGNED_OUT } from './end-session.ts';
import { CALLBACK, returnFromProvider } from './federated.ts';
import { askToLogOut, CONSENT, finishLogout, type PageDependencies, stillLoggedIn } from './pages.ts';
import { postedFields, queryFields } from './request.ts';
import { RP_PARAMETERS, type RpDependencies, type RpRequest, validateRpLogout } from './rp-initiated.ts';
import { V2_PARAMETERS, validateV2Logout } from './v2.ts';

export interface LogoutDependencies extends EndSessionDependencies, RpDependencies, PageDependencies {}

/** The routes of logging out. */
export function logoutRoutes(deps: LogoutDependencies): Route[] {
  const { config } = deps;
  const page = { cors: 'none', errors: 'page' } as const;
  const endpoint = { ...page, limit: 'logout' } as const;
  return [
    {
      ...endpoint,
      methods: ['GET'],
      path: '/v2/logout',
      handle: recorded(deps, async (ctx) => {
        const destination = await validateV2Logout(config, queryFields(ctx, V2_PARAMETERS));
        await finishLogout(deps, ctx, await endSession(deps, ctx, destination));
      }),
    },
    {
      ...endpoint,
      methods: ['GET'],
      path: '/oidc/logout',
      handle: recorded(deps, (ctx) => rpLogout(deps, ctx, queryFields(ctx, RP_PARAMETERS), 'GET')),
    },
    {
      ...endpoint,
      methods: ['POST'],
      path: '/oidc/logout',
      handle: recorded(deps, (ctx) => rpLogout(deps, ctx, postedFields(ctx, RP_PARAMETERS), 'POST')),
    },
    { ...endpoint, methods: ['POST'], path: CONSENT, handle: recorded(deps, (ctx) => answer(deps, ctx)) },
    {
      ...page,
      limit: 'other',
      methods: ['GET'],
      path: CALLBACK,
      handle: async (ctx) => {
        const { state } = queryFields(ctx, ['state']);
        await finishLogout(deps, ctx, { to: await returnFromProvider(deps, state), frames: [] });
      },
    },
    {
      ...page,
      limit: 'other',
      methods: ['GET', 'HEAD'],
      path: SIGNED_OUT,
      handle: (ctx) => finishLogout(deps, ctx, { to: undefined, frames: [] }),
    },
  ];
}

async function rpLogout(
  deps: LogoutDependencies,
  ctx: Context,
  request: RpRequest,
  method: 'GET' | 'POST',
): Promise<void> {
  const logout = await validateRpLogout(deps, request, method);
  const session = await deps.sessions.current(ctx);
  if (session !== undefined && !logout.names(session)) {
    return askToLogOut(deps, ctx, logout, request, session);
  }
  await finishLogout(deps, ctx, await endSession(deps, ctx, logout), request.ui_locales);
}

/** The answer of the consent page. The request is validated again: the form could have been changed. */
async function answer(deps: LogoutDependencies, ctx: Context): Promise<void> {
  deps.csrf.verify(ctx);
  const { decision, session: asked } = postedFields(ctx, ['decision', 'session']);
  const request: RpRequest = postedFields(ctx, RP_PARAMETERS);
  const logout = await validateRpLogout(deps, request, 'POST');
  const session = await deps.sessions.current(ctx);
  // Another user logged in meanwhile, who was not asked.
  if (session !== undefined && session.sid !== asked) {
    return askToLogOut(deps, ctx, logout, request, session);
  }
  if (decision !== 'logout' && session !== undefined) return stillLoggedIn(deps, ctx, request.ui_locales);
  await finishLogout(deps, ctx, await endSession(deps, ctx, logout), request.ui_locales);
}

/** Records refused logouts as log events. */
function recorded({ events }: LogoutDependencies, handle: (ctx: Context) => Promise<void>) {
  return async (ctx: Context): Promise<void> => {
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
