// Starts a factor on its hosted page: sends a code, asks a device, or begins an enrolment.
import type { Context } from 'koa';
import { formFields } from '../../http/body-fields.ts';
import { startChallenge } from './challenge.ts';
import { enroll } from './enroll.ts';
import type { Factor, FactorPage, FactorPagesDependencies, PageState } from './factor.ts';
import { alertOf, requestOf } from './mfa-page.ts';
import { findChallenge } from './out-of-band.ts';
import { type FactorSelection, showChallenge, showChoice, showEnrollment } from './page-views.ts';
import { activeAuthenticators } from './policy.ts';

/** Returns whether a code was sent, or a device asked, and the challenge is still open. */
export async function hasOpenChallenge(
  deps: FactorPagesDependencies,
  state: PageState,
  factor: Factor,
): Promise<boolean> {
  if (state.factor !== factor.type || state.oobCode === undefined) return false;
  const found = await findChallenge(deps, state.oobCode);
  return found !== undefined && found.state !== 'spent';
}

/** Sends a code, or asks a device, and shows the page that takes the answer. */
export async function challengeOnPage(
  deps: FactorPagesDependencies,
  ctx: Context,
  page: FactorPage,
  selection: FactorSelection,
): Promise<void> {
  const active = await activeAuthenticators(deps, page.claimant.user);
  const authenticator = active.find(({ kind }) => kind === selection.factor.kind);
  try {
    const selectedAuthenticator = { authenticatorId: authenticator?.id };
    const started = await startChallenge(deps, requestOf(page), selectedAuthenticator);
    const state: PageState = {
      factor: selection.factor.type,
      oobCode: started.oobCode,
      authenticatorId: started.authenticator.id,
      number: started.number,
    };
    await page.saveState(state);
    await showChallenge(deps, ctx, { ...page, state }, selection);
  } catch (thrown) {
    await showChoice(deps, page, selection.choice, alertOf(thrown));
  }
}

/** Begins an enrolment, with the address that was typed if the factor has one. */
export async function startEnrollmentOnPage(
  deps: FactorPagesDependencies,
  ctx: Context,
  page: FactorPage,
  selection: FactorSelection,
): Promise<void> {
  const { factor } = selection;
  const { address, country } = formFields(ctx, 'address', 'country');
  try {
    const target = { factor, address: factor.pages.addressOf?.(address, country) };
    const { authenticator, barcodeUri, oobCode, secret } = await enroll(deps, requestOf(page), target);
    const state: PageState = {
      factor: factor.type,
      authenticatorId: authenticator.id,
      oobCode,
      // The URI of an authenticator app contains its secret, which is stored only in the authenticator, encrypted.
      barcodeUri: secret === undefined ? barcodeUri : undefined,
    };
    await page.saveState(state);
    await showEnrollment(deps, ctx, { ...page, state }, selection);
  } catch (thrown) {
    await showEnrollment(deps, ctx, page, selection, { ...alertOf(thrown), address });
  }
}
