// The strategies of directory connections: users log in with their password of the directory.
import { userEvents } from '../../../users/users-declaration.ts';
import { wrongCredentials } from '../database/custom/custom-login.ts';
import { type Proof, type ProofDependencies, type ReachedAccount, strategy } from '../strategy.ts';
import { stableIdOf, userOf } from '../upstream/upstream-login-user.ts';
import type { DirectoryEntry } from './ldap-profile.ts';

/** For login widgets: accounts and passwords are managed in the directory. */
const DESCRIPTION = { showSignup: false, showForgot: false };

interface ReachedEntry extends ReachedAccount {
  entry: DirectoryEntry | undefined;
}

const directory = (name: 'ad' | 'auth0-adldap') => {
  const traits = { name, isSocial: false, idsWithin: 'connection' } as const;

  /** A directory compares prepared strings (RFC 4518) and finds an entry by several attributes, so the entry counts. */
  const find = async (
    { users, directories }: ProofDependencies,
    { connection, identifier }: Proof<string>,
  ): Promise<ReachedEntry> => {
    const entry = await directories.find(connection, identifier.trim());
    if (entry === undefined) return { entry, userId: undefined, accounts: [] };
    const { id, stable = { id, name: id, isSame: () => false, description: '' } } = entry;
    const account = {
      connection: connection.name,
      stable: stableIdOf({ connection, strategy: traits }, stable),
    };
    const userId = await users.idOfStable(account);
    return { entry, userId, accounts: [userId ?? `${name}|${account.stable.unnamed}`] };
  };

  return strategy(
    { name, amr: ['pwd'], page: 'form', managesPasswords: false, describe: () => DESCRIPTION },
    {
      proofKind: 'password',
      isGuessable: () => true,
      find,
      read: async (_deps, _proof, reached) => reached,
      verify: ({ directories }, { proof: { connection, credentials }, read: { entry } }) =>
        directories.prove(connection, entry, credentials),
      userOf: async (deps, { clientId, connection, caller }, _reached, identity) => {
        const user = await userOf(deps, { clientId, connection, strategy: traits, ip: caller.ip }, identity);
        return { userId: user.id, credentialVersion: await deps.users.credentialVersion(user.id) };
      },
      failure: ({ userId }) => ({ type: userEvents.fp, ...(userId !== undefined && { user_id: userId }) }),
      wrong: wrongCredentials,
    },
  );
};

// docs/understand/decisions/connections.md#directories-are-queried-directly
/** The two strategy names that the hosted service uses for directories. */
export const directoryStrategies = [directory('ad'), directory('auth0-adldap')];
