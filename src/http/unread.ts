// The end of connections on which more comes than is read.
import type { Socket } from 'node:net';
import type { Middleware } from 'koa';

/** How long a connection whose answer is out still takes what its client sends, milliseconds. */
const LINGER = 1_000;

/**
 * Closes the connection after the answer to a request whose body is not read and may have no end: the next request
 * would only be found behind it. A body that is not read but short is left to Node.js to skip.
 * @param longest what is skipped at most, bytes.
 */
export function closeUnread(longest: number): Middleware {
  return async ({ req, res }, next) => {
    await next();
    const { 'transfer-encoding': coding, 'content-length': length } = req.headers;
    if (req.complete || (coding === undefined && Number(length ?? 0) <= longest)) return;
    if (!res.headersSent) res.setHeader('Connection', 'close');
    closeInStages(req.socket);
  };
}

/**
 * Has a connection closed in stages once its last answer is out (RFC 9112 §9.6): our side at once, all of it a moment
 * later. Closed all at once, the client's system might drop the answer for what the client was still sending.
 * @param socket whose last answer is on its way, with `Connection: close`.
 */
export function closeInStages(socket: Socket): void {
  // What Node.js calls at that moment.
  socket.destroySoon = () => {
    socket.end();
    const late = setTimeout(() => socket.destroy(), LINGER).unref();
    socket.once('close', () => clearTimeout(late));
  };
}
