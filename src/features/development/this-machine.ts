// Restricts the development pages to this machine, because they show every code and link that was sent.
import type { Context } from 'koa';
import { forwardedAddress } from '../../http/addresses.ts';
import { AuthError } from '../../http/errors.ts';
import { isLoopback } from '../../http/loopback.ts';
import { tenantHostOf } from '../../http/request-host.ts';
import type { RouteDeclarations } from '../../http/routes.ts';

/** Restricts routes to requests from this machine, whatever address the server listens on. */
export function onThisMachine<D extends { baseUrl: string }>(
  routes: RouteDeclarations<D>,
): RouteDeclarations<D> {
  return Object.fromEntries(
    Object.entries(routes).map(([key, route]) => [
      key,
      {
        ...route,
        handle: (deps: D, ctx: Context) => {
          refuseOthers(deps.baseUrl, ctx);
          return route.handle(deps, ctx);
        },
      },
    ]),
  );
}

/** @param baseUrl the public origin, the only name the pages answer to. @throws AuthError 404 */
function refuseOthers(baseUrl: string, ctx: Context): void {
  // A foreign name that resolves to this machine must not read the codes (DNS rebinding).
  const { host, isRequested } = tenantHostOf(ctx);
  if (!isRequested || host !== new URL(baseUrl).host) {
    throw new AuthError(404, 'invalid_request', 'There is nothing here.');
  }
  if (!hopsOf(ctx).every(isLoopback)) {
    throw new AuthError(404, 'invalid_request', 'This page is shown on the machine of the server alone.');
  }
}

/**
 * Returns all addresses that a request came through. A tunnel or proxy on this machine connects from loopback.
 * Forwarding headers of any client count here, because they can only deny access.
 */
function hopsOf(ctx: Context): string[] {
  const forwarded = ['X-Forwarded-For', 'X-Real-IP'].flatMap((name) => ctx.get(name).split(','));
  // RFC 7239 §4: not parsed; its presence alone denies.
  const standard = ctx.get('Forwarded') === '' ? [] : ['unknown'];
  const forwardedHops = forwarded
    .map((hop) => forwardedAddress(hop) ?? hop.trim())
    .filter((hop) => hop !== '');
  return [ctx.req.socket.remoteAddress ?? 'unknown', ctx.ip, ...forwardedHops, ...standard];
}
