// Where metrics are served.
import { z } from 'zod';
import { port, present, settingsGroup } from '../../runtime/settings-group.ts';

export interface MetricsSettings {
  /** A port of their own, plain HTTP; without it they are at `/metrics` of the public server. */
  port?: number | undefined;
  host: string;
  /** The bearer token that scrapers must send. Always set where there is no port. */
  token?: string | undefined;
}

export const metricsSettings = settingsGroup({
  variables: {
    METRICS_PORT: port.optional().meta({
      description: 'a separate port for metrics, by plain HTTP at `/metrics`; 0 takes a free port',
    }),
    METRICS_HOST: z.string().min(1).optional().meta({
      description: 'with `METRICS_PORT`: the address that this port listens on',
      fallback: '`127.0.0.1`',
    }),
    METRICS_TOKEN: z.string().min(22).optional().meta({
      isSecret: true,
      description:
        'the bearer token that reads metrics (`Authorization: Bearer …`), at least 22 characters; without `METRICS_PORT` they are at `/metrics` of `BASE_URL`',
    }),
  },
  faults: ({ METRICS_PORT, METRICS_HOST }, others: { PORT: number; MTLS_PORT?: number | undefined }) => {
    if (METRICS_PORT === undefined)
      return METRICS_HOST === undefined ? [] : ['METRICS_HOST: means something with METRICS_PORT alone'];
    const taken = (['PORT', 'MTLS_PORT'] as const).find((name) => others[name] === METRICS_PORT);
    return METRICS_PORT === 0 || taken === undefined ? [] : [`METRICS_PORT: is that of ${taken}`];
  },
  settings: (own): { metrics?: MetricsSettings | undefined } => ({
    metrics:
      own.METRICS_PORT === undefined && own.METRICS_TOKEN === undefined
        ? undefined
        : present({
            host: own.METRICS_HOST ?? '127.0.0.1',
            port: own.METRICS_PORT,
            token: own.METRICS_TOKEN,
          }),
  }),
});
