// Shares the connections of a server among its clients. A connection takes memory even if it says nothing, so there is a
// bound; beyond it, whoever has most gives one back, first those in which no request is in progress.
import type http from 'node:http';
import type { Socket } from 'node:net';
import type { Logger } from 'pino';
import { createShares } from '../runtime/shares.ts';
import { originOf } from './addresses.ts';

/** How often it is logged that connections are cut, milliseconds. */
const LOG_INTERVAL = 10_000;

interface Sharing {
  /** How many connections all servers together may have. */
  max: number;
  /** Whether an address is that of a trusted proxy, whose connections are those of many clients and are never cut. */
  isProxy(address: string): boolean;
  log: Pick<Logger, 'warn'>;
}

/** Shares the connections of some servers, from the moment they are accepted, also before a TLS handshake. */
export function shareConnections(
  servers: readonly http.Server[],
  { max, isProxy, log }: Sharing,
): { size(): number } {
  const shares = createShares<Socket>();
  const ofProxies = new Set<Socket>();
  /** The TLS socket of a request and the TCP socket below it have the same ports. */
  const byClient = new Map<string, Socket>();
  const size = () => shares.size() + ofProxies.size;
  const cuts = cutsLogged(log);
  const onConnection = (socket: Socket): void => {
    const { remoteAddress } = socket;
    // It has been closed meanwhile.
    if (remoteAddress === undefined) return void socket.destroy();
    const client = clientOf(socket);
    const forget = () => {
      ofProxies.delete(socket);
      shares.delete(socket);
      if (byClient.get(client) === socket) byClient.delete(client);
    };
    socket.once('close', forget);
    if (isProxy(remoteAddress)) ofProxies.add(socket);
    else {
      shares.add(socket, originOf(remoteAddress));
      byClient.set(client, socket);
    }
    if (size() <= max) return;
    const cut = shares.toGiveUp('oldest') ?? socket;
    cuts.count(cut.remoteAddress);
    shares.delete(cut);
    cut.destroy();
  };
  const onRequest = (request: http.IncomingMessage, response: http.ServerResponse): void => {
    const socket = byClient.get(clientOf(request.socket));
    if (socket === undefined) return;
    shares.keep(socket);
    response.once('close', () => shares.release(socket));
  };
  for (const server of servers) server.on('connection', onConnection).on('request', onRequest);
  return { size };
}

const clientOf = ({ remoteAddress, remotePort, localPort }: Socket) =>
  `${remoteAddress} ${remotePort} ${localPort}`;

/** Logs who has too many connections, at most one line in ten seconds. */
function cutsLogged(log: Pick<Logger, 'warn'>): { count(address: string | undefined): void } {
  let last = -Infinity;
  let connections = 0;
  return {
    count: (address) => {
      connections += 1;
      if (performance.now() - last < LOG_INTERVAL) return;
      last = performance.now();
      const network = address === undefined ? undefined : originOf(address).network;
      log.warn({ connections, network }, 'there are too many connections: those of who has most are cut');
      connections = 0;
    },
  };
}
