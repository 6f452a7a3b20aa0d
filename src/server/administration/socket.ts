// The socket of a running server for commands: HTTP, for the user that runs the server alone.
import { once } from 'node:events';
import { chmod } from 'node:fs/promises';
import http from 'node:http';
import { finished } from 'node:stream';
import type { Logger } from 'pino';
import { fileMode } from '../../runtime/files.ts';
import { TenantFault } from '../../tenant/load.ts';
import { restBesideLogins } from '../../users/transfer/whole-file.ts';
import { answerBackup, BACKUP_PATH } from './backup.ts';
import type { OrderDependencies } from './order.ts';
import { receivedOrder } from './orders.ts';
import { prepareSocketPath, removeSocket } from './socket-path.ts';
import {
  TRANSFER_PATH,
  type Transfer,
  type TransferDependencies,
  type TransferProgress,
  transferSchema,
  transferUsers,
} from './transfer.ts';

/** Largest order in bytes. A tenant file with thousands of clients and their pages is smaller. */
const MAX_ORDER_BYTES = 64 << 20;

const UNKNOWN_ORDER = 'the running server does not know this order: is it of another release?';

/** How long a command may take to read its response while the server shuts down, in milliseconds. */
const LAST_ANSWER_MS = 500;

interface OrderListener {
  /** Does something between two orders, which run one after another. */
  inTurn<T>(work: () => Promise<T>): Promise<T>;
  /** Waits for the order in progress, and stops transfers of users after their current step. */
  close(): Promise<void>;
}

/**
 * Listens for orders of commands. If that is not possible (a file system without sockets), it logs a warning, and the
 * server runs without.
 * @param dataDir the data directory, whose lock this process holds.
 */
export async function listenForOrders(
  dataDir: string,
  deps: Omit<OrderDependencies, 'log'> & { log: Logger },
): Promise<OrderListener> {
  const { log } = deps;
  let isEnding = false;
  const ending = new AbortController();
  // Orders run one after another: two that apply a file at the same time would mix their writes.
  let lastOrder: Promise<unknown> = Promise.resolve();
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const result = lastOrder.then(work);
    lastOrder = result.catch(() => undefined);
    return result;
  };
  const pauses = { isEnding: () => isEnding, rest: restBesideLogins };
  const streams = new Set<Promise<void>>();
  const during = (work: Promise<void>) => {
    streams.add(work);
    void work.finally(() => streams.delete(work));
  };
  // The request of an import lasts as long as the import.
  const server = http.createServer({ requestTimeout: 0 }, (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://localhost');
    if (request.method === 'POST' && pathname === TRANSFER_PATH) {
      const transfer = transferSchema.safeParse(jsonOf(searchParams.get('transfer') ?? '')).data;
      return during(answerTransfer({ ...deps, between: pauses }, transfer, request, response));
    }
    if (request.method === 'POST' && pathname === BACKUP_PATH) {
      log.info('a backup is written by a command');
      return during(answerBackup(deps.store, deps.settings, response, ending.signal));
    }
    answer(request, response, (work) => inTurn(async () => work(deps))).catch((error: unknown) => {
      log.error({ err: error }, 'a command could not be answered');
      response.destroy();
    });
  });
  if (!(await isListening(server, dataDir, log)))
    return { inTurn, close: async () => void (await lastOrder) };
  return {
    inTurn,
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeIdleConnections();
      isEnding = true;
      ending.abort();
      await Promise.all([lastOrder, ...streams]);
      const closeTimer = setTimeout(() => server.closeAllConnections(), LAST_ANSWER_MS);
      await closed;
      clearTimeout(closeTimer);
      await removeSocket(dataDir);
    },
  };
}

async function isListening(server: http.Server, dataDir: string, log: Logger): Promise<boolean> {
  // Windows has no such sockets with file permissions, so commands need the server stopped.
  if (process.platform === 'win32') return false;
  try {
    const path = await prepareSocketPath(dataDir);
    server.listen(path);
    await once(server, 'listening');
    await chmod(path, fileMode);
    return true;
  } catch (thrown) {
    log.warn({ err: thrown }, 'commands cannot reach this server: they want it stopped');
    server.close();
    return false;
  }
}

/**
 * Imports or exports users. The response is JSON, one object on each line as work proceeds; the last line may be an
 * error.
 */
async function answerTransfer(
  deps: TransferDependencies & { log: Logger },
  transfer: Transfer | undefined,
  request: http.IncomingMessage,
  response: http.ServerResponse,
): Promise<void> {
  response.writeHead(200, { 'content-type': 'application/jsonl', connection: 'close' });
  const writeProgress = (progress: TransferProgress | { error: string } | { over: true }) =>
    response.write(`${JSON.stringify(progress)}\n`);
  try {
    if (transfer === undefined) throw new Error(UNKNOWN_ORDER);
    deps.log.info({ ...transfer }, 'users are transferred by a command');
    request.setEncoding('utf8');
    for await (const progress of transferUsers(deps, transfer, request as AsyncIterable<string>)) {
      // The command was killed. Its response has told so already, and would be waited for without end.
      if (response.destroyed) return;
      if (!writeProgress(progress)) await Promise.race([once(response, 'drain'), once(response, 'close')]);
    }
    writeProgress({ over: true });
  } catch (thrown) {
    writeProgress({ error: thrown instanceof Error ? thrown.message : String(thrown) });
  }
  // The rest of the file is read and discarded. If the connection ended while the command is still sending, the
  // command would fail and not read the response.
  finished(request.resume(), () => response.end());
}

async function answer(
  request: http.IncomingMessage,
  response: http.ServerResponse,
  run: (work: NonNullable<ReturnType<typeof receivedOrder>>) => Promise<unknown>,
): Promise<void> {
  const send = (status: number, body: object) => {
    response.writeHead(status, { 'content-type': 'application/json', connection: 'close' });
    response.end(JSON.stringify(body));
  };
  if (request.method !== 'POST' || request.url !== '/') return send(404, { error: 'there is no such order' });
  const text = await textOf(request);
  if (text === undefined) return send(413, { error: `an order has at most ${MAX_ORDER_BYTES} bytes` });
  const work = receivedOrder(jsonOf(text));
  if (work === undefined) return send(400, { error: UNKNOWN_ORDER });
  try {
    send(200, { result: (await run(work)) ?? null });
  } catch (thrown) {
    if (thrown instanceof TenantFault) return send(422, { faults: thrown.faults });
    send(500, { error: thrown instanceof Error ? thrown.message : String(thrown) });
  }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Returns the body; undefined if it is too large. */
async function textOf(request: http.IncomingMessage): Promise<string | undefined> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    size += part.length;
    if (size > MAX_ORDER_BYTES) return undefined;
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}
