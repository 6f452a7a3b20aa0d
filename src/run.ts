// Runs the server as this process: `npm start` and `gatehouse start`.

import cluster from 'node:cluster';
import { copyFile, mkdir } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { dirname } from 'node:path';
import type { Logger } from 'pino';
import { addExample } from './console/administrators/example.ts';
import { fail } from './fault.ts';
import { systemClock } from './runtime/clock.ts';
import { shrinkHeapWhenQuiet } from './runtime/idle-memory.ts';
import { isTracingAsked, type Tracing } from './runtime/tracing.ts';
import { isForThisMachine, readSettings, type Settings } from './settings.ts';
import { type Running, startGatehouse } from './start.ts';
import { STOP_BUDGET } from './stop.ts';
import { EXAMPLE_FILE, exampleUser, isFirstStart } from './tenant/examples.ts';
import { type LoadedTenant, loadTenantFile } from './tenant/load.ts';
import { logTo, type Output, welcome } from './terminal.ts';
import { type Ready, runWorkers, serveAsWorker } from './workers.ts';

type Environment = Readonly<Record<string, string | undefined>>;

const NO_SDK =
  'OTEL_* asks for traces, and no SDK of OpenTelemetry is registered: start node with --import, see docs/operating.md "Traces"';

/** Grace after the stop's budget before the process exits anyway, milliseconds. */
const LATE = 500;

/**
 * Starts the server and keeps it until SIGTERM or SIGINT; a second signal ends it at once. With WORKERS this process starts
 * those that serve.
 * @param output standard output; plain text for a terminal, JSON otherwise.
 * @param stopBudget how long a stop may take, milliseconds.
 */
export async function runServer(env: Environment, output: Output, stopBudget = STOP_BUDGET): Promise<void> {
  const asked = isTracingAsked(env);
  const tracing = asked ? (await import('./tracing/open-telemetry.ts')).openTracing() : undefined;
  const log = logTo(output, env.LOG_LEVEL, tracing?.ids);
  if (asked && tracing === undefined) log.warn(NO_SDK);
  const workers = cluster.isPrimary ? workersOf(env) : undefined;
  if (workers !== undefined) {
    return runWorkers(workers, {
      env,
      log,
      announce: (ready) => log.info({ ...ready, workers }, 'listening'),
    });
  }
  await serve(env, {
    output,
    log: cluster.isWorker ? log.child({ worker: cluster.worker?.id }) : log,
    stopBudget,
    tracing,
  });
}

/** How many workers there are to be; undefined where this process serves itself. */
function workersOf(env: Environment): number | undefined {
  try {
    const { workers } = readSettings(env);
    return workers === 'auto' ? availableParallelism() : workers;
  } catch (thrown) {
    return fail(thrown);
  }
}

/** Serves in this process. */
async function serve(
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
  let stopping = false;
  const end = (code: number): void => {
    if (stopping) return;
    stopping = true;
    // Acknowledged writes are already on disk.
    if (running === undefined) process.exit(code);
    setTimeout(() => process.exit(code), stopBudget + LATE).unref();
    running.stop(stopBudget, true).then(
      () => process.exit(code),
      (error: unknown) => {
        log.fatal({ err: error }, 'the store could not be closed');
        process.exit(1);
      },
    );
  };
  surviveFaults(log, () => end(1));
  const tellReady = isWorker ? serveAsWorker(() => end(0)) : undefined;
  for (const signal of isWorker ? [] : (['SIGTERM', 'SIGINT'] as const)) {
    process.on(signal, () => {
      if (stopping) process.exit(1);
      log.info({ signal }, 'stopping');
      end(0);
    });
  }
  try {
    const loadTenant = (settings: Settings) => tenantOf(settings, env, log);
    running = await startGatehouse({ env, log, tracing, loadTenant, isWorker });
  } catch (thrown) {
    return fail(thrown);
  }
  shrinkHeapWhenQuiet();
  // Last, because a supervisor that waits for this line may send a signal at once.
  if (tellReady === undefined) return announce(running, log, output);
  tellReady(readyOf(running));
}

/**
 * An unhandled rejection is logged and the server goes on. After an uncaught exception the process may be in any state:
 * it finishes what is in flight and exits.
 */
function surviveFaults(log: Logger, end: () => void): void {
  process.on('unhandledRejection', (reason) => log.error({ err: reason }, 'a failure that nothing handled'));
  process.on('uncaughtException', (error) => {
    log.fatal({ err: error }, 'ended by an unexpected error');
    end();
  });
}

/** Loads the tenant file; in an empty folder the example is copied there first. */
async function tenantOf(settings: Settings, env: Environment, log: Logger): Promise<LoadedTenant> {
  const { tenantFile } = settings;
  if (isFirstStart(settings, env)) {
    await mkdir(dirname(tenantFile), { recursive: true });
    await copyFile(EXAMPLE_FILE, tenantFile);
    log.info({ file: tenantFile }, 'wrote an example tenant file: edit it to your needs');
  }
  return loadTenantFile(tenantFile, env);
}

/** Announces the address: as JSON to a program, with first steps to a person. */
async function announce(running: Running, log: Logger, output: Output): Promise<void> {
  const { settings, users } = running;
  const example = settings.production ? undefined : await exampleUser(users);
  // Whoever has the example's users is trying it, and the console is there to be tried, too.
  if (example !== undefined && isForThisMachine(settings) && settings.console)
    await addExample({ ...running, wallClock: systemClock });
  if (output.isTTY === true) {
    if (!log.isLevelEnabled('info')) return;
    output.write(`${welcome(running, example).join('\n')}\n`);
    return;
  }
  log.info(readyOf(running), 'listening');
}

/** Where it is, and whom to trust. */
function readyOf({ settings, caFile }: Running): Ready {
  const hint = "trust the CA, or accept the browser's warning once";
  const trust = caFile === undefined ? {} : { ca: caFile, hint };
  return { url: settings.baseUrl, port: settings.port, ...trust };
}
