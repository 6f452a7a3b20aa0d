// Users of custom databases. Whatever creates one, changes their password or address, or removes them asks the database first.
// This wraps the `users` that all features get, so that no change bypasses the database.
import type { Connection } from '../../records/collections.ts';
import { customDatabase } from '../../records/database-options.ts';
import type { AddressKind } from '../../records/identities.ts';
import type { UserRecord } from '../../records/users.ts';
import type { Random } from '../../runtime/random.ts';
import { UniqueKeyError } from '../../store/contract.ts';
import type { Leases } from '../../store/leases.ts';
import type { Config } from '../../tenant/config.ts';
import type { Asker } from '../../users/asker.ts';
import type { Profile } from '../../users/create.ts';
import { type Identity, isLinked, originalUserId } from '../../users/identities.ts';
import type { User } from '../../users/user.ts';
import type { Users } from '../../users/users.ts';
import type { CustomDatabases } from './custom.ts';
import { type Asked, databaseFailed } from './custom-run.ts';
import { conflictReason, mirroredIn } from './custom-user.ts';

interface CustomUsersDependencies {
  config: Pick<Config, 'connection'>;
  customDatabases: CustomDatabases;
  leases: Pick<Leases, 'afterOthers'>;
  random: Random;
}

type Made = Awaited<ReturnType<Users['create']>>;

