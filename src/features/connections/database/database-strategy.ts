// The strategy of database connections: an e-mail address or username, and a password.
import type { Connection } from '../../../records/collections.ts';
import { attributesOf, usernameLength } from '../../../records/connections/database-attributes.ts';
import {
  databaseOptions,
  offersReset,
  passwordUse,
  takesSignUps,
} from '../../../records/database-options.ts';
import { NOBODY, originalUserId } from '../../../users/changes.ts';
import type { PasswordCheck } from '../../../users/credentials.ts';
import { LEFT_BEHIND_REASON } from '../../../users/left-factors.ts';
import { FIRST_VERSION } from '../../../users/login.ts';
import { widgetPolicy } from '../../../users/password-policy.ts';
import type { User } from '../../../users/user.ts';
import type { Users } from '../../../users/users.ts';
import { userEvents } from '../../../users/users-declaration.ts';
import { type Proof, type ProofDependencies, type ProvedUser, strategy } from '../strategy.ts';
import { databaseEvents } from './base/database-declaration.ts';
import { accountInDatabase, proveByCustomDatabase, wrongCredentials } from './custom/custom-login.ts';
import type { FailureEvent } from './custom/database-custom.ts';

function describe(connection: Connection): object {
  const options = databaseOptions(connection);
  const { signUp } = attributesOf(options).username;
  const hasLengths = (options.validation?.username ?? options.attributes?.username?.validation) !== undefined;
  return {
    ...widgetPolicy(options),
    showSignup: takesSignUps(connection),
    showForgot: offersReset(connection),
    requires_username: signUp === 'required',
    ...(hasLengths && { validation: { username: usernameLength(options) } }),
  };
}

/**
 * Verifies passwords. It takes as long for an unknown user as for a wrong password. A connection with a custom database asks
 * that one: always, or, where users move here, until the user's password is stored here.
 */
export const database = strategy(
  { name: 'auth0', amr: ['pwd'], page: 'form', managesPasswords: true, describe },
  {
    proofKind: 'password',
    isGuessable: () => true,
    find: (deps, proof: Proof<string>) => accountInDatabase(deps, proof),
    read: async ({ users, customDatabases }, { connection, identifier }, { userId }) => {
      const account = { connection, identifier };
      const mode = await customDatabases.modeOf(connection);
      // A user who was not found above may be created by a concurrent login; then `user` and `verify` would not match.
      const isMoved = mode === 'moves' && userId !== undefined;
      const [user, verify, isHere, version] = await Promise.all([
        users.get(userId ?? NOBODY),
        users.passwordOf(userId, account),
        mode === undefined || (isMoved && hasPassword(users, account)),
        mode === 'elsewhere' && userId !== undefined ? users.credentialVersion(userId) : FIRST_VERSION,
      ]);
      return { user, verify, isHere, version, mode };
    },
    verify: async (deps, { proof, read, isLogin, explain, reached }): Promise<ProvedUser | undefined> => {
      const prove = () =>
        read.isHere
          ? proveHere(deps, proof, { ...read, explain })
          : proveByCustomDatabase(deps, proof, { ...read, isLogin, explain, reached });
      const proved = await (read.mode !== undefined ? deps.customDatabases.padFailures(prove) : prove());
      // The password is verified even if passwords are switched off, so that the time does not reveal whether it was right.
      return passwordUse(proof.connection).logsIn ? proved : undefined;
    },
    userOf: async (_deps, _proof, _read, proved) => (proved.userId === NOBODY ? undefined : proved),
    failure: ({ user }) =>
      user === undefined ? { type: databaseEvents.fu } : { type: userEvents.fp, user_id: user.id },
    wrong: wrongCredentials,
  },
);

async function hasPassword(
  users: Users,
  { connection, identifier }: { connection: Connection; identifier: string },
): Promise<boolean> {
  const identity = await users.identityInConnection(connection, identifier);
  return identity !== undefined && users.hasPassword(originalUserId(identity));
}

/** A right password of a user whose second factor was left behind is a wrong one for everybody but the log. */
async function proveHere(
  { users }: Pick<ProofDependencies, 'users'>,
  { credentials: password }: Proof<string>,
  {
    user,
    verify,
    explain,
  }: { user: User | undefined; verify: PasswordCheck; explain(event: FailureEvent): void },
): Promise<ProvedUser | undefined> {
  const credentialVersion = await verify(password);
  if (credentialVersion === undefined) return undefined;
  if (user !== undefined && (await users.lacksFactor(user))) {
    explain({ type: userEvents.fp, description: LEFT_BEHIND_REASON });
    return undefined;
  }
  return { userId: user?.id ?? NOBODY, credentialVersion };
}
