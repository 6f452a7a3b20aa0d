// The strategy of database connections: an e-mail address or username, and a password.
import { AuthError } from '../../http/errors.ts';
import type { Connection } from '../../records/collections.ts';
import { databaseOptions } from '../../records/database-options.ts';
import { LONGEST_PASSWORD } from '../../records/passwords.ts';
import { NOBODY } from '../../users/identities.ts';
import { FIRST_VERSION } from '../../users/login.ts';
import { type Proof, type ProofDependencies, type Proved, strategy } from '../strategy.ts';
import { movesUsers } from './custom.ts';

/** One answer for an unknown user and a wrong password; SDKs compare it letter by letter. */
export const WRONG_CREDENTIALS = 'Wrong email or password.';

function describe(connection: Connection): object {
  const options = databaseOptions(connection);
  const minimum = options.password_complexity_options?.min_length;
  const username = options.validation?.username;
  return {
    passwordPolicy: options.passwordPolicy,
    ...(minimum !== undefined && { password_complexity_options: { min_length: minimum } }),
    showSignup: !options.disable_signup,
    showForgot: true,
    requires_username: options.requires_username,
    ...(username !== undefined && { validation: { username: { min: username.min, max: username.max } } }),
  };
}

/**
 * Takes as long for an unknown user as for a wrong password. Where users move here from a database elsewhere, that one is
 * asked for those whose password is not kept here yet, and for no others.
 */
export const database = strategy(
  { name: 'auth0', amr: ['pwd'], page: 'form', managesPasswords: true, describe },
  {
    what: 'password',
    isGuessable: () => true,
    find: ({ users }, { connection, identifier }: Proof<string>) =>
      users.idInConnection(connection, identifier),
    read: async ({ users }, { connection, identifier }, userId) => {
      const by = { connection: connection.name, identifier };
      const [user, verify, isHere] = await Promise.all([
        users.get(userId ?? NOBODY),
        users.passwordOf(userId, by),
        !movesUsers(connection) || users.hasPassword(by),
      ]);
      return { user, verify, isHere };
    },
    judge: async (deps, { proof, read: { user, verify, isHere }, use }): Promise<Proved | undefined> => {
      if (!isHere) return moveIn(deps, proof, use);
      const credentialVersion = await verify(proof.credentials);
      return credentialVersion === undefined ? undefined : { userId: user?.id ?? NOBODY, credentialVersion };
    },
    userOf: async (_deps, _proof, _read, proved) => (proved.userId === NOBODY ? undefined : proved),
    failure: ({ user }) => (user === undefined ? { type: 'fu' } : { type: 'fp', user_id: user.id }),
    wrong: () => new AuthError(403, 'invalid_grant', WRONG_CREDENTIALS),
  },
);

/** Asks the database elsewhere. @param use whether its user is made one of ours. */
async function moveIn(
  { users, customDatabases }: ProofDependencies,
  { connection, identifier, credentials: password, clientId, caller }: Proof<string>,
  use: boolean,
): Promise<Proved | undefined> {
  // Nothing is kept of a longer one.
  if (Buffer.byteLength(password) > LONGEST_PASSWORD) return undefined;
  const there = await customDatabases.login({ connection, identifier, clientId, ip: caller.ip }, password);
  if (there === undefined) return undefined;
  if (!use) return { userId: NOBODY, credentialVersion: FIRST_VERSION };
  const moved = await users.move({ ...there, connection: connection.name, password });
  // Another login of theirs, or a new password, may have been sooner: then it is that password that counts.
  const credentialVersion = await moved?.verify(password);
  if (moved === undefined || credentialVersion === undefined) return undefined;
  return { userId: moved.user.id, credentialVersion };
}
