// Users of custom databases. Whatever creates one, changes their password or address, or removes them asks the database first.
// This wraps the `users` that all features get, so that no change bypasses the database.

import type { Connection } from '../../../records/collections.ts';
import type { AddressKind } from '../../../records/identities.ts';
import type { Random } from '../../../runtime/random.ts';
import type { Leases } from '../../../store/leases.ts';
import type { Config } from '../../../tenant/config.ts';
import type { Asker } from '../../../users/asker.ts';
import { connectionDeleted } from '../../../users/connection-check.ts';
import type { Profile } from '../../../users/create.ts';
import { type Identity, originalUserId } from '../../../users/identities.ts';
import { requireStill } from '../../../users/still.ts';
import type { Users } from '../../../users/users.ts';
import type { CustomDatabases } from './custom.ts';
import { changeInDatabase } from './custom-addresses.ts';
import { type DatabaseRequest, databaseFailed } from './custom-run.ts';
import { conflictReason, customDatabaseOf, mirroredIn } from './custom-user.ts';

interface CustomUsersDependencies {
  config: Pick<Config, 'connection'>;
  customDatabases: CustomDatabases;
  leases: Pick<Leases, 'afterOthers'>;
  random: Random;
}

type CreateResult = Awaited<ReturnType<Users['create']>>;

/** A user to be created in a connection with a custom database. */
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
export function withCustomDatabases(users: Users, deps: CustomUsersDependencies): Users {
  const databaseOf = (name: string) => deps.config.connection(name).then(customDatabaseOf);
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
  { config }: Pick<CustomUsersDependencies, 'config'>,
  identity: Pick<Identity, 'connection'> | undefined,
): Promise<Connection | undefined> {
  const found = customDatabaseOf(identity && (await config.connection(identity.connection)));
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
    customDatabases.recordRefusal(request, 'login', conflictReason(databaseUser));
    throw databaseFailed();
  }
  const { blocked } = profile;
  const user = blocked === undefined ? mirrored.user : await users.update(mirrored.user.id, { blocked });
  return { user: user ?? mirrored.user, identity };
}
