// Handlers of the hosted pages of the second factor, for all of their paths.
import type { Context } from 'koa';
import { requestExpired } from '../../engine/pending-interaction.ts';
import { formFields } from '../../http/body-fields.ts';
import { AuthError } from '../../http/errors.ts';
import { hasRecoveryCodes } from './enroll.ts';
import type { FactorPage, FactorPagesDependencies, PageState, Verification } from './factor.ts';
import { alertOf, choiceOf } from './mfa-page.ts';
import { findChallenge } from './out-of-band.ts';
import {
  type FactorSelection,
  showChallenge,
  showChoice,
  showEnrollment,
  showNewRecoveryCode,
} from './page-views.ts';
import { challengeOnPage, hasOpenChallenge, startEnrollmentOnPage } from './start-on-page.ts';

/** Answers a request to an opened page. */
export type Handler = (deps: FactorPagesDependencies, ctx: Context, page: FactorPage) => Promise<void>;

/** Shows the factors to choose from. */
export const choose: Handler = async (deps, _ctx, page) => showChoice(deps, page, await choiceOf(deps, page));

/**
 * Answers the first page: shows the new recovery code if the factor was given already, or the choice if there is
 * one to make; otherwise redirects to the page of the only or the strongest factor.
 */
export async function showFirst(
  deps: FactorPagesDependencies,
  ctx: Context,
  page: FactorPage,
): Promise<void> {
  if (page.state.passed === true) return showNewRecoveryCode(deps, page);
  const choice = await choiceOf(deps, page);
  const [first, ...others] = choice.factors;
  // Users who enrol always choose. Users with factors start at the strongest one, and can switch to another.
  const isChosen = choice.enrolling || page.offersChoice === true;
  if (first === undefined || (isChosen && others.length > 0)) {
    return showChoice(deps, page, choice);
  }
  ctx.redirect(page.urlOf(first.type));
}

/** Returns the factor of the path. @throws AuthError 400 when it is not among those to choose from. */
async function selectionOf(
  deps: FactorPagesDependencies,
  ctx: Context,
  page: FactorPage,
): Promise<FactorSelection> {
  const choice = await choiceOf(deps, page);
  const factor = choice.factors.find(({ type }) => type === ctx.params.factor);
  if (factor === undefined || page.state.passed === true) {
    throw new AuthError(400, 'invalid_request', 'This way is not open.', {
      extra: { reason: 'request_expired' },
    });
  }
  return { factor, choice };
}

/**
 * Shows the page of the factor of the path. The first view begins the enrolment, sends the code or asks the device.
 * @throws AuthError 400 for a factor that is not among those to choose from, and once a factor was given.
 */
export async function showFactor(
  deps: FactorPagesDependencies,
  ctx: Context,
  page: FactorPage,
): Promise<void> {
  const selection = await selectionOf(deps, ctx, page);
  const { factor, choice } = selection;
  const { state } = page;
  if (choice.enrolling) {
    const isBegun = state.factor === factor.type && state.authenticatorId !== undefined;
    const isReady = isBegun || factor.pages.addressOf !== undefined;
    return isReady
      ? showEnrollment(deps, ctx, page, selection)
      : startEnrollmentOnPage(deps, ctx, page, selection);
  }
  // A reload sends nothing again.
  if (factor.channel === undefined || (await hasOpenChallenge(deps, state, factor)))
    return showChallenge(deps, ctx, page, selection);
  await challengeOnPage(deps, ctx, page, selection);
}

/**
 * Handles the form of the factor of the path: an address to enrol, or a code. A wrong code shows the page again.
 * @throws AuthError 400 as {@link showFactor}.
 */
