// New users: the user, their identity and their password are one write, so that none is ever there without the others.
import { DATABASE } from '../records/connections.ts';
import { type AddressKind, addressOf, type IdentityRecord } from '../records/identities.ts';
import type { UserRecord } from '../records/users.ts';
import { type Store, UniqueKeyError, type Write } from '../store/contract.ts';
import { type Identity, identityRecord, type NewIdentity } from './identities.ts';
import type { User, UsersDependencies } from './user.ts';

/** What may be said of a new user, beside who they are. */
export type Profile = Partial<
  Omit<UserRecord, 'id' | 'expiresAt' | 'created_at' | 'updated_at' | 'logins_count'>
>;

/** A user to be made, by the first of their identities. */
export interface NewUser {
  /** Its `upstreamId`, the part of the user's id after the bar, is made here where it says none. */
  identity: Omit<NewIdentity, 'upstreamId'> & { upstreamId?: string | undefined };
  profile?: Profile | undefined;
  passwordHash?: string | undefined;
  /** What is written with them, or not at all. */
  also?: AlsoWritten | undefined;
}

/** What is written in the same step as a new user. */
export type AlsoWritten = (user: UserRecord) => readonly Write[];

/**
 * @returns the new user, or which of the addresses is taken; of any number at once exactly one gets an address.
 * @throws UniqueKeyError when there is a user with the `upstreamId` asked for.
 */
export async function createUser(
  deps: UsersDependencies,
  newUser: NewUser,
): Promise<{ user: User; identity: Identity } | { taken: AddressKind }> {
  const { user, identity: record, writes } = newUserWrites(deps, newUser);
  const shared = await takenOfBefore(deps.store, record);
  if (shared !== undefined) return { taken: shared };
  try {
    await deps.store.batch(writes);
  } catch (thrown) {
    const taken = thrown instanceof UniqueKeyError && record.unique.find((kind) => kind === thrown.key);
    if (!taken) throw thrown;
    const isFree = await freeOfNobody(deps.store, addressOf(record, taken) ?? '');
    return isFree ? createUser(deps, newUser) : { taken };
  }
  return { user, identity: record };
}

/**
 * The kind of address that has to be a user's alone, and that somebody has already from a time when several users could share
 * one. The store does not refuse the second of them, and an address that two users have is a login for neither.
 */
async function takenOfBefore(store: Store, record: IdentityRecord): Promise<AddressKind | undefined> {
  // Addresses of all other connections have been their users' own from the start.
  if (record.provider !== DATABASE) return undefined;
  for (const kind of record.unique) {
    const key = addressOf(record, kind);
    const all = key === undefined ? [] : await store.collection('identities').findBy('address', key);
    for (const one of all.filter(({ unique }) => !unique.includes(kind)))
      if ((await store.collection('users').get(one.user_id)) !== undefined) return kind;
  }
  return undefined;
}

/** A new user's records, and the writes that make them. */
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
  const record = identityRecord(id, { ...identity, upstreamId });
  const writes: Write[] = [
    { collection: 'users', insert: user },
    { collection: 'identities', insert: record },
  ];
  if (passwordHash !== undefined) {
    writes.push({ collection: 'credentials', insert: { id, passwordHash, history: [] } });
  } else if (identity.provider === DATABASE) writes.push(unlessPasswordKept(id));
  writes.push(...(also?.(user) ?? []));
  return { user, identity: record, writes };
}

/**
 * The write that fails where a password is kept for a user of this id: of one whose identity was linked to another since. A
 * new user of the id, in another database, would have that password, and set it.
 */
export function unlessPasswordKept(userId: string): Write {
  return {
    collection: 'credentials',
    update: userId,
    change: () => {
      throw new UniqueKeyError('credentials', 'id');
    },
  };
}

/** An identity whose user was lost in a damaged store stands in nobody's way. @returns whether there was one. */
async function freeOfNobody(store: Store, address: string): Promise<boolean> {
  const [identity] = await store.collection('identities').findBy('address', address);
  if (identity === undefined || (await store.collection('users').get(identity.user_id)) !== undefined)
    return false;
  return store.collection('identities').delete(identity.id);
}
