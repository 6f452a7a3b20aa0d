// Who does something with their own account, and by which login: the same for the API and for a page.
import type { Context } from 'koa';
import type { ApiToken } from '../engine/api-tokens.ts';
import type { FactorRequest } from '../factors/claimant.ts';
import type { FactorDependencies } from '../factors/factor.ts';
import { activeAuthenticators, MFA_POLICY } from '../factors/policy.ts';
import { type Languages, languagesOf } from '../http/languages.ts';
import { epochSeconds } from '../runtime/clock.ts';
import type { Config } from '../tenant/config.ts';
import type { User } from '../users/user.ts';
import { customOrigin } from '../webauthn/relying-party.ts';
import { stepUp } from './errors.ts';

/** The login that somebody acts by. */
interface ActingLogin {
  /** Its session's id, or where there is none what stands for its grant: what it changes does not end its own right. */
  id: string;
  amr: readonly string[];
  /** When its last proof was given, epoch seconds; undefined where nobody knows that its user was there. */
  authTime: number | undefined;
  /** The version of the credential that it was proved by. */
  credentialVersion: number;
  /** What stood for the user's second factors then (`SecondFactor.factorsOf`). */
  factors: string;
}

/** A user, and where they ask from. */
export interface Actor {
  user: User;
  clientId: string;
  ip: string;
  userAgent: string;
  languages: Languages;
  /** The origin of the custom domain that they ask at. */
  at?: string | undefined;
  login: ActingLogin;
}

/** Somebody by a request of theirs. */
export function actingAt(
  { config }: { config: Pick<Config, 'customOrigins'> },
  ctx: Context,
  who: Pick<Actor, 'user' | 'clientId' | 'login'>,
): Actor {
  const asked = { ip: ctx.ip, userAgent: ctx.get('User-Agent'), languages: languagesOf(ctx) };
  return { ...who, ...asked, at: customOrigin(ctx, { config }) };
}

/** How old a login may be that changes what one logs in with, seconds. */
export const FRESH_SECONDS = 600;

/**
 * Whoever has a second factor has given it: the password alone has no say in the account.
 * @throws AuthError 401 `insufficient_user_authentication` with `acr_values`.
 */
export async function requireFactor(deps: FactorDependencies, { user, login }: Actor): Promise<void> {
  if (login.amr.includes('mfa') || (await activeAuthenticators(deps, user)).length === 0) return;
  throw stepUp({ acr_values: MFA_POLICY }, 'A login with a second factor is required.');
}

/**
 * What allows a change, judged at the moment of it: the login holds still, and proves the factors that the user has now.
 * @throws AuthError 401 `insufficient_user_authentication`.
 */
export async function requireRight(deps: FactorDependencies, actor: Actor): Promise<void> {
  await requireFactor(deps, actor);
  if ((await deps.elevation.rightOf(proofOf(actor))) !== undefined) return;
  throw stepUp({ max_age: 0 }, 'The password or the second factors have changed since this login.');
}

/**
 * What allows a change to be begun: a login that is fresh, too. A session or a token that was stolen later gives its thief
 * nothing that is left when it is over.
 * @throws AuthError 401 `insufficient_user_authentication` with `max_age` (RFC 9470 §3).
 */
export async function requireFreshLogin(deps: FactorDependencies, actor: Actor): Promise<void> {
  await requireRight(deps, actor);
  const { authTime } = actor.login;
  const age = epochSeconds(deps.wallClock) - (authTime ?? Number.NEGATIVE_INFINITY);
  // One in the future is none that this clock has seen.
  if (age <= FRESH_SECONDS && age >= -SKEW) return;
  throw stepUp({ max_age: FRESH_SECONDS }, 'A more recent login is required.');
}

/** Whether the user may still come in by the login, after what was written: what ended it meanwhile did not find that. */
export async function isStillGood(
  { users }: Pick<FactorDependencies, 'users'>,
  { user, login }: Actor,
): Promise<boolean> {
  const now = await users.get(user.id);
  const isSame = (await users.credentialVersion(user.id)) === login.credentialVersion;
  return isSame && now !== undefined && now.blocked !== true;
}

/** Processes' clocks may differ by that, seconds. */
const SKEW = 60;

/** The login in the form that the factors judge. */
function proofOf({ user, clientId, login }: Actor): ApiToken {
  const { id, amr, credentialVersion, factors } = login;
  const claims = { amr, credential_version: credentialVersion, factors_changed: factors };
  return { userId: user.id, clientId, scopes: [], id, claims };
}

/** The actor as who asks for a second factor. */
export function factorRequestOf(actor: Actor): FactorRequest {
  const { user, clientId, ip, languages, login } = actor;
  const { credentialVersion } = login;
  return { user, clientId, ip, languages, credentialVersion, token: proofOf(actor) };
}
