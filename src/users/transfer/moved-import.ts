// Writes the users of a tenant that moves here. A user is written with everything they have in one batch, so that an import
// that was killed can be repeated: who is here already is compared, and gets only what is missing or newer.
import { isDeepStrictEqual } from 'node:util';
import { checkedJson } from '../../http/server/body.ts';
import { DATABASE } from '../../records/connections/connections.ts';
import type { IdentityRecord } from '../../records/connections/identities.ts';
import { LEFT_BEHIND } from '../../records/users/authenticators.ts';
import type { MembershipRecord } from '../../records/users/organizations.ts';
import type { CredentialRecord, UserRecord } from '../../records/users/users.ts';
import { type Store, UniqueKeyError, type Write } from '../../store/contract.ts';
import { listAll } from '../../store/list-all.ts';
import { OVERTAKEN } from '../../store/write-in-turn.ts';
import { emailHistory, removeUser } from '../changes.ts';
import { refuseStoredPassword } from '../create.ts';
import { NO_PASSWORD, versionOf } from '../credentials.ts';
import { factorWrites } from '../imported-factors.ts';
import { isFactor, leftBehindWrites, letsEnrolWrite } from '../left-factors.ts';
import type { User, UsersDependencies } from '../user.ts';
import { withoutSecrets } from './entry.ts';
import type { EntryError } from './entry-error.ts';
import { accessOf, type MovedLine, type MovedUser, type MoveTarget, readMoved } from './moved-user.ts';

export interface MoveCounts {
  /** Users whom the lines were about. */
  read: number;
  inserted: number;
  updated: number;
  unchanged: number;
  refused: number;
  refusedAccess: number;
  /** Users who had a second factor that no file has. */
  lacksFactor: number;
}

export const noCounts = (): MoveCounts => ({
  read: 0,
  inserted: 0,
  updated: 0,
  unchanged: 0,
  refused: 0,
  refusedAccess: 0,
  lacksFactor: 0,
});

/** A user, or a line about roles and memberships, that was refused; without hashes. */
export interface RefusedLine {
  refused: 'user' | 'access';
  value: unknown;
  errors: readonly EntryError[];
}

export interface MoveDependencies extends Omit<UsersDependencies, 'hasher'> {
  endBlocked(userId: string): Promise<void>;
  /** Whether users whose second factor no file has may enrol another one after their first factor. */
  letsEnrol?: boolean | undefined;
}

export interface MovedBatch {
  counts: MoveCounts;
  refused: RefusedLine[];
}

/** Reads what the users of an import refer to. @param database the name of the connection for users without one. */
export async function moveTargetIn(store: Store, database?: string): Promise<MoveTarget> {
  const [connections, roles, organizations] = await Promise.all([
    listAll(store.collection('connections')),
    listAll(store.collection('roles')),
    listAll(store.collection('organizations')),
  ]);
  return {
    connections: new Map(connections.map((one) => [one.name, one])),
    database,
    roles: byIdAndName(roles),
    organizations: byIdAndName(organizations),
  };
}

/** Ids come last: a name in the form of an id does not replace it. */
function byIdAndName<T extends { id: string; name: string }>(all: readonly T[]): Map<string, T> {
  return new Map([
    ...all.map((one) => [one.name, one] as const),
    ...all.map((one) => [one.id, one] as const),
  ]);
}

/**
 * Writes some users.
 * @param lines JSON, each a {@link MovedLine}.
 */
export async function importMoved(
  deps: MoveDependencies,
  lines: readonly string[],
  target: MoveTarget,
): Promise<MovedBatch> {
  const counts = { ...noCounts(), read: lines.length };
  const refused: RefusedLine[] = [];
  const refuse = (value: unknown, errors: readonly EntryError[]) => {
    counts.refused += 1;
    refused.push({ refused: 'user', value: withoutSecrets(value), errors: errors.map(withoutFault) });
  };
  const now = new Date(deps.clock()).toISOString();
  const { store } = deps;
  const refuseAccess = (value: unknown, error: EntryError) => {
    counts.refusedAccess += 1;
    refused.push({ refused: 'access', value, errors: [withoutFault(error)] });
  };
  const read: { line: MovedLine; moved: MovedUser }[] = [];
  for (const text of lines) {
    const line = checkedJson(text) as MovedLine;
    if (line.user === undefined) {
      const given = await giveAccess(deps, line, target, refuseAccess);
      if (given === undefined) counts.read -= 1;
      else counts[given] += 1;
      continue;
    }
    const result = readMoved(line, target, now);
    if ('errors' in result) refuse(line.user, result.errors);
    else read.push({ line, moved: result.moved });
  }
  const before = await Promise.all(read.map(({ moved }) => store.collection('users').get(moved.user.id)));
  const news: typeof read = [];
  for (const [index, one] of read.entries()) {
    const { moved, line } = one;
    const present = before[index];
    if (moved.lacksFactor) counts.lacksFactor += 1;
    for (const { value, error } of moved.refusedAccess) refuseAccess(value, error);
    if (present === undefined) news.push(one);
    else {
      const outcome = await updateMoved(deps, present, moved);
      if (typeof outcome === 'object') refuse(line.user, [outcome]);
      else counts[outcome] += 1;
    }
  }
  await insertAll(deps, news, counts, refuse);
  return { counts, refused };
}

