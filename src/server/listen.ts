// Listens at the ports of a server, with errors that name the setting to change.
import { once } from 'node:events';
import type http from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Logger } from 'pino';
import type { createServers } from '../capabilities/tls/servers.ts';
import { trustedBy } from '../capabilities/tls/trusted-headers.ts';
import { shareConnections } from '../http/server/application.ts';
import { wrapError } from '../runtime/wrap-error.ts';
import type { Settings } from '../settings/index.ts';
import { withPort } from '../settings/server.ts';

/**
 * Listens at `PORT`, and at `MTLS_PORT` where that is a port of its own. Both share one bound of connections.
 * @returns the settings with the ports that are in use.
 * @throws Error naming the setting and the reason.
 */
export async function listenAll(
  servers: ReturnType<typeof createServers>,
  initial: Settings,
  log: Pick<Logger, 'warn'>,
): Promise<Settings> {
  shareConnections(servers, { max: initial.maxConnections, isProxy: trustedBy(initial.tls), log });
  const [main, mutualTls] = servers;
  const settings = withPort(initial, await listen(main, initial));
  const { mtls, host } = settings;
  if (mtls === undefined) return settings;
  if (mutualTls === undefined) return { ...settings, mtls: { ...mtls, port: settings.port } };
  const port = await listen(mutualTls, { port: mtls.port, host }, 'MTLS_PORT').catch((thrown: unknown) => {
    main.close();
    throw thrown;
  });
  return { ...settings, mtls: { ...mtls, port } };
}

/** @returns the port in use. @throws Error with the reason. */
async function listen(
  server: http.Server,
  { port, host }: Pick<Settings, 'port' | 'host'>,
  variable = 'PORT',
): Promise<number> {
  server.listen(port, host);
  try {
    await once(server, 'listening');
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'EADDRINUSE') {
      throw new Error(`port ${port} on ${host} is in use: stop what listens there, or set ${variable}`);
    }
    wrapError(`HOST, ${variable}: cannot listen on port ${port} of ${host}`)(thrown);
  }
  return (server.address() as AddressInfo).port;
}
