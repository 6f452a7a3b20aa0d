// Sends orders to the server that runs on a data directory.
import { once } from 'node:events';
import http from 'node:http';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { linesOf } from '../../store/transfer/lines.ts';
import { TenantFault } from '../../tenant/load.ts';
import type { Order, OrderName, OrderResult } from './orders.ts';
import { findSocket } from './socket-path.ts';
import { TRANSFER_PATH, type Transfer, type TransferProgress } from './transfer.ts';

/** Errors if nobody listens: there is no server, or it was killed and its socket is left. */
const NO_SERVER_CODES = ['ENOENT', 'ECONNREFUSED'];

/**
 * @param use what is done with the request, up to a response or not.
 * @returns what it returns; undefined if no server runs.
 * @throws Error with the reason, for any failure of the connection meanwhile
 */
export async function askServer<T>(
  dataDir: string,
  path: string,
  use: (request: http.ClientRequest) => Promise<T>,
): Promise<T | undefined> {
  const socketPath = await findSocket(dataDir);
  if (socketPath === undefined) return undefined;
  const request = http.request({ socketPath, method: 'POST', path, agent: false });
  const failed = new Promise<never>((_resolve, reject) => request.once('error', reject));
  const connected = once(request, 'socket').then(async ([socket]) => {
    if (socket.connecting) await once(socket, 'connect');
  });
  try {
    return await Promise.race([failed, connected.then(() => use(request))]);
  } catch (thrown) {
    const { code = '', message } = thrown as NodeJS.ErrnoException;
    if (NO_SERVER_CODES.includes(code)) return undefined;
    throw new Error(`the running server could not be asked (${socketPath}: ${message})`, { cause: thrown });
  }
}

export async function responseTo(request: http.ClientRequest): Promise<http.IncomingMessage> {
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  return response;
}

/**
 * Sends an order to the running server.
 * @returns its response, or undefined if no server runs.
 * @throws TenantFault; Error with the reason
 */
export async function sendOrder<Name extends OrderName>(
  dataDir: string,
  order: Order<Name>,
): Promise<{ result: OrderResult<Name> } | undefined> {
  const answer = await askServer(dataDir, '/', async (request) => {
    request.end(JSON.stringify(order));
    return text(await responseTo(request));
  });
  if (answer === undefined) return undefined;
  const { result, error, faults } = JSON.parse(answer) as {
    result: OrderResult<Name>;
    error?: string;
    faults?: string[];
  };
  if (faults !== undefined) throw new TenantFault(faults);
  if (error !== undefined) throw new Error(error);
  return { result };
}

/**
 * Lets the running server import or export users.
 * @param file the text to import.
 * @returns the progress as it comes; undefined if no server runs. The iteration throws an Error with the reason of a
 *   failure.
 */
export async function sendTransfer(
  dataDir: string,
  transfer: Transfer,
  file: AsyncIterable<string>,
): Promise<AsyncIterable<TransferProgress> | undefined> {
  const path = `${TRANSFER_PATH}?${new URLSearchParams({ transfer: JSON.stringify(transfer) })}`;
  const request = await askServer(dataDir, path, async (connected) => connected);
  return request && progressOf(request, file);
}

async function* progressOf(
  request: http.ClientRequest,
  file: AsyncIterable<string>,
): AsyncGenerator<TransferProgress> {
  const response = responseTo(request);
  // A server that has responded with an error stops reading. The response has the reason.
  pipeline(Readable.from(file), request).catch(() => undefined);
  let isOver = false;
  for await (const line of responseLines(response)) {
    const progress = JSON.parse(line) as TransferProgress | { error: string } | { over: true };
    if ('error' in progress) throw new Error(progress.error);
    isOver = 'over' in progress;
    if (!('over' in progress)) yield progress;
  }
  if (!isOver) throw endedEarly();
}

/** @throws Error if the server ends before the response is complete */
async function* responseLines(response: Promise<http.IncomingMessage>): AsyncGenerator<string> {
  try {
    yield* linesOf(await response);
  } catch (thrown) {
    // The server was killed: the connection ended.
    throw endedEarly(thrown);
  }
}

/** Returns the error for a server that ended early, whatever error the connection has. */
export const endedEarly = (cause?: unknown) => new Error('the server ended before it was done', { cause });
