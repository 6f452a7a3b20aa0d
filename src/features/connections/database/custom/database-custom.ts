// Custom databases: databases of the operator's own, which a connection asks by its scripts.
import type { Pause } from '../../../../capabilities/delivery/deliveries.ts';
import { nameKey } from '../../../../capabilities/protection/attempts.ts';
import type { RateLimits } from '../../../../capabilities/protection/rate-limit.ts';
import type { ScriptFailure } from '../../../../capabilities/scripts/limits.ts';
import { AuthError } from '../../../../http/errors.ts';
import { lookupEmail } from '../../../../records/base/email.ts';
import type { EventType } from '../../../../records/base/log-events.ts';
import type { Connection } from '../../../../records/collections.ts';
import { customDatabase, type DatabaseMode } from '../../../../records/database-options.ts';
import type { Clock } from '../../../../runtime/clock.ts';
import { type DatabaseUser, databaseUser } from '../../../../users/database-user.ts';
import { userEvents } from '../../../../users/users-declaration.ts';
import { databaseEvents, databaseLimits } from '../base/database-declaration.ts';
import {
  type CustomRun,
  type CustomRunDependencies,
  type DatabaseRequest,
  databaseFailed,
  hasScript,
  recordScriptFailure,
  runCustom,
} from './custom-run.ts';

export interface CustomDatabases {
  /**
   * Returns where the users of a connection are, as `customDatabase` does. While the passwords of an old tenant are accepted,
   * they move here from there.
   */
  modeOf(connection: Connection): Promise<DatabaseMode | undefined>;
  /** Returns whether {@link find} can find users. */
  finds(connection: Connection): Promise<boolean>;
  /**
   * @returns the user; `wrong` with the script's explanation for wrong credentials; `failed` if the script failed or
   *   returned no valid user, which is recorded.
   * @throws AuthError 429 if the script has failed too often for this user.
   */
  login(request: DatabaseRequest, password: string): Promise<DatabaseUser | WrongPassword | 'failed'>;
  /**
   * Returns the user with an address or username, by the `get_user` script; undefined if there is none, or no such script.
   * @throws AuthError 503 `temporarily_unavailable` if the script failed: it is not known then whether the user exists.
   */
  find(request: DatabaseRequest): Promise<DatabaseUser | undefined>;
  /**
   * Returns the id of the account that a name reaches, by the `get_user` script, which may find one account by many names.
   * Undefined if there is none, no such script, or it failed, which is recorded.
   */
  idOf(request: DatabaseRequest): Promise<string | undefined>;
  /**
   * Creates a user by the `create` script.
   * @returns false if the user exists already.
   * @throws AuthError 400 with the code and message of the script's ValidationError; 503 if it failed otherwise.
   */
  create(request: DatabaseRequest, user: NewCustomUser): Promise<boolean>;
  /** Sets a password by the `change_password` script. @throws AuthError 503 if it was not changed. */
  changePassword(request: DatabaseRequest, password: string): Promise<void>;
  /**
   * Runs a script that changes a user; does nothing if the connection does not have that script.
   * @throws AuthError 503 if the script failed, or answered that it changed nothing.
   */
  change(request: DatabaseRequest, name: ChangeScript, args: readonly unknown[]): Promise<void>;
  /** @see padFailures */
  padFailures<T>(work: () => Promise<T | undefined>): Promise<T | undefined>;
  /** Records that the user a script returned was not accepted. */
  recordRefusal(
    request: DatabaseRequest,
    name: 'login' | 'get_user' | 'create',
    reason: string,
  ): Promise<void>;
  /** Called when the password of a user who moves here was stored. */
  recordMove(request: DatabaseRequest, userId: string): Promise<void>;
}

/** The users of a tenant that this one takes the place of, while its passwords are accepted (features/move). */
export interface OldTenantUsers {
  isAsked(connection: Connection): Promise<boolean>;
  /** @see CustomDatabases.login */
  login(request: DatabaseRequest, password: string): Promise<DatabaseUser | WrongPassword | 'failed'>;
  /** @see CustomDatabases.find */
  find(request: DatabaseRequest): Promise<DatabaseUser | undefined>;
  recordRefusal(request: DatabaseRequest, reason: string): void;
  recordMove(request: DatabaseRequest, userId: string): void;
}

/** The log event of a wrong password, as the script explains it: `fu` for an unknown user, else `fp`. */
export interface FailureEvent {
  type: EventType;
  description?: string;
}

