// Changes of users: of their records, addresses and verified addresses, and their removal.
import { DATABASE } from '../records/connections.ts';
import { ADDRESS_KINDS, type AddressKind } from '../records/identities.ts';
import type { UserRecord } from '../records/users.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Store, Write } from '../store/contract.ts';
import { updateWithResult } from '../store/update-with-result.ts';
import { type ConnectionAddress, findByAddress, originalUserId } from './identities.ts';
import { type MetadataTooLarge, metadataFault } from './metadata-bounds.ts';
import type { User, UsersDependencies } from './user.ts';

const now = ({ clock }: Pick<UsersDependencies, 'clock'>) => new Date(clock()).toISOString();

/** Returns a user's new metadata from the present one. It is called with the write, so that no concurrent change is lost. */
export type MetadataMerge = (
  current: Pick<User, 'user_metadata' | 'app_metadata'>,
) => Partial<Pick<UserRecord, 'user_metadata' | 'app_metadata'>>;

/**
 * Changes a user and, in the same batch, those of their identities that are found by a changed address.
 * @param applies decides with the write, on the user as stored then, whether to change anything.
 * @returns undefined if there is no such user, or `applies` returned false.
 * @throws UniqueKeyError if an address belongs to another user of a connection.
 * @throws MetadataTooLarge
 */
export async function updateUser(
  deps: Pick<UsersDependencies, 'store' | 'clock'>,
  userId: string,
  patch: Partial<UserRecord>,
  merge: MetadataMerge = () => ({}),
  applies: (current: User) => boolean = () => true,
): Promise<User | undefined> {
  const { store, clock } = deps;
  const change = (current: User): User => ({
    ...current,
    ...patch,
    ...merge(current),
    id: userId,
    updated_at: now(deps),
    ...emailHistory(current, patch, clock),
  });
  let fault: MetadataTooLarge | undefined;
  /** Returns the user after the change; undefined where it does not apply, or is refused. */
  const changed = (current: User): User | undefined => {
    if (!applies(current)) return undefined;
    const next = change(current);
    fault = metadataFault(next, current);
    return fault === undefined ? next : undefined;
  };
  const kinds = ADDRESS_KINDS.filter((kind) => kind in patch);
  const after =
    kinds.length === 0
      ? await updateWithResult(store.collection('users'), userId, (current) => {
          const next = changed(current);
          return { result: next, next };
        })
      : await updateWithAddresses(deps, userId, { patch, kinds, changed });
  if (fault !== undefined) throw fault;
  return after;
}

/** A change of a user's addresses. */
interface AddressChange {
  patch: Partial<UserRecord>;
  kinds: readonly AddressKind[];
  /** Returns the user after the change; undefined if it is not made. */
  changed(current: User): User | undefined;
}

/** Writes a change of addresses: to the user, and to the identities that are found by them. */
async function updateWithAddresses(
  { store }: Pick<UsersDependencies, 'store'>,
  userId: string,
  change: AddressChange,
): Promise<User | undefined> {
  const { writes, after } = await addressWrites(store, userId, change);
  await store.batch(writes);
  return after();
}

/** Returns the writes of a change of addresses, and a function that returns the user once they are written. */
async function addressWrites(
  store: Store,
  userId: string,
  { patch, kinds, changed }: AddressChange,
): Promise<{ writes: Write[]; after(): User | undefined }> {
  const identities = (await store.collection('identities').findBy('user', userId)).filter(
    // A linked identity has addresses of its own, even if they are the same.
    ({ profile }) => profile === undefined,
  );
  let before: User | undefined;
  let after: User | undefined;
  const writes: Write[] = [
    {
      collection: 'users',
      update: userId,
      change: (current) => {
        before = current;
        after = changed(current);
        return after ?? current;
      },
    },
    ...identities.map(
      ({ id }): Write => ({
        collection: 'identities',
        update: id,
        change: (identity) => {
          if (after === undefined) return identity;
          const changedKinds = kinds.filter((kind) => identity[kind] === before?.[kind]);
          // Identities of older releases do not have `phone_number` in `unique`. A number that is set now must be unique.
          const isOwn = identity.provider === DATABASE && changedKinds.includes('phone_number');
          return {
            ...identity,
            ...Object.fromEntries(changedKinds.map((kind) => [kind, patch[kind]])),
            unique: [...new Set([...identity.unique, ...(isOwn ? (['phone_number'] as const) : [])])],
          };
        },
      }),
    ),
  ];
  return { writes, after: () => after };
}

