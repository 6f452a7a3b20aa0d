// Giving the second factor: a code of an app, a code that was sent, a device's answer, a recovery code. By the
// token endpoint and by the hosted pages alike.
import type { ApiToken } from '../engine/api-tokens.ts';
import { AuthError } from '../http/errors.ts';
import { tryProof } from '../protection/attempts.ts';
import type { Outcome } from '../protection/challenge-records.ts';
import type { RateLimits } from '../protection/rate-limit.ts';
import type { EventType } from '../records/log-events.ts';
import { primaryIdentity } from '../users/identities.ts';
import type { User } from '../users/user.ts';
import { type Authenticator, FACTORS } from './authenticators.ts';
import type { Right } from './elevation.ts';
import type { OobChallenges } from './out-of-band.ts';
import { enabledFactors } from './policy.ts';
import { activeAuthenticators, type MfaDependencies } from './second-factor.ts';

export interface VerifyDependencies extends MfaDependencies {
  oob: OobChallenges;
  limits: Pick<RateLimits, 'spend' | 'giveBack'>;
}

/** Who gives a second factor, and on whose word. */
export interface Giver {
  user: User;
  clientId: string;
  ip: string;
  /** The version of the credential that the first factor was proved by. */
  credentialVersion: number;
  /** By an access token for the MFA API: it says what else may be confirmed than the user's first. */
  token?: ApiToken | undefined;
}

/** What came of it. `recoveryCode`: a new one, to be shown. */
export type Given = { ok: true; recoveryCode?: string } | { ok: false; outcome: Outcome };

/** A code of an authenticator app. */
export function giveOtp(deps: VerifyDependencies, giver: Giver, code: string): Promise<Given> {
  return judged(deps, giver, async () => {
    for (const authenticator of await usable(deps, giver, 'otp')) {
      if (!(await deps.authenticators.useOtp(authenticator, code))) continue;
      return (await settle(deps, giver, authenticator)) ? { ok: true } : { ok: false, outcome: 'wrong' };
    }
    return { ok: false, outcome: 'wrong' };
  });
}

/** A recovery code; a new one takes its place. */
export function giveRecoveryCode(deps: VerifyDependencies, giver: Giver, code: string): Promise<Given> {
  return judged(
    deps,
    giver,
    async () => {
      const { user } = giver;
      const has = (await activeAuthenticators(deps, user)).some(({ kind }) => kind === 'recovery-code');
      const recoveryCode = has ? await deps.authenticators.useRecoveryCode(user.id, code) : undefined;
      return recoveryCode === undefined ? { ok: false, outcome: 'wrong' } : { ok: true, recoveryCode };
    },
    RECOVERY,
  );
}

/** The answer to an out-of-band challenge, with the code that was sent or by the device. */
export async function giveOob(
  deps: VerifyDependencies,
  giver: Giver,
  oobCode: string,
  bindingCode: string | undefined,
): Promise<Given> {
  const challenge = await deps.oob.find(oobCode);
  const { user, clientId } = giver;
  if (challenge?.userId !== user.id || challenge.clientId !== clientId)
    return { ok: false, outcome: 'unknown' };
  const give = async (): Promise<Given> => {
    const known = await findAuthenticator(deps, user, challenge.authenticatorId);
    const usables = known === undefined ? [] : await usable(deps, giver, known.kind);
    const authenticator = usables.find(({ id }) => id === known?.id);
    if (authenticator === undefined) return { ok: false, outcome: 'unknown' };
    const outcome = await deps.oob.use(oobCode, bindingCode);
    if (outcome !== 'accepted') return { ok: false, outcome };
    if (challenge.needsCode) await deps.limits.giveBack('mfaMessage', user.id);
    else if (authenticator.active) await deps.limits.giveBack('mfaPush', user.id);
    return (await settle(deps, giver, authenticator)) ? { ok: true } : { ok: false, outcome: 'unknown' };
  };
  // Asking whether a device has answered guesses nothing.
  return challenge.needsCode ? judged(deps, giver, give) : give();
}

