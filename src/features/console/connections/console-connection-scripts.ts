// The scripts that a connection may have, their arguments, and test runs.

import type {
  ScriptFailure,
  ScriptLimits,
  ScriptLine,
  ScriptUsage,
} from '../../../capabilities/scripts/limits.ts';
import { SCRIPT_LIMITS } from '../../../capabilities/scripts/limits.ts';
import { asFault, PackageFault } from '../../../capabilities/scripts/packages/folder.ts';
import type { Packages } from '../../../capabilities/scripts/packages/packages.ts';
import type { Scripts } from '../../../capabilities/scripts/scripts.ts';
import { textsIn } from '../../../capabilities/scripts/scripts.ts';
import { DATABASE } from '../../../records/connections/connections.ts';
import { oauth2 } from '../../connections/oauth2/oauth2-strategy.ts';
import { secretsIn } from './console-connection-options.ts';
import { createSecrets, shownJson } from './steps.ts';

type Options = Readonly<Record<string, unknown>>;

/** A script that a connection may have. */
export interface ScriptKind {
  name: string;
  /** The member of the options that contains it. */
  within: 'scripts' | 'customScripts';
  /** The arguments before the callback, with examples. */
  parameters: readonly { name: string; example: unknown }[];
  /** Whether it changes something in the database. A test run then changes it, too. */
  changes: boolean;
}

const email = { name: 'email', example: 'ada@example.com' };
const password = { name: 'password', example: 'a password' };
const user = {
  name: 'user',
  example: { email: 'ada@example.com', password: 'a password', tenant: 'example', connection: 'users' },
};

const OAUTH2: readonly ScriptKind[] = [
  {
    name: 'fetchUserProfile',
    within: 'scripts',
    parameters: [
      { name: 'accessToken', example: 'an access token' },
      { name: 'context', example: { tenant: 'example', connection: 'acme' } },
    ],
    changes: false,
  },
  {
    name: 'getLogoutUrl',
    within: 'scripts',
    parameters: [{ name: 'context', example: { returnTo: 'https://localhost/' } }],
    changes: false,
  },
];

const custom = (name: string, parameters: ScriptKind['parameters'], changes = true): ScriptKind => ({
  name,
  within: 'customScripts',
  parameters,
  changes,
});

const CUSTOM: readonly ScriptKind[] = [
  custom('login', [email, password], false),
  custom('get_user', [email], false),
  custom('create', [user]),
  custom('verify', [email]),
  custom('change_password', [email, { ...password, name: 'newPassword' }]),
  custom('change_email', [email, { name: 'newEmail', example: 'grace@example.com' }]),
  custom('change_username', [email, { name: 'newUsername', example: 'ada' }]),
  custom('delete', [{ name: 'id', example: 'ada' }]),
];

/** Returns the scripts that a connection of a strategy may have. */
export function scriptKinds(strategy: string): readonly ScriptKind[] {
  if (strategy === oauth2.name) return OAUTH2;
  return strategy === DATABASE ? CUSTOM : [];
}

/** Returns the source of a script; empty when there is none. */
export function sourceOf(options: Options, { name, within }: ScriptKind): string {
  const source = (options[within] as Options | null | undefined)?.[name];
  return typeof source === 'string' ? source : '';
}

/** Returns the options with another source of a script, or without the script when the source is empty. */
export function withSource(options: Options, { name, within }: ScriptKind, source: string): Options {
  const { [name]: _before, ...others } = (options[within] ?? {}) as Record<string, unknown>;
  const isEmpty = source.trim() === '';
  return { ...options, [within]: isEmpty ? others : { ...others, [name]: source } };
}

/** How much of a resource a run has used. */
export interface ResourceUsage {
  /** The end of a message key. */
  what: 'time' | 'cpu' | 'memory' | 'output' | 'requests';
  used: number;
  of: number;
}

/** The outcome of a test run, as the page shows it. */
export interface TestRun {
  result?: string;
  failure?: ScriptFailure | undefined;
  printed: readonly ScriptLine[];
  used: ResourceUsage[];
}

interface TestRunInput {
  connection: { name: string; options: Options };
  kind: ScriptKind;
  source: string;
  /** One argument for each parameter. */
  args: readonly unknown[];
}

/** Runs a script once as a login would. Its result is only shown. */
export async function testRun(
  { scripts, packages }: { scripts: Pick<Scripts, 'run'>; packages: Pick<Packages, 'filesFor'> },
  { connection, kind, source, args }: TestRunInput,
): Promise<TestRun> {
  const { configuration, enable_script_context: hasContext } = connection.options;
  const secrets = [...secretsIn(connection.options), ...textsIn(configuration)];
  const isOfDatabase = kind.within === 'customScripts';
  const files = isOfDatabase ? await packages.filesFor(source).catch(asFault) : undefined;
  if (files instanceof PackageFault)
    return { failure: { kind: 'script', message: files.message }, printed: [], used: [] };
  const { result, failure, printed, used } = await scripts.run({
    of: connection.name,
    askedBy: undefined,
    source,
    files,
    entry: kind.name,
    args: hasContext === true && isOfDatabase ? [...args, {}] : args,
    globals: { configuration: configuration ?? {} },
    hidden: secrets,
  });
  const shown = shownJson(result, createSecrets(secrets));
  return { ...(failure === undefined ? { result: shown } : { failure }), printed, used: usedOf(used) };
}

const MIB = 1024 * 1024;

export function usedOf(used: ScriptUsage, limits: ScriptLimits = SCRIPT_LIMITS): ResourceUsage[] {
  return [
    { what: 'time', used: Math.round(used.wallMs), of: limits.wallMs },
    { what: 'cpu', used: Math.round(used.cpuMs), of: limits.cpuMs },
    { what: 'memory', used: Math.ceil(used.memoryBytes / MIB), of: Math.ceil(limits.memoryBytes / MIB) },
    { what: 'output', used: used.outputBytes, of: limits.outputBytes },
    { what: 'requests', used: used.requests, of: limits.requests },
  ];
}
