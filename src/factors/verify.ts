// Verifying a second factor, by the token endpoint and the hosted pages alike: which authenticators may be used, what a
// first use confirms, and the counting of what was wrong.
import { tellOfMethod } from '../delivery/method-notice.ts';
import { AuthError } from '../http/errors.ts';
import { tryProof } from '../protection/attempts.ts';
import type { EventType } from '../records/log-events.ts';
import { methodTypeOf } from '../records/second-factors.ts';
import { primaryIdentity } from '../users/identities.ts';
import type { User } from '../users/user.ts';
import type { Authenticator } from './authenticators.ts';
import type { Claimant } from './claimant.ts';
import type { Right } from './elevation.ts';
import type { FactorDependencies, Verification } from './factor.ts';
import { activeAuthenticators, enrollable } from './policy.ts';
import { keepRecoveryCode } from './recovery/codes.ts';

/** A code as people type it, without the spaces and hyphens that make it easier to read. */
export function digitsOf(code: string): string {
  return code.replace(/[\s-]/g, '');
}

/** One of the user's authenticators, confirmed or begun, or that of their profile. */
export async function findAuthenticator(
  deps: FactorDependencies,
  user: User,
  id: string,
): Promise<Authenticator | undefined> {
  const all = [...(await activeAuthenticators(deps, user)), ...(await deps.authenticators.of(user.id))];
  return all.find((one) => one.id === id);
}

/**
 * The claimant's authenticators that may be used: the confirmed ones; begun ones while there are no others, or by who
 * has given a second factor before.
 */
export async function usableAuthenticators(
  deps: FactorDependencies,
  claimant: Claimant,
): Promise<Authenticator[]> {
  const all = await deps.authenticators.of(claimant.user.id);
  // A new password ends what was begun with the old one.
  const begun = all.filter((one) => !one.active && one.credential_version === claimant.credentialVersion);
  // What a ticket enrols is proved by itself alone.
  const { permit } = claimant;
  if (permit !== undefined)
    return begun.filter(({ id }) => permit.authenticatorId === undefined || id === permit.authenticatorId);
  const active = await activeAuthenticators(deps, claimant.user);
  const mayConfirm = active.length === 0 || (await rightOf(deps, claimant))?.proved === true;
  return mayConfirm ? [...active, ...begun] : active;
}

async function rightOf(
  deps: FactorDependencies,
  { token, permit, hasProved }: Claimant,
): Promise<Right | undefined> {
  if (permit?.several === true || hasProved === true) return { proved: true };
  return token === undefined ? undefined : deps.elevation.judge(token);
}

/**
 * A first use confirms an authenticator. What gives the right to is judged anew: it was waited for the use.
 * @returns false when it may not be confirmed so.
 */
export async function confirmFirstUse(
  deps: FactorDependencies,
  claimant: Claimant,
  authenticator: Authenticator,
): Promise<boolean> {
  if (authenticator.active) {
    await noteUse(deps, authenticator);
    return true;
  }
  const { token, permit, user, clientId, ip, credentialVersion, languages } = claimant;
  const right = await rightOf(deps, claimant);
  if (token !== undefined && right === undefined) return false;
  const first = right?.proved !== true;
  if (first && (await activeAuthenticators(deps, user)).length > 0) return false;
  if (permit !== undefined && !(await permit.spend())) return false;
  const factors = enrollable(deps);
  const options = {
    first,
    counts: (one: Authenticator) => factors.some(({ kind }) => kind === one.kind),
    keepRecoveryCode: (userId: string, hash: string) => keepRecoveryCode(deps, userId, hash),
  };
  if (!(await deps.authenticators.confirm(authenticator, options, token?.id))) return false;
  // A new password that was set meanwhile did not find it among what was begun.
  if ((await deps.users.credentialVersion(user.id)) !== credentialVersion) {
    await deps.authenticators.remove(authenticator.id);
    return false;
  }
  deps.events.record({ type: 'gd_enrollment_complete', user_id: user.id, client_id: clientId, ip });
  await permit?.confirmed?.(authenticator);
  await noteUse(deps, authenticator);
  // Whoever did not do it hears of it, wherever it was done.
  const application = await deps.config.client(clientId);
  const method = methodTypeOf(authenticator.kind);
  await tellOfMethod(deps, 'method_added', { application, user, languages, ip, method });
  return true;
}

/** Notes that an authenticator was given. That of the user's profile is kept nowhere. */
export async function noteUse(
  { authenticators, wallClock }: Pick<FactorDependencies, 'authenticators' | 'wallClock'>,
  { id }: Pick<Authenticator, 'id'>,
): Promise<void> {
  const last_used_at = new Date(wallClock()).toISOString();
  await authenticators.update(id, (current) => ({ ...current, last_used_at }));
}

/** The log events of a proof that was right, and of one that was wrong. */
interface ProofEvents {
  success: EventType;
  failure: EventType;
}
const AUTHENTICATION: ProofEvents = { success: 'gd_auth_succeed', failure: 'gd_auth_failed' };

/**
 * Counts what is guessed: for the user, whatever token or address it comes by, and for the user and address.
 * @throws AuthError 429 `too_many_attempts`
 */
export async function countingGuesses(
  deps: FactorDependencies,
  { user, clientId, ip }: Claimant,
  verify: () => Promise<Verification>,
  events = AUTHENTICATION,
): Promise<Verification> {
  const seen = { user_id: user.id, client_id: clientId, ip };
  let verification: Verification = { ok: false, outcome: 'wrong' };
  // Under the user's own connection, so that the link in the notice of a lock unlocks it.
  const connection = primaryIdentity(await deps.users.identitiesOf(user.id))?.connection ?? '';
  const attempt = {
    connection,
    identifier: user.id,
    userId: user.id,
    ip,
    what: 'code',
    step: 'mfa',
  } as const;
  await tryProof(deps.attempts, attempt, async () => {
    if (!(await deps.rateLimits.spend('mfaCode', user.id))) {
      deps.events.record({ ...seen, type: 'gd_otp_rate_limit_exceed' });
      throw new AuthError(429, 'too_many_attempts', 'Too many wrong codes. Wait a while, then log in again.');
    }
    verification = await verify();
    if (!verification.ok) return undefined;
    await deps.rateLimits.giveBack('mfaCode', user.id);
    return verification;
  });
  deps.events.record({ ...seen, type: verification.ok ? events.success : events.failure });
  return verification;
}
