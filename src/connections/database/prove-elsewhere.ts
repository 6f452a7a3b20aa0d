// A password that a database elsewhere knows.
import { AuthError } from '../../http/errors.ts';
import { customDatabase } from '../../records/database-options.ts';
import { LONGEST_PASSWORD } from '../../records/passwords.ts';
import { NOBODY } from '../../users/identities.ts';
import { FIRST_VERSION } from '../../users/login.ts';
import type { User } from '../../users/user.ts';
import type { Proof, ProofDependencies, Proved } from '../strategy.ts';
import type { Explained } from './custom.ts';
import { foreignId, mirroredIn } from './elsewhere.ts';

/** One answer for an unknown user and a wrong password; SDKs compare it letter by letter. */
const WRONG_CREDENTIALS = 'Wrong email or password.';

export const wrongCredentials = () => new AuthError(403, 'invalid_grant', WRONG_CREDENTIALS);

/** What is known before a database is asked. */
interface Known {
  /** Whom the identifier names here. */
  user: User | undefined;
  /** The version of their credential, read before. */
  version: number;
  /** Whether its user is made one of ours. */
  use: boolean;
  /** Has what the script says of a wrong password recorded. */
  explain(why: Explained): void;
}

/**
 * Asks the database elsewhere.
 * @returns undefined for a wrong password.
 * @throws AuthError as for a wrong password, which is not counted, where the script failed or spoke of somebody else.
 */
export async function proveElsewhere(
  deps: ProofDependencies,
  { connection, identifier, credentials: password, clientId, caller, organization }: Proof<string>,
  { user, version, use, explain }: Known,
): Promise<Proved | undefined> {
  // Nothing is kept of a longer one.
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
    deps.customDatabases.refused(asked, 'login', foreignId(there));
    return wrongCredentials();
  };
  if (customDatabase(connection) === 'moves') {
    const moved = await deps.users.move({ ...there, connection: connection.name, password });
    if (moved === undefined) throw foreign();
    // Another login of theirs, or a new password, may have been sooner: then it is that password that counts.
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
  // Whom they are was not known before the password was judged: a new one may have been set meanwhile.
  const credentialVersion = await deps.users.credentialVersion(id);
  return (await ask())?.upstreamId === there.upstreamId ? { userId: id, credentialVersion } : undefined;
}
