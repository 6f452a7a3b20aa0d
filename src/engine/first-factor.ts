// A login between its first factor and its second: kept beside the request, by the server.
import type Provider from 'oidc-provider';
import type { Login } from '../users/login.ts';
import type { Users } from '../users/users.ts';
import { isCurrent } from './admission.ts';
import { MFA_REASON } from './policy.ts';

type Interaction = InstanceType<Provider['Interaction']>;

/**
 * The login that lacks its second factor: that of this request; or of the browser's session, where it lacks
 * nothing but the second factor. The browser has no say in it.
 * @returns undefined when there is none, or no more: a new password ends what was begun with the old one, and the
 *   end of a session what was begun in it.
 */
export async function firstFactorOf(
  provider: Provider,
  users: Users,
  { lastSubmission, session, prompt }: Interaction,
): Promise<Login | undefined> {
  const { firstFactor } = (lastSubmission ?? {}) as { firstFactor?: Login };
  if (firstFactor !== undefined) return (await isCurrent(users, firstFactor)) ? firstFactor : undefined;
  const onlyMfa = prompt.name === 'login' && prompt.reasons.length === 1 && prompt.reasons[0] === MFA_REASON;
  const userId = session?.accountId;
  if (!onlyMfa || userId === undefined || session?.uid === undefined) return undefined;
  // Before the session is looked at: one that a new password has not ended yet, it still ends.
  const credentialVersion = await users.credentialVersion(userId);
  const open = await provider.Session.findByUid(session.uid);
  if (open?.accountId !== userId) return undefined;
  const { connection = '' } = open as { connection?: string };
  return { userId, amr: [...(open.amr ?? [])], connection, credentialVersion };
}
