// Reports a change of an account: by mail to its user, and in the log.

import type { Context } from 'koa';
import type { AccountChange } from '../../../capabilities/delivery/delivery-messages.ts';
import { languagesOf } from '../../../http/languages.ts';
import type { EventType } from '../../../records/base/log-events.ts';
import type { User } from '../../../users/user.ts';
import type { FactorDependencies } from '../../factors/factor.ts';
import type { PageActor } from './account-session.ts';

export type NoticeDependencies = Pick<FactorDependencies, 'events' | 'messages'>;

/** @param type the type of the log event. */
export function recordChange(
  { events }: Pick<NoticeDependencies, 'events'>,
  ctx: Context,
  { user, connection, clientId }: Pick<PageActor, 'user' | 'connection' | 'clientId'>,
  { type, description }: { type: EventType; description: string },
): void {
  events.record({
    type,
    user_id: user.id,
    client_id: clientId,
    connection,
    ip: ctx.ip,
    description,
    ...(user.email !== undefined && { user_name: user.email }),
  });
}

/**
 * Mails the user a notice of a change, in case somebody else made it: to the address before the change, if it was
 * verified.
 */
export async function notifyUser(
  { messages }: Pick<NoticeDependencies, 'messages'>,
  ctx: Context,
  user: User,
  change: AccountChange,
): Promise<void> {
  if (user.email === undefined || !user.email_verified) return;
  const notice = { user, change, languages: languagesOf(ctx), ip: ctx.ip };
  await messages.post('account_changed', { ...notice, to: user.email });
}
