// What the log says of each request.
import type { Middleware } from 'koa';
import type { Logger } from 'pino';
import type { Clock } from '../runtime/clock.ts';
import type { Random } from '../runtime/random.ts';

/**
 * A line per request, with the id that its error page shows. The query is left out, where codes and tokens
 * may be.
 */
export function requestLog(log: Logger, clock: Clock, random: Random): Middleware {
  // Unique without asking for randomness at each request.
  const run = random(6).toString('base64url');
  let count = 0;
  return async (ctx, next) => {
    const started = clock();
    const requestId = `${run}-${(++count).toString(36)}`;
    ctx.state.requestId = requestId;
    await next();
    if (!log.isLevelEnabled('debug')) return;
    const { method, path, status, ip } = ctx;
    log.debug({ requestId, method, path, status, ms: clock() - started, ip }, 'request');
  };
}
