// A running server's ear for commands: HTTP with one request, on a socket that only its own user can open.
import { once } from 'node:events';
import { chmod } from 'node:fs/promises';
import http from 'node:http';
import { finished } from 'node:stream';
import type { Logger } from 'pino';
import { fileMode } from '../store/files.ts';
import { TenantFault } from '../tenant/load.ts';
import { restBesideLogins } from '../users/transfer/whole-file.ts';
import { answerBackup, BACKUPS } from './backup.ts';
import { carryOut, type Order, type OrderDependencies, orderSchema } from './orders.ts';
import { makePlace, removePlace } from './place.ts';
import {
  TRANSFERS,
  type TransferDependencies,
  type TransferNews,
  transferSchema,
  transferUsers,
} from './transfer.ts';

/** A tenant file of thousands of applications, with their pages, is smaller. Bytes. */
const LARGEST_ORDER = 64 << 20;

const UNKNOWN_ORDER = 'the running server does not know this order: is it of another release?';

/** How long a command may take to read its answer once the server is about to end, milliseconds. */
const LAST_ANSWER = 500;

/** What listens; `close` finishes the order that is under way, and ends transfers of users between two of them. */
interface Ear {
  close(): Promise<void>;
}

/**
 * Listens for commands. A server that cannot (a file system without sockets) says so and serves all the same.
 * @param dataDir whose lock this process holds.
 */
export async function listenForOrders(
  dataDir: string,
  deps: Omit<OrderDependencies, 'log'> & Pick<TransferDependencies, 'endSessions'> & { log: Logger },
): Promise<Ear> {
  const { log } = deps;
  let isEnding = false;
  const ending = new AbortController();
  // One after another: two that apply a file would otherwise mix what they write.
  let last: Promise<unknown> = Promise.resolve();
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const done = last.then(work);
    last = done.catch(() => undefined);
    return done;
  };
  const between = { isEnding: () => isEnding, rest: restBesideLogins };
  const transfers = new Set<Promise<void>>();
  // A file of users is sent for as long as its import takes.
  const server = http.createServer({ requestTimeout: 0 }, (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://localhost');
    if (request.method === 'POST' && pathname === TRANSFERS) {
      const work = answerTransfer({ ...deps, between }, searchParams, request, response);
      transfers.add(work);
      void work.finally(() => transfers.delete(work));
      return;
    }
    if (request.method === 'POST' && pathname === BACKUPS) {
      log.info('a backup is written by a command');
      const work = answerBackup(deps.store, deps.settings, response, ending.signal);
      transfers.add(work);
      void work.finally(() => transfers.delete(work));
      return;
    }
    answer(request, response, (order) => inTurn(() => carryOut(deps, order))).catch((error: unknown) => {
      log.error({ err: error }, 'a command could not be answered');
      response.destroy();
    });
  });
  if (!(await isListening(server, dataDir, log))) return { close: async () => undefined };
  return {
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeIdleConnections();
      isEnding = true;
      ending.abort();
      await Promise.all([last, ...transfers]);
      const late = setTimeout(() => server.closeAllConnections(), LAST_ANSWER);
      await closed;
      clearTimeout(late);
      await removePlace(dataDir);
    },
  };
}

async function isListening(server: http.Server, dataDir: string, log: Logger): Promise<boolean> {
  // Windows has no such sockets with permissions of files: commands want the server stopped there.
  if (process.platform === 'win32') return false;
  try {
    const path = await makePlace(dataDir);
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

/** Users in or out: news as JSON, one a line, as they come. Only the last line may tell of a fault. */
async function answerTransfer(
  deps: TransferDependencies & { log: Logger },
  asked: URLSearchParams,
  request: http.IncomingMessage,
  response: http.ServerResponse,
): Promise<void> {
  response.writeHead(200, { 'content-type': 'application/jsonl', connection: 'close' });
  const tell = (news: TransferNews | { error: string } | { over: true }) =>
    response.write(`${JSON.stringify(news)}\n`);
  try {
    const transfer = transferSchema.safeParse(Object.fromEntries(readParameters(asked))).data;
    if (transfer === undefined) throw new Error(UNKNOWN_ORDER);
    deps.log.info({ ...transfer }, 'users are transferred by a command');
    request.setEncoding('utf8');
    for await (const news of transferUsers(deps, transfer, request as AsyncIterable<string>)) {
      if (!tell(news)) await Promise.race([once(response, 'drain'), once(response, 'close')]);
      if (response.destroyed) return;
    }
    tell({ over: true });
  } catch (thrown) {
    tell({ error: thrown instanceof Error ? thrown.message : String(thrown) });
  }
  // What is left of the file is not asked for. A connection that ended before the command has sent its last bytes would
  // fail there, and the answer be lost.
  finished(request.resume(), () => response.end());
}

/** Parameters as JSON has them: `true` and `false` are no texts. */
function readParameters(asked: URLSearchParams): [string, unknown][] {
  const truths: Readonly<Record<string, boolean>> = { true: true, false: false };
  return [...asked].map(([name, value]) => [
    name,
    name === 'upsert' || name === 'withHashes' ? truths[value] : value,
  ]);
}

async function answer(
  request: http.IncomingMessage,
  response: http.ServerResponse,
  carry: (order: Order) => Promise<unknown>,
): Promise<void> {
  const send = (status: number, body: object) => {
    response.writeHead(status, { 'content-type': 'application/json', connection: 'close' });
    response.end(JSON.stringify(body));
  };
  if (request.method !== 'POST' || request.url !== '/') return send(404, { error: 'there is no such order' });
  const text = await textOf(request);
  if (text === undefined) return send(413, { error: `an order has at most ${LARGEST_ORDER} bytes` });
  const order = orderOf(text);
  if (order === undefined) return send(400, { error: UNKNOWN_ORDER });
  try {
    send(200, { result: (await carry(order)) ?? null });
  } catch (thrown) {
    if (thrown instanceof TenantFault) return send(422, { faults: thrown.faults });
    send(500, { error: thrown instanceof Error ? thrown.message : String(thrown) });
  }
}

function orderOf(text: string): Order | undefined {
  try {
    return orderSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

/** The body; undefined for one that is too large. */
async function textOf(request: http.IncomingMessage): Promise<string | undefined> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    size += part.length;
    if (size > LARGEST_ORDER) return undefined;
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}