/** Wrong credentials, and the script's explanation. */
export interface WrongPassword {
  wrong: FailureEvent;
  /** The account that the script named. */
  account?: string | undefined;
}

type ChangeScript = 'verify' | 'change_email' | 'change_username' | 'delete';

/** The members of the `create` script's user that the caller sets; tenant, connection, and client are added. */
interface NewCustomUser extends Readonly<Record<string, unknown>> {
  password: string;
}

/** Returns the identifier that scripts are given: an e-mail address in the form that it is stored in here. */
function scriptIdentifier({ identifier }: DatabaseRequest): string {
  return lookupEmail(identifier) ?? identifier.trim();
}

interface CustomDatabasesDependencies extends CustomRunDependencies {
  rateLimits: Pick<RateLimits, 'spend' | 'giveBack' | 'hasLeft'>;
  /** The tenant's name, which the `create` script is given. */
  tenant: string;
  oldTenant: OldTenantUsers;
  clock: Clock;
  pause: Pause;
}

export function customDatabases(deps: CustomDatabasesDependencies): CustomDatabases {
  const { oldTenant } = deps;
  return {
    modeOf: async (connection) => {
      const mode = customDatabase(connection);
      return mode === undefined && (await oldTenant.isAsked(connection)) ? 'moves' : mode;
    },
    finds: async (connection) => hasScript(connection, 'get_user') || (await oldTenant.isAsked(connection)),
    login: async (request, password) => {
      // It runs the scripts of its connection itself, for users whom it has not imported.
      const isAsked = await oldTenant.isAsked(request.connection);
      return limitFailures(deps, request, () =>
        isAsked ? oldTenant.login(request, password) : login(deps, request, password),
      );
    },
    find: async (request) => {
      const isAsked = await oldTenant.isAsked(request.connection);
      return (isAsked ? await oldTenant.find(request) : undefined) ?? find(deps, request);
    },
    idOf: (request) => idOf(deps, request),
    create: (request, user) => create(deps, request, user),
    changePassword: async (request, password) => {
      const args = [scriptIdentifier(request), password];
      await runChange(deps, request, { name: 'change_password', args, secret: password });
    },
    change: async (request, name, args) => {
      if (hasScript(request.connection, name)) await runChange(deps, request, { name, args });
    },
    padFailures: (work) => padFailures(deps, work),
    recordRefusal: async (request, name, reason) => {
      if (await oldTenant.isAsked(request.connection)) oldTenant.recordRefusal(request, reason);
      else recordScriptFailure(deps, request, name, reason);
    },
    recordMove: async (request, userId) => {
      if (await oldTenant.isAsked(request.connection)) oldTenant.recordMove(request, userId);
    },
  };
}

async function find(
  deps: CustomRunDependencies,
  request: DatabaseRequest,
): Promise<DatabaseUser | undefined> {
  if (!hasScript(request.connection, 'get_user')) return undefined;
  const { result, failure } = await runCustom(deps, request, {
    name: 'get_user',
    args: [scriptIdentifier(request)],
  });
  if (failure === undefined && (result ?? false) === false) return undefined;
  const user = failure === undefined ? userIn(result, request) : failure.message;
  if (typeof user !== 'string') return user;
  recordScriptFailure(deps, request, 'get_user', user);
  throw databaseFailed();
}

async function idOf(
  deps: CustomRunDependencies & Pick<CustomDatabasesDependencies, 'rateLimits'>,
  request: DatabaseRequest,
): Promise<string | undefined> {
  if (!hasScript(request.connection, 'get_user')) return undefined;
  // The login that follows is refused then. Failures are counted by it alone: this script gets no password to guess.
  if (!(await deps.rateLimits.hasLeft(databaseLimits.customDatabase, failureKey(request)))) return undefined;
  const run = { name: 'get_user', args: [scriptIdentifier(request)] } as const;
  const { result, failure } = await runCustom(deps, request, run);
  if (failure !== undefined) {
    recordScriptFailure(deps, request, 'get_user', failure.message);
    return undefined;
  }
  const user = (result ?? false) === false ? undefined : databaseUser(result);
  return typeof user === 'object' ? user.upstreamId : undefined;
}

/** @throws AuthError 503 if nothing was changed. */
async function runChange(
  deps: CustomRunDependencies,
  request: DatabaseRequest,
  run: CustomRun,
): Promise<void> {
  const { result, failure } = await runCustom(deps, request, run);
  if (failure === undefined && hasSucceeded(run.name, result)) return;
  recordScriptFailure(deps, request, run.name, failure?.message ?? 'it changed nothing');
  throw databaseFailed();
}

