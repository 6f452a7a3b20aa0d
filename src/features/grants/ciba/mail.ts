// The e-mail that asks a user to approve. Its link is no secret: whoever opens it has to log in, and sees what
// waits for them.
import type { Messages } from '../../../capabilities/delivery/messages.ts';
import type { Client } from '../../../records/collections.ts';
import type { User } from '../../../users/user.ts';
import { APPROVAL_PATH } from './callbacks.ts';

export interface MailDependencies {
  baseUrl: string;
  messages: Pick<Messages, 'post'>;
}

/**
 * Queues the e-mail. It is stored when the promise resolves, and sent in the background.
 * @param about.ttlSeconds how long the request waits.
 */
export async function mailApproval(
  { baseUrl, messages }: MailDependencies,
  about: { client: Client; user: User; ip: string; ttlSeconds: number },
): Promise<void> {
  const { client, user, ip, ttlSeconds } = about;
  const url = `${baseUrl}${APPROVAL_PATH}?client_id=${encodeURIComponent(client.client_id)}`;
  const notice = { to: user.email ?? '', application: client, user, url, ip, lifetimeInSeconds: ttlSeconds };
  await messages.post('async_approval', notice, { ttlSeconds });
}
