// The routes of the page at which a new password is set, and helpers that the other account pages share.
import type { Context } from 'koa';
import { askerOf } from '../../engine/action-event.ts';
import type { HostedDependencies } from '../../flow/request-page.ts';
import { formFields } from '../../http/body-fields.ts';
import { nameBrowser } from '../../http/browser.ts';
import { AuthError, linkExpired } from '../../http/errors.ts';
import { languagesOf } from '../../http/languages.ts';
import { PAGE, type RouteDeclarations } from '../../http/routes.ts';
import type { Caller } from '../../protection/callers.ts';
import type { RateLimits } from '../../protection/rate-limit.ts';
import type { Random } from '../../runtime/random.ts';
import { checkStrength } from '../../users/password-policy.ts';
import {
  type OpenReset,
  openReset,
  type ResetDependencies,
  type ResetRefusal,
  recordRefusedReset,
  resetPassword,
  resultUrl,
} from './reset.ts';
import {
  challengeReset,
  isAllowed,
  RESET_RETURN,
  type ResetChallengeDependencies,
  resultUrlOf,
  takeReturned,
  ticketOfBrowser,
} from './reset-challenge.ts';
import { PASSWORD_RESET, type RequestReset } from './reset-link.ts';
import { ticketTarget } from './ticket-link.ts';
import type { VerificationDependencies } from './verification.ts';

export interface AccountPagesDependencies
  extends ResetDependencies,
    VerificationDependencies,
    HostedDependencies,
    ResetChallengeDependencies {
  random: Random;
  rateLimits: RateLimits;
  requestReset: RequestReset;
}

/** The routes of the reset page. Mail scanners fetch links by GET and HEAD, so those do not use the ticket up. */
export const accountPages: RouteDeclarations<AccountPagesDependencies> = {
  [`GET|HEAD ${PASSWORD_RESET.path}` as const]: { ...PAGE, handle: openResetPage },
  [`POST ${PASSWORD_RESET.path}` as const]: { ...PAGE, handle: handleReset },
  [`GET ${RESET_RETURN}` as const]: { ...PAGE, handle: returnToReset },
};

async function openResetPage(deps: AccountPagesDependencies, ctx: Context): Promise<void> {
  const ticket = ticketOf(ctx.query.ticket);
  const open = await requireReset(deps, ticket);
  // A HEAD request runs no actions: nobody sees its page.
  if (ctx.method === 'HEAD') return showReset(deps, ctx, { ticket, proof: '' }, open);
  await challengeAndShow(deps, ctx, { ticket, open });
}

/** Continues a reset whose user an action had sent to another site or to a second factor. */
async function returnToReset(deps: AccountPagesDependencies, ctx: Context): Promise<void> {
  const ticket = ticketOfBrowser(ctx);
  const open = await requireReset(deps, ticket);
  const returned = await takeReturned(deps, ctx, { ticket, open });
  if (returned === undefined) throw linkExpired();
  await challengeAndShow(deps, ctx, { ticket, open, returned });
}

async function challengeAndShow(
  deps: AccountPagesDependencies,
  ctx: Context,
  reset: Parameters<typeof challengeReset>[2],
): Promise<void> {
  const { ticket } = reset;
  const proof = await challengeReset(deps, ctx, reset);
  // The link is checked again: it may have expired or been used while the actions ran.
  if (proof !== undefined) await showReset(deps, ctx, { ticket, proof }, await requireReset(deps, ticket));
}

/** Returns the ticket in a query parameter; the empty string, which is no valid ticket, if there is none. */
export function ticketOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

async function requireReset(deps: AccountPagesDependencies, ticket: string): Promise<OpenReset> {
  const open = await openReset(deps, ticket);
  if (open === undefined) throw linkExpired();
  return open;
}

