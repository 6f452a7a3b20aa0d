// Runs a script of a database elsewhere. What it fails with is told the operator by an event, and nobody else: an answer of
// its own would say who is known here.
import { AuthError } from '../../http/errors.ts';
import type { Connection } from '../../records/collections.ts';
import { type CustomScriptName, customScript } from '../../records/custom-scripts.ts';
import { databaseOptions } from '../../records/database-options.ts';
import type { ScriptFailure } from '../../scripts/limits.ts';
import type { Scripts } from '../../scripts/scripts.ts';
import type { Events } from '../../tenant/events.ts';

export interface CustomRunDependencies {
  scripts: Pick<Scripts, 'run'>;
  events: Pick<Events, 'record'>;
}

/** For whom a script is run. */
export interface Asked {
  connection: Connection;
  /** Whom it is about: an address or username, as typed. */
  identifier: string;
  clientId?: string | undefined;
  ip?: string | undefined;
}

interface CustomRun {
  name: CustomScriptName;
  args: readonly unknown[];
  /** What is to be read nowhere. */
  secret?: string;
}

/** What a script answered; its failure is recorded already where it is not one of `expected`. */
export type CustomAnswer = { result: unknown; failure?: undefined } | { failure: ScriptFailure };

/** Whether a connection has a script. */
export function hasScript(connection: Connection, name: CustomScriptName): boolean {
  return customScript(databaseOptions(connection), name) !== undefined;
}

/** Runs a script once. @returns undefined where the connection has no such script. */
export async function runCustom(
  { scripts }: Pick<CustomRunDependencies, 'scripts'>,
  { connection }: Asked,
  { name, args, secret }: CustomRun,
): Promise<CustomAnswer | undefined> {
  const options = databaseOptions(connection);
  const source = customScript(options, name);
  if (source === undefined) return undefined;
  const configuration = options.configuration ?? {};
  const { result, failure } = await scripts.run({
    of: connection.name,
    source,
    entry: name,
    args: options.enable_script_context === true ? [...args, {}] : args,
    globals: { configuration },
    hidden: [...(secret === undefined ? [] : [secret]), ...textsIn(configuration)],
  });
  return failure === undefined ? { result } : { failure };
}

/** Records that a script failed. @param why in English. */
export function tellScript(
  { events }: Pick<CustomRunDependencies, 'events'>,
  { connection, identifier, clientId, ip }: Asked,
  name: CustomScriptName,
  why: string,
): void {
  events.record({
    type: 'f',
    connection: connection.name,
    user_name: identifier,
    ...(clientId !== undefined && { client_id: clientId }),
    ...(ip !== undefined && { ip }),
    description: `The ${name} script failed: ${why}`,
  });
}

/** What is answered where a database elsewhere cannot be asked, whomever it was about. */
export function databaseFailed(): AuthError {
  return new AuthError(
    503,
    'temporarily_unavailable',
    'The user database cannot be asked at present. Try again later.',
  );
}

/** All texts of a value, however deep. */
function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : [];
}
