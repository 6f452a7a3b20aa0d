// Routes of the pages of the second factor: at a login (/u/<uid>/mfa), for a challenge of an action, and at an
// enrolment.
import type { Context } from 'koa';
import { declarePage } from '../../capabilities/pages/views.ts';
import { requestExpired } from '../../engine/authorize/waiting-requests.ts';
import { AuthError } from '../../http/errors.ts';
import { formFields } from '../../http/server/body.ts';
import { PAGE, type RouteDeclarations } from '../../http/server/router.ts';
import { flowLimits } from '../flow/flow-declaration.ts';
import type { PageModel } from '../flow/request-page.ts';
import { startChallenge } from './challenge.ts';
import { CHALLENGE, type ChallengePagesDependencies, openChallengePage } from './challenge-pages.ts';
import { enroll, hasRecoveryCodes } from './enroll.ts';
import { ENROLLMENT, openEnrollmentPage, showEnrolled } from './enrollment-ticket.ts';
import type {
  Factor,
  FactorModel,
  FactorPage,
  FactorPagesDependencies,
  PageState,
  Verification,
} from './factor.ts';
import { alertOf, choiceOf, type FactorChoice, openMfaPage, requestOf } from './mfa-page.ts';
import { findChallenge } from './out-of-band.ts';
import { activeAuthenticators, factorOf } from './policy.ts';
import { renewRecoveryCode } from './recovery/codes.ts';
import { findAuthenticator } from './verify.ts';

// Models and rendering of the pages of the second factor (views/pages/mfa).

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

