// A user who acts on their own account, and the login that they act by. The API and the account page share it.
import type { Context } from 'koa';
import { customOrigin } from '../../capabilities/webauthn/relying-party.ts';
import type { ApiToken } from '../../engine/token/api-tokens.ts';
import { type Languages, languagesOf } from '../../http/languages.ts';
import { MFA_POLICY } from '../../records/users/authentication-classes.ts';
import { epochSeconds } from '../../runtime/clock.ts';
import { raiseStanding } from '../../runtime/requester.ts';
import type { Login } from '../../users/login.ts';
import { FRESH_SECONDS, lackFor, type UserAct } from '../../users/login.ts';
import { isStill } from '../../users/still.ts';
import type { User } from '../../users/user.ts';
import type { FactorRequest } from '../factors/claimant.ts';
import type { FactorDependencies } from '../factors/factor.ts';
import { activeAuthenticators } from '../factors/policy.ts';
import { stepUp } from './account-errors.ts';

interface ActingLogin extends Pick<Login, 'amr' | 'presence' | 'credentialVersion'> {
  /**
   * The id of its session, or of its grant without one. Changes of factors with this id do not end the login
   * itself.
   */
  id: string;
  /** When the user last proved who they are, epoch seconds; undefined when that is not known. */
  authTime: number | undefined;
  /** The id of the last change of the user's factors at the login (`SecondFactor.factorsOf`). */
  factors: string;
}

/** A user who acts on their own account, with the facts of their request. */
export interface Actor {
  user: User;
  clientId: string;
  ip: string;
  userAgent: string;
  languages: Languages;
  /** The origin of the custom domain of the request, if any. */
  origin?: string | undefined;
  login: ActingLogin;
}

/** Returns the actor of a request, which goes before those of strangers from now on. */
export function actorFrom(ctx: Context, authenticated: Pick<Actor, 'user' | 'clientId' | 'login'>): Actor {
  raiseStanding('known');
  const request = { ip: ctx.ip, userAgent: ctx.get('User-Agent'), languages: languagesOf(ctx) };
  return { ...authenticated, ...request, origin: customOrigin(ctx) };
}

/**
 * Checks that the login proved a second factor, if the user has one: the password alone must not manage the
 * account.
 * @throws AuthError 401 `insufficient_user_authentication` with `acr_values`.
 */
export async function requireFactor(deps: FactorDependencies, { user, login }: Actor): Promise<void> {
  if (login.amr.includes('mfa') || (await activeAuthenticators(deps, user)).length === 0) return;
  throw stepUp({ acr_values: MFA_POLICY }, 'A login with a second factor is required.');
}

// docs/understand/decisions/sessions-logout.md#a-stolen-session-or-token-can-only-read-the-account
/**
 * Checks, right before an act, that the login is still valid, proves the user's present second factors, and has what
 * the act needs ({@link USER_ACTS}).
 * @throws AuthError 401 `insufficient_user_authentication` with `max_age` or `acr_values` (RFC 9470 §3).
 */
export async function requireLoginFor(deps: FactorDependencies, actor: Actor, act: UserAct): Promise<void> {
  const lack = lackFor(act, actor.login, epochSeconds(deps.wallClock));
  // Asked for before a second factor is, which would not make up for it.
  if (lack === 'presence') throw stepUp({ max_age: FRESH_SECONDS }, 'A login by the user is required.');
  await requireFactor(deps, actor);
  if ((await deps.elevation.permissionOf(asToken(actor))) === undefined)
    throw stepUp({ max_age: 0 }, 'The password or the second factors have changed since this login.');
  if (lack !== undefined) throw stepUp({ max_age: FRESH_SECONDS }, 'A more recent login is required.');
}

/**
 * Returns whether a login is still valid after a write. What ended the login in the meantime could not find the new
 * record.
 */
export async function isStillValid(
  { users }: Pick<FactorDependencies, 'users'>,
  { user, login }: Actor,
): Promise<boolean> {
  const now = await users.get(user.id);
  const isSame = (await users.credentialVersion(user.id)) === login.credentialVersion;
  return isSame && now !== undefined && isStill(user)(now);
}

/** Returns the login in the form of a token, as `Elevation` takes it. */
function asToken({ user, clientId, login }: Actor): ApiToken {
  const { id, amr, credentialVersion, factors } = login;
  const claims = { amr, credential_version: credentialVersion, factors_changed: factors };
  return { userId: user.id, clientId, scopes: [], id, claims };
}

/** Returns the actor as a claimant of a second factor. */
export function factorRequestOf(actor: Actor): FactorRequest {
  const { user, clientId, ip, languages, login } = actor;
  const { credentialVersion, presence } = login;
  return { user, clientId, ip, languages, credentialVersion, presence, token: asToken(actor) };
}

/**
 * Returns the actor as a claimant who may confirm an authenticator that they began.
 * @param permit which one, and what uses the permission.
 */
export function claimantOf(
  actor: Actor,
  permit: Omit<NonNullable<FactorRequest['permit']>, 'allowsSeveral'>,
): FactorRequest {
  // The login decides whether it may be added to other factors.
  return { ...factorRequestOf(actor), permit: { allowsSeveral: false, ...permit } };
}
