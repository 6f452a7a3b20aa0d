// The user of somebody whom a connection has verified elsewhere: made at the first login, refreshed at each.
import type { Connection } from '../../records/collections.ts';
import { commonOptions } from '../../records/upstream.ts';
import type { Events } from '../../tenant/events.ts';
import type { User } from '../../users/user.ts';
import type { Users } from '../../users/users.ts';
import { type RedirectStrategy, type UpstreamIdentity, upstreamFault } from '../redirect.ts';

/** Characters of what a provider calls a user. */
const LONGEST_ID = 512;
/** Characters of a profile, as JSON. */
const LARGEST_PROFILE = 100_000;

/** How an identity was verified. */
interface Verified {
  clientId: string;
  connection: Connection;
  strategy: Pick<RedirectStrategy, 'name' | 'isSocial' | 'idsWithin'>;
  /** Whose login it is, by address. */
  ip: string;
}

/** The user. @throws AuthError by {@link upstreamFault} for an identity that nobody can be known by. */
export async function userOf(
  { users, events }: { users: Users; events: Events },
  { clientId, connection, strategy, ip }: Verified,
  { id, profile, metadata, grant }: UpstreamIdentity,
): Promise<User> {
  refuseUnusable({ id });
  if (JSON.stringify(profile).length > LARGEST_PROFILE) {
    throw upstreamFault('access_denied', 'The profile of the identity provider is too large.');
  }
  const options = commonOptions(connection.options);
  const found = await users.fromUpstream({
    connection: connection.name,
    provider: strategy.name,
    isSocial: strategy.isSocial,
    // Names of connections have no bar.
    upstreamId: strategy.idsWithin === 'connection' ? `${connection.name}|${id}` : id,
    profile,
    metadata,
    grant,
    rootAttributes: options.set_user_root_attributes,
    nonPersistent: options.non_persistent_attrs,
  });
  if (found === undefined) {
    throw upstreamFault('access_denied', 'The user is known by another connection.');
  }
  const { user, isNew } = found;
  if (isNew) {
    const about = { client_id: clientId, connection: connection.name, user_id: user.id, ip };
    events.record({ type: 'ss', ...about, ...(user.email !== undefined && { user_name: user.email }) });
  }
  return user;
}

/** @throws AuthError by {@link upstreamFault} for an id that nobody can be known by. */
export function refuseUnusable({ id }: Pick<UpstreamIdentity, 'id'>): void {
  // Half of a character stands in no address and no UTF-8, where it becomes the same as every other half.
  if (id !== '' && id.length <= LONGEST_ID && !/\p{Cc}/u.test(id) && id.isWellFormed()) return;
  throw upstreamFault('access_denied', 'The identity provider gave no user id that can be used.');
}
