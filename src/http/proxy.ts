// Behind a TLS proxy (TLS=proxy): whose word about the client counts, and refusing what did not come by HTTPS.
import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import type { Context, Middleware } from 'koa';
import proxyaddr from 'proxy-addr';
import { addressList } from './addresses.ts';
import { AuthError, oauthShape } from './errors.ts';

/** Whether an address is one of the trusted proxies. @param ranges IP addresses and CIDR ranges. */
export const proxyTrust = addressList;

/**
 * Believes the forwarding headers of trusted proxies alone: the client's address is the last one that no
 * trusted proxy has, and the request must have come by HTTPS.
 * @param except paths that a proxy asks for itself, by plain HTTP.
 */
export function behindProxy(ranges: readonly string[], except: readonly string[] = []): Middleware {
  const isTrusted = proxyTrust(ranges);
  return async (ctx, next) => {
    if (except.includes(ctx.path)) return next();
    const peer = ctx.req.socket.remoteAddress ?? '';
    const protocol = isTrusted(peer) ? ctx.get('X-Forwarded-Proto').split(',')[0]?.trim() : undefined;
    if (protocol !== 'https') {
      return oauthShape(ctx, new AuthError(403, 'invalid_request', 'This server is served over HTTPS only.'));
    }
    const { request } = ctx;
    request.ip = clientAddress(ctx, peer, isTrusted);
    // Cookies and redirects go by this: the browser is on HTTPS, whatever this hop is.
    Object.defineProperties(request, {
      protocol: { value: 'https' },
      secure: { value: true },
    });
    return next();
  };
}

function clientAddress(ctx: Context, peer: string, isTrusted: (address: string) => boolean): string {
  // What is left of a hop that says nothing may be the client's own invention, and proxy-addr goes by empty hops as
  // if they were none: they get a name, which no list trusts.
  const hops = ctx
    .get('X-Forwarded-For')
    .split(',')
    .map((hop) => hop.trim() || 'unknown');
  const { socket } = ctx.req;
  const request = { socket, headers: { 'x-forwarded-for': hops.join(',') } } as unknown as IncomingMessage;
  return proxyaddr.all(request, isTrusted).findLast((hop) => isIP(hop) !== 0) ?? peer;
}
