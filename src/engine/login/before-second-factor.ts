// Finds the login that waits for its second factor.
import type Provider from 'oidc-provider';
import type { Login } from '../../users/login.ts';
import { isUnattended } from '../../users/user-acts.ts';
import type { Users } from '../../users/users.ts';
import { isCredentialCurrent } from '../admission/admission.ts';
import { transferOf, wouldEnroll } from '../admission/exchange-context.ts';
import type { SecondFactor } from '../admission/second-factor.ts';
import { connectionOf, credentialVersionOf, presenceOf, providerSessionOf } from '../session/sessions.ts';
import { LACKS_SECOND_FACTOR } from './policy.ts';

type Interaction = InstanceType<Provider['Interaction']>;

/**
 * Returns the login that lacks its second factor: that of this request, or of the browser's session (step-up).
 * @param ip the user's present address.
 * @returns undefined when there is none or it does not hold any more: a new password ends logins with the old one,
 *   and the end of a session ends its step-ups.
 */
export async function loginBeforeSecondFactor(
  provider: Provider,
  { users, secondFactor }: { users: Users; secondFactor: Pick<SecondFactor, 'enrolledFactors'> },
  { lastSubmission, session, prompt }: Interaction,
  ip: string,
): Promise<Login | undefined> {
  const { firstFactor } = (lastSubmission ?? {}) as { firstFactor?: Login };
  const wouldEnrollFactor = async (login: Pick<Login, 'userId' | 'presence'>) =>
    isUnattended(login) && wouldEnroll(secondFactor, login, await users.get(login.userId));
  if (firstFactor !== undefined) {
    const holds = await isCredentialCurrent(users, firstFactor);
    return holds && !(await wouldEnrollFactor(firstFactor)) ? firstFactor : undefined;
  }
  const lacksNothingElse =
    prompt.name === 'login' && prompt.reasons.length === 1 && prompt.reasons[0] === LACKS_SECOND_FACTOR;
  const userId = session?.accountId;
  if (!lacksNothingElse || userId === undefined || session?.uid === undefined) return undefined;
  const openSession = await provider.Session.findByUid(session.uid);
  if (openSession?.accountId !== userId) return undefined;
  // A session may survive the change of a password, but a step-up in it then asks for the password again.
  const credentialVersion = credentialVersionOf(openSession);
  if (!(await isCredentialCurrent(users, { userId, credentialVersion }))) return undefined;
  const presence = presenceOf(openSession);
  if (await wouldEnrollFactor({ userId, presence })) return undefined;
  return {
    userId,
    connection: connectionOf(openSession) ?? '',
    amr: [...(openSession.amr ?? [])],
    presence,
    authTime: openSession.loginTs ?? 0,
    // The present address, not that of the login: the session may be used from elsewhere now.
    ip,
    credentialVersion,
    providerSession: providerSessionOf(openSession),
    transfer: transferOf(openSession),
  };
}
