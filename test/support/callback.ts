// An application's callback; tests only need the browser to be redirected there.
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Callback {
  url: string;
  close(): void;
}

/** Listens on a free port of this machine and answers every request with a page. */
export async function startCallback(): Promise<Callback> {
  const server = http.createServer((_request, response) => {
    response.setHeader('content-type', 'text/html');
    response.end('<title>callback</title>');
  });
  server.listen(0, 'localhost');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return { url: `http://localhost:${port}/callback`, close: () => void server.close() };
}
