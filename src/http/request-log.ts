// What the log and the metrics say of each request.
import type { Middleware } from 'koa';
import type { Logger } from 'pino';
import type { Clock } from '../runtime/clock.ts';
import type { Measures } from '../runtime/measures.ts';
import type { Random } from '../runtime/random.ts';

interface RequestLogDependencies {
  log: Logger;
  clock: Clock;
  random: Random;
}

type RequestMeasures = Pick<Measures, 'requestBegan' | 'requestEnded'>;

/**
 * A line per request, with the id that its error page shows. The query is left out, where codes and tokens
 * may be.
 * @param measures told of each request, too, where metrics are on.
 */
export function requestLog(
  { log, clock, random }: RequestLogDependencies,
  measures?: RequestMeasures,
): Middleware {
  // Unique without asking for randomness at each request.
  const run = random(6).toString('base64url');
  let count = 0;
  const logged: Middleware = async (ctx, next) => {
    const started = clock();
    const requestId = `${run}-${(++count).toString(36)}`;
    ctx.state.requestId = requestId;
    await next();
    if (!log.isLevelEnabled('debug')) return;
    const { method, path, status, ip } = ctx;
    log.debug({ requestId, method, path, status, ms: clock() - started, ip }, 'request');
  };
  return measures === undefined ? logged : measured(logged, measures);
}

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
      const { status, state } = ctx;
      const route = typeof state.route === 'string' ? state.route : undefined;
      requestEnded({ method, route, status }, (performance.now() - began) / 1000);
    }
  };
}
