// Verifies second factors for the token endpoint and the hosted pages: which authenticators may be used, what a
// first use confirms, and how wrong codes are counted.
import { sendMethodNotice } from '../../capabilities/delivery/method-notice.ts';
import { tryProof } from '../../capabilities/protection/attempts.ts';
import { AuthError } from '../../http/errors.ts';
import type { EventType } from '../../records/base/log-events.ts';
import { methodTypeOf } from '../../records/users/second-factors.ts';
import { epochSeconds } from '../../runtime/clock.ts';
import { primaryIdentity } from '../../users/changes.ts';
import { lackFor } from '../../users/login.ts';
import type { User } from '../../users/user.ts';
import type { Authenticator } from './authenticators.ts';
import type { Claimant } from './claimant.ts';
import type { FactorPermission } from './elevation.ts';
import type { FactorDependencies, Verification } from './factor.ts';
import { factorEvents, factorLimits } from './factors-declaration.ts';
import { activeAuthenticators, enrollable } from './policy.ts';
import { saveRecoveryCode } from './recovery/codes.ts';

/** Returns a typed code without spaces and hyphens. */
export function digitsOf(code: string): string {
  return code.replace(/[\s-]/g, '');
}

/** Finds an authenticator of the user by id, confirmed or not, or the one that follows from their profile. */
export async function findAuthenticator(
  deps: FactorDependencies,
  user: User,
  id: string,
): Promise<Authenticator | undefined> {
  const all = [...(await activeAuthenticators(deps, user)), ...(await deps.authenticators.of(user.id))];
  return all.find((one) => one.id === id);
}

/**
 * Returns the authenticators that the claimant may use. With an enrolment ticket: those that were begun. Otherwise:
 * the confirmed ones; and those that were begun, if no other is confirmed or the claimant has proved a second factor.
 */
export async function usableAuthenticators(
  deps: FactorDependencies,
  claimant: Claimant,
): Promise<Authenticator[]> {
  const all = await deps.authenticators.of(claimant.user.id);
  // A new password ends what was begun with the old one.
  const unconfirmed = all.filter(
    (one) => !one.active && one.credential_version === claimant.credentialVersion,
  );
  // An enrolment ticket (`permit`) proves no factor, so confirmed ones cannot be used with it.
  const { permit } = claimant;
  if (permit !== undefined)
    return unconfirmed.filter(
      ({ id }) => permit.authenticatorId === undefined || id === permit.authenticatorId,
    );
  const active = await activeAuthenticators(deps, claimant.user);
  const mayConfirm = active.length === 0 || (await permissionOf(deps, claimant))?.hasSecondFactor === true;
  return mayConfirm ? [...active, ...unconfirmed] : active;
}

async function permissionOf(
  deps: FactorDependencies,
  { token, permit, hasSecondFactor }: Claimant,
): Promise<FactorPermission | undefined> {
  if (permit?.allowsSeveral === true || hasSecondFactor === true) return { hasSecondFactor: true };
  return token === undefined ? undefined : deps.elevation.permissionOf(token);
}

/** Returns whether a user, read anew, has a second factor elsewhere and none here (left-factors.ts). */
async function isMarked({ users }: FactorDependencies, { id }: User): Promise<boolean> {
  const user = await users.get(id);
  return user !== undefined && users.lacksFactor(user);
}

/**
 * Records the use of an authenticator, and confirms it if this is its first. The permission is checked again,
 * because it may have ended since the authenticator was begun.
 * @returns false when it may not be confirmed.
 */
