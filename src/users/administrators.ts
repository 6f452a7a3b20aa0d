// Administrators are users in collections of their own, so that queries for users of the tenant never find them.

import type { CollectionName } from '../records/collections.ts';
import { CONSOLE_DIRECTORY, isAdministratorId } from '../records/users/administrators.ts';
import type { Store, Write } from '../store/contract.ts';
import type { UsersDependencies } from './user.ts';
import { createUsers, type TenantUsers, type Users } from './users.ts';

/** The collections that contain the administrators' records, by the collection of the users'. */
const NAMES: Partial<Record<CollectionName, CollectionName>> = {
  users: 'administratorUsers',
  identities: 'administratorIdentities',
  credentials: 'administratorCredentials',
};

/** The users who log in to the console. */
export interface Administrators extends Users {
  readonly whose: 'administrators';
}

/** The users of the tenant and the administrators together. */
export interface AllUsers extends Users {
  readonly whose: 'all';
}

export function createAdministrators(deps: UsersDependencies): Administrators {
  return { ...createUsers({ ...deps, store: administratorStore(deps.store) }), whose: 'administrators' };
}

function administratorStore(store: Store): Store {
  return {
    ...store,
    // The collections of administrators have the types of those of users.
    collection: (name) => store.collection(NAMES[name] ?? name) as never,
    batch: (writes) => store.batch(writes.map(ofAdministrator)),
  };
}

function ofAdministrator(write: Write): Write {
  return { ...write, collection: NAMES[write.collection] ?? write.collection } as Write;
}

/**
 * Returns the users of the tenant and the administrators together, for logins of both. The id of a user or the name of a
 * connection decides which of the two is asked. Functions that take neither find only users of the tenant.
 */
export function withAdministrators(users: TenantUsers, administrators: Administrators): AllUsers {
  const byId = (userId: string) => (isAdministratorId(userId) ? administrators : users);
  const byName = (connection: string) => (connection === CONSOLE_DIRECTORY ? administrators : users);
  return {
    ...users,
    whose: 'all',
    get: (id) => byId(id).get(id),
    findInConnection: (one, identifier) => byName(one.name).findInConnection(one, identifier),
    idInConnection: (one, identifier) => byName(one.name).idInConnection(one, identifier),
    idByAddress: (address) => byName(address.connection).idByAddress(address),
    findByAddress: (address) => byName(address.connection).findByAddress(address),
    identityOf: (connection, id) => byName(connection).identityOf(connection, id),
    identityInConnection: (one, identifier) => byName(one.name).identityInConnection(one, identifier),
    identitiesOf: (id) => byId(id).identitiesOf(id),
    permissionsAt: (user, ...asked) => byId(user.id).permissionsAt(user, ...asked),
    create: (user) => byName(user.identity.connection).create(user),
    verifyPassword: (id, password) => byId(id ?? '').verifyPassword(id, password),
    passwordOf: (id, by) =>
      (by === undefined ? byId(id ?? '') : byName(by.connection.name)).passwordOf(id, by),
    hasPassword: (home) => byId(home).hasPassword(home),
    credentialVersion: (id) => byId(id).credentialVersion(id),
    isUsedBefore: (home, ...asked) => byId(home).isUsedBefore(home, ...asked),
    setPassword: (id, ...set) => byId(id).setPassword(id, ...set),
    recordNewPassword: (id, ...set) => byId(id).recordNewPassword(id, ...set),
    link: (id, ...other) => byId(id).link(id, ...other),
    unlink: (id, ...identity) => byId(id).unlink(id, ...identity),
    stillWrite: (judged) =>
      isAdministratorId(judged.id) ? ofAdministrator(users.stillWrite(judged)) : users.stillWrite(judged),
    declineLink: (login, other) => byId(login.userId).declineLink(login, other),
    loginWrite: (id, ip) =>
      isAdministratorId(id) ? ofAdministrator(administrators.loginWrite(id, ip)) : users.loginWrite(id, ip),
    proveEmail: (id, email) => byId(id).proveEmail(id, email),
    confirmEmail: (id, email) => byId(id).confirmEmail(id, email),
    remove: (id, by) => byId(id).remove(id, by),
    update: (id, ...change) => byId(id).update(id, ...change),
  };
}
