// A client for many requests, each sent exactly as given, over a few kept connections.
import https from 'node:https';
import { tenant } from './flows.ts';
import { startServer, type TestServer } from './server.ts';
import { UNLIMITED } from './unlimited.ts';

interface PlainAnswer {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  text: string;
}

export interface Requester {
  ask(
    method: string,
    path: string,
    options?: { headers?: Record<string, string>; body?: string },
  ): Promise<PlainAnswer>;
  close(): void;
}

/** Returns a client without cookies. */
export function createRequester(server: { url: string; ca: string }): Requester {
  const agent = new https.Agent({ keepAlive: true, maxSockets: 8 });
  const { port } = new URL(server.url);
  return {
    ask: (method, path, { headers = {}, body } = {}) =>
      new Promise((resolve, reject) => {
        const options = {
          host: 'localhost',
          servername: 'localhost',
          port,
          method,
          path,
          headers,
          ca: server.ca,
          agent,
        };
        const sent = https.request(options, (answer) => {
          const chunks: Buffer[] = [];
          answer.on('data', (chunk: Buffer) => chunks.push(chunk));
          answer.once('error', reject);
          answer.once('end', () =>
            resolve({
              status: answer.statusCode ?? 0,
              headers: answer.headers,
              text: Buffer.concat(chunks).toString('utf8'),
            }),
          );
        });
        sent.once('error', reject);
        sent.end(body);
      }),
    close: () => agent.destroy(),
  };
}

/** Starts a server without rate limits, and a client of it, for the tests of the suite. @returns both, while a test runs. */
export function unlimitedServer(): () => { server: TestServer; requester: Requester } {
  let server: TestServer;
  let requester: Requester;
  before(async () => {
    server = await startServer({ tenant: { ...tenant, ...UNLIMITED } });
    requester = createRequester(server);
  });
  after(async () => {
    requester?.close();
    await server?.stop();
  });
  return () => ({ server, requester });
}
