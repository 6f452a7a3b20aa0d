// The actions of `post-login`. They run whenever an application is about to get tokens for a user: before an
// authorization request is answered (also from an open session), before a token request is, and at each refresh.
//
// This file decides when they run, for which login, and which step the user has to do first. A run takes its event from
// `login-event.ts`; `action-effects.ts` applies its outcome to sessions, tokens and users. The actions of
// client_credentials are in `machine-actions.ts`.
// docs/understand/decisions/actions-scripts.md#post-login-actions-run-when-tokens-are-about-to-be-issued
import { errors, type KoaContextWithOIDC, type RefreshToken, type Session } from 'oidc-provider';
import { type ActionLogFields, type Actions, executionDetails } from '../../capabilities/actions/actions.ts';
import type { ActionOutcome } from '../../capabilities/actions/commands.ts';
import type { RequiredFactors } from '../../capabilities/actions/factor-methods.ts';
import type { ActionRun, Progress } from '../../capabilities/actions/progress.ts';
import { CONSOLE_CLIENT, isAdministratorId } from '../../records/users/administrators.ts';
import type { Events } from '../../tenant/events.ts';
import { isUnattended, type Login, methodsOfFirstFactor } from '../../users/login.ts';
import type { Users } from '../../users/users.ts';
import { loginRequirements, type SecondFactor } from '../admission/second-factor.ts';
import { engineEvents } from '../base/engine-declaration.ts';
import { toAudience } from '../base/request-extensions.ts';
import { applicationSettings } from '../client/applications.ts';
import type { ServerLoginCallbacks } from '../client/server-login-callbacks.ts';
import {
  connectionOf,
  credentialVersionOf,
  factorsOf,
  presenceOf,
  providerSessionOf,
} from '../session/sessions.ts';
import {
  type ActionClaims,
  allowedClaims,
  applyRevocations,
  applyToRefreshToken,
  applyToSession,
  type EffectDependencies,
  storeMetadata,
} from './action-effects.ts';
import { type ActionLogin, type LoginEventDependencies, loginEvent, recordedMethods } from './login-event.ts';
import { refusedIfDeleted, rethrowActionError } from './machine-actions.ts';

// Runs the actions of a login, and applies that part of their outcome which is the same for all logins.

export interface LoginRunDependencies extends LoginEventDependencies, EffectDependencies {
  config: LoginEventDependencies['config'] & EffectDependencies['config'];
  actions: Actions;
  executions: LoginExecutions;
  events: Pick<Events, 'record'>;
  users: Pick<Users, 'get' | 'update' | 'identitiesOf' | 'credentialVersion'>;
}

export const TRIGGER = 'post-login';

/** Returns the application, user and address of a run, for the log. */
const aboutOf = (ctx: KoaContextWithOIDC, { user, clientId }: ActionLogin) => ({
  client_id: clientId,
  user_id: user.id,
  ip: ctx.ip,
});

/** Returns the claims of a run's outcome that actions may set. */
function claimsIn(
  actions: Actions,
  about: ActionLogFields,
  { idToken, accessToken, targetScopes, login: { scopes, assertion } }: ActionOutcome,
): ActionClaims {
  return {
    idToken: allowedClaims(actions, { trigger: TRIGGER, to: 'id_token', about }, idToken),
    accessToken: allowedClaims(actions, { trigger: TRIGGER, to: 'access_token', about }, accessToken),
    ...(Object.keys(scopes).length > 0 && { scopes }),
    ...(targetScopes && { targetScopes }),
    ...(Object.keys({ ...assertion.settings, ...assertion.attributes }).length > 0 && { assertion }),
  };
}

/**
 * Runs the actions for a login.
 * @throws errors.CustomOIDCProviderError when an action denies the login or fails.
 */
