// Runs a script of a custom database. Why it failed is written to the log events only: a response that differs would
// reveal who has an account.

import type { ScriptFailure } from '../../../../capabilities/scripts/limits.ts';
import { asFault, PackageFault } from '../../../../capabilities/scripts/packages/folder.ts';
import type { Packages } from '../../../../capabilities/scripts/packages/packages.ts';
import { type Scripts, textsIn } from '../../../../capabilities/scripts/scripts.ts';
import { engineEvents } from '../../../../engine/base/engine-declaration.ts';
import { AuthError } from '../../../../http/errors.ts';
import type { Connection, Organization } from '../../../../records/collections.ts';
import { type CustomScriptName, customScript } from '../../../../records/connections/custom-scripts.ts';
import { databaseOptions } from '../../../../records/database-options.ts';
import type { Events } from '../../../../tenant/events.ts';

export interface CustomRunDependencies {
  scripts: Pick<Scripts, 'run'>;
  packages: Pick<Packages, 'filesFor'>;
  events: Pick<Events, 'record'>;
}

export interface DatabaseRequest {
  connection: Connection;
  /** The user's e-mail address or username, as typed. */
  identifier: string;
  clientId?: string | undefined;
  ip?: string | undefined;
  /** The organization whose login page is used. */
  organization?: Organization | undefined;
}

export interface CustomRun {
  name: CustomScriptName;
  args: readonly unknown[];
  /** A password, which must not appear in the script's log output. */
  secret?: string;
}

interface CustomAnswer {
  result?: unknown;
  failure?: ScriptFailure | undefined;
}

export function hasScript(connection: Connection, name: CustomScriptName): boolean {
  return customScript(databaseOptions(connection), name) !== undefined;
}

/** The answer for a script that the connection does not have. */
const NO_SCRIPT: CustomAnswer = { failure: { kind: 'script', message: 'there is none' } };

/** Runs a script once. A script that the connection does not have counts as failed. */
export async function runCustom(
  { scripts, packages }: Pick<CustomRunDependencies, 'scripts' | 'packages'>,
  { connection, organization, clientId }: DatabaseRequest,
  { name, args, secret }: CustomRun,
): Promise<CustomAnswer> {
  const options = databaseOptions(connection);
  const source = customScript(options, name);
  if (source === undefined) return NO_SCRIPT;
  const files = await packages.filesFor(source).catch(asFault);
  if (files instanceof PackageFault) return { failure: { kind: 'script', message: files.message } };
  const configuration = options.configuration ?? {};
  const { result, failure } = await scripts.run({
    of: connection.name,
    askedBy: clientId,
    source,
    entry: name,
    args: options.enable_script_context === true ? [...args, contextOf(organization)] : args,
    globals: { configuration },
    files,
    hidden: [...(secret === undefined ? [] : [secret]), ...textsIn(configuration)],
  });
  return { result, failure };
}

/** @param reason in English. */
export function recordScriptFailure(
  { events }: Pick<CustomRunDependencies, 'events'>,
  { connection, identifier, clientId, ip }: DatabaseRequest,
  name: CustomScriptName,
  reason: string,
): void {
  events.record({
    type: engineEvents.f,
    connection: connection.name,
    user_name: identifier,
    ...(clientId !== undefined && { client_id: clientId }),
    ...(ip !== undefined && { ip }),
    description: `The ${name} script failed: ${reason}`,
  });
}

/** Returns the error for a custom database that cannot be asked: 503, the same for every user. */
export function databaseFailed(): AuthError {
  return new AuthError(
    503,
    'temporarily_unavailable',
    'The user database cannot be asked at present. Try again later.',
    // Its script's failure is an event of the tenant's log.
    { reported: 'logged' },
  );
}

function contextOf(organization: Organization | undefined): object {
  if (organization === undefined) return {};
  const { id, name, display_name, metadata = {} } = organization;
  return { organization: { id, name, display_name, metadata } };
}