/** Gives a user who is here the roles, permissions and memberships of a line. */
async function giveAccess(
  deps: MoveDependencies,
  { id, access = [] }: MovedLine,
  target: MoveTarget,
  refuse: (value: unknown, error: EntryError) => void,
): Promise<'updated' | 'unchanged' | undefined> {
  const user = typeof id === 'string' ? await deps.store.collection('users').get(id) : undefined;
  if (user === undefined) {
    const error = { code: 'NOT_PASSED', message: 'There is no such user here', path: 'user_id' };
    for (const value of access) refuse(value, error);
    return undefined;
  }
  const { roles, permissions, memberships, refused } = accessOf(user.id, access, target);
  for (const { value, error } of refused) refuse(value, error);
  const outcome = await updateMoved(deps, user, {
    user: { ...(user as UserRecord), roles, permissions },
    isDated: false,
    identities: [],
    credentials: [],
    passwordsSetAt: new Map(),
    factors: [],
    lacksFactor: false,
    memberships,
    refusedAccess: refused,
  });
  return typeof outcome === 'object' ? undefined : outcome;
}

const withoutFault = ({ fault: _, ...error }: EntryError): EntryError => error;

/** Writes new users in one batch; where one of them is refused, in halves, so that all others are written. */
async function insertAll(
  deps: MoveDependencies,
  news: readonly { line: MovedLine; moved: MovedUser }[],
  counts: MoveCounts,
  refuse: (value: unknown, errors: readonly EntryError[]) => void,
): Promise<void> {
  const [first, ...others] = news;
  if (first === undefined) return;
  try {
    await deps.store.batch(news.flatMap(({ moved }) => insertWrites(deps, moved)));
    counts.inserted += news.length;
  } catch (thrown) {
    if (!(thrown instanceof UniqueKeyError)) throw thrown;
    if (others.length === 0) return refuse(first.line.user, [conflictOf(thrown)]);
    const half = Math.ceil(news.length / 2);
    await insertAll(deps, news.slice(0, half), counts, refuse);
    await insertAll(deps, news.slice(half), counts, refuse);
  }
}

function conflictOf({ collection, key }: UniqueKeyError): EntryError {
  if (collection === 'identities' && key === 'id')
    return {
      code: 'CONFLICT',
      message: 'An identity of the user belongs to another user here',
      path: 'identities',
    };
  if (collection === 'credentials')
    return { code: 'CONFLICT', message: 'A user with the same id had a password here', path: 'user_id' };
  const codes: Readonly<Record<string, string>> = { email: 'CONFLICT_EMAIL', username: 'CONFLICT_USERNAME' };
  const path = key === 'id' ? 'user_id' : key;
  const message = `Another user here has the same ${path} in the same connection`;
  return { code: codes[key] ?? 'CONFLICT', message, path };
}

function insertWrites(deps: MoveDependencies, moved: MovedUser): Write[] {
  const { user, identities, credentials, memberships, factors } = moved;
  const provider = identities[0]?.provider;
  const hasPassword = credentials.some(({ id }) => id === user.id);
  const isLeftBehind = moved.lacksFactor && deps.letsEnrol !== true;
  return [
    { collection: 'users', insert: isLeftBehind ? { ...user, factor_left_behind: true } : user },
    ...(isLeftBehind ? leftBehindWrites(deps, user.id) : []),
    ...identities.map((one): Write => ({ collection: 'identities', insert: one })),
    ...credentials.map((one): Write => ({ collection: 'credentials', insert: one })),
    ...(provider === DATABASE && !hasPassword ? [refuseStoredPassword(user.id)] : []),
    ...memberships.map((one): Write => ({ collection: 'memberships', put: one })),
    ...factorWrites(deps, user.id, factors),
  ];
}

