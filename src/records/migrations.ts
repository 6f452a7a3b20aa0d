// Records of older releases, and what becomes of them.
import { strategyRecord } from './connections.ts';
import { ADDRESS_KINDS, type IdentityRecord, identityId } from './identities.ts';
import type { UserRecord } from './users.ts';

/** One change of what is stored, made once in each store. */
export interface Migration {
  /** Its name, which the store keeps when it was made. */
  id: string;
  /** The collection whose records are changed. */
  collection: 'users';
  /** @returns what is written in place of a record, as one; nothing where the record is of the present form. */
  writes(
    record: object,
  ): ({ collection: 'users'; put: UserRecord } | { collection: 'identities'; insert: IdentityRecord })[];
}

/** A user as they were kept when identities were part of them. */
interface UserWithIdentities extends UserRecord {
  identities?: { provider: string; user_id: string; connection: string; isSocial: boolean }[];
}

/** In the order in which they are made. */
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
            // In a connection they share, the first of two has the address.
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

/** The user's addresses that name them in connections of a strategy. */
function ownAddresses(
  user: UserRecord,
  provider: string,
): Pick<IdentityRecord, 'unique' | 'email' | 'username' | 'phone_number'> {
  const unique = (strategyRecord(provider)?.unique ?? []).filter((kind) => user[kind] !== undefined);
  const kinds = ADDRESS_KINDS.filter((kind) => unique.includes(kind));
  return { ...Object.fromEntries(kinds.map((kind) => [kind, user[kind]])), unique };
}
