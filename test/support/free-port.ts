// A free port, for a server whose address must be known before it starts.
import { once } from 'node:events';
import net from 'node:net';

/** Returns a port of this machine that the system chose and nothing listens on. */
export async function freePort(): Promise<number> {
  const server = net.createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as net.AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
