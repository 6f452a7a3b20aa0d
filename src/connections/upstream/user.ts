// The user of an identity that a provider has verified: created at the first login, updated at every later one.

import type { Connection } from '../../records/collections.ts';
import { commonOptions } from '../../records/upstream.ts';
import type { Events } from '../../tenant/events.ts';
import { expectedConnection } from '../../users/connection-check.ts';
import type { User } from '../../users/user.ts';
import type { Users } from '../../users/users.ts';
import { type RedirectStrategy, type UpstreamIdentity, upstreamFault } from '../redirect.ts';

/** Characters of a provider's user identifier. */
const MAX_ID_LENGTH = 512;
/** Characters of a profile, as JSON. */
const MAX_PROFILE_BYTES = 100_000;

/** How an identity was verified. */
interface IdentitySource {
  clientId: string;
  connection: Connection;
  strategy: Pick<RedirectStrategy, 'name' | 'isSocial' | 'idsWithin'>;
  /** The IP address that the login comes from. */
  ip: string;
}

/**
 * Creates or updates the user of a verified identity. A new user is recorded as a sign-up.
 * @throws AuthError by {@link upstreamFault} for an identity that cannot be used.
 */
export async function userOf(
  { users, events }: { users: Users; events: Events },
  { clientId, connection, strategy, ip }: IdentitySource,
  { id, profile, metadata, grant }: UpstreamIdentity,
): Promise<User> {
  refuseUnusable({ id });
  if (JSON.stringify(profile).length > MAX_PROFILE_BYTES) {
    throw upstreamFault('access_denied', 'The profile of the identity provider is too large.');
  }
  const options = commonOptions(connection.options);
  const found = await users.fromUpstream({
    ...expectedConnection(connection),
    provider: strategy.name,
    isSocial: strategy.isSocial,
    // A connection's name has no "|", so this is unambiguous.
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
    const details = { client_id: clientId, connection: connection.name, user_id: user.id, ip };
    events.record({ type: 'ss', ...details, ...(user.email !== undefined && { user_name: user.email }) });
  }
  return user;
}

/** Rejects an empty, overlong or malformed user identifier. @throws AuthError by {@link upstreamFault}. */
export function refuseUnusable({ id }: Pick<UpstreamIdentity, 'id'>): void {
  // A lone surrogate has no UTF-8 form: all of them become U+FFFD, and different identifiers would become the same.
  if (id !== '' && id.length <= MAX_ID_LENGTH && !/\p{Cc}/u.test(id) && id.isWellFormed()) return;
  throw upstreamFault('access_denied', 'The identity provider gave no user id that can be used.');
}
