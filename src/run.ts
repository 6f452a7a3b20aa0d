// Runs the server as this process: what `npm start` and `gatehouse start` do.

import { existsSync } from 'node:fs';
import { copyFile, mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Logger } from 'pino';
import { type Settings, SettingsFault } from './settings.ts';
import { type Running, startGatehouse } from './start.ts';
import { EXAMPLE_FILE } from './tenant/examples.ts';
import { type LoadedTenant, loadTenantFile, TenantFault } from './tenant/load.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** The longest a stop may take, milliseconds. */
const STOP_LIMIT = 10_000;

/** Starts the server and keeps it until SIGTERM or SIGINT; a second signal ends it at once. */
export async function runServer(env: Environment, log: Logger): Promise<void> {
  process.on('unhandledRejection', (reason) => fatal(log, reason));
  process.on('uncaughtException', (error) => fatal(log, error));
  let running: Running;
  try {
    running = await startGatehouse({ env, log, loadTenant: (settings) => tenantOf(settings, env, log) });
  } catch (thrown) {
    return fail(thrown);
  }
  let stopping = false;
  const stop = (signal: string) => {
    if (stopping) process.exit(1);
    stopping = true;
    log.info({ signal }, 'stopping');
    setTimeout(() => process.exit(1), STOP_LIMIT).unref();
    running.stop().then(
      () => process.exit(0),
      (error) => fatal(log, error),
    );
  };
  process.on('SIGTERM', () => stop('SIGTERM'));
  process.on('SIGINT', () => stop('SIGINT'));
  // Last: whoever waits for this line may send a signal at once.
  announce(running, log);
}

/** Whether the example is the tenant file: where there is none, and none was asked for. */
export function isFirstStart(
  { tenantFile, production }: Pick<Settings, 'tenantFile' | 'production'>,
  env: Environment,
): boolean {
  return !existsSync(tenantFile) && !production && !env.TENANT_FILE;
}

/** The tenant file; in an empty folder the example is written there first, to start from. */
async function tenantOf(settings: Settings, env: Environment, log: Logger): Promise<LoadedTenant> {
  const { tenantFile } = settings;
  if (isFirstStart(settings, env)) {
    await mkdir(dirname(tenantFile), { recursive: true });
    await copyFile(EXAMPLE_FILE, tenantFile);
    log.info({ file: tenantFile }, 'wrote an example tenant file: edit it to your needs');
  }
  return loadTenantFile(tenantFile, env);
}

function announce({ settings, caFile }: Running, log: Logger): void {
  log.info(
    {
      url: settings.baseUrl,
      port: settings.port,
      ...(caFile === undefined
        ? {}
        : { ca: caFile, hint: "trust the CA, or accept the browser's warning once" }),
    },
    'listening',
  );
}

/** Says what is in the way, without a stack: the person who starts the server can mend it. */
export function fail(thrown: unknown): never {
  process.stderr.write(`${faultText(thrown)}\n`);
  process.exit(1);
}

/** A fault in a person's words. */
export function faultText(thrown: unknown): string {
  const list = (what: string, faults: readonly string[]) =>
    [what, ...faults.map((fault) => `  - ${fault}`)].join('\n');
  if (thrown instanceof SettingsFault) return list('The settings are wrong:', thrown.faults);
  if (thrown instanceof TenantFault) return list('The tenant file is wrong:', thrown.faults);
  return thrown instanceof Error ? thrown.message : String(thrown);
}

function fatal(log: Logger, error: unknown): never {
  log.fatal({ err: error }, 'ended by an unexpected error');
  process.exit(1);
}