// docs/understand/decisions/users-linking.md#a-repeated-move-changes-only-what-the-old-tenant-changed-last
/**
 * Gives a user who is here already what the export has and is missing here. The profile is replaced if it was changed at the
 * old tenant after its last change here, and a password if it was set there after it was set here.
 */
async function updateMoved(
  deps: MoveDependencies,
  present: User,
  moved: MovedUser,
): Promise<'updated' | 'unchanged' | EntryError> {
  const { store } = deps;
  const isNewer = moved.isDated && moved.user.updated_at > present.updated_at;
  const [identities, credentials, memberships, authenticators] = await Promise.all([
    // Without a newer profile the identities are those that were written with it.
    isNewer ? Promise.all(moved.identities.map(({ id }) => store.collection('identities').get(id))) : [],
    Promise.all(moved.credentials.map(({ id }) => store.collection('credentials').get(id))),
    Promise.all(moved.memberships.map(({ id }) => store.collection('memberships').get(id))),
    moved.factors.length > 0 || moved.lacksFactor
      ? store.collection('authenticators').findBy('user', present.id)
      : [],
  ]);
  const writes: Write[] = [];
  const hasFactor = authenticators.some(isFactor);
  const isMarked = authenticators.some(({ kind }) => kind === LEFT_BEHIND);
  // Who was marked before, and is not any more, has been let in here.
  const marks =
    isNewer &&
    moved.lacksFactor &&
    deps.letsEnrol !== true &&
    !hasFactor &&
    present.factor_left_behind !== true;
  const next = nextUser(deps, present, moved, { isNewer, marks });
  if (marks) writes.push(...leftBehindWrites(deps, present.id));
  else if (isMarked && (deps.letsEnrol === true || moved.factors.length > 0))
    writes.push(letsEnrolWrite(present.id));
  for (const [index, identity] of moved.identities.entries()) {
    const here = identities[index];
    if (!isNewer) break;
    if (here === undefined) writes.push({ collection: 'identities', insert: identity });
    else if (here.user_id !== present.id) return conflictOf(new UniqueKeyError('identities', 'id'));
    else {
      const changed = nextIdentity(here as IdentityRecord, identity);
      if (changed !== undefined)
        writes.push({ collection: 'identities', update: here.id, change: () => changed });
    }
  }
  for (const [index, credential] of moved.credentials.entries()) {
    const write = passwordWrite(
      credential,
      credentials[index],
      present,
      moved.passwordsSetAt.get(credential.id),
    );
    if (write !== undefined) writes.push(write);
  }
  for (const [index, membership] of moved.memberships.entries()) {
    const write = membershipWrite(membership, memberships[index]);
    if (write !== undefined) writes.push(write);
  }
  if (moved.factors.length > 0 && !hasFactor) writes.push(...factorWrites(deps, present.id, moved.factors));
  if (next === undefined && writes.length === 0) return 'unchanged';
  const userWrite: Write = {
    collection: 'users',
    update: present.id,
    change: (current) => {
      // A login meanwhile is no change of what was compared.
      if (current.updated_at !== present.updated_at) throw OVERTAKEN;
      return nextUser(deps, current, moved, { isNewer, marks }) ?? current;
    },
  };
  try {
    await store.batch([userWrite, ...writes]);
  } catch (thrown) {
    if (thrown instanceof UniqueKeyError) return conflictOf(thrown);
    if (thrown !== OVERTAKEN) throw thrown;
    const again = await store.collection('users').get(present.id);
    return again === undefined ? 'unchanged' : updateMoved(deps, again, moved);
  }
  if (isNewer && moved.user.blocked === true && present.blocked !== true) await deps.endBlocked(present.id);
  return 'updated';
}

