// Runs behind a TLS proxy (TLS=proxy): trusts the forwarding headers of known proxies, and refuses requests not sent
// by HTTPS.
import type { IncomingMessage } from 'node:http';
import { isIP, type Socket } from 'node:net';
import type { Context, Middleware } from 'koa';
import proxyaddr from 'proxy-addr';
import { addressList, forwardedAddress } from './addresses.ts';
import { AuthError, oauthShape } from './errors.ts';

/** Compiles the list of trusted proxies. @param ranges IP addresses and CIDR ranges. */
export const proxyTrust = addressList;

/**
 * Trusts the forwarding headers of trusted proxies only. The client's address is the last one that is not a trusted
 * proxy, and a request not sent by HTTPS is answered with 403.
 * @param except paths that may be requested by plain HTTP: the proxy's own health checks.
 */
export function behindProxy(ranges: readonly string[], except: readonly string[] = []): Middleware {
  const isTrusted = proxyTrust(ranges);
  const peers = new WeakMap<Socket, { address: string; isProxy: boolean }>();
  /** The address is looked up in the list once per connection. */
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
    // Secure cookies and redirects depend on this: the browser uses HTTPS, even if this hop does not. It is set once
    // for all requests of the application, because all others are refused above, and because defining properties on
    // each request would be the slowest step of all.
    const { request: requestPrototype } = ctx.app;
    if (!Object.hasOwn(requestPrototype, 'secure')) {
      Object.defineProperties(requestPrototype, { protocol: { value: 'https' }, secure: { value: true } });
    }
    return next();
  };
}

function clientAddress(ctx: Context, peer: string, isTrusted: (address: string) => boolean): string {
  const forwarded = ctx.get('X-Forwarded-For');
  if (!forwarded.includes(',')) return forwardedAddress(forwarded) ?? peer;
  // A hop that is no address becomes a name that no list trusts. proxy-addr would skip an empty one, and the hops before
  // it may be the client's invention.
  const hops = forwarded.split(',').map((hop) => forwardedAddress(hop) ?? 'unknown');
  const { socket } = ctx.req;
  // proxy-addr reads nothing else of a request.
  const request = { socket, headers: { 'x-forwarded-for': hops.join(',') } } as unknown as IncomingMessage;
  return proxyaddr.all(request, isTrusted).findLast((hop) => isIP(hop) !== 0) ?? peer;
}
