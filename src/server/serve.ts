// Serves in this process, which may be a worker of another one.
import cluster from 'node:cluster';
import { copyFile, mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Logger } from 'pino';
import { addExample } from '../features/console/administrators/example.ts';
import type { TenantFile } from '../records/tenant/tenant.ts';
import { systemClock } from '../runtime/clock.ts';
import { exitNow } from '../runtime/exit-now.ts';
import type { Tracing } from '../runtime/tracing.ts';
import type { Settings } from '../settings/index.ts';
import { isForThisMachine } from '../settings/server.ts';
import { EXAMPLE_FILE, exampleUser, isFirstStart } from '../tenant/examples.ts';
import { type LoadedTenant, loadTenantFile } from '../tenant/load.ts';
import { fail } from './fault.ts';
import { type Running, startGatehouse } from './start.ts';
import { checkFile } from './start-checks.ts';
import { type Output, welcome } from './terminal.ts';
import { type TenantWatch, watchTenant } from './watch-tenant.ts';
import { type Ready, serveAsWorker } from './workers.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** How long the process may live beyond the stop's budget before it exits anyway, milliseconds. */
const EXIT_GRACE_MS = 500;

/**
 * Serves in this process, as the only one or as a worker, until a signal or the parent stops it.
 * @param stopBudget how long a stop may take, milliseconds.
 */
export async function serve(
  env: Environment,
  {
    output,
    log,
    stopBudget,
    tracing,
  }: { output: Output; log: Logger; stopBudget: number; tracing: Tracing | undefined },
): Promise<void> {
  const { isWorker } = cluster;
  let running: Running | undefined;
  let watch: TenantWatch | undefined;
  let stopping = false;
  const end = (code: number): void => {
    if (stopping) return;
    stopping = true;
    // Acknowledged writes are already on disk.
    if (running === undefined) process.exit(code);
    setTimeout(() => exitNow(code), stopBudget + EXIT_GRACE_MS).unref();
    watch?.close();
    const { tenant } = running;
    const exit = (exitCode: number) => {
      if (tenant.isHeldUp()) exitNow(exitCode);
      process.exit(exitCode);
    };
    running.stop(stopBudget, true).then(
      () => exit(code),
      (error: unknown) => {
        log.fatal({ err: error }, 'the store could not be closed');
        exit(1);
      },
    );
  };
  surviveFaults(log, () => end(1));
  const reportReady = isWorker ? serveAsWorker(() => end(0)) : undefined;
  for (const signal of isWorker ? [] : (['SIGTERM', 'SIGINT'] as const)) {
    process.on(signal, () => {
      if (stopping) exitNow(1);
      log.info({ signal }, 'stopping');
      end(0);
    });
  }
  try {
    const files: string[] = [];
    let tenant: TenantFile | undefined;
    const loadTenant = async (settings: Settings) => {
      const loaded = await tenantOf(settings, env, log, (path) => files.push(path));
      tenant = loaded.tenant;
      return loaded;
    };
    running = await startGatehouse({ env, log, tracing, loadTenant, isWorker });
    if (tenant !== undefined && isWatched(running, output))
      watch = watchFile(running, { tenant, files }, env, log);
  } catch (thrown) {
    return fail(thrown);
  }
  // Last, because a supervisor that waits for this line may send a signal at once.
  if (reportReady === undefined) return announce(running, log, output);
  reportReady(readyOf(running));
}

/**
 * Logs unhandled rejections, after which the server goes on. After an uncaught exception the process may be in any
 * state: it finishes the requests in flight and exits.
 */
function surviveFaults(log: Logger, end: () => void): void {
  process.on('unhandledRejection', (reason) => log.error({ err: reason }, 'a failure that nothing handled'));
  process.on('uncaughtException', (error) => {
    log.fatal({ err: error }, 'ended by an unexpected error');
    end();
  });
}

/** Loads the tenant file. On the first start it first writes the example tenant file. */
async function tenantOf(
  settings: Settings,
  env: Environment,
  log: Logger,
  onFile: (path: string) => void,
): Promise<LoadedTenant> {
  const { tenantFile } = settings;
  if (isFirstStart(settings, env)) {
    await mkdir(dirname(tenantFile), { recursive: true });
    await copyFile(EXAMPLE_FILE, tenantFile);
    log.info({ file: tenantFile }, 'wrote an example tenant file: edit it to your needs');
  }
  return loadTenantFile(tenantFile, env, onFile);
}

/** Reports whether changes of the tenant file are taken over while the server runs. */
function isWatched({ settings }: Running, output: Output): boolean {
  const { watchTenant } = settings;
  return watchTenant === 'on' || (watchTenant === 'in-terminal' && output.isTTY === true);
}

function watchFile(
  { settings, follow }: Running,
  loaded: { tenant: TenantFile; files: readonly string[] },
  env: Environment,
  log: Logger,
): TenantWatch | undefined {
  if (follow === undefined) return undefined;
  return watchTenant({
    file: settings.tenantFile,
    loaded,
    load: async (onFile) => {
      const next = await loadTenantFile(settings.tenantFile, env, onFile);
      checkFile(settings, next, log);
      return next;
    },
    follow,
    log,
  });
}

/** Announces the address: as a JSON line for a program, with first steps for a person at a terminal. */
async function announce(running: Running, log: Logger, output: Output): Promise<void> {
  const { settings, users } = running;
  const example = settings.production ? undefined : await exampleUser(users);
  // The example's user exists, so somebody is trying the server out: the console gets its example administrator, too.
  if (example !== undefined && isForThisMachine(settings) && settings.console)
    await addExample({ ...running, wallClock: systemClock });
  if (output.isTTY === true) {
    if (!log.isLevelEnabled('info')) return;
    output.write(`${welcome(running, example).join('\n')}\n`);
    return;
  }
  log.info(readyOf(running), 'listening');
}

/** Returns what is announced: the address, and the CA to trust. */
function readyOf({ settings, caFile }: Running): Ready {
  const hint = "trust the CA, or accept the browser's warning once";
  const trust = caFile === undefined ? {} : { ca: caFile, hint };
  return { url: settings.baseUrl, port: settings.port, ...trust };
}