/** One of the user's authenticators, confirmed or begun, or that of their profile. */
export async function findAuthenticator(
  deps: MfaDependencies,
  user: User,
  id: string,
): Promise<Authenticator | undefined> {
  const all = [...(await activeAuthenticators(deps, user)), ...(await deps.authenticators.of(user.id))];
  return all.find((one) => one.id === id);
}

/** Authenticators that may be used: the confirmed ones; begun ones while there are no others, or by who has given more. */
async function usable(
  deps: VerifyDependencies,
  giver: Giver,
  kind: Authenticator['kind'],
): Promise<Authenticator[]> {
  const active = await activeAuthenticators(deps, giver.user);
  const mayConfirm = active.length === 0 || (await rightOf(deps, giver))?.proved === true;
  const begun = mayConfirm
    ? (await deps.authenticators.of(giver.user.id)).filter((one) => isBegun(giver, one))
    : [];
  return [...active, ...begun].filter((one) => one.kind === kind);
}

/** Begun with the credential that the user has now: a new password ends what was begun with the old one. */
function isBegun(
  { credentialVersion }: Giver,
  { active, credential_version: begunBy }: Authenticator,
): boolean {
  return !active && begunBy === credentialVersion;
}

async function rightOf(deps: VerifyDependencies, { token }: Giver): Promise<Right | undefined> {
  return token === undefined ? undefined : deps.elevation.judge(token);
}

/**
 * A first use confirms an authenticator. What gives the right to is judged anew: it was waited for the use.
 * @returns false when it may not be confirmed so.
 */
async function settle(
  deps: VerifyDependencies,
  giver: Giver,
  authenticator: Authenticator,
): Promise<boolean> {
  if (authenticator.active) return true;
  const { token } = giver;
  const right = await rightOf(deps, giver);
  if (token !== undefined && right === undefined) return false;
  const first = right?.proved !== true;
  if (first && (await activeAuthenticators(deps, giver.user)).length > 0) return false;
  const factors = enabledFactors(deps.config);
  const counts = (kind: Authenticator['kind']) => factors.has(FACTORS[kind]);
  const confirmed = await deps.authenticators.confirm(authenticator, { first, counts, by: token?.id });
  // A new password that was set meanwhile did not find it among what was begun.
  if (confirmed && (await deps.users.credentialVersion(giver.user.id)) !== giver.credentialVersion) {
    await deps.authenticators.remove(authenticator.id);
    return false;
  }
  if (confirmed) {
    const { user, clientId, ip } = giver;
    deps.events.record({ type: 'gd_enrollment_complete', user_id: user.id, client_id: clientId, ip });
  }
  return confirmed;
}

/** The log events of an answer that was right, and of one that was wrong. */
interface Told {
  success: EventType;
  failure: EventType;
}
const AUTHENTICATION: Told = { success: 'gd_auth_succeed', failure: 'gd_auth_failed' };
const RECOVERY: Told = { success: 'gd_recovery_succeed', failure: 'gd_recovery_failed' };

/** Counts what is guessed: for the user, whatever token or address it comes by, and for the user and address. */
async function judged(
  deps: VerifyDependencies,
  giver: Giver,
  give: () => Promise<Given>,
  told: Told = AUTHENTICATION,
): Promise<Given> {
  const { user, clientId, ip } = giver;
  const seen = { user_id: user.id, client_id: clientId, ip };
  let given: Given = { ok: false, outcome: 'wrong' };
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
    if (!(await deps.limits.spend('mfaCode', user.id))) {
      deps.events.record({ ...seen, type: 'gd_otp_rate_limit_exceed' });
      throw new AuthError(429, 'too_many_attempts', 'Too many wrong codes. Wait a while, then log in again.');
    }
    given = await give();
    if (!given.ok) return undefined;
    await deps.limits.giveBack('mfaCode', user.id);
    return given;
  });
  deps.events.record({ ...seen, type: given.ok ? told.success : told.failure });
  return given;
}
