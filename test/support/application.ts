// A browser application for tests: a page of an origin of its own, with the script of an SDK.
import http from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Application {
  origin: string;
  stop(): void;
}

/** Starts one; every path but the script's is the page. */
export async function startApplication(script: string | Buffer): Promise<Application> {
  const server = http.createServer((request, response) => {
    const isScript = request.url === '/sdk.js';
    response.setHeader('content-type', isScript ? 'text/javascript' : 'text/html');
    response.end(isScript ? script : '<!doctype html><title>App</title><script src="/sdk.js"></script>');
  });
  await new Promise<void>((resolve) => server.listen(0, 'localhost', resolve));
  return {
    origin: `http://localhost:${(server.address() as AddressInfo).port}`,
    stop: () => void server.close(),
  };
}

/** The applications of a tenant, with the browser application at an origin. */
export function clientsAt<C extends { client_id: string }>(clients: readonly C[], origin: string): C[] {
  return clients.map((client) =>
    client.client_id === 'spa'
      ? { ...client, callbacks: [`${origin}/callback`], web_origins: [origin] }
      : client,
  );
}
