// The actions of `post-login`: they run whenever an application is about to get tokens for a user, however the user came:
// before an authorization request is answered (also by an open session), before a token request is, and at each refresh.

import type { Context } from 'koa';
import { errors, type KoaContextWithOIDC } from 'oidc-provider';
import { type Actions, withMembers } from '../actions/actions.ts';
import type { ActionOutcome } from '../actions/commands.ts';
import type { Events } from '../tenant/events.ts';
import type { Users } from '../users/users.ts';
import { allowedClaims } from './action-claims.ts';
import { connectionOf, credentialVersionOf, factorsOf } from './browser-login.ts';
import { type LoginEventDependencies, type LoginToJudge, loginEvent } from './login-event.ts';
import { inEngineTerms } from './machine-actions.ts';
import type { SecondFactor } from './second-factor.ts';
import { wantedOf } from './step-up.ts';

/** The claims that actions gave a login. */
export interface ActionClaims {
  idToken: Record<string, unknown>;
  accessToken: Record<string, unknown>;
}

export interface LoginActions {
  /**
   * Runs them for an authorization request that is about to be answered.
   * @returns whether the user has to give a second factor first.
   * @throws errors.CustomOIDCProviderError, for the application, when one denies the login or fails.
   */
  atAuthorization(ctx: KoaContextWithOIDC): Promise<boolean>;
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

interface LoginActionsDependencies extends LoginEventDependencies {
  actions: Actions;
  events: Pick<Events, 'record'>;
  users: Pick<Users, 'get' | 'update' | 'identitiesOf'>;
  secondFactor: Pick<SecondFactor, 'isDemanded' | 'description' | 'error'>;
  /** The context classes that stand for a second factor. */
  acrValues: readonly string[];
}

const TRIGGER = 'post-login';

/** The actions of one engine's logins. */
export function loginActions(deps: LoginActionsDependencies): LoginActions {
  const { actions } = deps;
  const set = new WeakMap<object, ActionClaims>();
  const run = async (ctx: KoaContextWithOIDC, login: LoginToJudge): Promise<boolean> => {
    const outcome = await outcomeOf(deps, ctx, login);
    const lacksFactor = outcome.multifactor && !login.amr.includes('mfa');
    // They run again when the factor was given: nothing of this run counts.
    if (lacksFactor) return true;
    const about = aboutOf(ctx, login);
    const claims = (to: 'id_token' | 'access_token', given: ActionOutcome['idToken']) =>
      allowedClaims(actions, { trigger: TRIGGER, to, about }, given);
    await keepMetadata(deps, login, outcome);
    set.set(ctx.oidc, {
      idToken: claims('id_token', outcome.idToken),
      accessToken: claims('access_token', outcome.accessToken),
    });
    return false;
  };
  return {
    claimsOf: (ctx) => {
      if (ctx === undefined) return undefined;
      return (
        set.get(ctx.oidc) ?? (ctx.oidc.entities.Grant as { actions?: ActionClaims } | undefined)?.actions
      );
    },
    atToken: async (ctx, login) => (actions.isBound(TRIGGER) ? run(ctx, login) : false),
    atAuthorization: async (ctx) => {
      if (!actions.isBound(TRIGGER)) return false;
      const login = await loginOfSession(deps, ctx);
      if (login === undefined || !(await run(ctx, login))) return false;
      if (await canGiveFactor(deps, ctx, login)) return true;
      throw new errors.CustomOIDCProviderError('access_denied', NO_FACTOR);
    },
    atRefresh: async (ctx) => {
      if (!actions.isBound(TRIGGER)) {
        // Nothing is left of what actions set that are bound no more.
        set.set(ctx.oidc, { idToken: {}, accessToken: {} });
        return;
      }
      const login = await loginOfGrant(deps, ctx);
      if (login !== undefined && !(await run(ctx, login))) return;
      throw new errors.CustomOIDCProviderError(deps.secondFactor.error, deps.secondFactor.description);
    },
  };
}

const NO_FACTOR = 'A second factor is required, and the tenant has none that could be given.';

const aboutOf = (ctx: KoaContextWithOIDC, { user, clientId }: LoginToJudge) => ({
  client_id: clientId,
  user_id: user.id,
  ip: ctx.ip,
});

/** @throws errors.CustomOIDCProviderError when an action denies the login, or fails. */
async function outcomeOf(
  deps: LoginActionsDependencies,
  ctx: KoaContextWithOIDC,
  login: LoginToJudge,
): Promise<ActionOutcome> {
  const about = aboutOf(ctx, login);
  const event = await loginEvent(deps, ctx, login);
  const outcome = await deps.actions.run(TRIGGER, event, about).catch(inEngineTerms);
  const { denied } = outcome;
  if (denied === undefined) return outcome;
  deps.events.record({ type: 'f', ...about, description: denied.reason });
  // `deny(code, reason)` is not of this trigger: the code is the protocol's.
  throw new errors.CustomOIDCProviderError(denied.error ?? 'access_denied', denied.reason);
}

async function keepMetadata(
  { users }: Pick<LoginActionsDependencies, 'users'>,
  { user }: LoginToJudge,
  { userMetadata, appMetadata }: ActionOutcome,
): Promise<void> {
  if (Object.keys(userMetadata).length + Object.keys(appMetadata).length === 0) return;
  const now = await users.get(user.id);
  if (now === undefined) return;
  await users.update(user.id, {
    user_metadata: withMembers(now.user_metadata, userMetadata),
    app_metadata: withMembers(now.app_metadata, appMetadata),
  });
}

const scopesOf = (ctx: KoaContextWithOIDC) => [...ctx.oidc.requestParamScopes];

async function loginOfSession(
  { users }: Pick<LoginActionsDependencies, 'users'>,
  ctx: KoaContextWithOIDC,
): Promise<LoginToJudge | undefined> {
  const { session, client, params } = ctx.oidc;
  const user = session?.accountId === undefined ? undefined : await users.get(session.accountId);
  if (session === undefined || user === undefined || client === undefined) return undefined;
  const { acrValues: _, ...wanted } = wantedOf(params);
  return {
    user,
    clientId: client.clientId,
    connection: connectionOf(session) ?? '',
    organization: wanted.organization,
    amr: session.amr ?? [],
    authTime: session.loginTs,
    protocol: params?.response_type === 'code' ? 'oidc-basic-profile' : 'oidc-implicit-profile',
    scopes: scopesOf(ctx),
    sessionId: session.uid,
  };
}

async function loginOfGrant(
  { users }: Pick<LoginActionsDependencies, 'users'>,
  ctx: KoaContextWithOIDC,
): Promise<LoginToJudge | undefined> {
  const { RefreshToken: token, Grant: grant, Client: client } = ctx.oidc.entities;
  const user = token === undefined ? undefined : await users.get(token.accountId);
  if (token === undefined || user === undefined || client === undefined) return undefined;
  const { amr = [], organization, connection = '' } = (grant ?? {}) as Partial<LoginToJudge>;
  return {
    user,
    clientId: client.clientId,
    connection,
    organization,
    amr,
    authTime: token.authTime,
    protocol: 'oauth2-refresh-token',
    scopes: [...token.scopes],
  };
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
