// Imports users of a file into the store, some at a time, each time in one batch.
import { DATABASE } from '../../records/connections/connections.ts';
import { type AddressKind, addressKey } from '../../records/connections/identities.ts';
import { isDeceptive } from '../../records/connections/usernames.ts';
import { type Store, UniqueKeyError, type Write } from '../../store/contract.ts';
import { confirmEmail, idByAddress, isLinked, updateUser } from '../changes.ts';
import { type ExpectedConnection, writeNewUsers } from '../connection-check.ts';
import { newUserWrites } from '../create.ts';
import { emptyCredential, NO_PASSWORD, versionOf } from '../credentials.ts';
import { factorWrites } from '../imported-factors.ts';
import type { User, UsersDependencies } from '../user.ts';
import { type Entry, withoutSecrets } from './entry.ts';
import type { EntryError } from './entry-error.ts';
import type { FailedUser, ImportFile } from './transfer-file.ts';

export interface ImportOptions extends ExpectedConnection {
  /** Whether a user with the same e-mail address is updated; otherwise such a user is an error. */
  upsert: boolean;
  /** The kinds of addresses that must be unique in the connection. */
  unique: readonly AddressKind[];
  /** The kinds of addresses that every user of the connection must have. */
  required: readonly AddressKind[];
  /** Returns whether a username has the form of an address with which another user could log in. */
  readsAsAddress(username: string): boolean;
}

export interface ImportOutcome {
  inserted: number;
  updated: number;
  failed: readonly FailedUser[];
}

export interface ImportDependencies extends Omit<UsersDependencies, 'hasher'> {
  endBlocked(userId: string): Promise<void>;
}

type Plan = { insert: Write[]; entry: Entry } | { update: User; entry: Entry } | { failed: FailedUser };

/**
 * New users are written in one batch, together with the writes of `note`: if the process ends before that batch, the
 *   same users can be imported again.
 * @param progressWrites returns further writes for the outcome.
 * @throws AuthError 400 if the connection was deleted; the new users of this call are not written then.
 */
export async function importUsers(
  deps: ImportDependencies,
  options: ImportOptions,
  users: ImportFile['users'],
  progressWrites: (outcome: ImportOutcome) => readonly Write[],
): Promise<ImportOutcome> {
  const plans = await Promise.all(users.map((one) => planOf(deps, options, one)));
  let updated = 0;
  const failed: FailedUser[] = [];
  for (const plan of plans) {
    if ('failed' in plan) failed.push(plan.failed);
    if (!('update' in plan)) continue;
    const fault = await update(deps, plan.update, plan.entry);
    if (fault === undefined) updated += 1;
    else failed.push(failure(plan.entry, fault));
  }
  const inserts = plans.filter((plan) => 'insert' in plan);
  const outcome = { inserted: inserts.length, updated, failed };
  try {
    await writeNewUsers(deps.store, options, [
      ...inserts.flatMap(({ insert }) => insert),
      ...progressWrites(outcome),
    ]);
    return outcome;
  } catch (thrown) {
    if (!(thrown instanceof UniqueKeyError)) throw thrown;
    return oneByOne(deps, options, inserts, { ...outcome, inserted: 0 }, progressWrites);
  }
}

/** Writes users one by one, because one of them conflicts with a user who signed up meanwhile. */
async function oneByOne(
  { store }: ImportDependencies,
  expected: ExpectedConnection,
  inserts: readonly { insert: Write[]; entry: Entry }[],
  before: ImportOutcome,
  progressWrites: (outcome: ImportOutcome) => readonly Write[],
): Promise<ImportOutcome> {
  const outcome = { ...before, failed: [...before.failed] };
  for (const { insert, entry } of inserts) {
    try {
      await writeNewUsers(store, expected, insert);
      outcome.inserted += 1;
    } catch (thrown) {
      if (!(thrown instanceof UniqueKeyError)) throw thrown;
      outcome.failed.push(failure(entry, conflictOf(thrown.key)));
    }
  }
  await store.batch(progressWrites(outcome));
  return outcome;
}

