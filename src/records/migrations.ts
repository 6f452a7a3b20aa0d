// Migrations of records from older releases.
import { strategyRecord } from './connections.ts';
import { ADDRESS_KINDS, type IdentityRecord, identityId } from './identities.ts';
import type { UserRecord } from './users.ts';

/** A migration, which runs once in each store. */
export interface Migration {
  /** The name under which the store records that it ran. */
  id: string;
  /** The collection whose records are migrated. */
  collection: 'users';
  /** @returns the writes that replace a record, applied together; none if the record has the current form. */
  writes(
    record: object,
  ): ({ collection: 'users'; put: UserRecord } | { collection: 'identities'; insert: IdentityRecord })[];
}

/** A user in the older form, with the identities inside. */
interface UserWithIdentities extends UserRecord {
  identities?: { provider: string; user_id: string; connection: string; isSocial: boolean }[];
}

/**
 * All migrations, in order. A store in PostgreSQL runs none when it is opened, because those below are older than it. One
 * that is added must run there, too (src/store/open.ts), once among all processes that start.
 */
export const migrations: readonly Migration[] = [
  {
    id: 'identities',
    collection: 'users',
    writes: (record) => {
      const { identities, ...user } = record as UserWithIdentities;
      if (identities === undefined) return [];
      const connections = identities.map(({ connection }) => connection);
      return [
        ...identities.map(({ user_id, ...identity }, index) => ({
          collection: 'identities' as const,
          insert: {
            ...identity,
            id: identityId(identity.connection, user_id),
            user_id: user.id,
            upstream_id: user_id,
            // If two identities are in one connection, the first gets the identifiers.
            ...(connections.indexOf(identity.connection) === index
              ? ownAddresses(user, identity.provider)
              : { unique: [] }),
          },
        })),
        { collection: 'users', put: user },
      ];
    },
  },
];

/** Returns the user's identifiers that connections of a strategy use. */
function ownAddresses(
  user: UserRecord,
  provider: string,
): Pick<IdentityRecord, 'unique' | 'email' | 'username' | 'phone_number'> {
  const unique = (strategyRecord(provider)?.unique ?? []).filter((kind) => user[kind] !== undefined);
  const kinds = ADDRESS_KINDS.filter((kind) => unique.includes(kind));
  return { ...Object.fromEntries(kinds.map((kind) => [kind, user[kind]])), unique };
}
