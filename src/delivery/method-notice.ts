// The message that tells users what was changed of what they log in with: whoever did not do it hears of it.
import type { User } from '../users/user.ts';
import type { Messages, Notice } from './messages.ts';

interface TellingDependencies {
  messages: Pick<Messages, 'post'>;
  rateLimits: { spend(limit: 'methodMail', userId: string): Promise<boolean> };
}

/**
 * Posts it, to the address that the account had before the change; to nobody where it has none. An address may be somebody
 * else's, who never proved it: more than a few in a while are not sent.
 */
export async function tellOfMethod(
  { messages, rateLimits }: TellingDependencies,
  kind: 'method_added' | 'method_removed',
  notice: Omit<Notice, 'to'> & { user: User; method: string },
): Promise<void> {
  const { id, email } = notice.user;
  if (email === undefined || !(await rateLimits.spend('methodMail', id))) return;
  await messages.post(kind, { ...notice, to: email });
}
