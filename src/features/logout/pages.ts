// The pages of a logout: consent, "still logged in", "logged out".
import type { Context } from 'koa';
import type { Views } from '../../capabilities/pages/views.ts';
import type { UserSession } from '../../engine/user-session.ts';
import type { Csrf } from '../../http/csrf.ts';
import { nameOf } from '../../users/profile.ts';
import type { Users } from '../../users/users.ts';
import type { LogoutOutcome } from './end-session.ts';
import type { RpLogout, RpRequest } from './rp-initiated.ts';

export interface PageDependencies {
  views: Views;
  csrf: Csrf;
  users: Users;
}

/** The path that the consent form posts to. */
export const CONSENT_PATH = '/oidc/logout/consent';

/** Seconds after which the browser leaves the page with frames, whether or not they have loaded. */
const FRAMES_TIMEOUT_SECONDS = 5;

/**
 * Asks the user whether to log out. The form repeats the request and names the session that the question is about.
 */
export async function askToLogOut(
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
    'logout/consent',
    {
      action: CONSENT_PATH,
      csrf: csrf.token(ctx),
      fields: Object.entries(fields).map(([name, value]) => ({ name, value })),
      user: nameOf(user),
      ...(client === undefined ? {} : { client: { name: client.name, logo: client.logo_uri } }),
    },
    { uiLocales: request.ui_locales, formsLeave: true },
  );
}

/** Tells the user that they are still logged in. */
export function showStillLoggedIn({ views }: PageDependencies, ctx: Context, uiLocales: string | undefined) {
  return views.page(ctx, 'logout/kept', {}, { uiLocales });
}

/** Sends the browser on, or shows the signed-out page; clients that do not accept HTML get `OK`. */
export async function finishLogout(
  { views }: PageDependencies,
  ctx: Context,
  { to, frames }: LogoutOutcome,
  uiLocales?: string,
): Promise<void> {
  const location = to?.replace(/[^!-~]/gu, encodeURIComponent);
  if (frames.length > 0) {
    if (location !== undefined) ctx.set('Refresh', `${FRAMES_TIMEOUT_SECONDS}; url=${location}`);
    return views.page(ctx, 'logout/signed-out', { frames, continueUrl: location }, { uiLocales, frames });
  }
  if (location !== undefined) return redirect(ctx, location);
  if (ctx.accepts('text', 'html') === 'html') return views.page(ctx, 'logout/signed-out', {}, { uiLocales });
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