/**
 * Returns the writes that remove an address from a user who never proved it, if there is one, for the batch that gives it to
 * whoever has.
 */
export async function releaseWrites(
  deps: Pick<UsersDependencies, 'store' | 'clock'>,
  unproved: ConnectionAddress,
): Promise<Write[]> {
  const { kind, address } = unproved;
  const holder = await findByAddress(deps.store, unproved);
  if (holder === undefined || kind === 'username') return [];
  const isProved = (user: User) => (kind === 'email' ? user.email_verified : user.phone_verified === true);
  if (isProved(holder) || holder[kind] !== address) return [];
  const patch = { [kind]: undefined, ...(kind === 'phone_number' && { phone_verified: false }) };
  const changed = (user: User): User | undefined =>
    user[kind] !== address || isProved(user)
      ? undefined
      : { ...user, ...patch, updated_at: now(deps), ...emailHistory(user, patch, deps.clock) };
  return (await addressWrites(deps.store, holder.id, { patch, kinds: [kind], changed })).writes;
}

/** @see Users.confirmEmail */
export async function confirmEmail(
  deps: Pick<UsersDependencies, 'store' | 'clock'>,
  userId: string,
  email: string,
): Promise<User | undefined> {
  return updateWithResult(deps.store.collection('users'), userId, (before) => {
    if (before.email !== email) return { result: undefined };
    const proved = { email_verified: true, updated_at: now(deps) };
    const after = { ...before, ...proved, ...emailHistory(before, proved, deps.clock) };
    return { result: after, next: after };
  });
}

/** @see Users.proveEmail */
export async function proveEmail(deps: UsersDependencies, userId: string, email: string): Promise<void> {
  await deps.store.collection('users').update(userId, (before) => {
    if (before.email_verified || before.email !== email) return before;
    const proved = { email_verified: true, user_metadata: {}, updated_at: now(deps) };
    return { ...withoutProfile(before), ...proved, ...emailHistory(before, proved, deps.clock) };
  });
}

/** Removes a user with their identities and credentials, in one batch. */
export async function removeUser(
  { store }: UsersDependencies,
  userId: string,
  also: readonly Write[] = [],
): Promise<void> {
  const identities = await store.collection('identities').findBy('user', userId);
  await store.batch([
    ...also,
    { collection: 'users', delete: userId },
    { collection: 'credentials', delete: userId },
    ...identities.flatMap((one): Write[] => [
      { collection: 'identities', delete: one.id },
      { collection: 'credentials', delete: originalUserId(one) },
    ]),
  ]);
}

/** Returns a user without the profile members that a sign-up can set; identifiers stay. */
function withoutProfile(user: User): User {
  const { name: _1, given_name: _2, family_name: _3, nickname: _4, picture: _5, ...rest } = user;
  return rest;
}

/** Entries of `email_history` that are kept. They are looked up for as long as access tokens live. */
const EMAIL_HISTORY = 20;

function emailHistory(before: User, patch: Partial<UserRecord>, clock: Clock): Partial<User> {
  const changes =
    ('email' in patch && patch.email !== before.email) ||
    ('email_verified' in patch && patch.email_verified !== before.email_verified);
  if (!changes) return {};
  const entry = {
    ...(before.email === undefined ? {} : { email: before.email }),
    email_verified: before.email_verified,
    until: clock() / 1000,
  };
  return { email_history: [...(before.email_history ?? []), entry].slice(-EMAIL_HISTORY) };
}
