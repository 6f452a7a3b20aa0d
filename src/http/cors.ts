// Cross-origin requests of browser applications (Fetch "CORS protocol").
import cors from '@koa/cors';
import type { Context, Middleware } from 'koa';

/**
 * What tracing libraries add to every request of a page: W3C Trace Context and Baggage, and the headers of vendors that are
 * older. They say nothing here; without them in the list the browser does not send the request at all.
 */
const TRACING_HEADERS = [
  ...['traceparent', 'tracestate', 'baggage', 'sentry-trace', 'b3', 'newrelic', 'elastic-apm-traceparent'],
  ...['x-b3-traceid', 'x-b3-spanid', 'x-b3-parentspanid', 'x-b3-sampled', 'x-b3-flags'],
  ...['x-datadog-trace-id', 'x-datadog-parent-id', 'x-datadog-origin', 'x-datadog-sampling-priority'],
];

const ALLOWED_HEADERS = [
  ...['content-type', 'authorization', 'auth0-client', 'x-request-language', 'dpop'],
  ...TRACING_HEADERS,
];
const EXPOSED_HEADERS = [
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
  'retry-after',
  'www-authenticate',
  'dpop-nonce',
  'location',
];

/** How long a browser may cache the answer to a preflight, seconds. */
const MAX_AGE = 3600;

/** Allows all origins, without credentials: for public documents (discovery, keys). */
export function anyOrigin(): Middleware {
  return cors({ origin: '*', exposeHeaders: EXPOSED_HEADERS, maxAge: MAX_AGE });
}

/**
 * Allows the origins of the tenant's applications, with credentials. Preflights of other origins are answered without
 * permission.
 * @param allowed reports whether the value of an `Origin` header is one of them.
 */
export function applicationOrigins(allowed: (origin: string) => Promise<boolean>): Middleware {
  const answer = cors({
    origin: (ctx) => ctx.get('Origin'),
    credentials: true,
    allowMethods: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'],
    allowHeaders: ALLOWED_HEADERS,
    exposeHeaders: EXPOSED_HEADERS,
    maxAge: MAX_AGE,
  });
  const fromPage: Middleware = async (ctx, next) => {
    if (await allowed(ctx.get('Origin'))) return answer(ctx, next);
    ctx.vary('Origin');
    if (ctx.method === 'OPTIONS') {
      ctx.status = 204;
      return;
    }
    await next();
    ctx.remove('Access-Control-Allow-Origin');
  };
  return (ctx, next) => {
    if (ctx.get('Origin') !== '') return fromPage(ctx, next);
    // A fast path: `ctx.vary` would parse the header that exists.
    if (ctx.res.hasHeader('Vary')) ctx.vary('Origin');
    else ctx.res.setHeader('Vary', 'Origin');
    return next();
  };
}

/**
 * Reports whether the browser states that a page of another site caused this request (Fetch Metadata §2.3). CORS
 * would only hide the response; the request would still take effect with the browser's cookies and address. Clients
 * other than browsers do not send the header.
 */
export function isSentByAnotherSite(ctx: Context): boolean {
  const isSafe = ctx.method === 'GET' || ctx.method === 'HEAD' || ctx.method === 'OPTIONS';
  return !isSafe && ['cross-site', 'same-site'].includes(ctx.get('Sec-Fetch-Site'));
}
