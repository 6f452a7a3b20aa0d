// Models and rendering of the pages of the second factor (views/pages/mfa).
import type { Context } from 'koa';
import { hasRecoveryCodes } from './enroll.ts';
import type { Factor, FactorPage, FactorPagesDependencies } from './factor.ts';
import type { FactorChoice } from './mfa-page.ts';
import { activeAuthenticators, factorOf } from './policy.ts';
import { renewRecoveryCode } from './recovery/codes.ts';
import { findAuthenticator } from './verify.ts';

interface Redisplay {
  alert?: string;
  status?: number;
  address?: string;
}

export interface FactorSelection {
  factor: Factor;
  choice: FactorChoice;
}

const RESEND_SECONDS = 30;

export async function showChoice(
  deps: FactorPagesDependencies,
  page: FactorPage,
  { enrolling, factors }: FactorChoice,
  { alert, status = 200 }: Redisplay = {},
): Promise<void> {
  const { claimant } = page;
  const active = await activeAuthenticators(deps, claimant.user);
  const offered = factors.map((factor) => {
    const authenticator = active.findLast(({ kind }) => kind === factor.kind);
    const name = authenticator && factor.nameOf?.(authenticator);
    return { type: factor.type, url: page.urlOf(factor.type), ...(name !== undefined && { name }) };
  });
  const model = { ...page.model(), factors: offered, enrolling, ...(alert && { alert }) };
  await page.render('mfa/choose', model, status);
}

function commonModel(page: FactorPage, { factor, choice }: FactorSelection, { alert }: Redisplay) {
  return {
    ...page.model(factor.type),
    ...(alert && { alert }),
    ...(choice.factors.length > 1 && { othersUrl: page.urlOf('choose') }),
  };
}

/** Shows the page on which a code is typed, or which waits for a device. */
export async function showChallenge(
  deps: FactorPagesDependencies,
  ctx: Context,
  page: FactorPage,
  selection: FactorSelection,
  redisplay: Redisplay = {},
): Promise<void> {
  const { claimant, state } = page;
  const { factor, choice } = selection;
  const authenticator =
    state.authenticatorId === undefined
      ? undefined
      : await findAuthenticator(deps, claimant.user, state.authenticatorId);
  const { template, model } = factor.pages.challenge;
  const all = {
    ...commonModel(page, selection, redisplay),
    remember: !choice.enrolling && page.isOfLogin === true,
    address: (authenticator && factorOf(deps, authenticator)?.nameOf?.(authenticator)) ?? '',
    ...(factor.channel !== undefined && {
      resendUrl: page.urlOf(`${factor.type}/resend`),
      resendSeconds: RESEND_SECONDS,
    }),
    ...(await model?.(deps, ctx, page, authenticator)),
  };
  await page.render(template, all, redisplay.status);
}

export async function showEnrollment(
  deps: FactorPagesDependencies,
  ctx: Context,
  page: FactorPage,
  selection: FactorSelection,
  redisplay: Redisplay = {},
): Promise<void> {
  const { factor } = selection;
  const { address, status } = redisplay;
  const { enrollment, addressOf } = factor.pages;
  const isBegun = page.state.factor === factor.type && page.state.authenticatorId !== undefined;
  // The address was typed and a code was sent, so the page that asks for the code follows.
  const isCodeSent = addressOf !== undefined && isBegun && address === undefined;
  if (isCodeSent || enrollment === undefined) return showChallenge(deps, ctx, page, selection, redisplay);
  const enrollmentModel = await enrollment.model(deps, ctx, page, address);
  const model = { ...commonModel(page, selection, redisplay), ...enrollmentModel };
  await page.render(enrollment.template, model, status);
}

/** A reload makes another, so the code shown is always valid. */
export async function showNewRecoveryCode(
  deps: FactorPagesDependencies,
  page: FactorPage,
  alert?: string,
): Promise<void> {
  const recoveryCode = hasRecoveryCodes(deps) ? await renewRecoveryCode(deps, page.claimant.user.id) : '';
  const model = { ...page.model('recovery-code-saved'), recoveryCode, ...(alert && { alert }) };
  await page.render('mfa/recovery-code', model, alert === undefined ? 200 : 400);
}