export async function postFactor(
  deps: FactorPagesDependencies,
  ctx: Context,
  page: FactorPage,
): Promise<void> {
  const selection = await selectionOf(deps, ctx, page);
  const { factor, choice } = selection;
  const { code } = formFields(ctx, 'code');
  if (choice.enrolling && factor.pages.addressOf !== undefined && code === '') {
    return startEnrollmentOnPage(deps, ctx, page, selection);
  }
  const show = choice.enrolling ? showEnrollment : showChallenge;
  const showAgain = (alert: string, status: number) => show(deps, ctx, page, selection, { alert, status });
  if (code === '' && factor.pages.typesCode)
    return showAgain(factor.pages.alerts?.missing ?? 'mfa.missing', 400);
  try {
    const proof = { code, oobCode: page.state.oobCode ?? '' };
    const verification = await factor.verify(deps, page.claimant, proof);
    if (verification.ok)
      return await continueAfterFactor(deps, ctx, page, selection, verification.recoveryCode);
    await showAgain(OUTCOMES[verification.outcome] ?? factor.pages.alerts?.wrong ?? 'mfa.wrong', 400);
  } catch (thrown) {
    const { alert, status } = alertOf(thrown);
    await showAgain(alert, status);
  }
}

const OUTCOMES: Partial<Record<Extract<Verification, { ok: false }>['outcome'], string>> = {
  pending: 'mfa.pending',
  'too-fast': 'mfa.pending',
  rejected: 'mfa.rejected',
  unknown: 'mfa.expired',
};

/** Continues after the factor was given: shows the new recovery code if there is one, otherwise ends the pages. */
async function continueAfterFactor(
  deps: FactorPagesDependencies,
  ctx: Context,
  page: FactorPage,
  { factor, choice }: FactorSelection,
  recoveryCode: string | undefined,
): Promise<void> {
  const { remember } = formFields(ctx, 'remember');
  const { user, credentialVersion } = page.claimant;
  const known = { userId: user.id, credentialVersion };
  if (page.isOfLogin === true)
    await deps.browsers.recordBrowser(ctx, known, { remember: remember === 'yes' });
  const state: PageState = { passed: true, factor: factor.type };
  const showsCode = recoveryCode !== undefined || (choice.isFirst && hasRecoveryCodes(deps));
  if (!showsCode) return finish(deps, { ...page, state });
  await page.saveState(state);
  await showNewRecoveryCode(deps, { ...page, state });
}

/**
 * Handles the form by which the user confirms that the new recovery code is saved, and ends the pages. Without the
 * confirmation a code is shown again. Before the factor was given, answers as {@link showFirst}.
 */
export async function postSaved(
  deps: FactorPagesDependencies,
  ctx: Context,
  page: FactorPage,
): Promise<void> {
  if (page.state.passed !== true) return showFirst(deps, ctx, page);
  if (formFields(ctx, 'saved').saved !== 'yes') return showNewRecoveryCode(deps, page, 'mfa.unsaved');
  await finish(deps, page);
}

function finish(deps: FactorPagesDependencies, { state, finish: end }: FactorPage): Promise<void> {
  const factor = deps.factors.find(({ type }) => type === state.factor);
  if (factor === undefined) throw requestExpired();
  return end(factor);
}

/**
 * Sends another code, within the user's limit `passwordlessResend`. An enrolment starts again with its first step.
 * @throws AuthError 400 as {@link showFactor}.
 */
export async function postResend(
  deps: FactorPagesDependencies,
  ctx: Context,
  page: FactorPage,
): Promise<void> {
  const selection = await selectionOf(deps, ctx, page);
  if (selection.choice.enrolling) {
    await page.saveState({});
    return showEnrollment(deps, ctx, { ...page, state: {} }, selection);
  }
  if (!(await deps.rateLimits.spend('passwordlessResend', `mfa\n${page.claimant.user.id}`))) {
    return showChallenge(deps, ctx, page, selection, { alert: 'passwordless.tooSoon', status: 429 });
  }
  await challengeOnPage(deps, ctx, page, selection);
}

/** Answers with the state of the challenge, which the page polls: it goes on once the device has answered. */
export async function answerStatus(
  deps: FactorPagesDependencies,
  ctx: Context,
  page: FactorPage,
): Promise<void> {
  const { oobCode } = page.state;
  const found = oobCode === undefined ? undefined : await findChallenge(deps, oobCode);
  ctx.set('Cache-Control', 'no-store');
  ctx.body = { state: found?.state ?? 'expired' };
}
