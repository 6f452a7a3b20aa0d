// Tells the operator when users turn out to be identified by a name: where a connection's options do not say it, only a
// login shows what the provider or script sends. This wraps the `users` that all features get, so that no way in bypasses it.
import { lookupEmail } from '../records/base/email.ts';
import type { EventType } from '../records/base/log-events.ts';
import { reassignedText } from '../records/connections/user-identifiers.ts';
import type { ExpectedConnection } from './connection-check.ts';
import type { Users } from './users.ts';
import { userEvents } from './users-declaration.ts';

/** A user as an identity provider or custom database names them. */
interface NamedUser extends ExpectedConnection {
  upstreamId: string;
  profile: Readonly<Record<string, unknown>>;
  /** @see UpstreamUser.idIs */
  idIs?: string | undefined;
}

interface NoticeDependencies {
  record(event: { type: EventType; connection: string; description: string }): void;
}

/** Members of a profile that people choose, get and lose. */
const NAMES = ['username', 'nickname', 'preferred_username', 'login', 'upn', 'samaccountname', 'uid', 'name'];

const INSTEAD = 'have the permanent id of the account sent, and say so in the options or the script';

/**
 * Returns `users` that record an event at the first login of a connection whose users are identified by a name: once for each
 * connection, until the server starts again.
 */
export function withIdentifierNotices<U extends Users>(users: U, { record }: NoticeDependencies): U {
  const told = new Set<string>();
  const notice = ({ connection, connectionId = connection, ...user }: NamedUser): void => {
    const is = told.has(connectionId) ? undefined : nameIn({ connection, ...user });
    if (is === undefined) return;
    told.add(connectionId);
    record({
      type: userEvents.identifier_reassignable,
      connection,
      description: reassignedText({ name: connection, is, instead: INSTEAD }),
    });
  };
  return {
    ...users,
    fromUpstream: async (upstream) => {
      const found = await users.fromUpstream(upstream);
      if (found !== undefined && upstream.stable === undefined) notice(upstream);
      return found;
    },
    mirror: async (mirrored) => {
      const found = await users.mirror(mirrored);
      if (found !== undefined) notice(mirrored);
      return found;
    },
    move: async (moved) => {
      const found = await users.move(moved);
      if (found !== undefined) notice(moved);
      return found;
    },
  };
}

/** Returns what name an id is; undefined if it is none. */
function nameIn({ connection, upstreamId, profile, idIs }: NamedUser): string | undefined {
  const start = `${connection}|`;
  const id = upstreamId.startsWith(start) ? upstreamId.slice(start.length) : upstreamId;
  if (idIs !== undefined) return idIs;
  if (lookupEmail(id) !== undefined) return 'an e-mail address';
  const isId = (value: unknown) => typeof value === 'string' && value.toLowerCase() === id.toLowerCase();
  const member = NAMES.find((name) => isId(profile[name]));
  return member && `the ${member} of the profile`;
}
