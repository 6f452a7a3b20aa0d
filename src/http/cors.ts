// Cross-origin requests of browser applications (Fetch "CORS protocol").
import cors from '@koa/cors';
import type { Context, Middleware } from 'koa';

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
 * here, so that no later handler answers it; answers to its simple requests stay unreadable.
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

/**
 * Whether a browser says that a page of another site or host made it send a request that may change something
 * (Fetch Metadata §2.3). Its answer may be unreadable there, but what it does would be done, with the browser's
 * cookies and from its address. A program that is no browser says nothing of the kind.
 */
export function isSentByAnotherSite(ctx: Context): boolean {
  const isSafe = ctx.method === 'GET' || ctx.method === 'HEAD' || ctx.method === 'OPTIONS';
  return !isSafe && ['cross-site', 'same-site'].includes(ctx.get('Sec-Fetch-Site'));
}
