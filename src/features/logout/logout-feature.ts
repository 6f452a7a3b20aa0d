// Logout: its endpoints, its pages and the back channel.

import type { Context } from 'koa';
import { z } from 'zod';
import { declarePage, type ShownClient, shownClient, type Views } from '../../capabilities/pages/views.ts';
import { engineEvents } from '../../engine/base/engine-declaration.ts';
import { feature } from '../../engine/provider/feature.ts';
import type { LogoutChannel } from '../../engine/session/logout-channels.ts';
import type { UserSession } from '../../engine/session/sessions.ts';
import { AuthError } from '../../http/errors.ts';
import { httpLimits } from '../../http/limits.ts';
import { optional } from '../../http/parameter-schemas.ts';
import type { Csrf } from '../../http/server/csrf.ts';
import type { RouteDeclarations } from '../../http/server/router.ts';
import { nameOf } from '../../users/profile.ts';
import type { Users } from '../../users/users.ts';
import {
  type EndSessionDependencies,
  endSession,
  type LogoutOutcome,
  SIGNED_OUT_PATH,
} from './end-session.ts';
import { CALLBACK_PATH, returnFromProvider } from './federated.ts';
import { logoutEvents, logoutLimits } from './logout-declaration.ts';
import { postedFields, queryFields } from './request.ts';
import {
  RP_PARAMETERS,
  type RpDependencies,
  type RpLogout,
  type RpRequest,
  validateRpLogout,
} from './rp-initiated.ts';
import { V2_PARAMETERS, validateV2Logout } from './v2.ts';

// The routes of logout.

// The pages of a logout: consent, "still logged in", "logged out".

interface PageDependencies {
  views: Views;
  csrf: Csrf;
  users: Users;
}

const CONSENT_PATH = '/oidc/logout/consent';

/** Seconds after which the browser leaves the page with frames, whether or not they have loaded. */
const FRAMES_TIMEOUT_SECONDS = 5;

interface LogoutConsentModel {
  action: string;
  csrf: string;
  fields: { name: string; value: string }[];
  user: string;
  client?: ShownClient;
}

export const LOGOUT_CONSENT_PAGE = declarePage<LogoutConsentModel>('logout/consent');

/**
 * Asks the user whether to log out. The form repeats the request and names the session that the question is about.
 */
async function askToLogOut(
  { views, csrf, users }: PageDependencies,
  ctx: Context,
  logout: RpLogout,
  request: RpRequest,
  session: UserSession,
): Promise<void> {
  const user = await users.get(session.userId);
  const { federated: _flag, ...parameters } = request;
  const fields = { ...parameters, ...(logout.federated ? { federated: 'true' } : {}), session: session.sid };
  const { client } = logout;
  await views.page(
    ctx,
    LOGOUT_CONSENT_PAGE,
    {
      action: CONSENT_PATH,
      csrf: csrf.token(ctx),
      fields: Object.entries(fields).map(([name, value]) => ({ name, value })),
      user: nameOf(user),
      ...(client === undefined ? {} : { client: shownClient(client) }),
    },
    { uiLocales: request.ui_locales, formsLeave: true },
  );
}

export const LOGOUT_KEPT_PAGE = declarePage('logout/kept');

/** Tells the user that they are still logged in. */
function showStillLoggedIn({ views }: PageDependencies, ctx: Context, uiLocales: string | undefined) {
  return views.page(ctx, LOGOUT_KEPT_PAGE, {}, { uiLocales });
}

interface LogoutSignedOutModel {
  /** Addresses of applications that end their own sessions. */
  frames?: string[];
  /** Where the browser goes on when they are done. */
  continueUrl?: string | undefined;
}

export const LOGOUT_SIGNED_OUT_PAGE = declarePage<LogoutSignedOutModel>('logout/signed-out');

// docs/understand/decisions/sessions-logout.md#without-a-url-to-redirect-to-a-browser-gets-a-page-and-other-clients-get-ok
/** Sends the browser on, or shows the signed-out page; clients that do not accept HTML get `OK`. */
async function finishLogout(
  { views }: PageDependencies,
  ctx: Context,
  { to, frames }: LogoutOutcome,
  uiLocales?: string,
): Promise<void> {
  const location = to?.replace(/[^!-~]/gu, encodeURIComponent);
  if (frames.length > 0) {
    if (location !== undefined) ctx.set('Refresh', `${FRAMES_TIMEOUT_SECONDS}; url=${location}`);
    return views.page(ctx, LOGOUT_SIGNED_OUT_PAGE, { frames, continueUrl: location }, { uiLocales, frames });
  }
  if (location !== undefined) return redirect(ctx, location);
  if (ctx.accepts('text', 'html') === 'html')
    return views.page(ctx, LOGOUT_SIGNED_OUT_PAGE, {}, { uiLocales });
  ctx.set('Cache-Control', 'no-store');
  ctx.type = 'text';
  ctx.body = 'OK';
}

/** Redirects to exactly the URL that was checked; koa's redirect would encode it again. */
function redirect(ctx: Context, to: string): void {
  ctx.status = 302;
  ctx.set('Cache-Control', 'no-store');
  ctx.set('Location', to);
  ctx.type = 'text';
  ctx.body = 'Logged out.';
}

export interface LogoutDependencies extends EndSessionDependencies, RpDependencies, PageDependencies {}

const page = { cors: 'none', errors: 'page' } as const;
const endpoint = { ...page, limit: logoutLimits.logout } as const;

