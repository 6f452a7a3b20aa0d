// The routes of the page at which a new password is set, and helpers that the other account pages share.
import type { Context } from 'koa';
import type { Caller } from '../../../capabilities/protection/callers.ts';
import type { RateLimits } from '../../../capabilities/protection/rate-limit.ts';
import { requestContextOf } from '../../../engine/action-event.ts';
import { formFields } from '../../../http/body-fields.ts';
import { nameBrowser } from '../../../http/browser.ts';
import { AuthError, linkExpired } from '../../../http/errors.ts';
import { languagesOf } from '../../../http/languages.ts';
import { PAGE, type RouteDeclarations } from '../../../http/routes.ts';
import type { Random } from '../../../runtime/random.ts';
import { checkStrength } from '../../../users/password-policy.ts';
import type { HostedDependencies } from '../../flow/request-page.ts';
import {
  type OpenReset,
  openReset,
  type ResetDependencies,
  type ResetRefusal,
  recordRefusedReset,
  resetPassword,
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
import { resultUrl } from './result-url.ts';
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
  const reset = await requireReset(deps, ticket);
  // A HEAD request runs no actions: nobody sees its page.
  if (ctx.method === 'HEAD') return showReset(deps, ctx, { ticket, proof: '' }, reset);
  await challengeAndShow(deps, ctx, { ticket, reset });
}

/** Continues a reset whose user an action had sent to another site or to a second factor. */
async function returnToReset(deps: AccountPagesDependencies, ctx: Context): Promise<void> {
  const ticket = ticketOfBrowser(ctx);
  const reset = await requireReset(deps, ticket);
  const returned = await takeReturned(deps, ctx, { ticket, reset });
  if (returned === undefined) throw linkExpired();
  await challengeAndShow(deps, ctx, { ticket, reset, returned });
}

async function challengeAndShow(
  deps: AccountPagesDependencies,
  ctx: Context,
  challenge: Parameters<typeof challengeReset>[2],
): Promise<void> {
  const { ticket } = challenge;
  const proof = await challengeReset(deps, ctx, challenge);
  // The link is checked again: it may have expired or been used while the actions ran.
  if (proof !== undefined) await showReset(deps, ctx, { ticket, proof }, await requireReset(deps, ticket));
}

/** Returns the ticket in a query parameter; the empty string, which is no valid ticket, if there is none. */
export function ticketOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

async function requireReset(deps: AccountPagesDependencies, ticket: string): Promise<OpenReset> {
  const reset = await openReset(deps, ticket);
  if (reset === undefined) throw linkExpired();
  return reset;
}

async function handleReset(deps: AccountPagesDependencies, ctx: Context): Promise<void> {
  deps.csrf.verify(ctx);
  const { ticket, proof, password, repeat } = formFields(ctx, 'ticket', 'proof', 'password', 'repeat');
  const reset = await openReset(deps, ticket);
  if (reset === undefined) {
    recordRefusedReset(deps, reset, { reason: 'expired', ip: ctx.ip });
    throw linkExpired();
  }
  const form = { ticket, proof };
  if (!isAllowed(deps, reset, proof)) return seeOther(ctx, `${PASSWORD_RESET.path}?ticket=${ticket}`);
  if (password !== repeat) return showReset(deps, ctx, form, reset, { repeat: 'reset.differ' }, password);
  const languages = languagesOf(ctx);
  const refusal = await resetPassword(deps, reset, {
    ticket,
    password,
    caller: callerOf(deps, ctx),
    languages,
    asker: { ...requestContextOf(ctx, undefined), organization: await organizationOf(deps, reset) },
  });
  if (refusal !== undefined) recordRefusedReset(deps, reset, { reason: refusal.reason, ip: ctx.ip });
  if (refusal?.reason === 'expired') throw linkExpired();
  if (refusal?.reason === 'not-changed') return showNotChanged(deps, ctx, reset);
  if (refusal !== undefined) {
    return showReset(deps, ctx, form, reset, { password: FAULTS[refusal.reason] ?? 'signup.weak' }, password);
  }
  const target = await resetTarget(deps, reset, {
    success: true,
    message: 'Your password has been changed.',
  });
  if (target !== undefined) return seeOther(ctx, target);
  await deps.views.page(ctx, 'account/done', { done: 'reset.done' });
}

/** Answers that the custom database did not change the password. The link is used up by then. */
async function showNotChanged(deps: AccountPagesDependencies, ctx: Context, reset: OpenReset): Promise<void> {
  const message = 'Your password could not be changed. Please ask for a new link.';
  const target = await resetTarget(deps, reset, { success: false, message });
  if (target !== undefined) return seeOther(ctx, target);
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
  reset: OpenReset,
  result: { success: boolean; message: string },
): Promise<string | undefined> {
  const outcome = { ...result, email: reset.user.email, organization: await organizationOf(deps, reset) };
  return resultUrl(deps, 'reset_email', outcome, await configuredTarget(deps, reset));
}

/** Returns the result URL that an action set, or else that of the ticket. */
async function configuredTarget({ config }: AccountPagesDependencies, reset: OpenReset) {
  const url = resultUrlOf(reset);
  return url === undefined ? ticketTarget(config, reset.verifiedChallenge) : { url, includeEmail: false };
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
  reset: OpenReset,
  faults: { password?: string; repeat?: string } = {},
  password?: string,
): Promise<void> {
  const { user, options } = reset;
  const { rules } = checkStrength(options, password ?? '');
  const failed = Object.keys(faults).length > 0;
  const target = await configuredTarget(deps, reset);
  await deps.views.page(
    ctx,
    'account/reset',
    {
      action: PASSWORD_RESET.path,
      csrf: deps.csrf.token(ctx),
      ticket,
      proof,
      email: user.email,
      rules: password === undefined ? rules.map(({ verified: _verified, ...rule }) => rule) : rules,
      faults,
      ...(failed && { alert: 'reset.failed' }),
    },
    {
      status: failed ? 400 : 200,
      formsLeave: (target?.url ?? deps.messages.template('reset_email').resultUrl) !== undefined,
    },
  );
}

/** Returns the IP address and the browser of a request. Sets the browser's cookie if it has none. */
export function callerOf({ random }: { random: Random }, ctx: Context): Caller {
  return { ip: ctx.ip, ...nameBrowser(ctx, random) };
}

/** Redirects with 303 after a POST (RFC 9110 §15.4.4). */
export function seeOther(ctx: Context, target: string): void {
  ctx.redirect(target);
  ctx.status = 303;
}
