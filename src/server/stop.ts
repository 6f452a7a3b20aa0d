// Stops a server: finishes what is in flight within one time budget, however slow clients, mail servers or applications
// are.
// docs/understand/decisions/operating.md#a-stop-takes-at-most-nine-seconds
import type http from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import type { Logger } from 'pino';
import type { Background } from '../runtime/background.ts';
import { type Deadline, deadlineIn, doneBy } from '../runtime/deadline.ts';
import type { Events } from '../tenant/events.ts';

/** Default budget of a stop, milliseconds. Supervisors usually wait ten seconds before they kill a process. */
export const STOP_BUDGET = 9_000;

/** Share of the budget for requests in flight. The rest is for the background work that requests leave. */
const REQUESTS_SHARE = 0.5;

/** Default time for background work, milliseconds. */
const LAST_WORK_MS = 20_000;

/** How long an idle connection stays open, because a request may be in transit, milliseconds. */
const IDLE_GRACE_MS = 500;

/** How often connections are checked, milliseconds. */
const CHECK_INTERVAL = 50;

/** The open connections of some servers, including those before their TLS handshake. */
interface Connections {
  /**
   * Sets `Connection: close` on every answer from now on. A client that has read it sends no further request, so none
   * can be in transit when the connection closes (RFC 9112 §9.6).
   */
  closeAfterAnswers(): void;
  /** Closes connections without a request in progress, also during their TLS handshake. */
  closeUnused(): void;
  closeAll(): void;
}

/**
 * Node.js does not list a connection before its TLS handshake is done, and counts one that has sent nothing as busy.
 */
export function trackConnections(servers: readonly http.Server[]): Connections {
  const sockets = new Set<Socket>();
  /**
   * Number of requests in progress, by the client's address and port, which the TLS socket and the TCP socket below it
   * share.
   */
  const busy = new Map<string, number>();
  const clientOf = ({ remoteAddress, remotePort, localPort }: Socket) =>
    `${remoteAddress} ${remotePort} ${localPort}`;
  const clients = new WeakMap<Socket, string>();
  const answers = new Set<http.ServerResponse>();
  const setClose = (response: http.ServerResponse) => {
    if (!response.headersSent) response.setHeader('Connection', 'close');
  };
  const onConnection = (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  };
  const onRequest = (request: http.IncomingMessage, response: http.ServerResponse) => {
    const client = clients.get(request.socket) ?? clientOf(request.socket);
    clients.set(request.socket, client);
    busy.set(client, (busy.get(client) ?? 0) + 1);
    answers.add(response);
    response.once('close', () => {
      answers.delete(response);
      const others = (busy.get(client) ?? 1) - 1;
      if (others > 0) busy.set(client, others);
      else busy.delete(client);
    });
  };
  for (const server of servers) server.on('connection', onConnection).on('request', onRequest);
  return {
    closeAfterAnswers: () => {
      for (const response of answers) setClose(response);
      for (const server of servers)
        server.prependListener('request', (_request, response) => setClose(response));
    },
    closeUnused: () => {
      for (const socket of sockets) if (!busy.has(clientOf(socket))) socket.destroy();
    },
    closeAll: () => {
      for (const socket of sockets) socket.destroy();
    },
  };
}

/**
 * The work that is left after the answers, in the order in which it is finished: background lookups, messages and
 * logout tokens, log events.
 */
interface LastWork {
  background: Background;
  deliveries: Flushable;
  messages: { close(): Promise<void> };
  events: Events;
  log: Logger;
}

interface Flushable {
  /** Finishes the queued work, or gives it up after so many milliseconds. */
  flush(ms: number): Promise<void>;
}

/**
 * Finishes the last work. Each kind has a share of the time, so that one that hangs does not starve the next.
 * @param deadline when the work is given up.
 */
export async function finishWork(work: LastWork, deadline = deadlineIn(LAST_WORK_MS)): Promise<void> {
  const { background, deliveries, messages, events, log } = work;
  if (!(await doneBy(deadline.share(0.3), background.flush()))) {
    log.warn('work in the background was not finished before the end');
  }
  const ms = deadline.share(0.8).left();
  const sent = deliveries.flush(ms).then(messages.close);
  if (!(await doneBy(deadline, sent))) {
    log.warn('messages were not given up before the end');
  }
  if (!(await doneBy(deadline, events.flush()))) log.warn('events were not recorded before the end');
}

/** What a stop ends, in this order. */
interface Stoppable {
  servers: readonly http.Server[];
  connections: Connections;
  /** Ends long-lived responses. */
  drain(): void;
  /** Finishes the background work that requests left, by the deadline. */
  finish(deadline: Deadline): Promise<void>;
  /** Closes the store. Acknowledged writes are on disk already, so not waiting loses nothing. */
  closeStore(): Promise<void>;
  log: Logger;
  // docs/understand/decisions/operating.md#a-process-stops-gently-which-takes-half-a-second
  /** Whether kept-alive connections stay open for half a second, so that no client's request meets a closed one. */
  isGraceful: boolean;
}

/**
 * Stops within the budget, and logs what was cut short.
 * @param ms the budget, milliseconds.
 * @throws Error when closing the store fails.
 */
export async function stopWithin(ms: number, parts: Stoppable): Promise<void> {
  const { log } = parts;
  const deadline = deadlineIn(ms);
  parts.drain();
  await closeServer(parts, deadline.share(REQUESTS_SHARE));
  await parts
    .finish(deadline.share(0.9))
    .catch((error: unknown) => log.error({ err: error }, 'what was left to be done failed'));
  const closed = await doneBy(deadline, parts.closeStore());
  if (!closed) log.warn('the store was not closed before the end: the next start recovers it');
}

/** Accepts no more connections, and lets requests in progress finish until the deadline. */
async function closeServer(
  { servers, connections, log, isGraceful }: Stoppable,
  deadline: Deadline,
): Promise<void> {
  if (isGraceful) connections.closeAfterAnswers();
  const closed = Promise.all(
    servers.map(
      (server) =>
        new Promise<void>((resolve) => {
          // http.Server's own `close` would at once close connections that are idle at this moment.
          if (isGraceful) NetServer.prototype.close.call(server, () => resolve());
          else server.close(() => resolve());
        }),
    ),
  );
  const started = performance.now();
  // Closes kept-alive connections after their last answer.
  const check = setInterval(() => {
    if (performance.now() - started >= IDLE_GRACE_MS) connections.closeUnused();
    else if (!isGraceful) for (const server of servers) server.closeIdleConnections();
  }, CHECK_INTERVAL);
  const inTime = await doneBy(deadline, closed);
  clearInterval(check);
  if (inTime) return;
  log.warn('requests that did not end were cut off');
  connections.closeAll();
}