async function runForLogin(
  deps: LoginRunDependencies,
  ctx: KoaContextWithOIDC,
  login: ActionLogin,
  before: WaitingActions | undefined,
): Promise<ActionRun> {
  const about = aboutOf(ctx, login);
  const { event, roles: userRoles } = await loginEvent(deps, ctx, login);
  const { progress, returned } = before ?? {};
  const request = returned && { ...(event.request as object), ...returned };
  const options = {
    canRedirect: login.sessionId !== undefined && !ctx.oidc.prompts.has('none'),
    isVerified: (factors: RequiredFactors) => isFactorGiven(deps, ctx, login, factors),
    progress: progress && { ...progress, ...(request && { request }) },
    execution: deps.executions.of(ctx),
    userRoles,
    withoutRules: ctx.oidc.client !== undefined && applicationSettings(ctx.oidc.client).isStrict,
  };
  const run = () => deps.actions.run(TRIGGER, event, about, options).catch(rethrowActionError);
  const outcome = await refusedIfDeleted(deps.config, login.clientId, run);
  const { denied } = outcome;
  if (denied === undefined) return outcome;
  // Metadata that the action has set for the user is kept although the login is refused.
  await storeMetadata(deps, { trigger: TRIGGER, userId: login.user.id, about }, outcome);
  await applyRevocations(deps, ctx, outcome, about);
  deps.events.record({
    type: engineEvents.f,
    ...about,
    description: denied.reason,
    ...executionDetails(outcome.execution),
  });
  // `deny(code, reason)` does not exist for this trigger: the code is always the protocol's.
  throw new errors.CustomOIDCProviderError(denied.error ?? 'access_denied', denied.reason);
}

// docs/understand/decisions/second-factors.md#second-factors-that-an-action-names-are-requested-in-each-request
/**
 * Whether one of the factors that an action names was given already. In the browser it has to be given within this
 * request. At the token endpoint it has to be given with the login, whose methods do not always tell which factor
 * it was. A factor that is to be enrolled counts when the user has it.
 */
async function isFactorGiven(
  { secondFactor }: Pick<LoginRunDependencies, 'secondFactor'>,
  { oidc }: KoaContextWithOIDC,
  { user, amr, sessionId }: ActionLogin,
  factors: RequiredFactors,
): Promise<boolean> {
  if ((await secondFactor.availabilityOf(user, factors, amr)) === 'enrolled') return true;
  if (sessionId === undefined) return amr.includes('mfa');
  return oidc.result?.login !== undefined && secondFactor.includesFactor(factors, amr);
}

// The ids under which runs of a login's actions are logged. An id is chosen before the actions run, because the log
// event of the login may be written earlier.
// docs/understand/decisions/actions-scripts.md#the-execution-of-a-logins-actions-has-an-id-before-it-runs

export interface LoginExecutions {
  /** Returns the id of a request's run, the same each time; undefined when no action of logins is bound. */
  of(ctx: KoaContextWithOIDC): string | undefined;
}

/** Stored with a waiting request, so that actions that continue later have the same id. */
interface StoredExecution {
  execution?: string;
}

export function loginExecutions(actions: Pick<Actions, 'isBound' | 'newExecution'>): LoginExecutions {
  const ids = new WeakMap<object, string>();
  return {
    of: ({ oidc }) => {
      if (!actions.isBound('post-login')) return undefined;
      const result = oidc.result as StoredExecution | undefined;
      const id = ids.get(oidc) ?? result?.execution ?? actions.newExecution();
      ids.set(oidc, id);
      if (result !== undefined) result.execution = id;
      return id;
    },
  };
}

// The state of the actions of a request that waits for its user. It is stored with the request, where no client can write.

/** The request with which a user returns from the URL that an action sent them to. */
export interface ReturnRequest {
  method: string;
  query: Readonly<Record<string, string>>;
  body: Readonly<Record<string, string>>;
}

/** What a user returns with: a request, or the type of the second factor that they gave. */
export type ReturnResult = ReturnRequest | { factor: string };

/** A login as the user whom its identity was linked to. */
export interface PrimaryLogin {
  login: Login;
  /** The ids of the identities that were logged in with, which have to be that user's. */
  identities: string[];
}

