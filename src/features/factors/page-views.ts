// Models and rendering of the pages of the second factor (views/pages/mfa).

import type { Context } from 'koa';
import { declarePage } from '../../capabilities/pages/views.ts';
import type { PageModel } from '../flow/request-page.ts';
import { hasRecoveryCodes } from './enroll.ts';
import type { Factor, FactorModel, FactorPage, FactorPagesDependencies } from './factor.ts';
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

interface MfaChooseModel extends PageModel {
  factors: { type: string; url: string; name?: string }[];
  /** Whether the chosen factor will be set up. */
  enrolling: boolean;
}

export const MFA_CHOOSE_PAGE = declarePage<MfaChooseModel>('mfa/choose');

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
  await page.render(MFA_CHOOSE_PAGE, model, status);
}

function commonModel(
  page: FactorPage,
  { factor, choice }: FactorSelection,
  { alert }: Redisplay,
): FactorModel {
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
  const common = {
    ...commonModel(page, selection, redisplay),
    remember: !choice.enrolling && page.isOfLogin === true,
    address: (authenticator && factorOf(deps, authenticator)?.nameOf?.(authenticator)) ?? '',
    ...(factor.channel !== undefined && {
      resendUrl: page.urlOf(`${factor.type}/resend`),
      resendSeconds: RESEND_SECONDS,
    }),
  };
  const shown = await factor.pages.challenge(common, deps, ctx, page, authenticator);
  await page.render(shown.page, shown.model, redisplay.status);
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
  const shown = await enrollment(commonModel(page, selection, redisplay), deps, ctx, page, address);
  await page.render(shown.page, shown.model, status);
}

export const MFA_RECOVERY_CODE_PAGE = declarePage<PageModel & { recoveryCode: string }>('mfa/recovery-code');

/** A reload makes another, so the code shown is always valid. */
export async function showNewRecoveryCode(
  deps: FactorPagesDependencies,
  page: FactorPage,
  alert?: string,
): Promise<void> {
  const recoveryCode = hasRecoveryCodes(deps) ? await renewRecoveryCode(deps, page.claimant.user.id) : '';
  const model = { ...page.model('recovery-code-saved'), recoveryCode, ...(alert && { alert }) };
  await page.render(MFA_RECOVERY_CODE_PAGE, model, alert === undefined ? 200 : 400);
}
