// Whom the development pages are shown to. They show every code and link that was sent to anybody, so only
// the person at this machine may see them.
import type { Context } from 'koa';
import { AuthError } from '../http/errors.ts';
import { isLoopback } from '../http/loopback.ts';
import type { RouteDeclarations } from '../http/routes.ts';

/** Routes that are answered to requests of this machine alone, whatever address the server listens on. */
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

/** @param baseUrl the public origin; the pages are there under no other name. @throws AuthError 404 */
function refuseOthers(baseUrl: string, ctx: Context): void {
  // A name that somebody else points at this machine must not read the codes (DNS rebinding).
  if (ctx.host !== new URL(baseUrl).host) {
    throw new AuthError(404, 'invalid_request', 'There is nothing here.');
  }
  if (!hopsOf(ctx).every(isLoopback)) {
    throw new AuthError(404, 'invalid_request', 'This page is shown on the machine of the server alone.');
  }
}

/**
 * Every address that a request is said to come from. A tunnel or proxy on this machine has a loopback address
 * itself; what it tells of the client counts here whoever it is, because it can only take away.
 */
function hopsOf(ctx: Context): string[] {
  const forwarded = ['X-Forwarded-For', 'X-Real-IP'].flatMap((name) => ctx.get(name).split(','));
  // RFC 7239 §4: not parsed, since nothing that sends it need see these pages.
  const standard = ctx.get('Forwarded') === '' ? [] : ['unknown'];
  const said = forwarded.map((hop) => hop.trim()).filter((hop) => hop !== '');
  return [ctx.req.socket.remoteAddress ?? 'unknown', ctx.ip, ...said, ...standard];
}