/** The state of the actions, stored with a waiting request. */
export interface WaitingActions {
  /**
   * The user and session of the login that the actions ran for; for another login they start again. `sid` is
   * undefined while a login as another user replaces this one and has no session yet.
   */
  userId: string;
  sid: string | undefined;
  progress: Progress | undefined;
  /** The URL that the user is sent to. */
  redirect?: string | undefined;
  /** The second factors that an action asks for, and whether one has been given since. */
  factors?: RequiredFactors | undefined;
  isGiven?: boolean | undefined;
  /** The login that replaces the present one: of the user whom its identity was linked to. */
  primary?: PrimaryLogin | undefined;
  /** The request with which the user returned from `redirect`. */
  returned?: ReturnRequest | undefined;
}

interface ActionState {
  actions?: WaitingActions;
}

/** Returns the state of the actions in the prompt of a waiting request. */
export function waitingActionsOf(prompt: { details: object }): WaitingActions | undefined {
  return (prompt.details as ActionState).actions;
}

/** Returns the state of the actions of a resumed request, if they ran for this login. */
function resumedActions({ oidc }: KoaContextWithOIDC): WaitingActions | undefined {
  const { actions } = (oidc.result ?? {}) as ActionState;
  const { session } = oidc;
  if (actions === undefined || actions.userId !== session?.accountId) return undefined;
  if (actions.sid === undefined) return oidc.result?.login === undefined ? undefined : actions;
  return actions.sid === session.uid ? actions : undefined;
}

export interface LoginActions {
  /**
   * Runs the actions for an authorization request that is about to be answered; once per request, however often it
   * is called.
   * @returns what the user has to do first, if anything.
   * @throws errors.CustomOIDCProviderError, for the application, when an action denies the login or fails.
   */
  atAuthorization(ctx: KoaContextWithOIDC): Promise<ActionStep | undefined>;
  /**
   * Runs the actions for a token request.
   * @returns whether the login lacks a second factor, the user that an action has put in place of this one, and a
   *   function that stores the metadata that actions set, for when the login is admitted.
   * @throws errors.CustomOIDCProviderError as above.
   */
  atToken(
    ctx: KoaContextWithOIDC,
    login: Omit<ActionLogin, 'identities'>,
  ): Promise<{ lacksFactor: boolean; primary?: PrimaryUser | undefined; storeMetadata(): Promise<void> }>;
  /**
   * Runs the actions for a refresh, before its token is used up.
   * @throws errors.CustomOIDCProviderError as above.
   */
  atRefresh(ctx: KoaContextWithOIDC): Promise<void>;
  /** Returns the claims that actions have set for a login: in this request, or stored with its grant. */
  claimsOf(ctx: KoaContextWithOIDC | undefined): ActionClaims | undefined;
}

export function loginActions(deps: StepDependencies): LoginActions {
  const { actions } = deps;
  const claims = new WeakMap<object, ActionClaims>();
  const steps = new WeakMap<object, Promise<ActionStep | undefined>>();
  const run: RunLogin = async (ctx, login, before) => {
    const outcome = await runForLogin(deps, ctx, login, before);
    const { redirect, factors, primaryUser } = outcome.login;
    const isOther = primaryUser !== undefined && primaryUser !== login.user.id;
    const primary = isOther ? await verifyPrimaryUser(deps, ctx, login, primaryUser) : undefined;
    const amr = primary === undefined ? login.amr : methodsOfFirstFactor(login.amr);
    const isDue = outcome.multifactor && !amr.includes('mfa');
    const lacksFactor = factors !== undefined || (isDue && !(await isRemembered(deps, ctx, login, outcome)));
    // The claims count only when all steps are done; until then actions continue, or run again.
    const isDone =
      !lacksFactor && redirect === undefined && (primary === undefined || login.session === undefined);
    if (isDone) claims.set(ctx.oidc, claimsIn(actions, aboutOf(ctx, login), outcome));
    const userId = primary?.userId ?? login.user.id;
    const store = () =>
      storeMetadata(deps, { trigger: TRIGGER, userId, about: aboutOf(ctx, login) }, outcome);
    return { outcome, lacksFactor, primary, storeMetadata: store };
  };
  return {
    claimsOf: (ctx) => ctx && (claims.get(ctx.oidc) ?? storedClaims(ctx)),
    atAuthorization: async (ctx) => {
      if (!runsActions(deps, ctx)) return checkStoredPrimary(deps, ctx);
      const known = steps.get(ctx.oidc);
      const step = known ?? nextActionStep(deps, ctx, run);
      steps.set(ctx.oidc, step);
      return step;
    },
    atToken: async (ctx, login) => {
      if (!actions.isBound(TRIGGER)) return { lacksFactor: false, storeMetadata: async () => {} };
      // Read before the actions run, because an action may link further identities.
      const identities = await deps.users.identitiesOf(login.user.id);
      return runWithoutPages(deps, ctx, { ...login, identities }, run);
    },
    atRefresh: async (ctx) => {
      if (!actions.isBound(TRIGGER)) {
        // Claims that were set by actions which are no longer bound are dropped.
        claims.set(ctx.oidc, { idToken: {}, accessToken: {} });
        return;
      }
      const login = await loginOfGrant(deps, ctx);
      const { RefreshToken: token } = ctx.oidc.entities;
      const result = login && (await runWithoutPages(deps, ctx, login, run));
      // A refresh token belongs to its user for good. An account that is linked now counts at the next login.
      if (result?.primary !== undefined)
        throw new errors.CustomOIDCProviderError('access_denied', NO_OTHER_USER);
      if (result?.lacksFactor === false && token !== undefined) {
        await result.storeMetadata();
        return applyToRefreshToken(deps, token, result.outcome);
      }
      throw new errors.CustomOIDCProviderError(deps.secondFactor.error, deps.secondFactor.description);
    },
  };
}

