// What is told of a change of an account: to its user by mail, and to the log.

import type { Context } from 'koa';
import type { AccountChange } from '../../delivery/messages.ts';
import type { FactorDependencies } from '../../factors/factor.ts';
import { languagesOf } from '../../http/languages.ts';
import type { EventType } from '../../records/log-events.ts';
import type { User } from '../../users/user.ts';
import type { AtAccount } from './session.ts';

export type NoticeDependencies = Pick<FactorDependencies, 'events' | 'messages'>;

/** Records what somebody at the page has done. @param type of the log event. */
export function recordChange(
  { events }: Pick<NoticeDependencies, 'events'>,
  ctx: Context,
  { user, connection, clientId }: Pick<AtAccount, 'user' | 'connection' | 'clientId'>,
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
 * Tells a user of a change that somebody else must not make unseen: at the address that was theirs before it, if they had
 * proved it.
 */
export async function tellUser(
  { messages }: Pick<NoticeDependencies, 'messages'>,
  ctx: Context,
  user: Pick<User, 'email' | 'email_verified'>,
  change: AccountChange,
): Promise<void> {
  if (user.email === undefined || !user.email_verified) return;
  await messages.post('account_changed', { to: user.email, change, languages: languagesOf(ctx), ip: ctx.ip });
}
