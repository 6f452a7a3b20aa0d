// Closes connections whose request body is not read.
import type { Socket } from 'node:net';
import type { Middleware } from 'koa';

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
export function closeInStages(socket: Socket): void {
  // Node.js calls this after the last answer.
  socket.destroySoon = () => {
    socket.end();
    const late = setTimeout(() => socket.destroy(), LINGER_MS).unref();
    socket.once('close', () => clearTimeout(late));
  };
}
