// Linking: another user's identities become those of a user, and back. Whoever logs in with one of them is that user.
import { DATABASE } from '../records/connections.ts';
import type { UserRecord } from '../records/users.ts';
import { IDENTITY_MEMBERS } from '../records/users.ts';
import type { Write } from '../store/contract.ts';
import type { Credentials } from './credentials.ts';
import { homeOf, type Identity, isLinked } from './identities.ts';
import type { Login } from './login.ts';
import type { User, UsersDependencies } from './user.ts';

/**
 * Whether an account may have been made with an address of somebody else's, who takes it over by a new password. All that
 * its maker has ends with that; a linked identity of theirs would stay as a way in, or take the address to their own account.
 */
export function mayBeAnothers({ id, email, email_verified: isVerified }: User): boolean {
  return email !== undefined && !isVerified && id.startsWith(`${DATABASE}|`);
}

/** Thrown within a batch, which then changes nothing: somebody else was first. */
const OVERTAKEN = new Error('the users of a link have changed');

/** What an identity keeps of the user that it was. */
function profileOf(user: User): Record<string, unknown> {
  return Object.fromEntries(
    IDENTITY_MEMBERS.flatMap((name) => (user[name] === undefined ? [] : [[name, user[name]]])),
  );
}

/**
 * Makes another user's identities those of a user, and removes the other with their metadata, roles and permissions; what
 * else they had (sessions, factors) is the caller's to end. One write: of any number that link the same user exactly
 * one does.
 * @returns false when either was gone.
 */
export async function linkUser(
  deps: UsersDependencies,
  credentials: Pick<Credentials, 'reserve'>,
  userId: string,
  otherId: string,
): Promise<boolean> {
  const { store, clock } = deps;
  const other = await store.collection('users').get(otherId);
  if (other === undefined || userId === otherId) return false;
  const updated_at = new Date(clock()).toISOString();
  const move = (identities: readonly Identity[]) =>
    unlessOvertaken(deps, userId, updated_at, (isThere) => [
      ...identities.map((one) => moved(one, { to: userId, isThere }, one.profile ?? profileOf(other))),
      { collection: 'users', delete: otherId },
    ]);
  // The identity keeps the id that the other user had, and with it the place of a password.
  if (otherId.startsWith(`${DATABASE}|`)) await credentials.reserve(otherId);
  let isMoved = false;
  // What was linked to the other one meanwhile comes along.
  for (;;) {
    const identities = await store.collection('identities').findBy('user', otherId);
    if (identities.length === 0) return isMoved;
    if (!(await move(identities))) return false;
    isMoved = true;
  }
}

/** Remembers with the identity of a login that its user did not want it linked to another user. */
export async function declineLink(
  { store }: UsersDependencies,
  { userId, connection }: Pick<Login, 'userId' | 'connection'>,
  otherId: string,
): Promise<void> {
  const all = await store.collection('identities').findBy('user', userId);
  const identity = all.find((one) => one.connection === connection);
  if (identity === undefined) return;
  await store.collection('identities').update(identity.id, (current) => ({
    ...current,
    link_declined: [...new Set([...(current.link_declined ?? []), otherId])],
  }));
}

/** What a linked identity has of its own: its names, and what is said of them. */
export const OF_IDENTITY = ['email', 'email_verified', 'username', 'phone_number', 'phone_verified'] as const;

/**
 * Changes what a linked identity has of its own.
 * @returns false when it is no linked identity of the user. @throws UniqueKeyError where somebody else has a name.
 */
export async function updateLinked(
  deps: UsersDependencies,
  userId: string,
  identityId: string,
  patch: Partial<Pick<UserRecord, (typeof OF_IDENTITY)[number]>>,
): Promise<boolean> {
  const at = new Date(deps.clock()).toISOString();
  const { email_verified: _1, phone_verified: _2, ...names } = patch;
  let isTheirs = false;
  const change = (identity: Identity): Identity => {
    isTheirs = identity.user_id === userId && isLinked(identity);
    if (!isTheirs) return identity;
    const unique = 'phone_number' in names ? (['phone_number'] as const) : [];
    return {
      ...identity,
      ...names,
      profile: { ...identity.profile, ...patch },
      unique: [...new Set([...identity.unique, ...unique])],
    };
  };
  const write = () => [{ collection: 'identities', update: identityId, change } as const];
  return (await unlessOvertaken(deps, userId, at, write)) && isTheirs;
}

/**
 * Makes a linked identity a user of its own again, with what the connection said of them when they were linked. Logins of
 * the user that are under way end: they may be by that identity.
 * @returns false when it is no linked identity of the user. @throws UniqueKeyError when there is such a user again.
 */
export async function unlinkIdentity(
  deps: UsersDependencies,
  credentials: Pick<Credentials, 'outdate'>,
  userId: string,
  identityId: string,
): Promise<boolean> {
  const { store, clock } = deps;
  const identity = await store.collection('identities').get(identityId);
  if (identity === undefined || identity.user_id !== userId || !isLinked(identity)) return false;
  const home = homeOf(identity);
  const at = new Date(clock()).toISOString();
  const user: UserRecord = {
    email_verified: false,
    ...(identity.profile as Partial<UserRecord> | undefined),
    id: home,
    user_metadata: {},
    app_metadata: {},
    created_at: at,
    updated_at: at,
    logins_count: 0,
  };
  const isDone = await unlessOvertaken(deps, userId, at, (isThere) => [
    moved(identity, { to: home, isThere }, undefined),
    { collection: 'users', insert: user },
  ]);
  if (isDone) await credentials.outdate(userId);
  return isDone;
}

/**
 * Writes with a user who is still there.
 * @param writes are given what to ask before they change anything.
 * @returns false, and nothing was written, when somebody else was first.
 */
async function unlessOvertaken(
  { store }: UsersDependencies,
  userId: string,
  updated_at: string,
  writes: (isThere: () => boolean) => readonly Write[],
): Promise<boolean> {
  let isThere = false;
  const touched: Write = {
    collection: 'users',
    update: userId,
    change: (current) => {
      isThere = true;
      return { ...current, updated_at };
    },
  };
  try {
    await store.batch([touched, ...writes(() => isThere)]);
    return true;
  } catch (thrown) {
    if (thrown === OVERTAKEN) return false;
    throw thrown;
  }
}

/** The write that gives an identity to another user, unless somebody else has done so. */
function moved(
  identity: Identity,
  { to, isThere }: { to: string; isThere(): boolean },
  profile: Identity['profile'],
): Write {
  return {
    collection: 'identities',
    update: identity.id,
    change: ({ profile: _before, ...current }) => {
      if (!isThere() || current.user_id !== identity.user_id) throw OVERTAKEN;
      return { ...current, user_id: to, ...(profile === undefined ? {} : { profile: { ...profile } }) };
    },
  };
}