/** Returns a user with what the export has; undefined if that changes nothing. */
function nextUser(
  { clock }: Pick<MoveDependencies, 'clock'>,
  present: User,
  { user, passwordsSetAt }: MovedUser,
  { isNewer, marks }: { isNewer: boolean; marks: boolean },
): UserRecord | undefined {
  const roles = [...new Set([...(present.roles ?? []), ...(user.roles ?? [])])];
  const key = (one: { resource_server_identifier: string; permission_name: string }) =>
    `${one.resource_server_identifier}\n${one.permission_name}`;
  const direct = new Map(
    [...(present.permissions ?? []), ...(user.permissions ?? [])].map((one) => [key(one), one]),
  );
  const reset = latest(
    present.last_password_reset,
    passwordsSetAt.has(user.id) || isNewer ? user.last_password_reset : undefined,
  );
  const login = latest(present.last_login, user.last_login);
  const { email_history, access_ended_at, last_ip } = present;
  const base = isNewer
    ? {
        ...user,
        ...(email_history !== undefined && { email_history }),
        ...emailHistory(present, user, clock),
        ...(access_ended_at !== undefined && { access_ended_at }),
        ...(login !== user.last_login && last_ip !== undefined && { last_ip }),
      }
    : { ...present };
  const next = {
    ...base,
    ...((marks || present.factor_left_behind === true) && { factor_left_behind: true }),
    logins_count: Math.max(present.logins_count, isNewer ? user.logins_count : 0),
    ...(isNewer && login !== undefined && { last_login: login }),
    ...(reset !== undefined && { last_password_reset: reset }),
    ...(roles.length > 0 && { roles }),
    ...(direct.size > 0 && { permissions: [...direct.values()] }),
  } as UserRecord;
  return isDeepStrictEqual(next, present) ? undefined : next;
}

const latest = (...dates: (string | undefined)[]): string | undefined =>
  dates
    .filter((date) => date !== undefined)
    .sort()
    .at(-1);

/** Returns an identity with the addresses and profile of the export; undefined if it has them already. */
function nextIdentity(here: IdentityRecord, moved: IdentityRecord): IdentityRecord | undefined {
  const { email: _1, username: _2, phone_number: _3, profile: _4, ...rest } = here;
  const { email, username, phone_number, profile, attributes = here.attributes } = moved;
  const next: IdentityRecord = {
    ...rest,
    ...(email !== undefined && { email }),
    ...(username !== undefined && { username }),
    ...(phone_number !== undefined && { phone_number }),
    ...(profile !== undefined && { profile }),
    ...(attributes !== undefined && { attributes }),
  };
  return isDeepStrictEqual(next, here) ? undefined : next;
}

/** Returns the write of a password that is missing here, or was set at the old tenant after it was set here. */
function passwordWrite(
  moved: CredentialRecord,
  here: Readonly<Pick<CredentialRecord, 'passwordHash' | 'version'>> | undefined,
  { last_password_reset, created_at }: User,
  setAt: string | undefined,
): Write | undefined {
  if (here === undefined) return { collection: 'credentials', insert: moved };
  const isMissing = here.passwordHash === NO_PASSWORD;
  const isNewer = setAt !== undefined && setAt > (last_password_reset ?? created_at);
  if (moved.passwordHash === NO_PASSWORD || here.passwordHash === moved.passwordHash) return undefined;
  if (!isMissing && !isNewer) return undefined;
  return {
    collection: 'credentials',
    update: moved.id,
    change: (current) => {
      if (current.passwordHash !== here.passwordHash) throw OVERTAKEN;
      return {
        ...current,
        passwordHash: moved.passwordHash,
        version: versionOf(current) + (isMissing ? 0 : 1),
      };
    },
  };
}

/** Roles that a member got here stay. */
function membershipWrite(
  moved: MembershipRecord,
  here: { readonly roles: readonly string[] } | undefined,
): Write | undefined {
  if (here === undefined) return { collection: 'memberships', put: moved };
  if (moved.roles.every((role) => here.roles.includes(role))) return undefined;
  return {
    collection: 'memberships',
    update: moved.id,
    change: (current) => ({ ...current, roles: [...new Set([...current.roles, ...moved.roles])] }),
  };
}

/** Removes users of a batch again whose connection was deleted while it was written. */
export async function removeOrphans(
  { store }: Pick<MoveDependencies, 'store'>,
  lines: readonly string[],
  target: MoveTarget,
): Promise<void> {
  for (const text of lines) {
    const { user } = checkedJson(text) as { user?: { user_id?: unknown } };
    const id = String(user?.user_id);
    const identities = await store.collection('identities').findBy('user', id);
    if (!identities.some(({ connection }) => !target.connections.has(connection))) continue;
    await removeUser({ store }, id);
    await store.collection('memberships').deleteBy('user', id);
    await store.collection('authenticators').deleteBy('user', id);
  }
}
