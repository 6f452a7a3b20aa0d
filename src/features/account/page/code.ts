// A code that is sent to the user and typed at the page. It is valid only in the session that asked for it, for
// three tries.
import type { MessageKind } from '../../../capabilities/delivery/delivery-messages.ts';
import { AuthError } from '../../../http/errors.ts';
import { DeliveryError } from '../../../records/base/message-transport.ts';
import type { FactorDependencies } from '../../factors/factor.ts';
import { accountLimits } from '../account-declaration.ts';
import type { Actor } from '../actor.ts';

/** Lifetime of a code in seconds. */
const CODE_SECONDS = 300;
const DIGITS = 6;

interface CodeRequest {
  purpose: string;
  channel: 'sms' | 'email';
  kind: Extract<MessageKind, 'mfa_sms' | 'mfa_oob_code'>;
  to: string;
  data?: Record<string, unknown>;
  isEnrollment?: boolean;
}

/**
 * @returns false when nothing can be sent to the address.
 * @throws AuthError 429 for too many codes; 503 when the code cannot be sent now.
 */
export async function sendCode(
  deps: FactorDependencies,
  { user, clientId, login, languages, ip }: Actor,
  { purpose, channel, kind, to, data = {}, isEnrollment = false }: CodeRequest,
): Promise<boolean> {
  if (!(await deps.rateLimits.spend(accountLimits.accountMail, user.id)))
    throw new AuthError(429, 'too_many_requests', 'Too many messages for this user. Try again later.');
  await deps.limitDestination(`${channel}\n${to}`);
  const { secret, ref, save } = deps.challenges.prepareCode({
    purpose,
    subject: subjectOf(user, login),
    askers: [login.id],
    userId: user.id,
    session: login.id,
    ttlSeconds: CODE_SECONDS,
    digits: DIGITS,
    data: { ...data, to, credentialVersion: login.credentialVersion },
  });
  const application = await deps.config.client(clientId);
  const notice = { to, application, user, code: secret, languages, ip, isEnrollment };
  const message = deps.messages.prepare(kind, notice, { ref, ttlSeconds: CODE_SECONDS });
  await save([message.write]);
  try {
    await message.send();
    return true;
  } catch (thrown) {
    if (!(thrown instanceof DeliveryError)) throw thrown;
    if (thrown.code === 'invalid-number') return false;
    const text = 'The message could not be sent. Try again in a few minutes.';
    throw new AuthError(503, 'temporarily_unavailable', text, { cause: thrown });
  }
}

/** A code is bound to its session, because somebody else may have another session of the same user. */
const subjectOf = (user: Actor['user'], login: Actor['login']) => `${user.id}\n${login.id}`;

/** @returns the address it was sent to; undefined when it is wrong, or the password was changed since. */
export async function useCode(
  { challenges }: Pick<FactorDependencies, 'challenges'>,
  { user, login }: Actor,
  purpose: string,
  code: string,
): Promise<string | undefined> {
  const verifiedChallenge = await challenges.try(
    purpose,
    subjectOf(user, login),
    code.replace(/[\s-]/g, ''),
    {
      spend: true,
      askers: [login.id],
      callerKey: undefined,
    },
  );
  if (verifiedChallenge === undefined || verifiedChallenge.data.credentialVersion !== login.credentialVersion)
    return undefined;
  return String(verifiedChallenge.data.to);
}
