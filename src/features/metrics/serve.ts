// Serves metrics: at a port of their own, or at a path of the public server with a token. Both are off by default.
import { once } from 'node:events';
import http from 'node:http';
import type { Context } from 'koa';
import { feature } from '../../engine/provider/feature.ts';
import { AuthError, oauthShape } from '../../http/errors.ts';
import { httpLimits } from '../../http/limits.ts';
import { isSameSecret } from '../../runtime/secrets.ts';
import type { MetricsSettings } from './metrics-settings.ts';
import type { Metrics } from './registry.ts';

interface MetricsDependencies {
  metrics: Pick<Metrics, 'text' | 'contentType'>;
  token: string;
}

const PATH = '/metrics';

interface MetricsNeeds {
  /** Undefined where metrics are off. */
  metrics: MetricsDependencies['metrics'] | undefined;
  metricsSettings: Partial<MetricsSettings> | undefined;
}

export const metricsFeature = feature<MetricsNeeds, unknown, MetricsDependencies>({
  name: 'metrics',
  // Not served where metrics are off, or have a port of their own.
  given: ({ metrics, metricsSettings = {} }) => {
    const { token } = metricsSettings;
    return metrics && token !== undefined && isPublic(metricsSettings) ? { metrics, token } : undefined;
  },
  routes: {
    'GET|HEAD /metrics': {
      limit: httpLimits.other,
      cors: 'none',
      errors: oauthShape,
      summary: 'Metrics, for callers with METRICS_TOKEN as bearer token, if it is set',
      handle: answerMetrics,
    },
  },
});

// docs/understand/decisions/operating.md#metrics-are-never-public-by-default
/** Reports whether metrics are served by the public server: with a token, and no port of their own. */
export function isPublic({ port, token }: Partial<MetricsSettings>): boolean {
  return token !== undefined && port === undefined;
}

async function answerMetrics({ metrics, token }: MetricsDependencies, ctx: Context): Promise<void> {
  if (!isAllowed(ctx.get('Authorization'), token)) {
    ctx.set('WWW-Authenticate', 'Bearer');
    throw new AuthError(401, 'invalid_token', 'The token of the metrics is needed.');
  }
  ctx.type = metrics.contentType;
  ctx.body = await metrics.text();
}

const isAllowed = (authorization: string, token: string) =>
  isSameSecret(authorization.replace(/^Bearer +/i, ''), token) && /^Bearer /i.test(authorization);

interface MetricsServer {
  port: number;
  close(): void;
}

/**
 * Listens at the metrics' own port.
 * @throws Error with the reason; the caller adds the name of the setting.
 */
export async function serveMetrics(
  metrics: Pick<Metrics, 'text' | 'contentType'>,
  { port, host, token }: MetricsSettings & { port: number },
): Promise<MetricsServer> {
  const server = http.createServer({ headersTimeout: 5_000, requestTimeout: 5_000 }, (request, response) => {
    const send = (status: number, text = '', headers: http.OutgoingHttpHeaders = {}) =>
      response.writeHead(status, { 'content-type': 'text/plain', ...headers }).end(text);
    if (request.method !== 'GET' || request.url?.split('?')[0] !== PATH) return send(404);
    if (token !== undefined && !isAllowed(request.headers.authorization ?? '', token))
      return send(401, '', { 'www-authenticate': 'Bearer' });
    metrics.text().then(
      (text) => send(200, text, { 'content-type': metrics.contentType }),
      () => send(500),
    );
  });
  server.maxConnections = 100;
  server.listen(port, host);
  await once(server, 'listening');
  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : port,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}
