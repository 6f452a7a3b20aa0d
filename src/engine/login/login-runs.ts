// Runs the actions of a login, and applies that part of their outcome which is the same for all logins.
import { errors, type KoaContextWithOIDC } from 'oidc-provider';
import { type ActionLogFields, type Actions, executionDetails } from '../../capabilities/actions/actions.ts';
import type { ActionOutcome } from '../../capabilities/actions/commands.ts';
import type { RequiredFactors } from '../../capabilities/actions/factor-methods.ts';
import type { ActionRun, Progress } from '../../capabilities/actions/progress.ts';
import type { Events } from '../../tenant/events.ts';
import type { Login } from '../../users/login.ts';
import type { Users } from '../../users/users.ts';
import { engineEvents } from '../base/declaration.ts';
import {
  type ActionClaims,
  allowedClaims,
  applyRevocations,
  type EffectDependencies,
  storeMetadata,
} from './action-effects.ts';
import { type ActionLogin, type LoginEventDependencies, loginEvent } from './login-event.ts';
import { refusedIfDeleted, rethrowActionError } from './machine-actions.ts';

export interface LoginRunDependencies extends LoginEventDependencies, EffectDependencies {
  config: LoginEventDependencies['config'] & EffectDependencies['config'];
  actions: Actions;
  executions: LoginExecutions;
  events: Pick<Events, 'record'>;
  users: Pick<Users, 'get' | 'update' | 'identitiesOf' | 'credentialVersion'>;
}

export const TRIGGER = 'post-login';

/** Returns the application, user and address of a run, for the log. */
export const aboutOf = (ctx: KoaContextWithOIDC, { user, clientId }: ActionLogin) => ({
  client_id: clientId,
  user_id: user.id,
  ip: ctx.ip,
});

/** Returns the claims of a run's outcome that actions may set. */
export function claimsIn(
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
export async function runForLogin(
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

// docs/decisions/second-factors.md#second-factors-that-an-action-names-are-requested-in-each-request
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
// docs/decisions/actions-scripts.md#the-execution-of-a-logins-actions-has-an-id-before-it-runs

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
export function resumedActions({ oidc }: KoaContextWithOIDC): WaitingActions | undefined {
  const { actions } = (oidc.result ?? {}) as ActionState;
  const { session } = oidc;
  if (actions === undefined || actions.userId !== session?.accountId) return undefined;
  if (actions.sid === undefined) return oidc.result?.login === undefined ? undefined : actions;
  return actions.sid === session.uid ? actions : undefined;
}
