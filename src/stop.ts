// Ending a server: what is in flight is finished, and nobody can hold the end up. A client that never finishes
// its TLS handshake or its request, a mail server or an application that never answers: all share one budget.
import type http from 'node:http';
import type { Socket } from 'node:net';
import type { Logger } from 'pino';
import type { Background } from './runtime/background.ts';
import { type Deadline, deadlineIn, doneBy } from './runtime/deadline.ts';
import type { Events } from './tenant/events.ts';

/** How long a stop may take in all, milliseconds; a supervisor waits ten seconds before it kills. */
export const STOP_BUDGET = 9_000;

/** How much of the budget requests in flight may take; the rest is for what they leave to be done. */
const REQUESTS = 0.5;

/** How long work that no answer waits for may take where nobody says otherwise, milliseconds. */
const LAST_WORK = 20_000;

/** How long a connection without a request is waited for: one may be on its way. Milliseconds. */
const GRACE = 500;

/** How often connections are looked at, milliseconds. */
const CHECK = 50;

/** The connections of a server, from the first packet on. */
export interface Connections {
  /** Closes those that no request is in progress on, the ones amid their TLS handshake included. */
  closeUnused(): void;
  /** Closes all of them, whatever is in progress. */
  closeAll(): void;
}

/**
 * Keeps track of a server's connections: Node itself knows of none before its TLS handshake is done, and takes
 * one that has sent nothing for busy.
 */
export function trackConnections(server: http.Server): Connections {
  const sockets = new Set<Socket>();
  /** How many requests are in progress, by the client's end: TLS and TCP have sockets of their own for it. */
  const busy = new Map<string, number>();
  const clientOf = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress} ${remotePort}`;
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server.on('request', (request: http.IncomingMessage, response: http.ServerResponse) => {
    const client = clientOf(request.socket);
    busy.set(client, (busy.get(client) ?? 0) + 1);
    response.once('close', () => {
      const others = (busy.get(client) ?? 1) - 1;
      if (others > 0) busy.set(client, others);
      else busy.delete(client);
    });
  });
  return {
    closeUnused: () => {
      for (const socket of sockets) if (!busy.has(clientOf(socket))) socket.destroy();
    },
    closeAll: () => {
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** What is done after the answers: looking up whom to write to, then messages, then what is said of them. */
export interface LastWork {
  background: Background;
  messages: Flushable;
  backChannel: Flushable;
  events: Events;
  log: Logger;
}

interface Flushable {
  /** Ends what waits, within so many milliseconds. */
  flush(ms: number): Promise<void>;
}

/**
 * Finishes it. Each kind has a share of the time, so that none that hangs takes it from the next.
 * @param deadline when it is given up at the latest.
 */
export async function finishWork(work: LastWork, deadline = deadlineIn(LAST_WORK)): Promise<void> {
  const { background, messages, backChannel, events, log } = work;
  if (!(await doneBy(deadline.share(0.3), background.flush()))) {
    log.warn('work in the background was not finished before the end');
  }
  const ms = deadline.share(0.8).left();
  if (!(await doneBy(deadline, Promise.all([messages.flush(ms), backChannel.flush(ms)])))) {
    log.warn('messages were not given up before the end');
  }
  if (!(await doneBy(deadline, events.flush()))) log.warn('events were not recorded before the end');
}

/** What a stop ends, in this order. */
export interface Stoppable {
  server: http.Server;
  connections: Connections;
  /** Ends what would keep connections busy for long. */
  drain(): void;
  /** Finishes what requests left to be done, by the deadline at the latest. */
  finish(deadline: Deadline): Promise<void>;
  /** Closes the store. What is acknowledged is on disk already, so nothing is lost when this is not waited for. */
  closeStore(): Promise<void>;
  log: Logger;
}

/**
 * Stops, within the budget whatever others do; what had to be left is in the log.
 * @param ms the budget, milliseconds.
 * @throws what closing the store throws: the disk refuses.
 */
export async function stopWithin(ms: number, parts: Stoppable): Promise<void> {
  const { log } = parts;
  const deadline = deadlineIn(ms);
  parts.drain();
  await closeServer(parts, deadline.share(REQUESTS));
  await parts
    .finish(deadline.share(0.9))
    .catch((error: unknown) => log.error({ err: error }, 'what was left to be done failed'));
  const closed = await doneBy(deadline, parts.closeStore());
  if (!closed) log.warn('the store was not folded before the end: the next start does it');
}

/** Takes no more connections, and lets the requests in progress end until the deadline. */
async function closeServer({ server, connections, log }: Stoppable, deadline: Deadline): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  const started = performance.now();
  // Connections that clients keep open would hold up the end: each goes when its answer is out.
  const check = setInterval(() => {
    if (performance.now() - started < GRACE) server.closeIdleConnections();
    else connections.closeUnused();
  }, CHECK);
  const inTime = await doneBy(deadline, closed);
  clearInterval(check);
  if (inTime) return;
  log.warn('requests that did not end were cut off');
  connections.closeAll();
}
