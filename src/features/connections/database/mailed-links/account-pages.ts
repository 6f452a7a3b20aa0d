// The routes of the page at which a new password is set, and helpers that the other account pages share.

import type { Context } from 'koa';
import type { Actions } from '../../../../capabilities/actions/actions.ts';
import { clientOf, connectionOf, identityOf, userOf } from '../../../../capabilities/actions/facts.ts';
import type { Progress } from '../../../../capabilities/actions/progress.ts';
import { DONE_PAGE, declarePage } from '../../../../capabilities/pages/views.ts';
import { nameKey } from '../../../../capabilities/protection/attempts.ts';
import type { Challenges } from '../../../../capabilities/protection/challenges.ts';
import type { Caller, RateLimits } from '../../../../capabilities/protection/rate-limit.ts';
import type { Organizations } from '../../../../engine/admission/admission.ts';
import type { SecondFactor } from '../../../../engine/admission/second-factor.ts';
import { localeOf } from '../../../../engine/base/transaction-event.ts';
import type { ReturnResult } from '../../../../engine/login/login-actions.ts';
import { requestContextOf, requestOf, rolesOf } from '../../../../engine/login/login-event.ts';
import { AuthError, linkExpired } from '../../../../http/errors.ts';
import { languagesOf } from '../../../../http/languages.ts';
import { formFields, withParameters } from '../../../../http/server/body.ts';
import { browserCookie, nameBrowser } from '../../../../http/server/browser-cookie.ts';
import { PAGE, type RouteDeclarations } from '../../../../http/server/router.ts';
import { normalizeEmail } from '../../../../records/base/email.ts';
import type { Connection } from '../../../../records/collections.ts';
import { databaseOptions, offersReset } from '../../../../records/database-options.ts';
import type { Clock } from '../../../../runtime/clock.ts';
import { type Random, sha256 } from '../../../../runtime/secrets.ts';
import type { Store } from '../../../../store/contract.ts';
import type { Config } from '../../../../tenant/config.ts';
import type { Events } from '../../../../tenant/events.ts';
import { checkStrength } from '../../../../users/password-policy.ts';
import type { Users } from '../../../../users/users.ts';
import type { ActionRedirects } from '../../../flow/action-redirects.ts';
import { waitsForLogin } from '../../../flow/finish.ts';
import {
  type HostedDependencies,
  openRequestPage,
  type PageModel,
  pageModel,
  type RequestPage,
  renderPage,
  requestLanguages,
  stepPath,
} from '../../../flow/request-page.ts';
import { type NameField, nameField, namesOf } from '../../name-field.ts';
import { byOwnPassword, databaseFor, identifierOf } from '../../resolve.ts';
import { databaseEvents, databaseLimits } from '../base/database-declaration.ts';
import type { ShownRule } from '../base/database-pages.ts';
import { resultUrl } from '../base/result-url.ts';
import { EMAIL_VERIFICATION } from '../base/verification-link.ts';
import {
  type OpenReset,
  openReset,
  type ResetDependencies,
  type ResetRefusal,
  recordRefusedReset,
  resetPassword,
} from './reset.ts';
import { PASSWORD_RESET, type RequestReset } from './reset-link.ts';
import { ticketTarget } from './ticket-link.ts';
import {
  discardAccount,
  openVerification,
  type VerificationDependencies,
  verifyEmail,
} from './verification.ts';

// The actions of the trigger `password-reset-post-challenge`. They run when the link of a reset is opened, before a new
// password can be set. The form they allow carries a proof; a form without a valid proof is sent back to the link, which runs
// them again.

interface ResetChallengeDependencies {
  actions: Pick<Actions, 'isBound' | 'run'>;
  actionRedirects: ActionRedirects;
  challenges: Challenges;
  config: Config;
  events: Events;
  organizations: Pick<Organizations, 'rolesOf'>;
  random: Random;
  store: Store;
  users: Users;
  secondFactor: Pick<SecondFactor, 'challenge' | 'enrolledFactors' | 'availabilityOf'>;
  wallClock: Clock;
}

/** Path to which users return from the site that an action sent them to, or from a second factor. */
const RESET_RETURN = `${PASSWORD_RESET.path}/return` as const;

const TRIGGER = 'password-reset-post-challenge';

/** The cookie that keeps the link's ticket while the user is at another site or gives a second factor. */
const TICKET_COOKIE = browserCookie('__Host-gatehouse_reset', { sameSite: 'lax', ttlSeconds: 3600 });

interface ActionState {
  /** SHA-256 hashes of the proofs of allowed forms; several windows may be open. */
  allowed: readonly string[];
  progress?: Progress;
  /** Random id of the step that the actions wait for; the answer to any other step is not accepted. */
  step?: string;
  /** The types of the second factors given since the actions began. */
  given?: readonly string[];
  resultUrl?: string;
}

