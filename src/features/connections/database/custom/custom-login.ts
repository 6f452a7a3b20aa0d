// Verifies a password by a custom database.

import { AuthError } from '../../../../http/errors.ts';
import { DATABASE } from '../../../../records/connections/connections.ts';
import {
  customDatabase,
  type DatabaseMode,
  MAX_PASSWORD_LENGTH,
} from '../../../../records/database-options.ts';
import { NOBODY } from '../../../../users/changes.ts';
import { expectedConnection } from '../../../../users/connection-check.ts';
import type { DatabaseUser } from '../../../../users/database-user.ts';
import { FIRST_VERSION } from '../../../../users/login.ts';
import type { User } from '../../../../users/user.ts';
import {
  accountOfUser,
  type Proof,
  type ProofDependencies,
  type ProvedUser,
  type ReachedAccount,
} from '../../strategy.ts';
import { conflictReason, mirroredIn } from './custom-user.ts';
import type { FailureEvent } from './database-custom.ts';

/** The message for an unknown user and for a wrong password alike. SDKs compare it byte for byte. */
const WRONG_CREDENTIALS = 'Wrong email or password.';

export const wrongCredentials = () => new AuthError(403, 'invalid_grant', WRONG_CREDENTIALS);

/** What is known before the database is asked. */
interface KnownUser {
  /** The user here whom the identifier names. */
  user: User | undefined;
  /** The version of that user's credential, read before the password was verified. */
  version: number;
  /** Where the users of the connection are. */
  mode: DatabaseMode | undefined;
  /** Whether to log in, which creates or updates the record here; otherwise the password is only checked. */
  isLogin: boolean;
  /** Sets the log event for a wrong password, as the script explains it. */
  explain(event: FailureEvent): void;
  /**
   * Adds names of the account that the script has reached, for which the outcome is counted.
   * @returns whether all have attempts left.
   */
  reached(accounts: readonly string[]): Promise<boolean>;
}

/**
 * Returns the account that a name reaches. A custom database may find an account by many names, so one that is not known here
 * by the name is looked up there, if the connection has a `get_user` script.
 */
export async function accountInDatabase(
  { users, customDatabases }: ProofDependencies,
  { connection, identifier, clientId, caller, organization }: Proof<string>,
): Promise<ReachedAccount> {
  const userId = await users.idInConnection(connection, identifier);
  if (userId !== undefined || customDatabase(connection) === undefined) return accountOfUser(userId);
  const id = await customDatabases.idOf({
    connection,
    identifier,
    clientId,
    ip: caller.ip,
    organization,
  });
  return { userId, accounts: id === undefined ? [] : [`${DATABASE}|${id}`] };
}

/** Returns the name to count under for a name that a script gave, which is none that anybody types. */
const named = (name: string) => `${DATABASE}|named|${name}`;

/** Returns the names of a user whose password was right: those that a script may have given for wrong ones. */
function namesOf({ upstreamId, email, username }: DatabaseUser): string[] {
  const names = [upstreamId, email, username].filter((one) => one !== undefined);
  return [`${DATABASE}|${upstreamId}`, ...names.map(named)];
}

/**
 * Verifies a password by the connection's `login` script.
 * @returns the user here; undefined for a wrong password.
 * @throws AuthError the one for a wrong password, but without counting it, if the script failed or the id or address of its
 *   user belongs to another user here.
 */
export async function proveByCustomDatabase(
  deps: ProofDependencies,
  { connection, identifier, credentials: password, clientId, caller, organization }: Proof<string>,
  { user, version, mode, isLogin, explain, reached }: KnownUser,
): Promise<ProvedUser | undefined> {
  // A longer password cannot have been set.
  if (Buffer.byteLength(password) > MAX_PASSWORD_LENGTH) return undefined;
  const request = { connection, identifier, clientId, ip: caller.ip, organization };
  const verifyThere = async () => {
    const databaseUser = await deps.customDatabases.login(request, password);
    if (databaseUser === 'failed') throw wrongCredentials();
    // Without attempts left, a right password is treated as a wrong one: nobody is moved or changed here.
    if (!('wrong' in databaseUser)) return (await reached(namesOf(databaseUser))) ? databaseUser : undefined;
    explain(databaseUser.wrong);
    if (databaseUser.account !== undefined) await reached([named(databaseUser.account)]);
    return undefined;
  };
  const databaseUser = await verifyThere();
  if (databaseUser === undefined) return undefined;
  if (!isLogin) return { userId: NOBODY, credentialVersion: FIRST_VERSION };
  const conflictError = async () => {
    await deps.customDatabases.recordRefusal(request, 'login', conflictReason(databaseUser));
    return wrongCredentials();
  };
  if (mode === 'moves') {
    const moved = await deps.users.move({ ...databaseUser, ...expectedConnection(connection), password });
    if (moved === undefined) throw await conflictError();
    if (moved.isStored) await deps.customDatabases.recordMove(request, moved.user.id);
    // If another login or a reset has stored a password meanwhile, that password is the valid one.
    const credentialVersion = await moved.verify(password);
    return credentialVersion === undefined ? undefined : { userId: moved.user.id, credentialVersion };
  }
  const mirrored = await deps.users.mirror(mirroredIn(connection, databaseUser));
  if (mirrored === undefined) throw await conflictError();
  if (mirrored.fault !== undefined)
    await deps.customDatabases.recordRefusal(request, 'login', mirrored.fault.message);
  const {
    user: { id },
    isNew,
  } = mirrored;
  if (isNew || id === user?.id) return { userId: id, credentialVersion: version };
  // The user is only known once the script has judged the password; the password may have been changed while it ran.
  const credentialVersion = await deps.users.credentialVersion(id);
  return (await verifyThere())?.upstreamId === databaseUser.upstreamId
    ? { userId: id, credentialVersion }
    : undefined;
}