async function showChoice(
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
async function showChallenge(
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

async function showEnrollment(
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
async function showNewRecoveryCode(
  deps: FactorPagesDependencies,
  page: FactorPage,
  alert?: string,
): Promise<void> {
  const recoveryCode = hasRecoveryCodes(deps) ? await renewRecoveryCode(deps, page.claimant.user.id) : '';
  const model = { ...page.model('recovery-code-saved'), recoveryCode, ...(alert && { alert }) };
  await page.render(MFA_RECOVERY_CODE_PAGE, model, alert === undefined ? 200 : 400);
}

type PageOpener<D> = (deps: D, ctx: Context) => Promise<FactorPage | undefined>;

/** Returns a function that makes routes whose handlers get an opened page. A POST needs a valid CSRF token. */
const withPageFrom =
  <D extends FactorPagesDependencies>(open: PageOpener<D>) =>
  (handle: Handler) => ({
    ...PAGE,
    handle: async (deps: D, ctx: Context): Promise<void> => {
      const page = await open(deps, ctx);
      if (page === undefined) return;
      if (ctx.method === 'POST') deps.csrf.verify(ctx);
      await handle(deps, ctx, page);
    },
  });

/** Returns the routes under a path at which a second factor is given, or the first one enrolled. */
const pagesAt = <D extends FactorPagesDependencies>(
  path: string,
  withPage: ReturnType<typeof withPageFrom<D>>,
): RouteDeclarations<D> => ({
  [`GET ${path}` as `GET /${string}`]: withPage(showFirst),
  [`POST ${path}/recovery-code-saved` as `POST /${string}`]: withPage(postSaved),
  ...stepsAt(path, withPage),
});

/** Returns the routes of the steps after the first page. */
const stepsAt = <D extends FactorPagesDependencies>(
  path: string,
  withPage: ReturnType<typeof withPageFrom<D>>,
): RouteDeclarations<D> => ({
  [`GET ${path}/choose` as `GET /${string}`]: withPage(choose),
  [`GET ${path}/status` as `GET /${string}`]: withPage(answerStatus),
  [`GET ${path}/:factor` as `GET /${string}`]: withPage(showFactor),
  [`POST ${path}/:factor` as `POST /${string}`]: withPage(postFactor),
  [`POST ${path}/:factor/resend` as `POST /${string}`]: withPage(postResend),
});

/** The routes of the pages of the second factor. */
export const mfaPages: RouteDeclarations<ChallengePagesDependencies> = {
  ...pagesAt('/u/:uid/mfa', withPageFrom(openMfaPage)),
  ...pagesAt(CHALLENGE, withPageFrom(openChallengePage)),
  ...enrollmentPages(ENROLLMENT, openEnrollmentPage, showEnrolled),
};

/**
 * Returns the routes of pages on which a user enrols a second factor outside of a login.
 * @param path the path of the pages.
 * @param open opens a page; undefined when the browser was redirected.
 * @param showDone answers after the user has saved the recovery code of the first factor. It opens no page, because the
 *   ticket may be used by then.
 */
export function enrollmentPages<D extends FactorPagesDependencies>(
  path: string,
  open: (deps: D, ctx: Context) => Promise<FactorPage | undefined>,
  showDone: (deps: D, ctx: Context) => Promise<void>,
): RouteDeclarations<D> {
  const withPage = withPageFrom(open);
  return {
    // HEAD requests, and mail scanners that fetch links, must not begin an enrolment: GET only shows the choice.
    [`GET|HEAD ${path}` as `GET|HEAD /${string}`]: withPage(choose),
    [`POST ${path}/recovery-code-saved` as `POST /${string}`]: {
      ...PAGE,
      handle: async (deps, ctx) => {
        deps.csrf.verify(ctx);
        await showDone(deps, ctx);
      },
    },
    ...stepsAt(path, withPage),
  };
}

// Handlers of the hosted pages of the second factor, for all of their paths.

type Handler = (deps: FactorPagesDependencies, ctx: Context, page: FactorPage) => Promise<void>;

async function choose(deps: FactorPagesDependencies, _ctx: Context, page: FactorPage): Promise<void> {
  return showChoice(deps, page, await choiceOf(deps, page));
}

/**
 * Answers the first page: shows the new recovery code if the factor was given already, or the choice if there is
 * one to make; otherwise redirects to the page of the only or the strongest factor.
 */
async function showFirst(deps: FactorPagesDependencies, ctx: Context, page: FactorPage): Promise<void> {
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

/** @throws AuthError 400 when it is not among those to choose from. */
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
async function showFactor(deps: FactorPagesDependencies, ctx: Context, page: FactorPage): Promise<void> {
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
async function postFactor(deps: FactorPagesDependencies, ctx: Context, page: FactorPage): Promise<void> {
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
async function postSaved(deps: FactorPagesDependencies, ctx: Context, page: FactorPage): Promise<void> {
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
async function postResend(deps: FactorPagesDependencies, ctx: Context, page: FactorPage): Promise<void> {
  const selection = await selectionOf(deps, ctx, page);
  if (selection.choice.enrolling) {
    await page.saveState({});
    return showEnrollment(deps, ctx, { ...page, state: {} }, selection);
  }
  if (!(await deps.rateLimits.spend(flowLimits.passwordlessResend, `mfa\n${page.claimant.user.id}`))) {
    return showChallenge(deps, ctx, page, selection, { alert: 'passwordless.tooSoon', status: 429 });
  }
  await challengeOnPage(deps, ctx, page, selection);
}

/** Answers with the state of the challenge, which the page polls: it goes on once the device has answered. */
async function answerStatus(deps: FactorPagesDependencies, ctx: Context, page: FactorPage): Promise<void> {
  const { oobCode } = page.state;
  const found = oobCode === undefined ? undefined : await findChallenge(deps, oobCode);
  ctx.set('Cache-Control', 'no-store');
  ctx.body = { state: found?.state ?? 'expired' };
}

// Starts a factor on its hosted page: sends a code, asks a device, or begins an enrolment.

/** Returns whether a code was sent, or a device asked, and the challenge is still open. */
async function hasOpenChallenge(
  deps: FactorPagesDependencies,
  state: PageState,
  factor: Factor,
): Promise<boolean> {
  if (state.factor !== factor.type || state.oobCode === undefined) return false;
  const found = await findChallenge(deps, state.oobCode);
  return found !== undefined && found.state !== 'spent';
}

/** Sends a code, or asks a device, and shows the page that takes the answer. */
async function challengeOnPage(
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
async function startEnrollmentOnPage(
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