function storedClaims({ oidc }: KoaContextWithOIDC): ActionClaims | undefined {
  return (oidc.entities.Grant as { actions?: ActionClaims } | undefined)?.actions;
}

/** Checks the primary user that actions had set, for a request whose actions were all unbound while it waited. */
async function checkStoredPrimary(deps: StepDependencies, ctx: KoaContextWithOIDC): Promise<undefined> {
  const { primary } = resumedActions(ctx) ?? {};
  if (primary !== undefined) await verifyStillPrimary(deps, primary);
}

/**
 * Whether actions run for a login. Not for logins to the console: people who may edit actions must not decide who
 * administers, nor see those logins.
 */
function runsActions({ actions }: StepDependencies, { oidc }: KoaContextWithOIDC): boolean {
  return actions.isBound(TRIGGER) && oidc.client?.clientId !== CONSOLE_CLIENT;
}

/** Whether the actions accept a remembered browser in place of a second factor, and this browser is one. */
async function isRemembered(
  { secondFactor, users }: StepDependencies,
  ctx: KoaContextWithOIDC,
  { user, amr, sessionId }: ActionLogin,
  { login: { mayRemember, primaryUser } }: ActionOutcome,
): Promise<boolean> {
  // There is no browser at the token endpoint, and another user has not chosen to be remembered.
  if (mayRemember !== true || sessionId === undefined || primaryUser !== undefined) return false;
  const credentialVersion = await users.credentialVersion(user.id);
  return secondFactor.isRemembered(ctx, { userId: user.id, amr, credentialVersion });
}

const NO_OTHER_USER = 'An action names another user, and a refresh token is of its own.';
const NO_PAGES = 'An action sends the user elsewhere, and this request has no browser that could go there.';

async function runWithoutPages(
  { actions }: StepDependencies,
  ctx: KoaContextWithOIDC,
  login: ActionLogin,
  run: RunLogin,
): ReturnType<RunLogin> {
  const result = await run(ctx, login);
  if (result.outcome.login.redirect === undefined) return result;
  actions.recordRefusal(TRIGGER, 'redirect.sendUserTo: there is no browser', aboutOf(ctx, login));
  throw new errors.CustomOIDCProviderError('access_denied', NO_PAGES);
}

// The steps that actions require of the user before an authorization request is answered.

interface ActionStep {
  step: 'factor' | 'redirect' | 'primary';
  /** Stored with the waiting request. */
  waiting: WaitingActions;
}

