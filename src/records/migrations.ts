// Migrations of records from older releases.
import { strategyRecord } from './connections.ts';
import { lookupEmail } from './email.ts';
import { ADDRESS_KINDS, addressKey, type IdentityRecord, identityId } from './identities.ts';
import type { Frozen } from './record.ts';
import type { UserRecord } from './users.ts';

/** The collections of users and of their identities: of the tenant's users, and of its administrators. */
const OF_PEOPLE = [
  { users: 'users', identities: 'identities' },
  { users: 'administratorUsers', identities: 'administratorIdentities' },
] as const;
type Users = (typeof OF_PEOPLE)[number]['users'];
type Identities = (typeof OF_PEOPLE)[number]['identities'];

/** A write of a migration. */
export type MigrationWrite =
  | { collection: Users; put: UserRecord }
  | { collection: Identities; insert: IdentityRecord }
  | { collection: Users; update: string; change(current: UserRecord): UserRecord }
  | { collection: Identities; update: string; change(current: IdentityRecord): IdentityRecord };

/** Returns the identities in a collection by one of its indexes. */
type FindIdentities = (
  collection: Identities,
  index: 'address' | 'user',
  value: string,
) => Promise<readonly Frozen<IdentityRecord>[]>;

/** A migration, which runs once in each store. */
export interface Migration {
  /** The name under which the store records that it ran. */
  id: string;
  /** The collection whose records are migrated. */
  collection: Users | Identities;
  /**
   * Whether stores in PostgreSQL may need it: it is newer than that engine. Several processes may run it at once, so it
   * must not matter if a record is migrated twice.
   */
  isForPostgres: boolean;
  /**
   * Returns the writes that replace a record, applied together; none if the record has the current form. A record that
   * cannot get it, because another one has its key, stays as it is.
   */
  writes(record: object, find: FindIdentities): Promise<readonly MigrationWrite[] | KeyTaken>;
}

/** A record that stays as it is. */
export interface KeyTaken {
  /** In English, for the log. */
  message: string;
  /** The ids of the two users. */
  users: readonly string[];
}

/** A user in the older form, with the identities inside. */
interface UserWithIdentities extends UserRecord {
  identities?: { provider: string; user_id: string; connection: string; isSocial: boolean }[];
}

/** All migrations, in order. */
export const migrations: readonly Migration[] = [
  {
    id: 'identities',
    collection: 'users',
    isForPostgres: false,
    writes: async (record) => {
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
  ...OF_PEOPLE.flatMap(internationalDomains),
];

/** Returns an address with the one spelling of its domain; undefined if it has it already, or has none. */
function respelled(email: string | undefined): string | undefined {
  const next = email === undefined ? undefined : lookupEmail(email);
  return next === email ? undefined : next;
}

/**
 * Returns the migrations that give addresses with an international domain one spelling. An identity and its user change
 * together. Of two accounts that have one address in two spellings, the one with the spelling of browsers keeps it.
 */
function internationalDomains({ users, identities }: (typeof OF_PEOPLE)[number]): Migration[] {
  return [
    {
      id: `international-domains:${identities}`,
      collection: identities,
      isForPostgres: true,
      writes: async (record, find) => {
        const identity = record as IdentityRecord;
        const { email } = identity;
        const next = respelled(email);
        if (next === undefined) return [];
        const [other] = await find(identities, 'address', addressKey(identity.connection, 'email', next));
        if (other !== undefined)
          return {
            message:
              'two users have one e-mail address, in two spellings of its domain; each logs in with the spelling that is stored: change one address, or link the users',
            users: [identity.user_id, other.user_id],
          };
        const change = <T extends { email?: string }>(current: T): T =>
          current.email === email ? { ...current, email: next } : current;
        return [
          { collection: identities, update: identity.id, change },
          // The address of a linked identity is not the user's.
          ...(identity.profile === undefined
            ? [{ collection: users, update: identity.user_id, change } as const]
            : []),
        ];
      },
    },
    {
      id: `international-domains:${users}`,
      collection: users,
      isForPostgres: true,
      writes: async (record, find) => {
        const { id, email } = record as UserRecord;
        const next = respelled(email);
        if (next === undefined) return [];
        // An identity that stayed as it is has the address of its user.
        const own = await find(identities, 'user', id);
        if (own.some((one) => one.email === email)) return [];
        const change = (current: UserRecord) =>
          current.email === email ? { ...current, email: next } : current;
        return [{ collection: users, update: id, change }];
      },
    },
  ];
}

/** Returns the user's identifiers that connections of a strategy use. */
function ownAddresses(
  user: UserRecord,
  provider: string,
): Pick<IdentityRecord, 'unique' | 'email' | 'username' | 'phone_number'> {
  const unique = (strategyRecord(provider)?.unique ?? []).filter((kind) => user[kind] !== undefined);
  const kinds = ADDRESS_KINDS.filter((kind) => unique.includes(kind));
  return { ...Object.fromEntries(kinds.map((kind) => [kind, user[kind]])), unique };
}
