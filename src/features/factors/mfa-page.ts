// What all pages of the second factor share: the claimant, the choice of factors, and the alerts.
import type { Context } from 'koa';
import { AuthError } from '../../http/errors.ts';
import { languagesOf } from '../../http/languages.ts';
import { MFA_POLICY } from '../../records/users/authentication-classes.ts';
import {
  openRequestPage,
  pageModel,
  type RequestPage,
  renderPage,
  requestLanguages,
  stepPath,
} from '../flow/request-page.ts';
import type { Claimant, FactorRequest } from './claimant.ts';
import type { Factor, FactorPage, FactorPagesDependencies, PageState } from './factor.ts';
import { activeAuthenticators, enrollable } from './policy.ts';

/**
 * Opens the page of a login whose first factor was given.
 * @returns undefined when the login needs no second factor here; the browser was then redirected.
 * @throws AuthError 400 when this browser has no such request waiting.
 */
export async function openMfaPage(
  deps: FactorPagesDependencies,
  ctx: Context,
): Promise<FactorPage | undefined> {
  const request = await openRequestPage(deps, ctx);
  const { firstFactor, remembered, uid } = request.waiting;
  const user = firstFactor === undefined ? undefined : await deps.users.get(firstFactor.userId);
  if (firstFactor === undefined || user === undefined) {
    ctx.redirect(`/u/${uid}`);
    return undefined;
  }
  const { credentialVersion, presence, amr } = firstFactor;
  const { factors } = request.waiting;
  const hasSecondFactor = factors?.mode === 'enroll' && amr.includes('mfa');
  const languages = languagesOf(ctx, request.waiting.params.ui_locales);
  const { client_id: clientId } = request.client;
  const login = { credentialVersion, presence, hasSecondFactor };
  const claimant = { user, ...login, clientId, ip: ctx.ip, languages };
  return {
    ...pagesOf(deps, ctx, request, claimant),
    claimant,
    state: remembered as PageState,
    ...(factors?.mode === 'enroll' && { mayEnroll: ({ type }: Factor) => factors.types.includes(type) }),
    ...(factors?.mode === 'challenge' && { accepts: factors.types }),
    offersChoice: factors?.isChosen === true,
  };
}

/** Returns what pages of a waiting request have in common. */
function pagesOf(
  deps: FactorPagesDependencies,
  ctx: Context,
  request: RequestPage,
  { user }: Claimant,
): Omit<FactorPage, 'claimant' | 'state'> {
  const pathOf = (step?: string) => (step === undefined ? 'mfa' : `mfa/${step}`);
  return {
    languages: requestLanguages(ctx, request),
    uiLocales: request.waiting.params.ui_locales,
    urlOf: (step) => stepPath(request.waiting, pathOf(step)),
    model: (step) => pageModel(request, pathOf(step)),
    render: (template, model, status) => renderPage(deps, ctx, request, template, model, status),
    saveState: (state) => deps.waitingRequests.remember(ctx, { ...state }),
    isOfLogin: true,
    finish: ({ amr }) => deps.finish.secondFactor(ctx, { userId: user.id, acr: MFA_POLICY, amr }),
  };
}

/** The factors to choose from: those that the user has, or, for a user without any, those that can be enrolled. */
export interface FactorChoice {
  enrolling: boolean;
  /** Whether an enrolment would be the user's first, which comes with a recovery code. */
  isFirst: boolean;
  factors: Factor[];
}

/** Returns the factors that a user may choose from, the strongest first. */
export async function choiceOf(
  deps: FactorPagesDependencies,
  { claimant: { user }, mayEnroll, accepts }: FactorPage,
): Promise<FactorChoice> {
  const active = await activeAuthenticators(deps, user);
  const isFirst = active.length === 0;
  if (accepts !== undefined) {
    // In the order in which the action lists them. Users who have none of them cannot enrol one here.
    const has = deps.factors.filter(({ kind }) => active.some((one) => one.kind === kind));
    const factors = accepts.flatMap((type) => has.find((factor) => factor.type === type) ?? []);
    return { enrolling: false, isFirst: false, factors };
  }
  if (mayEnroll !== undefined)
    return { enrolling: true, isFirst, factors: strongestFirst(enrollable(deps, user).filter(mayEnroll)) };
  const enrolling = isFirst;
  const factors = enrolling
    ? enrollable(deps, user)
    : deps.factors.filter(({ kind }) => active.some((one) => one.kind === kind));
  return { enrolling, isFirst, factors: strongestFirst(factors) };
}

const strongestFirst = (factors: readonly Factor[]) => factors.toSorted((a, b) => b.strength - a.strength);

export function requestOf({ claimant, languages }: FactorPage): FactorRequest {
  return { ...claimant, languages };
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

/** Returns the alert of an error that the user can correct, and throws any other error. */
export function alertOf(thrown: unknown): { alert: string; status: number } {
  const isExpired = thrown instanceof AuthError && thrown.extra.reason === 'request_expired';
  const alert = thrown instanceof AuthError && !isExpired ? ALERTS[thrown.error] : undefined;
  if (!(thrown instanceof AuthError) || alert === undefined) throw thrown;
  return { alert, status: thrown.status === 401 ? 400 : thrown.status };
}
