// A login between its first factor and its second: kept beside the request, by the server.
import type Provider from 'oidc-provider';
import type { Login } from '../users/login.ts';
import type { Users } from '../users/users.ts';
import { isCurrent } from './admission.ts';
import { MFA_REASON } from './policy.ts';
import { credentialVersionOf } from './settle.ts';

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
  const open = await provider.Session.findByUid(session.uid);
  if (open?.accountId !== userId) return undefined;
  // A session may be kept when a new password is set; for a second factor the password is then asked for again.
  const credentialVersion = credentialVersionOf(open);
  if (!(await isCurrent(users, { userId, credentialVersion }))) return undefined;
  const { connection = '' } = open as { connection?: string };
  return { userId, amr: [...(open.amr ?? [])], connection, credentialVersion };
}
