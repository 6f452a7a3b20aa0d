// A login between its first and second factor, kept on the server with the request.
import type Provider from 'oidc-provider';
import type { Login, Transfer } from '../users/login.ts';
import type { Users } from '../users/users.ts';
import { isCurrent } from './admission.ts';
import { connectionOf, credentialVersionOf, providerSessionOf } from './browser-login.ts';
import { transferOf, wouldEnroll } from './handed-over.ts';
import { LACKS_SECOND_FACTOR } from './policy.ts';
import type { SecondFactor } from './second-factor.ts';

type Interaction = InstanceType<Provider['Interaction']>;

/**
 * The login that lacks its second factor: that of this request, or of the browser's session (step-up).
 * @param ip the user's present address.
 * @returns undefined when there is none, or no longer: a new password ends logins by the old one, the end of a session its
 *   step-ups.
 */
export async function firstFactorOf(
  provider: Provider,
  { users, secondFactor }: { users: Users; secondFactor: Pick<SecondFactor, 'enrolled'> },
  { lastSubmission, session, prompt }: Interaction,
  ip: string,
): Promise<Login | undefined> {
  const { firstFactor } = (lastSubmission ?? {}) as { firstFactor?: Login };
  const enrols = async (userId: string, transfer: Transfer | undefined) =>
    transfer !== undefined && wouldEnroll(secondFactor, transfer, await users.get(userId));
  if (firstFactor !== undefined) {
    const holds = await isCurrent(users, firstFactor);
    return holds && !(await enrols(firstFactor.userId, firstFactor.transfer)) ? firstFactor : undefined;
  }
  const lacksNothingElse =
    prompt.name === 'login' && prompt.reasons.length === 1 && prompt.reasons[0] === LACKS_SECOND_FACTOR;
  const userId = session?.accountId;
  if (!lacksNothingElse || userId === undefined || session?.uid === undefined) return undefined;
  const open = await provider.Session.findByUid(session.uid);
  if (open?.accountId !== userId) return undefined;
  // A session may be kept when a new password is set; for a second factor the password is then asked for again.
  const credentialVersion = credentialVersionOf(open);
  if (!(await isCurrent(users, { userId, credentialVersion }))) return undefined;
  const transfer = transferOf(open);
  if (await enrols(userId, transfer)) return undefined;
  return {
    userId,
    connection: connectionOf(open) ?? '',
    amr: [...(open.amr ?? [])],
    authTime: open.loginTs ?? 0,
    // The present address: whoever has the session's cookie goes on in it, wherever they are now.
    ip,
    credentialVersion,
    providerSession: providerSessionOf(open),
    transfer,
  };
}
