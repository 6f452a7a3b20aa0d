// Runs behind a TLS proxy (TLS=proxy): trusts the forwarding headers of known proxies, and refuses requests not sent
// by HTTPS.
import type { IncomingMessage } from 'node:http';
import { isIP, type Socket } from 'node:net';
import type { Context, Middleware } from 'koa';
import proxyaddr from 'proxy-addr';
import { addressList, forwardedAddress } from '../addresses.ts';
import { AuthError, oauthShape } from '../errors.ts';

/** @param ranges IP addresses and CIDR ranges. */
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
    if (!isProxy || clientProtocol(ctx, isTrusted) !== 'https') {
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

// docs/understand/decisions/requests.md#the-value-of-x-forwarded-proto-is-found-as-the-clients-address-is
/**
 * Returns how the outermost trusted proxy was reached. Each proxy that writes a list adds what it saw at the end, as in
 * `X-Forwarded-For`, so the value is as far from the end as that proxy is: what is before it, a client may have written. A
 * shorter list has been passed on, or replaced, by the proxies that are nearer.
 */
function clientProtocol(ctx: Context, isTrusted: (address: string) => boolean): string | undefined {
  const seen = ctx
    .get('X-Forwarded-Proto')
    .split(',')
    .map((one) => one.trim().toLowerCase());
  if (seen.length === 1) return seen[0];
  const proxies = hopsOf(ctx, isTrusted).filter((hop) => isTrusted(hop)).length;
  return seen[Math.max(0, seen.length - proxies)];
}

function clientAddress(ctx: Context, peer: string, isTrusted: (address: string) => boolean): string {
  const forwarded = ctx.get('X-Forwarded-For');
  if (!forwarded.includes(',')) return forwardedAddress(forwarded) ?? peer;
  return hopsOf(ctx, isTrusted).findLast((hop) => isIP(hop) !== 0) ?? peer;
}

/** Returns the addresses that a request came through, the nearest first, to the first that is no trusted proxy. */
function hopsOf(ctx: Context, isTrusted: (address: string) => boolean): string[] {
  // A hop that is no address becomes a name that no list trusts. proxy-addr would skip an empty one, and the hops before
  // it may be the client's invention.
  // docs/understand/decisions/requests.md#proxy-addr-finds-the-client-nodes-blocklist-trusted-proxies-ipaddrjs-addresses
  const hops = ctx
    .get('X-Forwarded-For')
    .split(',')
    .map((hop) => forwardedAddress(hop) ?? 'unknown');
  const { socket } = ctx.req;
  // proxy-addr reads nothing else of a request.
  const request = { socket, headers: { 'x-forwarded-for': hops.join(',') } } as unknown as IncomingMessage;
  return proxyaddr.all(request, isTrusted);
}
