// What every server has: the probes and the error page.
import type { Context } from 'koa';
import type { Logger } from 'pino';
import { feature } from '../engine/provider/feature.ts';
import { oauthShape } from '../http/errors.ts';
import type { Store } from '../store/contract.ts';

interface HealthDependencies {
  store: Store;
  log: Logger;
}

const probe = { limit: 'unlimited', cors: 'none', errors: oauthShape } as const;

export const health = feature<HealthDependencies>({
  name: 'health',
  routes: {
    'GET|HEAD /healthz': { ...probe, summary: 'Whether the process is alive', handle: answerAlive },
    'GET|HEAD /readyz': {
      ...probe,
      summary: 'Whether the process can serve requests: the store answers',
      handle: answerReady,
    },
  },
});

/** The paths that a load balancer asks. They are answered over plain HTTP even where everything else requires HTTPS. */
export const PROBE_PATHS = ['/healthz', '/readyz'];

function answerAlive(_deps: HealthDependencies, ctx: Context): void {
  ctx.body = { status: 'ok' };
}

async function answerReady({ store, log }: HealthDependencies, ctx: Context): Promise<void> {
  const fault = await store.ready().then(
    () => undefined,
    (error: unknown) => error,
  );
  if (fault !== undefined) log.error({ err: fault }, 'the store is not ready');
  ctx.status = fault === undefined ? 200 : 503;
  ctx.body = { status: fault === undefined ? 'ok' : 'unavailable' };
}
