// The routes of the page that the link in a verification mail opens.

import type { Context } from 'koa';
import { DONE_PAGE, declarePage } from '../../../capabilities/pages/views.ts';
import { formFields } from '../../../http/body.ts';
import { linkExpired } from '../../../http/errors.ts';
import { PAGE, type RouteDeclarations } from '../../../http/router.ts';
import { type AccountPagesDependencies, seeOther, ticketOf } from './account-pages.ts';
import { resultUrl } from './result-url.ts';
import { ticketTarget } from './ticket-link.ts';
import { discardAccount, openVerification, verifyEmail } from './verification.ts';
import { EMAIL_VERIFICATION } from './verification-link.ts';

export const verificationPages: RouteDeclarations<AccountPagesDependencies> = {
  [`GET|HEAD ${EMAIL_VERIFICATION.path}` as const]: { ...PAGE, handle: showVerification },
  [`POST ${EMAIL_VERIFICATION.path}` as const]: { ...PAGE, handle: handleVerification },
};

interface AccountVerifyModel {
  action: string;
  csrf: string;
  ticket: string;
  email: string | undefined;
  isUnproved: boolean;
}

export const ACCOUNT_VERIFY_PAGE = declarePage<AccountVerifyModel>('account/verify');

async function showVerification(deps: AccountPagesDependencies, ctx: Context): Promise<void> {
  const ticket = ticketOf(ctx.query.ticket);
  const verification = await openVerification(deps, ticket);
  if (verification === undefined) throw linkExpired();
  const configuredTarget = await ticketTarget(deps.config, verification.verifiedChallenge);
  await deps.views.page(
    ctx,
    ACCOUNT_VERIFY_PAGE,
    {
      action: EMAIL_VERIFICATION.path,
      csrf: deps.csrf.token(ctx),
      ticket,
      email: verification.user.email,
      isUnproved: !verification.user.email_verified,
    },
    { formsLeave: (configuredTarget?.url ?? deps.messages.template('verify_email').resultUrl) !== undefined },
  );
}

async function handleVerification(deps: AccountPagesDependencies, ctx: Context): Promise<void> {
  deps.csrf.verify(ctx);
  const { ticket, decision } = formFields(ctx, 'ticket', 'decision');
  if (decision === 'discard') {
    if (!(await discardAccount(deps, ticket, ctx.ip))) throw linkExpired();
    return deps.views.page(ctx, DONE_PAGE, { done: 'verify.discarded' });
  }
  const verifiedChallenge = (await openVerification(deps, ticket))?.verifiedChallenge;
  const user = await verifyEmail(deps, ticket, ctx.ip);
  if (user === undefined) throw linkExpired();
  const message = 'Your email was verified. You can continue using the application.';
  const outcome = { success: true, message, email: user.email };
  const configuredTarget = verifiedChallenge && (await ticketTarget(deps.config, verifiedChallenge));
  const target = resultUrl(deps, 'verify_email', outcome, configuredTarget);
  if (target !== undefined) return seeOther(ctx, target);
  await deps.views.page(ctx, DONE_PAGE, { done: 'verify.done' });
}
