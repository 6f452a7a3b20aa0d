// Forms of an e-mail change: the request at the profile page, and the pages of the mailed links.
import type { Context } from 'koa';
import { formFields } from '../../../http/body-fields.ts';
import { AuthError, linkExpired } from '../../../http/errors.ts';
import { languagesOf } from '../../../http/languages.ts';
import { PAGE, type RouteDeclarations } from '../../../http/routes.ts';
import { ACCOUNT } from './callbacks.ts';
import { editableOf } from './editable.ts';
import {
  EMAIL_CHANGE,
  type EmailChangeDependencies,
  openChange,
  requestChange,
  useChange,
} from './email-change.ts';
import { notifyUser } from './notices.ts';
import { back, formRoute, requirePage } from './page.ts';
import { type ProfileDependencies, showProfile } from './profile.ts';
import type { PageActor } from './session.ts';

export interface EmailPageDependencies extends ProfileDependencies, EmailChangeDependencies {
  sessions: ProfileDependencies['sessions'];
}

/** The routes of an e-mail change. GET and HEAD change nothing, because mail scanners fetch links. */
export const emailRoutes: RouteDeclarations<EmailPageDependencies> = {
  [`POST ${ACCOUNT}/profile/email`]: formRoute('', { act: 'email' }, requestEmailChange),
  [`GET|HEAD ${EMAIL_CHANGE}` as const]: { ...PAGE, handle: showLink },
  [`POST ${EMAIL_CHANGE}`]: { ...PAGE, handle: useLink },
};

async function requestEmailChange(
  deps: EmailPageDependencies,
  ctx: Context,
  actor: PageActor,
): Promise<void> {
  const { user, login } = actor;
  if ((await editableOf(deps, user.id))?.editsEmail !== true) return back(ctx, '');
  const { email } = formFields(ctx, 'email');
  if (!(await deps.rateLimits.spend('accountMail', user.id)))
    throw new AuthError(429, 'too_many_requests', 'Too many messages for this user. Try again later.');
  const { credentialVersion, id: session } = login;
  const by = { languages: languagesOf(ctx), ip: ctx.ip, credentialVersion, session };
  const step = await requestChange(deps, user, email, by);
  if (step === undefined) {
    const faults = { email: 'signup.email' };
    return showProfile(deps, ctx, actor, { values: { email }, faults, alert: 'own.profile.failed' });
  }
  back(ctx, '', step === 'allow' ? 'emailSent' : 'emailNext');
}

async function showLink(deps: EmailPageDependencies, ctx: Context): Promise<void> {
  requirePage(deps);
  const ticket = typeof ctx.query.ticket === 'string' ? ctx.query.ticket : '';
  const open = await openChange(deps, ticket);
  if (open === undefined) throw linkExpired();
  const { step, email, from } = open;
  await deps.views.page(ctx, 'own/email', {
    action: EMAIL_CHANGE,
    csrf: deps.csrf.token(ctx),
    ticket,
    step,
    email,
    from,
  });
}

async function useLink(deps: EmailPageDependencies, ctx: Context): Promise<void> {
  requirePage(deps);
  deps.csrf.verify(ctx);
  const { ticket } = formFields(ctx, 'ticket');
  const outcome = await useChange(deps, ticket, { languages: languagesOf(ctx), ip: ctx.ip });
  if (outcome === 'expired') throw linkExpired();
  if (outcome === 'asked') return deps.views.page(ctx, 'account/done', { done: 'own.email.asked' });
  if (outcome === 'taken')
    throw new AuthError(409, 'invalid_request', 'Another account has this e-mail address.');
  const { changed: user, email } = outcome;
  deps.events.record({ type: 'sce', user_id: user.id, user_name: email, ip: ctx.ip });
  await notifyUser(deps, ctx, user, 'email');
  await deps.views.page(ctx, 'account/done', { done: 'own.email.changed' });
}
