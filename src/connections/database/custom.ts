// Databases elsewhere, as a connection's scripts ask them.
import { AuthError } from '../../http/errors.ts';
import type { RateLimits } from '../../protection/rate-limit.ts';
import { customDatabase } from '../../records/database-options.ts';
import { normalizeEmail } from '../../records/email.ts';
import { type DatabaseUser, databaseUser } from '../../users/database-user.ts';
import {
  type Asked,
  type CustomRunDependencies,
  databaseFailed,
  runCustom,
  tellScript,
} from './custom-run.ts';

export type { Asked } from './custom-run.ts';

export interface CustomDatabases {
  /**
   * Who has this password there.
   * @returns `wrong` where nobody has, `failed` where the script gave no answer that counts: an event tells why.
   * @throws AuthError 429 where the script has failed too often for this user.
   */
  login(asked: Asked, password: string): Promise<DatabaseUser | 'wrong' | 'failed'>;
  /**
   * Who has an address there; undefined for nobody, and without such a script.
   * @throws AuthError 503 `temporarily_unavailable` where the script failed: who has the address is not known then.
   */
  find(asked: Asked): Promise<DatabaseUser | undefined>;
  /** Records that what a script said of a user cannot be. */
  refused(asked: Asked, name: 'login' | 'get_user', why: string): void;
}

/**
 * Asks whether an address is somebody's in a database elsewhere whom nobody knows here yet: nobody else may have it.
 * @throws AuthError as {@link CustomDatabases.find}
 */
export function takenElsewhere(
  { customDatabases }: { customDatabases: Pick<CustomDatabases, 'find'> },
  asked: Asked,
): () => Promise<boolean> {
  return async () =>
    customDatabase(asked.connection) !== undefined && (await customDatabases.find(asked)) !== undefined;
}

/** Whom a script is asked about: an e-mail address in the form that it is kept in here. */
function nameOf({ identifier }: Asked): string {
  return normalizeEmail(identifier) ?? identifier.trim();
}

interface CustomDatabasesDependencies extends CustomRunDependencies {
  rateLimits: Pick<RateLimits, 'spend' | 'giveBack'>;
}

/** The databases of a tenant. */
export function customDatabases(deps: CustomDatabasesDependencies): CustomDatabases {
  return {
    login: (asked, password) => limited(deps, asked, () => login(deps, asked, password)),
    find: async (asked) => {
      const answer = await runCustom(deps, asked, { name: 'get_user', args: [nameOf(asked)] });
      if (answer === undefined) return undefined;
      if (answer.failure !== undefined) tellScript(deps, asked, 'get_user', answer.failure.message);
      else {
        if ((answer.result ?? false) === false) return undefined;
        const user = userIn(answer.result, asked);
        if (typeof user !== 'string') return user;
        tellScript(deps, asked, 'get_user', user);
      }
      throw databaseFailed();
    },
    refused: (asked, name, why) => tellScript(deps, asked, name, why),
  };
}

async function login(
  deps: CustomRunDependencies,
  asked: Asked,
  password: string,
): Promise<DatabaseUser | 'wrong' | 'failed'> {
  const answer = await runCustom(deps, asked, {
    name: 'login',
    args: [nameOf(asked), password],
    secret: password,
  });
  if (answer === undefined) return 'wrong';
  if (answer.failure?.name === 'WrongUsernameOrPasswordError') return 'wrong';
  const user = answer.failure === undefined ? userIn(answer.result, asked) : answer.failure.message;
  if (typeof user !== 'string') return user;
  tellScript(deps, asked, 'login', user);
  return 'failed';
}

/**
 * A script that fails counts as no wrong password, since it may fail for right ones, too. So that nobody guesses by a script
 * that fails for wrong ones, it is not asked without end.
 */
async function limited(
  { rateLimits }: Pick<CustomDatabasesDependencies, 'rateLimits'>,
  { connection, identifier }: Asked,
  ask: () => ReturnType<CustomDatabases['login']>,
): ReturnType<CustomDatabases['login']> {
  const key = `${connection.name}\n${identifier.trim().toLowerCase()}`;
  if (!(await rateLimits.spend('customDatabase', key))) {
    throw new AuthError(429, 'too_many_requests', 'The user database failed too often. Try again later.');
  }
  const answer = await ask();
  if (answer !== 'failed') await rateLimits.giveBack('customDatabase', key);
  return answer;
}

/** The user of a result, or why it is none that was asked for. */
function userIn(result: unknown, { identifier }: Asked): DatabaseUser | string {
  const user = databaseUser(result);
  if (user === undefined) return 'it gave no user with a user_id';
  const email = normalizeEmail(identifier);
  const name = identifier.trim().toLowerCase();
  const isAsked = email === undefined ? (user.username ?? name) === name : user.email === email;
  return isAsked ? user : 'it gave another user than the one it was asked for';
}
