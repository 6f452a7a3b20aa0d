// Creates users. The user, their identity and their password are written in one batch, so that none exists without the others.
import { DATABASE } from '../records/connections/connections.ts';
import {
  type AddressKind,
  addressKey,
  addressOf,
  type IdentityRecord,
} from '../records/connections/identities.ts';
import type { UserRecord } from '../records/users/users.ts';
import { type Store, UniqueKeyError, type Write } from '../store/contract.ts';
import {
  type ConnectionAddress,
  type Identity,
  identityRecord,
  metadataFault,
  type NewIdentity,
  releaseWrites,
} from './changes.ts';
import { writeNewUsers } from './connection-check.ts';
import type { User, UsersDependencies } from './user.ts';

/** The members of a new user's record, besides addresses and what the server sets itself. */
export type Profile = Partial<
  Omit<UserRecord, 'id' | 'expiresAt' | 'created_at' | 'updated_at' | 'logins_count'>
>;

/** A user to be created, with their first identity. */
export interface NewUser {
  /** `upstreamId` is the part of the user's id after the bar; it is generated if absent. */
  identity: Omit<NewIdentity, 'upstreamId'> & { upstreamId?: string | undefined };
  profile?: Profile | undefined;
  passwordHash?: string | undefined;
  also?: FurtherWrites | undefined;
  /**
   * Addresses of the new user that whoever signs up has proved. Users who have them unproved lose them in the batch that
   * creates the user, so that a refusal leaves all as it was.
   */
  releases?: readonly ConnectionAddress[] | undefined;
}

export type FurtherWrites = (user: UserRecord) => readonly Write[];

/**
 * Creates a user. If several are created with one address at the same time, one succeeds.
 * @returns the new user and identity, or the kind of the address that is taken.
 * @throws UniqueKeyError if there is a user with the given `upstreamId`; AuthError 400 if the connection was deleted meanwhile.
 */
export async function createUser(
  deps: UsersDependencies,
  newUser: NewUser,
): Promise<{ user: User; identity: Identity } | { taken: AddressKind }> {
  const { user, identity: record, writes } = newUserWrites(deps, newUser);
  const releasing = await Promise.all(
    (newUser.releases ?? []).map(async (address) => ({
      kind: address.kind,
      writes: await releaseWrites(deps, address),
    })),
  );
  const released = releasing.filter((one) => one.writes.length > 0);
  const shared = await takenUnguarded(
    deps.store,
    record,
    released.map(({ kind }) => kind),
  );
  if (shared !== undefined) return { taken: shared };
  try {
    const first = released.flatMap((one) => one.writes);
    await writeNewUsers(deps.store, newUser.identity, [...first, ...writes]);
  } catch (thrown) {
    const taken = thrown instanceof UniqueKeyError && record.unique.find((kind) => kind === thrown.key);
    if (!taken) throw thrown;
    const isFree = await deleteOrphanedIdentity(deps.store, addressOf(record, taken) ?? '');
    return isFree ? createUser(deps, newUser) : { taken };
  }
  return { user, identity: record };
}

/**
 * Returns the kind of a unique address that a user has who was created while the connection let several users share it
 * (`attributes.email.unique`). The store does not refuse a second user with such an address, and an address of two users
 * logs in neither.
 * @param released kinds of addresses that their users lose in the same batch.
 */
async function takenUnguarded(
  store: Store,
  record: IdentityRecord,
  released: readonly AddressKind[],
): Promise<AddressKind | undefined> {
  // At all other connections addresses have always been unique.
  if (record.provider !== DATABASE) return undefined;
  for (const kind of record.unique) {
    const address = record[kind];
    if (address === undefined || released.includes(kind)) continue;
    const key = addressKey(record.connection, kind, address);
    const all = await store.collection('identities').findBy('address', key);
    for (const one of all.filter(({ unique }) => !unique.includes(kind)))
      if ((await store.collection('users').get(one.user_id)) !== undefined) return kind;
  }
  return undefined;
}

/** @throws MetadataTooLarge */
export function newUserWrites(
  { clock, random }: Pick<UsersDependencies, 'clock' | 'random'>,
  { identity, profile, passwordHash, also }: NewUser,
): { user: UserRecord; identity: IdentityRecord; writes: Write[] } {
  const upstreamId = identity.upstreamId ?? random(12).toString('hex');
  const id = `${identity.provider}|${upstreamId}`;
  const at = new Date(clock()).toISOString();
  const user: UserRecord = {
    id,
    ...identity.addresses,
    email_verified: false,
    user_metadata: {},
    app_metadata: {},
    ...profile,
    created_at: at,
    updated_at: at,
    logins_count: 0,
  };
  const fault = metadataFault(user);
  if (fault !== undefined) throw fault;
  const record = identityRecord(id, { ...identity, upstreamId });
  const writes: Write[] = [
    { collection: 'users', insert: user },
    { collection: 'identities', insert: record },
  ];
  if (passwordHash !== undefined) {
    writes.push({ collection: 'credentials', insert: { id, passwordHash, history: [] } });
  } else if (identity.provider === DATABASE) writes.push(refuseStoredPassword(id));
  writes.push(...(also?.(user) ?? []));
  return { user, identity: record, writes };
}

/**
 * Returns a write that throws UniqueKeyError if a password is stored under this user id: that of an identity that was linked
 * to another user. Otherwise a new user with this id, in another database, would get that password.
 */
export function refuseStoredPassword(userId: string): Write {
  return {
    collection: 'credentials',
    update: userId,
    change: () => {
      throw new UniqueKeyError('credentials', 'id');
    },
  };
}

/** @returns whether there was one. */
async function deleteOrphanedIdentity(store: Store, address: string): Promise<boolean> {
  const [identity] = await store.collection('identities').findBy('address', address);
  if (identity === undefined || (await store.collection('users').get(identity.user_id)) !== undefined)
    return false;
  return store.collection('identities').delete(identity.id);
}
