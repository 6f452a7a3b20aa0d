// The actions of `post-login`. They run whenever an application is about to get tokens for a user: before an
// authorization request is answered (also from an open session), before a token request is, and at each refresh.

import { errors, type KoaContextWithOIDC } from 'oidc-provider';
import type { ActionOutcome } from '../capabilities/actions/commands.ts';
import { CONSOLE_CLIENT } from '../records/administrators.ts';
import { methodsOfFirstFactor } from '../users/login.ts';
import type { ActionClaims } from './action-claims.ts';
import { applyToRefreshToken } from './action-effects.ts';
import { loginOfGrant } from './action-logins.ts';
import { storeMetadata } from './action-metadata.ts';
import { type ActionStep, nextActionStep, type RunLogin, type StepDependencies } from './action-steps.ts';
import type { ActionLogin } from './login-event.ts';
import { aboutOf, claimsIn, runForLogin, TRIGGER } from './login-runs.ts';
import { type PrimaryUser, verifyPrimaryUser, verifyStillPrimary } from './primary-user.ts';
import { resumedActions } from './waiting-actions.ts';

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

/** Makes the actions of one engine's logins. */
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

/** Returns the claims that are stored with the grant of a request. */
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
