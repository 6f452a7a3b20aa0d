// The keys, indexes and searchable fields of users and identities.
import type { CollectionSpec, Key } from './collection-spec.ts';
import { ADDRESS_KINDS, type AddressKind, addressOf, type IdentityRecord } from './identities.ts';
import { searchTerms } from './search-terms.ts';
import type { UserRecord } from './users.ts';

const uniqueAddress =
  (kind: AddressKind): Key<IdentityRecord> =>
  (identity) =>
    identity.unique.includes(kind) ? addressOf(identity, kind) : undefined;

export const usersSpec: CollectionSpec<UserRecord> = {
  unique: {},
  indexes: {
    email: (user) => user.email,
    role: (user) => user.roles,
    search: searchTerms,
    lastLoginDay: (user) => user.last_login?.slice(0, 'YYYY-MM-DD'.length),
  },
  fields: {
    email: 'text',
    email_verified: 'boolean',
    username: 'text',
    phone_number: 'text',
    name: 'text',
    given_name: 'text',
    family_name: 'text',
    nickname: 'text',
    blocked: 'boolean',
    created_at: 'text',
    updated_at: 'text',
    last_login: 'text',
    last_ip: 'text',
    logins_count: 'number',
    user_metadata: 'members',
    app_metadata: 'members',
  },
  indexed: ['email', 'created_at'],
};

export const identitiesSpec: CollectionSpec<IdentityRecord> = {
  unique: {
    email: uniqueAddress('email'),
    username: uniqueAddress('username'),
    phone_number: uniqueAddress('phone_number'),
  },
  indexes: {
    user: (identity) => identity.user_id,
    connection: (identity) => identity.connection,
    address: (identity) => ADDRESS_KINDS.flatMap((kind) => addressOf(identity, kind) ?? []),
    // Each with its user, for `of` filters.
    held: (one) => [
      `connection=${one.connection}\n${one.user_id}`,
      `provider=${one.provider}\n${one.user_id}`,
      `user_id=${one.upstream_id}\n${one.user_id}`,
    ],
  },
  sealed: ['upstream'],
};
