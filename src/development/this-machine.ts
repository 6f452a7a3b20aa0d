// Whom the development pages are shown to. They show every code and link that was sent to anybody, so only
// the person at this machine may see them.
import type { Context } from 'koa';
import { AuthError } from '../http/errors.ts';
import { isLoopback } from '../http/loopback.ts';
import type { Route } from '../http/routes.ts';

/**
 * Lets requests of this machine alone pass, whatever address the server listens on.
 * @param baseUrl the public origin; the pages are there under no other name.
 */
export function thisMachineOnly(baseUrl: string): (handle: Route['handle']) => Route['handle'] {
  const { host } = new URL(baseUrl);
  return (handle) => (ctx) => {
    // A name that somebody else points at this machine must not read the codes (DNS rebinding).
    if (ctx.host !== host) throw new AuthError(404, 'invalid_request', 'There is nothing here.');
    if (!hopsOf(ctx).every(isLoopback)) {
      throw new AuthError(404, 'invalid_request', 'This page is shown on the machine of the server alone.');
    }
    return handle(ctx);
  };
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
