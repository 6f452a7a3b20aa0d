// Behind a TLS proxy (TLS=proxy): which forwarding headers are trusted, and refusing requests that were not HTTPS.
import type { IncomingMessage } from 'node:http';
import { isIP, type Socket } from 'node:net';
import type { Context, Middleware } from 'koa';
import proxyaddr from 'proxy-addr';
import { addressList } from './addresses.ts';
import { AuthError, oauthShape } from './errors.ts';

/** Whether an address is one of the trusted proxies. @param ranges IP addresses and CIDR ranges. */
export const proxyTrust = addressList;

/**
 * Trusts forwarding headers of trusted proxies only: the client is the last address that is not a trusted proxy, and the
 * request must have come by HTTPS.
 * @param except paths that may come by plain HTTP: the proxy's own health checks.
 */
export function behindProxy(ranges: readonly string[], except: readonly string[] = []): Middleware {
  const isTrusted = proxyTrust(ranges);
  const peers = new WeakMap<Socket, { address: string; isProxy: boolean }>();
  /** Looked up once for each connection. */
  const peerOf = (socket: Socket) => {
    const address = socket.remoteAddress ?? '';
    const peer = peers.get(socket) ?? { address, isProxy: isTrusted(address) };
    peers.set(socket, peer);
    return peer;
  };
  return (ctx, next) => {
    if (except.includes(ctx.path)) return next();
    const { address: peer, isProxy } = peerOf(ctx.req.socket);
    const protocol = isProxy ? ctx.get('X-Forwarded-Proto').split(',')[0]?.trim() : undefined;
    if (protocol !== 'https') {
      return oauthShape(ctx, new AuthError(403, 'invalid_request', 'This server is served over HTTPS only.'));
    }
    ctx.request.ip = clientAddress(ctx, peer, isTrusted);
    // Secure cookies and redirects depend on this: the browser is on HTTPS, even if this hop is not. Of all requests of the
    // application, because whatever is not by HTTPS ends here, and defining properties of each takes longer than all else.
    const { request: every } = ctx.app;
    if (!Object.hasOwn(every, 'secure')) {
      Object.defineProperties(every, { protocol: { value: 'https' }, secure: { value: true } });
    }
    return next();
  };
}

function clientAddress(ctx: Context, peer: string, isTrusted: (address: string) => boolean): string {
  const forwarded = ctx.get('X-Forwarded-For');
  if (!forwarded.includes(',')) return isIP(forwarded.trim()) === 0 ? peer : forwarded.trim();
  // An empty hop gets a name that no list trusts: proxy-addr would skip it, and what is left of it may be the client's
  // own invention.
  const hops = forwarded.split(',').map((hop) => hop.trim() || 'unknown');
  const { socket } = ctx.req;
  // The library reads no more of a request.
  const request = { socket, headers: { 'x-forwarded-for': hops.join(',') } } as unknown as IncomingMessage;
  return proxyaddr.all(request, isTrusted).findLast((hop) => isIP(hop) !== 0) ?? peer;
}