interface StepDependencies extends LoginRunDependencies {
  serverLoginCallbacks: Pick<ServerLoginCallbacks, 'protocolOf'>;
  secondFactor: Pick<
    SecondFactor,
    | 'isRequired'
    | 'description'
    | 'error'
    | 'enrolledFactors'
    | 'availabilityOf'
    | 'includesFactor'
    | 'isRemembered'
  >;
  /** The authentication context classes that mean a second factor. */
  acrValues: readonly string[];
  /** Random bytes for the ids of sessions. */
  random(bytes: number): Buffer;
}

/** Runs the actions for a login. @param before the state of the run that waits, where one does. */
type RunLogin = (
  ctx: KoaContextWithOIDC,
  login: ActionLogin,
  before?: WaitingActions,
) => Promise<{
  outcome: ActionRun;
  lacksFactor: boolean;
  primary: PrimaryUser | undefined;
  storeMetadata(): Promise<void>;
}>;

const NO_FACTOR_AVAILABLE = 'A second factor is required, and the tenant has none that could be given.';
const USER_REQUIRED = 'A second factor is to be enrolled, and the user has not logged in.';
const FACTOR_UNAVAILABLE = 'A second factor is required that the user has not, or the tenant has not.';

/**
 * Runs the actions for an authorization request, up to the first step that the user has not done yet.
 * @returns that step; undefined when the actions are done.
 */
async function nextActionStep(
  deps: StepDependencies,
  ctx: KoaContextWithOIDC,
  run: RunLogin,
): Promise<ActionStep | undefined> {
  const login = await loginOfSession(deps, ctx);
  if (login === undefined) return undefined;
  const resumed = resumedActions(ctx);
  if (resumed?.factors !== undefined && resumed.isGiven !== true) {
    const waiting = { ...resumed, returned: undefined };
    const step = await requireFactor(deps, ctx, login, { waiting, before: resumed });
    if (step !== undefined) return step;
  }
  if (resumed?.primary !== undefined) await verifyStillPrimary(deps, resumed.primary);
  const { outcome, lacksFactor, primary, storeMetadata } = await run(ctx, login, resumed);
  const { redirect, factors } = outcome.login;
  const waiting = { userId: login.user.id, sid: login.sessionId, progress: outcome.progress };
  if (primary !== undefined) {
    // This comes before any other step: the user who logged in may be deleted by now, with session and factors.
    const hasNoStep = redirect === undefined && factors === undefined;
    return loginAsPrimaryUser(deps, ctx, login, {
      primary,
      progress: hasNoStep ? outcome.progress : outcome.progressForPrimaryUser,
    });
  }
  if (redirect !== undefined) return { step: 'redirect', waiting: { ...waiting, redirect } };
  if (factors !== undefined)
    return requireFactor(deps, ctx, login, { waiting: { ...waiting, factors }, before: resumed });
  if (lacksFactor) {
    if (await canGiveFactor(deps, ctx, login)) return { step: 'factor', waiting };
    throw new errors.CustomOIDCProviderError('access_denied', NO_FACTOR_AVAILABLE);
  }
  await storeMetadata();
  if (ctx.oidc.session !== undefined) await applyToSession(deps, ctx.oidc.session, outcome);
  return undefined;
}

/**
 * Asks for one of the factors that an action named.
 * @param waiting the state to continue with when the factor was given.
 * @param before the state that this run began with. When the user first has to give a factor that they have, the
 *   same actions run again from it.
 * @returns undefined when the user has meanwhile enrolled the factor that was to be enrolled.
 * @throws errors.CustomOIDCProviderError when the user can give none.
 */
async function requireFactor(
  { secondFactor }: StepDependencies,
  { oidc }: KoaContextWithOIDC,
  { user, amr, sessionId }: ActionLogin,
  { waiting, before }: { waiting: WaitingActions; before: WaitingActions | undefined },
): Promise<ActionStep | undefined> {
  const { factors } = waiting;
  // No factor of a user is added where nobody was there.
  if (factors?.mode === 'enroll' && isUnattended({ presence: presenceOf(oidc.session ?? {}) }))
    throw new errors.CustomOIDCProviderError('access_denied', USER_REQUIRED);
  // A further factor may only be enrolled right after giving one: whoever holds an old session need not hold the
  // factor.
  const methods = oidc.result?.login === undefined ? methodsOfFirstFactor(amr) : amr;
  const availability =
    factors === undefined ? 'unavailable' : await secondFactor.availabilityOf(user, factors, methods);
  if (availability === 'enrolled') return undefined;
  if (availability === 'available') return { step: 'factor', waiting };
  if (availability === 'unavailable')
    throw new errors.CustomOIDCProviderError('access_denied', FACTOR_UNAVAILABLE);
  const { progress, returned } = before ?? {};
  return { step: 'factor', waiting: { userId: user.id, sid: sessionId, progress, returned } };
}

