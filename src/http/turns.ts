// The requests of one connection, one after the other. Node.js begins all that a client sends at once (pipelining,
// RFC 9112 §9.3.2), so that one packet could start thousands and a few connections stop the server for everybody.
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { closeInStages } from './unread.ts';

/** How many may wait behind the one that is answered; browsers, proxies and SDKs send none before its answer. */
const MOST_WAITING = 8;

/** A connection that has sent so many more is broken off: each costs memory until it ends. */
const TOO_MANY = 100;

interface Turns {
  busy: boolean;
  waiting: [IncomingMessage, ServerResponse][];
  /** How many were not taken. */
  refused: number;
}

/**
 * Has each connection's requests answered in turn. One too many is told 503 (RFC 9110 §15.6.4) after the answers to
 * those before it, and with that the connection ends.
 */
export function inTurns(handle: RequestListener): RequestListener {
  const connections = new WeakMap<Socket, Turns>();
  const take = (turns: Turns, request: IncomingMessage, response: ServerResponse): void => {
    // The connection may have ended while it waited, by an answer after which nothing more is to be done (RFC 9112 §9.6).
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
    else if (turns.waiting.length < MOST_WAITING && turns.refused === 0)
      turns.waiting.push([request, response]);
    else refuse(turns, socket, response);
  };
}

function refuse(turns: Turns, socket: Socket, response: ServerResponse): void {
  turns.refused += 1;
  if (turns.refused > TOO_MANY) breakOff(socket);
  // The others behind it are never answered: the connection ends before their turn.
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
 * Ends a connection in the middle of what it sent. Node.js would first read all that has come, which may be thousands
 * of requests more: its parser stops at a number that is none of those its callback may return, which no public
 * interface says. Without it only the time is longer.
 */
function breakOff(socket: Socket): void {
  const { parser } = socket as Socket & { parser?: { onIncoming?: () => number } };
  if (parser !== undefined && parser !== null) parser.onIncoming = () => -1;
  socket.destroy();
}
