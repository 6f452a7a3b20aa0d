// What is told of logins, in the tenant's log events: success when there is something to show for it, failure when
// there is nothing, and not what only may become one.
import type { Events } from '../tenant/events.ts';
import type { Login } from '../users/login.ts';
import type { Users } from '../users/users.ts';

export interface LoginEventsDependencies {
  users: Users;
  events: Events;
}

/** Where a login is made for. */
interface Place {
  clientId: string;
  ip: string;
}

/** Tells of a login that has ended well (`s`), has ended otherwise (`f`), or waits for a second factor (`mfar`). */
export async function tellLogin(
  { users, events }: LoginEventsDependencies,
  type: 's' | 'f' | 'mfar',
  { userId, connection }: Pick<Login, 'userId' | 'connection'>,
  { clientId, ip, description }: Place & { description?: string },
): Promise<void> {
  const user = await users.get(userId);
  const name = user?.email ?? user?.username ?? user?.phone_number;
  events.record({
    type,
    client_id: clientId,
    user_id: userId,
    ip,
    ...(connection !== '' && { connection }),
    ...(name !== undefined && { user_name: name }),
    ...(description !== undefined && { description }),
  });
}
