// The servers that listen: over TLS or behind a proxy, and where clients are asked for certificates (RFC 8705 §2).
import http from 'node:http';
import https from 'node:https';
import { answerClientErrors } from '../../http/client-errors.ts';

/** Time limits for a request's head and for the whole request, and how often they are checked, milliseconds. */
const TIMEOUTS = { headersTimeout: 20_000, requestTimeout: 30_000, connectionsCheckingInterval: 5_000 };

// docs/understand/decisions/requests.md#the-head-of-a-request-has-at-most-16-kib-and-128-kib-on-a-developers-machine
/**
 * The longest head of a request, bytes. On a developer's machine all applications share the cookies of localhost, and browsers
 * keep several hundred KiB of a host; elsewhere it is the limit of Node.js.
 */
export const MAX_HEAD_BYTES = { onThisMachine: 128 * 1024, elsewhere: 16 * 1024 };

/**
 * How long an idle connection of a proxy stays open, milliseconds: longer than proxies keep theirs (mostly 60 s, some
 * ten minutes). If the server closed first, a request could be in transit and fail with 502. Other clients get the five
 * seconds of Node.js; otherwise strangers could hold all connections.
 */
const PROXY_KEEP_ALIVE = 620_000;

/**
 * TLS 1.3, and 1.2 only with forward secrecy and authenticated encryption (RFC 9325 §4.2; FAPI 2.0 Security Profile
 * §5.2.2). The cipher suites of TLS 1.3 must be listed, too, because the list is for both versions.
 */
const PROTOCOL = {
  minVersion: 'TLSv1.2',
  ciphers: [
    'TLS_AES_256_GCM_SHA384',
    'TLS_CHACHA20_POLY1305_SHA256',
    'TLS_AES_128_GCM_SHA256',
    'ECDHE-ECDSA-AES256-GCM-SHA384',
    'ECDHE-RSA-AES256-GCM-SHA384',
    'ECDHE-ECDSA-AES128-GCM-SHA256',
    'ECDHE-RSA-AES128-GCM-SHA256',
  ].join(':'),
} as const;

/** Where clients are asked for certificates. */
interface MtlsSettings {
  /** The port of everything else, or one of its own. */
  port: number;
  /** PEM: the authorities that are trusted for clients; none where it is undefined. */
  ca?: string | undefined;
}

interface ServerOptions {
  /** PEM; undefined behind a proxy that terminates TLS. */
  secure: { cert: string; key: string } | undefined;
  port: number;
  mtls: MtlsSettings | undefined;
  /** The longest head of a request, bytes. */
  maxHeaderSize: number;
}

/**
 * Makes the servers, which do not listen yet. The second one asks for certificates, where that has a port of its own.
 */
function makeServers({
  secure,
  port,
  mtls,
  maxHeaderSize,
}: ServerOptions): [http.Server] | [http.Server, https.Server] {
  if (secure === undefined)
    return [http.createServer({ ...TIMEOUTS, maxHeaderSize, keepAliveTimeout: PROXY_KEEP_ALIVE })];
  const options = { ...secure, ...TIMEOUTS, ...PROTOCOL, maxHeaderSize, handshakeTimeout: 20_000 };
  if (mtls === undefined) return [https.createServer(options)];
  const mtlsOptions = { ...options, ...certificateRequest(mtls) };
  if (isSamePort(port, mtls)) return [https.createServer(mtlsOptions)];
  return [https.createServer(options), https.createServer(mtlsOptions)];
}

/** As {@link makeServers}; requests that cannot be read are answered with a text. */
export function createServers(options: ServerOptions): ReturnType<typeof makeServers> {
  const servers = makeServers(options);
  for (const server of servers) answerClientErrors(server, options.maxHeaderSize);
  return servers;
}

/** Reports whether all clients are asked for a certificate, at the only port. */
function isSamePort(port: number, mtls: Pick<MtlsSettings, 'port'>): boolean {
  return port !== 0 && port === mtls.port;
}

/**
 * Returns the TLS options of asking. A client may have no certificate or a self-signed one; what it is good for is
 * decided at the request. Without authorities `ca` is an empty list: the default would trust all public ones, which
 * sign for anybody.
 */
function certificateRequest({ ca }: MtlsSettings) {
  return { requestCert: true, rejectUnauthorized: false, ca: ca ?? [] };
}
