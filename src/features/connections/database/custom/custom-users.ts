// Users of custom databases. Whatever creates one, changes their password or address, or removes them asks the database first.
// This wraps the `users` that all features get, so that no change bypasses the database.
// docs/understand/decisions/connections.md#a-custom-database-is-changed-before-gatehouse-is
import type { Connection } from '../../../../records/collections.ts';
import type { AddressKind } from '../../../../records/connections/identities.ts';
import type { UserRecord } from '../../../../records/users/users.ts';
import type { Random } from '../../../../runtime/secrets.ts';
import { UniqueKeyError } from '../../../../store/contract.ts';
import type { Leases } from '../../../../store/leases.ts';
import type { Config } from '../../../../tenant/config.ts';
import type { Asker } from '../../../../users/asker.ts';
import { type Identity, isLinked, originalUserId } from '../../../../users/changes.ts';
import { connectionDeleted } from '../../../../users/connection-check.ts';
import type { Profile } from '../../../../users/create.ts';
import { requireStill } from '../../../../users/still.ts';
import type { User } from '../../../../users/user.ts';
import type { Users } from '../../../../users/users.ts';
import { type DatabaseRequest, databaseFailed } from './custom-run.ts';
import { conflictReason, customDatabaseOf, mirroredIn } from './custom-user.ts';
import type { CustomDatabases } from './database-custom.ts';

interface CustomUsersDependencies {
  config: Pick<Config, 'connection'>;
  customDatabases: CustomDatabases;
  leases: Pick<Leases, 'afterOthers'>;
  random: Random;
}

type CreateResult = Awaited<ReturnType<Users['create']>>;

interface NewDatabaseUser {
  connection: Connection;
  email: string | undefined;
  username: string | undefined;
  /** Undefined for a user without a password, such as one that a custom token exchange creates. */
  password: string | undefined;
  /** The user's id in the database, if it is known already. */
  id?: string | undefined;
  profile: Profile;
  asker: Asker;
}

/** Returns `users` with every change of a user in a custom database carried out there first. */
export function withCustomDatabases<U extends Users>(users: U, deps: CustomUsersDependencies): U {
  const databaseOf = async (name: string) => customDatabaseOf(deps, await deps.config.connection(name));
  return {
    ...users,
    create: async (newUser) => {
      const { identity, profile = {}, password, asker = {} } = newUser;
      const found = await databaseOf(identity.connection);
      if (found === undefined) return users.create(newUser);
      // The tenant's own code ran meanwhile, and another connection may have the name now.
      if (identity.connectionId !== undefined && identity.connectionId !== found.connection.id)
        throw connectionDeleted();
      const { email, username } = identity.addresses;
      const id = password === undefined ? identity.upstreamId : undefined;
      const candidate = { connection: found.connection, email, username, password, id, profile, asker };
      return createUnlessTaken(
        users,
        deps,
        candidate,
        found.mode === 'moves' ? () => users.create(newUser) : undefined,
      );
    },
    setPassword: async (userId, password, options = {}) => {
      const { home = userId, asker, also, version, by } = options;
      const identities = await users.identitiesOf(userId);
      const identity = identities.find((one) => originalUserId(one) === home);
      const connection = await externalDatabaseOf(deps, identity);
      if (identity === undefined || connection === undefined)
        return users.setPassword(userId, password, options);
      const request = {
        ...requestOf(connection, asker),
        identifier: identity.email ?? identity.username ?? '',
      };
      let isSame = true;
      // A custom database cannot compare the version and set the password in one step, so changes run one after the other.
      await deps.leases.afterOthers(`password ${userId}`, async () => {
        isSame = version === undefined || (await users.credentialVersion(userId)) === version;
        if (!isSame) return;
        await requireStill(users, by);
        await deps.customDatabases.changePassword(request, password);
        await users.recordNewPassword(userId, home, also);
      });
      return isSame;
    },
    update: async (userId, patch, merge, applies) => {
      if ('email' in patch || 'username' in patch || 'email_verified' in patch)
        await changeInDatabase(users, deps, userId, patch, applies);
      return users.update(userId, patch, merge, applies);
    },
    remove: async (userId, by) => {
      for (const identity of await users.identitiesOf(userId)) {
        const connection = await externalDatabaseOf(deps, identity);
        if (connection === undefined) continue;
        const request = { connection, identifier: nameOf(identity) };
        await requireStill(users, by);
        await deps.customDatabases.change(request, 'delete', [identity.upstream_id]);
      }
      await users.remove(userId, by);
    },
  };
}

const nameOf = ({ email, username, upstream_id }: Identity) => email ?? username ?? upstream_id;

/** Returns the connection of an identity if its users stay in the custom database. */
async function externalDatabaseOf(
  deps: Pick<CustomUsersDependencies, 'config' | 'customDatabases'>,
  identity: Pick<Identity, 'connection'> | undefined,
): Promise<Connection | undefined> {
  const found = await customDatabaseOf(deps, identity && (await deps.config.connection(identity.connection)));
  return found?.mode === 'elsewhere' ? found.connection : undefined;
}

function requestOf(
  connection: Connection,
  { clientId, request, organization }: Asker = {},
): Omit<DatabaseRequest, 'identifier'> {
  const ip = typeof request?.ip === 'string' ? request.ip : undefined;
  return { connection, clientId, ip, organization };
}

/**
 * Creates a user, unless an address is taken here or in the custom database.
 * @param createHere creates the user here; without it, the user is created in the custom database and mirrored here.
 * @throws AuthError as {@link CustomDatabases} does.
 */
