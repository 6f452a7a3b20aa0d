// An https server on loopback that has the metadata documents of agents, for a Gatehouse in development.
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import https from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { TestServer } from '../support/server.ts';
import { trust } from '../support/trust.ts';

export interface ClientDocuments {
  /** Publishes the document of an agent. @returns its address, which is the agent's client_id */
  publish(name: string, ...redirectUris: string[]): string;
  stop(): void;
}

/** Serves documents with the certificate of a server, which this process trusts from then on. */
export async function serveDocuments({ dataDir, ca }: TestServer): Promise<ClientDocuments> {
  trust(ca);
  const file = (name: string) => readFile(join(dataDir, 'tls', name));
  const published = new Map<string, object>();
  const host = https.createServer(
    { cert: await file('cert.pem'), key: await file('key.pem') },
    (request, response) => {
      const document = published.get(request.url ?? '');
      response.writeHead(document === undefined ? 404 : 200, { 'content-type': 'application/json' });
      response.end(JSON.stringify(document));
    },
  );
  await once(host.listen(0, '127.0.0.1'), 'listening');
  const { port } = host.address() as AddressInfo;
  const publish = (name: string, ...redirect_uris: string[]) => {
    const path = `/agents/${published.size}.json`;
    const client_id = `https://localhost:${port}${path}`;
    published.set(path, {
      client_id,
      client_name: name,
      redirect_uris,
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
    });
    return client_id;
  };
  const stop = () => {
    host.close();
    host.closeAllConnections();
  };
  return { publish, stop };
}
