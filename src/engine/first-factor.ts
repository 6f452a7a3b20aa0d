// A login between its first factor and its second: kept beside the request, by the server.
import type Provider from 'oidc-provider';
import type { Users } from '../users/users.ts';
import { MFA_REASON } from './policy.ts';

type Interaction = InstanceType<Provider['Interaction']>;

/** A login that lacks its second factor. Kept by the server: the browser has no say in it. */
export interface FirstFactor {
  userId: string;
  /** Authentication methods (RFC 8176 §2). */
  amr: readonly string[];
  connection?: string | undefined;
  /** When the user's password was last set, as it was then; empty for never. None where the session is meant. */
  passwordSetAt?: string;
}

/** The first factor of this request; or of the session, where it lacks nothing but the second. */
export function firstFactorOf(interaction: Interaction): FirstFactor | undefined {
  const { firstFactor } = (interaction.lastSubmission ?? {}) as { firstFactor?: FirstFactor };
  if (firstFactor !== undefined) return firstFactor;
  const { session, prompt } = interaction;
  const onlyMfa = prompt.name === 'login' && prompt.reasons.length === 1 && prompt.reasons[0] === MFA_REASON;
  if (!onlyMfa || session?.accountId === undefined) return undefined;
  return { userId: session.accountId, amr: [...(session.amr ?? [])] };
}

/** A new password ends what was begun with the old one, and the end of a session what was begun in it. */
export async function isStillGood(
  provider: Provider,
  users: Users,
  { session }: Interaction,
  { userId, passwordSetAt }: FirstFactor,
): Promise<boolean> {
  if (passwordSetAt !== undefined) {
    return ((await users.get(userId))?.last_password_reset ?? '') === passwordSetAt;
  }
  const open = session?.uid === undefined ? undefined : await provider.Session.findByUid(session.uid);
  return open?.accountId === userId;
}
