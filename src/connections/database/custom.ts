// Databases elsewhere, as a connection's scripts ask them.

import type { Pause } from '../../delivery/queue.ts';
import { AuthError } from '../../http/errors.ts';
import { nameKey } from '../../protection/counts.ts';
import type { RateLimits } from '../../protection/rate-limit.ts';
import { normalizeEmail } from '../../records/email.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { ScriptFailure } from '../../scripts/limits.ts';
import { type DatabaseUser, databaseUser } from '../../users/database-user.ts';
import {
  type Asked,
  type CustomRun,
  type CustomRunDependencies,
  databaseFailed,
  hasScript,
  runCustom,
  tellScript,
} from './custom-run.ts';
import { evenly } from './evenly.ts';

export type { Asked } from './custom-run.ts';

export interface CustomDatabases {
  /**
   * Who has this password there.
   * @returns what the script says of that where nobody has, `failed` where it gave no answer that counts: an event tells why.
   * @throws AuthError 429 where the script has failed too often for this user.
   */
  login(asked: Asked, password: string): Promise<DatabaseUser | WrongThere | 'failed'>;
  /**
   * Who has an address there; undefined for nobody, and without such a script.
   * @throws AuthError 503 `temporarily_unavailable` where the script failed: who has the address is not known then.
   */
  find(asked: Asked): Promise<DatabaseUser | undefined>;
  /**
   * Has a user made there.
   * @returns false where there is one already.
   * @throws AuthError 400 with the code and words of the script's ValidationError; 503 where it failed.
   */
  create(asked: Asked, user: NewCustomUser): Promise<boolean>;
  /** Sets a password there. @throws AuthError 503 where it was not changed. */
  changePassword(asked: Asked, password: string): Promise<void>;
  /**
   * Has something changed there by a script, where the connection has it.
   * @throws AuthError 503 where the script failed, or said that nothing was changed.
   */
  change(asked: Asked, name: ChangeScript, args: readonly unknown[]): Promise<void>;
  /** @see evenly */
  evenly<T>(work: () => Promise<T | undefined>): Promise<T | undefined>;
  /** Records that what a script said of a user cannot be. */
  refused(asked: Asked, name: 'login' | 'get_user' | 'create', why: string): void;
}

/** What is recorded of a wrong password, in a script's words. */
export interface Explained {
  type: 'fp' | 'fu';
  description?: string;
}

/** A wrong password, and what a script says of it. */
export interface WrongThere {
  wrong: Explained;
}

/** Scripts that carry something out; of `delete` no answer is needed. */
type ChangeScript = 'verify' | 'change_email' | 'change_username' | 'delete';

/** A user as `create` is given them, beside who asks. */
interface NewCustomUser extends Readonly<Record<string, unknown>> {
  password: string;
}

/** Whom a script is asked about: an e-mail address in the form that it is kept in here. */
function nameOf({ identifier }: Asked): string {
  return normalizeEmail(identifier) ?? identifier.trim();
}

interface CustomDatabasesDependencies extends CustomRunDependencies {
  rateLimits: Pick<RateLimits, 'spend' | 'giveBack'>;
  /** The tenant's name, as scripts are told it. */
  tenant: string;
  clock: Clock;
  pause: Pause;
}

/** The databases of a tenant. */
export function customDatabases(deps: CustomDatabasesDependencies): CustomDatabases {
  return {
    login: (asked, password) => limited(deps, asked, () => login(deps, asked, password)),
    find: async (asked) => {
      if (!hasScript(asked.connection, 'get_user')) return undefined;
      const { result, failure } = await runCustom(deps, asked, { name: 'get_user', args: [nameOf(asked)] });
      if (failure === undefined && (result ?? false) === false) return undefined;
      const user = failure === undefined ? userIn(result, asked) : failure.message;
      if (typeof user !== 'string') return user;
      tellScript(deps, asked, 'get_user', user);
      throw databaseFailed();
    },
    create: (asked, user) => create(deps, asked, user),
    changePassword: async (asked, password) => {
      const args = [nameOf(asked), password];
      await carryOut(deps, asked, { name: 'change_password', args, secret: password });
    },
    change: async (asked, name, args) => {
      if (hasScript(asked.connection, name)) await carryOut(deps, asked, { name, args });
    },
    evenly: (work) => evenly(deps, work),
    refused: (asked, name, why) => tellScript(deps, asked, name, why),
  };
}

/** Runs a script that changes something. @throws AuthError 503 where nothing was changed. */
async function carryOut(deps: CustomRunDependencies, asked: Asked, run: CustomRun): Promise<void> {
  const { result, failure } = await runCustom(deps, asked, run);
  if (failure === undefined && isDone(run.name, result)) return;
  tellScript(deps, asked, run.name, failure?.message ?? 'it changed nothing');
  throw databaseFailed();
}

/** Scripts answer with true; `change_password` may with an object, `delete` with nothing. */
function isDone(name: CustomRun['name'], result: unknown): boolean {
  if (name === 'delete') return result !== false;
  return result === true || (name === 'change_password' && typeof result === 'object' && result !== null);
}

async function create(
  deps: CustomDatabasesDependencies,
  asked: Asked,
  user: NewCustomUser,
): Promise<boolean> {
  const { connection, clientId } = asked;
  const told = {
    ...user,
    tenant: deps.tenant,
    connection: connection.name,
    ...(clientId !== undefined && { client_id: clientId }),
  };
  const run = { name: 'create', args: [told], secret: user.password } as const;
  const { failure } = await runCustom(deps, asked, run);
  if (failure === undefined) return true;
  const { name, code = '', message } = failure;
  const isRefusal = name === 'ValidationError';
  if (isRefusal && code === 'user_exists') return false;
  tellScript(deps, asked, 'create', message);
  // What a script refuses a new user for is written for whoever signs up.
  if (!isRefusal) throw databaseFailed();
  throw new AuthError(
    400,
    /^[\w.-]{1,64}$/.test(code) ? code : 'invalid_signup',
    message || 'Invalid sign up',
  );
}

async function login(
  deps: CustomRunDependencies,
  asked: Asked,
  password: string,
): ReturnType<CustomDatabases['login']> {
  const run = { name: 'login', args: [nameOf(asked), password], secret: password } as const;
  const { result, failure } = await runCustom(deps, asked, run);
  if (failure?.name === 'WrongUsernameOrPasswordError') return { wrong: explained(failure) };
  const user = failure === undefined ? userIn(result, asked) : failure.message;
  if (typeof user !== 'string') return user;
  tellScript(deps, asked, 'login', user);
  return 'failed';
}

/** Its first argument says whether there is such a user, the second why they do not come in. */
function explained({ code, message }: ScriptFailure): Explained {
  return { type: code === undefined ? 'fu' : 'fp', ...(message !== '' && { description: message }) };
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
  const key = `${connection.name}\n${nameKey(identifier)}`;
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
  if (typeof user === 'string') return user;
  const email = normalizeEmail(identifier);
  const name = identifier.trim().toLowerCase();
  const isAsked = email === undefined ? (user.username ?? name) === name : user.email === email;
  return isAsked ? user : 'it gave another user than the one it was asked for';
}
