// Linking: makes the identities of another user those of a user, and makes a linked identity a user again. A login with any
// of a user's identities is a login as that user.
import { isDeepStrictEqual } from 'node:util';
import { AuthError } from '../http/errors.ts';
import { DATABASE } from '../records/connections/connections.ts';
import { factorsTurn } from '../records/users/authenticators.ts';
import type { UserRecord } from '../records/users/users.ts';
import { IDENTITY_MEMBERS } from '../records/users/users.ts';
import type { Write } from '../store/contract.ts';
import { OVERTAKEN, writeInTurn } from '../store/write-in-turn.ts';
import { type Identity, isLinked, originalUserId } from './changes.ts';
import { type Credentials, versionOf } from './credentials.ts';
import type { Login } from './login.ts';
import type { User, UsersDependencies } from './user.ts';

/**
 * Returns whether an account may have been created with somebody else's address, so that the owner of the address could take
 * it over by a password reset. Such an account must not be linked: whoever created it could keep access by a linked identity,
 * or bring the address into their own account.
 */
export function mayBelongToAnother({ id, email, email_verified: isVerified }: User): boolean {
  return email !== undefined && !isVerified && id.startsWith(`${DATABASE}|`);
}

/** A user who stays, and one who becomes an identity of them. */
export interface LinkedUsers {
  stays: User;
  goes: User;
}

/**
 * Decides whether users may be linked, on what is stored. It is called right before the write, and again if one of the
 * users has changed by then: their record, password or second factors. Its errors are passed on.
 */
export type LinkJudge = (users: LinkedUsers) => Promise<boolean>;

/** Returns the members of a user that their identity keeps when it is linked. */
function profileOf(user: User): Record<string, unknown> {
  return Object.fromEntries(
    IDENTITY_MEMBERS.flatMap((name) => (user[name] === undefined ? [] : [[name, user[name]]])),
  );
}

/** The most identities of a user: a login reads them all, and users can link accounts that they make. */
const MAX_IDENTITIES = 50;

/** How long a judgement is good for, milliseconds: logins get too old, and end, while a busy store keeps a write waiting. */
const JUDGED_MS = 5_000;

// docs/understand/decisions/users-linking.md#a-link-is-judged-in-its-own-write
/**
 * Makes another user's identities those of a user, and removes the other user with metadata, roles and permissions. The caller
 * has to end the other user's sessions and second factors. It is one batch, so that a user can be linked only once.
 * @param judge by default, any two users may be linked.
 * @returns false if either user does not exist, or `judge` returned false.
 * @throws AuthError 400 when the user would have more than {@link MAX_IDENTITIES}.
 */
export async function linkUser(
  deps: UsersDependencies,
  credentials: Pick<Credentials, 'reserve' | 'version'>,
  userId: string,
  otherId: string,
  judge: LinkJudge = async () => true,
): Promise<boolean> {
  const { store, clock, random } = deps;
  if (userId === otherId) return false;
  const prepare = async (): Promise<Write[] | undefined> => {
    const ids = [userId, otherId];
    const [[stays, goes], versions, [ofUser = [], ofOther = []]] = await Promise.all([
      Promise.all(ids.map((id) => store.collection('users').get(id))),
      Promise.all(ids.map(credentials.version)),
      Promise.all(ids.map((id) => store.collection('identities').findBy('user', id))),
    ]);
    if (stays === undefined || goes === undefined) return undefined;
    if (ofUser.length + ofOther.length > MAX_IDENTITIES)
      throw new AuthError(400, 'invalid_request', `A user has at most ${MAX_IDENTITIES} identities.`);
    const judgedAt = clock();
    if (!(await judge({ stays, goes }))) return undefined;
    // The password of the identity stays stored under the other user's id, so that no new user may get that id.
    if (otherId.startsWith(`${DATABASE}|`)) await credentials.reserve(otherId);
    const requireNow = () => {
      if (clock() - judgedAt > JUDGED_MS) throw OVERTAKEN;
    };
    return [
      ...ids.map((id, index) => requireSameCredential(id, versions[index])),
      ...mergeWrites({ stays, goes }, ofOther, { requireNow, at: new Date(clock()).toISOString() }),
    ];
  };
  // A factor that is enrolled meanwhile is one that the link could lose.
  return writeInTurn(store, [userId, otherId].map(factorsTurn), prepare, random);
}

