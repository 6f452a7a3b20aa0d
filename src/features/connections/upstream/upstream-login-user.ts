// The user of an identity that a provider has verified: created at the first login, updated at every later one.

import type { Connection } from '../../../records/collections.ts';
import { commonOptions } from '../../../records/connections/upstream.ts';
import type { Events } from '../../../tenant/events.ts';
import { expectedConnection } from '../../../users/connection-check.ts';
import type { StableId } from '../../../users/upstream-user.ts';
import type { User } from '../../../users/user.ts';
import type { Users } from '../../../users/users.ts';
import { userEvents } from '../../../users/users-declaration.ts';
import {
  type RedirectStrategy,
  type StableIdentity,
  type UpstreamIdentity,
  upstreamFault,
} from '../redirect.ts';
import { upstreamEvents } from './upstream-declaration.ts';

/** Characters of a provider's user identifier. */
const MAX_ID_LENGTH = 512;
/** Characters of a profile, as JSON. */
const MAX_PROFILE_BYTES = 100_000;

interface IdentitySource {
  clientId: string;
  connection: Connection;
  strategy: Pick<RedirectStrategy, 'name' | 'isSocial' | 'idsWithin'>;
  ip: string;
}

/**
 * Creates or updates the user of a verified identity. A new user is recorded as a sign-up.
 * @throws AuthError by {@link upstreamFault} for an identity that cannot be used.
 */
export async function userOf(
  { users, events }: { users: Users; events: Events },
  { clientId, connection, strategy, ip }: IdentitySource,
  { id, idIs, stable, profile, metadata, grant }: UpstreamIdentity,
): Promise<User> {
  refuseUnusable({ id });
  if (stable !== undefined) refuseUnusable(stable);
  if (JSON.stringify(profile).length > MAX_PROFILE_BYTES) {
    throw upstreamFault('access_denied', 'The profile of the identity provider is too large.');
  }
  const options = commonOptions(connection.options);
  const found = await users.fromUpstream({
    ...expectedConnection(connection),
    provider: strategy.name,
    isSocial: strategy.isSocial,
    upstreamId: upstreamIdOf({ connection, strategy }, id),
    stable: stable && stableIdOf({ connection, strategy }, stable),
    idIs,
    profile,
    metadata,
    grant,
    rootAttributes: options.set_user_root_attributes,
    nonPersistent: options.non_persistent_attrs,
  });
  if (found === undefined) {
    throw upstreamFault('access_denied', 'The user is known by another connection.');
  }
  if ('refused' in found) {
    const { user_id, upstream_id } = found.refused;
    events.record({
      type: upstreamEvents.account_name_reused,
      ...{ client_id: clientId, connection: connection.name, user_id, user_name: upstream_id, ip },
      description: `${stable?.description ?? id} may be another account than that of ${user_id}: see gatehouse users account '${user_id}'`,
    });
    throw upstreamFault('access_denied', REFUSED);
  }
  const { user, isNew } = found;
  if (isNew) {
    const details = { client_id: clientId, connection: connection.name, user_id: user.id, ip };
    events.record({
      type: userEvents.ss,
      ...details,
      ...(user.email !== undefined && { user_name: user.email }),
    });
  }
  return user;
}

/** For a person who has the name of an earlier account, or whose account was moved. */
const REFUSED = 'The account has to be confirmed by an administrator, because its name was in use before.';

/** Returns the part of a user's id after the strategy. A connection's name has no bar, so it is unambiguous. */
function upstreamIdOf(
  { connection, strategy }: Pick<IdentitySource, 'connection' | 'strategy'>,
  id: string,
): string {
  return strategy.idsWithin === 'connection' ? `${connection.name}|${id}` : id;
}

/** Returns how an account is known to the users. */
export function stableIdOf(
  source: Pick<IdentitySource, 'connection' | 'strategy'>,
  { name, ...stable }: StableIdentity,
): StableId {
  return { ...stable, named: upstreamIdOf(source, name), unnamed: upstreamIdOf(source, stable.id) };
}

/** Rejects an empty, overlong or malformed user identifier. @throws AuthError by {@link upstreamFault}. */
export function refuseUnusable({ id }: Pick<UpstreamIdentity, 'id'>): void {
  // A lone surrogate has no UTF-8 form: all of them become U+FFFD, and different identifiers would become the same.
  if (id !== '' && id.length <= MAX_ID_LENGTH && !/\p{Cc}/u.test(id) && id.isWellFormed()) return;
  throw upstreamFault('access_denied', 'The identity provider gave no user id that can be used.');
}
