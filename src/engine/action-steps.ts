// The steps that actions require of the user before an authorization request is answered.
import { errors, type KoaContextWithOIDC, type Session } from 'oidc-provider';
import type { ActionRun, Progress } from '../capabilities/actions/progress.ts';
import { methodsOfFirstFactor } from '../users/login.ts';
import { isUnattended } from '../users/user-acts.ts';
import { applyToSession } from './action-effects.ts';
import { loginOfSession } from './action-logins.ts';
import { credentialVersionOf, factorsOf, presenceOf, providerSessionOf } from './browser-login.ts';
import type { ActionLogin } from './login-event.ts';
import { loginRequirements } from './login-requirements.ts';
import type { LoginRunDependencies } from './login-runs.ts';
import type { OwnCallbacks } from './own-callbacks.ts';
import { type PrimaryUser, verifyStillPrimary } from './primary-user.ts';
import type { SecondFactor } from './second-factor.ts';
import { type PrimaryLogin, resumedActions, type WaitingActions } from './waiting-actions.ts';

export interface ActionStep {
  step: 'factor' | 'redirect' | 'primary';
  /** Stored with the waiting request. */
  waiting: WaitingActions;
}

export interface StepDependencies extends LoginRunDependencies {
  ownCallbacks: Pick<OwnCallbacks, 'protocolOf'>;
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
export type RunLogin = (
  ctx: KoaContextWithOIDC,
  login: ActionLogin,
  before?: WaitingActions,
) => Promise<{
  outcome: ActionRun;
  lacksFactor: boolean;
  primary: PrimaryUser | undefined;
  /** Stores the metadata that they set. */
  storeMetadata(): Promise<void>;
}>;

const NO_FACTOR_AVAILABLE = 'A second factor is required, and the tenant has none that could be given.';
const USER_REQUIRED = 'A second factor is to be enrolled, and the user has not logged in.';
const FACTOR_UNAVAILABLE = 'A second factor is required that the user has not, or the tenant has not.';

/**
 * Runs the actions for an authorization request, up to the first step that the user has not done yet.
 * @returns that step; undefined when the actions are done.
 */
export async function nextActionStep(
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
