// Begins the enrolment of a second factor (docs/reference/wire/mfa.md).
import { AuthError } from '../../http/errors.ts';
import { epochSeconds } from '../../runtime/clock.ts';
import { type Attendance, FRESH_SECONDS, lackFor, type UserAct } from '../../users/login.ts';
import type { User } from '../../users/user.ts';
import type { FactorRequest } from './claimant.ts';
import { MAX_CONFIRMED } from './confirm.ts';
import type { Factor, FactorDependencies, StartedEnrollment } from './factor.ts';
import { factorEvents } from './factors-declaration.ts';
import { activeAuthenticators, enabledFactors, enrollable, isRecovery } from './policy.ts';
import { attachRecoveryCode } from './recovery/codes.ts';

/** The factor to enrol, and its e-mail address or phone number if it has one. */
export interface EnrollmentTarget {
  factor: Factor;
  address?: string | undefined;
}

/**
 * Begins to enrol an authenticator. It becomes active with its first use.
 * @throws AuthError 400 when the factor is off, the address is invalid or the user has too many; 401 when nobody was at
 *   the login; 429; 503 when the code cannot be sent.
 */
export async function enroll(
  deps: FactorDependencies,
  request: FactorRequest,
  { factor, address = '' }: EnrollmentTarget,
): Promise<StartedEnrollment> {
  requireUser(deps, request, 'first_factor');
  const { user, clientId, ip } = request;
  const offered = factor.recovers === true ? enabledFactors(deps) : enrollable(deps, user);
  if (factor.enroll === undefined || !offered.includes(factor))
    throw new AuthError(400, 'invalid_request', `The factor ${factor.type} is not enabled.`);
  const confirmed = (await deps.authenticators.of(user.id)).filter(
    (one) => one.active && !isRecovery(deps, one),
  );
  if (confirmed.length >= MAX_CONFIRMED)
    throw new AuthError(400, 'invalid_request', 'The user has too many authenticators: one must be removed.');
  deps.events.record({ type: factorEvents.gd_start_enroll, user_id: user.id, client_id: clientId, ip });
  const started = await factor.enroll.start(deps, request, address);
  const isFirst = (await activeAuthenticators(deps, user)).length === 0;
  if (!isFirst || !hasRecoveryCodes(deps)) return started;
  return { ...started, recoveryCode: await attachRecoveryCode(deps, started.authenticator) };
}

/**
 * Checks that the user was at the login, as an act needs it.
 * @throws AuthError 401 `insufficient_user_authentication` with `max_age` (RFC 9470 §3).
 */
export function requireUser(
  { wallClock }: Pick<FactorDependencies, 'wallClock'>,
  login: Attendance,
  act: UserAct,
): void {
  if (lackFor(act, login, epochSeconds(wallClock)) === undefined) return;
  throw new AuthError(401, 'insufficient_user_authentication', 'A recent login by the user is required.', {
    extra: { max_age: FRESH_SECONDS },
  });
}

/** Returns whether users get a recovery code with their first authenticator. */
export function hasRecoveryCodes(deps: Pick<FactorDependencies, 'config' | 'factors'>): boolean {
  return enabledFactors(deps).some(({ recovers }) => recovers === true);
}

export function accountNameOf(user: User): string {
  return user.email ?? user.username ?? user.phone_number ?? user.id;
}