export async function confirmFirstUse(
  deps: FactorDependencies,
  claimant: Claimant,
  authenticator: Authenticator,
): Promise<boolean> {
  if (authenticator.active) {
    await recordUse(deps, authenticator);
    return true;
  }
  const { token, permit, user, clientId, ip, credentialVersion, languages } = claimant;
  if (lackFor('completion', claimant, epochSeconds(deps.wallClock)) !== undefined) return false;
  const permission = await permissionOf(deps, claimant);
  if (token !== undefined && permission === undefined) return false;
  const first = permission?.hasSecondFactor !== true;
  if (first && (await activeAuthenticators(deps, user)).length > 0) return false;
  // The login began before the user was marked; only a ticket of support, or a factor, ends the mark.
  if (first && permit === undefined && (await isMarked(deps, user))) return false;
  if (permit !== undefined && !(await permit.spend())) return false;
  const factors = enrollable(deps, user);
  const options = {
    first,
    also: [deps.users.stillWrite(user)],
    isSecondFactor: (one: Authenticator) => factors.some(({ kind }) => kind === one.kind),
    saveRecoveryCode: (userId: string, hash: string) => saveRecoveryCode(deps, userId, hash),
  };
  if (!(await deps.authenticators.confirm(authenticator, options, token?.id))) return false;
  // The login may have been that of a password which was set anew before its user was read. A deleted user has no use for it.
  const isThere = (await deps.users.get(user.id)) !== undefined;
  if (!isThere || (await deps.users.credentialVersion(user.id)) !== credentialVersion) {
    await deps.authenticators.remove(authenticator.id);
    return false;
  }
  deps.events.record({
    type: factorEvents.gd_enrollment_complete,
    user_id: user.id,
    client_id: clientId,
    ip,
  });
  await permit?.onConfirmed?.(authenticator);
  await recordUse(deps, authenticator);
  // The user is told by mail, in case somebody else did it.
  const application = await deps.config.client(clientId);
  const method = methodTypeOf(authenticator.kind);
  await sendMethodNotice(deps, 'method_added', { application, user, languages, ip, method });
  return true;
}

/** Records that an authenticator was used. Does nothing for that of the profile, which is not stored. */
export async function recordUse(
  { authenticators, wallClock }: Pick<FactorDependencies, 'authenticators' | 'wallClock'>,
  { id }: Pick<Authenticator, 'id'>,
): Promise<void> {
  const last_used_at = new Date(wallClock()).toISOString();
  await authenticators.update(id, (current) => ({ ...current, last_used_at }));
}

/** The log events of a right and of a wrong proof. */
interface VerificationEvents {
  success: EventType;
  failure: EventType;
}
const AUTHENTICATION_EVENTS: VerificationEvents = {
  success: factorEvents.gd_auth_succeed,
  failure: factorEvents.gd_auth_failed,
};

/**
 * Runs a verification and counts failures: for the user, whatever the token or address, and for user and address.
 * @throws AuthError 429 `too_many_attempts`
 */
export async function countGuesses(
  deps: FactorDependencies,
  { user, clientId, ip }: Claimant,
  verify: () => Promise<Verification>,
  events = AUTHENTICATION_EVENTS,
): Promise<Verification> {
  const context = { user_id: user.id, client_id: clientId, ip };
  let verification: Verification = { ok: false, outcome: 'wrong' };
  // Counted under the user's own connection, so that the link in the mail about a blocked account unblocks it.
  const connection = primaryIdentity(await deps.users.identitiesOf(user.id))?.connection ?? '';
  const attempt = {
    connection,
    identifier: user.id,
    userId: user.id,
    ip,
    proof: 'code',
    step: 'mfa',
  } as const;
  await tryProof(deps.attempts, attempt, async () => {
    if (!(await deps.rateLimits.spend(factorLimits.mfaCode, user.id))) {
      deps.events.record({ ...context, type: factorEvents.gd_otp_rate_limit_exceed });
      throw new AuthError(429, 'too_many_attempts', 'Too many wrong codes. Wait a while, then log in again.');
    }
    verification = await verify();
    if (!verification.ok) return undefined;
    await deps.rateLimits.giveBack(factorLimits.mfaCode, user.id);
    return verification;
  });
  deps.events.record({ ...context, type: verification.ok ? events.success : events.failure });
  return verification;
}
