// The only entrance to the engine. Its router ignores case and trailing slashes and treats HEAD as GET, so it only
// gets requests that our endpoints have checked.
import type { IncomingMessage } from 'node:http';
import type { Context, Middleware } from 'koa';
import mount from 'koa-mount';
import type Provider from 'oidc-provider';
import { AuthError, isBusy } from '../../http/errors.ts';
import type { ReadBasic } from './basic-credentials.ts';

/** Passes a checked request to the engine. */
export type EnterEngine = (ctx: Context) => Promise<void>;

/**
 * Makes the engine refuse every request except through the returned function.
 * @param renew called before each request.
 * @param readBasic rewrites credentials of HTTP Basic in the form that the engine reads.
 * @throws AuthError, at the request: 404 for others; 503 when something was busy, which the engine would answer as
 *   a server error.
 */
export function engineEntrance(
  provider: Provider,
  renew: () => Promise<void> | undefined,
  readBasic: ReadBasic,
): EnterEngine {
  const admitted = new WeakMap<IncomingMessage, string>();
  const guard: Middleware = async (ctx, next) => {
    // Once, and only for the admitted address.
    const request = admitted.get(ctx.req);
    admitted.delete(ctx.req);
    if (request !== requestOf(ctx)) throw new AuthError(404, 'not_found', 'There is nothing here.');
    await next();
  };
  provider.use(guard);
  const busy = new WeakMap<IncomingMessage, AuthError>();
  provider.on('server_error', (ctx, error) => {
    if (error instanceof AuthError && isBusy(error)) busy.set(ctx.req, error);
  });
  const run = mount(provider);
  return async (ctx) => {
    const renewed = renew();
    if (renewed !== undefined) await renewed;
    const read = readBasic(ctx);
    if (read !== undefined) await read;
    admitted.set(ctx.req, requestOf(ctx));
    await run(ctx, async () => undefined);
    const error = busy.get(ctx.req);
    if (error !== undefined) throw error;
  };
}

function requestOf(ctx: Context): string {
  return `${ctx.method} ${ctx.url}`;
}