const MAX_FORMS = 5;

const actionStateOf = ({ verifiedChallenge }: OpenReset): ActionState => ({
  allowed: [],
  ...(verifiedChallenge.data.actions as object | undefined),
});

/** Returns the URL that an action set for the browser to go to after the reset. */
function resultUrlOf(reset: OpenReset): string | undefined {
  return actionStateOf(reset).resultUrl;
}

// docs/understand/decisions/actions-scripts.md#what-actions-allow-in-a-password-reset-is-valid-for-one-form
/** Returns whether a form may set the password. @param proof the form's, from {@link challengeReset}. */
function isAllowed(
  { actions }: Pick<ResetChallengeDependencies, 'actions'>,
  reset: OpenReset,
  proof: string,
): boolean {
  return !actions.isBound(TRIGGER) || actionStateOf(reset).allowed.includes(sha256(proof));
}

/**
 * Runs the actions.
 * @param returned what the user returned with from another site or a second factor; without it, the actions start anew.
 * @returns the proof for the form; undefined if the browser was redirected.
 * @throws AuthError 403 `access_denied` if an action refuses the reset, or fails.
 */
async function challengeReset(
  deps: ResetChallengeDependencies,
  ctx: Context,
  { ticket, reset, returned }: { ticket: string; reset: OpenReset; returned?: ReturnResult | undefined },
): Promise<string | undefined> {
  const { actions, challenges, random, secondFactor } = deps;
  if (!actions.isBound(TRIGGER)) return '';
  const { user, connection } = reset;
  const state = actionStateOf(reset);
  const saveState = (next: ActionState) =>
    challenges.storeWithTicket(PASSWORD_RESET.purpose, ticket, 'actions', next);
  const details = { user_id: user.id, user_name: user.email, connection: connection.name, ip: ctx.ip };
  const givenFactors = givenFactorsOf(state, returned);
  const event = await eventOf(deps, ctx, reset, givenFactors);
  const outcome = await actions.run(TRIGGER, event, details, {
    canRedirect: true,
    progress: progressOf(state, event, returned),
    isVerified: async ({ types }) => types.some((type) => givenFactors.includes(type)),
  });
  const { denied, login } = outcome;
  const refuse = (description: string) => {
    const { user_name: name, ...others } = details;
    const logEvent = { ...others, ...(name !== undefined && { user_name: name }) };
    deps.events.record({ ...logEvent, type: databaseEvents.fcp, description });
    return new AuthError(403, 'access_denied', description);
  };
  if (denied !== undefined) throw refuse(denied.reason);
  const step = random(16).toString('base64url');
  const back = { uid: uidOf(ticket), path: RESET_RETURN, step };
  const { redirect, factors } = login;
  if (redirect !== undefined || factors !== undefined) {
    const { progress } = outcome;
    await saveState({ allowed: state.allowed, given: givenFactors, step, ...(progress && { progress }) });
    TICKET_COOKIE.set(ctx, ticket);
  }
  if (redirect !== undefined) {
    const started = await deps.actionRedirects.start(ctx, { ...back, userId: user.id });
    ctx.redirect(withParameters(redirect, { state: started }));
    return undefined;
  }
  if (factors !== undefined) {
    if ((await secondFactor.availabilityOf(user, factors, [])) !== 'available')
      throw refuse(FACTOR_UNAVAILABLE);
    const { clientId } = clientOfReset(reset);
    ctx.redirect(await secondFactor.challenge(ctx, { user, clientId, factors, back }));
    return undefined;
  }
  const proof = random(32).toString('base64url');
  const allowed = [sha256(proof), ...state.allowed].slice(0, MAX_FORMS);
  await saveState({ allowed, ...(login.resultUrl !== undefined && { resultUrl: login.resultUrl }) });
  return proof;
}

const FACTOR_UNAVAILABLE = 'A second factor is required that the user has not, or the tenant has not.';

/** Returns the types of the second factors given so far. */
function givenFactorsOf({ given = [] }: ActionState, returned: ReturnResult | undefined): readonly string[] {
  if (returned === undefined) return [];
  return 'factor' in returned ? [...given, returned.factor] : given;
}

/** Returns where the actions continue; undefined if they start anew. */
function progressOf(
  { progress }: ActionState,
  { request }: Record<string, unknown>,
  returned: ReturnResult | undefined,
): Progress | undefined {
  if (returned === undefined || progress === undefined) return undefined;
  return 'factor' in returned ? progress : { ...progress, request: { ...(request as object), ...returned } };
}

/** Returns the id of the application that requested the reset, if any. */
function clientOfReset({ verifiedChallenge: { data } }: OpenReset): { clientId: string | undefined } {
  return { clientId: typeof data.clientId === 'string' ? data.clientId : undefined };
}

