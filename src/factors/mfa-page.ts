// What all pages of the second factor share: the claimant, the factors to choose from, the alerts.
import type { Context } from 'koa';
import { openRequestPage, requestLanguages } from '../flow/request-page.ts';
import { AuthError } from '../http/errors.ts';
import type { Factor, FactorPage, FactorPagesDependencies, FactorRequest, PageState } from './factor.ts';
import { activeAuthenticators, enrollable } from './policy.ts';

/**
 * Opens a page for somebody who has given the first factor.
 * @returns undefined when no second factor is wanted here, and the browser was sent on.
 * @throws AuthError 400 when this browser has no such request waiting.
 */
export async function openMfaPage(
  deps: FactorPagesDependencies,
  ctx: Context,
): Promise<FactorPage | undefined> {
  const request = await openRequestPage(deps, ctx);
  const { firstFactor, remembered, uid } = request.pending;
  const user = firstFactor === undefined ? undefined : await deps.users.get(firstFactor.userId);
  if (firstFactor === undefined || user === undefined) {
    ctx.redirect(`/u/${uid}`);
    return undefined;
  }
  const { credentialVersion } = firstFactor;
  const claimant = { user, credentialVersion, clientId: request.client.client_id, ip: ctx.ip };
  return { request, claimant, state: remembered as PageState };
}

/** What there is to choose from: the factors that the user has, or, who has none, those that can be enrolled. */
export interface FactorChoice {
  enrolling: boolean;
  factors: Factor[];
}

/** What a user may choose from, the safest first. */
export async function choiceOf(
  deps: FactorPagesDependencies,
  { claimant: { user } }: FactorPage,
): Promise<FactorChoice> {
  const active = await activeAuthenticators(deps, user);
  const enrolling = active.length === 0;
  const factors = enrolling
    ? enrollable(deps)
    : deps.factors.filter(({ kind }) => active.some((one) => one.kind === kind));
  return { enrolling, factors: factors.toSorted((a, b) => b.strength - a.strength) };
}

/** What enrolling and challenging are told of a page. */
export function requestOf(ctx: Context, { claimant, request }: FactorPage): FactorRequest {
  return { ...claimant, languages: requestLanguages(ctx, request) };
}

const ALERTS: Record<string, string> = {
  too_many_attempts: 'mfa.locked',
  too_many_requests: 'mfa.tooMany',
  temporarily_unavailable: 'mfa.notSent',
  invalid_phone_number: 'mfa.sms.invalid',
  invalid_request: 'mfa.email.invalid',
  association_required: 'mfa.expired',
  invalid_authenticator: 'mfa.expired',
};

/** The alert of an error that the user can correct; others are thrown. */
export function alertOf(thrown: unknown): { alert: string; status: number } {
  const isOver = thrown instanceof AuthError && thrown.extra.reason === 'request_expired';
  const alert = thrown instanceof AuthError && !isOver ? ALERTS[thrown.error] : undefined;
  if (!(thrown instanceof AuthError) || alert === undefined) throw thrown;
  return { alert, status: thrown.status === 401 ? 400 : thrown.status };
}
