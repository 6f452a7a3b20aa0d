// Test runs of a connection's scripts: the script is read from the store, and runs in the process of the command.

import { z } from 'zod';
import { SCRIPT_LIMITS, type ScriptUsage } from '../../capabilities/scripts/limits.ts';
import { createPackages } from '../../capabilities/scripts/packages/packages.ts';
import {
  createScripts,
  type ScriptOutcome,
  textsIn,
  withoutSecrets,
} from '../../capabilities/scripts/scripts.ts';
import { createOutbound, outboundRules } from '../../http/outbound/outbound.ts';
import { outboundAllow, packagesDirectory, type Settings } from '../../settings/index.ts';
import type { Store } from '../../store/contract.ts';
import { order } from './order.ts';

/** The scripts that can be tested, which are those that change nothing. */
export const TESTABLE_SCRIPTS = ['fetchUserProfile', 'login', 'get_user'] as const;
export type TestableScript = (typeof TESTABLE_SCRIPTS)[number];

export interface ConnectionScript {
  source: string;
  /** `options.configuration`. */
  configuration: unknown;
  /** Whether the script gets a context before the callback. */
  hasContext: boolean;
}

export const script = order({
  body: z.strictObject({
    connection: z.string().min(1).max(255),
    script: z.enum(TESTABLE_SCRIPTS),
  }),
  run: connectionScript,
});

/** @throws Error if it does not exist */
async function connectionScript(
  { store }: { store: Store },
  { connection: name, script }: { connection: string; script: TestableScript },
): Promise<ConnectionScript> {
  const [connection] = await store.collection('connections').findBy('name', name);
  if (connection === undefined) throw new Error(`there is no connection ${name}`);
  const { scripts, customScripts, configuration, enable_script_context } = connection.options as {
    scripts?: Record<string, unknown> | null;
    customScripts?: Record<string, unknown> | null;
    configuration?: unknown;
    enable_script_context?: unknown;
  };
  const source = (script === 'fetchUserProfile' ? scripts : customScripts)?.[script];
  if (typeof source !== 'string' || source.trim() === '') {
    throw new Error(`the connection ${name} has no script ${script}`);
  }
  return { source, configuration: configuration ?? {}, hasContext: enable_script_context === true };
}

interface Trial {
  connection: string;
  script: TestableScript;
  /** The arguments before the callback. */
  args: readonly unknown[];
  /** The secret arguments, which no output contains. */
  secrets: readonly string[];
}

/** Returns the arguments of `fetchUserProfile`. @param context further members of the token response. */
export function profileArguments(
  settings: Settings,
  { connection, token, context }: { connection: string; token: string; context: Record<string, unknown> },
): readonly unknown[] {
  const tenant = new URL(settings.baseUrl).hostname;
  return [token, { tenant, tenantId: tenant, connection, access_token: token, ...context }];
}

/** Runs a script once, as a login does, but without any effect. @returns a report for people to read */
export async function tryScript(
  settings: Settings,
  { source, configuration, hasContext }: ConnectionScript,
  { connection, script, args, secrets }: Trial,
): Promise<{ report: string; hasFailed: boolean }> {
  const outbound = createOutbound({ rules: outboundRules(outboundAllow(settings)) });
  const scripts = createScripts({ outbound, clock: Date.now, keepsLog: false });
  const hidden = [...secrets, ...textsIn(configuration)];
  const packages = createPackages({ directory: packagesDirectory(settings), scripts });
  try {
    const files = script === 'fetchUserProfile' ? undefined : await packages.filesFor(source);
    const outcome = await scripts.run({
      of: connection,
      askedBy: undefined,
      source,
      entry: script,
      args: hasContext ? [...args, {}] : args,
      globals: { configuration },
      files,
      hidden,
    });
    return {
      report: withoutSecrets(scriptReport(outcome), hidden),
      hasFailed: outcome.failure !== undefined,
    };
  } finally {
    await scripts.close();
  }
}

/** Returns the result of a run, for people to read. */
function scriptReport({ result, failure, printed, used }: ScriptOutcome): string {
  const outcome =
    failure === undefined
      ? `profile:\n${JSON.stringify(result, null, 2)}`
      : `failed (${failure.kind}): ${failure.message}`;
  const log = printed.map(({ level, text }) => `\n  ${level.padEnd(5)} ${text}`).join('');
  return `${outcome}\nlog:${log === '' ? ' nothing' : log}\nused:\n${usageLines(used)}`;
}

/** Returns what a run used of each limit, one on each line. */
export function usageLines(used: ScriptUsage): string {
  const mib = (bytes: number) => Math.ceil(bytes / 1024 / 1024);
  const { wallMs, cpuMs, memoryBytes, outputBytes, requests } = SCRIPT_LIMITS;
  return [
    `time       ${Math.round(used.wallMs)} of ${wallMs} ms`,
    `processor  ${Math.round(used.cpuMs)} of ${cpuMs} ms`,
    `memory     ${mib(used.memoryBytes)} of ${mib(memoryBytes)} MiB`,
    `output     ${used.outputBytes} of ${outputBytes} bytes`,
    `requests   ${used.requests} of ${requests}`,
  ]
    .map((line) => `  ${line}`)
    .join('\n');
}