/**
 * Lets the request continue as a login of the user that the identity was linked to, with the checks of every login.
 * The session of the user who logged in ends.
 */
async function loginAsPrimaryUser(
  { endSession, random }: StepDependencies,
  { ip, oidc }: KoaContextWithOIDC,
  { connection, amr, authTime = 0, session = {} }: ActionLogin,
  {
    primary: { userId, identities, credentialVersion },
    progress,
  }: { primary: PrimaryUser; progress: Progress | undefined },
): Promise<ActionStep> {
  const login: PrimaryLogin['login'] = {
    userId,
    connection,
    amr: methodsOfFirstFactor(amr),
    presence: presenceOf(session),
    authTime,
    ip,
    credentialVersion,
    providerSession: providerSessionOf(session),
  };
  const before = oidc.session as (Session & { uid: string }) | undefined;
  if (before !== undefined) {
    await endSession(before.uid);
    // The browser continues in a new session, in which nobody is logged in yet.
    for (const member of ['accountId', 'authorizations', 'bounds', 'methods'] as const)
      Reflect.deleteProperty(before, member);
    before.uid = random(16).toString('base64url');
  }
  const rest = progress && {
    ...progress,
    outcome: { ...progress.outcome, login: { ...progress.outcome.login } },
  };
  delete rest?.outcome.login.primaryUser;
  return {
    step: 'primary',
    waiting: { userId, sid: undefined, progress: rest, primary: { login, identities } },
  };
}

/**
 * Whether the pages can ask the user for a second factor. Without this check a user who cannot give one would be
 * sent to the login page again and again.
 */
async function canGiveFactor(
  { secondFactor, acrValues }: StepDependencies,
  ctx: KoaContextWithOIDC,
  { user, clientId, amr }: ActionLogin,
): Promise<boolean> {
  const { session } = ctx.oidc;
  const login = {
    userId: user.id,
    amr,
    credentialVersion: credentialVersionOf(session ?? {}),
    factors: factorsOf(session ?? {}),
  };
  const requirements = {
    ...loginRequirements(ctx.oidc.params),
    clientId,
    acrValues,
    browser: true,
    ctx,
  };
  return secondFactor.isRequired(login, requirements);
}

// `setPrimaryUser` of an action: the login becomes that of another user. It is allowed only for the user to whom
// the identity that was logged in with has been linked; otherwise an action could log in to any account.

// docs/understand/decisions/actions-scripts.md#the-primary-user-that-an-action-sets-must-have-the-identities-of-the-logins-user
/** The user that an action has made the login's user. */
interface PrimaryUser {
  userId: string;
  /** @see PrimaryLogin.identities */
  identities: string[];
  /** @see Login.credentialVersion */
  credentialVersion: number;
}

const REFUSED = 'The identity that was logged in with is none of the named user.';

/**
 * Verifies the user that an action has named.
 * @throws errors.CustomOIDCProviderError when the identities that the login may have used are not that user's.
 */
async function verifyPrimaryUser(
  { users, actions }: LoginRunDependencies,
  ctx: KoaContextWithOIDC,
  login: ActionLogin,
  userId: string,
): Promise<PrimaryUser> {
  const { connection, user, identities: before } = login;
  // The identities as they were before the actions ran: an action that links the user to another one deletes it.
  const identities = before.filter((one) => one.connection === connection).map(({ id }) => id);
  // Read before the identities: unlinking one after this changes the version, and ends the login.
  const credentialVersion = await users.credentialVersion(userId);
  if (identities.length > 0 && !isAdministratorId(userId) && (await belongTo(users, identities, userId)))
    return { userId, identities, credentialVersion };
  actions.recordRefusal(TRIGGER, `setPrimaryUser ${userId} for ${user.id}`, aboutOf(ctx, login));
  throw new errors.CustomOIDCProviderError('access_denied', REFUSED);
}

