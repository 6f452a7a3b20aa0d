// Handlers of the hosted pages of the second factor, for all of their paths.
import type { Context } from 'koa';
import { requestExpired } from '../engine/pending-interaction.ts';
import { formFields } from '../http/body-fields.ts';
import { AuthError } from '../http/errors.ts';
import { startChallenge } from './challenge.ts';
import { enroll, hasRecoveryCodes } from './enroll.ts';
import type { Factor, FactorPage, FactorPagesDependencies, PageState, Verification } from './factor.ts';
import { alertOf, choiceOf, requestOf } from './mfa-page.ts';
import { findChallenge } from './out-of-band.ts';
import { type Chosen, showChallenge, showChoice, showEnrollment, showNewRecoveryCode } from './page-views.ts';
import { activeAuthenticators } from './policy.ts';

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
  const isChosen = choice.enrolling || page.isChosen === true;
  if (first === undefined || (isChosen && others.length > 0)) {
    return showChoice(deps, page, choice);
  }
  ctx.redirect(page.urlOf(first.type));
}

/** Returns the factor of the path. @throws AuthError 400 when it is not among those to choose from. */
async function chosenOf(deps: FactorPagesDependencies, ctx: Context, page: FactorPage): Promise<Chosen> {
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
  const chosen = await chosenOf(deps, ctx, page);
  const { factor, choice } = chosen;
  const { state } = page;
  if (choice.enrolling) {
    const isBegun = state.factor === factor.type && state.authenticatorId !== undefined;
    const isReady = isBegun || factor.pages.addressOf !== undefined;
    return isReady ? showEnrollment(deps, ctx, page, chosen) : begin(deps, ctx, page, chosen);
  }
  // A reload sends nothing again.
  if (factor.channel === undefined || (await isAsked(deps, state, factor)))
    return showChallenge(deps, ctx, page, chosen);
  await challenge(deps, ctx, page, chosen);
}

/** Returns whether a code was sent, or a device asked, and the challenge is still open. */
async function isAsked(deps: FactorPagesDependencies, state: PageState, factor: Factor): Promise<boolean> {
  if (state.factor !== factor.type || state.oobCode === undefined) return false;
  const found = await findChallenge(deps, state.oobCode);
  return found !== undefined && found.state !== 'spent';
}

/** Sends a code, or asks a device, and shows the page that takes the answer. */
async function challenge(
  deps: FactorPagesDependencies,
  ctx: Context,
  page: FactorPage,
  chosen: Chosen,
): Promise<void> {
  const active = await activeAuthenticators(deps, page.claimant.user);
  const authenticator = active.find(({ kind }) => kind === chosen.factor.kind);
  try {
    const wanted = { authenticatorId: authenticator?.id };
    const started = await startChallenge(deps, requestOf(page), wanted);
    const state: PageState = {
      factor: chosen.factor.type,
      oobCode: started.oobCode,
      authenticatorId: started.authenticator.id,
      number: started.number,
    };
    await page.remember(state);
    await showChallenge(deps, ctx, { ...page, state }, chosen);
  } catch (thrown) {
    await showChoice(deps, page, chosen.choice, alertOf(thrown));
  }
}

/** Begins an enrolment, with the address that was typed if the factor has one. */
async function begin(
  deps: FactorPagesDependencies,
  ctx: Context,
  page: FactorPage,
  chosen: Chosen,
): Promise<void> {
  const { factor } = chosen;
  const { address, country } = formFields(ctx, 'address', 'country');
  try {
    const wanted = { factor, address: factor.pages.addressOf?.(address, country) };
    const { authenticator, barcodeUri, oobCode, secret } = await enroll(deps, requestOf(page), wanted);
    const state: PageState = {
      factor: factor.type,
      authenticatorId: authenticator.id,
      oobCode,
      // The URI of an authenticator app contains its secret, which is stored only in the authenticator, encrypted.
      barcodeUri: secret === undefined ? barcodeUri : undefined,
    };
    await page.remember(state);
    await showEnrollment(deps, ctx, { ...page, state }, chosen);
  } catch (thrown) {
    await showEnrollment(deps, ctx, page, chosen, { ...alertOf(thrown), address });
  }
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
  const chosen = await chosenOf(deps, ctx, page);
  const { factor, choice } = chosen;
  const { code } = formFields(ctx, 'code');
  if (choice.enrolling && factor.pages.addressOf !== undefined && code === '') {
    return begin(deps, ctx, page, chosen);
  }
  const show = choice.enrolling ? showEnrollment : showChallenge;
  const again = (alert: string, status: number) => show(deps, ctx, page, chosen, { alert, status });
  if (code === '' && factor.pages.typesCode) return again(factor.pages.alerts?.missing ?? 'mfa.missing', 400);
  try {
    const proof = { code, oobCode: page.state.oobCode ?? '' };
    const verification = await factor.verify(deps, page.claimant, proof);
    if (verification.ok) return await pass(deps, ctx, page, chosen, verification.recoveryCode);
    await again(OUTCOMES[verification.outcome] ?? factor.pages.alerts?.wrong ?? 'mfa.wrong', 400);
  } catch (thrown) {
    const { alert, status } = alertOf(thrown);
    await again(alert, status);
  }
}

const OUTCOMES: Partial<Record<Extract<Verification, { ok: false }>['outcome'], string>> = {
  pending: 'mfa.pending',
  'too-fast': 'mfa.pending',
  rejected: 'mfa.rejected',
  unknown: 'mfa.expired',
};

/** Continues after the factor was given: shows the new recovery code if there is one, otherwise ends the pages. */
async function pass(
  deps: FactorPagesDependencies,
  ctx: Context,
  page: FactorPage,
  { factor, choice }: Chosen,
  recoveryCode: string | undefined,
): Promise<void> {
  const { remember } = formFields(ctx, 'remember');
  const { user, credentialVersion } = page.claimant;
  const known = { userId: user.id, credentialVersion };
  if (page.isOfLogin === true)
    await deps.browsers.recordBrowser(ctx, known, { remember: remember === 'yes' });
  const state: PageState = { passed: true, factor: factor.type };
  const shows = recoveryCode !== undefined || (choice.isFirst && hasRecoveryCodes(deps));
  if (!shows) return finish(deps, { ...page, state });
  await page.remember(state);
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
  const given = deps.factors.find(({ type }) => type === state.factor);
  if (given === undefined) throw requestExpired();
  return end(given);
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
  const chosen = await chosenOf(deps, ctx, page);
  if (chosen.choice.enrolling) {
    await page.remember({});
    return showEnrollment(deps, ctx, { ...page, state: {} }, chosen);
  }
  if (!(await deps.rateLimits.spend('passwordlessResend', `mfa\n${page.claimant.user.id}`))) {
    return showChallenge(deps, ctx, page, chosen, { alert: 'passwordless.tooSoon', status: 429 });
  }
  await challenge(deps, ctx, page, chosen);
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
