// Cross-origin requests of browser applications (wire-details 0.2).
import cors from '@koa/cors';
import type { Middleware } from 'koa';

const ALLOWED_HEADERS = ['content-type', 'authorization', 'auth0-client', 'x-request-language', 'dpop'];
const EXPOSED_HEADERS = [
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
  'retry-after',
  'www-authenticate',
];

/** Seconds for which a browser may remember a preflight's answer. */
const MAX_AGE = 3600;

/** Answers any origin, without credentials: for what is public (discovery, keys). */
export function anyOrigin(): Middleware {
  return cors({ origin: '*', exposeHeaders: EXPOSED_HEADERS, maxAge: MAX_AGE });
}

/**
 * Answers the origins of the tenant's applications, with credentials. Another origin's preflight ends
 * here, so that no later handler answers it; its simple requests pass, and their answers stay unreadable.
 * @param allowed decides on an `Origin` header's value.
 */
export function applicationOrigins(allowed: (origin: string) => Promise<boolean>): Middleware {
  const answer = cors({
    origin: (ctx) => ctx.get('Origin'),
    credentials: true,
    allowMethods: ['GET', 'POST', 'DELETE'],
    allowHeaders: ALLOWED_HEADERS,
    exposeHeaders: EXPOSED_HEADERS,
    maxAge: MAX_AGE,
  });
  return async (ctx, next) => {
    const origin = ctx.get('Origin');
    if (origin === '' || (await allowed(origin))) return answer(ctx, next);
    ctx.vary('Origin');
    if (ctx.method === 'OPTIONS') {
      ctx.status = 204;
      return;
    }
    await next();
    ctx.remove('Access-Control-Allow-Origin');
  };
}
