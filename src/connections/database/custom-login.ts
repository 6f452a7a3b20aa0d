// Verifies a password by a custom database.
import { AuthError } from '../../http/errors.ts';
import { customDatabase } from '../../records/database-options.ts';
import { LONGEST_PASSWORD } from '../../records/passwords.ts';
import { NOBODY } from '../../users/identities.ts';
import { FIRST_VERSION } from '../../users/login.ts';
import type { User } from '../../users/user.ts';
import type { Proof, ProofDependencies, Proved } from '../strategy.ts';
import type { Explained } from './custom.ts';
import { conflictReason, mirroredIn } from './custom-user.ts';

/** The message for an unknown user and for a wrong password alike. SDKs compare it byte for byte. */
const WRONG_CREDENTIALS = 'Wrong email or password.';

export const wrongCredentials = () => new AuthError(403, 'invalid_grant', WRONG_CREDENTIALS);

/** What is known before the database is asked. */
interface Known {
  /** The user here whom the identifier names. */
  user: User | undefined;
  /** The version of that user's credential, read before the password was verified. */
  version: number;
  /** Whether to log in, which creates or updates the record here; otherwise the password is only checked. */
  use: boolean;
  /** Sets the log event for a wrong password, as the script explains it. */
  explain(why: Explained): void;
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
  { user, version, use, explain }: Known,
): Promise<Proved | undefined> {
  // A longer password cannot have been set.
  if (Buffer.byteLength(password) > LONGEST_PASSWORD) return undefined;
  const asked = { connection, identifier, clientId, ip: caller.ip, organization };
  const ask = async () => {
    const there = await deps.customDatabases.login(asked, password);
    if (there === 'failed') throw wrongCredentials();
    if (!('wrong' in there)) return there;
    explain(there.wrong);
    return undefined;
  };
  const there = await ask();
  if (there === undefined) return undefined;
  if (!use) return { userId: NOBODY, credentialVersion: FIRST_VERSION };
  const foreign = () => {
    deps.customDatabases.refused(asked, 'login', conflictReason(there));
    return wrongCredentials();
  };
  if (customDatabase(connection) === 'moves') {
    const moved = await deps.users.move({ ...there, connection: connection.name, password });
    if (moved === undefined) throw foreign();
    // If another login or a reset has stored a password meanwhile, that password is the valid one.
    const credentialVersion = await moved.verify(password);
    return credentialVersion === undefined ? undefined : { userId: moved.user.id, credentialVersion };
  }
  const mirrored = await deps.users.mirror(mirroredIn(connection, there));
  if (mirrored === undefined) throw foreign();
  const {
    user: { id },
    isNew,
  } = mirrored;
  if (isNew || id === user?.id) return { userId: id, credentialVersion: version };
  // The user is only known once the script has judged the password; the password may have been changed while it ran.
  const credentialVersion = await deps.users.credentialVersion(id);
  return (await ask())?.upstreamId === there.upstreamId ? { userId: id, credentialVersion } : undefined;
}
