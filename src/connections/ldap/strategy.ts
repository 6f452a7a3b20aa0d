// The strategies of directory connections: users log in with their password of the directory.
import { wrongCredentials } from '../database/custom-login.ts';
import { type Proof, strategy } from '../strategy.ts';
import { userOf } from '../upstream/user.ts';

/** For login widgets: accounts and passwords are managed in the directory. */
const DESCRIPTION = { showSignup: false, showForgot: false };

const directory = (name: 'ad' | 'auth0-adldap') =>
  strategy(
    { name, amr: ['pwd'], page: 'form', managesPasswords: false, describe: () => DESCRIPTION },
    {
      proofKind: 'password',
      isGuessable: () => true,
      find: ({ users }, { connection, identifier }: Proof<string>) =>
        users.idInConnection(connection, identifier),
      read: async (_deps, _proof, userId) => userId,
      verify: ({ directories }, { proof: { connection, identifier, credentials } }) =>
        directories.prove(connection, identifier.trim(), credentials),
      userOf: async (deps, { clientId, connection, caller }, _userId, identity) => {
        const traits = { name, isSocial: false, idsWithin: 'connection' } as const;
        const user = await userOf(deps, { clientId, connection, strategy: traits, ip: caller.ip }, identity);
        return { userId: user.id, credentialVersion: await deps.users.credentialVersion(user.id) };
      },
      failure: (userId) => ({ type: 'fp', ...(userId !== undefined && { user_id: userId }) }),
      wrong: wrongCredentials,
    },
  );

/** The two strategy names that the hosted service uses for directories. */
export const directoryStrategies = [directory('ad'), directory('auth0-adldap')];