/** Returns the ticket of the link that this browser left from; the empty string if there is none. */
const ticketOfBrowser = (ctx: Context): string => TICKET_COOKIE.secret(ctx) ?? '';

/**
 * Takes what the user of a reset returned with: once, and only in the browser that they left from.
 * @returns undefined if there is nothing, or if it answers an earlier step than the one that the actions wait for.
 */
async function takeReturned(
  { actionRedirects }: Pick<ResetChallengeDependencies, 'actionRedirects'>,
  ctx: Context,
  { ticket, reset }: { ticket: string; reset: OpenReset },
): Promise<ReturnResult | undefined> {
  const { ticket: returnTicket } = ctx.query;
  const { step } = actionStateOf(reset);
  if (typeof returnTicket !== 'string' || step === undefined) return undefined;
  return actionRedirects.consumeReturn(ctx, { uid: uidOf(ticket), step }, returnTicket);
}

/** Returns the name of a link among the requests whose users were redirected. */
const uidOf = (ticket: string) => `reset-${sha256(ticket)}`;

async function eventOf(
  { config, organizations, secondFactor, store, users, wallClock }: ResetChallengeDependencies,
  ctx: Context,
  reset: OpenReset,
  givenFactors: readonly string[],
): Promise<Record<string, unknown>> {
  const { user, connection } = reset;
  const { clientId } = clientOfReset(reset);
  const client = clientId === undefined ? undefined : await config.client(clientId);
  const [enrolledFactors, identities, roles] = await Promise.all([
    secondFactor.enrolledFactors(user),
    users.identitiesOf(user.id),
    rolesOf({ store, organizations }, { user, organization: undefined }),
  ]);
  const timestamp = new Date(wallClock()).toISOString();
  const mfaMethods = givenFactors.length > 0 ? [{ name: 'mfa', timestamp }] : [];
  return {
    user: { ...userOf(user), enrolledFactors, identities: identities.map(identityOf) },
    connection: connectionOf(connection),
    ...(client && { client: clientOf(client, client.client_id) }),
    request: requestOf(ctx, undefined),
    authorization: { roles: roles.map(({ name }) => name) },
    authentication: { methods: [{ name: 'email', timestamp }, ...mfaMethods] },
    stats: { logins_count: user.logins_count ?? 0 },
    transaction: { locale: localeOf(config, ctx), ui_locales: [], metadata: {} },
  };
}

export interface AccountPagesDependencies
  extends ResetDependencies,
    VerificationDependencies,
    ForgotPagesDependencies,
    ResetChallengeDependencies {}

// docs/understand/decisions/passwords-protection.md#a-reset-link-opens-a-page-and-the-pages-form-acts
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
  await deps.views.page(ctx, DONE_PAGE, { done: 'reset.done' });
}

/** Answers that the custom database did not change the password. The link is used up by then. */
async function showNotChanged(deps: AccountPagesDependencies, ctx: Context, reset: OpenReset): Promise<void> {
  const message = 'Your password could not be changed. Please ask for a new link.';
  const target = await resetTarget(deps, reset, { success: false, message });
  if (target !== undefined) return seeOther(ctx, target);
  throw new AuthError(503, 'temporarily_unavailable', message);
}

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

interface AccountResetModel {
  action: string;
  csrf: string;
  ticket: string;
  /** Proves that the form was allowed, where an action decides that. */
  proof: string;
  email: string | undefined;
  rules: ShownRule[];
  /** Message keys by field. */
  faults: { password?: string; repeat?: string };
  alert?: string;
}

export const ACCOUNT_RESET_PAGE = declarePage<AccountResetModel>('account/reset');

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
    ACCOUNT_RESET_PAGE,
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
function seeOther(ctx: Context, target: string): void {
  ctx.redirect(target);
  ctx.status = 303;
}

// The routes of the page that the link in a verification mail opens.

export const verificationPages: RouteDeclarations<AccountPagesDependencies> = {
  [`GET|HEAD ${EMAIL_VERIFICATION.path}` as const]: { ...PAGE, handle: showVerification },
  [`POST ${EMAIL_VERIFICATION.path}` as const]: { ...PAGE, handle: handleVerification },
};

interface AccountVerifyModel {
  action: string;
  csrf: string;
  ticket: string;
  email: string | undefined;
  isUnproved: boolean;
}

export const ACCOUNT_VERIFY_PAGE = declarePage<AccountVerifyModel>('account/verify');

