// Databases elsewhere, which a connection's scripts ask. What a script fails with is told the operator by an event, and nobody
// else: an answer of its own would say who is known here.
import { AuthError } from '../../http/errors.ts';
import type { Connection } from '../../records/collections.ts';
import type { CustomScriptName } from '../../records/custom-scripts.ts';
import { databaseOptions } from '../../records/database-options.ts';
import { normalizeEmail } from '../../records/email.ts';
import type { ScriptFailure } from '../../scripts/limits.ts';
import type { Scripts } from '../../scripts/scripts.ts';
import type { Events } from '../../tenant/events.ts';
import type { MovedUser } from '../../users/moved.ts';

/** For whom a script is run. */
export interface Asked {
  connection: Connection;
  /** Whom it is about: an address or username, as typed. */
  identifier: string;
  clientId?: string | undefined;
  ip?: string | undefined;
}

/** Somebody as a script has them. */
export type CustomUser = Pick<MovedUser, 'upstreamId' | 'profile' | 'metadata'>;

export interface CustomDatabases {
  /**
   * Who has this password there.
   * @returns undefined where it is wrong, and where the script failed: an event tells which.
   */
  login(asked: Asked, password: string): Promise<CustomUser | undefined>;
  /**
   * Who has an address there; undefined for nobody, and without such a script.
   * @throws AuthError 503 `temporarily_unavailable` where the script failed: who has the address is not known then.
   */
  find(asked: Asked): Promise<CustomUser | undefined>;
}

/** Whether the users of a connection move here from a database elsewhere, as they log in. */
export function movesUsers(connection: Connection): boolean {
  const { enabledDatabaseCustomization, import_mode } = databaseOptions(connection);
  return (
    enabledDatabaseCustomization === true &&
    import_mode === true &&
    sourceOf(connection, 'login') !== undefined
  );
}

/**
 * Asks whether an address is somebody's there who has not moved here yet: nobody else may sign up with it.
 * @throws AuthError as {@link CustomDatabases.find}
 */
export function takenElsewhere(
  { customDatabases }: { customDatabases: CustomDatabases },
  asked: Asked,
): () => Promise<boolean> {
  const identifier = normalizeEmail(asked.identifier) ?? asked.identifier;
  return async () =>
    movesUsers(asked.connection) && (await customDatabases.find({ ...asked, identifier })) !== undefined;
}

function sourceOf(connection: Connection, name: CustomScriptName): string | undefined {
  const source = databaseOptions(connection).customScripts?.[name];
  return source == null || source.trim() === '' ? undefined : source;
}

/** The databases of a tenant. */
export function customDatabases(deps: { scripts: Pick<Scripts, 'run'>; events: Events }): CustomDatabases {
  return {
    login: async (asked, password) => {
      const { identifier } = asked;
      const answer = await run(deps, asked, {
        name: 'login',
        args: [identifier, password],
        secret: password,
      });
      if (answer === undefined) return undefined;
      if (answer.failure?.name === 'WrongUsernameOrPasswordError') return undefined;
      const user = answer.failure === undefined ? customUser(answer.result) : undefined;
      if (user === undefined) tell(deps.events, asked, 'login', answer.failure);
      return user;
    },
    find: async (asked) => {
      const answer = await run(deps, asked, { name: 'get_user', args: [asked.identifier] });
      if (answer === undefined) return undefined;
      const isNobody = answer.failure === undefined && (answer.result ?? false) === false;
      const user = answer.failure === undefined ? customUser(answer.result) : undefined;
      if (isNobody || user !== undefined) return user;
      tell(deps.events, asked, 'get_user', answer.failure);
      throw new AuthError(503, 'temporarily_unavailable', 'The user database cannot be asked at present.');
    },
  };
}

interface CustomRun {
  name: CustomScriptName;
  args: readonly unknown[];
  /** What is to be read nowhere. */
  secret?: string;
}

/** @returns undefined where the connection has no such script. */
async function run(
  { scripts }: { scripts: Pick<Scripts, 'run'> },
  { connection }: Asked,
  { name, args, secret }: CustomRun,
): Promise<{ result?: unknown; failure?: ScriptFailure | undefined } | undefined> {
  const source = sourceOf(connection, name);
  if (source === undefined) return undefined;
  const configuration = databaseOptions(connection).configuration ?? {};
  const values = Object.values(configuration).filter((one) => typeof one === 'string');
  return scripts.run({
    of: connection.name,
    source,
    entry: name,
    args,
    globals: { configuration },
    hidden: [...(secret === undefined ? [] : [secret]), ...values],
  });
}

/** @returns undefined where the result is no user: it has no id, or one that nobody can have. */
function customUser(result: unknown): CustomUser | undefined {
  if (!isObject(result)) return undefined;
  const { user_metadata, app_metadata, ...profile } = result;
  const id = profile.user_id ?? profile.id;
  // A larger number was rounded when it was read: several users would share it.
  const isNumber = typeof id === 'number' && Number.isSafeInteger(id);
  if (!isNumber && (typeof id !== 'string' || !/^[^\p{Cc}|]{1,255}$/u.test(id))) return undefined;
  const metadata = {
    ...(isObject(user_metadata) && { user_metadata }),
    ...(isObject(app_metadata) && { app_metadata }),
  };
  return { upstreamId: String(id), profile, metadata };
}

function tell(
  events: Events,
  { connection, identifier, clientId, ip }: Asked,
  name: CustomScriptName,
  failure: ScriptFailure | undefined,
): void {
  events.record({
    type: 'f',
    connection: connection.name,
    user_name: identifier,
    ...(clientId !== undefined && { client_id: clientId }),
    ...(ip !== undefined && { ip }),
    description: `The ${name} script failed: ${failure?.message ?? 'it gave no user with a user_id'}`,
  });
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
