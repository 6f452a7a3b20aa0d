// Logs, traces and measures each request.
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
 * Returns the middleware that logs each request, and also traces and measures it where those are on.
 * @param isProxy reports whether an address is a proxy's. Only a proxy may name the trace that a request belongs to.
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
 * Logs a line per request at level debug, with the id that its error page shows. The query is left out because it may
 * hold codes and tokens.
 * @param measures also called for each request where metrics are on.
 */
function requestLog({ log, clock, random }: RequestLogDependencies, measures?: RequestMeasures): Middleware {
  // Makes the ids unique without using randomness for each request.
  const run = random(6).toString('base64url');
  let count = 0;
  const timed = async (ctx: Context, next: Next) => {
    const started = clock();
    // Read before `next`: the engine is handed the request with another method and path.
    const { method, path } = ctx;
    await next();
    const { status, ip, state } = ctx;
    const { requestId } = state;
    log.debug({ requestId, method, path, status, ms: clock() - started, ip }, 'request');
  };
  const logged: Middleware = (ctx, next) => {
    ctx.state.requestId = `${run}-${(++count).toString(36)}`;
    return log.isLevelEnabled('debug') ? timed(ctx, next) : next();
  };
  return measures === undefined ? logged : measured(logged, measures);
}

/** Makes a span for each request. */
function traceRequests(
  { request }: Pick<Tracing, 'request'>,
  isProxy: (address: string) => boolean,
): Middleware {
  return (ctx, next) => {
    // Read before `next`: the engine is handed the request with another method.
    const { method } = ctx;
    const parent = isProxy(ctx.req.socket.remoteAddress ?? '') ? ctx.req.headers : undefined;
    return request(parent, next, () => ({
      method: METHODS.has(method) ? method : '_OTHER',
      route: routeOf(ctx.state),
      status: ctx.status,
    }));
  };
}

/** Other methods become `_OTHER`: a stranger could send any number of them. */
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

const routeOf = ({ route }: Record<string, unknown>) => (typeof route === 'string' ? route : undefined);

/** Measures each request under the route that the router finds for it. */
function measured(inner: Middleware, { requestBegan, requestEnded }: RequestMeasures): Middleware {
  return async (ctx, next) => {
    const began = performance.now();
    // Read before the handler, as for traces.
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