/** Returns whether a result means success: true; of `change_password` also an object; of `delete` anything but false. */
function hasSucceeded(name: CustomRun['name'], result: unknown): boolean {
  if (name === 'delete') return result !== false;
  return result === true || (name === 'change_password' && typeof result === 'object' && result !== null);
}

async function create(
  deps: CustomDatabasesDependencies,
  request: DatabaseRequest,
  user: NewCustomUser,
): Promise<boolean> {
  const { connection, clientId } = request;
  const newUser = {
    ...user,
    tenant: deps.tenant,
    connection: connection.name,
    ...(clientId !== undefined && { client_id: clientId }),
  };
  const run = { name: 'create', args: [newUser], secret: user.password } as const;
  const { failure } = await runCustom(deps, request, run);
  if (failure === undefined) return true;
  const { name, code = '', message } = failure;
  const isRefusal = name === 'ValidationError';
  if (isRefusal && code === 'user_exists') return false;
  recordScriptFailure(deps, request, 'create', message);
  // The message of a ValidationError is meant for the person who signs up.
  if (!isRefusal) throw databaseFailed();
  throw new AuthError(
    400,
    /^[\w.-]{1,64}$/.test(code) ? code : 'invalid_signup',
    message || 'Invalid sign up',
  );
}

async function login(
  deps: CustomRunDependencies,
  request: DatabaseRequest,
  password: string,
): ReturnType<CustomDatabases['login']> {
  const run = { name: 'login', args: [scriptIdentifier(request), password], secret: password } as const;
  const { result, failure } = await runCustom(deps, request, run);
  if (failure?.name === 'WrongUsernameOrPasswordError')
    return { wrong: failureEvent(failure), account: failure.code };
  const user = failure === undefined ? userIn(result, request) : failure.message;
  if (typeof user !== 'string') return user;
  recordScriptFailure(deps, request, 'login', user);
  return 'failed';
}

/** Returns the log event of a WrongUsernameOrPasswordError: a code is given only for a user who exists. */
function failureEvent({ code, message }: ScriptFailure): FailureEvent {
  return {
    type: code === undefined ? databaseEvents.fu : userEvents.fp,
    ...(message !== '' && { description: message }),
  };
}

// docs/understand/decisions/connections.md#if-a-database-script-fails-the-response-is-that-for-a-wrong-password
/**
 * Limits failures of the script. A failure does not count as a wrong password, because a script may fail for right ones,
 * too; without a limit, passwords could be guessed with a script that fails for wrong ones.
 */
async function limitFailures(
  { rateLimits }: Pick<CustomDatabasesDependencies, 'rateLimits'>,
  request: DatabaseRequest,
  logIn: () => ReturnType<CustomDatabases['login']>,
): ReturnType<CustomDatabases['login']> {
  const key = failureKey(request);
  if (!(await rateLimits.spend(databaseLimits.customDatabase, key))) {
    throw new AuthError(429, 'too_many_requests', 'The user database failed too often. Try again later.');
  }
  const answer = await logIn();
  if (answer !== 'failed') await rateLimits.giveBack(databaseLimits.customDatabase, key);
  return answer;
}

function failureKey({ connection, identifier }: DatabaseRequest): string {
  return `${connection.name}\n${nameKey(identifier)}`;
}

/** Returns the user of a script's result, or the reason why it is not accepted as the requested user. */
function userIn(result: unknown, { identifier }: DatabaseRequest): DatabaseUser | string {
  const user = databaseUser(result);
  if (typeof user === 'string') return user;
  const email = lookupEmail(identifier);
  const name = identifier.trim().toLowerCase();
  const isSameUser = email === undefined ? (user.username ?? name) === name : user.email === email;
  return isSameUser ? user : 'it gave another user than the one it was asked for';
}

// Hides how long a custom database took to refuse.

/** Milliseconds; most databases answer sooner. */
const STEP = 500;

/**
 * Does some work. If it returns undefined or throws, waits until the elapsed time is a multiple of 500 ms, so that the time
 * reveals little about the reason: a wrong password here, an unknown user there, or a hash that a script compared.
 */
async function padFailures<T>(
  { clock, pause }: { clock: Clock; pause: Pause },
  work: () => Promise<T | undefined>,
): Promise<T | undefined> {
  const start = clock();
  const pad = () => pause(STEP - ((clock() - start) % STEP), new AbortController().signal);
  try {
    const answer = await work();
    if (answer === undefined) await pad();
    return answer;
  } catch (thrown) {
    await pad();
    throw thrown;
  }
}
