// Users who are kept in a database elsewhere, password and all: what it says of them at a login is written down here, so that
// they have an id, metadata, roles and sessions as every other user.
import { DATABASE } from '../records/connections.ts';
import { type IdentityRecord, identityId } from '../records/identities.ts';
import type { RootAttributes } from '../records/upstream.ts';
import { UniqueKeyError } from '../store/contract.ts';
import { factorsOf } from './brought-factors.ts';
import { addressesOf, type DatabaseUser, isSameUser } from './database-user.ts';
import { type Identity, isLinked } from './identities.ts';
import { factorWrites } from './imported-factors.ts';
import { userFromUpstream } from './upstream.ts';
import type { User, UsersDependencies } from './user.ts';

/** Somebody as the database has them. */
export interface MirroredUser extends DatabaseUser {
  /** The connection's name. */
  connection: string;
  /** When the database's word becomes that of the user's record. */
  rootAttributes: RootAttributes;
  /** Members of the profile that are not stored. */
  nonPersistent: readonly string[];
  /** Whether nobody has logged in: what is not said of second factors now may be said at the first login. */
  isBeforeLogin?: boolean;
}

/**
 * Makes the user, or writes down what the database says of them now. Of any number at once one makes the user.
 * @returns undefined where there is no address, or the address or the id is another user's.
 */
export async function mirrorUser(
  deps: UsersDependencies,
  mirrored: MirroredUser,
): Promise<{ user: User; isNew: boolean } | undefined> {
  const { connection, upstreamId, metadata, rootAttributes } = mirrored;
  const { addresses, unique } = addressesOf(mirrored);
  if (Object.keys(addresses).length === 0) return undefined;
  const identity = await deps.store.collection('identities').get(identityId(connection, upstreamId));
  if (identity !== undefined && !isSameUser(identity, mirrored)) return undefined;
  const { email: _1, username: _2, ...said } = mirrored.profile;
  const isProved = await hasProved(deps, identity, mirrored.email);
  const profile = { ...said, ...addresses, ...(isProved && { email_verified: true }) };
  try {
    const written = await userFromUpstream(deps, {
      ...mirrored,
      provider: DATABASE,
      isSocial: false,
      profile,
      unique,
      also: ({ id }) => factorWrites(deps, id, mirrored.factors),
      awaitsFactors: mirrored.isBeforeLogin === true && mirrored.factors.length === 0,
      // Without its addresses a user of a database could not be found.
      rootAttributes: rootAttributes === 'never_on_login' ? 'on_first_login' : rootAttributes,
    });
    if (written === undefined || written.isNew) return written;
    // Another login was sooner: whether it was of the same user is known now.
    if (identity === undefined) return mirrorUser(deps, mirrored);
    if (mirrored.isBeforeLogin !== true) await bringFactors(deps, identity, mirrored.factors);
    if (isLinked(identity)) return written;
    return { user: await withMetadata(deps, written.user, metadata), isNew: false };
  } catch (thrown) {
    if (thrown instanceof UniqueKeyError) return undefined;
    throw thrown;
  }
}

/** Gives somebody who was made before their first login the second factors that come with it, where they have none. */
async function bringFactors(
  deps: UsersDependencies,
  { id, awaitsFactors }: Identity,
  factors: MirroredUser['factors'],
): Promise<void> {
  if (awaitsFactors !== true) return;
  const end = (current: Identity): IdentityRecord => {
    // Another login was sooner: what it brought is not brought twice.
    if (current.awaitsFactors !== true) throw BROUGHT;
    const { awaitsFactors: _, ...rest } = current;
    return structuredClone(rest) as IdentityRecord;
  };
  try {
    const identity = await deps.store.collection('identities').get(id);
    const brought = identity === undefined ? [] : await factorsOf(deps, identity, factors);
    await deps.store.batch([{ collection: 'identities', update: id, change: end }, ...brought]);
  } catch (thrown) {
    if (thrown !== BROUGHT) throw thrown;
  }
}

/** Thrown within a batch, which then changes nothing. */
const BROUGHT = new Error('the second factors have been brought');

/** Whether an address is known to be that of the user, who has it still. */
async function hasProved(
  { store }: UsersDependencies,
  identity: Identity | undefined,
  email: string | undefined,
): Promise<boolean> {
  if (identity === undefined || identity.email !== email) return false;
  if (isLinked(identity)) return identity.profile?.email_verified === true;
  const user = await store.collection('users').get(identity.user_id);
  return user?.email === email && user?.email_verified === true;
}

/** The members of metadata that the database has; others stay as they are. */
async function withMetadata(
  { store }: UsersDependencies,
  user: User,
  { user_metadata, app_metadata }: DatabaseUser['metadata'],
): Promise<User> {
  const merged = (current: User) => ({
    user_metadata: { ...current.user_metadata, ...user_metadata },
    app_metadata: { ...current.app_metadata, ...app_metadata },
  });
  const isSame = Object.entries(merged(user)).every(
    ([name, value]) => JSON.stringify(user[name as keyof User]) === JSON.stringify(value),
  );
  if (isSame) return user;
  const change = (current: User) => ({ ...current, ...merged(current) });
  return (await store.collection('users').update(user.id, change)) ?? user;
}