async function planOf(
  deps: ImportDependencies,
  options: ImportOptions,
  user: ImportFile['users'][number],
): Promise<Plan> {
  if ('failed' in user) return user;
  const { connection, upsert } = options;
  const { entry } = user;
  const found = await sameAs(deps, connection, entry);
  const { username } = entry.addresses;
  // A user who has such a username already keeps it.
  const newName = found.username === undefined ? username : undefined;
  if (newName !== undefined && options.readsAsAddress(newName))
    return { failed: failure(entry, READS_AS_ADDRESS) };
  if (newName !== undefined && isDeceptive(newName)) return { failed: failure(entry, DECEPTIVE) };
  const other = Object.entries(found).find(([kind, id]) => id !== undefined && !(upsert && kind === 'email'));
  const match = found.email === undefined ? undefined : await deps.store.collection('users').get(found.email);
  if (upsert && match !== undefined) {
    const foreign = Object.entries(found).find(([, id]) => id !== undefined && id !== match.id);
    if (foreign !== undefined) return { failed: failure(entry, conflictOf(foreign[0])) };
    // The members of an entry, such as `email_verified`, are not those of the user whom its identity was linked to.
    if (await isLinkedAddress(deps, connection, entry))
      return { failed: failure(entry, conflictOf('email')) };
    return { update: match, entry };
  }
  if (other !== undefined) return { failed: failure(entry, upsert ? conflictOf(other[0]) : ALREADY_EXISTS) };
  const missing = options.required.find((kind) => entry.addresses[kind] === undefined);
  if (missing !== undefined) return { failed: failure(entry, missingAddress(missing)) };
  return { insert: insertOf(deps, options, entry), entry };
}

/** Returns the ids of the users who have the entry's addresses or its id already. */
async function sameAs(
  { store }: ImportDependencies,
  connection: string,
  { addresses, userId }: Entry,
): Promise<Record<AddressKind | 'id', string | undefined>> {
  const by = async (kind: AddressKind) => {
    const address = addresses[kind];
    return address === undefined ? undefined : idByAddress(store, { connection, kind, address });
  };
  const [email, username, phone_number, known] = await Promise.all([
    by('email'),
    by('username'),
    by('phone_number'),
    userId === undefined ? undefined : store.collection('users').get(`${DATABASE}|${userId}`),
  ]);
  return { email, username, phone_number, id: known?.id };
}

/** Returns whether the identity that has the entry's e-mail address was linked to another user. */
async function isLinkedAddress(
  { store }: ImportDependencies,
  connection: string,
  { addresses: { email = '' } }: Entry,
): Promise<boolean> {
  const all = await store.collection('identities').findBy('address', addressKey(connection, 'email', email));
  return all.some(isLinked);
}

/** The error for a user who exists and may not be updated; the message is the hosted service's. */
const ALREADY_EXISTS: EntryError = {
  code: 'DUPLICATED_USER',
  message: 'The user already exist and upsert parameter is false',
  fault: { name: 'there' },
};

function conflictOf(key: string): EntryError {
  const codes: Readonly<Record<string, string>> = { email: 'CONFLICT_EMAIL', username: 'CONFLICT_USERNAME' };
  const path = key === 'id' ? 'user_id' : key;
  return {
    code: codes[key] ?? 'CONFLICT',
    message: `A user with the same ${path} exists`,
    path,
    fault: { name: 'same', values: { path } },
  };
}

const READS_AS_ADDRESS: EntryError = {
  code: 'NOT_PASSED',
  message: 'A username must be no e-mail address or phone number that others log in with',
  path: 'username',
  fault: { name: 'username' },
};

const DECEPTIVE: EntryError = {
  code: 'NOT_PASSED',
  message: 'A username must have no invisible letters',
  path: 'username',
  fault: { name: 'deceptive' },
};

const missingAddress = (path: AddressKind): EntryError => ({
  code: 'OBJECT_REQUIRED',
  message: `Missing required property: ${path}`,
  path,
  fault: { name: 'missing', values: { path } },
});

function failure({ source, place }: Entry, error: EntryError): FailedUser {
  return { user: withoutSecrets(source), errors: [error], ...(place && { place }) };
}

function insertOf(deps: ImportDependencies, { connection, unique }: ImportOptions, entry: Entry): Write[] {
  const { userId: upstreamId, addresses, profile, passwordHash } = entry;
  const { user, writes } = newUserWrites(deps, {
    identity: { connection, provider: DATABASE, upstreamId, addresses, unique },
    profile,
    passwordHash,
  });
  return [...writes, ...factorWrites(deps, user.id, entry.factors)];
}

/**
 * Metadata is replaced, the password only if it is unused ({@link replaceUnused}). The record is about the owner of the
 *   address, and anybody may have signed up with it. So an unverified address is verified only if the record names this
 *   account by its `user_id`, or if nobody can log in with what the account's creator had set: otherwise the creator
 *   would have a verified account in the owner's name.
 */
