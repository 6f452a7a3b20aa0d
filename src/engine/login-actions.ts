// The actions of `post-login`: they run whenever an application is about to get tokens for a user, however the user came:
// before an authorization request is answered (also by an open session), before a token request is, and at each refresh.

import type { Context } from 'koa';
import { errors, type KoaContextWithOIDC } from 'oidc-provider';
import type { ActionRun } from '../actions/progress.ts';
import type { ActionClaims } from './action-claims.ts';
import { keepRefreshToken, keepSession } from './action-effects.ts';
import { credentialVersionOf, factorsOf } from './browser-login.ts';
import type { LoginToJudge } from './login-event.ts';
import {
  aboutOf,
  claimsIn,
  keepMetadata,
  type LoginRunDependencies,
  runForLogin,
  TRIGGER,
} from './login-runs.ts';
import { loginOfGrant, loginOfSession } from './logins-to-judge.ts';
import type { OwnCallbacks } from './own-callbacks.ts';
import type { SecondFactor } from './second-factor.ts';
import { wantedOf } from './step-up.ts';
import { answeredActions, type WaitingActions } from './waiting-actions.ts';

/** What the user of an authorization request has to do before it is answered. */
interface ActionStep {
  step: 'factor' | 'redirect';
  /** To be kept with the request. */
  waiting: WaitingActions;
}

export interface LoginActions {
  /**
   * Runs them for an authorization request that is about to be answered; once, however often it is asked for.
   * @returns what the user has to do first.
   * @throws errors.CustomOIDCProviderError, for the application, when one denies the login or fails.
   */
  atAuthorization(ctx: KoaContextWithOIDC): Promise<ActionStep | undefined>;
  /**
   * Runs them for a token request.
   * @returns whether it lacks a second factor. @throws errors.CustomOIDCProviderError as above.
   */
  atToken(ctx: KoaContextWithOIDC, login: LoginToJudge): Promise<boolean>;
  /** Runs them for a refresh, before its token is used up. @throws errors.CustomOIDCProviderError as above. */
  atRefresh(ctx: KoaContextWithOIDC): Promise<void>;
  /** The claims of a login: those set in this request, or those kept with its grant. */
  claimsOf(ctx: KoaContextWithOIDC | undefined): ActionClaims | undefined;
}

interface LoginActionsDependencies extends LoginRunDependencies {
  ownCallbacks: Pick<OwnCallbacks, 'protocolOf'>;
  secondFactor: Pick<SecondFactor, 'isDemanded' | 'description' | 'error' | 'enrolled'>;
  /** The context classes that stand for a second factor. */
  acrValues: readonly string[];
}

/** The actions of one engine's logins. */
export function loginActions(deps: LoginActionsDependencies): LoginActions {
  const { actions } = deps;
  const set = new WeakMap<object, ActionClaims>();
  const steps = new WeakMap<object, Promise<ActionStep | undefined>>();
  const run = async (ctx: KoaContextWithOIDC, login: LoginToJudge, before?: WaitingActions) => {
    const outcome = await runForLogin(deps, ctx, login, before);
    const lacksFactor = outcome.multifactor && !login.amr.includes('mfa');
    // Nothing counts before all is done: they go on, or run again, when the user has done what they ask for.
    if (!lacksFactor && outcome.login.redirect === undefined) {
      await keepMetadata(deps, login, outcome);
      set.set(ctx.oidc, claimsIn(actions, aboutOf(ctx, login), outcome));
    }
    return { outcome, lacksFactor };
  };
  return {
    claimsOf: (ctx) => {
      if (ctx === undefined) return undefined;
      return (
        set.get(ctx.oidc) ?? (ctx.oidc.entities.Grant as { actions?: ActionClaims } | undefined)?.actions
      );
    },
    atAuthorization: (ctx) => {
      if (!actions.isBound(TRIGGER)) return Promise.resolve(undefined);
      const known = steps.get(ctx.oidc);
      const step = known ?? stepOf(deps, ctx, run);
      steps.set(ctx.oidc, step);
      return step;
    },
    atToken: async (ctx, login) =>
      actions.isBound(TRIGGER) ? (await runWithoutPages(deps, ctx, login, run)).lacksFactor : false,
    atRefresh: async (ctx) => {
      if (!actions.isBound(TRIGGER)) {
        // Nothing is left of what actions set that are bound no more.
        set.set(ctx.oidc, { idToken: {}, accessToken: {} });
        return;
      }
      const login = await loginOfGrant(deps, ctx);
      const { lacksFactor = true, outcome } =
        login === undefined ? {} : await runWithoutPages(deps, ctx, login, run);
      const { RefreshToken: token } = ctx.oidc.entities;
      if (!lacksFactor && outcome !== undefined && token !== undefined)
        return keepRefreshToken(deps, token, outcome);
      throw new errors.CustomOIDCProviderError(deps.secondFactor.error, deps.secondFactor.description);
    },
  };
}

type Run = (
  ctx: KoaContextWithOIDC,
  login: LoginToJudge,
  before?: WaitingActions,
) => Promise<{ outcome: ActionRun; lacksFactor: boolean }>;

const NO_FACTOR = 'A second factor is required, and the tenant has none that could be given.';
const NO_PAGES = 'An action sends the user elsewhere, and this request has no browser that could go there.';

async function stepOf(
  deps: LoginActionsDependencies,
  ctx: KoaContextWithOIDC,
  run: Run,
): Promise<ActionStep | undefined> {
  const login = await loginOfSession(deps, ctx);
  if (login === undefined) return undefined;
  const { outcome, lacksFactor } = await run(ctx, login, answeredActions(ctx));
  const { redirect } = outcome.login;
  const waiting = { userId: login.user.id, sid: login.sessionId ?? '', progress: outcome.progress, redirect };
  if (redirect !== undefined) return { step: 'redirect', waiting };
  if (!lacksFactor) {
    if (ctx.oidc.session !== undefined) await keepSession(deps, ctx.oidc.session, outcome);
    return undefined;
  }
  if (await canGiveFactor(deps, ctx, login)) return { step: 'factor', waiting };
  throw new errors.CustomOIDCProviderError('access_denied', NO_FACTOR);
}

async function runWithoutPages(
  { actions }: LoginActionsDependencies,
  ctx: KoaContextWithOIDC,
  login: LoginToJudge,
  run: Run,
): ReturnType<Run> {
  const ran = await run(ctx, login);
  if (ran.outcome.login.redirect === undefined) return ran;
  actions.refused(TRIGGER, 'redirect.sendUserTo: there is no browser', aboutOf(ctx, login));
  throw new errors.CustomOIDCProviderError('access_denied', NO_PAGES);
}

/** Whether the pages can ask the user for a second factor: else they would be asked for nothing, again and again. */
async function canGiveFactor(
  { secondFactor, acrValues }: LoginActionsDependencies,
  ctx: KoaContextWithOIDC,
  { user, clientId, amr }: LoginToJudge,
): Promise<boolean> {
  const { session } = ctx.oidc;
  const login = {
    userId: user.id,
    amr,
    credentialVersion: credentialVersionOf(session ?? {}),
    factors: factorsOf(session ?? {}),
  };
  const asked = {
    ...wantedOf(ctx.oidc.params),
    clientId,
    acrValues,
    browser: true,
    ctx: ctx as unknown as Context,
  };
  return secondFactor.isDemanded(login, asked);
}
