// The strategy of database connections: an e-mail address or username, and a password.
import { AuthError } from '../../http/errors.ts';
import type { Connection } from '../../records/collections.ts';
import { databaseOptions } from '../../records/database-options.ts';
import { NOBODY } from '../../users/identities.ts';
import { type Proof, strategy } from '../strategy.ts';

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

/** Takes as long for an unknown user as for a wrong password. */
export const database = strategy(
  { name: 'auth0', amr: ['pwd'], page: 'form', managesPasswords: true, describe },
  {
    what: 'password',
    isGuessable: () => true,
    find: ({ users }, { connection, identifier }: Proof<string>) =>
      users.idInConnection(connection, identifier),
    read: async ({ users }, { connection, identifier }, userId) => {
      const by = { connection: connection.name, identifier };
      const [user, verify] = await Promise.all([users.get(userId ?? NOBODY), users.passwordOf(userId, by)]);
      return { user, verify };
    },
    judge: (_deps, { proof, read: { verify } }) => verify(proof.credentials),
    userOf: async (_deps, _proof, { user }, credentialVersion) =>
      user && { userId: user.id, credentialVersion },
    failure: ({ user }) => (user === undefined ? { type: 'fu' } : { type: 'fp', user_id: user.id }),
    wrong: () => new AuthError(403, 'invalid_grant', WRONG_CREDENTIALS),
  },
);
