// The only way into the engine. Its own router folds case and trailing slashes and takes HEAD for GET, and what it
// reads from a request it believes; so it sees only what our endpoints have made for it.
import type { IncomingMessage } from 'node:http';
import type { Context, Middleware } from 'koa';
import mount from 'koa-mount';
import type Provider from 'oidc-provider';
import { AuthError } from '../http/errors.ts';

/** Has the engine answer a request that one of our endpoints has checked, as it is now. */
export type EnterEngine = (ctx: Context) => Promise<void>;

/**
 * Closes the engine to every request but those that come by the returned function.
 * @param renew called before each of them.
 * @throws AuthError 404, at the request, for others.
 */
export function engineEntrance(provider: Provider, renew: () => void): EnterEngine {
  const admitted = new WeakMap<IncomingMessage, string>();
  const guard: Middleware = async (ctx, next) => {
    // Once, and for the very address that was admitted.
    const request = admitted.get(ctx.req);
    admitted.delete(ctx.req);
    if (request !== requestOf(ctx)) throw new AuthError(404, 'not_found', 'There is nothing here.');
    await next();
  };
  provider.use(guard as unknown as Parameters<Provider['use']>[0]);
  const run = mount(provider);
  return async (ctx) => {
    renew();
    admitted.set(ctx.req, requestOf(ctx));
    await run(ctx, async () => undefined);
  };
}

function requestOf(ctx: Context): string {
  return `${ctx.method} ${ctx.url}`;
}