async function handleReset(deps: AccountPagesDependencies, ctx: Context): Promise<void> {
  deps.csrf.verify(ctx);
  const { ticket, proof, password, repeat } = formFields(ctx, 'ticket', 'proof', 'password', 'repeat');
  const open = await openReset(deps, ticket);
  if (open === undefined) {
    recordRefusedReset(deps, open, { reason: 'expired', ip: ctx.ip });
    throw linkExpired();
  }
  const form = { ticket, proof };
  if (!isAllowed(deps, open, proof)) return see(ctx, `${PASSWORD_RESET.path}?ticket=${ticket}`);
  if (password !== repeat) return showReset(deps, ctx, form, open, { repeat: 'reset.differ' }, password);
  const languages = languagesOf(ctx);
  const refusal = await resetPassword(deps, open, {
    ticket,
    password,
    caller: callerOf(deps, ctx),
    languages,
    asker: { ...askerOf(ctx, undefined), organization: await organizationOf(deps, open) },
  });
  if (refusal !== undefined) recordRefusedReset(deps, open, { reason: refusal.reason, ip: ctx.ip });
  if (refusal?.reason === 'expired') throw linkExpired();
  if (refusal?.reason === 'not-changed') return notChanged(deps, ctx, open);
  if (refusal !== undefined) {
    return showReset(deps, ctx, form, open, { password: FAULTS[refusal.reason] ?? 'signup.weak' }, password);
  }
  const target = await resetTarget(deps, open, { success: true, message: 'Your password has been changed.' });
  if (target !== undefined) return see(ctx, target);
  await deps.views.page(ctx, 'account/done', { done: 'reset.done' });
}

/** Answers that the custom database did not change the password. The link is used up by then. */
async function notChanged(deps: AccountPagesDependencies, ctx: Context, open: OpenReset): Promise<void> {
  const message = 'Your password could not be changed. Please ask for a new link.';
  const target = await resetTarget(deps, open, { success: false, message });
  if (target !== undefined) return see(ctx, target);
  throw new AuthError(503, 'temporarily_unavailable', message);
}

/** Returns the organization that the reset was requested for. */
async function organizationOf({ config }: AccountPagesDependencies, { verifiedChallenge }: OpenReset) {
  const { organization: name } = verifiedChallenge.data;
  return typeof name === 'string' ? config.organization(name) : undefined;
}

/** Returns the URL to redirect to after a reset, with the result in its query; undefined to show our own page. */
async function resetTarget(
  deps: AccountPagesDependencies,
  open: OpenReset,
  result: { success: boolean; message: string },
): Promise<string | undefined> {
  const outcome = { ...result, email: open.user.email, organization: await organizationOf(deps, open) };
  return resultUrl(deps, 'reset_email', outcome, await targetOf(deps, open));
}

/** Returns the result URL that an action set, or else that of the ticket. */
async function targetOf({ config }: AccountPagesDependencies, open: OpenReset) {
  const url = resultUrlOf(open);
  return url === undefined ? ticketTarget(config, open.verifiedChallenge) : { url, includeEmail: false };
}

/** Message keys of refused passwords; most are those of sign-up. */
const FAULTS: Partial<Record<ResetRefusal['reason'], string>> = {
  'weak-password': 'signup.weak',
  'common-password': 'signup.common',
  'personal-password': 'signup.personal',
  'used-password': 'reset.used',
};

async function showReset(
  deps: AccountPagesDependencies,
  ctx: Context,
  { ticket, proof }: { ticket: string; proof: string },
  open: OpenReset,
  faults: { password?: string; repeat?: string } = {},
  tried?: string,
): Promise<void> {
  const { user, options } = open;
  const { rules } = checkStrength(options, tried ?? '');
  const failed = Object.keys(faults).length > 0;
  const after = await targetOf(deps, open);
  await deps.views.page(
    ctx,
    'account/reset',
    {
      action: PASSWORD_RESET.path,
      csrf: deps.csrf.token(ctx),
      ticket,
      proof,
      email: user.email,
      rules: tried === undefined ? rules.map(({ verified: _verified, ...rule }) => rule) : rules,
      faults,
      ...(failed && { alert: 'reset.failed' }),
    },
    { status: failed ? 400 : 200, formAction: after?.url ?? deps.messages.template('reset_email').resultUrl },
  );
}

/** Returns the IP address and the browser of a request. Sets the browser's cookie if it has none. */
export function callerOf({ random }: { random: Random }, ctx: Context): Caller {
  return { ip: ctx.ip, ...nameBrowser(ctx, random) };
}

/** Redirects with 303 after a POST (RFC 9110 §15.4.4). */
export function see(ctx: Context, target: string): void {
  ctx.redirect(target);
  ctx.status = 303;
}
