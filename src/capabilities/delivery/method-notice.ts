// The message to a user about a change of their credentials, so that a change that somebody else made does not go
// unnoticed.
import type { Limit } from '../../http/limits.ts';
import type { User } from '../../users/user.ts';
import { deliveryLimits } from './delivery-declaration.ts';
import type { Messages, Notice } from './delivery-messages.ts';

interface NotificationDependencies {
  messages: Pick<Messages, 'post'>;
  rateLimits: { spend(limit: Limit, userId: string): Promise<boolean> };
}

/**
 * Sends the message to the address that the account had before the change, if it had one. The owner of an unverified
 * address may be somebody else, so few are sent in a while.
 */
export async function sendMethodNotice(
  { messages, rateLimits }: NotificationDependencies,
  kind: 'method_added' | 'method_removed',
  notice: Omit<Notice, 'to'> & { user: User; method: string },
): Promise<void> {
  const { id, email } = notice.user;
  if (email === undefined || !(await rateLimits.spend(deliveryLimits.methodMail, id))) return;
  await messages.post(kind, { ...notice, to: email });
}
