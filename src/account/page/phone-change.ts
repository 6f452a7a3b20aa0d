// A phone number for an account, proved by a code that is sent to it. It is no second factor; a way in where the connection
// says that its users log in with phone numbers.
import { sms } from '../../connections/passwordless/sms.ts';
import type { FactorDependencies } from '../../factors/factor.ts';
import { numberOf } from '../../factors/message/countries.ts';
import { enabledFactors } from '../../factors/policy.ts';
import { DATABASE } from '../../records/connections.ts';
import { codeKinds } from '../../records/database-options.ts';
import { UniqueKeyError } from '../../store/contract.ts';
import { type Actor, isStillGood } from '../actor.ts';
import { sendCode, useCode } from './code.ts';
import { homeOf } from './home.ts';

const PURPOSE = 'account_phone';

/** Whether a user's number is kept here, and the tenant sends text messages: as second factors, or to log in with. */
export async function editsPhone(
  deps: Pick<FactorDependencies, 'config' | 'users' | 'factors'>,
  userId: string,
): Promise<boolean> {
  const home = await homeOf(deps, userId);
  if (home?.editsEmail !== true || home.connection.strategy !== DATABASE) return false;
  if (codeKinds(home.connection).includes('phone_number')) return true;
  if (enabledFactors(deps).some(({ kind }) => kind === 'sms')) return true;
  return (await deps.config.connections()).some(({ strategy }) => strategy === sms.name);
}

/**
 * Sends a code to a number.
 * @returns the number in E.164; undefined for what is none.
 * @throws AuthError 429 where there were too many, 400 and 503 where it cannot be sent.
 */
export async function askForPhone(
  deps: FactorDependencies,
  actor: Actor,
  typed: string,
): Promise<string | undefined> {
  const phone = numberOf(typed);
  if (phone === undefined) return undefined;
  const asked = { purpose: PURPOSE, channel: 'sms', kind: 'mfa_sms', to: phone, isEnrollment: true } as const;
  return (await sendCode(deps, actor, asked)) ? phone : undefined;
}

/**
 * Sets the number that a code was sent to: once, and not by a login from before a new password.
 * @returns `taken` where another user of the connection has the number; `wrong` for a wrong code.
 */
export async function provePhone(
  deps: FactorDependencies,
  actor: Actor,
  code: string,
): Promise<'set' | 'taken' | 'wrong'> {
  const phone = await useCode(deps, actor, PURPOSE, code);
  if (phone === undefined) return 'wrong';
  try {
    const after = await deps.users.update(actor.user.id, { phone_number: phone, phone_verified: true });
    if (after === undefined) return 'wrong';
    if (await isStillGood(deps, actor)) return 'set';
    // A new password was set meanwhile, perhaps by the owner of the address: no login code goes to this number.
    await deps.users.update(actor.user.id, { phone_verified: false });
    return 'wrong';
  } catch (thrown) {
    // They have proved that the number is theirs: that another account has it is no secret.
    if (thrown instanceof UniqueKeyError) return 'taken';
    throw thrown;
  }
}
