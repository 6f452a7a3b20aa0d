// The message that tells users what was changed of what they log in with: whoever did not do it hears of it.
import type { User } from '../users/user.ts';
import type { Messages, Notice } from './messages.ts';

/** Posts it, to the address that the account had before the change; to nobody where it has none. */
export async function tellOfMethod(
  messages: Pick<Messages, 'post'>,
  kind: 'method_added' | 'method_removed',
  notice: Omit<Notice, 'to'> & { user: User; method: string },
): Promise<void> {
  const { email } = notice.user;
  if (email !== undefined) await messages.post(kind, { ...notice, to: email });
}
