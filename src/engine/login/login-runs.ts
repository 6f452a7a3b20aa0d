// Runs the actions of a login, and applies that part of their outcome which is the same for all logins.
import { errors, type KoaContextWithOIDC } from 'oidc-provider';
import { type ActionLogFields, type Actions, executionDetails } from '../../capabilities/actions/actions.ts';
import type { ActionOutcome } from '../../capabilities/actions/commands.ts';
import type { RequiredFactors } from '../../capabilities/actions/factor-methods.ts';
import type { ActionRun } from '../../capabilities/actions/progress.ts';
import type { Events } from '../../tenant/events.ts';
import type { Users } from '../../users/users.ts';
import { type ActionClaims, allowedClaims } from './action-claims.ts';
import { applyRevocations, type EffectDependencies } from './action-effects.ts';
import { storeMetadata } from './action-metadata.ts';
import { type ActionLogin, type LoginEventDependencies, loginEvent } from './login-event.ts';
import type { LoginExecutions } from './login-executions.ts';
import { refusedIfDeleted, rethrowActionError } from './machine-actions.ts';
import type { WaitingActions } from './waiting-actions.ts';

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
    type: 'f',
    ...about,
    description: denied.reason,
    ...executionDetails(outcome.execution),
  });
  // `deny(code, reason)` does not exist for this trigger: the code is always the protocol's.
  throw new errors.CustomOIDCProviderError(denied.error ?? 'access_denied', denied.reason);
}

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
