// Administrators are users in collections of their own: what asks the store for users does not meet them.
import { CONSOLE_DIRECTORY, isAdministratorId } from '../records/administrators.ts';
import type { CollectionName } from '../records/collections.ts';
import type { Store, Write } from '../store/contract.ts';
import type { Users } from './users.ts';

/** Where what is of a user is kept of an administrator. */
const NAMES: Partial<Record<CollectionName, CollectionName>> = {
  users: 'administratorUsers',
  identities: 'administratorIdentities',
  credentials: 'administratorCredentials',
};

/** A store whose users are the administrators. */
export function administratorStore(store: Store): Store {
  return {
    ...store,
    // What is kept of an administrator has the form of what is kept of a user.
    collection: (name) => store.collection(NAMES[name] ?? name) as never,
    batch: (writes) => store.batch(writes.map(ofAdministrator)),
  };
}

/** A write of a user's, as that of an administrator. */
function ofAdministrator(write: Write): Write {
  return { ...write, collection: NAMES[write.collection] ?? write.collection } as Write;
}

/**
 * The users of the tenant and the administrators together, for what logs both in: each is asked for by id, or by the
 * directory. What finds people by an address alone finds none of the administrators.
 */
export function withAdministrators(users: Users, administrators: Users): Users {
  const byId = (userId: string) => (isAdministratorId(userId) ? administrators : users);
  const byName = (connection: string) => (connection === CONSOLE_DIRECTORY ? administrators : users);
  return {
    ...users,
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
    noteNewPassword: (id, ...set) => byId(id).noteNewPassword(id, ...set),
    link: (id, other) => byId(id).link(id, other),
    unlink: (id, identity) => byId(id).unlink(id, identity),
    declineLink: (login, other) => byId(login.userId).declineLink(login, other),
    loginNote: (id, ip) =>
      isAdministratorId(id) ? ofAdministrator(administrators.loginNote(id, ip)) : users.loginNote(id, ip),
    proveEmail: (id, email) => byId(id).proveEmail(id, email),
    confirmEmail: (id, email) => byId(id).confirmEmail(id, email),
    remove: (id) => byId(id).remove(id),
    update: (id, ...change) => byId(id).update(id, ...change),
  };
}