async function showVerification(deps: AccountPagesDependencies, ctx: Context): Promise<void> {
  const ticket = ticketOf(ctx.query.ticket);
  const verification = await openVerification(deps, ticket);
  if (verification === undefined) throw linkExpired();
  const configuredTarget = await ticketTarget(deps.config, verification.verifiedChallenge);
  await deps.views.page(
    ctx,
    ACCOUNT_VERIFY_PAGE,
    {
      action: EMAIL_VERIFICATION.path,
      csrf: deps.csrf.token(ctx),
      ticket,
      email: verification.user.email,
      isUnproved: !verification.user.email_verified,
    },
    { formsLeave: (configuredTarget?.url ?? deps.messages.template('verify_email').resultUrl) !== undefined },
  );
}

async function handleVerification(deps: AccountPagesDependencies, ctx: Context): Promise<void> {
  deps.csrf.verify(ctx);
  const { ticket, decision } = formFields(ctx, 'ticket', 'decision');
  if (decision === 'discard') {
    if (!(await discardAccount(deps, ticket, ctx.ip))) throw linkExpired();
    return deps.views.page(ctx, DONE_PAGE, { done: 'verify.discarded' });
  }
  const verifiedChallenge = (await openVerification(deps, ticket))?.verifiedChallenge;
  const user = await verifyEmail(deps, ticket, ctx.ip);
  if (user === undefined) throw linkExpired();
  const message = 'Your email was verified. You can continue using the application.';
  const outcome = { success: true, message, email: user.email };
  const configuredTarget = verifiedChallenge && (await ticketTarget(deps.config, verifiedChallenge));
  const target = resultUrl(deps, 'verify_email', outcome, configuredTarget);
  if (target !== undefined) return seeOther(ctx, target);
  await deps.views.page(ctx, DONE_PAGE, { done: 'verify.done' });
}

// The hosted pages of a forgotten password, which mail a link to set a new one.

interface ForgotPagesDependencies extends HostedDependencies {
  random: Random;
  rateLimits: RateLimits;
  requestReset: RequestReset;
}

export const forgotPages: RouteDeclarations<ForgotPagesDependencies> = {
  'GET /u/:uid/forgot-password': { ...PAGE, handle: showForgot },
  'POST /u/:uid/forgot-password': { ...PAGE, handle: handleForgot },
};

interface AccountForgotModel extends PageModel {
  names: NameField;
  email: string;
  loginUrl: string;
}

export const ACCOUNT_FORGOT_PAGE = declarePage<AccountForgotModel>('account/forgot');

async function showForgot(deps: ForgotPagesDependencies, ctx: Context): Promise<void> {
  const page = await openRequestPage(deps, ctx);
  const requestUrl = `/u/${page.waiting.uid}`;
  if (!waitsForLogin(page.waiting)) return ctx.redirect(requestUrl);
  const { names, connection } = await resetForm(deps, page);
  if (!offersReset(connection)) return ctx.redirect(requestUrl);
  await renderPage(deps, ctx, page, ACCOUNT_FORGOT_PAGE, {
    ...pageModel(page, 'forgot-password'),
    names,
    email: identifierOf(page) ?? page.waiting.params.login_hint ?? '',
    loginUrl: stepPath(page.waiting, 'login'),
  });
}

/** Returns the connection whose passwords the page resets, and the input field for the user's address or name. */
async function resetForm(
  { config }: ForgotPagesDependencies,
  { waiting: { clientId, params } }: RequestPage,
): Promise<{ connection: Connection; names: NameField }> {
  const query = { clientId, connection: params.connection };
  const { connection } = await databaseFor(config, query, byOwnPassword);
  const hasAttributes = databaseOptions(connection).attributes != null;
  return { connection, names: nameField(hasAttributes ? namesOf(connection) : ['email']) };
}

export const ACCOUNT_SENT_PAGE = declarePage<AccountForgotModel>('account/sent');

async function handleForgot(deps: ForgotPagesDependencies, ctx: Context): Promise<void> {
  const page = await openRequestPage(deps, ctx);
  deps.csrf.verify(ctx);
  const { email } = formFields(ctx, 'email');
  const { params } = page.waiting;
  const { names, connection } = await resetForm(deps, page);
  const loginUrl = stepPath(page.waiting, 'login');
  const model = { ...pageModel(page, 'forgot-password'), names, email, loginUrl };
  const isValidName =
    names.text === 'field.email' ? normalizeEmail(email) !== undefined : email.trim() !== '';
  if (!isValidName) {
    return renderPage(deps, ctx, page, ACCOUNT_FORGOT_PAGE, { ...model, alert: 'signup.email' }, 400);
  }
  await deps.rateLimits.takeFrom(ctx, databaseLimits.changePassword, nameKey(email));
  const { organization } = params;
  await deps.requestReset({
    email,
    connection,
    client: page.client,
    organization: organization === undefined ? undefined : await deps.config.organization(organization),
    languages: requestLanguages(ctx, page),
    caller: callerOf(deps, ctx),
  });
  await renderPage(deps, ctx, page, ACCOUNT_SENT_PAGE, model);
}
