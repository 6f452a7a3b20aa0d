// Running a connection's script by hand: the script comes from the store, and runs where the command runs.
import { createOutbound } from '../http/outbound.ts';
import { outboundRules } from '../http/outbound-rules.ts';
import { SCRIPT_LIMITS, type ScriptUsage } from '../scripts/limits.ts';
import { createScripts, type ScriptOutcome } from '../scripts/scripts.ts';
import { outboundAllow, type Settings } from '../settings.ts';
import type { Store } from '../store/contract.ts';

/** The script of a connection that makes profiles, and what it finds besides its arguments. */
export interface ProfileScript {
  source: string;
  /** `options.configuration`. */
  configuration: unknown;
}

/** Reads it. @throws Error when there is none. */
export async function profileScript(
  { store }: { store: Store },
  connectionName: string,
): Promise<ProfileScript> {
  const [connection] = await store.collection('connections').findBy('name', connectionName);
  if (connection === undefined) throw new Error(`there is no connection ${connectionName}`);
  const { scripts, configuration = {} } = connection.options as {
    scripts?: { fetchUserProfile?: unknown } | null;
    configuration?: unknown;
  };
  const source = scripts?.fetchUserProfile;
  if (typeof source !== 'string' || source.trim() === '') {
    throw new Error(`the connection ${connectionName} has no script fetchUserProfile`);
  }
  return { source, configuration };
}

/**
 * Runs it once, as a login does.
 * @param token the access token; `context` what the token endpoint would answer besides.
 */
export async function testProfileScript(
  settings: Settings,
  { source, configuration }: ProfileScript,
  given: { connection: string; token: string; context: Record<string, unknown> },
): Promise<ScriptOutcome> {
  const { connection, token, context } = given;
  const tenant = new URL(settings.baseUrl).hostname;
  const outbound = createOutbound({ rules: outboundRules(outboundAllow(settings)) });
  const scripts = createScripts({ outbound, clock: Date.now, keepsLog: false });
  try {
    return await scripts.run({
      of: connection,
      source,
      entry: 'fetchUserProfile',
      args: [token, { tenant, tenantId: tenant, connection, access_token: token, ...context }],
      globals: { configuration },
    });
  } finally {
    await scripts.close();
  }
}

/** What became of it, for people to read. */
export function scriptReport({ result, failure, printed, used }: ScriptOutcome): string {
  const outcome =
    failure === undefined
      ? `profile:\n${JSON.stringify(result, null, 2)}`
      : `failed (${failure.kind}): ${failure.message}`;
  const log = printed.map(({ level, text }) => `\n  ${level.padEnd(5)} ${text}`).join('');
  return `${outcome}\nlog:${log === '' ? ' nothing' : log}\nused:\n${usageLines(used)}`;
}

/** What a run used, of what it may use. */
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