/**
 * Verifies the named user again when the login resumes.
 * @throws errors.CustomOIDCProviderError when the identities are no longer that user's.
 */
async function verifyStillPrimary(
  { users }: { users: Pick<Users, 'identitiesOf'> },
  { login, identities }: PrimaryLogin,
): Promise<void> {
  if (await belongTo(users, identities, login.userId)) return;
  throw new errors.CustomOIDCProviderError('access_denied', REFUSED);
}

async function belongTo(
  users: Pick<Users, 'identitiesOf'>,
  ids: readonly string[],
  userId: string,
): Promise<boolean> {
  const ownIds = new Set((await users.identitiesOf(userId)).map(({ id }) => id));
  return ids.every((id) => ownIds.has(id));
}

/** Returns the `protocol` of an authorization request, as the hosted service names it for actions. */
function profileOf(responseType: unknown): string {
  const types = String(responseType).split(' ');
  if (!types.includes('code')) return 'oidc-implicit-profile';
  return types.length === 1 ? 'oidc-basic-profile' : 'oidc-hybrid-profile';
}

const scopesOf = (ctx: KoaContextWithOIDC) => [...ctx.oidc.requestParamScopes];

/**
 * Describes the login from which an authorization request would be answered.
 * @returns undefined when nobody is logged in.
 */
async function loginOfSession(
  {
    users,
    serverLoginCallbacks,
  }: {
    users: Pick<Users, 'get' | 'identitiesOf'>;
    serverLoginCallbacks: Pick<ServerLoginCallbacks, 'protocolOf'>;
  },
  ctx: KoaContextWithOIDC,
): Promise<ActionLogin | undefined> {
  const { session, client, params } = ctx.oidc;
  const user = session?.accountId === undefined ? undefined : await users.get(session.accountId);
  if (session === undefined || user === undefined || client === undefined) return undefined;
  const { acrValues: _, ...wanted } = loginRequirements(params);
  return {
    user,
    clientId: client.clientId,
    connection: connectionOf(session) ?? '',
    organization: wanted.organization,
    amr: session.amr ?? [],
    authTime: session.loginTs,
    protocol:
      serverLoginCallbacks.protocolOf(String(params?.redirect_uri)) ?? profileOf(params?.response_type),
    scopes: scopesOf(ctx),
    sessionId: session.uid,
    session,
    identities: await users.identitiesOf(user.id),
    methods: recordedMethods(session),
  };
}

/** Describes the login for which a refresh token was issued. @returns undefined when its user is deleted. */
async function loginOfGrant(
  { users }: { users: Pick<Users, 'get' | 'identitiesOf'> },
  ctx: KoaContextWithOIDC,
): Promise<ActionLogin | undefined> {
  const { RefreshToken: token, Grant: grant, Client: client } = ctx.oidc.entities;
  const user = token === undefined ? undefined : await users.get(token.accountId);
  if (token === undefined || user === undefined || client === undefined) return undefined;
  const { amr = [], organization, connection = '' } = (grant ?? {}) as Partial<ActionLogin>;
  return {
    user,
    clientId: client.clientId,
    connection,
    organization,
    amr,
    authTime: token.authTime,
    protocol: 'oauth2-refresh-token',
    scopes: [...token.scopes],
    refreshToken: token,
    audience: audienceOfRefresh(ctx, token),
    identities: await users.identitiesOf(user.id),
  };
}

/**
 * Returns the API of a refresh: the one that it names (RefreshTargets), or else the one that the token was issued
 * for.
 */
function audienceOfRefresh({ oidc }: KoaContextWithOIDC, { resource }: RefreshToken): string | undefined {
  const [indicator] = [oidc.params?.resource ?? resource ?? []].flat();
  return typeof indicator === 'string' ? toAudience(indicator) : undefined;
}
