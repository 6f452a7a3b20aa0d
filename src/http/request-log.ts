// What the log and the metrics say of each request.
import type { Context, Middleware, Next } from 'koa';
import type { Logger } from 'pino';
import type { Clock } from '../runtime/clock.ts';
import type { Measures } from '../runtime/measures.ts';
import type { Random } from '../runtime/random.ts';
import type { Tracing } from '../runtime/tracing.ts';

interface RequestLogDependencies {
  log: Logger;
  clock: Clock;
  random: Random;
}

/**
 * What is told of each request: to the log, and where they are on to traces and metrics.
 * @param isProxy whether an address is that of a proxy, whose word it is of which trace a request is, and not a stranger's.
 */
export function watchRequests(
  deps: RequestLogDependencies & {
    tracing?: Pick<Tracing, 'request'> | undefined;
    metrics?: { measures: RequestMeasures } | undefined;
  },
  isProxy: (address: string) => boolean,
): Middleware[] {
  const log = requestLog(deps, deps.metrics?.measures);
  return deps.tracing === undefined ? [log] : [traceRequests(deps.tracing, isProxy), log];
}

type RequestMeasures = Pick<Measures, 'requestBegan' | 'requestEnded'>;

/**
 * A line per request, with the id that its error page shows. The query is left out, where codes and tokens
 * may be.
 * @param measures told of each request, too, where metrics are on.
 */
function requestLog({ log, clock, random }: RequestLogDependencies, measures?: RequestMeasures): Middleware {
  // Unique without asking for randomness at each request.
  const run = random(6).toString('base64url');
  let count = 0;
  const told = async (ctx: Context, next: Next) => {
    const started = clock();
    await next();
    const { method, path, status, ip, state } = ctx;
    const { requestId } = state;
    log.debug({ requestId, method, path, status, ms: clock() - started, ip }, 'request');
  };
  const logged: Middleware = (ctx, next) => {
    ctx.state.requestId = `${run}-${(++count).toString(36)}`;
    return log.isLevelEnabled('debug') ? told(ctx, next) : next();
  };
  return measures === undefined ? logged : measured(logged, measures);
}

/** Makes a span of each request. */
function traceRequests(
  { request }: Pick<Tracing, 'request'>,
  isProxy: (address: string) => boolean,
): Middleware {
  return (ctx, next) => {
    // The engine is handed the request under addresses of its own.
    const { method } = ctx;
    const parent = isProxy(ctx.req.socket.remoteAddress ?? '') ? ctx.req.headers : undefined;
    return request(parent, next, () => ({
      method: METHODS.has(method) ? method : '_OTHER',
      route: routeOf(ctx.state),
      status: ctx.status,
    }));
  };
}

/** Others can be sent, as many as somebody likes. */
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

const routeOf = ({ route }: Record<string, unknown>) => (typeof route === 'string' ? route : undefined);

/** Measures each request, by the route that the router has found for it. */
function measured(inner: Middleware, { requestBegan, requestEnded }: RequestMeasures): Middleware {
  return async (ctx, next) => {
    const began = performance.now();
    // The engine is handed the request under addresses of its own.
    const { method } = ctx;
    requestBegan();
    try {
      await inner(ctx, next);
    } finally {
      const { status } = ctx;
      requestEnded({ method, route: routeOf(ctx.state), status }, (performance.now() - began) / 1000);
    }
  };
}
