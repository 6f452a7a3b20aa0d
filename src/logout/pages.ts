// The pages of logging out: the question, what was decided, and the way on.
import type { Context } from 'koa';
import type { UserSession } from '../engine/sessions.ts';
import type { Csrf } from '../http/csrf.ts';
import type { Views } from '../pages/views.ts';
import { nameOf } from '../users/profile.ts';
import type { Users } from '../users/users.ts';
import type { LoggedOut } from './end-session.ts';
import type { RpLogout, RpRequest } from './rp-initiated.ts';

export interface PageDependencies {
  views: Views;
  csrf: Csrf;
  users: Users;
}

/** Where the question is answered. */
export const CONSENT = '/oidc/logout/consent';

/** Seconds after which the browser goes on from a page with frames, loaded or not, without scripts as well. */
const FRAMES_WAIT = 5;

/** Asks the user; the form brings the request again, and names the session that it was asked of. */
export async function askToLogOut(
  { views, csrf, users }: PageDependencies,
  ctx: Context,
  logout: RpLogout,
  request: RpRequest,
  session: UserSession,
): Promise<void> {
  const user = await users.get(session.userId);
  const { federated: _flag, ...said } = request;
  const fields = { ...said, ...(logout.federated ? { federated: 'true' } : {}), session: session.sid };
  const { client } = logout;
  await views.page(
    ctx,
    'logout/consent',
    {
      action: CONSENT,
      csrf: csrf.token(ctx),
      fields: Object.entries(fields).map(([name, value]) => ({ name, value })),
      user: nameOf(user),
      ...(client === undefined ? {} : { client: { name: client.name, logo: client.logo_uri } }),
    },
    // By way of an identity provider or a SAML application the browser may go anywhere by https.
    { uiLocales: request.ui_locales, formAction: logout.returnTo ?? ctx.origin },
  );
}

/** The user stays: says so. */
export function stillLoggedIn({ views }: PageDependencies, ctx: Context, uiLocales: string | undefined) {
  return views.page(ctx, 'logout/kept', {}, { uiLocales });
}

/** Sends the browser on, or shows that the user is logged out: a page for people, `OK` for who asks for none. */
export async function finishLogout(
  { views }: PageDependencies,
  ctx: Context,
  { to, frames }: LoggedOut,
  uiLocales?: string,
): Promise<void> {
  const onward = to?.replace(/[^!-~]/gu, encodeURIComponent);
  if (frames.length > 0) {
    if (onward !== undefined) ctx.set('Refresh', `${FRAMES_WAIT}; url=${onward}`);
    return views.page(ctx, 'logout/signed-out', { frames, continueUrl: onward }, { uiLocales, frames });
  }
  if (onward !== undefined) return redirect(ctx, onward);
  if (ctx.accepts('text', 'html') === 'html') return views.page(ctx, 'logout/signed-out', {}, { uiLocales });
  ctx.set('Cache-Control', 'no-store');
  ctx.type = 'text';
  ctx.body = 'OK';
}

/** To the address letter by letter: koa would write it anew. */
function redirect(ctx: Context, to: string): void {
  ctx.status = 302;
  ctx.set('Cache-Control', 'no-store');
  ctx.set('Location', to);
  ctx.type = 'text';
  ctx.body = 'Logged out.';
}
