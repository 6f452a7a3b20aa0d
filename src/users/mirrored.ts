// Users who stay in a custom database, with their passwords. Each login stores here what the database says about them, so that
// they have an id, metadata, roles and sessions as all other users.
// docs/understand/decisions/connections.md#what-a-custom-database-returns-about-a-user-is-stored-at-each-login
import { DATABASE } from '../records/connections/connections.ts';
import { type IdentityRecord, identityId } from '../records/connections/identities.ts';
import type { RootAttributes } from '../records/connections/upstream.ts';
import { UniqueKeyError } from '../store/contract.ts';
import { type Identity, isLinked, MetadataTooLarge, updateUser } from './changes.ts';
import type { ExpectedConnection } from './connection-check.ts';
import { addressesOf, type DatabaseUser, isSameUser } from './database-user.ts';
import { factorWrites, factorWritesIfNone } from './imported-factors.ts';
import { userFromUpstream } from './upstream.ts';
import type { User, UsersDependencies } from './user.ts';

/** A user of the database, with the options of the connection. */
export interface MirroredUser extends DatabaseUser, ExpectedConnection {
  /** When the profile of the database is copied to the user's record. */
  rootAttributes: RootAttributes;
  /** Members of the profile that are not stored. */
  nonPersistent: readonly string[];
  /** Whether this is not a login. Second factors that are missing now may come with the first login. */
  isBeforeLogin?: boolean;
}

/**
 * Creates the user, or updates them to what the database says now. Concurrent calls create one user.
 * @returns undefined if the user has no address, or the address or the id belongs to another user. With `fault`, the metadata
 * stays as it is.
 */
export async function mirrorUser(
  deps: UsersDependencies,
  mirrored: MirroredUser,
): Promise<{ user: User; isNew: boolean; fault?: MetadataTooLarge } | undefined> {
  const { connection, upstreamId, metadata, rootAttributes } = mirrored;
  const { addresses, unique } = addressesOf(mirrored);
  if (Object.keys(addresses).length === 0) return undefined;
  const identity = await deps.store.collection('identities').get(identityId(connection, upstreamId));
  if (identity !== undefined && !isSameUser(identity, mirrored)) return undefined;
  const { email: _1, username: _2, ...claims } = mirrored.profile;
  const isVerified = await hasVerified(deps, identity, mirrored.email);
  const profile = { ...claims, ...addresses, ...(isVerified && { email_verified: true }) };
  try {
    const written = await userFromUpstream(deps, {
      ...mirrored,
      provider: DATABASE,
      isSocial: false,
      profile,
      unique,
      also: ({ id }) => factorWrites(deps, id, mirrored.factors),
      awaitsFactors: mirrored.isBeforeLogin === true && mirrored.factors.length === 0,
      // `never_on_login` would store no addresses, and the user could not be found.
      rootAttributes: rootAttributes === 'never_on_login' ? 'on_first_login' : rootAttributes,
    });
    if (written === undefined || written.isNew) return written;
    // A concurrent login created the identity. Start again, which checks that it is the same user.
    if (identity === undefined) return mirrorUser(deps, mirrored);
    if (mirrored.isBeforeLogin !== true) await importFactors(deps, identity, mirrored.factors);
    if (isLinked(identity)) return written;
    return { user: await withMetadata(deps, written.user, metadata), isNew: false };
  } catch (thrown) {
    // Users who have filled their metadata can still log in.
    if (thrown instanceof MetadataTooLarge && identity !== undefined) {
      const user = await deps.store.collection('users').get(identity.user_id);
      return user && { user, isNew: false, fault: thrown };
    }
    if (thrown instanceof UniqueKeyError) return undefined;
    throw thrown;
  }
}

/** Imports the second factors that come with the first login of a user who was created before it, unless they have some. */
async function importFactors(
  deps: UsersDependencies,
  { id, awaitsFactors }: Identity,
  factors: MirroredUser['factors'],
): Promise<void> {
  if (awaitsFactors !== true) return;
  const end = (current: Identity): IdentityRecord => {
    // A concurrent login has imported the second factors already.
    if (current.awaitsFactors !== true) throw ALREADY_IMPORTED;
    const { awaitsFactors: _, ...rest } = current;
    return structuredClone(rest) as IdentityRecord;
  };
  try {
    const identity = await deps.store.collection('identities').get(id);
    const writes = identity === undefined ? [] : await factorWritesIfNone(deps, identity, factors);
    await deps.store.batch([{ collection: 'identities', update: id, change: end }, ...writes]);
  } catch (thrown) {
    if (thrown !== ALREADY_IMPORTED) throw thrown;
  }
}

/** Thrown within a batch, which then changes nothing, if the second factors were imported already. */
const ALREADY_IMPORTED = new Error('the second factors have been imported');

/** Returns whether the user still has an address and has verified it here. */
async function hasVerified(
  { store }: UsersDependencies,
  identity: Identity | undefined,
  email: string | undefined,
): Promise<boolean> {
  if (identity === undefined || identity.email !== email) return false;
  if (isLinked(identity)) return identity.profile?.email_verified === true;
  const user = await store.collection('users').get(identity.user_id);
  return user?.email === email && user?.email_verified === true;
}

/** Stores the members of metadata that the database returned; other members stay. @throws MetadataTooLarge */
async function withMetadata(
  deps: UsersDependencies,
  user: User,
  { user_metadata, app_metadata }: DatabaseUser['metadata'],
): Promise<User> {
  const merged = (current: Pick<User, 'user_metadata' | 'app_metadata'>) => ({
    user_metadata: { ...current.user_metadata, ...user_metadata },
    app_metadata: { ...current.app_metadata, ...app_metadata },
  });
  const isSame = Object.entries(merged(user)).every(
    ([name, value]) => JSON.stringify(user[name as keyof User]) === JSON.stringify(value),
  );
  if (isSame) return user;
  return (await updateUser(deps, user.id, {}, merged)) ?? user;
}
