// Runs a script of a database elsewhere. What it fails with is told the operator by an event, and nobody else: an answer of
// its own would say who is known here.
import { AuthError } from '../../http/errors.ts';
import type { Connection, Organization } from '../../records/collections.ts';
import { type CustomScriptName, customScript } from '../../records/custom-scripts.ts';
import { databaseOptions } from '../../records/database-options.ts';
import type { ScriptFailure } from '../../scripts/limits.ts';
import { asFault, PackageFault } from '../../scripts/packages/folder.ts';
import type { Packages } from '../../scripts/packages/packages.ts';
import { type Scripts, textsIn } from '../../scripts/scripts.ts';
import type { Events } from '../../tenant/events.ts';

export interface CustomRunDependencies {
  scripts: Pick<Scripts, 'run'>;
  packages: Pick<Packages, 'filesFor'>;
  events: Pick<Events, 'record'>;
}

/** For whom a script is run. */
export interface Asked {
  connection: Connection;
  /** Whom it is about: an address or username, as typed. */
  identifier: string;
  clientId?: string | undefined;
  ip?: string | undefined;
  /** Whose login page is used. */
  organization?: Organization | undefined;
}

export interface CustomRun {
  name: CustomScriptName;
  args: readonly unknown[];
  /** What is to be read nowhere. */
  secret?: string;
}

/** What a script answered. */
interface CustomAnswer {
  result?: unknown;
  failure?: ScriptFailure | undefined;
}

/** Whether a connection has a script. */
export function hasScript(connection: Connection, name: CustomScriptName): boolean {
  return customScript(databaseOptions(connection), name) !== undefined;
}

/** The answer of a script that is not there. */
const ABSENT: CustomAnswer = { failure: { kind: 'script', message: 'there is none' } };

/** Runs a script once; one that is not there fails. */
export async function runCustom(
  { scripts, packages }: Pick<CustomRunDependencies, 'scripts' | 'packages'>,
  { connection, organization }: Asked,
  { name, args, secret }: CustomRun,
): Promise<CustomAnswer> {
  const options = databaseOptions(connection);
  const source = customScript(options, name);
  if (source === undefined) return ABSENT;
  const files = await packages.filesFor(source).catch(asFault);
  if (files instanceof PackageFault) return { failure: { kind: 'script', message: files.message } };
  const configuration = options.configuration ?? {};
  const { result, failure } = await scripts.run({
    of: connection.name,
    source,
    entry: name,
    args: options.enable_script_context === true ? [...args, contextOf(organization)] : args,
    globals: { configuration },
    files,
    hidden: [...(secret === undefined ? [] : [secret]), ...textsIn(configuration)],
  });
  return { result, failure };
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

/** What scripts that want a context are given. */
function contextOf(organization: Organization | undefined): object {
  if (organization === undefined) return {};
  const { id, name, display_name, metadata = {} } = organization;
  return { organization: { id, name, display_name, metadata } };
}
