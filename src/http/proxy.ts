// Behind a TLS proxy (TLS=proxy): whose word about the client counts, and refusing what did not come by HTTPS.
import { BlockList, isIP } from 'node:net';
import type { Context, Middleware } from 'koa';
import { AuthError, oauthShape } from './errors.ts';

/** Whether an address is one of the trusted proxies. @param ranges IP addresses and CIDR ranges. */
export function proxyTrust(ranges: readonly string[]): (address: string) => boolean {
  const trusted = new BlockList();
  for (const range of ranges) {
    const [address = '', prefix] = range.split('/');
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
    if (prefix === undefined) trusted.addAddress(address, family);
    else trusted.addSubnet(address, Number(prefix), family);
  }
  return (address) => {
    const plain = unmapped(address);
    return isIP(plain) !== 0 && trusted.check(plain, isIP(plain) === 6 ? 'ipv6' : 'ipv4');
  };
}

/** IPv4 addresses on an IPv6 socket: `::ffff:127.0.0.1`. */
function unmapped(address: string): string {
  return address.startsWith('::ffff:') && isIP(address.slice(7)) === 4 ? address.slice(7) : address;
}

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
  const hops = ctx
    .get('X-Forwarded-For')
    .split(',')
    .map((hop) => hop.trim());
  let address = peer;
  for (const hop of hops.reverse()) {
    // What is left of a hop that says nothing may be the client's own invention.
    if (isIP(hop) === 0) break;
    address = hop;
    if (!isTrusted(hop)) break;
  }
  return address;
}
