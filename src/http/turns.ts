// Handles the requests of a connection one after the other. Node.js starts all pipelined requests (RFC 9112 §9.3.2) at
// once, so a few connections could stop the server for everybody.
// docs/decisions/requests.md#requests-on-one-connection-are-handled-one-after-another
import type http from 'node:http';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Middleware } from 'koa';
import type { Logger } from 'pino';
import { createShares } from '../runtime/shares.ts';
import { originOf } from './addresses.ts';

/** The maximum number of requests waiting behind the current one; browsers, proxies and SDKs do not pipeline. */
const MAX_WAITING = 8;

/** The number of refused requests after which the connection is cut: each costs memory until then. */
const MAX_REFUSED = 100;

interface Turns {
  busy: boolean;
  waiting: [IncomingMessage, ServerResponse][];
  /** The number of requests refused so far. */
  refused: number;
}

/**
 * Handles each connection's requests one after the other. A request too many gets 503 (RFC 9110 §15.6.4) after the
 * responses before it, and the connection closes.
 */
export function inTurns(handle: RequestListener): RequestListener {
  const connections = new WeakMap<Socket, Turns>();
  const take = (turns: Turns, request: IncomingMessage, response: ServerResponse): void => {
    // The connection may have closed while the request waited (RFC 9112 §9.6).
    if (!request.socket.writable) return;
    turns.busy = true;
    response.once('close', () => {
      turns.busy = false;
      const next = turns.waiting.shift();
      if (next !== undefined) take(turns, ...next);
    });
    handle(request, response);
  };
  return (request, response) => {
    const { socket } = request;
    const turns = connections.get(socket) ?? { busy: false, waiting: [], refused: 0 };
    connections.set(socket, turns);
    if (!turns.busy) take(turns, request, response);
    else if (turns.waiting.length < MAX_WAITING && turns.refused === 0)
      turns.waiting.push([request, response]);
    else refuse(turns, socket, response);
  };
}

function refuse(turns: Turns, socket: Socket, response: ServerResponse): void {
  turns.refused += 1;
  if (turns.refused > MAX_REFUSED) breakOff(socket);
  // Only the first one is answered: the connection closes before the turn of the others.
  if (turns.refused > 1) return;
  socket.pause();
  closeInStages(socket);
  response.writeHead(503, {
    'Retry-After': '1',
    'Cache-Control': 'no-store',
    'Content-Type': 'application/json; charset=utf-8',
    Connection: 'close',
  });
  response.end(
    JSON.stringify({
      error: 'temporarily_unavailable',
      error_description: 'Too many requests at once on one connection.',
    }),
  );
}

/**
 * Cuts a connection while data is still arriving. Node.js would first parse all that has arrived, maybe thousands of
 * requests. Its parser stops when its callback returns an unexpected value; that is not a public interface, but
 * without it the cut would only take longer.
 */
function breakOff(socket: Socket): void {
  const { parser } = socket as Socket & { parser?: { onIncoming?: () => number } };
  if (parser !== undefined && parser !== null) parser.onIncoming = () => -1;
  socket.destroy();
}

// Closes connections whose request body is not read.

/** How long a connection still accepts data after its last answer, milliseconds. */
const LINGER_MS = 1_000;

/**
 * Closes the connection after answering a request whose unread body is long or endless, because the next request
 * would only come after it. Node.js skips a short body.
 * @param maxSkippedBytes the length of a body that is skipped, bytes.
 */
export function closeUnread(maxSkippedBytes: number): Middleware {
  return async ({ req, res }, next) => {
    await next();
    const { 'transfer-encoding': coding, 'content-length': length } = req.headers;
    if (req.complete || (coding === undefined && Number(length ?? 0) <= maxSkippedBytes)) return;
    if (!res.headersSent) res.setHeader('Connection', 'close');
    closeInStages(req.socket);
  };
}

/**
 * Closes a connection in two stages after its last response (RFC 9112 §9.6): our side at once, the rest a moment
 * later. Otherwise a reset could make the client's system discard the response.
 * @param socket the connection on which the last response, with `Connection: close`, is being sent.
 */
function closeInStages(socket: Socket): void {
  // Node.js calls this after the last answer.
  socket.destroySoon = () => {
    socket.end();
    const late = setTimeout(() => socket.destroy(), LINGER_MS).unref();
    socket.once('close', () => clearTimeout(late));
  };
}

// Shares the connections of a server among its clients. A connection takes memory even if it says nothing, so there is a
// bound; beyond it, whoever has most gives one back, first those in which no request is in progress.

/** How often it is logged that connections are cut, milliseconds. */
const LOG_INTERVAL = 10_000;

interface Sharing {
  /** How many connections all servers together may have. */
  max: number;
  /** Whether an address is that of a trusted proxy, whose connections are those of many clients and are never cut. */
  isProxy(address: string): boolean;
  log: Pick<Logger, 'warn'>;
}

/** Shares the connections of some servers, from the moment they are accepted, also before a TLS handshake. */
export function shareConnections(
  servers: readonly http.Server[],
  { max, isProxy, log }: Sharing,
): { size(): number } {
  const shares = createShares<Socket>();
  const ofProxies = new Set<Socket>();
  /** The TLS socket of a request and the TCP socket below it have the same ports. */
  const byClient = new Map<string, Socket>();
  const size = () => shares.size() + ofProxies.size;
  const cuts = cutsLogged(log);
  const onConnection = (socket: Socket): void => {
    const { remoteAddress } = socket;
    // It has been closed meanwhile.
    if (remoteAddress === undefined) return void socket.destroy();
    const client = clientOf(socket);
    const forget = () => {
      ofProxies.delete(socket);
      shares.delete(socket);
      if (byClient.get(client) === socket) byClient.delete(client);
    };
    socket.once('close', forget);
    if (isProxy(remoteAddress)) ofProxies.add(socket);
    else {
      shares.add(socket, originOf(remoteAddress));
      byClient.set(client, socket);
    }
    if (size() <= max) return;
    const cut = shares.toGiveUp('oldest') ?? socket;
    cuts.count(cut.remoteAddress);
    shares.delete(cut);
    cut.destroy();
  };
  const onRequest = (request: http.IncomingMessage, response: http.ServerResponse): void => {
    const socket = byClient.get(clientOf(request.socket));
    if (socket === undefined) return;
    shares.keep(socket);
    response.once('close', () => shares.release(socket));
  };
  for (const server of servers) server.on('connection', onConnection).on('request', onRequest);
  return { size };
}

const clientOf = ({ remoteAddress, remotePort, localPort }: Socket) =>
  `${remoteAddress} ${remotePort} ${localPort}`;

/** Logs who has too many connections, at most one line in ten seconds. */
function cutsLogged(log: Pick<Logger, 'warn'>): { count(address: string | undefined): void } {
  let last = -Infinity;
  let connections = 0;
  return {
    count: (address) => {
      connections += 1;
      if (performance.now() - last < LOG_INTERVAL) return;
      last = performance.now();
      const network = address === undefined ? undefined : originOf(address).network;
      log.warn({ connections, network }, 'there are too many connections: those of who has most are cut');
      connections = 0;
    },
  };
}
