// The declarations of users, identities, and what else users have.
import type { AuthenticatorRecord } from './authenticators.ts';
import type { CollectionSpec, Key } from './collection-spec.ts';
import type { ConnectedAccountRecord } from './connected-accounts.ts';
import type { ConsentRecord } from './engine.ts';
import { ADDRESS_KINDS, type AddressKind, addressOf, type IdentityRecord, identityId } from './identities.ts';
import type { PasskeyRecord } from './passkeys.ts';
import type { SamlSessionRecord } from './saml-sessions.ts';
import { searchTerms } from './search-terms.ts';
import type { UserRecord } from './users.ts';

const uniqueAddress =
  (kind: AddressKind): Key<IdentityRecord> =>
  (identity) =>
    identity.unique.includes(kind) ? addressOf(identity, kind) : undefined;

export const usersSpec: CollectionSpec<UserRecord> = {
  writtenFor: { rate: 'the limit signup' },
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
  writtenFor: { rate: 'the limit signup' },
  unique: {
    email: uniqueAddress('email'),
    username: uniqueAddress('username'),
    phone_number: uniqueAddress('phone_number'),
    stable: ({ connection, stable_id: id }) => (id == null ? undefined : identityId(connection, id)),
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

export const authenticatorsSpec: CollectionSpec<AuthenticatorRecord> = {
  writtenFor: { users: 'MAX_CONFIRMED and MAX_UNCONFIRMED in factors' },
  unique: {
    first: (one) => (one.first === true ? one.user_id : undefined),
    credential: (one) => one.webauthn?.credential_id,
  },
  indexes: { user: (one) => one.user_id },
  sealed: ['secret', 'pushEndpoint'],
};

export const connectedAccountsSpec: CollectionSpec<ConnectedAccountRecord> = {
  writtenFor: { users: 'one of each connection' },
  unique: {},
  indexes: { user: (one) => one.user_id, connection: (one) => one.connection_id },
  sealed: ['grant'],
};

export const samlSessionsSpec: CollectionSpec<SamlSessionRecord> = {
  writtenFor: { users: 'one of each application and session' },
  unique: { party: (session) => `${session.client_id}\n${session.session_uid}` },
  indexes: {
    session: (session) => session.session_uid,
    name: (session) => `${session.client_id}\n${session.name_id.value}`,
  },
};

export const passkeysSpec: CollectionSpec<PasskeyRecord> = {
  writtenFor: { users: 'MAX_PASSKEYS' },
  unique: {},
  indexes: { user: (one) => one.user_id },
};

export const consentsSpec: CollectionSpec<ConsentRecord> = {
  writtenFor: { users: 'one of each application and API' },
  unique: {},
  indexes: { user: (consent) => consent.user_id },
};
