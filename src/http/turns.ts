// Handles the requests of a connection one after the other. Node.js starts all pipelined requests (RFC 9112 §9.3.2) at
// once, so a few connections could stop the server for everybody.
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { closeInStages } from './unread.ts';

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