async function update(deps: ImportDependencies, user: User, entry: Entry): Promise<EntryError | undefined> {
  const { store } = deps;
  const has = entry.factors.length > 0 && (await store.collection('authenticators').findBy('user', user.id));
  if (has && has.length > 0) {
    return {
      code: 'MFA_FACTORS_FAILED',
      message: 'The user has second factors already',
      path: 'mfa_factors',
      fault: { name: 'factors' },
    };
  }
  const { email_verified: isVerified, ...profile } = entry.profile;
  const isNewlyVerified = isVerified === true && !user.email_verified;
  try {
    const { email: _, ...addresses } = entry.addresses;
    const patch = { ...(isNewlyVerified ? profile : entry.profile), ...addresses };
    // The user may have another address by now.
    const applies = (current: User) => current.email === user.email;
    if ((await updateUser(deps, user.id, patch, undefined, applies)) === undefined)
      return conflictOf('email');
  } catch (thrown) {
    if (thrown instanceof UniqueKeyError) return conflictOf(thrown.key);
    throw thrown;
  }
  const { passwordHash } = entry;
  const isReplaced =
    passwordHash !== undefined && entry.isCustomHash && (await replaceUnused(store, user.id, passwordHash));
  const isNamed = entry.userId !== undefined && user.id === `${DATABASE}|${entry.userId}`;
  const imported = { password: isReplaced, phoneNumber: entry.addresses.phone_number !== undefined };
  if (isNewlyVerified && (isNamed || (await isOpenToNobody(store, user, imported))))
    await confirmEmail(deps, user.id, entry.addresses.email ?? '');
  const factors = factorWrites(deps, user.id, entry.factors);
  if (factors.length > 0) await store.batch(factors);
  if (entry.profile.blocked === true) await deps.endBlocked(user.id);
  return undefined;
}

// Replaces the password of an existing user by an imported hash, unless the user relies on the present one; and decides
// whether an import may verify the address of an existing user.

/** Thrown within a batch, which then changes nothing, if the password is in use. */
const IN_USE = new Error('the password is in use');

/**
 * Replaces the password of a user who has never logged in and has never set a new one; of any other it stays. This is
 * decided with the write: the user may log in or reset the password while the import runs.
 * @returns whether the password was replaced.
 */
async function replaceUnused(store: Store, userId: string, passwordHash: string): Promise<boolean> {
  await store.collection('credentials').upsert(userId, (current) => current ?? emptyCredential(userId));
  try {
    await store.batch([
      {
        collection: 'users',
        update: userId,
        change: (current) => {
          if (isUsed(current)) throw IN_USE;
          return current;
        },
      },
      {
        collection: 'credentials',
        update: userId,
        change: (current) => ({
          ...current,
          passwordHash,
          version: versionOf(current) + (current.passwordHash === passwordHash ? 0 : 1),
        }),
      },
    ]);
    return true;
  } catch (thrown) {
    if (thrown !== IN_USE) throw thrown;
    return false;
  }
}

// docs/understand/decisions/users-linking.md#an-import-verifies-no-account-that-its-owner-may-not-have-created
/**
 * Returns whether nobody can log in to a user's account with anything that whoever created it had set: a password, a
 * passkey, a verified phone number, to which codes are sent, or a session. A login that an action refused, or that was
 * never completed, does not count as one, but the passkey or number of its sign-up is there.
 * @param imported what of the account the import has set itself.
 */
async function isOpenToNobody(
  store: Store,
  { id }: Pick<User, 'id'>,
  imported: { password: boolean; phoneNumber: boolean },
): Promise<boolean> {
  const [user, credential, passkeys] = await Promise.all([
    store.collection('users').get(id),
    store.collection('credentials').get(id),
    store.collection('passkeys').findBy('user', id),
  ]);
  if (user === undefined || passkeys.length > 0) return false;
  if (user.phone_verified === true && !imported.phoneNumber) return false;
  return imported.password || (!isUsed(user) && (credential?.passwordHash ?? NO_PASSWORD) === NO_PASSWORD);
}

/** Returns whether somebody has logged in to an account, or has set a new password. */
function isUsed({
  logins_count: logins,
  last_password_reset: reset,
}: Pick<User, 'logins_count' | 'last_password_reset'>) {
  return logins > 0 || reset !== undefined;
}