/** A user to be created in a connection with a custom database. */
interface NewUserOfDatabase {
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
export function withCustomDatabases(users: Users, deps: CustomUsersDependencies): Users {
  const databaseOf = (name: string) => deps.config.connection(name).then(customized);
  return {
    ...users,
    create: async (newUser) => {
      const { identity, profile = {}, password, asker = {} } = newUser;
      const found = await databaseOf(identity.connection);
      if (found === undefined) return users.create(newUser);
      const { email, username } = identity.addresses;
      const id = password === undefined ? identity.upstreamId : undefined;
      const about = { connection: found.connection, email, username, password, id, profile, asker };
      return createUnlessTaken(
        users,
        deps,
        about,
        found.mode === 'moves' ? () => users.create(newUser) : undefined,
      );
    },
    setPassword: async (userId, password, how = {}) => {
      const { home = userId, asker, also, version } = how;
      const identities = await users.identitiesOf(userId);
      const identity = identities.find((one) => originalUserId(one) === home);
      const connection = await databaseKeeping(deps, identity);
      if (identity === undefined || connection === undefined) return users.setPassword(userId, password, how);
      const asked = { ...askedOf(connection, asker), identifier: identity.email ?? identity.username ?? '' };
      let isSame = true;
      // A custom database cannot compare the version and set the password in one step, so changes run one after the other.
      await deps.leases.afterOthers(`password ${userId}`, async () => {
        isSame = version === undefined || (await users.credentialVersion(userId)) === version;
        if (!isSame) return;
        await deps.customDatabases.changePassword(asked, password);
        await users.recordNewPassword(userId, home, also);
      });
      return isSame;
    },
    update: async (userId, patch, ...more) => {
      if ('email' in patch || 'username' in patch || 'email_verified' in patch)
        await changeInDatabase(users, deps, userId, patch);
      return users.update(userId, patch, ...more);
    },
    remove: async (userId) => {
      for (const identity of await users.identitiesOf(userId)) {
        const connection = await databaseKeeping(deps, identity);
        if (connection === undefined) continue;
        const asked = { connection, identifier: identity.email ?? identity.username ?? identity.upstream_id };
        await deps.customDatabases.change(asked, 'delete', [identity.upstream_id]);
      }
      await users.remove(userId);
    },
  };
}

function customized(connection: Connection | undefined) {
  const mode = connection && customDatabase(connection);
  return connection === undefined || mode === undefined ? undefined : { connection, mode };
}

/** Returns the connection of an identity if its users stay in the custom database. */
async function databaseKeeping(
  { config }: Pick<CustomUsersDependencies, 'config'>,
  identity: Pick<Identity, 'connection'> | undefined,
): Promise<Connection | undefined> {
  const found = customized(identity && (await config.connection(identity.connection)));
  return found?.mode === 'elsewhere' ? found.connection : undefined;
}

function askedOf(
  connection: Connection,
  { clientId, request, organization }: Asker = {},
): Omit<Asked, 'identifier'> {
  const ip = typeof request?.ip === 'string' ? request.ip : undefined;
  return { connection, clientId, ip, organization };
}

/**
 * Creates a user, unless an address is taken here or in the custom database.
 * @param makeHere creates the user here; without it, the user is created in the custom database and mirrored here.
 * @throws AuthError as {@link CustomDatabases} does.
 */
async function createUnlessTaken(
  users: Users,
  deps: CustomUsersDependencies,
  about: NewUserOfDatabase,
  makeHere: (() => Promise<Made>) | undefined,
): Promise<Made> {
  const taken = await takenBy(users, deps, about, makeHere !== undefined);
  if (taken === undefined) return makeHere === undefined ? createInDatabase(users, deps, about) : makeHere();
  // Takes as long as hashing a new user's password, so that the time does not reveal that the address is taken.
  await users.verifyPassword(undefined, about.password ?? '');
  return { taken };
}

async function takenBy(
  users: Users,
  { customDatabases }: CustomUsersDependencies,
  { connection, email, username, asker }: Omit<NewUserOfDatabase, 'password' | 'profile'>,
  isKeptHere: boolean,
): Promise<AddressKind | undefined> {
  for (const [kind, identifier] of [
    ['email', email],
    ['username', username],
  ] as const) {
    if (identifier === undefined) continue;
    if ((await customDatabases.find({ ...askedOf(connection, asker), identifier })) !== undefined)
      return kind;
    if (!isKeptHere && (await users.identityInConnection(connection, identifier)) !== undefined) return kind;
  }
  return undefined;
}

async function createInDatabase(
  users: Users,
  { customDatabases, random }: CustomUsersDependencies,
  { connection, email, username, password, id, profile, asker }: NewUserOfDatabase,
): Promise<Made> {
  const name = email ?? username ?? '';
  const asked = { ...askedOf(connection, asker), identifier: name };
  const addresses = { ...(email !== undefined && { email }), ...(username !== undefined && { username }) };
  const told = {
    ...profile,
    ...addresses,
    ...(id !== undefined && { user_id: id }),
    // Scripts expect a password to hash; a random one that nobody knows cannot be used to log in.
    password: password ?? random(32).toString('base64url'),
  };
  if (!(await customDatabases.create(asked, told))) return { taken: 'email' };
  // This gives the user's id, and shows that the user can log in.
  const there =
    password === undefined ? await customDatabases.find(asked) : await customDatabases.login(asked, password);
  if (there === undefined || there === 'failed' || 'wrong' in there) throw databaseFailed();
  const { user_metadata, app_metadata } = there.metadata;
  const metadata = {
    user_metadata: { ...profile.user_metadata, ...user_metadata },
    app_metadata: { ...profile.app_metadata, ...app_metadata },
  };
  const mirrored = await users.mirror({ ...mirroredIn(connection, there), metadata });
  const identity = mirrored && (await users.identityInConnection(connection, name));
  if (mirrored === undefined || identity === undefined) {
    customDatabases.refused(asked, 'login', conflictReason(there));
    throw databaseFailed();
  }
  const { blocked } = profile;
  const user = blocked === undefined ? mirrored.user : await users.update(mirrored.user.id, { blocked });
  return { user: user ?? mirrored.user, identity };
}

/**
 * Changes the addresses of a user in the custom database, before they are changed here.
 * @throws UniqueKeyError if another user has one of them, here or there. @throws AuthError 503 if it was not changed there.
 */
async function changeInDatabase(
  users: Users,
  deps: CustomUsersDependencies,
  userId: string,
  patch: Partial<UserRecord>,
): Promise<void> {
  const [before, identities] = await Promise.all([users.get(userId), users.identitiesOf(userId)]);
  const identity = identities.find((one) => !isLinked(one));
  const found = customized(identity && (await deps.config.connection(identity.connection)));
  if (before === undefined || found === undefined) return;
  const change: Change = { email_verified: patch.email_verified };
  for (const kind of ['email', 'username'] as const) {
    const value = patch[kind];
    if (value === undefined || value === before[kind]) continue;
    const asked = { connection: found.connection, identifier: value };
    const there = await deps.customDatabases.find(asked);
    const here = await users.identityInConnection(found.connection, value);
    const isTheirs = there?.upstreamId === identity?.upstream_id;
    if ((there !== undefined && !isTheirs) || (here !== undefined && here.user_id !== userId))
      throw new UniqueKeyError('identities', kind);
    if (there === undefined) change[kind] = value;
    // The database has the new address already, such as when it was changed there first.
    else if (kind === 'email') change.email_verified = before.email_verified;
  }
  if (found.mode === 'elsewhere') await changeAddresses(deps, found.connection, before, change);
}

/** What to change in the custom database; `email_verified` is that of the new or the present address. */
interface Change {
  email?: string;
  username?: string;
  email_verified: boolean | undefined;
}

async function changeAddresses(
  { customDatabases }: CustomUsersDependencies,
  connection: Connection,
  before: User,
  change: Change,
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
