// Several processes of one server (WORKERS). This process serves nothing: it starts the workers that do, replaces those
// that end, exchanges them one after another on SIGHUP, and stops them when it is stopped.
// docs/understand/decisions/operating.md#workers-are-nodes-own-cluster
import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import net, { type AddressInfo } from 'node:net';
import type { Logger } from 'pino';
import { closeUnacknowledged } from '../runtime/unacknowledged-connections.ts';
import { STOP_BUDGET } from './stop.ts';

/** What a worker reports once it serves. */
export interface Ready {
  url: string;
  port: number;
  ca?: string;
  hint?: string;
}

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Shortest and longest pause before a worker that ended is replaced, milliseconds: doubled each time, and reset when a
 * worker has lived for `LIVES`.
 */
const FIRST_PAUSE = 200;
const MAX_PAUSE = 30_000;
const RESET_AFTER = 60_000;
/** How long a worker may take beyond its own budget to end, milliseconds. */
const KILL_GRACE = 2_000;

/** A numbered place for one worker; when it ends, its replacement takes the place. */
interface Slot {
  /** Counted from 0. */
  number: number;
  worker: Worker | undefined;
  pause: number;
}

interface Workers {
  env: Environment;
  log: Logger;
  /** Settings that override the environment in all workers. */
  shared: Readonly<Record<string, string>>;
  slots: readonly Slot[];
  isStopping: boolean;
}

/**
 * Starts so many workers and keeps as many until SIGTERM or SIGINT.
 * @param announce called once all of them serve.
 */
export async function runWorkers(
  count: number,
  { env, log, announce }: { env: Environment; log: Logger; announce: (ready: Ready) => void },
): Promise<void> {
  const slots = Array.from(
    { length: count },
    (_, number): Slot => ({ number, worker: undefined, pause: FIRST_PAUSE }),
  );
  const workers: Workers = { env, log, shared: await sharedPort(env), slots, isStopping: false };
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (workers.isStopping) process.exit(1);
      log.info({ signal }, 'stopping');
      void end(workers, 0);
    });
  }
  let isExchanging = false;
  process.on('SIGHUP', async () => {
    if (isExchanging) return;
    isExchanging = true;
    await exchange(workers);
    isExchanging = false;
  });
  // The first worker starts alone: it makes what is made once (certificates, tables), and reports faults of the
  // settings that all would find.
  const [first, ...others] = slots;
  const ready = first && (await start(workers, first));
  if (ready === undefined) return end(workers, 1);
  const all = await Promise.all(others.map((slot) => start(workers, slot)));
  if (all.includes(undefined)) return end(workers, 1);
  if (!workers.isStopping) announce(ready);
}

async function end(workers: Workers, code: number): Promise<never> {
  workers.isStopping = true;
  await Promise.all(Object.values(cluster.workers ?? {}).map((worker) => worker && stop(worker)));
  process.exit(code);
}

/** @returns its report once it serves; undefined when it ended before. */
async function start(workers: Workers, slot: Slot): Promise<Ready | undefined> {
  const worker = cluster.fork({ ...workers.shared, ...environmentOf(slot, workers.env) });
  closeUnacknowledged(worker);
  const startedAt = performance.now();
  const ready = await readyOf(worker);
  if (ready === undefined || worker.isDead()) return undefined;
  slot.worker = worker;
  worker.once('exit', (code, signal) => {
    if (slot.worker !== worker || workers.isStopping) return;
    slot.worker = undefined;
    if (performance.now() - startedAt > RESET_AFTER) slot.pause = FIRST_PAUSE;
    workers.log.error({ slot: slot.number, exitCode: code, signal }, 'a worker ended and is replaced');
    void replace(workers, slot);
  });
  return ready;
}

async function replace(workers: Workers, slot: Slot): Promise<void> {
  while (!workers.isStopping && slot.worker === undefined) {
    await new Promise((resolve) => setTimeout(resolve, slot.pause));
    slot.pause = Math.min(MAX_PAUSE, slot.pause * 2);
    if (!workers.isStopping && (await start(workers, slot)) === undefined)
      workers.log.error({ slot: slot.number }, 'a worker could not be started');
  }
}

/** Exchanges the workers one after another: each is stopped once its replacement serves. */
async function exchange(workers: Workers): Promise<void> {
  const { slots, log } = workers;
  for (const slot of slots) {
    const before = slot.worker;
    if (workers.isStopping || before === undefined) continue;
    slot.worker = undefined;
    if ((await start(workers, slot)) === undefined) {
      log.error({ slot: slot.number }, 'the workers are not exchanged: a new one did not start');
      slot.worker = before.isDead() ? undefined : before;
      return replace(workers, slot);
    }
    await stop(before);
  }
  log.info('all workers were exchanged');
}

/**
 * Chooses a free port in place of `PORT=0`. Workers would choose another one after a moment in which none of them
 * listened, and clients would not find the server at the address that it announced.
 */
async function sharedPort({ PORT }: Environment): Promise<Record<string, string>> {
  if (PORT !== '0') return {};
  const server = net.createServer().listen(0);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return { PORT: String(port) };
}

/** Returns the environment of a worker. Each serves metrics at a port of its own. */
function environmentOf({ number }: Slot, { METRICS_PORT }: Environment): Record<string, string> {
  return METRICS_PORT === undefined || METRICS_PORT === '0' || METRICS_PORT === ''
    ? {}
    : { METRICS_PORT: String(Number(METRICS_PORT) + number) };
}

/** Waits until a worker serves. @returns its report; undefined when it ended before. */
async function readyOf(worker: Worker): Promise<Ready | undefined> {
  const report = once(worker, 'message').then(([message]) => message as Ready);
  const ended = once(worker, 'exit').then(() => undefined);
  return Promise.race([report, ended]);
}

/** Has a worker finish its requests and end; one that takes too long is killed. */
async function stop(worker: Worker): Promise<void> {
  if (worker.isDead()) return;
  const ended = once(worker, 'exit');
  worker.send('stop', () => undefined);
  const late = setTimeout(() => worker.process.kill('SIGKILL'), STOP_BUDGET + KILL_GRACE);
  await ended;
  clearTimeout(late);
}

/**
 * Connects a worker to its parent: it ends when the parent says so or is gone. SIGINT is ignored, because a terminal
 * sends it to the parent, too.
 * @param end finishes what is in flight, once.
 * @returns a function that reports to the parent that the worker serves.
 */
export function serveAsWorker(end: () => void): (ready: Ready) => void {
  process.on('message', (message) => {
    if (message === 'stop') end();
  });
  // Without this Node.js would exit at once and cut off what is in flight.
  if (cluster.worker !== undefined) cluster.worker.exitedAfterDisconnect = true;
  const onDisconnect = () => {
    // The parent is gone and cannot kill this process if threads hold up its exit.
    process.once('exit', () => process.kill(process.pid, 'SIGKILL'));
    end();
  };
  process.once('disconnect', onDisconnect);
  // The parent may have ended before this handler was set.
  if (!process.connected) onDisconnect();
  process.on('SIGTERM', end);
  for (const signal of ['SIGINT', 'SIGHUP'] as const) process.on(signal, () => undefined);
  return (ready) => process.send?.(ready);
}