const LOGGED_OUT = {
  200: 'The session has ended: a page, or `OK` for clients that do not accept HTML. Or a page that asks whether to log out.',
  302: 'The session has ended; the browser is sent to the URL in the request.',
} as const;

const rpParameters = z.object({
  id_token_hint: optional('An ID token of the session, which may be expired.'),
  logout_hint: optional('The `sid` of the session, as in its ID tokens.'),
  post_logout_redirect_uri: optional(
    'The URL that the browser is sent to after the logout; it must be allowed.',
  ),
  client_id: optional('The application; its allow-list applies.'),
  federated: optional('Also logs out at the upstream provider; with POST `true` or `false`.'),
  state: optional('Returned unchanged, in the query of `post_logout_redirect_uri`.'),
  ui_locales: optional('Languages of the pages, preferred first; the first must be enabled in the tenant.'),
} satisfies Record<(typeof RP_PARAMETERS)[number], unknown>);

const logoutRoutes: RouteDeclarations<LogoutDependencies> = {
  'GET /v2/logout': {
    ...endpoint,
    summary: 'Log out, as at the hosted service',
    query: z.object({
      returnTo: optional(
        'The URL that the browser is sent to after the logout; it must be allowed, apart from its query.',
      ),
      client_id: optional("The application whose allow-list applies; without it the tenant's does."),
      federated: optional(
        'Also logs out at the upstream provider; on if present, except with the value `false`.',
      ),
    } satisfies Record<(typeof V2_PARAMETERS)[number], unknown>),
    answers: LOGGED_OUT,
    handle: logRefusals(v2Logout),
  },
  'GET /oidc/logout': {
    ...endpoint,
    summary: 'Log out (OpenID Connect RP-Initiated Logout 1.0)',
    query: rpParameters,
    answers: LOGGED_OUT,
    handle: logRefusals((deps, ctx) => rpLogout(deps, ctx, queryFields(ctx, RP_PARAMETERS), 'GET')),
  },
  'POST /oidc/logout': {
    ...endpoint,
    summary: 'Log out (OpenID Connect RP-Initiated Logout 1.0), by a form',
    uncheckedBody: rpParameters,
    bodyTypes: ['form'],
    answers: LOGGED_OUT,
    handle: logRefusals((deps, ctx) => rpLogout(deps, ctx, postedFields(ctx, RP_PARAMETERS), 'POST')),
  },
  [`POST ${CONSENT_PATH}` as const]: { ...endpoint, handle: logRefusals(handleConsent) },
  [`GET ${CALLBACK_PATH}` as const]: { ...page, limit: httpLimits.other, handle: handleProviderReturn },
  [`GET|HEAD ${SIGNED_OUT_PATH}` as const]: {
    ...page,
    limit: httpLimits.other,
    handle: (deps, ctx) => finishLogout(deps, ctx, { to: undefined, frames: [] }),
  },
};

async function v2Logout(deps: LogoutDependencies, ctx: Context): Promise<void> {
  const session = await deps.sessions.current(ctx);
  const logout = await validateV2Logout(deps.config, queryFields(ctx, V2_PARAMETERS), session);
  await finishLogout(deps, ctx, await endSession(deps, ctx, logout));
}

async function handleProviderReturn(deps: LogoutDependencies, ctx: Context): Promise<void> {
  const { state } = queryFields(ctx, ['state']);
  await finishLogout(deps, ctx, { to: await returnFromProvider(deps, state), frames: [] });
}

async function rpLogout(
  deps: LogoutDependencies,
  ctx: Context,
  request: RpRequest,
  method: 'GET' | 'POST',
): Promise<void> {
  const session = await deps.sessions.current(ctx);
  const logout = await validateRpLogout(deps, request, method, session);
  if (session !== undefined && !logout.identifies(session)) {
    return askToLogOut(deps, ctx, logout, request, session);
  }
  await finishLogout(deps, ctx, await endSession(deps, ctx, logout), request.ui_locales);
}

/** The request is validated again, because the form could have been changed. */
async function handleConsent(deps: LogoutDependencies, ctx: Context): Promise<void> {
  deps.csrf.verify(ctx);
  const { decision, session: confirmedSid } = postedFields(ctx, ['decision', 'session']);
  const request: RpRequest = postedFields(ctx, RP_PARAMETERS);
  const session = await deps.sessions.current(ctx);
  const logout = await validateRpLogout(deps, request, 'POST', session);
  // Meanwhile another user has logged in, who was not asked.
  if (session !== undefined && session.sid !== confirmedSid) {
    return askToLogOut(deps, ctx, logout, request, session);
  }
  if (decision !== 'logout' && session !== undefined) return showStillLoggedIn(deps, ctx, request.ui_locales);
  await finishLogout(deps, ctx, await endSession(deps, ctx, logout), request.ui_locales);
}

/** Wraps a handler so that refused logouts are logged. */
function logRefusals(handle: (deps: LogoutDependencies, ctx: Context) => Promise<void>) {
  return async (deps: LogoutDependencies, ctx: Context): Promise<void> => {
    try {
      await handle(deps, ctx);
    } catch (thrown) {
      if (thrown instanceof AuthError && thrown.status < 500) {
        deps.events.record({ type: engineEvents.flo, ip: ctx.ip, description: thrown.error_description });
      }
      throw thrown;
    }
  };
}

export const logout = feature<LogoutDependencies, { backChannel: LogoutChannel }>({
  name: 'logout',
  limits: logoutLimits,
  events: logoutEvents,
  logoutChannels: ({ backChannel }) => [backChannel],
  routes: logoutRoutes,
});
