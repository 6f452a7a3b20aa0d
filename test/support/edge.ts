// A reverse proxy in front of the server (docs/do/mtls.md): it terminates TLS, requests client certificates, and passes
// the result on in headers.
import { once } from 'node:events';
import http from 'node:http';
import https from 'node:https';
import type { AddressInfo } from 'node:net';
import type { TLSSocket } from 'node:tls';

export interface Edge {
  /** Its public origin. */
  url: string;
  /** The port on loopback that requests are forwarded to. */
  target: number;
  /** Whether it forwards its clients' own headers with the names that it uses itself. */
  isCareless: boolean;
  stop(): void;
}

interface EdgeOptions {
  cert: string;
  key: string;
  /** The CA whose client certificates it accepts, PEM. */
  clientCa: string;
  apiKey: string;
}

const OWN = ['cname-api-key', 'client-certificate', 'client-certificate-ca-verified'];

/** Starts one; set `target` before the first request. */
export async function startEdge({ cert, key, clientCa, apiKey }: EdgeOptions): Promise<Edge> {
  const edge: Edge = { url: '', target: 0, isCareless: false, stop: () => void server.close() };
  const server = https.createServer(
    { cert, key, ca: clientCa, requestCert: true, rejectUnauthorized: false },
    (request, response) => {
      const socket = request.socket as TLSSocket;
      const shown = socket.getPeerX509Certificate();
      const failed = `FAILED:${String(socket.authorizationError)}`;
      const said: [string, string][] = [
        ['cname-api-key', apiKey],
        [
          'client-certificate-ca-verified',
          shown === undefined ? 'NONE' : socket.authorized ? 'SUCCESS' : failed,
        ],
        ...(shown === undefined
          ? []
          : [['client-certificate', encodeURIComponent(shown.toString())] as [string, string]]),
        ['x-forwarded-proto', 'https'],
        ['x-forwarded-for', request.socket.remoteAddress ?? ''],
      ];
      const theirs = Array.from({ length: request.rawHeaders.length / 2 }, (_, at) =>
        request.rawHeaders.slice(at * 2, at * 2 + 2),
      ).filter(([name = '']) => edge.isCareless || !OWN.includes(name.toLowerCase().replaceAll('_', '-')));
      const onward = http.request({
        port: edge.target,
        host: '127.0.0.1',
        method: request.method,
        path: request.url,
        headers: [...theirs, ...said].flat() as unknown as http.OutgoingHttpHeaders,
      });
      onward.on('response', (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.rawHeaders);
        answer.pipe(response);
      });
      onward.on('error', () => response.writeHead(502).end());
      request.pipe(onward);
    },
  );
  server.listen(0, 'localhost');
  await once(server, 'listening');
  edge.url = `https://localhost:${(server.address() as AddressInfo).port}`;
  return edge;
}

/** Returns a `fetch` that presents a client certificate, as passed to SDKs. @param trust PEM. */
export function fetchWith(trust: string, certificate?: { cert: string; key: string }): typeof fetch {
  return async (input, init) => {
    const asked = new Request(input, init);
    const body = Buffer.from(await asked.arrayBuffer());
    const request = https.request(asked.url, {
      method: asked.method,
      ca: trust,
      agent: false,
      ...certificate,
      headers: { ...Object.fromEntries(asked.headers), 'content-length': String(body.length) },
    });
    request.end(body);
    const [answer] = (await once(request, 'response')) as [http.IncomingMessage];
    const chunks: Buffer[] = [];
    for await (const chunk of answer) chunks.push(chunk as Buffer);
    const status = answer.statusCode ?? 0;
    const headers = Object.entries(answer.headers).map(
      ([name, value]) => [name, String(value)] as [string, string],
    );
    return new Response(status === 204 ? null : Buffer.concat(chunks), { status, headers });
  };
}
