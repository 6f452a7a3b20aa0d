// A change of the phone number, proved by a code that is sent to it. It is not a second factor, but users log in
// with it if their connection allows that.

import { DATABASE } from '../../../records/connections/connections.ts';
import { codeKinds } from '../../../records/database-options.ts';
import { UniqueKeyError } from '../../../store/contract.ts';
import { isStill } from '../../../users/still.ts';
import { sms } from '../../connections/passwordless/sms.ts';
import type { FactorDependencies } from '../../factors/factor.ts';
import { numberOf } from '../../factors/message/countries.ts';
import { enabledFactors } from '../../factors/policy.ts';
import type { Actor } from '../actor.ts';
import { sendCode, useCode } from './code.ts';
import { editableOf } from './editable.ts';

const PURPOSE = 'account_phone';

/**
 * Returns whether a user may change the number here: it is stored here, and the tenant sends text messages, as
 * second factors or for logins.
 */
export async function editsPhone(
  deps: Pick<FactorDependencies, 'config' | 'users' | 'factors'>,
  userId: string,
): Promise<boolean> {
  const editable = await editableOf(deps, userId);
  if (editable?.editsEmail !== true || editable.connection.strategy !== DATABASE) return false;
  if (codeKinds(editable.connection).includes('phone_number')) return true;
  if (enabledFactors(deps).some(({ kind }) => kind === 'sms')) return true;
  return (await deps.config.connections()).some(({ strategy }) => strategy === sms.name);
}

/**
 * @returns the number in E.164; undefined when it is invalid.
 * @throws AuthError 429 for too many codes; 503 when the code cannot be sent.
 */
export async function sendPhoneCode(
  deps: FactorDependencies,
  actor: Actor,
  typed: string,
): Promise<string | undefined> {
  const phone = numberOf(typed);
  if (phone === undefined) return undefined;
  const request = {
    purpose: PURPOSE,
    channel: 'sms',
    kind: 'mfa_sms',
    to: phone,
    isEnrollment: true,
  } as const;
  return (await sendCode(deps, actor, request)) ? phone : undefined;
}

/**
 * Sets the number that a code was sent to. A code is used once, and ends with a new password.
 * @returns `taken` when another user of the connection has the number; `wrong` for a wrong code.
 */
export async function provePhone(
  deps: FactorDependencies,
  actor: Actor,
  code: string,
): Promise<'set' | 'taken' | 'wrong'> {
  const phone = await useCode(deps, actor, PURPOSE, code);
  if (phone === undefined) return 'wrong';
  try {
    const change = { phone_number: phone, phone_verified: true };
    // Login codes must not go to this number if the owner of the account has ended the login meanwhile.
    const after = await deps.users.update(actor.user.id, change, undefined, isStill(actor.user));
    return after === undefined ? 'wrong' : 'set';
  } catch (thrown) {
    // The user has proved to own the number, so they may know that another account has it.
    if (thrown instanceof UniqueKeyError) return 'taken';
    throw thrown;
  }
}
