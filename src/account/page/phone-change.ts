// A phone number for an account, proved by a code that is sent to it. It is no way in, and no second factor.
import { sms } from '../../connections/passwordless/sms.ts';
import { DeliveryError } from '../../delivery/messages.ts';
import type { FactorDependencies } from '../../factors/factor.ts';
import { numberOf } from '../../factors/message/countries.ts';
import { enabledFactors } from '../../factors/policy.ts';
import { AuthError } from '../../http/errors.ts';
import { DATABASE } from '../../records/connections.ts';
import type { Actor } from '../actor.ts';
import { homeOf } from './home.ts';

const PURPOSE = 'account_phone';
/** How long a code is good, seconds. */
const CODE_SECONDS = 300;
const DIGITS = 6;

/** What is kept beside a code. */
interface Kept {
  phone: string;
  credentialVersion: number;
}

/** Whether a user's number is kept here, and the tenant sends text messages. */
export async function editsPhone(
  deps: Pick<FactorDependencies, 'config' | 'users' | 'factors'>,
  userId: string,
): Promise<boolean> {
  const home = await homeOf(deps, userId);
  if (home?.editsEmail !== true || home.connection.strategy !== DATABASE) return false;
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
  { user, clientId, login: { id: sid, credentialVersion }, languages, ip }: Actor,
  typed: string,
): Promise<string | undefined> {
  const phone = numberOf(typed);
  if (phone === undefined) return undefined;
  if (!(await deps.rateLimits.spend('accountMail', user.id)))
    throw new AuthError(429, 'too_many_requests', 'Too many messages for this user. Try again later.');
  await deps.limitDestination(`sms\n${phone}`);
  const data: Kept = { phone, credentialVersion };
  const { secret, ref, keep } = deps.challenges.prepareCode({
    purpose: PURPOSE,
    subject: user.id,
    askers: [sid],
    userId: user.id,
    ttlSeconds: CODE_SECONDS,
    digits: DIGITS,
    data: { ...data },
  });
  const application = await deps.config.client(clientId);
  const notice = { to: phone, application, user, code: secret, languages, ip, isEnrollment: true };
  const letter = deps.messages.letter('mfa_sms', notice, { ref, ttlSeconds: CODE_SECONDS });
  await keep([letter.write]);
  try {
    await letter.send();
    return phone;
  } catch (thrown) {
    if (!(thrown instanceof DeliveryError)) throw thrown;
    if (thrown.code === 'invalid-number') return undefined;
    const text = 'The message could not be sent. Try again in a few minutes.';
    throw new AuthError(503, 'temporarily_unavailable', text, { cause: thrown });
  }
}

/** Sets the number that a code was sent to: once, and by a login from before no new password. @returns it; undefined for a wrong code. */
export async function provePhone(
  deps: FactorDependencies,
  { user, login: { id: sid, credentialVersion } }: Actor,
  code: string,
): Promise<string | undefined> {
  const met = await deps.challenges.try(PURPOSE, user.id, code.replace(/[\s-]/g, ''), {
    spend: true,
    askers: [sid],
    known: undefined,
  });
  const kept = met?.data as Kept | undefined;
  if (kept === undefined || kept.credentialVersion !== credentialVersion) return undefined;
  const after = await deps.users.update(user.id, { phone_number: kept.phone, phone_verified: true });
  return after === undefined ? undefined : kept.phone;
}