async function createUnlessTaken(
  users: Users,
  deps: CustomUsersDependencies,
  candidate: NewDatabaseUser,
  createHere: (() => Promise<CreateResult>) | undefined,
): Promise<CreateResult> {
  const taken = await takenAddress(users, deps, candidate, createHere !== undefined);
  if (taken === undefined)
    return createHere === undefined ? createInDatabase(users, deps, candidate) : createHere();
  // Takes as long as hashing a new user's password, so that the time does not reveal that the address is taken.
  await users.verifyPassword(undefined, candidate.password ?? '');
  return { taken };
}

async function takenAddress(
  users: Users,
  { customDatabases }: CustomUsersDependencies,
  { connection, email, username, asker }: Omit<NewDatabaseUser, 'password' | 'profile'>,
  isStoredHere: boolean,
): Promise<AddressKind | undefined> {
  for (const [kind, identifier] of [
    ['email', email],
    ['username', username],
  ] as const) {
    if (identifier === undefined) continue;
    if ((await customDatabases.find({ ...requestOf(connection, asker), identifier })) !== undefined)
      return kind;
    if (!isStoredHere && (await users.identityInConnection(connection, identifier)) !== undefined)
      return kind;
  }
  return undefined;
}

async function createInDatabase(
  users: Users,
  { customDatabases, random }: CustomUsersDependencies,
  { connection, email, username, password, id, profile, asker }: NewDatabaseUser,
): Promise<CreateResult> {
  const name = email ?? username ?? '';
  const request = { ...requestOf(connection, asker), identifier: name };
  const addresses = { ...(email !== undefined && { email }), ...(username !== undefined && { username }) };
  const scriptUser = {
    ...profile,
    ...addresses,
    ...(id !== undefined && { user_id: id }),
    // Scripts expect a password to hash; a random one that nobody knows cannot be used to log in.
    password: password ?? random(32).toString('base64url'),
  };
  if (!(await customDatabases.create(request, scriptUser))) return { taken: 'email' };
  // This gives the user's id, and shows that the user can log in.
  const databaseUser =
    password === undefined
      ? await customDatabases.find(request)
      : await customDatabases.login(request, password);
  if (databaseUser === undefined || databaseUser === 'failed' || 'wrong' in databaseUser)
    throw databaseFailed();
  const { user_metadata, app_metadata } = databaseUser.metadata;
  const metadata = {
    user_metadata: { ...profile.user_metadata, ...user_metadata },
    app_metadata: { ...profile.app_metadata, ...app_metadata },
  };
  const mirrored = await users.mirror({ ...mirroredIn(connection, databaseUser), metadata });
  const identity = mirrored && (await users.identityInConnection(connection, name));
  if (mirrored === undefined || identity === undefined) {
    await customDatabases.recordRefusal(request, 'login', conflictReason(databaseUser));
    throw databaseFailed();
  }
  const { blocked } = profile;
  const user = blocked === undefined ? mirrored.user : await users.update(mirrored.user.id, { blocked });
  return { user: user ?? mirrored.user, identity };
}

// Changes the addresses of a user in a custom database.

interface CustomAddressesDependencies {
  config: Pick<Config, 'connection'>;
  customDatabases: CustomDatabases;
}

/**
 * Changes the addresses of a user in the custom database, before they are changed here.
 * @param applies whether they are changed here; asked right before they are changed there, as the database cannot take
 *   part in the write.
 * @throws UniqueKeyError if another user has one of them, here or there. @throws AuthError 503 if it was not changed there.
 */
async function changeInDatabase(
  users: Users,
  deps: CustomAddressesDependencies,
  userId: string,
  patch: Partial<UserRecord>,
  applies: (current: User) => boolean = () => true,
): Promise<void> {
  const [before, identities] = await Promise.all([users.get(userId), users.identitiesOf(userId)]);
  const identity = identities.find((one) => !isLinked(one));
  const found = await customDatabaseOf(deps, identity && (await deps.config.connection(identity.connection)));
  if (before === undefined || found === undefined) return;
  const change: AddressChange = { email_verified: patch.email_verified };
  for (const kind of ['email', 'username'] as const) {
    const value = patch[kind];
    if (value === undefined || value === before[kind]) continue;
    const request = { connection: found.connection, identifier: value };
    const databaseUser = await deps.customDatabases.find(request);
    const identityHere = await users.identityInConnection(found.connection, value);
    const isTheirs = databaseUser?.upstreamId === identity?.upstream_id;
    if (
      (databaseUser !== undefined && !isTheirs) ||
      (identityHere !== undefined && identityHere.user_id !== userId)
    )
      throw new UniqueKeyError('identities', kind);
    if (databaseUser === undefined) change[kind] = value;
    // The database has the new address already, such as when it was changed there first.
    else if (kind === 'email') change.email_verified = before.email_verified;
  }
  if (found.mode !== 'elsewhere') return;
  const current = await users.get(userId);
  if (current !== undefined && applies(current))
    await changeAddresses(deps, found.connection, before, change);
}

/** What to change in the custom database; `email_verified` is that of the new or the present address. */
interface AddressChange {
  email?: string;
  username?: string;
  email_verified: boolean | undefined;
}

async function changeAddresses(
  { customDatabases }: CustomAddressesDependencies,
  connection: Connection,
  before: User,
  change: AddressChange,
): Promise<void> {
  const { email: address, username: name } = before;
  const verified = change.email_verified ?? (change.email === undefined && before.email_verified);
  if (address !== undefined && (change.email !== undefined || verified !== before.email_verified)) {
    const args = [address, change.email ?? address, verified];
    await customDatabases.change({ connection, identifier: address }, 'change_email', args);
  }
  if (name !== undefined && change.username !== undefined) {
    await customDatabases.change({ connection, identifier: name }, 'change_username', [
      name,
      change.username,
    ]);
  }
}
