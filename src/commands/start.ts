// `gatehouse start` and `npm start`: the process that serves, or starts the processes that do.

import cluster from 'node:cluster';
import { isTracingEnabled } from '../runtime/tracing.ts';
import { fail } from '../server/fault.ts';
import { STOP_BUDGET } from '../server/stop.ts';
import { logTo, type Output } from '../server/terminal.ts';
import { runWorkers } from '../server/workers.ts';
import { readSettings } from '../settings/index.ts';
import { workersOf } from '../settings/server.ts';
import type { CommandDeclaration } from './command.ts';

export const start: CommandDeclaration = {
  name: 'start',
  description: 'start the server (the default)',
  run: ({ host }) => startProcess(host.env, host.stdout),
};

type Environment = Readonly<Record<string, string | undefined>>;

const NO_SDK =
  'OTEL_* asks for traces, and no SDK of OpenTelemetry is registered: start node with --import, see docs/do/traces.md';

/**
 * Starts the process, and returns when the server listens. SIGTERM or SIGINT stops it; a second signal ends it at once. With
 * WORKERS this process only starts the processes that serve.
 * @param output standard output: plain text for a terminal, JSON otherwise.
 * @param stopBudget how long a stop may take, milliseconds.
 */
export async function startProcess(
  env: Environment,
  output: Output,
  stopBudget = STOP_BUDGET,
): Promise<void> {
  const isTraced = isTracingEnabled(env);
  const tracing = isTraced ? (await import('../runtime/tracing/open-telemetry.ts')).openTracing() : undefined;
  const log = logTo(output, env.LOG_LEVEL, tracing?.ids);
  if (isTraced && tracing === undefined) log.warn(NO_SDK);
  const workers = cluster.isPrimary ? workerCount(env) : undefined;
  if (workers !== undefined) {
    return runWorkers(workers, {
      env,
      log,
      announce: (ready) => log.info({ ...ready, workers }, 'listening'),
    });
  }
  // Imported only here: the process that starts workers needs none of it.
  const { serve } = await import('../server/serve.ts');
  await serve(env, {
    output,
    log: cluster.isWorker ? log.child({ worker: cluster.worker?.id }) : log,
    stopBudget,
    tracing,
  });
}

/** Returns the number of workers to start; undefined where this process serves by itself. */
function workerCount(env: Environment): number | undefined {
  try {
    return workersOf(readSettings(env));
  } catch (thrown) {
    return fail(thrown);
  }
}