/** Returns the writes of a link, which throw OVERTAKEN if it was decided on other users than are stored. */
function mergeWrites(
  { stays, goes }: LinkedUsers,
  identities: readonly Identity[],
  { requireNow, at }: { requireNow(): void; at: string },
): Write[] {
  // That a user always needs a second factor stays true of every way to log in to the account.
  const { multifactor: required = [] } = goes;
  // A user who was removed meanwhile is not updated.
  const there = new Set<string>();
  const checked = (current: User): User => {
    requireSame(goes, current);
    there.add(goes.id);
    return current;
  };
  const change = (current: User): User => {
    requireNow();
    requireSame(stays, current);
    if (!there.has(goes.id)) throw OVERTAKEN;
    there.add(stays.id);
    const multifactor = [...new Set([...(current.multifactor ?? []), ...required])];
    return { ...current, updated_at: at, ...(required.length > 0 && { multifactor }) };
  };
  const to = { to: stays.id, isThere: () => there.has(stays.id) };
  return [
    { collection: 'users', update: goes.id, change: checked },
    { collection: 'users', update: stays.id, change },
    ...identities.map((one) => moveWrite(one, to, one.profile ?? profileOf(goes))),
    { collection: 'users', delete: goes.id },
  ];
}

/** Throws OVERTAKEN unless a user is as they were judged; logins meanwhile change nothing that matters. */
function requireSame(judged: User, current: User): void {
  const [before, now] = [judged, current].map(
    ({ last_login: _1, last_ip: _2, logins_count: _3, ...user }) => user,
  );
  if (!isDeepStrictEqual(before, now)) throw OVERTAKEN;
}

/** Returns a write that throws OVERTAKEN if the credential has another version: a new password, or an end of all logins. */
function requireSameCredential(userId: string, version: number | undefined): Write {
  return {
    collection: 'credentials',
    update: userId,
    change: (current) => {
      if (versionOf(current) !== version) throw OVERTAKEN;
      return { ...current, history: [...current.history] };
    },
  };
}

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
    link_declined: [...new Set([...(current.link_declined ?? []), otherId])].slice(-MAX_IDENTITIES),
  }));
}

/** The members that a linked identity has of its own: its addresses, and whether they are verified. */
export const LINKED_MEMBERS = [
  'email',
  'email_verified',
  'username',
  'phone_number',
  'phone_verified',
] as const;

/**
 * Changes the addresses of a linked identity.
 * @returns false if it is not a linked identity of the user. @throws UniqueKeyError if another user has the address.
 */
export async function updateLinked(
  deps: UsersDependencies,
  userId: string,
  identityId: string,
  patch: Partial<Pick<UserRecord, (typeof LINKED_MEMBERS)[number]>>,
): Promise<boolean> {
  const at = new Date(deps.clock()).toISOString();
  const { email_verified: _1, phone_verified: _2, ...names } = patch;
  let isOfUser = false;
  const change = (identity: Identity): Identity => {
    isOfUser = identity.user_id === userId && isLinked(identity);
    if (!isOfUser) return identity;
    const unique = 'phone_number' in names ? (['phone_number'] as const) : [];
    return {
      ...identity,
      ...names,
      profile: { ...identity.profile, ...patch },
      unique: [...new Set([...identity.unique, ...unique])],
    };
  };
  const write = () => [{ collection: 'identities', update: identityId, change } as const];
  return (await batchIfUserExists(deps, userId, updatedAt(at), write)) && isOfUser;
}

/**
 * Makes a linked identity a user of its own again, with the profile that it kept. Logins of the user that are under way end,
 * as they may be by that identity.
 * @param also written in the same batch.
 * @returns false if it is not a linked identity of the user. @throws UniqueKeyError if a user with its id exists.
 */
export async function unlinkIdentity(
  deps: UsersDependencies,
  credentials: Pick<Credentials, 'raiseVersion'>,
  {
    userId,
    identityId,
    also = [],
  }: { userId: string; identityId: string; also?: readonly Write[] | undefined },
): Promise<boolean> {
  const { store, clock } = deps;
  const identity = await store.collection('identities').get(identityId);
  if (identity === undefined || identity.user_id !== userId || !isLinked(identity)) return false;
  const home = originalUserId(identity);
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
  const isDone = await batchIfUserExists(deps, userId, updatedAt(at), (isThere) => [
    ...also,
    moveWrite(identity, { to: home, isThere }, undefined),
    { collection: 'users', insert: user },
  ]);
  if (isDone) await credentials.raiseVersion(userId);
  return isDone;
}

const updatedAt =
  (updated_at: string) =>
  (current: User): User => ({ ...current, updated_at });

/**
 * Writes a batch that first checks that a user still exists, and changes the user.
 * @param writes returns the writes; each calls `isThere` before it changes anything.
 * @returns false if one of them threw OVERTAKEN; nothing is written then.
 */
async function batchIfUserExists(
  { store }: UsersDependencies,
  userId: string,
  change: (current: User) => User,
  writes: (isThere: () => boolean) => readonly Write[],
): Promise<boolean> {
  let isThere = false;
  const userWrite: Write = {
    collection: 'users',
    update: userId,
    change: (current) => {
      isThere = true;
      return change(current);
    },
  };
  try {
    await store.batch([userWrite, ...writes(() => isThere)]);
    return true;
  } catch (thrown) {
    if (thrown === OVERTAKEN) return false;
    throw thrown;
  }
}

/** Returns the write that gives an identity to another user, unless its user has changed. */
function moveWrite(
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
